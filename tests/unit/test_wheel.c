#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "gateway/wheel.h"
#include "tests/unit/dice.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT_MS = 100, TURN_MS = 512 * SLOT_MS, START_MS = 123456 };

/* On the heap and gone when it fired, as a session's timer is. */
struct alarm {
    struct timer timer;
    uint64_t deadline_ms; /* 0: must not fire */
    unsigned *fired;
};

static struct wheel *wheel;
static uint64_t now_ms;

static struct alarm *alarm_of(struct timer *t)
{
    return container_of(t, struct alarm, timer);
}

static void on_fire(struct timer *t)
{
    struct alarm *a = alarm_of(t);
    assert_false(wheel_is_armed(t));
    assert_true(a->deadline_ms != 0);
    assert_true(now_ms >= a->deadline_ms);
    ++*a->fired;
    free(a);
}

static struct alarm *set_alarm(uint64_t deadline_ms, unsigned *fired)
{
    struct alarm *a = mem_zalloc(sizeof(*a));
    a->deadline_ms = deadline_ms;
    a->fired = fired;
    wheel_arm(wheel, &a->timer, deadline_ms, on_fire);
    assert_true(wheel_is_armed(&a->timer));
    return a;
}

static void advance_to(uint64_t ms)
{
    now_ms = ms;
    wheel_advance(wheel, ms);
}

static int set_up(void **state)
{
    (void)state;
    now_ms = START_MS;
    wheel = wheel_new(now_ms);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wheel_free(wheel);
    return 0;
}

static void fires_within_a_slot_after_the_deadline_and_never_before(void **state)
{
    (void)state;
    static const uint64_t delays[] = {
        0, 1, 99, 100, 101, TURN_MS, TURN_MS - 1, TURN_MS + 1, 3 * (uint64_t)TURN_MS, 100000};
    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        unsigned fired = 0;
        uint64_t deadline = now_ms + delays[i];
        (void)set_alarm(deadline, &fired);
        while (fired == 0) {
            assert_true(now_ms < deadline + SLOT_MS + SLOT_MS);
            advance_to(now_ms + 7);
        }
        advance_to(now_ms + TURN_MS + TURN_MS);
        assert_int_equal(fired, 1);
    }
}

static void a_deadline_in_the_past_fires_with_the_next_slot(void **state)
{
    unsigned fired = 0;
    (void)state;
    (void)set_alarm(1, &fired);
    advance_to(now_ms);
    assert_int_equal(fired, 0);
    advance_to(now_ms + SLOT_MS);
    assert_int_equal(fired, 1);
}

static void after_a_long_pause_everything_due_fires_at_once(void **state)
{
    unsigned fired = 0;
    unsigned later = 0;
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        (void)set_alarm(now_ms + i * UINT64_C(137), &fired);
    (void)set_alarm(now_ms + 200 * (uint64_t)TURN_MS, &later);
    advance_to(now_ms + 100 * (uint64_t)TURN_MS);
    assert_int_equal(fired, 1000);
    assert_int_equal(later, 0);
    advance_to(now_ms + 101 * (uint64_t)TURN_MS);
    assert_int_equal(later, 1);
}

static void what_is_disarmed_does_not_fire(void **state)
{
    unsigned fired = 0;
    (void)state;
    struct timer never = {0};
    assert_false(wheel_is_armed(&never));
    wheel_disarm(&never);
    struct alarm *a = set_alarm(now_ms + 500, &fired);
    (void)set_alarm(now_ms + 500, &fired);
    wheel_disarm(&a->timer);
    assert_false(wheel_is_armed(&a->timer));
    wheel_disarm(&a->timer);
    free(a);
    advance_to(now_ms + 1000);
    assert_int_equal(fired, 1);
}

static void arming_again_moves_the_deadline(void **state)
{
    unsigned fired = 0;
    (void)state;
    struct alarm *a = set_alarm(now_ms + 300, &fired);
    a->deadline_ms = now_ms + 900;
    wheel_arm(wheel, &a->timer, a->deadline_ms, on_fire);
    advance_to(now_ms + 800);
    assert_int_equal(fired, 0);
    advance_to(now_ms + 200);
    assert_int_equal(fired, 1);
}

struct pair {
    struct timer first, second;
    unsigned fired;
};

static void on_second(struct timer *t)
{
    struct pair *p = container_of(t, struct pair, second);
    p->fired += 100;
}

static void on_first_disarms_the_second(struct timer *t)
{
    struct pair *p = container_of(t, struct pair, first);
    p->fired++;
    wheel_disarm(&p->second);
}

static void a_callback_may_disarm_another_that_is_due_in_the_same_slot(void **state)
{
    struct pair p = {0};
    (void)state;
    wheel_arm(wheel, &p.first, now_ms + 50, on_first_disarms_the_second);
    wheel_arm(wheel, &p.second, now_ms + 50, on_second);
    advance_to(now_ms + 1000);
    assert_int_equal(p.fired, 1);
}

static void on_first_arms_itself(struct timer *t)
{
    struct pair *p = container_of(t, struct pair, first);
    p->fired++;
    wheel_arm(wheel, t, now_ms, on_first_arms_itself);
}

static void a_callback_that_is_always_due_again_does_not_hold_the_loop(void **state)
{
    struct pair p = {0};
    (void)state;
    wheel_arm(wheel, &p.first, now_ms, on_first_arms_itself);
    for (unsigned i = 1; i <= 20; i++) {
        advance_to(now_ms + SLOT_MS);
        assert_int_equal(p.fired, i);
    }
    wheel_disarm(&p.first);
}

static void any_mix_of_arming_and_time_fires_each_exactly_once(void **state)
{
    struct dice d = dice_new("wheel");
    unsigned fired = 0;
    unsigned armed = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        if (dice_roll(&d, 3) != 0) {
            armed++;
            (void)set_alarm(now_ms + dice_roll(&d, dice_roll(&d, 2) ? 300 : 3 * TURN_MS), &fired);
        } else {
            advance_to(now_ms + dice_roll(&d, dice_roll(&d, 50) ? 250 : 2 * TURN_MS));
        }
    }
    advance_to(now_ms + 3 * (uint64_t)TURN_MS + SLOT_MS);
    assert_int_equal(fired, armed);
}

#define WITH_WHEEL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WHEEL(fires_within_a_slot_after_the_deadline_and_never_before),
        WITH_WHEEL(a_deadline_in_the_past_fires_with_the_next_slot),
        WITH_WHEEL(after_a_long_pause_everything_due_fires_at_once),
        WITH_WHEEL(what_is_disarmed_does_not_fire),
        WITH_WHEEL(arming_again_moves_the_deadline),
        WITH_WHEEL(a_callback_may_disarm_another_that_is_due_in_the_same_slot),
        WITH_WHEEL(a_callback_that_is_always_due_again_does_not_hold_the_loop),
        WITH_WHEEL(any_mix_of_arming_and_time_fires_each_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

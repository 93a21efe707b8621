#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/tick_schedule.h"

static const uint64_t second = 1000000000;
static const uint64_t today = UINT64_C(1796082770) * 1000000000 + 123456789;

static void slots_lie_at_unix_time(void **state)
{
    (void)state;
    struct tick_rate two = tick_rate_of(2);
    assert_int_equal(tick_slot_ns(two, 0), 0);
    assert_int_equal(tick_slot_ns(two, 3), 1500000000);
    assert_int_equal(tick_slot_ns(tick_rate_of(0.1), 7), 70 * second);
    assert_int_equal(tick_slot_ns(tick_rate_of(2.5), 4490206927), 1796082770800000000);
    assert_int_equal(tick_slot_ns(tick_rate_of(0.001), 1), 1000 * second);
}

static void never_drifts_however_far_it_counts(void **state)
{
    (void)state;
    struct tick_rate third = tick_rate_of(3);
    for (uint64_t s = 1; s < UINT64_C(4000000000); s = s * 7 + 1)
        assert_int_equal(tick_slot_ns(third, 3 * s), s * second);
    struct tick_rate fast = tick_rate_of(100000);
    assert_int_equal(tick_slot_ns(fast, UINT64_C(100000) * 4000000000), 4000000000 * second);
}

static void finds_the_slot_at_or_after_a_time(void **state)
{
    (void)state;
    static const double rates[] = {0.001, 0.1, 0.333, 1, 2.5, 3, 59.94, 1000, 20000, 100000};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct tick_rate rate = tick_rate_of(rates[i]);
        uint64_t slot = tick_slot_at_or_after(rate, today);
        assert_true(tick_slot_ns(rate, slot) >= today);
        assert_true(tick_slot_ns(rate, slot - 1) < today);
        assert_int_equal(tick_slot_at_or_after(rate, tick_slot_ns(rate, slot)), slot);
    }
}

static void plans_nothing_before_its_time(void **state)
{
    (void)state;
    struct tick_rate rate = tick_rate_of(10);
    struct tick_plan plan = tick_plan(rate, 11, second, second, 100);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.skipped, 0);
    assert_int_equal(plan.first, 11);
    assert_int_equal(plan.late_ns, 0);
}

static void plans_a_slot_at_its_very_time(void **state)
{
    (void)state;
    struct tick_plan plan = tick_plan(tick_rate_of(10), 10, second, second, 100);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.first, 10);
    assert_int_equal(plan.late_ns, 0);
    assert_int_equal(tick_plan(tick_rate_of(10), 10, second - 1, second, 100).count, 0);
}

static void sends_a_backlog_of_a_second_and_skips_what_is_older(void **state)
{
    (void)state;
    struct tick_rate rate = tick_rate_of(10);
    struct tick_plan plan = tick_plan(rate, 10, 5 * second, second, 100);
    assert_int_equal(plan.skipped, 30);
    assert_int_equal(plan.first, 40);
    assert_int_equal(plan.count, 11);
    assert_int_equal(plan.late_ns, 4 * second);
}

static void leaves_the_rest_of_a_burst_due(void **state)
{
    (void)state;
    struct tick_rate rate = tick_rate_of(20000);
    uint64_t next = tick_slot_at_or_after(rate, today);
    uint64_t now = tick_slot_ns(rate, next + 2500);
    for (int turn = 0; turn < 3; turn++) {
        struct tick_plan plan = tick_plan(rate, next, now, second, 1000);
        assert_int_equal(plan.skipped, 0);
        assert_int_equal(plan.first, next);
        assert_int_equal(plan.count, turn == 2 ? 501 : 1000);
        next += plan.count;
    }
    assert_int_equal(tick_plan(rate, next, now, second, 1000).count, 0);
}

/* With slots further apart than the backlog, only what is due and young counts. */
static void skips_a_slow_tick_that_is_too_late(void **state)
{
    (void)state;
    struct tick_rate rate = tick_rate_of(0.1);
    struct tick_plan plan = tick_plan(rate, 1, 15 * second, second, 100);
    assert_int_equal(plan.skipped, 1);
    assert_int_equal(plan.first, 2);
    assert_int_equal(plan.count, 0);
}

static void deals_with_each_slot_once_whatever_the_clock_does(void **state)
{
    (void)state;
    struct tick_rate rate = tick_rate_of(777);
    uint64_t next = tick_slot_at_or_after(rate, today);
    uint64_t now = today;
    uint64_t random = 12345;
    for (int i = 0; i < 10000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t step = (random >> 33) % (3 * second);
        now = i % 5 == 0 ? now - step / 4 : now + step;
        struct tick_plan plan = tick_plan(rate, next, now, second, 100);
        assert_int_equal(plan.first, next + plan.skipped);
        assert_true(plan.count <= 100);
        if (plan.count > 0) {
            assert_true(tick_slot_ns(rate, plan.first + plan.count - 1) <= now);
            assert_true(tick_slot_ns(rate, plan.first) + second >= now);
        }
        next = plan.first + plan.count;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_lie_at_unix_time),
        cmocka_unit_test(never_drifts_however_far_it_counts),
        cmocka_unit_test(finds_the_slot_at_or_after_a_time),
        cmocka_unit_test(plans_nothing_before_its_time),
        cmocka_unit_test(plans_a_slot_at_its_very_time),
        cmocka_unit_test(sends_a_backlog_of_a_second_and_skips_what_is_older),
        cmocka_unit_test(leaves_the_rest_of_a_burst_due),
        cmocka_unit_test(skips_a_slow_tick_that_is_too_late),
        cmocka_unit_test(deals_with_each_slot_once_whatever_the_clock_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

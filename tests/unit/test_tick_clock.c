#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/tick_clock.h"

static const uint64_t ms = 1000000;
static const uint64_t wall = UINT64_C(1796082770123456789);

static void carries_the_wall_clock_on(void **state)
{
    (void)state;
    struct tick_clock clock;
    tick_clock_init(&clock, 5 * ms, wall);
    assert_int_equal(tick_clock_now(&clock, 5 * ms), wall);
    assert_int_equal(tick_clock_now(&clock, 1005 * ms), wall + 1000 * ms);
}

static void leaves_a_difference_of_50_ms_alone(void **state)
{
    (void)state;
    struct tick_clock clock;
    tick_clock_init(&clock, 0, wall);
    assert_int_equal(tick_clock_adjust(&clock, 100 * ms, wall + 150 * ms), 0);
    assert_int_equal(tick_clock_adjust(&clock, 100 * ms, wall + 50 * ms), 0);
    assert_int_equal(tick_clock_now(&clock, 100 * ms), wall + 100 * ms);
}

static void takes_over_a_step_either_way_once(void **state)
{
    (void)state;
    struct tick_clock clock;
    uint64_t hour = 3600000 * ms;
    tick_clock_init(&clock, 0, wall);
    assert_int_equal(tick_clock_adjust(&clock, ms, wall + ms + hour), 3600000);
    assert_int_equal(tick_clock_now(&clock, 2 * ms), wall + hour + 2 * ms);
    assert_int_equal(tick_clock_adjust(&clock, 2 * ms, wall + hour + 2 * ms), 0);
    assert_int_equal(tick_clock_adjust(&clock, 3 * ms, wall + 3 * ms - hour), -7200000);
    assert_int_equal(tick_clock_now(&clock, 4 * ms), wall + 4 * ms - hour);
}

/* Small steps add up to one that counts. */
static void adds_small_steps_up(void **state)
{
    (void)state;
    struct tick_clock clock;
    tick_clock_init(&clock, 0, wall);
    assert_int_equal(tick_clock_adjust(&clock, 0, wall + 30 * ms), 0);
    assert_int_equal(tick_clock_adjust(&clock, 0, wall + 60 * ms), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_the_wall_clock_on),
        cmocka_unit_test(leaves_a_difference_of_50_ms_alone),
        cmocka_unit_test(takes_over_a_step_either_way_once),
        cmocka_unit_test(adds_small_steps_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

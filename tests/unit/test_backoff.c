#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/backoff.h"

enum { BASE_MS = 100, MAX_MS = 30000, DRAWS = 2000 };

static void stays_under_a_doubling_ceiling(void **state)
{
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct backoff b;
        uint64_t ceiling = BASE_MS;
        backoff_init(&b, BASE_MS, MAX_MS);
        for (int attempt = 0; attempt < 30; attempt++) {
            assert_in_range(backoff_next_ms(&b), 1, ceiling);
            ceiling = ceiling * 2 < MAX_MS ? ceiling * 2 : MAX_MS;
        }
    }
}

static void spreads_over_the_whole_range(void **state)
{
    struct backoff b;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    (void)state;
    backoff_init(&b, BASE_MS, MAX_MS);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t ms = backoff_next_ms(&b);
        low = i > 20 && ms < low ? ms : low;
        high = i > 20 && ms > high ? ms : high;
    }
    assert_true(low < MAX_MS / 20);
    assert_true(high > MAX_MS - MAX_MS / 20);
}

static void is_slow_at_once_for_what_time_does_not_heal(void **state)
{
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct backoff b;
        backoff_init(&b, BASE_MS, MAX_MS);
        assert_in_range(backoff_slow_ms(&b), MAX_MS / 2, MAX_MS);
    }
}

static void begins_again_after_a_reset(void **state)
{
    struct backoff b;
    (void)state;
    backoff_init(&b, BASE_MS, MAX_MS);
    for (int i = 0; i < DRAWS; i++) {
        (void)backoff_next_ms(&b);
        (void)backoff_slow_ms(&b);
        backoff_reset(&b);
        assert_in_range(backoff_next_ms(&b), 1, BASE_MS);
    }
}

static void two_of_them_do_not_keep_step(void **state)
{
    struct backoff a;
    struct backoff b;
    int equal = 0;
    (void)state;
    backoff_init(&a, MAX_MS, MAX_MS);
    backoff_init(&b, MAX_MS, MAX_MS);
    for (int i = 0; i < 100; i++)
        equal += backoff_next_ms(&a) == backoff_next_ms(&b);
    assert_true(equal < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_under_a_doubling_ceiling),
        cmocka_unit_test(spreads_over_the_whole_range),
        cmocka_unit_test(is_slow_at_once_for_what_time_does_not_heal),
        cmocka_unit_test(begins_again_after_a_reset),
        cmocka_unit_test(two_of_them_do_not_keep_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/random.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static void stays_between_its_bounds_and_reaches_both(void **state)
{
    static const uint64_t bounds[][2] = {{0, 1}, {5, 9}, {UINT64_MAX - 2, UINT64_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        bool low = false, high = false;
        for (int draw = 0; draw < 1000; draw++) {
            uint64_t n = random_between(bounds[i][0], bounds[i][1]);
            assert_true(n >= bounds[i][0] && n <= bounds[i][1]);
            low = low || n == bounds[i][0];
            high = high || n == bounds[i][1];
        }
        assert_true(low && high);
    }
}

static void equal_bounds_leave_no_choice(void **state)
{
    (void)state;
    for (int draw = 0; draw < 100; draw++) {
        assert_int_equal(random_between(7, 7), 7);
        assert_int_equal(random_between(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    }
}

static void the_whole_range_has_every_bit(void **state)
{
    uint64_t ones = 0, zeros = 0;
    (void)state;
    for (int draw = 0; draw < 1000; draw++) {
        uint64_t n = random_between(0, UINT64_MAX);
        ones |= n;
        zeros |= ~n;
    }
    assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
}

/* Within a fifth of the mean: 20 sigma at this count. */
static void all_values_come_about_equally_often(void **state)
{
    enum { VALUES = 10, DRAWS = 100000 };
    unsigned counts[VALUES] = {0};
    (void)state;
    for (int draw = 0; draw < DRAWS; draw++)
        counts[random_between(0, VALUES - 1)]++;
    for (int i = 0; i < VALUES; i++)
        assert_in_range(counts[i], DRAWS / VALUES * 4 / 5, DRAWS / VALUES * 6 / 5);
}

static void a_child_that_reseeds_draws_its_own(void **state)
{
    int ends[2];
    uint64_t mine, theirs;
    (void)state;
    (void)random_between(0, UINT64_MAX);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        random_reseed();
        mine = random_between(0, UINT64_MAX);
        _exit(write(ends[1], &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
    }
    mine = random_between(0, UINT64_MAX);
    assert_int_equal(read(ends[0], &theirs, sizeof(theirs)), sizeof(theirs));
    assert_true(mine != theirs);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_between_its_bounds_and_reaches_both),
        cmocka_unit_test(equal_bounds_leave_no_choice),
        cmocka_unit_test(the_whole_range_has_every_bit),
        cmocka_unit_test(all_values_come_about_equally_often),
        cmocka_unit_test(a_child_that_reseeds_draws_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

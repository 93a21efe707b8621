#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bench/scanner.h"

#include <stdlib.h>
#include <string.h>

struct seen {
    int count;
    uint64_t seq[8];
    uint64_t t_ns[8];
};

static void on_tick(void *owner, uint64_t seq, uint64_t t_ns)
{
    struct seen *seen = owner;
    assert_true(seen->count < 8);
    seen->seq[seen->count] = seq;
    seen->t_ns[seen->count++] = t_ns;
}

/* In a heap copy of exactly the promised size, so that a read past its end is found. */
static void feed(struct scanner *s, const char *text, size_t len, struct seen *seen)
{
    char *copy = malloc(SCANNER_CARRY_MAX + len);
    memset(copy, '9', SCANNER_CARRY_MAX);
    memcpy(copy + SCANNER_CARRY_MAX, text, len);
    scanner_feed(s, copy + SCANNER_CARRY_MAX, len, on_tick, seen);
    free(copy);
}

static const char two_events[] =
    "id: 5-0\ndata: {\"seq\":17,\"t\":1764545592123456789,\"pad\":\"..\"}\n\n"
    "data: {\"seq\":18446744073709551615,\"t\":18446744073709551614}\n\n";

static void assert_both(const struct seen *seen)
{
    assert_int_equal(seen->count, 2);
    assert_true(seen->seq[0] == 17 && seen->t_ns[0] == 1764545592123456789u);
    assert_true(seen->seq[1] == UINT64_MAX && seen->t_ns[1] == UINT64_MAX - 1);
}

static void finds_every_tick_wherever_the_stream_is_cut(void **state)
{
    (void)state;
    const size_t len = sizeof(two_events) - 1;
    for (size_t first = 0; first <= len; first++) {
        for (size_t second = first; second <= len; second++) {
            struct scanner s = {0};
            struct seen seen = {0};
            feed(&s, two_events, first, &seen);
            feed(&s, two_events + first, second - first, &seen);
            feed(&s, two_events + second, len - second, &seen);
            assert_both(&seen);
        }
    }
}

static void finds_every_tick_byte_by_byte(void **state)
{
    (void)state;
    struct scanner s = {0};
    struct seen seen = {0};
    for (size_t i = 0; i < sizeof(two_events) - 1; i++)
        feed(&s, two_events + i, 1, &seen);
    assert_both(&seen);
}

static void takes_nothing_else_for_a_tick(void **state)
{
    (void)state;
    static const char *const others[] = {
        "\"seq\":,\"t\":1}",   "\"seq\":1,\"t\":}",
        "\"seq\":1 ,\"t\":1}", "\"seq\":-1,\"t\":1}",
        "seq\":1,\"t\":1}",    "\"seq\":123456789012345678901,\"t\":1}",
        "\"seq\":1,\"tt\":1}", "\"seq\":1,\"t\":123456789012345678901}",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct scanner s = {0};
        struct seen seen = {0};
        for (size_t at = 0; at < strlen(others[i]); at++)
            feed(&s, others[i] + at, 1, &seen);
        feed(&s, "\"seq\":3,\"t\":4}", 15, &seen);
        assert_int_equal(seen.count, 1);
        assert_true(seen.seq[0] == 3 && seen.t_ns[0] == 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_tick_wherever_the_stream_is_cut),
        cmocka_unit_test(finds_every_tick_byte_by_byte),
        cmocka_unit_test(takes_nothing_else_for_a_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

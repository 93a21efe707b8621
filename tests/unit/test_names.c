#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/names.h"
#include "tests/unit/exact.h"

#include <stdio.h>
#include <stdlib.h>

static const char channel_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@-";
static const char namespace_alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

typedef bool name_rule(const char *name, size_t len);

static bool holds(name_rule *rule, const char *name)
{
    size_t len = strlen(name);
    char *copy = exact(name, len);
    bool ok = rule(copy, len);
    free(copy);
    return ok;
}

static void check_lengths(name_rule *rule, size_t max)
{
    char *longest = mem_alloc(max + 1);
    memset(longest, 'a', max + 1);
    assert_false(rule(longest, 0));
    assert_true(rule(longest, 1));
    assert_true(rule(longest, max));
    assert_false(rule(longest, max + 1));
    free(longest);
}

static void check_alphabet(name_rule *rule, const char *alphabet)
{
    for (int c = 0; c < 256; c++) {
        char name[3] = {'a', (char)c, 'a'};
        bool expected = c != 0 && strchr(alphabet, c) != NULL;
        assert_int_equal(rule(name, 3), expected);
        assert_int_equal(rule(name + 1, 1), expected);
    }
}

static void takes_each_byte_of_the_alphabet_and_no_other(void **state)
{
    (void)state;
    check_alphabet(name_is_channel, channel_alphabet);
    check_alphabet(name_is_event, channel_alphabet);
    check_alphabet(name_is_key, channel_alphabet);
    check_alphabet(name_is_idempotency_key, channel_alphabet);
    check_alphabet(name_is_namespace, namespace_alphabet);
}

static void refuses_the_empty_name_and_one_byte_too_many(void **state)
{
    (void)state;
    check_lengths(name_is_channel, 200);
    check_lengths(name_is_event, 100);
    check_lengths(name_is_key, 200);
    check_lengths(name_is_idempotency_key, 128);
    check_lengths(name_is_namespace, 32);
}

static void wants_one_colon_at_the_end_of_a_prefix(void **state)
{
    (void)state;
    assert_true(holds(name_is_prefix, "tide:"));
    assert_true(holds(name_is_prefix, "A:"));
    assert_true(holds(name_is_prefix, "a_-9:"));
    assert_true(holds(name_is_prefix, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:"));
    static const char *const bad[] = {"",
                                      ":",
                                      "tide",
                                      "a:b:",
                                      "::",
                                      "a:b",
                                      "tide:\n",
                                      "a.:",
                                      "a b:",
                                      "$:",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(holds(name_is_prefix, bad[i]));
}

static void keeps_the_servers_own_events_from_publishers(void **state)
{
    (void)state;
    assert_false(holds(name_is_event, "tidecast."));
    assert_false(holds(name_is_event, "tidecast.gap"));
    assert_true(holds(name_is_event, "tidecast"));
    assert_true(holds(name_is_event, "tidecast-gap"));
    assert_true(holds(name_is_event, "a.tidecast."));
}

static void finds_the_namespace_before_the_first_colon(void **state)
{
    (void)state;
    assert_int_equal(name_namespace_len("chat:room7", 10), 4);
    assert_int_equal(name_namespace_len("chat:a:b", 8), 4);
    assert_int_equal(name_namespace_len("news", 4), 0);
    assert_int_equal(name_namespace_len(":a", 2), 0);
    assert_int_equal(name_namespace_len("chat:room7", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_each_byte_of_the_alphabet_and_no_other),
        cmocka_unit_test(refuses_the_empty_name_and_one_byte_too_many),
        cmocka_unit_test(wants_one_colon_at_the_end_of_a_prefix),
        cmocka_unit_test(keeps_the_servers_own_events_from_publishers),
        cmocka_unit_test(finds_the_namespace_before_the_first_colon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

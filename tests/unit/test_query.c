#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/door/query.h"
#include "tests/unit/exact.h"

#include <stdlib.h>

static struct query query;

static enum query_result parse(const char *text, size_t len)
{
    char *copy = exact(text, len);
    enum query_result result = query_parse(&query, copy, len);
    free(copy);
    return result;
}

static void assert_param(size_t i, const char *name, const char *value)
{
    assert_true(i < query.count);
    assert_string_equal(query.params[i].name, name);
    assert_int_equal(query.params[i].name_len, strlen(name));
    assert_string_equal(query.params[i].value, value);
    assert_int_equal(query.params[i].value_len, strlen(value));
}

static void parts_and_decodes_in_order(void **state)
{
    (void)state;
    static const char text[] = "channel=a&channel=b%3Ac&lastEventId=1%2d0&q=x+y%2By=z&flag&&e=&=v&";
    assert_int_equal(parse(text, sizeof(text) - 1), QUERY_OK);
    assert_int_equal(query.count, 7);
    assert_param(0, "channel", "a");
    assert_param(1, "channel", "b:c");
    assert_param(2, "lastEventId", "1-0");
    assert_param(3, "q", "x y+y=z");
    assert_param(4, "flag", "");
    assert_param(5, "e", "");
    assert_param(6, "", "v");
    query_fini(&query);
}

static void finds_the_first_of_a_name(void **state)
{
    (void)state;
    static const char text[] = "a%00b=0&ab=1&a=2&a=3";
    assert_int_equal(parse(text, sizeof(text) - 1), QUERY_OK);
    assert_string_equal(query_find(&query, "a")->value, "2");
    assert_string_equal(query_find(&query, "ab")->value, "1");
    assert_null(query_find(&query, "b"));
    assert_null(query_find(&query, ""));
    assert_int_equal(query.params[0].name_len, 3);
    query_fini(&query);
}

static void is_empty_without_text(void **state)
{
    (void)state;
    assert_int_equal(query_parse(&query, NULL, 0), QUERY_OK);
    assert_int_equal(query.count, 0);
    query_fini(&query);
    assert_int_equal(parse("&&&", 3), QUERY_OK);
    assert_int_equal(query.count, 0);
    query_fini(&query);
}

static void refuses_a_broken_escape(void **state)
{
    (void)state;
    static const char *const bad[] = {"%",      "%4",  "a=%4",  "a=%zz",  "a=%4z", "a=%z4",
                                      "a=1&b%", "%=1", "a%3=1", "a=%%41", "a=% 1", "a=%-1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(bad[i], strlen(bad[i])), QUERY_BAD_ESCAPE);
        query_fini(&query);
    }
}

static void takes_every_prefix_but_those_that_cut_an_escape(void **state)
{
    (void)state;
    static const char text[] = "ab=%41&c=d";
    for (size_t len = 0; len < sizeof(text); len++) {
        bool is_cut = len == 4 || len == 5;
        assert_int_equal(parse(text, len), is_cut ? QUERY_BAD_ESCAPE : QUERY_OK);
        query_fini(&query);
    }
}

static void bounds_the_parameters(void **state)
{
    (void)state;
    char text[(QUERY_PARAMS_MAX + 1) * 2];
    for (size_t i = 0; i < sizeof(text); i += 2) {
        text[i] = 'a';
        text[i + 1] = '&';
    }
    assert_int_equal(parse(text, (size_t)QUERY_PARAMS_MAX * 2), QUERY_OK);
    assert_int_equal(query.count, QUERY_PARAMS_MAX);
    query_fini(&query);
    assert_int_equal(parse(text, sizeof(text)), QUERY_TOO_MANY);
    query_fini(&query);
}

static void decodes_a_segment_and_keeps_its_plus(void **state)
{
    (void)state;
    size_t len = 0;
    char *text = exact("a+b%2Fc%00%ff", 13);
    char *segment = query_decode_segment(text, 13, &len);
    assert_int_equal(len, 7);
    assert_memory_equal(segment, "a+b/c\0\xFF", 8);
    free(segment);
    assert_null(query_decode_segment(text, 12, &len));
    assert_null(query_decode_segment(text, 11, &len));
    free(text);
    segment = query_decode_segment("", 0, &len);
    assert_int_equal(len, 0);
    assert_string_equal(segment, "");
    free(segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_decodes_in_order),
        cmocka_unit_test(finds_the_first_of_a_name),
        cmocka_unit_test(is_empty_without_text),
        cmocka_unit_test(refuses_a_broken_escape),
        cmocka_unit_test(takes_every_prefix_but_those_that_cut_an_escape),
        cmocka_unit_test(bounds_the_parameters),
        cmocka_unit_test(decodes_a_segment_and_keeps_its_plus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

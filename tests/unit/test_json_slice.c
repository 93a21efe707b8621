#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/transport/json_slice.h"
#include "tests/unit/exact.h"

#include <stdlib.h>

static void assert_member(const char *object, const char *name, const char *expected)
{
    size_t len = strlen(object);
    char *copy = exact(object, len);
    struct json_slice value;
    assert_int_equal(json_slice_member(&value, copy, len, name), expected != NULL);
    if (expected != NULL) {
        assert_int_equal(value.len, strlen(expected));
        assert_memory_equal(value.bytes, expected, value.len);
    }
    free(copy);
}

static void gives_the_bytes_of_each_kind_of_value(void **state)
{
    (void)state;
    static const char object[] =
        " { \"a\" : 1.50 , \"b\":\"x\\\"}\\\\\" ,\"c\":[1, {\"a\":2}, \"]\"]\n,"
        "\"d\":{\"e\":\"}\"},\"e\":null,\"f\":\t{} , \"g\":true}\n";
    assert_member(object, "a", "1.50");
    assert_member(object, "b", "\"x\\\"}\\\\\"");
    assert_member(object, "c", "[1, {\"a\":2}, \"]\"]");
    assert_member(object, "d", "{\"e\":\"}\"}");
    assert_member(object, "e", "null");
    assert_member(object, "f", "{}");
    assert_member(object, "g", "true");
    assert_member(object, "h", NULL);
    assert_member("{}", "a", NULL);
    assert_member("[\"a\",1]", "a", NULL);
}

static void knows_a_name_in_every_spelling(void **state)
{
    (void)state;
    assert_member("{\"d\\u0061ta\":1}", "data", "1");
    assert_member("{\"\\u0064\\u0061\\u0074\\u0061\":1}", "data", "1");
    assert_member("{\"a\\/b\\n\\\"\\\\\":1}", "a/b\n\"\\", "1");
    assert_member("{\"dat\":0,\"datax\":0,\"data\\u0161\":0,\"dat\xC3\xA1\":0,\"data\":1}", "data",
                  "1");
    assert_member("{\"x\":\"data\",\"y\":{\"data\":2},\"data\":1}", "data", "1");
}

static void stays_inside_every_prefix(void **state)
{
    (void)state;
    static const char object[] = "{\"d\\u0061t\":\"\\\"\",\"c\":[{\"d\":\"\\\\\"}],\"data\":{}}";
    for (size_t len = 0; len < sizeof(object); len++) {
        char *copy = exact(object, len);
        struct json_slice value = {.bytes = copy, .len = 0};
        (void)json_slice_member(&value, copy, len, "data");
        assert_true(value.bytes >= copy && value.bytes + value.len <= copy + len);
        (void)json_slice_is_deeper(copy, len, 1);
        free(copy);
    }
}

static bool is_deeper(const char *text, size_t max_depth)
{
    size_t len = strlen(text);
    char *copy = exact(text, len);
    bool answer = json_slice_is_deeper(copy, len, max_depth);
    free(copy);
    return answer;
}

static void measures_depth_outside_of_strings(void **state)
{
    (void)state;
    assert_false(is_deeper("1", 0));
    assert_true(is_deeper("[]", 0));
    assert_false(is_deeper("[[],[{}],[]]", 3));
    assert_true(is_deeper("[[],[{}],[]]", 2));
    assert_false(is_deeper("[\"[[[[\",\"\\\"[[\"]", 1));
    assert_true(is_deeper("[\"\\\\\",[1]]", 1));
    assert_true(is_deeper("]]]][[", 1));
    assert_false(is_deeper("\"", 0));
    assert_false(is_deeper("\"\\", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_bytes_of_each_kind_of_value),
        cmocka_unit_test(knows_a_name_in_every_spelling),
        cmocka_unit_test(stays_inside_every_prefix),
        cmocka_unit_test(measures_depth_outside_of_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/text.h"
#include "tests/unit/exact.h"

#include <stdlib.h>

typedef bool text_question(const char *bytes, size_t len);

static bool ask(text_question *question, const char *bytes, size_t len)
{
    char *copy = exact(bytes, len);
    bool answer = question(copy, len);
    free(copy);
    return answer;
}

static bool says(text_question *question, const char *text)
{
    return ask(question, text, strlen(text));
}

static void takes_utf8_of_every_length_with_nul_and_bom(void **state)
{
    (void)state;
    assert_true(ask(text_is_utf8, "", 0));
    assert_true(text_is_utf8(NULL, 0));
    assert_true(says(text_is_utf8, "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x8C\x8A"));
    assert_true(ask(text_is_utf8, "a\0b", 3));
    assert_true(says(text_is_utf8, "\xEF\xBB\xBF"));
    assert_true(says(text_is_utf8, "\xF4\x8F\xBF\xBF"));
}

static void refuses_what_only_looks_like_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xFF\xFE",
                                      "\x80",
                                      "\xC0\xAF",
                                      "\xC1\xBF",
                                      "\xE0\x80\xAF",
                                      "\xED\xA0\x80",
                                      "\xF0\x80\x80\xAF",
                                      "\xF4\x90\x80\x80",
                                      "\xF8\x88\x80\x80\x80",
                                      "a\xC3",
                                      "\xE2\x82",
                                      "\xF0\x9F\x8C",
                                      "\xC3(",
                                      "ok\xE2\x28\xA1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(says(text_is_utf8, bad[i]));
}

static void takes_any_json_value(void **state)
{
    (void)state;
    static const char *const good[] = {"0",
                                       "-1.5e3",
                                       "true",
                                       "null",
                                       "\"\"",
                                       " [1, 2] ",
                                       "{\"a\":{\"b\":[]}}",
                                       "\"\\u0000\"",
                                       "123456789012345678901234567890",
                                       "{\"a\":1,\"a\":2}",
                                       "\n\t\r []\n",
                                       "\"\xC3\xA4\""};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(says(text_is_json, good[i]));
}

static void refuses_what_is_not_one_json_value(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         " ",     "hello",          "01",     "[1,]",
                                      "{'a':1}",  "[1] 2", "{\"a\"}",        "nan",    "\"\xFF\"",
                                      "\"a\nb\"", "[1",    "\xEF\xBB\xBF[]", "/**/[]", "\f[]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(says(text_is_json, bad[i]));
    assert_false(text_is_json(NULL, 0));
    assert_false(ask(text_is_json, "[]\0", 3));
    assert_false(ask(text_is_json, "[0\0]", 4));
    assert_false(ask(text_is_json, "[true\0]", 7));
    assert_false(ask(text_is_json_container, "[0\0]", 4));
}

static void survives_a_hundred_thousand_brackets(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    char *deep = mem_alloc(COUNT);
    memset(deep, '[', COUNT / 2);
    memset(deep + COUNT / 2, ']', COUNT / 2);
    assert_false(text_is_json(deep, COUNT));
    free(deep);
}

static void tells_containers_from_other_values(void **state)
{
    (void)state;
    assert_true(says(text_is_json_container, "{}"));
    assert_true(says(text_is_json_container, " \r\n\t[1]\n"));
    static const char *const bad[] = {"", "  ", "1", "\"[]\"", "{", "[1]x", "{x}", "null"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(says(text_is_json_container, bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_utf8_of_every_length_with_nul_and_bom),
        cmocka_unit_test(refuses_what_only_looks_like_utf8),
        cmocka_unit_test(takes_any_json_value),
        cmocka_unit_test(refuses_what_is_not_one_json_value),
        cmocka_unit_test(survives_a_hundred_thousand_brackets),
        cmocka_unit_test(tells_containers_from_other_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

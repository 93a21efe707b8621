#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/buf.h"
#include "tests/unit/dice.h"
#include "tests/unit/exact.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void assert_holds(const struct buf *b, const char *bytes, size_t len)
{
    assert_int_equal(b->len, len);
    assert_true(b->capacity >= len);
    assert_memory_equal(b->bytes, bytes, len);
}

static void nothing_appended_is_nothing_allocated(void **state)
{
    struct buf b = {0};
    (void)state;
    buf_append(&b, NULL, 0);
    buf_append_text(&b, "");
    buf_consume(&b, 0);
    assert_null(b.bytes);
    buf_fini(&b);
}

static void appends_every_way_in_order(void **state)
{
    struct buf b = {0};
    (void)state;
    buf_append(&b, "a\0b", 3);
    buf_append_text(&b, "text");
    buf_printf(&b, "%d-%s", 42, "x");
    char *room = buf_reserve(&b, 2);
    room[0] = '!';
    b.len++;
    assert_holds(&b, "a\0btext42-x!", 12);
    buf_fini(&b);
    assert_null(b.bytes);
    assert_int_equal(b.len + b.capacity, 0);
}

static void grows_by_doubling_and_never_less_than_needed(void **state)
{
    struct buf b = {0};
    unsigned grown = 0;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        size_t before = b.capacity;
        buf_append(&b, "x", 1);
        grown += b.capacity != before;
    }
    assert_true(grown < 20);
    char *room = buf_reserve(&b, 1000000);
    memset(room, 'y', 1000000);
    assert_true(b.capacity >= b.len + 1000000);
    buf_fini(&b);
}

static void any_mix_of_append_and_consume_keeps_the_bytes_in_order(void **state)
{
    struct dice d = dice_new("buf");
    struct buf b = {0};
    unsigned char next_in = 0, next_out = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        if (dice_roll(&d, 2) == 0) {
            char bytes[64];
            size_t len = dice_roll(&d, sizeof(bytes));
            for (size_t i = 0; i < len; i++)
                bytes[i] = (char)next_in++;
            buf_append(&b, bytes, len);
        } else {
            size_t len = dice_roll(&d, (uint32_t)b.len + 1);
            for (size_t i = 0; b.bytes != NULL && i < len; i++)
                assert_int_equal((unsigned char)b.bytes[i], next_out++);
            buf_consume(&b, len);
        }
        assert_int_equal((unsigned char)(next_in - next_out), b.len & 0xff);
    }
    buf_fini(&b);
}

static void assert_json(const char *bytes, size_t len, const char *expected)
{
    struct buf b = {0};
    char *copy = exact(bytes, len);
    buf_append_json_string(&b, copy, len);
    assert_holds(&b, expected, strlen(expected));
    buf_fini(&b);
    free(copy);
}

static void writes_json_strings_with_the_short_escapes(void **state)
{
    (void)state;
    assert_json("", 0, "\"\"");
    assert_json("abc", 3, "\"abc\"");
    assert_json("\"", 1, "\"\\\"\"");
    assert_json("\\", 1, "\"\\\\\"");
    assert_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    assert_json("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    assert_json("\0\x1f\x7f", 3, "\"\\u0000\\u001f\x7f\"");
    assert_json("\xc3\xa9/", 3, "\"\xc3\xa9/\"");
}

static void a_foreign_parser_reads_every_byte_back(void **state)
{
    struct buf b = {0};
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    buf_append_json_string(&b, text, sizeof(text));
    json_t *value = json_loadb(b.bytes, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    assert_int_equal(json_string_length(value), sizeof(text));
    assert_memory_equal(json_string_value(value), text, sizeof(text));
    json_decref(value);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_appended_is_nothing_allocated),
        cmocka_unit_test(appends_every_way_in_order),
        cmocka_unit_test(grows_by_doubling_and_never_less_than_needed),
        cmocka_unit_test(any_mix_of_append_and_consume_keeps_the_bytes_in_order),
        cmocka_unit_test(writes_json_strings_with_the_short_escapes),
        cmocka_unit_test(a_foreign_parser_reads_every_byte_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLENTY = 1 << 20 };

/* In an exact-size copy, so that a read past its end is seen. */
static void feed(struct resp_reader *r, const char *bytes, size_t len)
{
    char *copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    resp_reader_feed(r, copy, len);
    free(copy);
}

static void feed_text(struct resp_reader *r, const char *text)
{
    feed(r, text, strlen(text));
}

static const struct resp *next_ok(struct resp_reader *r)
{
    const struct resp *value = NULL;
    assert_int_equal(resp_reader_next(r, &value), RESP_OK);
    assert_non_null(value);
    return value;
}

static void assert_more(struct resp_reader *r)
{
    const struct resp *value = NULL;
    assert_int_equal(resp_reader_next(r, &value), RESP_MORE);
}

static void assert_bad(struct resp_reader *r)
{
    const struct resp *value = NULL;
    assert_int_equal(resp_reader_next(r, &value), RESP_BAD);
    assert_true(strlen(resp_reader_error(r)) > 0);
    assert_int_equal(resp_reader_next(r, &value), RESP_BAD);
}

static void reads_every_type(void **state)
{
    struct resp_reader *r = resp_reader_new(PLENTY);
    (void)state;
    feed_text(r, "+OK\r\n-ERR no\r\n:-42\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n");
    const struct resp *v = next_ok(r);
    assert_int_equal(v->type, RESP_STATUS);
    assert_true(resp_is(v, "OK"));
    v = next_ok(r);
    assert_int_equal(v->type, RESP_ERROR);
    assert_string_equal(v->text, "ERR no");
    v = next_ok(r);
    assert_int_equal(v->type, RESP_INTEGER);
    assert_true(v->integer == -42);
    assert_int_equal(next_ok(r)->type, RESP_NIL);
    assert_int_equal(next_ok(r)->type, RESP_NIL);
    v = next_ok(r);
    assert_int_equal(v->type, RESP_STRING);
    assert_int_equal(v->len, 0);
    v = next_ok(r);
    assert_int_equal(v->type, RESP_ARRAY);
    assert_int_equal(v->count, 0);
    assert_more(r);
    resp_reader_free(r);
}

static void keeps_binary_text_whole(void **state)
{
    static const char bytes[] = "$7\r\na\0\r\n$3b\r\n";
    struct resp_reader *r = resp_reader_new(PLENTY);
    (void)state;
    feed(r, bytes, sizeof(bytes) - 1);
    const struct resp *v = next_ok(r);
    assert_int_equal(v->len, 7);
    assert_memory_equal(v->text, "a\0\r\n$3b", 8);
    assert_false(resp_is(v, "a"));
    resp_reader_free(r);
}

static const char push[] = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n*2\r\n:7\r\n*1\r\n$2\r\nhi\r\n";

static void check_push(const struct resp *v)
{
    assert_int_equal(v->type, RESP_ARRAY);
    assert_int_equal(v->count, 3);
    assert_true(resp_is(v->elements[0], "message"));
    assert_true(resp_is(v->elements[1], "news"));
    assert_int_equal(v->elements[2]->count, 2);
    assert_true(v->elements[2]->elements[0]->integer == 7);
    assert_true(resp_is(v->elements[2]->elements[1]->elements[0], "hi"));
}

static void waits_for_the_rest_after_every_prefix(void **state)
{
    const size_t len = sizeof(push) - 1;
    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        struct resp_reader *r = resp_reader_new(PLENTY);
        feed(r, push, cut);
        assert_more(r);
        feed(r, push + cut, len - cut);
        check_push(next_ok(r));
        assert_more(r);
        resp_reader_free(r);
    }
}

static void frees_a_reader_that_dies_in_mid_reply(void **state)
{
    const size_t len = sizeof(push) - 1;
    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        struct resp_reader *r = resp_reader_new(PLENTY);
        feed(r, push, cut);
        assert_more(r);
        resp_reader_free(r);
    }
    resp_reader_free(NULL);
}

static void reads_one_byte_at_a_time(void **state)
{
    struct resp_reader *r = resp_reader_new(sizeof(push));
    (void)state;
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i + 2 < sizeof(push); i++) {
            feed(r, push + i, 1);
            assert_more(r);
        }
        feed(r, push + sizeof(push) - 2, 1);
        check_push(next_ok(r));
    }
    resp_reader_free(r);
}

static void grows_an_array_past_its_first_room(void **state)
{
    struct resp_reader *r = resp_reader_new(PLENTY);
    struct buf bytes = {0};
    (void)state;
    buf_printf(&bytes, "*%d\r\n", 1000);
    for (int i = 0; i < 1000; i++)
        buf_printf(&bytes, ":%d\r\n", i);
    feed(r, bytes.bytes, bytes.len);
    const struct resp *v = next_ok(r);
    assert_int_equal(v->count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(v->elements[i]->integer == i);
    buf_fini(&bytes);
    resp_reader_free(r);
}

static void believes_no_announced_length(void **state)
{
    static const char *const announced[] = {"*2147483647\r\n", "$2147483647\r\n",
                                            "*2147483647\r\n*2147483647\r\n*2147483647\r\n:1\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(announced) / sizeof(announced[0]); i++) {
        struct resp_reader *r = resp_reader_new(PLENTY);
        feed_text(r, announced[i]);
        assert_more(r);
        resp_reader_free(r);
    }
}

static void takes_a_reply_at_its_bound_and_none_above(void **state)
{
    static const char at_bound[] = "$10\r\n0123456789\r\n"; /* 17 bytes */
    static const char above[] = "$11\r\n0123456789a\r\n";
    struct resp_reader *r = resp_reader_new(17);
    (void)state;
    for (int i = 0; i < 5; i++) {
        feed_text(r, at_bound);
        (void)next_ok(r);
    }
    feed_text(r, above);
    assert_bad(r);
    resp_reader_free(r);
}

static void several_short_replies_may_exceed_the_bound_together(void **state)
{
    struct resp_reader *r = resp_reader_new(5);
    (void)state;
    feed_text(r, "+OK\r\n+OK\r\n+OK\r\n");
    for (int i = 0; i < 3; i++)
        assert_true(resp_is(next_ok(r), "OK"));
    assert_more(r);
    resp_reader_free(r);
}

/* hiredis takes finished elements out of its buffer: a bound on that buffer would never be met. */
static void bounds_an_array_that_comes_in_small_elements(void **state)
{
    struct resp_reader *r = resp_reader_new(4096);
    const struct resp *value = NULL;
    enum resp_result result = RESP_MORE;
    size_t fed = 0;
    (void)state;
    feed_text(r, "*1000000\r\n");
    while (result == RESP_MORE && fed < PLENTY) {
        feed_text(r, ":1\r\n");
        fed += 4;
        result = resp_reader_next(r, &value);
    }
    assert_int_equal(result, RESP_BAD);
    assert_true(fed <= 4096);
    resp_reader_free(r);
}

static void refuses_what_is_not_resp(void **state)
{
    static const char *const garbage[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                          "$x\r\n",
                                          "$-2\r\n",
                                          "*-2\r\n",
                                          ":12a\r\n",
                                          "*99999999999\r\n",
                                          "\r\n",
                                          "%1\r\n+a\r\n+b\r\n",
                                          "*2\r\n$1\r\na\r\n>3\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        struct resp_reader *r = resp_reader_new(PLENTY);
        feed_text(r, garbage[i]);
        assert_bad(r);
        feed_text(r, "+OK\r\n");
        assert_bad(r);
        resp_reader_free(r);
    }
}

static void refuses_nesting_past_its_bound(void **state)
{
    struct resp_reader *r = resp_reader_new(PLENTY);
    (void)state;
    feed_text(r, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
    (void)next_ok(r);
    feed_text(r, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
    assert_bad(r);
    resp_reader_free(r);
}

static void writes_binary_commands(void **state)
{
    static const char expected[] = "*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$0\r\n\r\n";
    const struct resp_arg args[] = {resp_text("SET"), {"a\0b", 3}, {NULL, 0}};
    struct buf out = {0};
    (void)state;
    resp_append_command(&out, args, 3);
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.bytes, expected, out.len);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test(keeps_binary_text_whole),
        cmocka_unit_test(waits_for_the_rest_after_every_prefix),
        cmocka_unit_test(frees_a_reader_that_dies_in_mid_reply),
        cmocka_unit_test(reads_one_byte_at_a_time),
        cmocka_unit_test(grows_an_array_past_its_first_room),
        cmocka_unit_test(believes_no_announced_length),
        cmocka_unit_test(takes_a_reply_at_its_bound_and_none_above),
        cmocka_unit_test(several_short_replies_may_exceed_the_bound_together),
        cmocka_unit_test(bounds_an_array_that_comes_in_small_elements),
        cmocka_unit_test(refuses_what_is_not_resp),
        cmocka_unit_test(refuses_nesting_past_its_bound),
        cmocka_unit_test(writes_binary_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

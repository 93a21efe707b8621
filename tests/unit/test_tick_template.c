#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "broker/tick_template.h"
#include "common/text.h"

static char default_content[] = "{\"seq\":{seq},\"t\":{t},\"channel\":\"{channel}\"}";
static char channel[] = "demo:clock";

static struct tick_template *make(const char *content, uint64_t payload_bytes,
                                  enum tick_template_fault *fault)
{
    const struct tick_config tick = {
        .channel = channel, .rate = 1, .payload_bytes = payload_bytes, .content = (char *)content};
    return tick_template_new(&tick, 9999999999, UINT64_MAX, fault);
}

static void assert_filled(char *content, uint64_t payload_bytes, const char *expected)
{
    enum tick_template_fault fault;
    struct buf out = {0};
    struct tick_template *t = make(content, payload_bytes, &fault);
    assert_non_null(t);
    assert_int_equal(fault, TICK_TEMPLATE_OK);
    tick_template_fill(t, 42, 1796082770000000000, &out);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.bytes, expected, out.len);
    buf_fini(&out);
    tick_template_free(t);
}

static void fills_in_the_default_content(void **state)
{
    (void)state;
    assert_filled(default_content, 0,
                  "{\"seq\":42,\"t\":1796082770000000000,\"channel\":\"demo:clock\"}");
}

static void leaves_other_braces_alone(void **state)
{
    (void)state;
    static char content[] = "{{seq}}{seq {t}{}{other}{channel}{";
    assert_filled(content, 0, "{42}{seq 1796082770000000000{}{other}demo:clock{");
}

static void takes_content_without_any_token(void **state)
{
    (void)state;
    static char plain[] = "beat";
    static char empty[] = "";
    assert_filled(plain, 0, "beat");
    enum tick_template_fault fault;
    struct buf out = {0};
    struct tick_template *t = make(empty, 0, &fault);
    tick_template_fill(t, 1, 1, &out);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    tick_template_free(t);
}

static void pads_where_the_pad_stands(void **state)
{
    (void)state;
    static char content[] = "<{pad}|{seq}>";
    assert_filled(content, 20, "<xxxxxxxxxxxxxxx|42>");
    assert_filled(content, 0, "<|42>");
}

static void has_exactly_the_size_asked_for_whatever_is_filled_in(void **state)
{
    (void)state;
    for (uint64_t len = 80; len < 1000; len += 17) {
        enum tick_template_fault fault;
        struct buf out = {0};
        struct tick_template *t = make(default_content, len, &fault);
        assert_non_null(t);
        for (uint64_t seq = 1; seq < 9999999999; seq *= 10) {
            tick_template_fill(t, seq, seq * 7, &out);
            assert_int_equal(out.len, len);
            assert_true(text_is_json(out.bytes, out.len));
        }
        buf_fini(&out);
        tick_template_free(t);
    }
}

static void refuses_content_that_is_longer_than_the_payload(void **state)
{
    (void)state;
    static char content[] = "{seq}{pad}";
    enum tick_template_fault fault;
    struct tick_template *t = make(content, 10, &fault);
    assert_non_null(t);
    tick_template_free(t);
    assert_null(make(content, 9, &fault));
    assert_int_equal(fault, TICK_TEMPLATE_TOO_LONG);
}

static void refuses_a_size_that_nothing_can_grow_to(void **state)
{
    (void)state;
    static char content[] = "{seq}";
    static char twice[] = "{pad}{pad}";
    enum tick_template_fault fault;
    assert_null(make(content, 100, &fault));
    assert_int_equal(fault, TICK_TEMPLATE_NO_PAD);
    assert_null(make(twice, 0, &fault));
    assert_int_equal(fault, TICK_TEMPLATE_TWO_PADS);
    assert_string_not_equal(tick_template_fault_text(fault), "");
}

/* Exact-size copies, so that a sanitizer sees a step past the end. */
static void reads_no_further_than_any_prefix_of_a_content(void **state)
{
    (void)state;
    static const char whole[] = "a{seq}{t}{channel}{pad}{";
    for (size_t len = 0; len < sizeof(whole); len++) {
        enum tick_template_fault fault;
        struct buf out = {0};
        char *prefix = strndup(whole, len);
        struct tick_template *t = make(prefix, 0, &fault);
        free(prefix);
        assert_non_null(t);
        tick_template_fill(t, 1, 2, &out);
        buf_fini(&out);
        tick_template_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_in_the_default_content),
        cmocka_unit_test(leaves_other_braces_alone),
        cmocka_unit_test(takes_content_without_any_token),
        cmocka_unit_test(pads_where_the_pad_stands),
        cmocka_unit_test(has_exactly_the_size_asked_for_whatever_is_filled_in),
        cmocka_unit_test(refuses_content_that_is_longer_than_the_payload),
        cmocka_unit_test(refuses_a_size_that_nothing_can_grow_to),
        cmocka_unit_test(reads_no_further_than_any_prefix_of_a_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

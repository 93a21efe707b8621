#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/frame.h"
#include "gateway/hub/frames.h"
#include "tests/unit/exact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct message *message(const char *payload, const char *event)
{
    char *bytes = exact(payload, strlen(payload));
    const struct message_parts parts = {.has_id = event[0] != '\0',
                                        .id = {17, 4},
                                        .event = event,
                                        .event_len = strlen(event),
                                        .payload = bytes,
                                        .payload_len = strlen(payload)};
    struct message *m = message_new(&parts);
    free(bytes);
    return m;
}

static struct frame_context context_of(const char *channel, enum content_kind content)
{
    return (struct frame_context){channel, strlen(channel), content};
}

static void assert_frame(struct message *m, enum frame_kind kind, enum content_kind content,
                         const char *expected)
{
    const struct frame_context context = context_of("news", content);
    const struct frame *f = frames_get(m, kind, &context);
    assert_int_equal(f->len, strlen(expected));
    assert_memory_equal(f->bytes, expected, f->len);
}

static void makes_the_bytes_that_the_protocol_says(void **state)
{
    (void)state;
    struct message *m = message("a\nb", "tick");
    assert_frame(m, FRAME_SSE, CONTENT_AUTO, "id: 17-4\nevent: tick\ndata: a\ndata: b\n\n");
    assert_frame(m, FRAME_WS_RAW, CONTENT_AUTO,
                 "\x81\x03"
                 "a\nb");
    assert_frame(
        m, FRAME_WS_JSON, CONTENT_AUTO,
        "\x81\x3b{\"channel\":\"news\",\"id\":\"17-4\",\"event\":\"tick\",\"data\":\"a\\nb\"}");
    message_unref(m);
}

/* What `data` is, by the namespace's content. */
static void data_is_text_or_the_payloads_own_bytes_by_content(void **state)
{
    static const struct {
        const char *payload;
        enum content_kind content;
        const char *data;
    } cases[] = {
        {"{ \"a\": 1}", CONTENT_AUTO, "{ \"a\": 1}"},
        {"[1 ,2]", CONTENT_AUTO, "[1 ,2]"},
        {"12", CONTENT_AUTO, "\"12\""},
        {"{\"a\":", CONTENT_AUTO, "\"{\\\"a\\\":\""},
        {"{} {}", CONTENT_AUTO, "\"{} {}\""},
        {"", CONTENT_AUTO, "\"\""},
        {"{\"a\":1}", CONTENT_TEXT, "\"{\\\"a\\\":1}\""},
        {"[]", CONTENT_TEXT, "\"[]\""},
        {" 12", CONTENT_JSON, " 12"},
        {"\"x\"", CONTENT_JSON, "\"x\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[200];
        int len = snprintf(expected, sizeof(expected), "{\"channel\":\"news\",\"data\":%s}",
                           cases[i].data);
        const struct frame_context context = context_of("news", cases[i].content);
        struct message *m = message(cases[i].payload, "");
        const struct frame *f = frames_get(m, FRAME_WS_JSON, &context);
        assert_int_equal((unsigned char)f->bytes[0], 0x81);
        assert_int_equal(f->bytes[1], len);
        assert_int_equal(f->len, len + 2);
        assert_memory_equal(f->bytes + 2, expected, (size_t)len);
        message_unref(m);
    }
}

static void is_made_once_for_all_readers(void **state)
{
    (void)state;
    struct message *m = message("x", "");
    const struct frame *made[FRAME_KINDS];
    for (int kind = 0; kind < FRAME_KINDS; kind++) {
        const struct frame_context context = context_of("news", CONTENT_TEXT);
        size_t before = message_size(m);
        made[kind] = frames_get(m, (enum frame_kind)kind, &context);
        assert_int_equal(message_size(m), before + sizeof(struct frame) + made[kind]->len);
    }
    for (int kind = 0; kind < FRAME_KINDS; kind++) {
        const struct frame_context other = context_of("other", CONTENT_AUTO);
        assert_ptr_equal(frames_get(m, (enum frame_kind)kind, &other), made[kind]);
        assert_ptr_equal(m->frames[kind], made[kind]);
    }
    message_unref(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_bytes_that_the_protocol_says),
        cmocka_unit_test(data_is_text_or_the_payloads_own_bytes_by_content),
        cmocka_unit_test(is_made_once_for_all_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

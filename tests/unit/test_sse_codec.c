#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "gateway/transport/sse_codec.h"

#include <stdlib.h>
#include <string.h>

/* The standard's parser (section 9.2.6): LF, CR and CRLF end lines, one byte after the other. */
struct parser {
    struct buf line, data, event, id;
    bool after_cr;
    size_t dispatched;
    struct buf last_data, last_event; /* of the last event dispatched */
    struct buf retry;
};

static void set(struct buf *b, const char *bytes, size_t len)
{
    b->len = 0;
    buf_append(b, bytes, len);
}

static bool is(const struct buf *b, const char *text)
{
    return b->len == strlen(text) && (b->len == 0 || memcmp(b->bytes, text, b->len) == 0);
}

static void take_field(struct parser *p, const char *name, size_t name_len, const char *value,
                       size_t len)
{
    if (name_len == 4 && memcmp(name, "data", 4) == 0) {
        buf_append(&p->data, value, len);
        buf_append(&p->data, "\n", 1);
    } else if (name_len == 5 && memcmp(name, "event", 5) == 0) {
        set(&p->event, value, len);
    } else if (name_len == 2 && memcmp(name, "id", 2) == 0 && memchr(value, '\0', len) == NULL) {
        set(&p->id, value, len);
    } else if (name_len == 5 && memcmp(name, "retry", 5) == 0) {
        set(&p->retry, value, len);
    }
}

static void dispatch(struct parser *p)
{
    if (p->data.len != 0) {
        p->dispatched++;
        set(&p->last_data, p->data.bytes, p->data.len - 1);
        set(&p->last_event, p->event.bytes, p->event.len);
    }
    p->data.len = 0;
    p->event.len = 0;
}

static void take_line(struct parser *p)
{
    const char *line = p->line.bytes;
    size_t len = p->line.len;
    if (len == 0) {
        dispatch(p);
        return;
    }
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : len;
    size_t start = colon != NULL ? name_len + 1 : len;
    if (start < len && line[start] == ' ')
        start++;
    take_field(p, line, name_len, line + start, len - start);
    p->line.len = 0;
}

static void parse(struct parser *p, const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        char c = text->bytes[i];
        bool is_lf_of_crlf = c == '\n' && p->after_cr;
        p->after_cr = c == '\r';
        if (is_lf_of_crlf)
            continue;
        if (c == '\n' || c == '\r')
            take_line(p);
        else
            buf_append(&p->line, &c, 1);
    }
}

static void parser_fini(struct parser *p)
{
    struct buf *const bufs[] = {&p->line,      &p->data,       &p->event, &p->id,
                                &p->last_data, &p->last_event, &p->retry};
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        buf_fini(bufs[i]);
}

static struct message *message_of(const char *payload, size_t len, const char *event)
{
    struct message_parts parts = {.has_id = true,
                                  .id = {17, 3},
                                  .event = event,
                                  .event_len = strlen(event),
                                  .payload = payload,
                                  .payload_len = len};
    return message_new(&parts);
}

static struct buf encoded(const char *payload, size_t len, const char *event)
{
    struct buf out = {0};
    struct message *m = message_of(payload, len, event);
    sse_append_message(&out, m);
    message_unref(m);
    return out;
}

static void assert_encoded(const char *payload, const char *expected)
{
    struct buf out = encoded(payload, strlen(payload), "");
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.bytes, expected, out.len);
    buf_fini(&out);
}

static void writes_id_event_and_data(void **state)
{
    (void)state;
    struct buf out = encoded("a\nb", 3, "price");
    static const char expected[] = "id: 17-3\nevent: price\ndata: a\ndata: b\n\n";
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.bytes, expected, out.len);
    buf_fini(&out);
}

static void writes_no_id_for_a_message_without_one(void **state)
{
    (void)state;
    struct message_parts parts = {.payload = "x", .payload_len = 1};
    struct message *m = message_new(&parts);
    struct buf out = {0};
    sse_append_message(&out, m);
    assert_int_equal(out.len, 9);
    assert_memory_equal(out.bytes, "data: x\n\n", 9);
    message_unref(m);
    buf_fini(&out);
}

static void spells_every_line_end_the_same(void **state)
{
    (void)state;
    static const char expected[] = "id: 17-3\ndata: a\ndata: \ndata: b\ndata: \n\n";
    assert_encoded("a\n\nb\n", expected);
    assert_encoded("a\r\rb\r", expected);
    assert_encoded("a\r\n\r\nb\r\n", expected);
    assert_encoded("a\n\rb\r\n", expected);
    assert_encoded("", "id: 17-3\ndata: \n\n");
    assert_encoded("\r\n", "id: 17-3\ndata: \ndata: \n\n");
    assert_encoded("\n\r", "id: 17-3\ndata: \ndata: \ndata: \n\n");
}

static void payload_forges_neither_id_nor_event_nor_retry(void **state)
{
    (void)state;
    static const char *const payloads[] = {
        "x\rid: 999\revent: admin\rretry: 1\rdata: forged\r\r",
        "x\nid: 999\nevent: admin\nretry: 1\ndata: forged\n\n",
        "x\r\nid: 999\r\nevent: admin\r\nretry: 1\r\ndata: forged\r\n\r\n"};
    for (size_t i = 0; i < 3; i++) {
        struct buf out = encoded(payloads[i], strlen(payloads[i]), "");
        struct parser p = {0};
        parse(&p, &out);
        assert_int_equal(p.dispatched, 1);
        assert_true(is(&p.id, "17-3"));
        assert_true(is(&p.last_event, ""));
        assert_true(is(&p.retry, ""));
        assert_true(is(&p.last_data, payloads[1]));
        parser_fini(&p);
        buf_fini(&out);
    }
}

static struct buf normalised(const char *payload, size_t len)
{
    struct buf out = {0};
    for (size_t i = 0; i < len; i++) {
        if (payload[i] == '\n' && i > 0 && payload[i - 1] == '\r')
            continue;
        buf_append(&out, payload[i] == '\r' ? "\n" : payload + i, 1);
    }
    return out;
}

static void assert_comes_back(const char *payload, size_t len)
{
    struct buf out = encoded(payload, len, "e");
    assert_null(memchr(out.bytes, '\r', out.len));
    struct parser p = {0};
    parse(&p, &out);
    struct buf expected = normalised(payload, len);
    assert_int_equal(p.dispatched, 1);
    assert_int_equal(p.last_data.len, expected.len);
    if (expected.len != 0)
        assert_memory_equal(p.last_data.bytes, expected.bytes, expected.len);
    assert_true(is(&p.last_event, "e"));
    buf_fini(&expected);
    parser_fini(&p);
    buf_fini(&out);
}

static void any_payload_comes_back_with_its_line_ends_normalised(void **state)
{
    (void)state;
    static const char alphabet[] = {'\n', '\r', '\0', ' ', ':', 'd', 'a', 't', 'x', '\xEF'};
    uint32_t random = 12345;
    for (int round = 0; round < 20000; round++) {
        char payload[40];
        random = random * 1664525 + 1013904223;
        size_t len = (random >> 16) % sizeof(payload);
        for (size_t i = 0; i < len; i++) {
            random = random * 1664525 + 1013904223;
            payload[i] = alphabet[(random >> 16) % sizeof(alphabet)];
        }
        assert_comes_back(payload, len);
    }
    assert_comes_back("\xEF\xBB\xBF", 3);
    assert_comes_back(" leading blank", 14);
}

static void a_payload_of_line_ends_alone_stays_linear(void **state)
{
    (void)state;
    enum { LEN = 1 << 20 };
    char *payload = mem_alloc(LEN);
    for (const char *end = "\r\n"; *end != '\0'; end++) {
        memset(payload, *end, LEN);
        struct buf out = encoded(payload, LEN, "");
        assert_int_equal(out.len, 9 + 7 * ((size_t)LEN + 1) + 1);
        buf_fini(&out);
    }
    free(payload);
}

static void sets_the_position_without_an_event(void **state)
{
    (void)state;
    struct buf out = {0};
    struct id position = {5, 6};
    sse_append_retry(&out, 1234);
    sse_append_position(&out, &position);
    sse_append_comment(&out);
    static const char expected[] = "retry: 1234\n\nid: 5-6\n\n:\n\n";
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.bytes, expected, out.len);
    struct parser p = {0};
    parse(&p, &out);
    assert_int_equal(p.dispatched, 0);
    assert_true(is(&p.id, "5-6"));
    assert_true(is(&p.retry, "1234"));
    parser_fini(&p);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_id_event_and_data),
        cmocka_unit_test(writes_no_id_for_a_message_without_one),
        cmocka_unit_test(spells_every_line_end_the_same),
        cmocka_unit_test(payload_forges_neither_id_nor_event_nor_retry),
        cmocka_unit_test(any_payload_comes_back_with_its_line_ends_normalised),
        cmocka_unit_test(a_payload_of_line_ends_alone_stays_linear),
        cmocka_unit_test(sets_the_position_without_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

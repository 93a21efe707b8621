#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/message.h"
#include "gateway/transport/ws_codec.h"
#include "tests/unit/exact.h"

#include <stdlib.h>

enum { MAX_PAYLOAD = 1 << 17 };

static struct ws_frame frame;
static enum ws_close_code code;
static const char *why;

static enum ws_result parse(const char *bytes, size_t len, size_t max_payload)
{
    char *copy = exact(bytes, len);
    enum ws_result result = ws_parse(copy, len, max_payload, &frame, &code, &why);
    if (result != WS_FRAME && len != 0)
        assert_memory_equal(copy, bytes, len);
    free(copy);
    return result;
}

/* What a client sends: the server's frame with a mask put in. */
static struct buf masked(enum ws_opcode opcode, const char *payload, size_t len)
{
    static const char mask[4] = {0x12, (char)0xF0, 0x00, 0x7B};
    char header[WS_HEADER_MAX];
    size_t header_len = ws_header(header, opcode, len);
    header[1] = (char)(header[1] | 0x80);
    struct buf out = {0};
    buf_append(&out, header, header_len);
    buf_append(&out, mask, sizeof(mask));
    for (size_t i = 0; i < len; i++) {
        char c = (char)(payload[i] ^ mask[i % 4]);
        buf_append(&out, &c, 1);
    }
    return out;
}

static char *pattern(size_t len)
{
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

static void check_round_trip(size_t len)
{
    char *payload = pattern(len);
    struct buf sent = masked(WS_BINARY, payload, len);
    char *input = exact(sent.bytes, sent.len);
    assert_int_equal(ws_parse(input, sent.len, MAX_PAYLOAD, &frame, &code, &why), WS_FRAME);
    assert_int_equal(frame.opcode, WS_BINARY);
    assert_true(frame.fin);
    assert_int_equal(frame.len, len);
    assert_int_equal(frame.consumed, sent.len);
    if (len != 0)
        assert_memory_equal(frame.payload, payload, len);
    free(input);
    buf_fini(&sent);
    free(payload);
}

static void reads_back_every_form_of_length(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 3, 4, 7, 8, 9, 124, 125, 126, 127, 128, 65535, 65536};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        check_round_trip(lens[i]);
}

static void writes_the_shortest_form_of_length(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        size_t header_len;
        char header[WS_HEADER_MAX];
    } rows[] = {
        {0, 2, {(char)0x81, 0}},
        {125, 2, {(char)0x81, 125}},
        {126, 4, {(char)0x81, 126, 0, 126}},
        {65535, 4, {(char)0x81, 126, (char)0xFF, (char)0xFF}},
        {65536, 10, {(char)0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *payload = pattern(rows[i].len);
        struct buf out = {0};
        ws_append_frame(&out, WS_TEXT, payload, rows[i].len);
        assert_int_equal(out.len, rows[i].header_len + rows[i].len);
        assert_memory_equal(out.bytes, rows[i].header, rows[i].header_len);
        if (rows[i].len != 0)
            assert_memory_equal(out.bytes + rows[i].header_len, payload, rows[i].len);
        buf_fini(&out);
        free(payload);
    }
}

static void asks_for_more_at_every_prefix_and_changes_nothing(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 5, 126, 65536};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        char *payload = pattern(lens[i]);
        struct buf sent = masked(WS_TEXT, payload, lens[i]);
        size_t step = 1;
        for (size_t len = 0; len < sent.len; len += step) {
            assert_int_equal(parse(sent.bytes, len, MAX_PAYLOAD), WS_MORE);
            step = len > 200 && sent.len - len > 2500 ? 1999 : 1;
        }
        assert_int_equal(parse(sent.bytes, sent.len, MAX_PAYLOAD), WS_FRAME);
        buf_fini(&sent);
        free(payload);
    }
}

static void reads_fragments_and_the_ping_between_them_one_by_one(void **state)
{
    (void)state;
    static const char text[] = "\x01\x82\0\0\0\0he\x89\x80\0\0\0\0\x80\x83\0\0\0\0llo";
    char *input = exact(text, sizeof(text) - 1);
    char *p = input;
    size_t left = sizeof(text) - 1;
    static const enum ws_opcode opcodes[] = {WS_TEXT, WS_PING, WS_CONTINUATION};
    static const size_t lens[] = {2, 0, 3};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ws_parse(p, left, 64, &frame, &code, &why), WS_FRAME);
        assert_int_equal(frame.opcode, opcodes[i]);
        assert_int_equal(frame.len, lens[i]);
        assert_int_equal(frame.fin, i != 0);
        p += frame.consumed;
        left -= frame.consumed;
    }
    assert_int_equal(left, 0);
    free(input);
}

#define REFUSES(literal, expected)                                                                 \
    do {                                                                                           \
        code = WS_CLOSE_NONE;                                                                      \
        why = NULL;                                                                                \
        assert_int_equal(parse(literal, sizeof(literal) - 1, 4096), WS_BAD);                       \
        assert_int_equal(code, expected);                                                          \
        assert_non_null(why);                                                                      \
    } while (0)

static void refuses_bad_headers_before_their_payload(void **state)
{
    (void)state;
    REFUSES("\x81\x05", WS_CLOSE_PROTOCOL_ERROR); /* unmasked */
    REFUSES("\x88\x00", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\xC1", WS_CLOSE_PROTOCOL_ERROR); /* RSV1, as for compression */
    REFUSES("\xA1", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x91", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x09", WS_CLOSE_PROTOCOL_ERROR); /* control without FIN */
    REFUSES("\x08", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x0A", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x89\xFE", WS_CLOSE_PROTOCOL_ERROR); /* control over 125 */
    REFUSES("\x88\xFF", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x81\xFE\x00\x05", WS_CLOSE_PROTOCOL_ERROR); /* not minimal */
    REFUSES("\x81\xFE\x00\x7D", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x81\xFF\0\0\0\0\0\0\0\x64", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x81\xFF\0\0\0\0\0\0\xFF\xFF", WS_CLOSE_PROTOCOL_ERROR);
    REFUSES("\x81\xFF\x80\0\0\0\0\0\0\0", WS_CLOSE_PROTOCOL_ERROR); /* 2^63 */
    REFUSES("\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", WS_CLOSE_PROTOCOL_ERROR);
}

static void refuses_every_opcode_that_has_no_meaning(void **state)
{
    (void)state;
    for (unsigned opcode = 0; opcode < 16; opcode++) {
        char first = (char)(0x80 | opcode);
        bool is_known = opcode <= 2 || (opcode >= 8 && opcode <= 10);
        code = WS_CLOSE_NONE;
        assert_int_equal(parse(&first, 1, 64), is_known ? WS_MORE : WS_BAD);
        assert_int_equal(code, is_known ? WS_CLOSE_NONE : WS_CLOSE_PROTOCOL_ERROR);
    }
}

static void refuses_an_announced_length_over_the_limit_at_once(void **state)
{
    (void)state;
    REFUSES("\x81\xFE\x10\x01", WS_CLOSE_TOO_BIG);
    REFUSES("\x00\xFE\x10\x01", WS_CLOSE_TOO_BIG);
    REFUSES("\x82\xFF\0\0\0\0\x40\0\0\0", WS_CLOSE_TOO_BIG);
    REFUSES("\x82\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", WS_CLOSE_TOO_BIG);
    assert_int_equal(parse("\x81\xFE\x10\x00", 4, 4096), WS_MORE);
    assert_int_equal(parse("\x89\xFD", 2, 10), WS_MORE); /* control frames have their own limit */
    assert_int_equal(parse("\x81\x81", 2, 0), WS_BAD);
}

static enum ws_close_code check_close(const char *payload, size_t len)
{
    char *copy = exact(payload, len);
    enum ws_close_code answer = ws_check_close(copy, len);
    free(copy);
    return answer;
}

static void answers_each_close_code_as_the_registry_has_it(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 65536; n++) {
        char payload[2] = {(char)(n >> 8), (char)(n & 0xFF)};
        bool is_good =
            (n >= 1000 && n <= 1014 && (n < 1004 || n > 1006)) || (n >= 3000 && n <= 4999);
        assert_int_equal(ws_check_close(payload, 2), is_good ? n : WS_CLOSE_PROTOCOL_ERROR);
    }
    assert_int_equal(check_close("", 0), WS_CLOSE_NONE);
    assert_int_equal(check_close("\x03", 1), WS_CLOSE_PROTOCOL_ERROR);
    assert_int_equal(check_close("\x03\xE8ok\xC3\xA4", 6), WS_CLOSE_NORMAL);
    assert_int_equal(check_close("\x03\xE8\xC3", 3), WS_CLOSE_INVALID_DATA);
    assert_int_equal(check_close("\x03\xE8\xED\xA0\x80", 5), WS_CLOSE_INVALID_DATA);
}

static void writes_a_close_and_cuts_its_reason_between_characters(void **state)
{
    (void)state;
    struct buf out = {0};
    ws_append_close(&out, WS_CLOSE_RESTART, "bye");
    assert_int_equal(out.len, 7);
    assert_memory_equal(out.bytes,
                        "\x88\x05\x03\xF4"
                        "bye",
                        7);
    out.len = 0;
    ws_append_close(&out, WS_CLOSE_NONE, "unsaid");
    assert_int_equal(out.len, 2);
    assert_memory_equal(out.bytes, "\x88\x00", 2);
    char reason[200];
    for (size_t len = 0; len <= 130; len++) {
        memset(reason, 'x', len);
        memcpy(reason + len, "\xF0\x9F\x8C\x8A", 5);
        out.len = 0;
        ws_append_close(&out, WS_CLOSE_POLICY, reason);
        size_t expected = len > 123 ? 123 : len + 4 > 123 ? len : len + 4;
        assert_int_equal(out.len, 4 + expected);
        assert_int_equal(out.bytes[1], 2 + expected);
        assert_memory_equal(out.bytes + 4, reason, expected);
    }
    buf_fini(&out);
}

static void accepts_the_key_of_the_standard(void **state)
{
    (void)state;
    char accept[WS_ACCEPT_LEN + 1];
    char *key = exact("dGhlIHNhbXBsZSBub25jZQ==", 24);
    assert_true(ws_key_is_valid(key, 24));
    ws_accept(accept, key, 24);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    free(key);
}

static void refuses_a_key_that_is_not_sixteen_bytes(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "dGhlIHNhbXBsZSBub25jZQ=",
                                      "dGhlIHNhbXBsZSBub25jZQ===",
                                      "dGhlIHNhbXBsZSBub25jZQAA",
                                      "dGhlIHNhbXBsZSBub25jZQA=",
                                      "dGhlIHNhbXBsZSBub25j Q==",
                                      "dGhlIHNhbXBsZSBub2=jZQ==",
                                      "dGhlIHNhbXBsZSBub25-_Q==",
                                      "dGhlIHNhbXBsZSBub25jZQ= "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *key = exact(bad[i], strlen(bad[i]));
        assert_false(ws_key_is_valid(key, strlen(bad[i])));
        free(key);
    }
}

static void assert_envelope(const struct message_parts *parts, bool data_is_json,
                            const char *expected)
{
    struct message *m = message_new(parts);
    struct buf out = {0};
    ws_append_envelope(&out, "a:b", 3, m, data_is_json);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.bytes, expected, out.len);
    buf_fini(&out);
    message_unref(m);
}

static void wraps_a_message_in_json(void **state)
{
    (void)state;
    struct message_parts parts = {.payload = "{ \"x\":1 }", .payload_len = 9};
    assert_envelope(&parts, true, "{\"channel\":\"a:b\",\"data\":{ \"x\":1 }}");
    assert_envelope(&parts, false, "{\"channel\":\"a:b\",\"data\":\"{ \\\"x\\\":1 }\"}");
    parts = (struct message_parts){.has_id = true,
                                   .id = {1, 0},
                                   .event = "x",
                                   .event_len = 1,
                                   .payload = "a\n\0\xC3\xA4",
                                   .payload_len = 5};
    assert_envelope(&parts, false,
                    "{\"channel\":\"a:b\",\"id\":\"1-0\",\"event\":\"x\","
                    "\"data\":\"a\\n\\u0000\xC3\xA4\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_every_form_of_length),
        cmocka_unit_test(writes_the_shortest_form_of_length),
        cmocka_unit_test(asks_for_more_at_every_prefix_and_changes_nothing),
        cmocka_unit_test(reads_fragments_and_the_ping_between_them_one_by_one),
        cmocka_unit_test(refuses_bad_headers_before_their_payload),
        cmocka_unit_test(refuses_every_opcode_that_has_no_meaning),
        cmocka_unit_test(refuses_an_announced_length_over_the_limit_at_once),
        cmocka_unit_test(answers_each_close_code_as_the_registry_has_it),
        cmocka_unit_test(writes_a_close_and_cuts_its_reason_between_characters),
        cmocka_unit_test(accepts_the_key_of_the_standard),
        cmocka_unit_test(refuses_a_key_that_is_not_sixteen_bytes),
        cmocka_unit_test(wraps_a_message_in_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

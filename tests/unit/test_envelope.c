#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/envelope.h"
#include "tests/unit/exact.h"

#include <stdio.h>
#include <stdlib.h>

#define OPEN(literal) open_bytes(literal, sizeof(literal) - 1, 64)

/* Only the counts and flags of the parts may be looked at afterwards. */
static struct message_parts parts;

static enum envelope_result open_bytes(const char *bytes, size_t len, size_t max_payload)
{
    char *copy = exact(bytes, len);
    enum envelope_result result = envelope_open(&parts, copy, len, max_payload);
    free(copy);
    return result;
}

static void opens_plain_text_as_it_stands(void **state)
{
    (void)state;
    static const char text[] = "hello\r\n\0 id=1-1\nx";
    assert_int_equal(envelope_open(&parts, text, sizeof(text) - 1, 64), ENVELOPE_OK);
    assert_ptr_equal(parts.payload, text);
    assert_int_equal(parts.payload_len, sizeof(text) - 1);
    assert_false(parts.has_id);
    assert_false(parts.sequenced);
    assert_int_equal(parts.event_len + parts.key_len, 0);
    assert_int_equal(OPEN(""), ENVELOPE_OK);
    assert_int_equal(parts.payload_len, 0);
}

static void opens_an_envelope_with_every_field(void **state)
{
    (void)state;
    static const char text[] = "\0001 id=17-3 prev=16-0 event=price key=a/b seq=1\npay\0load";
    assert_int_equal(envelope_open(&parts, text, sizeof(text) - 1, 64), ENVELOPE_OK);
    assert_true(parts.has_id);
    assert_true(parts.sequenced);
    assert_int_equal(parts.id.ms, 17);
    assert_int_equal(parts.id.seq, 3);
    assert_int_equal(parts.prev.ms, 16);
    assert_int_equal(parts.event_len, 5);
    assert_memory_equal(parts.event, "price", 5);
    assert_int_equal(parts.key_len, 3);
    assert_memory_equal(parts.key, "a/b", 3);
    assert_int_equal(parts.payload_len, 8);
    assert_memory_equal(parts.payload, "pay\0load", 8);
}

static void takes_fields_in_any_order_and_ignores_unknown_ones(void **state)
{
    (void)state;
    assert_int_equal(OPEN("\0001 key=k x_9=a=b new= id=1-0\n"), ENVELOPE_OK);
    assert_int_equal(parts.key_len, 1);
    assert_int_equal(parts.payload_len, 0);
    assert_int_equal(OPEN("\0001 id=1-0\n\0x"), ENVELOPE_OK);
}

static void is_malformed_at_every_prefix_of_its_header(void **state)
{
    (void)state;
    static const char text[] = "\0001 id=17-3 prev=16-0 event=e key=k seq=1\nx";
    size_t header_len = sizeof(text) - 2;
    for (size_t len = 1; len < header_len; len++)
        assert_int_equal(open_bytes(text, len, 64), ENVELOPE_MALFORMED);
    assert_int_equal(open_bytes(text, header_len, 64), ENVELOPE_OK);
}

static void refuses_a_forged_or_broken_header(void **state)
{
    (void)state;
    assert_int_equal(OPEN("\0001\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 event=e\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\00011 id=1-0\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001  id=1-0\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 \nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 id=1-0\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 seq=1 seq=1\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 seq=2\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 seq=\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=01-0\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 prev=x\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 event=\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 event=a\rdata:p\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 event=tidecast.gap\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 key=$\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 x=\0\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 X=1\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 9x=1\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 x-y=1\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 =1\nx"), ENVELOPE_MALFORMED);
    assert_int_equal(OPEN("\0001 id=1-0 x\nx"), ENVELOPE_MALFORMED);
}

static void leaves_newer_versions_to_newer_programs(void **state)
{
    (void)state;
    assert_int_equal(OPEN("\0002 id=1-0\nx"), ENVELOPE_UNKNOWN_VERSION);
    assert_int_equal(OPEN("\0000"), ENVELOPE_UNKNOWN_VERSION);
    assert_int_equal(OPEN("\0\0"), ENVELOPE_UNKNOWN_VERSION);
}

static void counts_the_payload_and_not_the_header(void **state)
{
    (void)state;
    assert_int_equal(open_bytes("12345678", 8, 8), ENVELOPE_OK);
    assert_int_equal(open_bytes("123456789", 9, 8), ENVELOPE_TOO_BIG);
    assert_int_equal(open_bytes("\0001 id=1-0\n12345678", 18, 8), ENVELOPE_OK);
    assert_int_equal(open_bytes("\0001 id=1-0\n123456789", 19, 8), ENVELOPE_TOO_BIG);
}

static void refuses_a_payload_that_is_not_utf8_in_both_spellings(void **state)
{
    (void)state;
    assert_int_equal(OPEN("a\xFF"), ENVELOPE_NOT_UTF8);
    assert_int_equal(OPEN("a\xC3"), ENVELOPE_NOT_UTF8);
    assert_int_equal(OPEN("\0001 id=1-0\n\xC3"), ENVELOPE_NOT_UTF8);
}

static enum envelope_result open_header_of(size_t header_len)
{
    char *bytes = mem_alloc(header_len + 1);
    memset(bytes, 'x', header_len + 1);
    static const char start[16] = "\0001 id=1-0 pad=x";
    memcpy(bytes, start, sizeof(start) - 1);
    bytes[header_len - 1] = '\n';
    enum envelope_result result = open_bytes(bytes, header_len + 1, 64);
    free(bytes);
    return result;
}

static void bounds_the_header(void **state)
{
    (void)state;
    assert_int_equal(open_header_of(1024), ENVELOPE_OK);
    assert_int_equal(open_header_of(1025), ENVELOPE_MALFORMED);
}

static void names_each_result(void **state)
{
    (void)state;
    assert_string_equal(envelope_result_name(ENVELOPE_OK), "ok");
    assert_string_equal(envelope_result_name(ENVELOPE_UNKNOWN_VERSION), "unknown_version");
    assert_string_equal(envelope_result_name(ENVELOPE_MALFORMED), "malformed");
    assert_string_equal(envelope_result_name(ENVELOPE_NOT_UTF8), "not_utf8");
    assert_string_equal(envelope_result_name(ENVELOPE_TOO_BIG), "too_big");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_plain_text_as_it_stands),
        cmocka_unit_test(opens_an_envelope_with_every_field),
        cmocka_unit_test(takes_fields_in_any_order_and_ignores_unknown_ones),
        cmocka_unit_test(is_malformed_at_every_prefix_of_its_header),
        cmocka_unit_test(refuses_a_forged_or_broken_header),
        cmocka_unit_test(leaves_newer_versions_to_newer_programs),
        cmocka_unit_test(counts_the_payload_and_not_the_header),
        cmocka_unit_test(refuses_a_payload_that_is_not_utf8_in_both_spellings),
        cmocka_unit_test(bounds_the_header),
        cmocka_unit_test(names_each_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

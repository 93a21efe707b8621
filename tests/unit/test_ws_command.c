#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/transport/ws_command.h"
#include "tests/unit/exact.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 3 };

static struct ws_command command;

static enum ws_command_error parse_bytes(const char *text, size_t len)
{
    char *copy = exact(text, len);
    enum ws_command_error error = ws_command_parse(&command, copy, len, MAX_CHANNELS);
    free(copy);
    return error;
}

static enum ws_command_error parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void assert_refused(const char *text, enum ws_command_error expected)
{
    assert_string_equal(ws_command_error_name(parse(text)), ws_command_error_name(expected));
    assert_null(command.channels);
    assert_null(command.data);
    ws_command_fini(&command);
}

static void reads_subscribe_with_since_and_req(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"subscribe\":[\"a\",\"b:c\"],\"since\":\"1-0\",\"req\":7}"),
                     WS_COMMAND_OK);
    assert_int_equal(command.verb, WS_VERB_SUBSCRIBE);
    assert_true(command.has_req);
    assert_int_equal(command.req, 7);
    assert_int_equal(command.channel_count, 2);
    assert_string_equal(command.channels[0].bytes, "a");
    assert_string_equal(command.channels[1].bytes, "b:c");
    assert_int_equal(command.channels[1].len, 3);
    assert_string_equal(command.since, "1-0");
    ws_command_fini(&command);
}

static void reads_unsubscribe_and_ping(void **state)
{
    (void)state;
    assert_int_equal(parse(" {\"unsubscribe\":[\"a\"]} "), WS_COMMAND_OK);
    assert_int_equal(command.verb, WS_VERB_UNSUBSCRIBE);
    assert_false(command.has_req);
    ws_command_fini(&command);
    static const char *const pings[] = {"{\"ping\":1}", "{\"ping\":null}", "{\"ping\":{\"a\":[]}}"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parse(pings[i]), WS_COMMAND_OK);
        assert_int_equal(command.verb, WS_VERB_PING);
        ws_command_fini(&command);
    }
}

static void folds_a_channel_that_is_named_twice(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"subscribe\":[\"a\",\"b\",\"a\",\"b\",\"\\u0061\",\"c\"]}"),
                     WS_COMMAND_OK);
    assert_int_equal(command.channel_count, 3);
    assert_string_equal(command.channels[2].bytes, "c");
    ws_command_fini(&command);
}

static void bounds_the_channels_of_a_command(void **state)
{
    (void)state;
    assert_refused("{\"subscribe\":[\"a\",\"b\",\"c\",\"d\"]}", WS_COMMAND_TOO_MANY_CHANNELS);
    assert_refused("{\"unsubscribe\":[\"a\",\"b\",\"c\",\"d\"]}", WS_COMMAND_TOO_MANY_CHANNELS);
}

static void assert_data(const char *data, const char *expected)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "{\"publish\":{\"channel\":\"a\",\"data\": %s }}", data);
    assert_int_equal(parse(text), WS_COMMAND_OK);
    assert_int_equal(command.data_len, strlen(expected));
    assert_string_equal(command.data, expected);
    ws_command_fini(&command);
}

static void publishes_a_strings_characters_and_any_other_values_bytes(void **state)
{
    (void)state;
    assert_data("\"he\\u00e4\\n\\\"\"", "he\xC3\xA4\n\"");
    assert_data("\"\"", "");
    assert_data("{ \"a\" : [1.50, \"}\"] }", "{ \"a\" : [1.50, \"}\"] }");
    assert_data("[]", "[]");
    assert_data("1.0e5", "1.0e5");
    assert_data("null", "null");
    assert_data("340282366920938463463374607431768211456",
                "340282366920938463463374607431768211456");
}

static void is_not_misled_by_a_lookalike_of_data(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\"req\":-5,\"publ\\u0069sh\":{\"event\":\"data\",\"key\":\"publish\","
              "\"idempotency_key\":\"i\",\"ch\\u0061nnel\":\"c\",\"d\\u0061ta\":[2]}}"),
        WS_COMMAND_OK);
    assert_int_equal(command.req, -5);
    assert_string_equal(command.channel.bytes, "c");
    assert_string_equal(command.data, "[2]");
    assert_string_equal(command.event, "data");
    assert_string_equal(command.key, "publish");
    assert_string_equal(command.idempotency_key, "i");
    ws_command_fini(&command);
}

static void is_not_json_at_every_prefix(void **state)
{
    (void)state;
    static const char text[] =
        "{\"publish\":{\"channel\":\"a\",\"data\":{\"x\":[\"\\u0041\",-1.5e3,true]}},\"req\":12}";
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        assert_int_equal(parse_bytes(text, len), WS_COMMAND_NOT_JSON);
        ws_command_fini(&command);
    }
    assert_int_equal(parse_bytes(text, sizeof(text) - 1), WS_COMMAND_OK);
    ws_command_fini(&command);
}

static void refuses_what_is_not_json(void **state)
{
    (void)state;
    assert_refused("hello", WS_COMMAND_NOT_JSON);
    assert_refused("{\"ping\":1}{\"ping\":1}", WS_COMMAND_NOT_JSON);
    assert_refused("{\"ping\":1,\"ping\":1}", WS_COMMAND_NOT_JSON);
    assert_refused("{\"ping\":1,\"p\\u0069ng\":1}", WS_COMMAND_NOT_JSON);
    assert_refused("{\"subscribe\":[\"a\\u0000b\"]}", WS_COMMAND_NOT_JSON);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":\"\\u0000\"}}", WS_COMMAND_NOT_JSON);
    assert_refused("{\"ping\\u0000\":1}", WS_COMMAND_NOT_JSON);
    assert_int_equal(parse_bytes("{\"ping\":1}\0", 11), WS_COMMAND_NOT_JSON);
    assert_int_equal(parse_bytes("{\"ping\":\"\0\"}", 12), WS_COMMAND_NOT_JSON);
    assert_int_equal(parse_bytes("{\"ping\":0\0}", 11), WS_COMMAND_NOT_JSON);
    assert_int_equal(parse_bytes("{\"ping\":true\0}", 14), WS_COMMAND_NOT_JSON);
}

static enum ws_command_error parse_nested(size_t depth)
{
    char text[256];
    size_t brackets = depth - 1;
    (void)snprintf(text, sizeof(text), "{\"ping\":");
    memset(text + 8, '[', brackets);
    memset(text + 8 + brackets, ']', brackets);
    text[8 + 2 * brackets] = '}';
    enum ws_command_error error = parse_bytes(text, 9 + 2 * brackets);
    ws_command_fini(&command);
    return error;
}

static void refuses_more_than_thirty_two_levels(void **state)
{
    (void)state;
    assert_int_equal(parse_nested(32), WS_COMMAND_OK);
    assert_int_equal(parse_nested(33), WS_COMMAND_NOT_JSON);
    assert_refused("{\"ping\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\",\"x\":1}",
                   WS_COMMAND_UNKNOWN_MEMBER);
}

static void refuses_other_shapes_with_a_code_for_each(void **state)
{
    (void)state;
    assert_refused("[1]", WS_COMMAND_NOT_AN_OBJECT);
    assert_refused("\"ping\"", WS_COMMAND_NOT_AN_OBJECT);
    assert_refused("{}", WS_COMMAND_NO_VERB);
    assert_refused("{\"since\":\"1-0\"}", WS_COMMAND_NO_VERB);
    assert_refused("{\"ping\":1,\"subscribe\":[\"a\"]}", WS_COMMAND_NO_VERB);
    assert_refused("{\"subscibe\":[\"a\"]}", WS_COMMAND_UNKNOWN_MEMBER);
    assert_refused("{\"ping\":1,\"x\":1}", WS_COMMAND_UNKNOWN_MEMBER);
    assert_refused("{\"ping\":1,\"since\":\"1-0\"}", WS_COMMAND_UNKNOWN_MEMBER);
    assert_refused("{\"subscribe\":\"a\"}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"subscribe\":[1]}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"subscribe\":[\"a\",null]}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"subscribe\":[\"a\"],\"since\":1}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"subscribe\":[]}", WS_COMMAND_BAD_CHANNEL);
    assert_refused("{\"subscribe\":[\"\"]}", WS_COMMAND_BAD_CHANNEL);
    assert_refused("{\"subscribe\":[\"a\",\"$x\"]}", WS_COMMAND_BAD_CHANNEL);
}

static void refuses_publish_with_a_member_missing_or_wrong(void **state)
{
    (void)state;
    assert_refused("{\"publish\":1}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"publish\":{\"data\":1}}", WS_COMMAND_BAD_CHANNEL);
    assert_refused("{\"publish\":{\"channel\":\"a\"}}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"publish\":{\"channel\":1,\"data\":1}}", WS_COMMAND_WRONG_TYPE);
    assert_refused("{\"publish\":{\"channel\":\"a b\",\"data\":1}}", WS_COMMAND_BAD_CHANNEL);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"id\":1}}",
                   WS_COMMAND_UNKNOWN_MEMBER);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"event\":\"a\\nid: 1\"}}",
                   WS_COMMAND_BAD_NAME);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"event\":\"tidecast.gap\"}}",
                   WS_COMMAND_BAD_NAME);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"key\":\"\"}}",
                   WS_COMMAND_BAD_NAME);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"idempotency_key\":\" \"}}",
                   WS_COMMAND_BAD_NAME);
    assert_refused("{\"publish\":{\"channel\":\"a\",\"data\":1,\"event\":null}}",
                   WS_COMMAND_WRONG_TYPE);
}

static void bounds_since_and_takes_an_empty_one_for_none(void **state)
{
    (void)state;
    char text[256];
    (void)snprintf(text, sizeof(text), "{\"subscribe\":[\"a\"],\"since\":\"%0128d\"}", 1);
    assert_int_equal(parse(text), WS_COMMAND_OK);
    assert_int_equal(strlen(command.since), 128);
    ws_command_fini(&command);
    (void)snprintf(text, sizeof(text), "{\"subscribe\":[\"a\"],\"since\":\"%0129d\"}", 1);
    assert_refused(text, WS_COMMAND_BAD_NAME);
    assert_int_equal(parse("{\"subscribe\":[\"a\"],\"since\":\"\"}"), WS_COMMAND_OK);
    assert_null(command.since);
    ws_command_fini(&command);
}

static void takes_only_integers_for_req(void **state)
{
    (void)state;
    static const char *const bad[] = {"1.5",
                                      "1.0",
                                      "1e2",
                                      "\"1\"",
                                      "null",
                                      "[1]",
                                      "true",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "100000000000000000000000000000"};
    char text[128];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(text, sizeof(text), "{\"ping\":1,\"req\":%s}", bad[i]);
        assert_refused(text, WS_COMMAND_WRONG_TYPE);
        assert_false(command.has_req);
    }
    assert_int_equal(parse("{\"ping\":1,\"req\":9223372036854775807}"), WS_COMMAND_OK);
    assert_true(command.req == INT64_MAX);
    assert_int_equal(parse("{\"ping\":1,\"req\": -9223372036854775808 }"), WS_COMMAND_OK);
    assert_true(command.req == INT64_MIN);
}

static void keeps_req_of_a_refused_command(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"subscribe\":[\"a\",\"b\",\"\"],\"since\":\"1-0\",\"req\":3}"),
                     WS_COMMAND_BAD_CHANNEL);
    assert_true(command.has_req);
    assert_int_equal(command.req, 3);
    assert_int_equal(command.channel_count, 0);
    assert_null(command.channels);
    assert_null(command.since);
    ws_command_fini(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_subscribe_with_since_and_req),
        cmocka_unit_test(reads_unsubscribe_and_ping),
        cmocka_unit_test(folds_a_channel_that_is_named_twice),
        cmocka_unit_test(bounds_the_channels_of_a_command),
        cmocka_unit_test(publishes_a_strings_characters_and_any_other_values_bytes),
        cmocka_unit_test(is_not_misled_by_a_lookalike_of_data),
        cmocka_unit_test(is_not_json_at_every_prefix),
        cmocka_unit_test(refuses_what_is_not_json),
        cmocka_unit_test(refuses_more_than_thirty_two_levels),
        cmocka_unit_test(refuses_other_shapes_with_a_code_for_each),
        cmocka_unit_test(refuses_publish_with_a_member_missing_or_wrong),
        cmocka_unit_test(bounds_since_and_takes_an_empty_one_for_none),
        cmocka_unit_test(takes_only_integers_for_req),
        cmocka_unit_test(keeps_req_of_a_refused_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

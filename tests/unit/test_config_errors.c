#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/config.h"

#include <stdlib.h>
#include <string.h>

#define NAMESPACE_KEYS "publish, content, overflow, max_payload, history, ring"
#define ROOT_KEYS      "log, gateway, admin, redis, broker, namespaces"

struct fault {
    const char *text;
    const char *said; /* the whole error, or its beginning if it ends in "..." */
};

static void assert_said(const struct config_error *error, const char *said)
{
    size_t len = strlen(said);
    if (len > 3 && strcmp(said + len - 3, "...") == 0 && strncmp(error->text, said, len - 3) == 0)
        return;
    assert_string_equal(error->text, said);
}

static int load(const char *text, size_t len, struct config_error *error)
{
    struct config *c = config_new();
    char *copy = malloc(len + (len == 0));
    memcpy(copy, text, len);
    int result = config_load_text(c, copy, len, "c.yaml", error);
    free(copy);
    config_free(c);
    return result;
}

static void check_faults(const struct fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct config_error error = {{0}};
        if (load(faults[i].text, strlen(faults[i].text), &error) == 0)
            fail_msg("was taken: %s", faults[i].text);
        assert_said(&error, faults[i].said);
    }
}

#define CHECK_FAULTS(faults) check_faults((faults), sizeof(faults) / sizeof((faults)[0]))

static void a_wrong_value_is_told_with_file_line_key_and_what_is_allowed(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"# one\ngateway:\n  workers: many\n",
         "c.yaml:3: gateway.workers: \"many\" is not a whole number; allowed: 0 to 256"},
        {"gateway: {workers: 257}",
         "c.yaml:1: gateway.workers: \"257\" is out of range; allowed: 0 to 256"},
        {"gateway: {heartbeat: 15}",
         "c.yaml:1: gateway.heartbeat: \"15\" has no unit, as 500ms, 15s, 10m, 2h or 1d; allowed: "
         "1s to 1h"},
        {"gateway: {send_buffer: 64KB}",
         "c.yaml:1: gateway.send_buffer: \"64KB\" is not a size, as 265, 64KiB or 1MiB; allowed: "
         "4KiB to 4MiB"},
        {"log: {level: loud}", "c.yaml:1: log.level: \"loud\" is not one of its values; allowed: "
                               "error, warn, info, debug"},
        {"gateway: {listen: '8000'}", "c.yaml:1: gateway.listen: \"8000\" can't be used; allowed: "
                                      "host:port or [v6]:port"},
        {"gateway: {workers: [1]}",
         "c.yaml:1: gateway.workers: is a list, not a single value; allowed: 0 to 256"},
        {"gateway: {workers: {a: 1}}",
         "c.yaml:1: gateway.workers: is a map, not a single value; allowed: 0 to 256"},
        {"gateway: {workers: ~}",
         "c.yaml:1: gateway.workers: null is not a value; write \"\" for empty text"},
        {"redis: {user: null}",
         "c.yaml:1: redis.user: null is not a value; write \"\" for empty text"},
        {"gateway: {workers: }",
         "c.yaml:1: gateway.workers: \"\" is not a whole number; allowed: 0 to 256"},
        {"log: {level: \"a\\nb\"}", "c.yaml:1: log.level: \"a?b\" is not one of its values..."},
    };
    CHECK_FAULTS(faults);
}

static void what_this_version_lacks_is_refused_by_name(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"namespaces:\n  chat:\n    publish: token\n",
         "c.yaml:3: namespaces.chat.publish: \"token\" is not available in this version; allowed: "
         "off, anyone"},
        {"namespaces: {default: {overflow: drop_oldest}}",
         "c.yaml:1: namespaces.default.overflow: \"drop_oldest\" is not available in this version; "
         "allowed: disconnect"},
        {"namespaces: {default: {overflow: latest}}",
         "c.yaml:1: namespaces.default.overflow: \"latest\" is not available in this version; "
         "allowed: disconnect"},
    };
    CHECK_FAULTS(faults);
}

static void an_unknown_key_is_told_with_those_that_are_known(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"gatway: {}", "c.yaml:1: gatway: unknown key; allowed: " ROOT_KEYS},
        {"gateway.workers: 1", "c.yaml:1: gateway.workers: unknown key; allowed: " ROOT_KEYS},
        {"\"\": 1", "c.yaml:1: unknown key; allowed: " ROOT_KEYS},
        {"log:\n  level: info\n  colour: red\n",
         "c.yaml:3: log.colour: unknown key; allowed: level"},
        {"gateway: {worker: 1}",
         "c.yaml:1: gateway.worker: unknown key; allowed: listen, workers, "
         "backplane, max_connections, send_buffer, heartbeat, retry_min, "
         "retry_max, user_timeout, request_timeout, channels_per_request, "
         "channels_per_connection, ring_total, unsubscribe_linger, "
         "lingering_channels, max_pending_publishes, publish_timeout, shutdown_timeout"},
        {"namespaces: {chat: {histroy: {}}}",
         "c.yaml:1: namespaces.chat.histroy: unknown key; allowed: " NAMESPACE_KEYS},
        {"namespaces:\n  chat:\n    history: {wait_replicas: 1}",
         "c.yaml:3: namespaces.chat.history.wait_replicas: is not available in this version"},
        {"namespaces: {chat: {max_rate: 1}}",
         "c.yaml:1: namespaces.chat.max_rate: is not available in this version"},
        {"namespaces: {chat: {history: {age: 1s}}}",
         "c.yaml:1: namespaces.chat.history.age: unknown key; allowed: messages, ttl"},
        {"namespaces: {Chat: {}}",
         "c.yaml:1: namespaces.Chat: unknown key; allowed: names of 1 to 32 of a-z 0-9 _ -"},
        {"namespaces: {aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {}}",
         "c.yaml:1: namespaces.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: unknown key; ..."},
        {"broker: {ticks: [{channel: a, rate: 1, hz: 1}]}",
         "c.yaml:1: broker.ticks[0].hz: unknown key; allowed: channel, rate, payload, content"},
    };
    CHECK_FAULTS(faults);
}

static void a_key_given_twice_is_an_error(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"gateway:\n  workers: 1\n  workers: 1\n",
         "c.yaml:3: gateway.workers: given twice; it stands in line 2 already"},
        {"log: {}\nlog: {}\n", "c.yaml:2: log: given twice; it stands in line 1 already"},
        {"namespaces: {a: {}, a: {}}",
         "c.yaml:1: namespaces.a: given twice; it stands in line 1 already"},
        {"broker: {ticks: [{channel: a, rate: 1, \"rate\": 1}]}",
         "c.yaml:1: broker.ticks[0].rate: given twice; it stands in line 1 already"},
    };
    CHECK_FAULTS(faults);
}

static void only_a_plain_subset_of_yaml_is_taken(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"log: &a {level: info}", "c.yaml:1: anchors and aliases are not allowed; ..."},
        {"log: {level: &a info}", "c.yaml:1: anchors and aliases are not allowed; ..."},
        {"a: &a [*a]", "c.yaml:1: anchors and aliases are not allowed; ..."},
        {"log: {}\nadmin: *x\n", "c.yaml:2: anchors and aliases are not allowed; ..."},
        {"log: {level: !!str info}", "c.yaml:1: tags are not allowed; ..."},
        {"log: ! {}", "c.yaml:1: tags are not allowed; ..."},
        {"<<: {log: {}}", "c.yaml:1: merge keys (<<) are not allowed; ..."},
        {"--- {}\n--- {}\n", "c.yaml:2: a second document is not allowed"},
        {"log: {}\n---\n", "c.yaml:2: a second document is not allowed"},
        {"- a", "c.yaml:1: is a list, not a map of keys; allowed: " ROOT_KEYS},
        {"hello", "c.yaml:1: is a single value, not a map of keys; allowed: " ROOT_KEYS},
        {"gateway: 5", "c.yaml:1: gateway: is a single value, not a map of keys; ..."},
        {"gateway: ''", "c.yaml:1: gateway: is a single value, not a map of keys; ..."},
        {"broker: {ticks: {}}", "c.yaml:1: broker.ticks: is a map, not a list; allowed: a list of "
                                "{channel, rate, payload, content}"},
        {"broker: {ticks: 5}", "c.yaml:1: broker.ticks: is a single value, not a list; ..."},
        {"redis: {user: \"a\\0b\"}", "c.yaml:1: a NUL character is not allowed"},
        {"\"a\\0b\": 1", "c.yaml:1: a NUL character is not allowed"},
        {"? [a]\n: 1\n", "c.yaml:1: a key must be a single word"},
        {"a: [[[[[[[[1]]]]]]]]", "c.yaml:1: nested deeper than 8"},
        {"a:\n\tb: 1\n", "c.yaml:2: found character that cannot start any token"},
        {"log: {}\na: \x01\n", "c.yaml:2: control characters are not allowed"},
        {"log: {}\na: \xff\n", "c.yaml:2: invalid leading UTF-8 octet"},
        {"log: {level: info\n", "c.yaml:2: did not find expected ',' or '}'"},
    };
    CHECK_FAULTS(faults);
}

static void a_tick_that_can_not_tick_is_an_error(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"broker: {ticks: [{rate: 1}]}", "c.yaml:1: broker.ticks[0]: channel is missing"},
        {"broker:\n  ticks:\n    - {channel: a, rate: 1}\n    - {channel: a}\n",
         "c.yaml:4: broker.ticks[1]: rate is missing"},
        {"broker: {ticks: [{channel: a, rate: 0}]}",
         "c.yaml:1: broker.ticks[0].rate: \"0\" is out of range; allowed: 0.001 to 100000"},
        {"broker: {ticks: [a]}", "c.yaml:1: broker.ticks[0]: is a single value, not a map..."},
        {"broker: {ticks: [ ~, ]}", "c.yaml:1: broker.ticks[0]: is a single value, not a map..."},
        {"broker:\n  ticks:\n  -\n", "c.yaml:3: broker.ticks[0]: channel is missing"},
        {"broker: {ticks: [{channel: a b, rate: 1}]}",
         "c.yaml:1: broker.ticks[0].channel: \"a b\" can't be used; ..."},
    };
    CHECK_FAULTS(faults);
}

static void an_error_about_a_secret_does_not_tell_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "redis: {password: \"hunter2\\nx\"}", "redis: {password: [hunter2]}",    "redis: hunter2",
        "redis:\n  password:hunter2\n",       "redis: {password: {hunter2: a}}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct config_error error = {{0}};
        assert_int_equal(load(texts[i], strlen(texts[i]), &error), -1);
        assert_null(strstr(error.text, "hunter2"));
    }
}

static void a_namespace_too_many_is_an_error(void **state)
{
    (void)state;
    char text[8192] = "namespaces:\n";
    size_t len = strlen(text);
    struct config_error error = {{0}};
    for (int i = 0; i < 255; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "  n%d:\n", i);
    assert_int_equal(load(text, len, &error), 0);
    len += (size_t)snprintf(text + len, sizeof(text) - len, "  last:\n");
    assert_int_equal(load(text, len, &error), -1);
    assert_said(&error, "c.yaml:257: namespaces.last: one namespace too many; allowed: 256");
}

static void the_other_sources_name_themselves(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        const char *said;
    } variables[] = {
        {"TIDECAST_GATEWAY_WORKERS=x",
         "TIDECAST_GATEWAY_WORKERS: gateway.workers: \"x\" is not..."},
        {"TIDECAST_GATEWAY_WORKER=hunter2", "TIDECAST_GATEWAY_WORKER: unknown variable; allowed: "
                                            "TIDECAST_CONFIG, and keys spelled like "
                                            "TIDECAST_GATEWAY_LISTEN or "
                                            "TIDECAST_NAMESPACES_CHAT_HISTORY_TTL"},
        {"TIDECAST_=1", "TIDECAST_: unknown variable; ..."},
        {"TIDECAST_gateway_listen=1", "TIDECAST_gateway_listen: unknown variable; ..."},
        {"TIDECAST_NAMESPACES__PUBLISH=off", "TIDECAST_NAMESPACES__PUBLISH: unknown variable; ..."},
        {"TIDECAST_NAMESPACES_PUBLISH=off", "TIDECAST_NAMESPACES_PUBLISH: unknown variable; ..."},
        {"TIDECAST_NAMESPACES_A_RING=off", "TIDECAST_NAMESPACES_A_RING: unknown variable; ..."},
        {"TIDECAST_BROKER_TICKS=[{}]", "TIDECAST_BROKER_TICKS:1: broker.ticks[0]: channel is ..."},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        struct config_error error = {{0}};
        struct config *c = config_new();
        char *const environment[] = {(char *)variables[i].variable, NULL};
        assert_int_equal(config_load_environment(c, environment, &error), -1);
        assert_said(&error, variables[i].said);
        config_free(c);
    }
}

static void a_bad_assignment_is_an_error(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"hunter2", "--set: needs a key and a value; allowed: key=value"},
        {"=5", "--set: needs a key and a value; allowed: key=value"},
        {"gateway.workers=x", "--set: gateway.workers: \"x\" is not a whole number..."},
        {"gateway=5", "--set:1: gateway: is a single value, not a map of keys; ..."},
        {"gateway.worker=5", "--set: gateway.worker: unknown key; allowed: listen, ..."},
        {"gateway.workers.x=5",
         "--set: gateway.workers.x: unknown key; allowed: nothing below this key"},
        {"gateway.=5", "--set: gateway.: unknown key; ..."},
        {".=5", "--set: unknown key; ..."},
        {"namespaces.A.publish=off", "--set: namespaces.A: unknown key; allowed: names of..."},
        {"broker.ticks=[", "--set:2: did not find expected node content"},
        {"redis.password=a\nb", "--set: redis.password: its value can't be used; allowed: one..."},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct config_error error = {{0}};
        struct config *c = config_new();
        assert_int_equal(config_set(c, faults[i].text, &error), -1);
        assert_said(&error, faults[i].said);
        config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_value_is_told_with_file_line_key_and_what_is_allowed),
        cmocka_unit_test(what_this_version_lacks_is_refused_by_name),
        cmocka_unit_test(an_unknown_key_is_told_with_those_that_are_known),
        cmocka_unit_test(a_key_given_twice_is_an_error),
        cmocka_unit_test(only_a_plain_subset_of_yaml_is_taken),
        cmocka_unit_test(a_tick_that_can_not_tick_is_an_error),
        cmocka_unit_test(an_error_about_a_secret_does_not_tell_it),
        cmocka_unit_test(a_namespace_too_many_is_an_error),
        cmocka_unit_test(the_other_sources_name_themselves),
        cmocka_unit_test(a_bad_assignment_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/config.h"
#include "common/config_table.h"
#include "tests/unit/exact.h"

#include <stdlib.h>
#include <string.h>

static int load(struct config *c, const char *text, struct config_error *error)
{
    size_t len = strlen(text);
    char *copy = exact(text, len);
    int result = config_load_text(c, copy, len, "test.yaml", error);
    free(copy);
    return result;
}

static struct config *loaded(const char *text)
{
    struct config_error error = {{0}};
    struct config *c = config_new();
    if (load(c, text, &error) != 0 || config_finish(c, &error) != 0)
        fail_msg("%s", error.text);
    return c;
}

static char *printed(const struct config *c)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    config_print(c, out);
    (void)fclose(out);
    char *copy = strdup(text); /* gcc 12 takes the stream's own pointer for a local that escapes */
    free(text);
    return copy;
}

static char *read_file(const char *path)
{
    char *text = NULL;
    size_t capacity = 0;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    ssize_t len = getdelim(&text, &capacity, '\0', in);
    assert_true(len > 0);
    (void)fclose(in);
    return text;
}

static const struct namespace_config *of(const struct config *c, const char *channel)
{
    return config_namespace(c, channel, strlen(channel));
}

static void defaults_are_as_documented(void **state)
{
    (void)state;
    struct config *c = loaded("");
    assert_int_equal(c->log_level, LOG_INFO);
    assert_string_equal(c->log_level_name, "info");
    assert_string_equal(c->gateway_listen, "127.0.0.1:8000");
    assert_int_equal(c->gateway_send_buffer, 16384);
    assert_int_equal(c->gateway_heartbeat_ms, 15000);
    assert_int_equal(c->gateway_ring_total_bytes, 256u << 20);
    assert_string_equal(c->redis_prefix, "tide:");
    assert_int_equal(c->tick_count, 0);
    assert_int_equal(c->namespace_count, 1);
    assert_string_equal(c->namespaces[0].name, "default");
    assert_int_equal(c->namespaces[0].publish, PUBLISH_OFF);
    assert_int_equal(c->namespaces[0].history_ttl_ms, 600000);
    config_free(c);
}

/* Every printed line stands in config.yaml in its place; what else is there is comment or blank. */
static void config_yaml_lists_exactly_the_tables_keys_and_defaults(void **state)
{
    (void)state;
    struct config *c = config_new();
    char *file = read_file("config.yaml");
    char *print = printed(c);
    char *file_rest = NULL;
    char *print_rest = NULL;
    const char *wanted = strtok_r(print, "\n", &print_rest);
    for (char *line = strtok_r(file, "\n", &file_rest); line != NULL;
         line = strtok_r(NULL, "\n", &file_rest)) {
        if (wanted != NULL && strcmp(line, wanted) == 0)
            wanted = strtok_r(NULL, "\n", &print_rest);
        else if (line[strspn(line, " ")] != '#')
            fail_msg("config.yaml has \"%s\" where --print-config has \"%s\"", line, wanted);
    }
    if (wanted != NULL)
        fail_msg("config.yaml lacks \"%s\"", wanted);
    free(file);
    free(print);
    config_free(c);
}

static void expect_below_its_comment(const char *text, const struct config_key *key)
{
    const char *dot = strchr(key->path, '.');
    const char *name = dot != NULL ? dot + 1 : key->path;
    const char *comment = strstr(text, key->help);
    assert_non_null(comment);
    const char *line = strchr(comment, '\n') + 1;
    assert_int_equal(strncmp(line + strspn(line, " "), name, strlen(name)), 0);
}

static void every_setting_is_printed_below_its_comment(void **state)
{
    (void)state;
    struct config *c = config_new();
    char *text = printed(c);
    for (size_t i = 0; i < config_settings.count + config_namespace_keys.count; i++) {
        expect_below_its_comment(text,
                                 i < config_settings.count
                                     ? &config_settings.keys[i]
                                     : &config_namespace_keys.keys[i - config_settings.count]);
    }
    free(text);
    config_free(c);
}

/* Examples are the commented lines that look like `  # word:` or go on below one. */
static void the_examples_of_config_yaml_work_when_uncommented(void **state)
{
    (void)state;
    char *file = read_file("config.yaml");
    struct buf text = {0};
    bool in_example = false;
    char *rest = NULL;
    for (char *line = strtok_r(file, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        bool is_comment = strncmp(line, "  # ", 4) == 0;
        bool is_start = is_comment && line[4 + strcspn(line + 4, ": ")] == ':';
        in_example = is_start || (in_example && is_comment);
        if (strcmp(line, "  ticks: []") == 0)
            continue;
        buf_printf(&text, "%s%s\n", in_example ? "  " : "", in_example ? line + 4 : line);
    }
    buf_append(&text, "", 1);
    struct config *c = loaded(text.bytes);
    assert_int_equal(c->tick_count, 1);
    assert_string_equal(c->ticks[0].channel, "demo:clock");
    assert_int_equal(of(c, "chat:room7")->publish, PUBLISH_ANYONE);
    assert_int_equal(of(c, "chat:room7")->history_ttl_ms, 86400000);
    config_free(c);
    buf_fini(&text);
    free(file);
}

static void the_most_that_may_be_published_is_that_of_open_namespaces(void **state)
{
    (void)state;
    struct config *c = loaded("namespaces: {a: {max_payload: 1MiB}}\n");
    assert_int_equal(config_max_publish(c), 0);
    config_free(c);
    c = loaded("namespaces: {a: {max_payload: 1MiB}, b: {publish: anyone, max_payload: 2KiB},"
               "             c: {publish: anyone, max_payload: 1KiB}}\n");
    assert_int_equal(config_max_publish(c), 2048);
    config_free(c);
}

static void what_is_printed_reads_back_to_the_same(void **state)
{
    (void)state;
    struct config *c = loaded("gateway: {workers: 3, heartbeat: 1500ms, send_buffer: 5000}\n"
                              "redis: {address: 'unix:/run/r \xc3\xbc.sock', password: p}\n"
                              "broker: {ticks: [{channel: a, rate: 0.3, content: \"\\\"#: \"},"
                              "                 {channel: b, rate: 99999.125, payload: 1KiB}]}\n"
                              "namespaces: {1: {content: json}, chat: {ring: {max_age: 90s}}}\n");

    char *first = printed(c);
    struct config *again = loaded(first);
    char *second = printed(again);
    assert_string_equal(first, second);
    assert_int_equal(again->gateway_heartbeat_ms, 1500);
    assert_true(again->ticks[0].rate == 0.3);
    assert_int_equal(of(again, "1:x")->content, CONTENT_JSON);
    free(first);
    free(second);
    config_free(c);
    config_free(again);
}

static void a_secret_is_never_printed(void **state)
{
    (void)state;
    struct config *c = loaded("redis: {password: hunter2}");
    char *text = printed(c);
    assert_string_equal(c->redis_password, "hunter2");
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "password: \"***\""));
    free(text);
    config_free(c);
}

static void a_namespace_takes_what_it_leaves_out_from_the_final_default(void **state)
{
    (void)state;
    struct config_error error;
    struct config *c = config_new();
    /* `default` stands below, and a later source still changes it. */
    assert_int_equal(load(c,
                          "namespaces:\n"
                          "  chat: {publish: anyone, history: {messages: 7}, max_payload: 64KiB}\n"
                          "  quiet:\n"
                          "  default: {max_payload: 2KiB, history: {ttl: 1h}}\n",
                          &error),
                     0);
    assert_int_equal(config_set(c, "namespaces.default.history.ttl=2h", &error), 0);
    assert_int_equal(config_finish(c, &error), 0);
    assert_int_equal(of(c, "chat:1")->publish, PUBLISH_ANYONE);
    assert_int_equal(of(c, "chat:1")->history_messages, 7);
    assert_int_equal(of(c, "chat:1")->history_ttl_ms, 7200000);
    assert_int_equal(of(c, "chat:1")->max_payload, 65536); /* given, though it is the default */
    assert_int_equal(of(c, "quiet:1")->max_payload, 2048);
    assert_int_equal(of(c, "quiet:1")->history_ttl_ms, 7200000);
    config_free(c);
}

static void a_channel_without_a_section_is_in_default(void **state)
{
    (void)state;
    struct config *c = loaded("namespaces: {chat: {}}");
    assert_ptr_equal(of(c, "chat:a"), &c->namespaces[1]);
    assert_ptr_equal(of(c, "chat"), &c->namespaces[0]);
    assert_ptr_equal(of(c, "chats:a"), &c->namespaces[0]);
    assert_ptr_equal(of(c, "cha:a"), &c->namespaces[0]);
    assert_ptr_equal(of(c, ":a"), &c->namespaces[0]);
    assert_ptr_equal(of(c, ""), &c->namespaces[0]);
    config_free(c);
}

static void a_tick_has_defaults_and_a_later_list_replaces_it(void **state)
{
    (void)state;
    struct config_error error;
    struct config *c = config_new();
    assert_int_equal(load(c,
                          "broker:\n"
                          "  ticks:\n"
                          "    - {channel: a, rate: 0.001}\n"
                          "    - {channel: b, rate: 100000, payload: 265, content: '{seq}{pad}'}\n",
                          &error),
                     0);
    assert_int_equal(c->tick_count, 2);
    assert_true(c->ticks[0].rate == 0.001);
    assert_int_equal(c->ticks[0].payload_bytes, 0);
    assert_string_equal(c->ticks[0].content, "{\"seq\":{seq},\"t\":{t},\"channel\":\"{channel}\"}");
    assert_int_equal(c->ticks[1].payload_bytes, 265);
    assert_string_equal(c->ticks[1].content, "{seq}{pad}");
    assert_int_equal(config_set(c, "broker.ticks=[{channel: c, rate: 2.5}]", &error), 0);
    assert_int_equal(c->tick_count, 1);
    assert_string_equal(c->ticks[0].channel, "c");
    assert_int_equal(config_set(c, "broker.ticks=", &error), 0);
    assert_int_equal(c->tick_count, 0);
    config_free(c);
}

static void the_environment_reaches_every_key(void **state)
{
    (void)state;
    static char *const environment[] = {(char *)"PATH=/bin",
                                        (char *)"TIDECAST_CONFIG=/nowhere",
                                        (char *)"TIDECAST_GATEWAY_LISTEN=[::1]:0",
                                        (char *)"TIDECAST_GATEWAY_CHANNELS_PER_REQUEST=5",
                                        (char *)"TIDECAST_REDIS_PASSWORD=a=b",
                                        (char *)"TIDECAST_BROKER_TICKS=[{channel: x, rate: 1}]",
                                        (char *)"TIDECAST_NAMESPACES_CHAT_HISTORY_TTL=3s",
                                        (char *)"TIDECAST_NAMESPACES_A_B_PUBLISH=anyone",
                                        (char *)"TIDECAST_NAMESPACES_IN_FILE_PUBLISH=anyone",
                                        NULL};
    struct config_error error = {{0}};
    struct config *c = config_new();
    assert_int_equal(load(c, "namespaces: {in-file: }", &error), 0);
    if (config_load_environment(c, environment, &error) != 0)
        fail_msg("%s", error.text);
    assert_string_equal(c->gateway_listen, "[::1]:0");
    assert_int_equal(c->gateway_channels_per_request, 5);
    assert_string_equal(c->redis_password, "a=b");
    assert_int_equal(c->tick_count, 1);
    assert_int_equal(of(c, "chat:x")->history_ttl_ms, 3000);
    assert_int_equal(of(c, "a_b:x")->publish, PUBLISH_ANYONE);
    assert_int_equal(of(c, "in-file:x")->publish, PUBLISH_ANYONE);
    assert_int_equal(c->namespace_count, 4);
    config_free(c);
}

static void set_reaches_keys_lists_and_sections(void **state)
{
    (void)state;
    struct config_error error;
    struct config *c = config_new();
    assert_int_equal(config_set(c, "gateway.workers=4", &error), 0);
    assert_int_equal(config_set(c, "redis.password=a=b: #c", &error), 0);
    assert_int_equal(config_set(c, "namespaces.chat.publish=anyone", &error), 0);
    assert_int_equal(config_set(c, "namespaces.chat.history={ttl: 1d}", &error), 0);
    assert_int_equal(c->gateway_workers, 4);
    assert_string_equal(c->redis_password, "a=b: #c");
    assert_int_equal(of(c, "chat:x")->publish, PUBLISH_ANYONE);
    assert_int_equal(of(c, "chat:x")->history_ttl_ms, 86400000);
    config_free(c);
}

static void memory_serves_one_worker(void **state)
{
    (void)state;
    struct config *c = loaded("gateway: {backplane: memory}");
    assert_int_equal(c->gateway_workers, 1);
    config_free(c);
}

static void a_key_whose_children_are_all_commented_out_is_nothing(void **state)
{
    (void)state;
    struct config *c = loaded("gateway:\n  # workers: 2\nbroker:\n  ticks:\nnamespaces:\n");
    assert_int_equal(c->gateway_workers, 0);
    config_free(c);
}

static void quoted_and_plain_are_alike(void **state)
{
    (void)state;
    struct config *c = loaded("\xef\xbb\xbfgateway: {workers: \"5\"}\n"
                              "redis: {user: 'null', password: 12345}\n");
    assert_int_equal(c->gateway_workers, 5);
    assert_string_equal(c->redis_user, "null");
    assert_string_equal(c->redis_password, "12345");
    config_free(c);
}

/* A prefix of a good file is a good file or a fault, and never anything else. */
static void every_prefix_of_a_good_file_is_read_or_refused(void **state)
{
    (void)state;
    char *file = read_file("config.yaml");
    for (size_t len = 0; len <= strlen(file); len += 7) {
        struct config_error error = {{0}};
        struct config *c = config_new();
        char *copy = malloc(len + (len == 0));
        memcpy(copy, file, len);
        if (config_load_text(c, copy, len, "f", &error) != 0)
            assert_true(strncmp(error.text, "f:", 2) == 0 && strlen(error.text) > 4);
        free(copy);
        config_free(c);
    }
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(config_yaml_lists_exactly_the_tables_keys_and_defaults),
        cmocka_unit_test(every_setting_is_printed_below_its_comment),
        cmocka_unit_test(the_examples_of_config_yaml_work_when_uncommented),
        cmocka_unit_test(the_most_that_may_be_published_is_that_of_open_namespaces),
        cmocka_unit_test(what_is_printed_reads_back_to_the_same),
        cmocka_unit_test(a_secret_is_never_printed),
        cmocka_unit_test(a_namespace_takes_what_it_leaves_out_from_the_final_default),
        cmocka_unit_test(a_channel_without_a_section_is_in_default),
        cmocka_unit_test(a_tick_has_defaults_and_a_later_list_replaces_it),
        cmocka_unit_test(the_environment_reaches_every_key),
        cmocka_unit_test(set_reaches_keys_lists_and_sections),
        cmocka_unit_test(memory_serves_one_worker),
        cmocka_unit_test(a_key_whose_children_are_all_commented_out_is_nothing),
        cmocka_unit_test(quoted_and_plain_are_alike),
        cmocka_unit_test(every_prefix_of_a_good_file_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

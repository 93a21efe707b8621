#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/config_value.h"

#include <stdlib.h>
#include <string.h>

/* Big enough and aligned for the struct of any table. */
union any_struct {
    struct config config;
    struct namespace_config space;
    struct tick_config tick;
};

static const struct config_table *const tables[] = {&config_tick_keys, &config_settings,
                                                    &config_namespace_keys};

static const struct config_key *find(const char *path)
{
    for (size_t t = 0; t < 3; t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            if (strcmp(tables[t]->keys[i].path, path) == 0)
                return &tables[t]->keys[i];
        }
    }
    fail_msg("no key %s", path);
    return NULL;
}

/* The text goes in as an exact-size heap copy. */
static int set(const struct config_key *key, union any_struct *to, const char *text)
{
    struct config_error reason = {{0}};
    char *copy = strdup(text);
    int result = config_value_set(key, to, copy, &reason);
    free(copy);
    assert_true((result == 0) == (reason.text[0] == '\0'));
    return result;
}

static bool is_taken(const char *path, const char *text)
{
    union any_struct to = {0};
    const struct config_key *key = find(path);
    int result = set(key, &to, text);
    if (key->type == CONFIG_TEXT || key->type == CONFIG_SECRET)
        free(*(char **)(void *)((char *)&to + key->offset));
    return result == 0;
}

static uint64_t whole(const char *path, const char *text)
{
    union any_struct to = {0};
    const struct config_key *key = find(path);
    if (set(key, &to, text) != 0)
        fail_msg("%s refuses %s", path, text);
    return *(uint64_t *)(void *)((char *)&to + key->offset);
}

static void every_default_is_written_as_it_is_printed(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct config_key *key = &tables[t]->keys[i];
            union any_struct to = {0};
            struct buf text = {0};
            if (key->value == NULL || key->type == CONFIG_TICKS)
                continue;
            assert_int_equal(set(key, &to, key->value), 0);
            config_value_append(&text, key, &to);
            buf_append(&text, "", 1);
            if (key->type == CONFIG_TEXT || key->type == CONFIG_SECRET)
                free(*(char **)(void *)((char *)&to + key->offset));
            else
                assert_string_equal(text.bytes, key->value);
            buf_fini(&text);
        }
    }
}

static void both_bounds_of_every_range_hold_and_one_past_them_does_not(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct config_key *key = &tables[t]->keys[i];
            const char *unit = key->type == CONFIG_DURATION ? "ms" : "";
            union any_struct to = {0};
            char text[32];
            if (key->type != CONFIG_NUMBER && key->type != CONFIG_SIZE &&
                key->type != CONFIG_DURATION)
                continue;
            (void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)key->min, unit);
            assert_int_equal(set(key, &to, text), 0);
            (void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)key->max, unit);
            assert_int_equal(set(key, &to, text), 0);
            (void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)key->max + 1, unit);
            assert_int_equal(set(key, &to, text), -1);
            (void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)key->min - 1, unit);
            assert_int_equal(set(key, &to, text), -1);
        }
    }
}

static void whole_numbers_are_decimal_digits_alone(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "01",
                                      "0x1",
                                      "1.0",
                                      "1e1",
                                      "1_",
                                      "one",
                                      "18446744073709551616",
                                      "18446744073709551617",
                                      "99999999999999999999999"};
    assert_int_equal(whole("gateway.workers", "0"), 0);
    assert_int_equal(whole("gateway.workers", "256"), 256);
    /* a stream counts its channels in 16 bits */
    assert_int_equal(whole("gateway.channels_per_connection", "10000"), 10000);
    assert_false(is_taken("gateway.channels_per_connection", "10001"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("gateway.workers", bad[i]));
}

static void sizes_have_binary_units_or_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"",       "64KB",
                                      "64K",    "64kib",
                                      "64 KiB", "1.5MiB",
                                      "-1",     "18446744073709551615KiB",
                                      "KiB",    "18014398509481985KiB",
                                      "064KiB"};
    assert_int_equal(whole("max_payload", "265"), 265);
    assert_int_equal(whole("max_payload", "64KiB"), 65536);
    assert_int_equal(whole("max_payload", "1MiB"), 1048576);
    assert_int_equal(whole("ring.bytes", "1GiB"), 1073741824);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("max_payload", bad[i]));
}

static void durations_name_their_unit(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "15",   "0",     "1.5s", "15sec",
                                      "15S", "15 s", "1h30m", "ms",   "18446744073709551615d"};
    assert_int_equal(whole("gateway.heartbeat", "1500ms"), 1500);
    assert_int_equal(whole("gateway.heartbeat", "15s"), 15000);
    assert_int_equal(whole("gateway.heartbeat", "10m"), 600000);
    assert_int_equal(whole("gateway.heartbeat", "1h"), 3600000);
    assert_int_equal(whole("history.ttl", "30d"), 2592000000);
    assert_int_equal(whole("gateway.unsubscribe_linger", "0"), 0);
    assert_int_equal(whole("gateway.unsubscribe_linger", "0s"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("gateway.heartbeat", bad[i]));
}

static void rates_are_plain_decimals(void **state)
{
    (void)state;
    static const char *const good[] = {"0.001", "1", "0.5", "100000", "99999.999"};
    static const char *const bad[] = {
        "",     "0",     "0.0009", "100000.1", ".5",  "1.",
        "1e3",  "nan",   "inf",    "0x1",      "-1",  "1,5",
        "1..5", "1.5.5", " 1",     "1 ",       "1Hz", "0000000000000000000000001"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(is_taken("rate", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("rate", bad[i]));
}

static void an_address_to_listen_on_is_a_host_and_a_port(void **state)
{
    (void)state;
    static const char *const good[] = {"127.0.0.1:8000", "0.0.0.0:0",    "[::1]:8000",
                                       "[::]:65535",     "localhost:80", "my-host.example:80"};
    static const char *const bad[] = {
        "",         ":80",    "host",     "host:",       "host:x",   "host:65536", "host:-1",
        "::1:80",   "[::1]",  "[::1]80",  "[::g]:80",    "[]:80",    "[:80",       "256.1.1.1:80",
        "1.2.3:80", "a b:80", "host:80 ", "http://h:80", "h:000080", "]:80"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(is_taken("gateway.listen", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("gateway.listen", bad[i]));
    assert_true(is_taken("admin.listen", ""));
    assert_false(is_taken("admin.listen", "x"));
}

static void redis_is_at_an_address_or_a_socket(void **state)
{
    (void)state;
    char path[128] = "unix:/";
    memset(path + 6, 'x', 106);
    assert_true(is_taken("redis.address", path)); /* 107 bytes of path */
    path[112] = 'x';
    assert_false(is_taken("redis.address", path));
    assert_true(is_taken("redis.address", "unix:/run/my redis.sock"));
    assert_true(is_taken("redis.address", "redis:6379"));
    assert_true(is_taken("redis.address", "[::1]:6379"));
    assert_false(is_taken("redis.address", "redis"));
    assert_false(is_taken("redis.address", "my redis:6379"));
    assert_false(is_taken("redis.address", "redis\r\n:6379"));
    assert_false(is_taken("redis.address", "unix:run/redis.sock"));
    assert_false(is_taken("redis.address", ""));
}

/* `len` times the letter x. */
static bool takes_length(const char *path, size_t len)
{
    char *text = calloc(1, len + 1);
    memset(text, 'x', len);
    bool taken = is_taken(path, text);
    free(text);
    return taken;
}

static void every_text_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t max;
    } bounds[] = {{"redis.user", 128}, {"redis.password", 512}, {"redis.password_file", 4095},
                  {"broker.name", 64}, {"channel", 200},        {"content", 65536}};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        assert_true(takes_length(bounds[i].path, bounds[i].max));
        assert_false(takes_length(bounds[i].path, bounds[i].max + 1));
    }
    assert_false(is_taken("content", ""));
}

static void text_holds_no_control_characters_and_is_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"a\nb",          "a\tb",          "a\x7f",
                                      "a\xc2\x85",     "a\xc2\x80",     "\xff",
                                      "a\xe2\x80\xa8", "a\xef\xbb\xbf", "\xc2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(is_taken("content", bad[i]));
    assert_true(is_taken("content", "gr\xc3\xbc\xc3\x9f\x65 \xf0\x9f\x98\x80 \xc2\xa0"));
    assert_true(is_taken("redis.password", "\xff\t"));
}

static void a_prefix_ends_in_its_only_colon(void **state)
{
    (void)state;
    assert_true(is_taken("redis.prefix", "tide:"));
    assert_true(is_taken("redis.prefix", "A_b-9:"));
    assert_false(is_taken("redis.prefix", "tide"));
    assert_false(is_taken("redis.prefix", ":"));
    assert_false(is_taken("redis.prefix", "a:b:"));
    assert_false(is_taken("redis.prefix", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_written_as_it_is_printed),
        cmocka_unit_test(both_bounds_of_every_range_hold_and_one_past_them_does_not),
        cmocka_unit_test(whole_numbers_are_decimal_digits_alone),
        cmocka_unit_test(sizes_have_binary_units_or_none),
        cmocka_unit_test(durations_name_their_unit),
        cmocka_unit_test(rates_are_plain_decimals),
        cmocka_unit_test(an_address_to_listen_on_is_a_host_and_a_port),
        cmocka_unit_test(redis_is_at_an_address_or_a_socket),
        cmocka_unit_test(every_text_is_bounded),
        cmocka_unit_test(text_holds_no_control_characters_and_is_utf8),
        cmocka_unit_test(a_prefix_ends_in_its_only_colon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

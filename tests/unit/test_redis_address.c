#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/redis_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static bool parse(struct redis_address *a, const char *text)
{
    char *copy = strdup(text); /* exact size */
    bool is_good = redis_address_parse(a, copy);
    free(copy);
    return is_good;
}

static void leaves_a_name_to_the_resolver(void **state)
{
    struct redis_address a;
    (void)state;
    assert_true(parse(&a, "redis.example.org:6379"));
    assert_false(a.is_literal);
    assert_string_equal(a.host, "redis.example.org");
    assert_string_equal(a.port, "6379");
}

static void takes_literals_of_both_families(void **state)
{
    struct redis_address a;
    (void)state;
    assert_true(parse(&a, "127.0.0.1:1"));
    assert_true(a.is_literal);
    assert_int_equal(redis_address_info(&a).ai_family, AF_INET);
    assert_true(parse(&a, "[::1]:65535"));
    assert_true(a.is_literal);
    assert_int_equal(redis_address_info(&a).ai_family, AF_INET6);
}

static void takes_a_unix_path_of_107_bytes_and_no_longer(void **state)
{
    struct redis_address a;
    char text[5 + 108 + 1];
    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "unix:/", 6);
    text[5 + 107] = '\0';
    assert_true(parse(&a, text));
    struct addrinfo info = redis_address_info(&a);
    assert_int_equal(info.ai_family, AF_UNIX);
    assert_string_equal(((struct sockaddr_un *)(void *)info.ai_addr)->sun_path, text + 5);
    text[5 + 107] = 'x';
    text[5 + 108] = '\0';
    assert_false(parse(&a, text));
}

static void refuses_what_is_no_address(void **state)
{
    static const char *const bad[] = {"",        "host",          "host:",       ":6379",
                                      "host:0",  "host:65536",    "host:63a",    "host:-1",
                                      "host:+1", "::1:6379",      "[::1]",       "[::1]6379",
                                      "[::1]:",  "[]:1",          "[name]:1",    "[127.0.0.1]:1",
                                      "unix:",   "unix:relative", "host:000001", "a:1:2",
                                      "unix:/",  "[::1"};
    struct redis_address a;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bool is_root_path = strcmp(bad[i], "unix:/") == 0; /* connect() refuses it */
        if (parse(&a, bad[i]) != is_root_path)
            fail_msg("%s", bad[i]);
    }
}

static void refuses_a_host_past_its_bound(void **state)
{
    struct redis_address a;
    char text[REDIS_HOST_MAX + 8];
    (void)state;
    memset(text, 'h', sizeof(text));
    (void)snprintf(text + REDIS_HOST_MAX, 3, ":1");
    assert_true(parse(&a, text));
    (void)snprintf(text + REDIS_HOST_MAX, 4, "h:1");
    assert_false(parse(&a, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_a_name_to_the_resolver),
        cmocka_unit_test(takes_literals_of_both_families),
        cmocka_unit_test(takes_a_unix_path_of_107_bytes_and_no_longer),
        cmocka_unit_test(refuses_what_is_no_address),
        cmocka_unit_test(refuses_a_host_past_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

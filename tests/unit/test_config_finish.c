#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void settings_that_contradict_each_other_are_an_error(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"gateway: {retry_min: 2s, retry_max: 1s}",
         "gateway.retry_max: 1000ms is below gateway.retry_min; allowed: at least 2000ms"},
        {"gateway: {backplane: memory, workers: 2}",
         "gateway.workers: 2 is too many for gateway.backplane memory, which serves one worker; "
         "allowed: 0 or 1"},
        {"redis: {password: hunter2, password_file: /x}",
         "redis.password_file: redis.password is set too; allowed: one of them"},
        {"redis: {user: u}",
         "redis.user: a user needs a password; allowed: redis.password or redis.password_file"},
        {"broker: {ticks: [{channel: c:a, rate: 1, payload: 2KiB}]}\n"
         "namespaces: {c: {max_payload: 1KiB}}",
         "broker.ticks[0].payload: 2048 bytes are above max_payload of its namespace; allowed: up "
         "to 1024 bytes"},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct config_error error = {{0}};
        struct config *c = config_new();
        assert_int_equal(config_load_text(c, faults[i].text, strlen(faults[i].text), "c", &error),
                         0);
        assert_int_equal(config_finish(c, &error), -1);
        assert_said(&error, faults[i].said);
        config_free(c);
    }
}

/* A fresh directory; the caller removes what it puts there. */
static void make_path(char *path, size_t len, const char *name)
{
    char directory[] = "/tmp/test_config.XXXXXX";
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, len, "%s/%s", directory, name);
}

static void remove_path(char *path)
{
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void write_file(const char *path, const char *bytes, size_t len)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
}

static void a_file_that_can_not_be_had_is_an_error(void **state)
{
    (void)state;
    char path[64];
    char said[128];
    struct config_error error = {{0}};
    struct config *c = config_new();
    make_path(path, sizeof(path), "c.yaml");
    assert_int_equal(config_load_file(c, path, &error), -1);
    (void)snprintf(said, sizeof(said), "%s: can't be read: No such file or directory", path);
    assert_said(&error, said);
    assert_int_equal(config_load_file(c, "/tmp", &error), -1);
    assert_said(&error, "/tmp: can't be read: Is a directory");
    assert_int_equal(config_load_file(c, "/dev/zero", &error), -1);
    assert_said(&error, "/dev/zero: too long; allowed: up to 1048576 bytes");
    assert_int_equal(config_load_file(c, "/dev/null", &error), 0);
    config_free(c);
    remove_path(path);
}

static void a_file_of_one_mebibyte_is_taken_and_one_byte_more_is_not(void **state)
{
    (void)state;
    enum { LIMIT = 1024 * 1024 };
    char path[64];
    struct config_error error = {{0}};
    struct config *c = config_new();
    char *text = malloc(LIMIT + 1);
    memset(text, '#', LIMIT + 1);
    make_path(path, sizeof(path), "c.yaml");
    write_file(path, text, LIMIT);
    assert_int_equal(config_load_file(c, path, &error), 0);
    write_file(path, text, LIMIT + 1);
    assert_int_equal(config_load_file(c, path, &error), -1);
    assert_int_equal(config_load_text(c, text, LIMIT + 1, "c.yaml", &error), -1);
    assert_said(&error, "c.yaml: too long; allowed: up to 1048576 bytes");
    free(text);
    config_free(c);
    remove_path(path);
}

static int read_password(const char *path, const char *bytes, size_t len, char *password,
                         struct config_error *error)
{
    struct config *c = config_new();
    char assignment[128];
    write_file(path, bytes, len);
    (void)snprintf(assignment, sizeof(assignment), "redis.password_file=%s", path);
    assert_int_equal(config_set(c, assignment, error), 0);
    int result = config_finish(c, error);
    (void)snprintf(password, 600, "%s", c->redis_password);
    config_free(c);
    return result;
}

static void a_password_file_gives_its_first_line(void **state)
{
    (void)state;
    char path[64];
    char password[600];
    char longest[514];
    struct config_error error = {{0}};
    make_path(path, sizeof(path), "password");
    memset(longest, 'x', sizeof(longest));
    assert_int_equal(read_password(path, "hunter2", 7, password, &error), 0);
    assert_string_equal(password, "hunter2");
    assert_int_equal(read_password(path, "hunter2\r\nmore\n", 14, password, &error), 0);
    assert_string_equal(password, "hunter2");
    assert_int_equal(read_password(path, longest, 512, password, &error), 0);
    assert_int_equal(strlen(password), 512);
    assert_int_equal(read_password(path, longest, 513, password, &error), -1);
    assert_int_equal(read_password(path, "hunter2\0x", 9, password, &error), -1);
    assert_null(strstr(error.text, "hunter2"));
    assert_int_equal(read_password(path, "\nhunter2", 8, password, &error), -1);
    assert_int_equal(read_password(path, "", 0, password, &error), -1);
    assert_non_null(strstr(error.text, path));
    remove_path(path);
}

static void a_password_file_that_can_not_be_had_is_named(void **state)
{
    (void)state;
    struct config_error error = {{0}};
    struct config *c = config_new();
    assert_int_equal(config_set(c, "redis.password_file=/nonexistent/p", &error), 0);
    assert_int_equal(config_finish(c, &error), -1);
    assert_said(&error, "/nonexistent/p: redis.password_file: can't be read: No such file or "
                        "directory");
    assert_int_equal(config_set(c, "redis.password_file=/dev/zero", &error), 0);
    assert_int_equal(config_finish(c, &error), -1);
    assert_said(&error, "/dev/zero: redis.password_file: too long; allowed: up to 65536 bytes");
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_contradict_each_other_are_an_error),
        cmocka_unit_test(a_file_that_can_not_be_had_is_an_error),
        cmocka_unit_test(a_file_of_one_mebibyte_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(a_password_file_gives_its_first_line),
        cmocka_unit_test(a_password_file_that_can_not_be_had_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

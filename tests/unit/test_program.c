#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 8, RUNS = 77 };

/* What one command line came to. */
struct outcome {
    int status; /* RUNS: it got its config */
    char out[8192];
    char err[2048];
};

static void read_back(FILE *file, char *text, size_t len)
{
    rewind(file);
    text[fread(text, 1, len - 1, file)] = '\0';
    (void)fclose(file);
}

static int run_child(char *const *arguments)
{
    char *argv[ARGUMENTS_MAX + 2] = {(char *)"/usr/bin/tidecast-gateway"};
    int argc = 1;
    int status = 0;
    for (; arguments[argc - 1] != NULL; argc++)
        argv[argc] = arguments[argc - 1];
    struct config *c = program_config(argc, argv, &status);
    if (c == NULL)
        return status;
    (void)printf("workers=%d\n", (int)c->gateway_workers);
    (void)fflush(stdout);
    config_free(c);
    return RUNS;
}

/* In a process of its own, as it writes to the standard streams; a variable may be set there. */
static void run(struct outcome *outcome, const char *variable, char *const *arguments)
{
    int status = 0;
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    pid_t pid = fork();
    assert_true(pid != -1);
    if (pid == 0) {
        (void)dup2(fileno(out), STDOUT_FILENO);
        (void)dup2(fileno(err), STDERR_FILENO);
        if (variable != NULL)
            (void)putenv((char *)variable);
        _exit(run_child(arguments));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    outcome->status = WEXITSTATUS(status);
    read_back(out, outcome->out, sizeof(outcome->out));
    read_back(err, outcome->err, sizeof(outcome->err));
}

static void later_sources_win(void **state)
{
    (void)state;
    struct outcome o;
    char path[] = "/tmp/test_program.XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "gateway: {workers: 3}\n", 22), 22);
    (void)close(fd);
    run(&o, NULL, (char *const[]){NULL});
    assert_int_equal(o.status, RUNS);
    assert_string_equal(o.out, "workers=0\n");
    run(&o, NULL, (char *const[]){(char *)"-c", path, NULL});
    assert_string_equal(o.out, "workers=3\n");
    run(&o, "TIDECAST_GATEWAY_WORKERS=4", (char *const[]){(char *)"--config", path, NULL});
    assert_string_equal(o.out, "workers=4\n");
    run(&o, "TIDECAST_GATEWAY_WORKERS=4",
        (char *const[]){(char *)"--set", (char *)"gateway.workers=5", (char *)"--config", path,
                        (char *)"--set=gateway.workers=6", NULL});
    assert_string_equal(o.out, "workers=6\n");
    (void)unlink(path);
}

static void the_environment_may_name_the_file(void **state)
{
    (void)state;
    struct outcome o;
    run(&o, "TIDECAST_CONFIG=/nonexistent.yaml", (char *const[]){NULL});
    assert_int_equal(o.status, 2);
    assert_string_equal(o.err, "/nonexistent.yaml: can't be read: No such file or directory\n");
    run(&o, "TIDECAST_CONFIG=/nonexistent.yaml",
        (char *const[]){(char *)"--config", (char *)"/dev/null", NULL});
    assert_int_equal(o.status, RUNS);
    run(&o, "TIDECAST_CONFIG=", (char *const[]){NULL});
    assert_int_equal(o.status, RUNS);
}

static void a_config_error_is_one_line_and_exit_code_2(void **state)
{
    (void)state;
    struct outcome o;
    run(&o, NULL, (char *const[]){(char *)"--set", (char *)"gateway.workers=many", NULL});
    assert_int_equal(o.status, 2);
    assert_string_equal(o.out, "");
    assert_string_equal(o.err, "--set: gateway.workers: \"many\" is not a whole number; allowed: 0 "
                               "to 256\n");
    run(&o, NULL,
        (char *const[]){(char *)"--check-config", (char *)"--set", (char *)"redis.user=x", NULL});
    assert_int_equal(o.status, 2);
    assert_string_equal(o.out, "");
}

static void a_good_config_is_said_to_be_ok(void **state)
{
    (void)state;
    struct outcome o;
    run(&o, NULL,
        (char *const[]){(char *)"--check-config", (char *)"-c", (char *)"config.yaml", NULL});
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "config ok\n");
    assert_string_equal(o.err, "");
}

static void the_config_is_printed_without_its_secrets(void **state)
{
    (void)state;
    struct outcome o;
    run(&o, "TIDECAST_REDIS_PASSWORD=hunter2", (char *const[]){(char *)"--print-config", NULL});
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.out, "\n  workers: 0\n"));
    assert_non_null(strstr(o.out, "\n  password: \"***\"\n"));
    assert_null(strstr(o.out, "hunter2"));
}

static void version_and_help_go_to_standard_output(void **state)
{
    (void)state;
    struct outcome o;
    run(&o, "TIDECAST_NONSENSE=1", (char *const[]){(char *)"--version", NULL});
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "tidecast-gateway " TIDECAST_VERSION "\n");
    run(&o, "TIDECAST_NONSENSE=1", (char *const[]){(char *)"--help", NULL});
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.out, "Usage: tidecast-gateway "));
    assert_string_equal(o.err, "");
}

static void a_wrong_command_line_shows_the_usage_but_no_value(void **state)
{
    (void)state;
    static const char *const wrong[] = {"--redis.password=hunter2", "hunter2", "-x", "--config",
                                        "--set"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct outcome o;
        run(&o, NULL, (char *const[]){(char *)wrong[i], NULL});
        assert_int_equal(o.status, 2);
        assert_string_equal(o.out, "");
        assert_non_null(strstr(o.err, "Usage: "));
        assert_null(strstr(o.err, "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(the_environment_may_name_the_file),
        cmocka_unit_test(a_config_error_is_one_line_and_exit_code_2),
        cmocka_unit_test(a_good_config_is_said_to_be_ok),
        cmocka_unit_test(the_config_is_printed_without_its_secrets),
        cmocka_unit_test(version_and_help_go_to_standard_output),
        cmocka_unit_test(a_wrong_command_line_shows_the_usage_but_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/log.h"
#include "tests/unit/exact.h"
#include "tests/unit/fake_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int log_fd, saved_stderr;
static char heard[8192];

static int set_up(void **state)
{
    (void)state;
    log_fd = memfd_create("log", MFD_CLOEXEC);
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)dup2(log_fd, STDERR_FILENO);
    log_set_name("worker-2");
    log_set_level(LOG_INFO);
    return log_fd == -1 || saved_stderr == -1;
}

static int tear_down(void **state)
{
    (void)state;
    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
    (void)close(log_fd);
    return 0;
}

/* Everything logged since the last call. */
static const char *hear(void)
{
    ssize_t n = pread(log_fd, heard, sizeof(heard) - 1, 0);
    heard[n < 0 ? 0 : n] = '\0';
    assert_int_equal(ftruncate(log_fd, 0), 0);
    (void)lseek(log_fd, 0, SEEK_SET);
    return heard;
}

static void a_line_says_when_how_bad_who_and_what(void **state)
{
    (void)state;
    fake_wall_ms = 1700000000042;
    log_info("started port=%d", 8000);
    assert_string_equal(hear(), "2023-11-14T22:13:20.042Z info worker-2 started port=8000\n");
    log_warn("w");
    assert_string_equal(hear(), "2023-11-14T22:13:20.042Z warn worker-2 w\n");
    log_error("e");
    assert_string_equal(hear(), "2023-11-14T22:13:20.042Z error worker-2 e\n");
    errno = ENOENT;
    log_errno("open_failed path=%s", "x");
    assert_string_equal(hear(), "2023-11-14T22:13:20.042Z error worker-2 open_failed path=x "
                                "error=\"No such file or directory\"\n");
}

static void is_silent_below_its_level(void **state)
{
    (void)state;
    log_debug("d");
    assert_string_equal(hear(), "");
    log_set_level(LOG_ERROR);
    log_warn("w");
    log_info("i");
    assert_string_equal(hear(), "");
    log_error("e");
    assert_non_null(strstr(hear(), " error "));
    log_set_level(LOG_DEBUG);
    log_debug("d");
    assert_non_null(strstr(hear(), " debug "));
}

/* Every length around the end of the line's buffer. */
static void a_line_that_is_too_long_is_cut_and_still_ends(void **state)
{
    static char text[3000];
    (void)state;
    memset(text, 'x', sizeof(text));
    for (int len = 1900; len < 2200; len++) {
        errno = ENOENT;
        log_errno("%.*s", len, text);
        size_t heard_len = strlen(hear());
        assert_true(heard_len <= 2047);
        assert_ptr_equal(strchr(heard, '\n'), heard + heard_len - 1);
    }
}

static void assert_quoted(const char *bytes, size_t len, const char *expected)
{
    char *out = mem_alloc(LOG_QUOTE_MAX);
    char *copy = exact(bytes, len);
    assert_ptr_equal(log_quote(out, copy, len), out);
    assert_string_equal(out, expected);
    free(out);
    free(copy);
}

static void a_quoted_text_can_forge_no_line_and_no_field(void **state)
{
    (void)state;
    assert_quoted("", 0, "");
    assert_quoted("news:a/b@c", 10, "news:a/b@c");
    assert_quoted("a b\r\nerror x", 12, "a\\x20b\\x0d\\x0aerror\\x20x");
    assert_quoted("\"\\\0\x7f\x80\xff\x1b", 7, "\\x22\\x5c\\x00\\x7f\\x80\\xff\\x1b");
    assert_quoted("!~", 2, "!~");
}

static void a_quoted_text_is_cut_between_its_characters(void **state)
{
    char text[200];
    (void)state;
    for (int plain = 0; plain < 5; plain++) { /* the cut falls on each byte of an escape */
        char *out = mem_alloc(LOG_QUOTE_MAX);
        memset(text, '\n', sizeof(text));
        memset(text, 'a', (size_t)plain);
        (void)log_quote(out, text, sizeof(text));
        size_t len = strlen(out);
        assert_true(len >= LOG_QUOTE_MAX - 9 && len < LOG_QUOTE_MAX);
        assert_int_equal((len - (size_t)plain) % 4, 0);
        assert_string_equal(out + len - 4, "\\x0a");
        free(out);
    }
    char *out = mem_alloc(LOG_QUOTE_MAX);
    memset(text, 'a', sizeof(text));
    (void)log_quote(out, text, sizeof(text));
    assert_true(strlen(out) >= LOG_QUOTE_MAX - 5);
    free(out);
}

static void a_limit_lets_one_a_second_through_and_counts_the_rest(void **state)
{
    struct log_limit limit = {0};
    uint64_t suppressed = 99;
    (void)state;
    assert_true(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 0);
    for (int i = 0; i < 999; i++) {
        assert_false(log_allowed(&limit, &suppressed));
        fake_clock_pass(1);
    }
    assert_false(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 0);
    fake_clock_pass(1);
    assert_true(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 1000);
    fake_clock_pass(5000);
    assert_true(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 0);
    fake_wall_ms += 3600000; /* people's clock is not the limit's */
    assert_false(log_allowed(&limit, &suppressed));
}

#define HEARD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEARD(a_line_says_when_how_bad_who_and_what),
        HEARD(is_silent_below_its_level),
        HEARD(a_line_that_is_too_long_is_cut_and_still_ends),
        cmocka_unit_test(a_quoted_text_can_forge_no_line_and_no_field),
        cmocka_unit_test(a_quoted_text_is_cut_between_its_characters),
        cmocka_unit_test(a_limit_lets_one_a_second_through_and_counts_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

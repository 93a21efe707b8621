#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

static struct resolution *ask_and_wait(const char *host, const char *port)
{
    int fd = resolver_ask(host, port);
    assert_int_not_equal(fd, -1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    struct resolution *r = resolver_take(fd);
    assert_non_null(r);
    (void)close(fd);
    return r;
}

static void finds_localhost(void **state)
{
    (void)state;
    struct resolution *r = ask_and_wait("localhost", "6379");
    assert_int_equal(r->error, 0);
    assert_non_null(r->addresses);
    for (const struct addrinfo *i = r->addresses; i != NULL; i = i->ai_next) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)i->ai_addr;
        assert_true(i->ai_family == AF_INET || i->ai_family == AF_INET6);
        assert_int_equal(ntohs(v4->sin_port), 6379); /* the port lies alike in both families */
    }
    resolution_free(r);
}

static void says_why_there_is_no_address(void **state)
{
    (void)state;
    struct resolution *r = ask_and_wait("not a name", "1");
    assert_int_not_equal(r->error, 0);
    assert_null(r->addresses);
    resolution_free(r);
    resolution_free(NULL);
}

static void has_nothing_before_the_answer(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_null(resolver_take(ends[0]));
    (void)close(ends[1]);
    struct resolution *r = resolver_take(ends[0]);
    assert_int_equal(r->error, EAI_FAIL);
    resolution_free(r);
    (void)close(ends[0]);
}

/* The thread then writes into a pipe without reader: that must not be the process' end. */
static void a_forgotten_question_harms_nobody(void **state)
{
    int forgotten = 0;
    (void)state;
    while (forgotten < 100) {
        int fd = resolver_ask("127.0.0.1", "1");
        if (fd == -1)
            assert_int_equal(errno, EAGAIN);
        else
            forgotten += close(fd) == 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_localhost),
        cmocka_unit_test(says_why_there_is_no_address),
        cmocka_unit_test(has_nothing_before_the_answer),
        cmocka_unit_test(a_forgotten_question_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

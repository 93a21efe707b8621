#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/link_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_LEN = 1 << 16 };

static void make_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
}

static void keeps_nothing_of_what_was_written(void **state)
{
    struct link_output o = {0};
    char heard[8];
    int ends[2];
    (void)state;
    make_pair(ends);
    for (int i = 0; i < 1000; i++) {
        buf_append_text(&o.bytes, "hello");
        assert_int_equal(link_output_write(&o, ends[0]), LINK_OUTPUT_EMPTY);
        assert_int_equal(o.bytes.len, 0);
        assert_int_equal(recv(ends[1], heard, sizeof(heard), 0), 5);
        assert_memory_equal(heard, "hello", 5);
    }
    assert_true(o.bytes.capacity < 64);
    link_output_fini(&o);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void fill(struct link_output *o, uint32_t *number)
{
    for (size_t len = 0; len < PIECE_LEN; len += sizeof(*number), ++*number)
        buf_append(&o->bytes, (const char *)number, sizeof(*number));
}

/* Always behind, never more than a few pieces: what went out must leave the buffer. */
static void keeps_the_order_of_a_backlog_and_bounds_its_memory(void **state)
{
    static uint32_t heard[PIECE_LEN / sizeof(uint32_t)];
    struct link_output o = {0};
    uint32_t written = 0;
    uint32_t expected = 0;
    int ends[2];
    (void)state;
    make_pair(ends);
    while (link_output_write(&o, ends[0]) == LINK_OUTPUT_EMPTY)
        fill(&o, &written);
    for (int i = 0; i < 500; i++) {
        if (link_output_unsent(&o) < 4UL * PIECE_LEN)
            fill(&o, &written);
        ssize_t n = recv(ends[1], heard, sizeof(heard), MSG_WAITALL);
        assert_int_equal(n, sizeof(heard));
        for (size_t k = 0; k < sizeof(heard) / sizeof(heard[0]); k++)
            assert_true(heard[k] == expected++);
        (void)link_output_write(&o, ends[0]);
    }
    assert_true(o.bytes.capacity <= 32UL * PIECE_LEN);
    link_output_clear(&o);
    assert_int_equal(link_output_unsent(&o), 0);
    link_output_fini(&o);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void says_why_it_cannot_write(void **state)
{
    struct link_output o = {0};
    int ends[2];
    (void)state;
    make_pair(ends);
    (void)close(ends[1]);
    buf_append_text(&o.bytes, "hello");
    assert_int_equal(link_output_write(&o, ends[0]), LINK_OUTPUT_FAILED);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(link_output_unsent(&o), 5);
    link_output_fini(&o);
    (void)close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_nothing_of_what_was_written),
        cmocka_unit_test(keeps_the_order_of_a_backlog_and_bounds_its_memory),
        cmocka_unit_test(says_why_it_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

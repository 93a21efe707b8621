/* redis_rig: a redis_link under test, with a hand-driven loop and a scripted Redis in one thread.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/redis_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RIG_PATIENCE_MS = 5000, RIG_TIMEOUT_MS = 1000, RIG_BACKOFF_MAX_MS = 30000 };

struct rig;

/* On the heap and gone when closed, as a real loop has it. */
struct rig_watch {
    struct rig *rig;
    struct redis_link *link;
    int fd;
    bool wants_write;
};

struct rig {
    int listener;
    int peer; /* the scripted Redis' end, or -1 */
    char address[64];
    struct link_settings settings;
    struct redis_link *link;
    struct rig_watch *watch;
    uint64_t now_ms;
    unsigned opened_count;
    unsigned ready_count;
    unsigned down_count;
    unsigned reply_count;
    enum link_fault fault; /* of the last on_down */
    char last[64];         /* the last reply's text */
    void (*on_reply)(struct rig *rig, const struct resp *reply);
    void (*on_down)(struct rig *rig);
    int log_fd;
    int saved_stderr;
};

static inline void *rig_open_watch(void *loop, int fd, struct redis_link *link)
{
    struct rig *rig = loop;
    struct rig_watch *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    assert_null(rig->watch); /* one at a time */
    *w = (struct rig_watch){.rig = rig, .link = link, .fd = fd};
    rig->watch = w;
    rig->opened_count++;
    return w;
}

static inline void rig_want_write(void *watch)
{
    ((struct rig_watch *)watch)->wants_write = true;
}

static inline void rig_close_watch(void *watch)
{
    struct rig_watch *w = watch;
    w->rig->watch = NULL;
    (void)close(w->fd);
    free(w);
}

static const struct link_poller rig_poller = {rig_open_watch, rig_want_write, rig_close_watch};

static inline void rig_on_ready(void *owner)
{
    ((struct rig *)owner)->ready_count++;
}

static inline void rig_on_reply(void *owner, const struct resp *reply)
{
    struct rig *rig = owner;
    rig->reply_count++;
    (void)snprintf(rig->last, sizeof(rig->last), "%s", reply->text == NULL ? "" : reply->text);
    if (rig->on_reply != NULL)
        rig->on_reply(rig, reply);
}

static inline void rig_on_down(void *owner, enum link_fault fault)
{
    struct rig *rig = owner;
    rig->down_count++;
    rig->fault = fault;
    if (rig->on_down != NULL)
        rig->on_down(rig);
}

static const struct link_callbacks rig_callbacks = {rig_on_ready, rig_on_reply, rig_on_down};

static inline int rig_listen(uint16_t *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *port = ntohs(sa.sin_port);
    return fd;
}

static inline void rig_make_link(struct rig *rig)
{
    redis_link_free(rig->link);
    rig->link = redis_link_new(&rig->settings, &rig_poller, rig, &rig_callbacks, rig);
}

/* Standard error goes to a memory file until the end, to be read by rig_logged. For a sanitizer's
 * report set its log_path. */
static inline int rig_setup(void **state)
{
    uint16_t port = 0;
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    rig->listener = rig_listen(&port);
    rig->peer = -1;
    rig->now_ms = 1000000;
    (void)snprintf(rig->address, sizeof(rig->address), "127.0.0.1:%u", port);
    rig->settings = (struct link_settings){.name = "command",
                                           .address = rig->address,
                                           .user = "",
                                           .password = "",
                                           .connect_timeout_ms = RIG_TIMEOUT_MS,
                                           .backoff_max_ms = RIG_BACKOFF_MAX_MS,
                                           .max_reply_len = 4096,
                                           .max_output_len = 1 << 16};
    rig->saved_stderr = dup(STDERR_FILENO);
    rig->log_fd = memfd_create("log", MFD_CLOEXEC);
    (void)dup2(rig->log_fd, STDERR_FILENO);
    log_set_level(LOG_DEBUG);
    rig_make_link(rig);
    *state = rig;
    return 0;
}

static inline int rig_teardown(void **state)
{
    struct rig *rig = *state;
    redis_link_free(rig->link);
    (void)close(rig->listener);
    if (rig->peer != -1)
        (void)close(rig->peer);
    (void)dup2(rig->saved_stderr, STDERR_FILENO);
    (void)close(rig->saved_stderr);
    (void)close(rig->log_fd);
    bool is_clean = rig->watch == NULL;
    free(rig);
    return is_clean ? 0 : -1;
}

/* How often the text stands in what was logged so far. */
static inline unsigned rig_logged(struct rig *rig, const char *text)
{
    static char log[1 << 18];
    unsigned count = 0;
    ssize_t len = pread(rig->log_fd, log, sizeof(log) - 1, 0);
    assert_true(len >= 0);
    log[len] = '\0';
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        count++;
    return count;
}

/* Debug lines repeat what happens; a fault is said at warn. */
static inline bool rig_is_down_for(struct rig *rig, const char *fault)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "redis_link_down link=command fault=%s ", fault);
    return redis_link_state(rig->link) == LINK_DOWN && rig_logged(rig, text) > 0;
}

/* One turn of the loop: false if nothing came in time. */
static inline bool rig_turn_within(struct rig *rig, int timeout_ms)
{
    unsigned opened = rig->opened_count;
    struct rig_watch *w = rig->watch;
    if (w == NULL)
        return false;
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    if (w->wants_write)
        p.events = POLLIN | POLLOUT;
    if (poll(&p, 1, timeout_ms) != 1)
        return false;
    if ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
        redis_link_on_readable(rig->link);
    if (rig->opened_count != opened || rig->watch != w || (p.revents & POLLOUT) == 0)
        return true;
    w->wants_write = false;
    redis_link_on_writable(rig->link);
    return true;
}

static inline void rig_turn(struct rig *rig)
{
    assert_true(rig_turn_within(rig, RIG_PATIENCE_MS));
}

static inline void rig_tick(struct rig *rig, uint64_t after_ms)
{
    rig->now_ms += after_ms;
    redis_link_tick(rig->link, rig->now_ms);
}

static inline void rig_turn_until(struct rig *rig, enum link_state state)
{
    for (int i = 0; i < 100 && redis_link_state(rig->link) != state; i++)
        rig_turn(rig);
    assert_int_equal(redis_link_state(rig->link), state);
}

static inline void rig_accept(struct rig *rig)
{
    struct pollfd p = {.fd = rig->listener, .events = POLLIN};
    if (rig->peer != -1)
        (void)close(rig->peer);
    assert_int_equal(poll(&p, 1, RIG_PATIENCE_MS), 1);
    rig->peer = accept(rig->listener, NULL, NULL);
    assert_int_not_equal(rig->peer, -1);
}

static inline void rig_hang_up(struct rig *rig)
{
    (void)close(rig->peer);
    rig->peer = -1;
}

/* What Redis says. */
static inline void rig_say_bytes(struct rig *rig, const char *bytes, size_t len)
{
    assert_int_equal(send(rig->peer, bytes, len, MSG_NOSIGNAL), len);
}

static inline void rig_say(struct rig *rig, const char *text)
{
    rig_say_bytes(rig, text, strlen(text));
}

/* What Redis hears: exactly these bytes, and no more for now. */
static inline void rig_expect(struct rig *rig, const char *text)
{
    char heard[1024] = "";
    size_t len = 0;
    struct pollfd p = {.fd = rig->peer, .events = POLLIN};
    while (len < strlen(text)) {
        assert_int_equal(poll(&p, 1, RIG_PATIENCE_MS), 1);
        ssize_t n = recv(rig->peer, heard + len, sizeof(heard) - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
    }
    heard[len] = '\0';
    assert_string_equal(heard, text);
}

static inline void rig_expect_nothing(struct rig *rig)
{
    char byte = 0;
    assert_int_equal(recv(rig->peer, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

#define RIG_SETNAME "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$16\r\ntidecast-command\r\n"

/* From DOWN to a connection that has sent its first words. */
static inline void rig_connect(struct rig *rig)
{
    rig_tick(rig, RIG_BACKOFF_MAX_MS);
    rig_accept(rig);
    rig_turn_until(rig, LINK_GREETING);
}

static inline void rig_make_ready(struct rig *rig)
{
    rig_connect(rig);
    rig_expect(rig, RIG_SETNAME);
    rig_say(rig, "+OK\r\n");
    rig_turn_until(rig, LINK_READY);
}

static inline bool rig_send(struct rig *rig, const char *command)
{
    const struct resp_arg args[] = {resp_text(command)};
    return redis_link_send(rig->link, args, 1);
}

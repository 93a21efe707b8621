#include "common/redis_link.h"

#include "common/link_greeting.h"
#include "common/link_output.h"
#include "common/link_report.h"
#include "common/link_retry.h"
#include "common/link_route.h"
#include "common/link_state.h"
#include "common/log.h"
#include "common/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Small pieces, because the reader often moves what is left in its buffer; 256 KiB a turn. */
enum { READ_LEN = 16 * 1024, READS_A_TURN = 16 };
enum { TEXT_MAX = REDIS_ADDRESS_TEXT_MAX + sizeof(": ") + LOG_QUOTE_MAX };

struct redis_link {
    struct link_settings settings;
    const struct link_poller *poller;
    void *loop;
    struct link_callbacks callbacks;
    void *owner;
    enum link_state state;
    uint64_t now_ms;   /* of the last tick */
    uint64_t since_ms; /* the first tick that saw this attempt, or this READY; 0: none yet */
    struct link_retry retry;
    struct link_report report;
    struct link_route route;
    int fd; /* the watch owns it */
    void *watch;
    bool wants_write;
    struct resp_reader *reader;
    enum link_greeting greeting;
    struct link_output out;
    bool is_paused;          /* by the owner */
    bool is_busy;            /* within a callback that may find the link bad */
    enum link_fault dropped; /* found bad, not taken down yet */
    char text[TEXT_MAX];     /* why, fit for a log line */
};

static void enter(struct redis_link *l, enum link_state next)
{
    assert(link_state_may_follow(l->state, next));
    log_debug("redis_link_state link=%s from=%s to=%s", l->settings.name, link_state_name(l->state),
              link_state_name(next));
    l->state = next;
}

struct redis_link *redis_link_new(const struct link_settings *settings,
                                  const struct link_poller *poller, void *loop,
                                  const struct link_callbacks *callbacks, void *owner)
{
    struct redis_link *l = mem_zalloc(sizeof(*l));
    l->settings = *settings;
    l->poller = poller;
    l->loop = loop;
    l->callbacks = *callbacks;
    l->owner = owner;
    link_route_init(&l->route, settings->address);
    l->report = (struct link_report){.name = settings->name, .address = settings->address};
    l->fd = -1;
    link_retry_init(&l->retry, settings->backoff_max_ms);
    return l;
}

/* Says where it happened, too. */
static void set_text(struct redis_link *l, const char *text)
{
    char at[REDIS_ADDRESS_TEXT_MAX];
    const char *gap = link_route_text(&l->route, at)[0] == '\0' ? "" : ": ";
    (void)snprintf(l->text, sizeof(l->text), "%s%s%.*s", at, gap, LOG_QUOTE_MAX - 1, text);
}

static void open_watch(struct redis_link *l, int fd)
{
    l->fd = fd;
    l->watch = l->poller->open(l->loop, fd, l);
}

/* Everything that belongs to one socket. */
static void close_watch(struct redis_link *l)
{
    if (l->watch != NULL)
        l->poller->close(l->watch);
    l->watch = NULL;
    l->fd = -1;
    l->wants_write = false;
    l->is_paused = false;
    resp_reader_free(l->reader);
    l->reader = NULL;
    link_output_clear(&l->out);
    l->dropped = LINK_FAULT_NONE;
}

void redis_link_free(struct redis_link *l)
{
    if (l == NULL)
        return;
    assert(!l->is_busy);
    close_watch(l);
    link_route_fini(&l->route);
    link_output_fini(&l->out);
    free(l);
}

static void go_down(struct redis_link *l, enum link_fault fault)
{
    bool was_ready = l->state == LINK_READY;
    uint64_t was_ready_ms = was_ready && l->since_ms != 0 ? l->now_ms - l->since_ms : 0;
    link_retry_schedule(&l->retry, fault, was_ready_ms, l->now_ms);
    close_watch(l);
    enter(l, LINK_DOWN);
    (void)link_report_down(&l->report, fault, l->text, l->now_ms);
    if (was_ready)
        l->callbacks.on_down(l->owner, fault);
}

static void want_write(struct redis_link *l)
{
    if (!l->wants_write)
        l->poller->want_write(l->watch);
    l->wants_write = true;
}

/* The next address whose socket does not fail at once; none left: down. l->text tells of the
 * address that failed last. */
static void connect_next(struct redis_link *l)
{
    enter(l, LINK_CONNECTING);
    l->since_ms = 0;
    do {
        int fd = link_route_open(&l->route);
        if (fd != -1) {
            open_watch(l, fd);
            want_write(l);
            return;
        }
        set_text(l, strerror(errno));
    } while (link_route_has_next(&l->route));
    go_down(l, LINK_FAULT_CONNECT);
}

/* The end of this connection, for a reason that stands in l->text. Where Redis itself answered, or
 * the link had been good, the other addresses are not asked. */
static void fail(struct redis_link *l, enum link_fault fault)
{
    bool was_ready = l->state == LINK_READY;
    bool is_elsewhere =
        fault == LINK_FAULT_CONNECT || fault == LINK_FAULT_CLOSED || fault == LINK_FAULT_PROTOCOL;
    if (was_ready || !is_elsewhere || !link_route_has_next(&l->route)) {
        go_down(l, fault);
        return;
    }
    close_watch(l);
    connect_next(l);
}

static void fail_at(struct redis_link *l, enum link_fault fault, const char *text)
{
    set_text(l, text);
    fail(l, fault);
}

/* For what a peer said. */
static void fail_quoting(struct redis_link *l, enum link_fault fault, const char *bytes, size_t len)
{
    char quoted[LOG_QUOTE_MAX];
    fail_at(l, fault, log_quote(quoted, bytes, len));
}

/* Names are resolved anew for each attempt: after a failover they mean another Redis. */
static void start_attempt(struct redis_link *l)
{
    if (!link_route_restart(&l->route)) {
        connect_next(l);
        return;
    }
    enter(l, LINK_RESOLVING);
    l->since_ms = 0;
    int fd = resolver_ask(l->route.address.host, l->route.address.port);
    if (fd == -1)
        fail_at(l, LINK_FAULT_RESOLVE, strerror(errno));
    else
        open_watch(l, fd);
}

static void take_resolution(struct redis_link *l)
{
    struct resolution *r = resolver_take(l->fd);
    if (r == NULL)
        return;
    int error = r->error;
    close_watch(l);
    link_route_give(&l->route, r);
    if (link_route_has_next(&l->route))
        connect_next(l);
    else
        fail_at(l, LINK_FAULT_RESOLVE, gai_strerror(error));
}

static void end_late_attempt(struct redis_link *l)
{
    char text[LOG_QUOTE_MAX];
    (void)snprintf(text, sizeof(text), "still %s after %" PRIu64 " ms", link_state_name(l->state),
                   l->settings.connect_timeout_ms);
    fail_at(l, l->state == LINK_RESOLVING ? LINK_FAULT_RESOLVE : LINK_FAULT_CONNECT, text);
}

/* Waits are measured from the first tick that sees them, so that a loop that was held up ends none
 * too early. */
void redis_link_tick(struct redis_link *l, uint64_t now_ms)
{
    l->now_ms = now_ms;
    if (l->dropped != LINK_FAULT_NONE)
        fail(l, l->dropped);
    else if (l->state == LINK_DOWN && now_ms >= l->retry.due_ms)
        start_attempt(l);
    else if (l->since_ms == 0)
        l->since_ms = now_ms;
    else if (l->state != LINK_DOWN && l->state != LINK_READY &&
             now_ms - l->since_ms >= l->settings.connect_timeout_ms)
        end_late_attempt(l);
}

/* A broken socket is left to the reading side, which may still find Redis' last words there; the
 * next tick ends it anyway. */
static void flush(struct redis_link *l)
{
    if (l->wants_write)
        return;
    enum link_output_result result = link_output_write(&l->out, l->fd);
    if (result == LINK_OUTPUT_WAIT) {
        want_write(l);
    } else if (result == LINK_OUTPUT_FAILED) {
        set_text(l, strerror(errno));
        l->dropped = LINK_FAULT_CLOSED;
    }
}

static void greet(struct redis_link *l)
{
    enter(l, LINK_GREETING);
    l->reader = resp_reader_new(l->settings.max_reply_len);
    l->greeting = link_greeting_start(&l->settings, &l->out.bytes);
    flush(l);
}

static void check_connected(struct redis_link *l)
{
    enum redis_socket_result result = redis_socket_check(l->fd);
    if (result == REDIS_SOCKET_FAILED)
        fail_at(l, LINK_FAULT_CONNECT, strerror(errno));
    else if (result == REDIS_SOCKET_WAIT)
        want_write(l);
    else
        greet(l);
}

static void become_ready(struct redis_link *l)
{
    char at[REDIS_ADDRESS_TEXT_MAX];
    enter(l, LINK_READY);
    l->since_ms = 0;
    link_report_ready(&l->report, link_route_text(&l->route, at), l->now_ms);
    l->callbacks.on_ready(l->owner);
}

static void on_greeting_reply(struct redis_link *l, const struct resp *reply)
{
    enum link_fault fault = link_greeting_take(&l->greeting, &l->settings, reply, &l->out.bytes);
    if (fault != LINK_FAULT_NONE && reply->type == RESP_ERROR)
        fail_quoting(l, fault, reply->text, reply->len);
    else if (fault != LINK_FAULT_NONE)
        fail_at(l, fault, "this is no answer to a greeting");
    else if (l->greeting == GREETING_DONE)
        become_ready(l);
    else
        flush(l);
}

/* Whether to read on: not at this connection's end, and not while paused. */
static bool drain(struct redis_link *l)
{
    const struct resp *reply = NULL;
    enum resp_result result = RESP_MORE;
    while (!l->is_paused && (result = resp_reader_next(l->reader, &reply)) == RESP_OK) {
        if (l->state == LINK_READY)
            l->callbacks.on_reply(l->owner, reply);
        else
            on_greeting_reply(l, reply);
        if (l->reader == NULL)
            return false;
        if (l->dropped != LINK_FAULT_NONE) {
            fail(l, l->dropped);
            return false;
        }
    }
    if (result == RESP_BAD) {
        const char *why = resp_reader_error(l->reader);
        fail_quoting(l, LINK_FAULT_PROTOCOL, why, strlen(why));
    }
    return result == RESP_MORE && !l->is_paused;
}

static void read_some(struct redis_link *l)
{
    char bytes[READ_LEN];
    for (int i = 0; i < READS_A_TURN && !l->is_paused; i++) {
        ssize_t n = recv(l->fd, bytes, sizeof(bytes), 0);
        if (n == 0) {
            fail_at(l, LINK_FAULT_CLOSED, "closed by Redis");
            return;
        }
        if (n == -1) {
            if (errno != EAGAIN && errno != EINTR)
                fail_at(l, LINK_FAULT_CLOSED, strerror(errno));
            return;
        }
        resp_reader_feed(l->reader, bytes, (size_t)n);
        if (!drain(l) || n < (ssize_t)sizeof(bytes))
            return;
    }
}

void redis_link_on_readable(struct redis_link *l)
{
    l->is_busy = true;
    if (l->state == LINK_RESOLVING)
        take_resolution(l);
    else if (l->state == LINK_CONNECTING)
        check_connected(l);
    else if (l->state != LINK_DOWN)
        read_some(l);
    l->is_busy = false;
}

void redis_link_on_writable(struct redis_link *l)
{
    l->wants_write = false;
    if (l->state == LINK_CONNECTING)
        check_connected(l);
    else if (l->state == LINK_GREETING || l->state == LINK_READY)
        flush(l);
}

enum link_state redis_link_state(const struct redis_link *l)
{
    return l->state;
}

bool redis_link_is_ready(const struct redis_link *l)
{
    return l->state == LINK_READY && l->dropped == LINK_FAULT_NONE;
}

bool redis_link_send(struct redis_link *l, const struct resp_arg *args, size_t count)
{
    if (!redis_link_is_ready(l))
        return false;
    resp_append_command(&l->out.bytes, args, count);
    flush(l);
    if (redis_link_unsent(l) <= l->settings.max_output_len)
        return true;
    set_text(l, "takes commands too slowly");
    l->dropped = LINK_FAULT_OVERFLOW;
    return false;
}

size_t redis_link_unsent(const struct redis_link *l)
{
    return link_output_unsent(&l->out);
}

void redis_link_drop(struct redis_link *l, enum link_fault fault)
{
    if (l->state == LINK_DOWN)
        return;
    set_text(l, "given up by its owner");
    if (l->is_busy)
        l->dropped = fault;
    else
        fail(l, fault);
}

void redis_link_pause(struct redis_link *l, bool is_paused)
{
    l->is_paused = is_paused;
    if (is_paused || l->state != LINK_READY)
        return;
    l->is_busy = true;
    (void)drain(l);
    l->is_busy = false;
}

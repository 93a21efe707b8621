#include "tests/bench/swarm.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "tests/bench/scanner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_A_TURN = 256,
    UNDER_WAY_MAX = 512, /* below the listener's backlog, so that no connect is ever lost there */
    SOURCES = 8,         /* 127.0.0.2 and on: each has its own range of ports */
    READ_LEN = 65536,
    SETTLE_MS = 30000,
    STATUS_LEN = 12, /* HTTP/1.1 200 */
    HEAD_END_LEN = 4
};

enum connection_state { CONNECTING, HEAD, OPEN, CLOSED };

struct connection {
    int fd;
    uint8_t state;
    uint8_t status_seen;   /* bytes of the expected status line that came */
    uint8_t head_end_seen; /* bytes of the empty line that came */
    bool has_seq;
    uint64_t last_seq;
    struct scanner scanner;
};

struct swarm {
    struct swarm_settings settings;
    const char *status;
    int epoll;
    size_t started;
    size_t under_way;
    uint64_t opening_since_ms;
    size_t opening_from;
    uint64_t deadline_ms;
    struct swarm_counts counts;
    struct connection *connections;
    struct connection *reading; /* whose bytes are in the buffer */
    char buffer[SCANNER_CARRY_MAX + READ_LEN];
};

struct swarm *swarm_new(const struct swarm_settings *settings)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll == -1)
        return NULL;
    struct swarm *s = mem_zalloc(sizeof(*s));
    s->settings = *settings;
    s->status = settings->websocket ? "HTTP/1.1 101" : "HTTP/1.1 200";
    s->epoll = epoll;
    s->connections = mem_zalloc(settings->max_connections * sizeof(*s->connections));
    return s;
}

void swarm_free(struct swarm *s)
{
    for (size_t i = 0; i < s->started; i++) {
        if (s->connections[i].state != CLOSED)
            (void)close(s->connections[i].fd);
    }
    (void)close(s->epoll);
    free(s->connections);
    free(s);
}

int swarm_fd(const struct swarm *s)
{
    return s->epoll;
}

const struct swarm_counts *swarm_counts(const struct swarm *s)
{
    return &s->counts;
}

void swarm_restart(struct swarm *s)
{
    struct swarm_counts *c = &s->counts;
    *c = (struct swarm_counts){
        .wanted = c->wanted, .open = c->open, .failed = c->failed, .dropped = c->dropped};
}

bool swarm_is_settled(const struct swarm *s)
{
    return s->started == s->counts.wanted && s->under_way == 0;
}

void swarm_open(struct swarm *s, size_t count)
{
    size_t room = s->settings.max_connections - s->counts.wanted;
    s->counts.wanted += count < room ? count : room;
    s->opening_from = s->started;
    s->opening_since_ms = clock_mono_ms();
    s->deadline_ms = s->opening_since_ms + SETTLE_MS + count * 1000 / s->settings.rate;
}

static void enter(struct swarm *s, struct connection *c, enum connection_state next)
{
    if (next == OPEN) {
        s->counts.open++;
        s->under_way--;
    } else if (next == CLOSED && c->state == OPEN) {
        s->counts.open--;
        s->counts.dropped++;
    } else if (next == CLOSED) {
        s->counts.failed++;
        s->under_way--;
    }
    c->state = (uint8_t)next;
}

static void close_connection(struct swarm *s, struct connection *c)
{
    if (c->fd != -1)
        (void)close(c->fd);
    c->fd = -1;
    enter(s, c, CLOSED);
}

/* Closing resets the connection: thousands in TIME_WAIT would disturb the next run. */
static int socket_from(size_t number)
{
    static const struct linger reset = {.l_onoff = 1};
    int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET,
                                 .sin_addr.s_addr =
                                     htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % SOURCES))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == -1 ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == -1 ||
        bind(fd, (const struct sockaddr *)&source, sizeof(source)) == -1) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool connect_one(struct swarm *s, struct connection *c, size_t number)
{
    const struct sockaddr_in *server = &s->settings.server;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
    c->fd = socket_from(number);
    if (c->fd == -1)
        return false;
    if (connect(c->fd, (const struct sockaddr *)server, sizeof(*server)) == -1 &&
        errno != EINPROGRESS)
        return false;
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

static size_t due(const struct swarm *s)
{
    uint64_t elapsed_ms = clock_mono_ms() - s->opening_since_ms;
    size_t allowed = s->opening_from + 1 + elapsed_ms * s->settings.rate / 1000;
    return allowed < s->counts.wanted ? allowed : s->counts.wanted;
}

static void start_due(struct swarm *s)
{
    for (size_t end = due(s); s->started < end && s->under_way < UNDER_WAY_MAX; s->started++) {
        struct connection *c = &s->connections[s->started];
        s->under_way++;
        if (!connect_one(s, c, s->started)) {
            log_errno("connect_failed");
            close_connection(s, c);
        }
    }
}

static void append_request(struct swarm *s, struct buf *out, size_t number)
{
    const struct swarm_settings *o = &s->settings;
    buf_printf(out, "GET %s", o->path);
    for (size_t i = 0; i < o->channels_each; i++)
        buf_printf(out, "%cchannel=%s%zu", i == 0 ? '?' : '&', o->channel,
                   number * o->channels_each + i);
    buf_append_text(out, " HTTP/1.1\r\nHost: bench\r\n");
    buf_append_text(out, o->websocket ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                        "Sec-WebSocket-Version: 13\r\n"
                                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                                      : "Accept: text/event-stream\r\n\r\n");
}

static void on_connected(struct swarm *s, struct connection *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    struct buf request = {0};
    append_request(s, &request, (size_t)(c - s->connections));
    ssize_t sent = send(c->fd, request.bytes, request.len, MSG_NOSIGNAL);
    bool ok =
        sent == (ssize_t)request.len && epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
    buf_fini(&request);
    if (ok)
        enter(s, c, HEAD);
    else
        close_connection(s, c);
}

/* Returns how many of the bytes belong to the head; all of them while it has not ended. */
static size_t read_head(struct swarm *s, struct connection *c, const char *bytes, size_t len)
{
    static const char head_end[] = "\r\n\r\n";
    for (size_t i = 0; i < len; i++) {
        if (c->status_seen < STATUS_LEN && bytes[i] != s->status[c->status_seen++]) {
            close_connection(s, c);
            return len;
        }
        if (bytes[i] == head_end[c->head_end_seen])
            c->head_end_seen++;
        else
            c->head_end_seen = bytes[i] == head_end[0];
        if (c->head_end_seen == HEAD_END_LEN) {
            enter(s, c, OPEN);
            return i + 1;
        }
    }
    return len;
}

static void on_tick(void *owner, uint64_t seq, uint64_t t_ns)
{
    struct swarm *s = owner;
    struct connection *c = s->reading;
    struct swarm_counts *counts = &s->counts;
    uint64_t now_ns = clock_wall_ns();
    histogram_record(&counts->latency_us, now_ns > t_ns ? (now_ns - t_ns) / 1000 : 0);
    counts->ticks++;
    if (t_ns > counts->last_t_ns)
        counts->last_t_ns = t_ns;
    if (c->has_seq && seq <= c->last_seq)
        counts->doubled++;
    else if (c->has_seq)
        counts->skipped += seq - c->last_seq - 1;
    c->has_seq = true;
    c->last_seq = seq;
}

static void take(struct swarm *s, struct connection *c, char *bytes, size_t len)
{
    size_t head = c->state == HEAD ? read_head(s, c, bytes, len) : 0;
    if (c->state != OPEN)
        return;
    s->counts.bytes += len - head;
    s->reading = c;
    scanner_feed(&c->scanner, bytes + head, len - head, on_tick, s);
}

/* Edge-triggered: reads until less came than there was room for, or to the end if there is one. */
static void on_readable(struct swarm *s, struct connection *c, bool ended)
{
    char *bytes = s->buffer + SCANNER_CARRY_MAX;
    ssize_t n = READ_LEN;
    while ((n == READ_LEN || ended) && c->state != CLOSED) {
        n = recv(c->fd, bytes, READ_LEN, 0);
        if (n > 0)
            take(s, c, bytes, (size_t)n);
        else if (n == 0 || ended || errno != EAGAIN)
            close_connection(s, c);
    }
}

static void expire(struct swarm *s)
{
    if (s->under_way == 0 || clock_mono_ms() < s->deadline_ms)
        return;
    for (size_t i = 0; i < s->started; i++) {
        if (s->connections[i].state == CONNECTING || s->connections[i].state == HEAD)
            close_connection(s, &s->connections[i]);
    }
    s->counts.failed += s->counts.wanted - s->started;
    s->counts.wanted = s->started;
}

void swarm_turn(struct swarm *s)
{
    struct epoll_event events[EVENTS_A_TURN];
    start_due(s);
    int count = epoll_wait(s->epoll, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (c->state == CONNECTING)
            on_connected(s, c);
        else
            on_readable(s, c, (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    }
    expire(s);
}

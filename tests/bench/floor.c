/* The floor: the least that a server can do for the same ticks. One epoll loop, one Redis channel,
 * one send() of the same bytes for each socket, nothing else. What a gateway costs is measured
 * beside it.
 *
 *   bench-floor REDIS_SOCKET CHANNEL
 *
 * Listens on a free port of 127.0.0.1 and logs `listening address=127.0.0.1:<port>`. Any request is
 * answered with a stream of events. */
#include "common/envelope.h"
#include "common/log.h"
#include "common/resp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FDS_MAX = 1 << 20, EVENTS_A_TURN = 256, ACCEPTS_A_TURN = 64, BACKLOG = 4096 };
enum { READ_LEN = 65536, REPLY_MAX = 1 << 20 };
enum { NOT_ASKED = -1, GONE = -2 };

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Cache-Control: no-cache\r\nConnection: close\r\n\r\n";

/* Every descriptor but these three is a client's. */
struct floor_server {
    int epoll;
    int listener;
    int redis;
    size_t client_count;
    int *clients;  /* those that get the ticks */
    int *position; /* by descriptor: in clients, NOT_ASKED or GONE */
    struct resp_reader *reader;
    char buffer[READ_LEN];
};

static bool watch(struct floor_server *f, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1 || bind(fd, (const struct sockaddr *)&address, len) == -1 ||
        listen(fd, BACKLOG) == -1 || getsockname(fd, (struct sockaddr *)&address, &len) == -1)
        return -1;
    log_info("listening address=127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static int connect_redis(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == -1)
        return -1;
    return fd;
}

static bool subscribe(int redis, const char *channel)
{
    struct resp_arg args[] = {resp_text("SUBSCRIBE"), resp_text(channel)};
    struct buf command = {0};
    resp_append_command(&command, args, 2);
    bool sent = send(redis, command.bytes, command.len, MSG_NOSIGNAL) == (ssize_t)command.len;
    buf_fini(&command);
    return sent;
}

static void end_client(struct floor_server *f, int fd)
{
    int at = f->position[fd];
    f->position[fd] = GONE;
    if (at != NOT_ASKED) {
        int last = f->clients[--f->client_count];
        f->clients[at] = last;
        if (last != fd)
            f->position[last] = at;
    }
    (void)close(fd);
}

static void on_accept(struct floor_server *f)
{
    int on = 1;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd == -1)
            return;
        if (fd >= FDS_MAX || !watch(f, fd) ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1) {
            (void)close(fd);
            continue;
        }
        f->position[fd] = NOT_ASKED;
    }
}

/* This turn's events may name a client that an earlier one of them has ended. */
static void on_client(struct floor_server *f, int fd)
{
    if (f->position[fd] == GONE)
        return;
    ssize_t n = recv(fd, f->buffer, sizeof(f->buffer), 0);
    if (n == 0 || (n == -1 && errno != EAGAIN)) {
        end_client(f, fd);
    } else if (n > 0 && f->position[fd] == NOT_ASKED) {
        f->position[fd] = (int)f->client_count;
        f->clients[f->client_count++] = fd;
        (void)send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
    }
}

static void append_event(struct buf *out, const struct message_parts *parts)
{
    char id[ID_TEXT_MAX];
    if (parts->has_id) {
        (void)id_format(&parts->id, id);
        buf_printf(out, "id: %s\n", id);
    }
    buf_append_text(out, "data: ");
    buf_append(out, parts->payload, parts->payload_len);
    buf_append_text(out, "\n\n");
}

/* A client that can't take it all loses its connection: there is no backlog here. */
static void on_message(struct floor_server *f, const struct resp *payload)
{
    struct message_parts parts = {0};
    struct buf event = {0};
    if (envelope_open(&parts, payload->text, payload->len, REPLY_MAX) != ENVELOPE_OK)
        return;
    append_event(&event, &parts);
    for (size_t i = 0; i < f->client_count;) {
        int fd = f->clients[i];
        if (send(fd, event.bytes, event.len, MSG_NOSIGNAL) == (ssize_t)event.len)
            i++;
        else
            end_client(f, fd);
    }
    buf_fini(&event);
}

static bool on_redis(struct floor_server *f)
{
    const struct resp *reply = NULL;
    ssize_t n = recv(f->redis, f->buffer, sizeof(f->buffer), 0);
    if (n <= 0)
        return false;
    resp_reader_feed(f->reader, f->buffer, (size_t)n);
    enum resp_result result;
    while ((result = resp_reader_next(f->reader, &reply)) == RESP_OK) {
        if (reply->type == RESP_ARRAY && reply->count == 3 &&
            resp_is(reply->elements[0], "message"))
            on_message(f, reply->elements[2]);
    }
    return result == RESP_MORE;
}

static void run(struct floor_server *f)
{
    struct epoll_event events[EVENTS_A_TURN];
    for (;;) {
        int count = epoll_wait(f->epoll, events, EVENTS_A_TURN, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == f->listener)
                on_accept(f);
            else if (events[i].data.fd != f->redis)
                on_client(f, events[i].data.fd);
            else if (!on_redis(f))
                return;
        }
    }
}

static void raise_file_limit(void)
{
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

int main(int argc, char **argv)
{
    static struct floor_server f;
    log_set_name("bench-floor");
    if (argc != 3) {
        (void)fputs("usage: bench-floor REDIS_SOCKET CHANNEL\n", stderr);
        return 2;
    }
    raise_file_limit();
    f.epoll = epoll_create1(EPOLL_CLOEXEC);
    f.redis = connect_redis(argv[1]);
    f.reader = resp_reader_new(REPLY_MAX);
    f.clients = calloc(FDS_MAX, sizeof(*f.clients));
    f.position = calloc(FDS_MAX, sizeof(*f.position));
    f.listener = listen_anywhere();
    if (f.redis == -1 || f.listener == -1 || !subscribe(f.redis, argv[2]) ||
        !watch(&f, f.listener) || !watch(&f, f.redis) || f.clients == NULL || f.position == NULL) {
        log_errno("start_failed");
        return 1;
    }
    run(&f);
    log_error("redis_link_ended");
    return 1;
}

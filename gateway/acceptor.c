#include "gateway/acceptor.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* So that messages keep their turn while very many connect. */
enum { ACCEPTS_A_TURN = 64, BACKLOG_MAX = 4096 };

struct acceptor {
    h2o_accept_ctx_t ctx;
    h2o_socket_t *listener; /* NULL: closed */
    uint64_t max_sockets;
    uint64_t open_sockets;
    int reserve; /* given up for a moment to accept, and refuse, when descriptors run out */
    bool is_paused;
    struct log_limit files_limit, connections_limit;
};

static void on_socket_closed(void *data)
{
    struct acceptor *a = data;
    a->open_sockets--;
    stats_sub(STAT_sockets, 1);
}

/* Before any byte was read: whatever the request is, the answer is the same. */
static void refuse(int fd, const char *code)
{
    char answer[256], body[96];
    int body_len = snprintf(body, sizeof(body),
                            "{\"error\":\"%s\",\"message\":\"Come again later.\"}\n", code);
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                       "Retry-After: 5\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
                       body_len, body);
    ssize_t sent = send(fd, answer, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* it was told as well as it could be */
    (void)shutdown(fd, SHUT_WR);
    char request[4096]; /* unread bytes would turn the close into a reset that overtakes the answer
                         */
    while (recv(fd, request, sizeof(request), MSG_DONTWAIT) > 0)
        continue;
}

static void refuse_for_limit(struct acceptor *a, h2o_socket_t *sock)
{
    uint64_t suppressed;
    stats_add(STAT_refused_connections, 1);
    if (log_allowed(&a->connections_limit, &suppressed))
        log_warn("connection_refused reason=max_connections limit=%" PRIu64 " suppressed=%" PRIu64,
                 a->max_sockets, suppressed);
    refuse(h2o_socket_get_fd(sock), "max_connections");
    h2o_socket_close(sock);
}

/* Out of descriptors: without the reserve, the listening socket would stay readable and the loop
 * would spin. */
static void refuse_for_files(struct acceptor *a)
{
    uint64_t suppressed;
    stats_add(STAT_refused_files, 1);
    if (log_allowed(&a->files_limit, &suppressed))
        log_error("connection_refused reason=open_files suppressed=%" PRIu64, suppressed);
    (void)close(a->reserve);
    int fd = accept4(h2o_socket_get_fd(a->listener), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd != -1) {
        refuse(fd, "open_files");
        (void)close(fd);
    }
    a->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (a->reserve != -1)
        return;
    a->is_paused = true;
    h2o_socket_read_stop(a->listener);
}

static void admit(struct acceptor *a, h2o_socket_t *sock)
{
    a->open_sockets++;
    stats_add(STAT_sockets, 1);
    sock->on_close.cb = on_socket_closed;
    sock->on_close.data = a;
    h2o_accept(&a->ctx, sock);
}

/* False: nothing more to take now. */
static bool accept_one(struct acceptor *a)
{
    h2o_socket_t *sock = h2o_evloop_socket_accept(a->listener);
    if (sock != NULL && a->open_sockets < a->max_sockets) {
        admit(a, sock);
        return true;
    }
    if (sock != NULL) {
        refuse_for_limit(a, sock);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        refuse_for_files(a);
    return errno == ECONNABORTED || errno == EPROTO || errno == EINTR;
}

static void accept_some(struct acceptor *a, int most)
{
    while (most-- > 0 && accept_one(a))
        continue;
}

static void on_acceptable(h2o_socket_t *listener, const char *err)
{
    (void)err;
    accept_some(listener->data, ACCEPTS_A_TURN);
}

struct acceptor *acceptor_open(h2o_context_t *ctx, int fd, uint64_t max_sockets)
{
    struct acceptor *a = mem_zalloc(sizeof(*a));
    a->ctx.ctx = ctx;
    a->ctx.hosts = ctx->globalconf->hosts;
    a->max_sockets = max_sockets;
    a->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    a->listener = h2o_evloop_socket_create(ctx->loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    a->listener->data = a;
    h2o_socket_read_start(a->listener, on_acceptable);
    return a;
}

void acceptor_tick(struct acceptor *a)
{
    if (!a->is_paused || a->listener == NULL)
        return;
    a->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (a->reserve == -1)
        return;
    a->is_paused = false;
    h2o_socket_read_start(a->listener, on_acceptable);
}

void acceptor_close(struct acceptor *a)
{
    if (a->listener == NULL)
        return;
    accept_some(a, BACKLOG_MAX);
    h2o_socket_close(a->listener);
    a->listener = NULL;
}

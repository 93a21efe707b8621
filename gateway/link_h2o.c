#include "gateway/link_h2o.h"

#include <h2o.h>

/* The watch is h2o's socket itself; DONT_READ makes it tell readiness, level-triggered, and leave
 * the reading to the link. */

static void on_readable(h2o_socket_t *sock, const char *err)
{
    (void)err; /* the link's own read() finds out */
    redis_link_on_readable(sock->data);
}

static void on_writable(h2o_socket_t *sock, const char *err)
{
    (void)err;
    redis_link_on_writable(sock->data);
}

static void *watch_open(void *loop, int fd, struct redis_link *link)
{
    h2o_socket_t *sock = h2o_evloop_socket_create(loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    sock->data = link;
    h2o_socket_read_start(sock, on_readable);
    return sock;
}

static void watch_want_write(void *watch)
{
    h2o_socket_t *sock = watch;
    if (!h2o_socket_is_writing(sock))
        h2o_socket_notify_write(sock, on_writable);
}

static void watch_close(void *watch)
{
    h2o_socket_close(watch);
}

const struct link_poller link_h2o_poller = {
    .open = watch_open,
    .want_write = watch_want_write,
    .close = watch_close,
};

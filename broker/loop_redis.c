#include "broker/loop_redis.h"

#include "common/mem.h"

#include <ev.h>
#include <stdlib.h>
#include <unistd.h>

struct watch {
    struct ev_loop *loop;
    struct redis_link *link;
    ev_io reads;
    ev_io writes; /* one-shot: started by want_write, stopped by its event */
};

/* The link may close the watch in either of these: nothing of it is touched after the call. */
static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    struct watch *w = io->data;
    (void)loop;
    (void)events;
    redis_link_on_readable(w->link);
}

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
    struct watch *w = io->data;
    (void)events;
    ev_io_stop(loop, io);
    redis_link_on_writable(w->link);
}

static void *open_watch(void *loop, int fd, struct redis_link *link)
{
    struct watch *w = mem_zalloc(sizeof(*w));
    w->loop = loop;
    w->link = link;
    ev_io_init(&w->reads, on_readable, fd, EV_READ);
    ev_io_init(&w->writes, on_writable, fd, EV_WRITE);
    w->reads.data = w;
    w->writes.data = w;
    ev_io_start(w->loop, &w->reads);
    return w;
}

static void want_write(void *watch)
{
    struct watch *w = watch;
    ev_io_start(w->loop, &w->writes);
}

/* ev_io_stop also takes back an event of this turn that was not delivered yet. */
static void close_watch(void *watch)
{
    struct watch *w = watch;
    ev_io_stop(w->loop, &w->reads);
    ev_io_stop(w->loop, &w->writes);
    (void)close(w->reads.fd);
    free(w);
}

const struct link_poller loop_redis_poller = {
    .open = open_watch,
    .want_write = want_write,
    .close = close_watch,
};

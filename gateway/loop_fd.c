#include "gateway/loop_fd.h"

#include <assert.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static h2o_socket_t *watch(h2o_loop_t *loop, int fd, void *data, h2o_socket_cb on_readable)
{
    assert(fd != -1);
    h2o_socket_t *sock = h2o_evloop_socket_create(loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    sock->data = data;
    h2o_socket_read_start(sock, on_readable);
    return sock;
}

/* Takes what made the descriptor readable. */
static void drain(h2o_socket_t *sock, void *into, size_t len)
{
    ssize_t n = read(h2o_socket_get_fd(sock), into, len);
    (void)n; /* nothing there is as good */
}

static void on_flag(h2o_socket_t *sock, const char *err)
{
    struct loop_flag *f = sock->data;
    (void)err;
    f->run(f->owner);
}

void loop_flag_init(struct loop_flag *f, h2o_loop_t *loop, void (*run)(void *owner), void *owner)
{
    *f = (struct loop_flag){.run = run, .owner = owner};
    f->sock = watch(loop, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), f, on_flag);
}

void loop_flag_raise(struct loop_flag *f)
{
    if (f->is_raised)
        return;
    f->is_raised = true;
    int failed = eventfd_write(h2o_socket_get_fd(f->sock), 1);
    assert(!failed);
}

void loop_flag_lower(struct loop_flag *f)
{
    uint64_t count;
    f->is_raised = false;
    drain(f->sock, &count, sizeof(count));
}

static void on_ticker(h2o_socket_t *sock, const char *err)
{
    struct loop_ticker *t = sock->data;
    uint64_t expirations;
    (void)err;
    drain(sock, &expirations, sizeof(expirations));
    t->run(t->owner);
}

void loop_ticker_init(struct loop_ticker *t, h2o_loop_t *loop, unsigned interval_ms,
                      void (*run)(void *owner), void *owner)
{
    const struct timespec interval = {interval_ms / 1000, (long)(interval_ms % 1000) * 1000000};
    const struct itimerspec spec = {interval, interval};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int failed = timerfd_settime(fd, 0, &spec, NULL);
    assert(!failed);
    *t = (struct loop_ticker){.run = run, .owner = owner};
    t->sock = watch(loop, fd, t, on_ticker);
}

static void on_signal(h2o_socket_t *sock, const char *err)
{
    struct loop_signal *s = sock->data;
    struct signalfd_siginfo info;
    (void)err;
    drain(sock, &info, sizeof(info));
    s->run(s->owner);
}

void loop_signal_init(struct loop_signal *s, h2o_loop_t *loop, void (*run)(void *owner),
                      void *owner)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    *s = (struct loop_signal){.run = run, .owner = owner};
    s->sock = watch(loop, signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), s, on_signal);
}

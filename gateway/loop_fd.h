/* loop_fd: kernel objects that wake h2o's loop, so that all work happens inside its callbacks. */
#pragma once

#include <h2o.h>
#include <stdbool.h>

/* An eventfd: while it is raised, the callback runs once in every turn. */
struct loop_flag {
    h2o_socket_t *sock;
    void (*run)(void *owner);
    void *owner;
    bool is_raised;
};
void loop_flag_init(struct loop_flag *f, h2o_loop_t *loop, void (*run)(void *owner), void *owner);
void loop_flag_raise(struct loop_flag *f);
void loop_flag_lower(struct loop_flag *f);

/* A timerfd on the monotonic clock. */
struct loop_ticker {
    h2o_socket_t *sock;
    void (*run)(void *owner);
    void *owner;
};
void loop_ticker_init(struct loop_ticker *t, h2o_loop_t *loop, unsigned interval_ms,
                      void (*run)(void *owner), void *owner);

/* A signalfd for SIGTERM and SIGINT, which must be blocked. */
struct loop_signal {
    h2o_socket_t *sock;
    void (*run)(void *owner);
    void *owner;
};
void loop_signal_init(struct loop_signal *s, h2o_loop_t *loop, void (*run)(void *owner),
                      void *owner);

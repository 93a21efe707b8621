/* swarm: very many client connections to one server, all listening for ticks.
 *
 * A connection goes CONNECTING, HEAD (the request is sent, the answer's head is being read), OPEN,
 * CLOSED. One that closes before OPEN has failed, one that closes after it was dropped. */
#pragma once

#include "tests/bench/histogram.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct swarm;

struct swarm_settings {
    struct sockaddr_in server;
    bool websocket;
    const char *path;     /* of the request, with its query */
    size_t rate;          /* connects a second */
    size_t channels_each; /* if not 0: as many `channel=` are added to the path, and no two */
    const char *channel;  /* connections ask for the same; named this and a running number */
    size_t max_connections;
};

/* Since the last swarm_restart, but for the first four, which are since the beginning. */
struct swarm_counts {
    size_t wanted;
    size_t open; /* now */
    size_t failed;
    size_t dropped;
    uint64_t ticks;
    uint64_t bytes;
    uint64_t doubled; /* ticks that a connection had already, or that were older than its last */
    uint64_t skipped; /* numbers missing between a connection's ticks */
    uint64_t last_t_ns;
    struct histogram latency_us; /* from a tick's own time to its arrival here, wall clock */
};

/* NULL with errno. Borrows the settings' strings. */
struct swarm *swarm_new(const struct swarm_settings *settings);
void swarm_free(struct swarm *s);
/* Opens `count` more, at most up to max_connections. */
void swarm_open(struct swarm *s, size_t count);
/* Whether all that were wanted are open or have failed. Those that are still under way 30 s after
 * their turn to connect have failed. */
bool swarm_is_settled(const struct swarm *s);
/* To be polled for reading between turns. */
int swarm_fd(const struct swarm *s);
/* Starts connections that are due and reads what is there. Never waits. */
void swarm_turn(struct swarm *s);
void swarm_restart(struct swarm *s);
const struct swarm_counts *swarm_counts(const struct swarm *s);

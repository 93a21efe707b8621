/* streams: all streams of a worker: their heartbeats, and the end of those that were closed. */
#pragma once

#include "common/config.h"
#include "gateway/hub/hub.h"
#include "gateway/transport/stream.h"
#include "gateway/wheel.h"

#include <stdint.h>

enum { SCRATCH_LEN = 16 * 1024 };

struct streams {
    const struct config *config;
    struct hub *hub;
    struct wheel *wheel;
    struct sweep rota; /* of struct stream: whose heartbeat is next */
    struct stream *closing;
    uint64_t tick_ms;
    uint64_t visits_due; /* in thousandths, kept between ticks */
    bool is_shutting_down;
    char scratch[SCRATCH_LEN]; /* what a client sent, for the length of a callback */
};

struct streams *streams_new(const struct config *config, struct hub *hub, struct wheel *wheel);
void streams_add(struct streams *all, struct stream *s);
/* Every 100 ms: heartbeats, spread evenly over the streams and the interval. */
void streams_tick(struct streams *all, uint64_t now_ms);
/* Once a turn: frees what was closed. */
void streams_reap(struct streams *all);
/* Ends every stream: a WebSocket with 1001, an SSE stream at once; its client comes back with the
 * last id that it got whole. */
void streams_shut_down(struct streams *all);

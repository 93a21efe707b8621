/* channel: who listens to it, and its last messages. */
#pragma once

#include "common/config.h"
#include "gateway/backplane/backplane.h"
#include "gateway/hub/frames.h"
#include "gateway/hub/ring.h"
#include "gateway/hub/sweep.h"

#include <stdbool.h>
#include <uthash.h>

struct hub;
struct stream;
struct channel;

/* One stream on one channel; embedded in the stream, or on its list of further ones. */
struct subscription {
    struct channel *channel; /* NULL: not in use */
    struct stream *stream;
    struct subscription *next; /* of the same stream */
    uint64_t cursor;           /* what it wants next of the channel's ring */
    uint32_t index;            /* in the channel's sweep */
};

/* A place on one of the hub's lists of channels; NULL neighbours when on none. */
struct channel_node {
    struct channel_node *prev, *next;
    uint64_t since_ms;
};

/* Messages of a channel's ring, counted when they came. */
struct backlog {
    uint64_t messages;
    size_t bytes;
};

struct channel {
    struct hub *hub;
    const struct namespace_config *settings;
    struct topic topic;
    struct ring ring;
    struct sweep subscribers;    /* of struct subscription */
    struct channel_node idle;    /* nobody listens, since when */
    struct channel_node unready; /* what is published may not arrive, since when */
    struct channel *next_dirty;
    struct id last_id;
    struct backlog unswept;    /* not offered to every subscriber yet */
    struct backlog this_round; /* of them, what came after this round of the sweep began */
    bool is_crowded;           /* holds the backplane up, see channel_is_crowding */
    bool dirty;                /* on the hub's list of channels to sweep */
    bool sweep_again;          /* a message came after this round began */
    UT_hash_handle hh;
    char name[]; /* NUL-terminated */
};

/* Not in any table or list yet. */
struct channel *channel_new(struct hub *hub, const struct namespace_config *settings,
                            const struct ring_limits *limits, struct shelf *shelf, const char *name,
                            size_t len);
/* Nobody may listen to it any more. */
void channel_free(struct channel *c);

/* Into the ring. Takes the reference. */
void channel_append_take(struct channel *c, struct message *m, uint64_t now_ms);
/* Whether so much is unswept that more would push it out of the ring before anybody was offered
 * it. */
bool channel_is_crowding(const struct channel *c);
/* Begins a round of the sweep: at its end every subscriber was offered what is in the ring now. */
void channel_begin_round(struct channel *c);
/* The subscription's cursor starts at the head: it gets what comes from now on. */
void channel_join(struct channel *c, struct subscription *sub, struct stream *stream);
void channel_leave(struct subscription *sub);
/* Flushes up to `budget` streams of the current round. Returns how many it took; *done says whether
 * every cursor is at the head or its stream is blocked. */
unsigned channel_sweep(struct channel *c, unsigned budget, bool *done);
/* Whether a stream of several channels must wait for this one (design of positions:
 * docs/protocol.md): it is not subscribed yet, and that not for long. */
bool channel_holds_streams(const struct channel *c);
struct frame_context channel_frame_context(const struct channel *c);

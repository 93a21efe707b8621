/* backplane: where messages come from and go to; the interface that hides Redis.
 *
 * The hub wants topics and unwants them; the backplane reports what it has, and hands in what was
 * published. Everything is called on the worker's loop. */
#pragma once

#include "common/config.h"
#include "common/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*        want          batch         reply
 *   OFF -----> ASKING -------> ASKED ------> ON
 *    ^            ^   refused   |             | unwant
 *    |            +--- DENIED <-+             |
 *    +-------- LEAVING <------- LEAVE <-------+
 *      reply            batch
 *
 * A link that goes down puts every wanted topic back to ASKING and every other one to OFF. */
enum topic_state {
    TOPIC_OFF,
    TOPIC_ASKING, /* to be subscribed by the next batch */
    TOPIC_ASKED,  /* waits for the reply */
    TOPIC_DENIED, /* the server refused; asked again later */
    TOPIC_ON,     /* everything published from here on arrives */
    TOPIC_LEAVE,  /* to be unsubscribed by the next batch */
    TOPIC_LEAVING,
    TOPIC_STATES
};

/* A channel as the backplane sees it; embedded in the hub's channel. */
struct topic {
    struct topic *prev, *next; /* the list of its state */
    const char *name;          /* the channel's, without prefix; the embedder's memory */
    uint16_t len;
    uint8_t state; /* enum topic_state */
    bool wanted;
};

struct backplane_events {
    struct topic *(*find)(void *owner, const char *channel, size_t len);
    /* Takes the reference. */
    void (*on_message)(void *owner, struct topic *topic, struct message *m);
    /* It is ON now. */
    void (*on_ready)(void *owner, struct topic *topic);
    /* It was ON, and the link is gone. */
    void (*on_lost)(void *owner, struct topic *topic);
    /* It is OFF and not wanted: the embedder may free it, in this call too. */
    void (*on_off)(void *owner, struct topic *topic);
    /* Everything up to this id has been handed in. */
    void (*on_position)(void *owner, const struct id *position);
};

/* What is to be published; borrowed for the call. Texts that are absent have length 0. */
struct publication {
    const char *channel, *payload, *event, *key, *idempotency_key;
    size_t channel_len, payload_len, event_len, key_len, idempotency_key_len;
};

/* `status` as in HTTP. 200: `id` is the message's. Else `code` is one of the stable error codes of
 * docs/protocol.md and `message` says more; both live until the callback returns. */
struct publish_outcome {
    int status;
    const char *code;
    const char *message;
    struct id id;
};
typedef void (*publish_cb)(void *owner, const struct publish_outcome *outcome);

struct backplane;

struct backplane_ops {
    /* Both are cheap and idempotent; a topic that is wanted again before its end stays. */
    void (*want)(struct backplane *b, struct topic *topic);
    void (*unwant)(struct backplane *b, struct topic *topic);
    /* Sends the batches that want and unwant made due. */
    void (*flush)(struct backplane *b);
    /* Hands in nothing more until resume, which may do so before it returns; for moments only. */
    void (*pause)(struct backplane *b);
    void (*resume)(struct backplane *b);
    /* Calls back exactly once, perhaps before it returns. */
    void (*publish)(struct backplane *b, const struct publication *p, publish_cb cb, void *owner);
    /* Every 100 ms. */
    void (*tick)(struct backplane *b, uint64_t now_ms);
    /* Whether what is published now will arrive. */
    bool (*is_ready)(const struct backplane *b);
    void (*free)(struct backplane *b);
};

/* Embedded first in each implementation. */
struct backplane {
    const struct backplane_ops *ops;
    const struct backplane_events *events;
    void *owner;
};

struct backplane *backplane_memory_new(const struct config *config,
                                       const struct backplane_events *events, void *owner);
/* `worker` numbers this worker among those of its gateway. */
struct backplane *backplane_redis_new(const struct config *config, void *loop, unsigned worker,
                                      const struct backplane_events *events, void *owner);

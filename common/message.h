/* message: what was published, once for all who get it. Immutable but for its cached frames. */
#pragma once

#include "common/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame;
struct ring;

/* The forms in which a message goes out; each is made once, on first use (gateway/hub/frames). */
enum frame_kind { FRAME_SSE, FRAME_WS_JSON, FRAME_WS_RAW, FRAME_KINDS };

/* One allocation, reference-counted, for one process. `event` and `key` are empty when absent. */
struct message {
    uint32_t refs;
    bool has_id;    /* plain messages have none */
    bool sequenced; /* a sequencer's copy of a plain message */
    struct id id;
    struct id prev; /* the id before it in its channel; zero if not told */
    struct frame *frames[FRAME_KINDS];
    /* For the ring that holds it (gateway/hub/ring): its place among all of the process. */
    struct message *older, *newer;
    struct ring *ring;
    uint64_t order;      /* of arrival in this process, over all channels */
    uint64_t arrived_ms; /* monotonic */
    const char *event;   /* these three point into bytes */
    const char *key;
    const char *payload;
    uint32_t event_len;
    uint32_t key_len;
    uint32_t payload_len;
    char bytes[];
};

/* What a message is made of; borrowed. */
struct message_parts {
    bool has_id;
    bool sequenced;
    struct id id;
    struct id prev;
    const char *event;
    const char *key;
    const char *payload;
    size_t event_len;
    size_t key_len;
    size_t payload_len;
};

/* A copy of the parts, with one reference. */
struct message *message_new(const struct message_parts *parts);
struct message *message_ref(struct message *m);
/* Frees the message and its frames with the last reference. NULL is allowed. */
void message_unref(struct message *m);
/* Bytes held by the message, its frames included. */
size_t message_size(const struct message *m);

/* stream: one client that is sent messages, whatever the transport: its cursors, its pump, its end.
 *
 *   opening (h2o still writes the head) --stream_open--> open --stream_finish--> finishing
 *                                                         |                        |
 *                                                         +----- stream_close -----+--> reaped
 *
 * Everything that goes out goes through here, in this order: the rest of a frame that the socket
 * took in part, the outbox, a pong, messages. */
#pragma once

#include "common/buf.h"
#include "common/stats.h"
#include "gateway/hub/channel.h"

#include <stdbool.h>
#include <stdint.h>

struct st_h2o_socket_t; /* h2o_socket_t; who only moves cursors needs no h2o */
struct streams;
struct ws_session;

enum { OUTBOX_MAX = 128 * 1024 };

/* What a hundred thousand of these cost is the point of the project: 104 bytes with the first
 * subscription, 40 for each further one. */
struct stream {
    struct st_h2o_socket_t *sock; /* NULL while opening */
    struct streams *all;
    struct message *partial;    /* its frame is on the socket up to `offset`; holds a reference */
    struct buf *outbox;         /* bytes that are no messages and wait; NULL when empty */
    struct ws_session *session; /* of a WebSocket, and only while it is needed */
    struct stream *next_closing;
    uint32_t offset;
    uint32_t index; /* in the sweep of heartbeats */
    uint16_t sub_count;
    uint16_t discarded;    /* bytes that an SSE client sent after its request */
    uint8_t kind;          /* enum frame_kind: which frames it gets */
    uint8_t quiet;         /* heartbeat visits since the last byte */
    bool is_blocked : 1;   /* the socket takes nothing; its callback flushes */
    bool is_finishing : 1; /* gets no more messages; ends when the outbox is out */
    bool is_closing : 1;   /* dead; freed at the end of this turn */
    struct subscription first;
};

/* An opening stream without channels. */
struct stream *stream_new(struct streams *all, enum frame_kind kind);
/* Adds a channel; the name must be valid. Once a channel. */
void stream_subscribe(struct stream *s, const char *channel, size_t len);
/* The subscription to that channel, or NULL. */
struct subscription *stream_find(struct stream *s, const char *channel, size_t len);
void stream_unsubscribe(struct stream *s, struct subscription *sub);

/* As h2o_socket_cb. */
typedef void (*stream_readable_cb)(struct st_h2o_socket_t *sock, const char *err);
/* The socket is ours now. NULL: the client was gone before; the stream ends. */
void stream_open(struct stream *s, struct st_h2o_socket_t *sock, stream_readable_cb on_readable);
/* Writes what lies after the cursors: of all channels in order for SSE; for a WebSocket of `woken`,
 * or of all when that is NULL. */
void stream_flush(struct stream *s, struct subscription *woken);
/* Reads what the client sent into the scratch buffer of all streams. 0: nothing came, or that was
 * its end and the stream is closed. */
size_t stream_read(struct stream *s);
/* Bytes that are no message; a copy waits if need be. More than OUTBOX_MAX waiting ends the stream.
 */
void stream_send(struct stream *s, const char *bytes, size_t len);
/* Whether nothing waits to be written, messages aside. */
bool stream_is_idle(const struct stream *s);
/* Whether every message of its channels is written. */
bool stream_is_caught_up(const struct stream *s);
/* No more messages; closes when what waits is written. */
void stream_finish(struct stream *s);
/* Marks it dead, counted under `reason`. Idempotent and safe anywhere. */
void stream_close(struct stream *s, enum counter reason);
/* Frees everything of a closing stream. For streams_reap. */
void stream_free(struct stream *s);

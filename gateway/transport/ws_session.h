/* ws_session: what a WebSocket needs only now and then: a frame that is not complete, a message in
 * fragments, a pong that waits, publishes under way, the closing handshake. An idle connection has
 * none. */
#pragma once

#include "gateway/transport/stream.h"
#include "gateway/transport/ws_codec.h"
#include "gateway/wheel.h"

enum { FRAGMENTS_MAX = 64, PUBLISHES_MAX = 64 };

struct ws_publish;

struct ws_session {
    struct stream *stream;
    struct timer timer; /* armed while we wait for the peer's Close */
    struct buf input;   /* the begin of a frame */
    struct buf message; /* the fragments so far */
    size_t skip;        /* bytes still to come of a frame that was refused for its size */
    uint16_t fragments; /* 0: no message under way */
    bool is_close_sent;
    bool is_close_received;
    bool has_pong;
    uint8_t pong_len;
    uint8_t publish_count;
    char pong[WS_CONTROL_MAX];
    enum counter reason; /* for the count when the stream ends */
    struct ws_publish *publishes;
};

/* The stream's session, made if it has none. */
struct ws_session *ws_session_get(struct stream *s);
/* Frees it when it holds nothing. */
void ws_session_trim(struct stream *s);
/* Frees it whatever it holds; publishes under way then have nobody to tell. */
void ws_session_free(struct stream *s);

/* Sends the pong that waits. False: the socket takes no more. */
bool ws_session_flush(struct stream *s);
/* Answers a ping: at once, or later with the latest ping's payload only. */
void ws_session_pong(struct stream *s, const char *payload, size_t len);
/* Starts the closing handshake, or completes the peer's: no more messages, a Close frame, at most 5
 * seconds for the peer's own. Idempotent. */
void ws_session_close(struct stream *s, enum ws_close_code code, const char *reason,
                      enum counter counted_as);
/* The peer's Close frame came, its payload checked to this code. */
void ws_session_on_close(struct stream *s, enum ws_close_code code);
/* Everything of a finishing stream is written. */
void ws_session_on_drained(struct stream *s);

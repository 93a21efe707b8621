/* ws_codec: WebSocket frames (RFC 6455, sections 5 to 7), seen from the server. No I/O, no state
 * between calls. */
#pragma once

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_opcode {
    WS_CONTINUATION = 0x0,
    WS_TEXT = 0x1,
    WS_BINARY = 0x2,
    WS_CLOSE = 0x8,
    WS_PING = 0x9,
    WS_PONG = 0xA
};

/* Close codes: RFC 6455, section 7.4.1; 1012 and 1013 from IANA's registry. */
enum ws_close_code {
    WS_CLOSE_NONE = 0, /* a Close frame without a body */
    WS_CLOSE_NORMAL = 1000,
    WS_CLOSE_GOING_AWAY = 1001,
    WS_CLOSE_PROTOCOL_ERROR = 1002,
    WS_CLOSE_UNSUPPORTED = 1003,
    WS_CLOSE_INVALID_DATA = 1007,
    WS_CLOSE_POLICY = 1008,
    WS_CLOSE_TOO_BIG = 1009,
    WS_CLOSE_INTERNAL = 1011,
    WS_CLOSE_RESTART = 1012,
    WS_CLOSE_TRY_LATER = 1013
};

enum { WS_CONTROL_MAX = 125, WS_CLOSE_REASON_MAX = 123, WS_HEADER_MAX = 10 };

struct ws_frame {
    enum ws_opcode opcode;
    bool fin;
    char *payload; /* unmasked, inside the input */
    size_t len;
    size_t consumed; /* bytes of input that this frame took */
};

enum ws_result { WS_FRAME, WS_MORE, WS_BAD };

/* Reads one masked client frame from the front of input and unmasks it there. WS_MORE: it is not
 * complete, nothing was changed, and everything that can be refused from the header alone was
 * checked. WS_BAD: *code is what to close with (1002: unmasked, RSV bits, unknown opcode, control
 * frame over 125 bytes or fragmented, length not minimal or above 2^63; 1009: data frame over
 * max_payload) and *why a short reason; with 1009 frame->consumed tells the frame's whole size, so
 * that it can be passed over, else it is 0. */
enum ws_result ws_parse(char *input, size_t len, size_t max_payload, struct ws_frame *frame,
                        enum ws_close_code *code, const char **why);

/* Checks the payload of a received Close frame (one byte, codes that must not be on the wire, a
 * reason that is not UTF-8). Returns the code to answer with: the peer's own, WS_CLOSE_NONE for an
 * empty body, or WS_CLOSE_PROTOCOL_ERROR / WS_CLOSE_INVALID_DATA. 1012 to 1014 are accepted. */
enum ws_close_code ws_check_close(const char *payload, size_t len);

/* Appends one whole unmasked server frame. */
void ws_append_frame(struct buf *out, enum ws_opcode opcode, const char *payload, size_t len);
/* The header alone (2 to 10 bytes) of a frame with len bytes; returns its length. */
size_t ws_header(char header[WS_HEADER_MAX], enum ws_opcode opcode, size_t len);
/* A Close frame; a reason over 123 bytes is cut at a character's border. */
void ws_append_close(struct buf *out, enum ws_close_code code, const char *reason);

enum { WS_ACCEPT_LEN = 28 };
/* Whether it is the base64 of 16 bytes (section 4.2.1). */
bool ws_key_is_valid(const char *key, size_t len);
/* Sec-WebSocket-Accept for a valid key (section 4.2.2), NUL-terminated. */
void ws_accept(char accept[WS_ACCEPT_LEN + 1], const char *key, size_t len);

/* Appends the JSON text that carries a message to a WebSocket client:
 * {"channel":"a","id":"…","event":"…","data":…}; id and event only when present. `data_is_json`:
 * data is the payload's own bytes, else a JSON string of it. Used by hub/frames. */
struct message;
void ws_append_envelope(struct buf *out, const char *channel, size_t channel_len,
                        const struct message *m, bool data_is_json);

/* ws_command: what a client says in a WebSocket text message. Pure; jansson reads the JSON.
 *
 *   {"subscribe":["a"],"since":"<id>"}   {"unsubscribe":["a"]}
 *   {"publish":{"channel":"a","data":…,"event":"…","key":"…","idempotency_key":"…"}}   {"ping":1}
 *
 * each with an optional "req": an integer, echoed in the answer. Exactly one verb in an object;
 * unknown members are errors. */
#pragma once

#include "common/buf.h"
#include "common/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_verb { WS_VERB_SUBSCRIBE, WS_VERB_UNSUBSCRIBE, WS_VERB_PUBLISH, WS_VERB_PING };

struct ws_name {
    char *bytes; /* NUL-terminated, valid channel name */
    size_t len;
};

struct ws_command {
    enum ws_verb verb;
    bool has_req;
    int64_t req;
    struct ws_name *channels; /* subscribe and unsubscribe: at least one, none twice */
    size_t channel_count;
    char *since; /* NULL: absent; at most 128 bytes */
    /* publish */
    struct ws_name channel;
    char *data; /* a JSON string's characters; of anything else the bytes as they were sent */
    size_t data_len;
    char *event, *key, *idempotency_key; /* NULL: absent; checked by names.h */
};

/* One code for each way to be wrong, as the answer's "error" names it. */
enum ws_command_error {
    WS_COMMAND_OK,
    WS_COMMAND_NOT_JSON,          /* "not_json": also too deep, NUL in a string */
    WS_COMMAND_NOT_AN_OBJECT,     /* "not_an_object" */
    WS_COMMAND_NO_VERB,           /* "no_verb": none of the four, or more than one */
    WS_COMMAND_UNKNOWN_MEMBER,    /* "unknown_member" */
    WS_COMMAND_WRONG_TYPE,        /* "wrong_type" */
    WS_COMMAND_BAD_CHANNEL,       /* "bad_channel" */
    WS_COMMAND_TOO_MANY_CHANNELS, /* "too_many_channels" */
    WS_COMMAND_BAD_NAME           /* "bad_name": event, key, idempotency key, since */
};

/* The text must be valid UTF-8. On error the command holds only has_req and req, if they could be
 * read. ws_command_fini afterwards in either case. */
enum ws_command_error ws_command_parse(struct ws_command *c, const char *text, size_t len,
                                       size_t max_channels);
void ws_command_fini(struct ws_command *c);
const char *ws_command_error_name(enum ws_command_error error);

/* names: what a channel, a prefix, an event, a key may be called. Design: docs/protocol.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    CHANNEL_NAME_MAX = 200,
    PREFIX_MAX = 33, /* 32 characters and the colon */
    EVENT_NAME_MAX = 100,
    MESSAGE_KEY_MAX = 200,
    IDEMPOTENCY_KEY_MAX = 128,
    NAMESPACE_NAME_MAX = 32
};

/* 1 to 200 bytes of [A-Za-z0-9._:/@-]. */
bool name_is_channel(const char *name, size_t len);
/* [A-Za-z0-9_-]{1,32}: and nothing after it. */
bool name_is_prefix(const char *name, size_t len);
/* 1 to 100 bytes of the channel alphabet; "tidecast." is reserved for the server's own events. */
bool name_is_event(const char *name, size_t len);
/* 1 to 200 bytes of the channel alphabet. */
bool name_is_key(const char *name, size_t len);
/* 1 to 128 bytes of the channel alphabet. */
bool name_is_idempotency_key(const char *name, size_t len);
/* [a-z0-9_-]{1,32} */
bool name_is_namespace(const char *name, size_t len);
/* How many leading bytes of a channel's name are its namespace; 0 if it has none (it is then in
 * `default`). */
size_t name_namespace_len(const char *channel, size_t len);

/* scanner: finds ticks in what a server sends, whatever frames them. No I/O.
 *
 * A tick is the text `"seq":<n>,"t":<ns>` and one byte after it. Server-sent events and WebSocket
 * text frames both carry it as it is, so nothing else of either needs to be understood. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The longest beginning of a tick: names, punctuation and two numbers of 20 digits. */
enum { SCANNER_CARRY_MAX = 52 };

/* Starts as {0}: what the last call left of a tick that may go on. */
struct scanner {
    uint8_t len;
    char carry[SCANNER_CARRY_MAX];
};

typedef void (*scanner_cb)(void *owner, uint64_t seq, uint64_t t_ns);

/* Reports every tick that ends in these bytes. The SCANNER_CARRY_MAX bytes before `bytes` must be
 * writable: what was carried over is put there, so that a tick is always in one piece. */
void scanner_feed(struct scanner *s, char *bytes, size_t len, scanner_cb cb, void *owner);

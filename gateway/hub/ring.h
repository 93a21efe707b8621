/* ring: a channel's last messages, within bounds. No I/O.
 *
 * A message has a local sequence number in its ring: [tail, head) are there. A reader keeps a
 * cursor, the number it wants next: below tail it has fallen off, at head it has everything. */
#pragma once

#include "common/message.h"

#include <stddef.h>
#include <stdint.h>

struct ring_limits {
    uint64_t messages; /* slots grow by doubling up to this, which need not be a power of two */
    uint64_t bytes;    /* of message_size(); the newest message stays whatever it takes */
    uint64_t max_age_ms;
};

/* The messages of all rings of a worker, oldest first, and what they take together. */
struct shelf {
    struct message *oldest, *newest;
    size_t bytes;
    size_t max_bytes;
    uint64_t next_order;
};

struct ring {
    struct message **slots; /* NULL until the first message */
    const struct ring_limits *limits;
    struct shelf *shelf;
    uint64_t tail, head;
    size_t bytes;
    uint32_t capacity;
};

/* Borrows limits and shelf for its life. */
void ring_init(struct ring *r, const struct ring_limits *limits, struct shelf *shelf);
void ring_fini(struct ring *r);
/* Takes the caller's reference. Drops what is then over a bound: first of this ring, by count,
 * bytes and age, then the oldest of any ring, by the shelf's bytes. */
void ring_append_take(struct ring *r, struct message *m, uint64_t now_ms);
/* Borrowed; tail <= sequence < head. */
struct message *ring_at(const struct ring *r, uint64_t sequence);
/* A message of this ring grew by so many bytes (a frame was made). */
void ring_charge(struct ring *r, size_t bytes);
/* Drops the oldest messages of the shelf that are past their ring's max_age. */
void shelf_expire(struct shelf *s, uint64_t now_ms);

#include "gateway/hub/ring.h"

#include "common/mem.h"
#include "common/stats.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 4 };

void ring_init(struct ring *r, const struct ring_limits *limits, struct shelf *shelf)
{
    *r = (struct ring){.limits = limits, .shelf = shelf};
}

static void shelf_add(struct shelf *s, struct message *m)
{
    m->order = s->next_order++;
    m->older = s->newest;
    m->newer = NULL;
    if (s->newest != NULL)
        s->newest->newer = m;
    else
        s->oldest = m;
    s->newest = m;
}

static void shelf_remove(struct shelf *s, struct message *m)
{
    if (m->older != NULL)
        m->older->newer = m->newer;
    else
        s->oldest = m->newer;
    if (m->newer != NULL)
        m->newer->older = m->older;
    else
        s->newest = m->older;
    m->older = m->newer = NULL;
}

struct message *ring_at(const struct ring *r, uint64_t sequence)
{
    assert(sequence >= r->tail && sequence < r->head);
    return r->slots[sequence & (r->capacity - 1)];
}

static void drop_oldest(struct ring *r)
{
    struct message *m = ring_at(r, r->tail);
    r->tail++;
    size_t size = message_size(m);
    r->bytes -= size;
    r->shelf->bytes -= size;
    shelf_remove(r->shelf, m);
    m->ring = NULL;
    message_unref(m);
}

void ring_fini(struct ring *r)
{
    while (r->tail != r->head)
        drop_oldest(r);
    free(r->slots);
    r->slots = NULL;
}

/* Doubles the slots; a message's slot is its sequence modulo the capacity, so all move. */
static void grow(struct ring *r)
{
    uint32_t capacity = r->capacity == 0 ? CAPACITY_MIN : r->capacity * 2;
    struct message **slots = mem_alloc(capacity * sizeof(struct message *));
    for (uint64_t i = r->tail; i != r->head; i++)
        slots[i & (capacity - 1)] = ring_at(r, i);
    free(r->slots);
    r->slots = slots;
    r->capacity = capacity;
}

static bool is_old(const struct ring *r, const struct message *m, uint64_t now_ms)
{
    return now_ms - m->arrived_ms > r->limits->max_age_ms;
}

/* The bounds but for the count, which is kept before a message goes in: no slot is for one more. */
static void enforce_own_bounds(struct ring *r, uint64_t now_ms)
{
    while (r->head - r->tail > 1 && is_old(r, ring_at(r, r->tail), now_ms))
        drop_oldest(r);
    while (r->head - r->tail > 1 && r->bytes > r->limits->bytes) {
        drop_oldest(r);
        stats_add(STAT_ring_dropped_bytes, 1);
    }
}

static void enforce_total(struct shelf *s)
{
    while (s->bytes > s->max_bytes && s->oldest != s->newest) {
        drop_oldest(s->oldest->ring);
        stats_add(STAT_ring_evicted, 1);
    }
}

void ring_append_take(struct ring *r, struct message *m, uint64_t now_ms)
{
    if (r->head - r->tail == r->limits->messages)
        drop_oldest(r);
    if (r->head - r->tail == r->capacity)
        grow(r);
    size_t size = message_size(m);
    m->ring = r;
    m->arrived_ms = now_ms;
    r->slots[r->head & (r->capacity - 1)] = m;
    r->head++;
    r->bytes += size;
    r->shelf->bytes += size;
    shelf_add(r->shelf, m);
    enforce_own_bounds(r, now_ms);
    enforce_total(r->shelf);
    stats_set(STAT_ring_bytes, r->shelf->bytes);
}

void ring_charge(struct ring *r, size_t bytes)
{
    r->bytes += bytes;
    r->shelf->bytes += bytes;
}

void shelf_expire(struct shelf *s, uint64_t now_ms)
{
    while (s->oldest != NULL && is_old(s->oldest->ring, s->oldest, now_ms))
        drop_oldest(s->oldest->ring);
    stats_set(STAT_ring_bytes, s->bytes);
}

#include "gateway/hub/sweep.h"

#include "common/mem.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 2 };

void sweep_fini(struct sweep *s)
{
    free(s->items);
    *s = (struct sweep){0};
}

static void resize(struct sweep *s, uint32_t capacity)
{
    s->items = mem_realloc(s->items, capacity * sizeof(*s->items));
    s->capacity = capacity;
}

uint32_t sweep_add(struct sweep *s, void *item)
{
    if (s->count == s->capacity)
        resize(s, s->capacity == 0 ? CAPACITY_MIN : s->capacity * 2);
    s->items[s->count] = item;
    return s->count++;
}

static void move(struct sweep *s, uint32_t from, uint32_t to, sweep_moved_cb moved)
{
    if (from == to)
        return;
    s->items[to] = s->items[from];
    moved(s->items[to], to);
}

void sweep_remove(struct sweep *s, uint32_t index, sweep_moved_cb moved)
{
    assert(index < s->count);
    if (index < s->position) {
        s->position--;
        move(s, s->position, index, moved);
        index = s->position;
    }
    s->count--;
    move(s, s->count, index, moved);
    if (s->capacity > CAPACITY_MIN && s->count < s->capacity / 4)
        resize(s, s->capacity / 2);
}

void *sweep_next(struct sweep *s)
{
    return s->position == s->count ? NULL : s->items[s->position++];
}

void sweep_restart(struct sweep *s)
{
    s->position = 0;
}

/* sweep: a set of items that one walk visits in slices, while items come and go. No I/O.
 *
 * [0, position) were visited in this round, [position, count) were not. Whatever mix of add, remove
 * and visits happens, no item that was there when a round began is skipped by it: on removal at i
 * below the position, the last visited item moves to i and the last of all to its place. */
#pragma once

#include <stdint.h>

/* Starts as {0}. */
struct sweep {
    void **items;
    uint32_t count;
    uint32_t capacity;
    uint32_t position;
};

/* Tells an item its new index, which it must keep for sweep_remove. */
typedef void (*sweep_moved_cb)(void *item, uint32_t index);

void sweep_fini(struct sweep *s);
/* Returns the item's index. It is visited in this round. */
uint32_t sweep_add(struct sweep *s, void *item);
void sweep_remove(struct sweep *s, uint32_t index, sweep_moved_cb moved);
/* The next item not visited in this round, or NULL at its end. */
void *sweep_next(struct sweep *s);
/* Begins a new round. */
void sweep_restart(struct sweep *s);

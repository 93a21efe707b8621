#include "gateway/wheel.h"

#include "common/mem.h"

#include <stdlib.h>

enum { SLOT_MS = 100, SLOT_COUNT = 512 };

/* A slot is a ring of timers around its head; one further than a turn away just stays. */
struct wheel {
    uint64_t turn; /* the slot number, counted from 0 ms, that was fired last */
    struct timer slots[SLOT_COUNT];
};

static void unlink_timer(struct timer *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void link_before(struct timer *head, struct timer *t)
{
    t->prev = head->prev;
    t->next = head;
    head->prev->next = t;
    head->prev = t;
}

struct wheel *wheel_new(uint64_t now_ms)
{
    struct wheel *w = mem_zalloc(sizeof(*w));
    w->turn = now_ms / SLOT_MS;
    for (int i = 0; i < SLOT_COUNT; i++)
        w->slots[i].prev = w->slots[i].next = &w->slots[i];
    return w;
}

void wheel_free(struct wheel *w)
{
    free(w);
}

bool wheel_is_armed(const struct timer *t)
{
    return t->next != NULL;
}

void wheel_disarm(struct timer *t)
{
    if (wheel_is_armed(t))
        unlink_timer(t);
}

void wheel_arm(struct wheel *w, struct timer *t, uint64_t deadline_ms,
               void (*on_fire)(struct timer *t))
{
    wheel_disarm(t);
    t->deadline_ms = deadline_ms;
    t->on_fire = on_fire;
    uint64_t slot = (deadline_ms + SLOT_MS - 1) / SLOT_MS;
    if (slot <= w->turn)
        slot = w->turn + 1; /* the current slot was fired already */
    link_before(&w->slots[slot % SLOT_COUNT], t);
}

/* Fires what is due in one slot. What is left is put back, so that a timer armed by a callback for
 * a later turn of the same slot is not looked at for ever. */
static void fire_slot(struct timer *head, uint64_t now_ms)
{
    struct timer due = {&due, &due, 0, NULL};
    while (head->next != head) {
        struct timer *t = head->next;
        unlink_timer(t);
        link_before(&due, t);
    }
    while (due.next != &due) {
        struct timer *t = due.next;
        unlink_timer(t);
        if (t->deadline_ms > now_ms)
            link_before(head, t);
        else
            t->on_fire(t);
    }
}

void wheel_advance(struct wheel *w, uint64_t now_ms)
{
    uint64_t until = now_ms / SLOT_MS;
    if (until > w->turn + SLOT_COUNT)
        w->turn = until - SLOT_COUNT; /* after a long pause every slot once is enough */
    while (w->turn < until)
        fire_slot(&w->slots[++w->turn % SLOT_COUNT], now_ms);
}

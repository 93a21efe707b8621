#include "common/redis_commands.h"

#include "common/mem.h"

#include <stdlib.h>

struct slot {
    redis_command_cb cb; /* NULL: nobody waits for the answer, or no longer */
    void *owner;
    uint64_t since_ms; /* the first tick that saw it */
};

struct redis_commands {
    struct redis_link *link;
    uint64_t timeout_ms;
    bool is_ending;
    size_t max_pending;
    size_t head;
    size_t count;
    size_t seen_count; /* of them, from the oldest on: those with since_ms */
    struct slot slots[];
};

struct redis_commands *redis_commands_new(struct redis_link *link, size_t max_pending,
                                          uint64_t timeout_ms)
{
    struct redis_commands *c = mem_zalloc(sizeof(*c) + max_pending * sizeof(struct slot));
    c->link = link;
    c->max_pending = max_pending;
    c->timeout_ms = timeout_ms;
    return c;
}

void redis_commands_free(struct redis_commands *c)
{
    if (c == NULL)
        return;
    c->is_ending = true;
    redis_commands_on_down(c);
    free(c);
}

static struct slot *slot_at(struct redis_commands *c, size_t i)
{
    return &c->slots[(c->head + i) % c->max_pending];
}

static struct slot pop(struct redis_commands *c)
{
    struct slot oldest = c->slots[c->head];
    c->head = (c->head + 1) % c->max_pending;
    c->count--;
    if (c->seen_count > 0)
        c->seen_count--;
    return oldest;
}

bool redis_commands_send(struct redis_commands *c, const struct resp_arg *args, size_t count,
                         redis_command_cb cb, void *owner)
{
    if (c->is_ending || c->count == c->max_pending || !redis_link_send(c->link, args, count))
        return false;
    *slot_at(c, c->count) = (struct slot){.cb = cb, .owner = owner};
    c->count++;
    return true;
}

size_t redis_commands_pending(const struct redis_commands *c)
{
    return c->count;
}

/* A slot stays after its callback was given up, to swallow the answer that may still come. */
static void give_up(struct slot *slot)
{
    redis_command_cb cb = slot->cb;
    slot->cb = NULL;
    if (cb != NULL)
        cb(slot->owner, NULL);
}

/* Callbacks may send, which adds at the far end, or drop the link, which empties the queue. */
void redis_commands_tick(struct redis_commands *c, uint64_t now_ms)
{
    for (; c->seen_count < c->count; c->seen_count++)
        slot_at(c, c->seen_count)->since_ms = now_ms;
    for (size_t i = 0; i < c->seen_count; i++) {
        struct slot *slot = slot_at(c, i);
        if (now_ms - slot->since_ms < c->timeout_ms)
            break;
        give_up(slot);
    }
    if (c->seen_count > 0 && now_ms - slot_at(c, 0)->since_ms >= 2 * c->timeout_ms)
        redis_link_drop(c->link, LINK_FAULT_SILENT);
}

/* An answer that nobody asked for means that question and answer are out of step. */
void redis_commands_on_reply(struct redis_commands *c, const struct resp *reply)
{
    if (c->count == 0) {
        enum link_fault fault = link_fault_of_error(reply);
        redis_link_drop(c->link, fault == LINK_FAULT_NONE ? LINK_FAULT_PROTOCOL : fault);
        return;
    }
    struct slot oldest = pop(c);
    if (oldest.cb != NULL)
        oldest.cb(oldest.owner, reply);
}

/* Whoever sends again from here is refused: the link is not ready. */
void redis_commands_on_down(struct redis_commands *c)
{
    while (c->count > 0) {
        struct slot oldest = pop(c);
        if (oldest.cb != NULL)
            oldest.cb(oldest.owner, NULL);
    }
}

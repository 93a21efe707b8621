#include "gateway/hub/channel.h"

#include "common/mem.h"
#include "gateway/transport/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct channel *channel_new(struct hub *hub, const struct namespace_config *settings,
                            const struct ring_limits *limits, struct shelf *shelf, const char *name,
                            size_t len)
{
    struct channel *c = mem_zalloc(sizeof(*c) + len + 1);
    c->hub = hub;
    c->settings = settings;
    memcpy(c->name, name, len);
    c->topic = (struct topic){.name = c->name, .len = (uint16_t)len, .state = TOPIC_OFF};
    ring_init(&c->ring, limits, shelf);
    return c;
}

void channel_free(struct channel *c)
{
    assert(c->subscribers.count == 0 && !c->dirty);
    ring_fini(&c->ring);
    sweep_fini(&c->subscribers);
    free(c);
}

static void on_moved(void *item, uint32_t index)
{
    struct subscription *sub = item;
    sub->index = index;
}

void channel_join(struct channel *c, struct subscription *sub, struct stream *stream)
{
    *sub = (struct subscription){
        .channel = c, .stream = stream, .next = sub->next, .cursor = c->ring.head};
    sub->index = sweep_add(&c->subscribers, sub);
}

void channel_leave(struct subscription *sub)
{
    sweep_remove(&sub->channel->subscribers, sub->index, on_moved);
    sub->channel = NULL;
}

static void add(struct backlog *b, size_t bytes)
{
    b->messages++;
    b->bytes += bytes;
}

void channel_append_take(struct channel *c, struct message *m, uint64_t now_ms)
{
    size_t bytes = message_size(m);
    ring_append_take(&c->ring, m, now_ms);
    if (c->subscribers.count == 0)
        return;
    add(&c->unswept, bytes);
    add(&c->this_round, bytes);
}

/* A quarter of the bytes, since frames come on top of the messages. */
bool channel_is_crowding(const struct channel *c)
{
    const struct ring_limits *limits = c->ring.limits;
    return c->unswept.messages >= limits->messages / 2 || c->unswept.bytes >= limits->bytes / 4;
}

void channel_begin_round(struct channel *c)
{
    c->sweep_again = false;
    c->this_round = (struct backlog){0};
    sweep_restart(&c->subscribers);
}

unsigned channel_sweep(struct channel *c, unsigned budget, bool *done)
{
    unsigned used = 0;
    while (used < budget) {
        struct subscription *sub = sweep_next(&c->subscribers);
        if (sub != NULL) {
            stream_flush(sub->stream, sub);
            used++;
            continue;
        }
        c->unswept = c->sweep_again ? c->this_round : (struct backlog){0};
        *done = !c->sweep_again;
        if (*done)
            return used;
        channel_begin_round(c);
    }
    *done = false;
    return used;
}

bool channel_holds_streams(const struct channel *c)
{
    return c->unready.next != NULL;
}

struct frame_context channel_frame_context(const struct channel *c)
{
    return (struct frame_context){
        .channel = c->name, .channel_len = c->topic.len, .content = c->settings->content};
}

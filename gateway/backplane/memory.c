/* memory: the backplane of one worker without Redis. What is published comes out here, with ids. */
#include "common/clock.h"
#include "common/mem.h"
#include "gateway/backplane/admission.h"
#include "gateway/backplane/backplane.h"
#include "gateway/backplane/topics.h"

#include <stdlib.h>

struct memory {
    struct backplane base;
    const struct config *config;
    struct topics topics;
    struct id clock; /* the last id given */
};

static struct memory *memory_of(struct backplane *b)
{
    return container_of(b, struct memory, base);
}

static void want(struct backplane *b, struct topic *topic)
{
    topics_want(&memory_of(b)->topics, topic);
}

static void unwant(struct backplane *b, struct topic *topic)
{
    if (topics_unwant(&memory_of(b)->topics, topic))
        b->events->on_off(b->owner, topic);
}

/* Nobody has to be asked, so every topic is where it is wanted. */
static void flush(struct backplane *b)
{
    struct topics *topics = &memory_of(b)->topics;
    struct topic *topic;
    size_t count;
    while ((topic = topics_take(topics, TOPIC_ASKING, TOPIC_ASKED, 1, &count)) != NULL) {
        (void)topics_confirm_on(topics, topic);
        b->events->on_ready(b->owner, topic);
    }
    while ((topic = topics_take(topics, TOPIC_LEAVE, TOPIC_LEAVING, 1, &count)) != NULL) {
        (void)topics_confirm_off(topics, topic);
        b->events->on_off(b->owner, topic);
    }
}

/* Says that everything up to now was handed in. */
static void announce(struct backplane *b)
{
    struct memory *m = memory_of(b);
    uint64_t now = clock_wall_ms();
    if (now > m->clock.ms)
        m->clock = (struct id){now, 0};
    b->events->on_position(b->owner, &m->clock);
}

/* Announced first: after a step of the clock the hub would take the id for a forged one. */
static struct id next_id(struct backplane *b)
{
    announce(b);
    memory_of(b)->clock.seq++;
    return memory_of(b)->clock;
}

/* What is published comes by single requests, between which the sweeps have their turn. */
static void go_on(struct backplane *b)
{
    (void)b;
}

static void publish(struct backplane *b, const struct publication *p, publish_cb cb, void *owner)
{
    const struct namespace_config *settings =
        config_namespace(memory_of(b)->config, p->channel, p->channel_len);
    struct publish_outcome outcome = {.status = 200};
    outcome.code = admission_check_payload(settings, p->payload, p->payload_len, &outcome.status);
    outcome.message = "The payload is not allowed here.";
    if (outcome.code == NULL) {
        struct message_parts parts = {.has_id = true,
                                      .id = next_id(b),
                                      .event = p->event,
                                      .key = p->key,
                                      .payload = p->payload,
                                      .event_len = p->event_len,
                                      .key_len = p->key_len,
                                      .payload_len = p->payload_len};
        outcome.status = 200;
        outcome.id = parts.id;
        struct topic *topic = b->events->find(b->owner, p->channel, p->channel_len);
        if (topic != NULL)
            b->events->on_message(b->owner, topic, message_new(&parts));
    }
    cb(owner, &outcome);
}

static void tick(struct backplane *b, uint64_t now_ms)
{
    (void)now_ms;
    announce(b);
}

static bool is_ready(const struct backplane *b)
{
    (void)b;
    return true;
}

static void memory_free(struct backplane *b)
{
    free(memory_of(b));
}

static const struct backplane_ops ops = {
    .want = want,
    .unwant = unwant,
    .flush = flush,
    .pause = go_on,
    .resume = go_on,
    .publish = publish,
    .tick = tick,
    .is_ready = is_ready,
    .free = memory_free,
};

struct backplane *backplane_memory_new(const struct config *config,
                                       const struct backplane_events *events, void *owner)
{
    struct memory *m = mem_zalloc(sizeof(*m));
    m->base = (struct backplane){&ops, events, owner};
    m->config = config;
    topics_init(&m->topics);
    return &m->base;
}

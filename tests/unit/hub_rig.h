/* hub_rig: a hub with a backplane and streams that write into memory, and a clock that a test sets.
 *
 * The slow backplane is one whose server answers only when slow_reply is called. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/stats.h"
#include "gateway/backplane/topics.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_stream.h"

enum { LINGER_MS = 5000, LINGERING_CHANNELS = 1000, HUBS_MAX = 64 };

static struct namespace_config rig_namespaces[] = {{.name = (char *)"default",
                                                    .content = CONTENT_AUTO,
                                                    .max_payload = 1000,
                                                    .ring_messages = 65536,
                                                    .ring_bytes = 1 << 30,
                                                    .ring_max_age_ms = UINT64_MAX}};
static const struct config rig_config = {.namespaces = rig_namespaces,
                                         .namespace_count = 1,
                                         .gateway_ring_total_bytes = 1 << 30,
                                         .gateway_unsubscribe_linger_ms = LINGER_MS,
                                         .gateway_lingering_channels = LINGERING_CHANNELS};

struct slow {
    struct backplane base;
    struct topics topics;
    bool is_paused;
};

static struct hub *hub;
static struct backplane *backplane;
static struct hub *hubs[HUBS_MAX]; /* a worker's hub lives as long as it */
static unsigned hub_count;
static unsigned wakes;

static inline struct topics *slow_topics(struct backplane *b)
{
    return &((struct slow *)(void *)b)->topics;
}

static inline void slow_want(struct backplane *b, struct topic *topic)
{
    topics_want(slow_topics(b), topic);
}

static inline void slow_unwant(struct backplane *b, struct topic *topic)
{
    if (topics_unwant(slow_topics(b), topic))
        b->events->on_off(b->owner, topic);
}

static inline void slow_flush(struct backplane *b)
{
    size_t count;
    (void)topics_take(slow_topics(b), TOPIC_ASKING, TOPIC_ASKED, SIZE_MAX, &count);
    (void)topics_take(slow_topics(b), TOPIC_LEAVE, TOPIC_LEAVING, SIZE_MAX, &count);
}

/* Everything asked so far is answered. */
static inline void slow_reply(struct backplane *b)
{
    struct topic *topic;
    while ((topic = topics_first(slow_topics(b), TOPIC_ASKED)) != NULL) {
        (void)topics_confirm_on(slow_topics(b), topic);
        b->events->on_ready(b->owner, topic);
    }
    while ((topic = topics_first(slow_topics(b), TOPIC_LEAVING)) != NULL) {
        (void)topics_confirm_off(slow_topics(b), topic);
        if (topic->state == TOPIC_OFF)
            b->events->on_off(b->owner, topic);
    }
}

/* The link is gone. */
static inline void slow_break(struct backplane *b)
{
    for (int state = TOPIC_ASKED; state < TOPIC_STATES; state++) {
        struct topic *topic;
        while ((topic = topics_first(slow_topics(b), (enum topic_state)state)) != NULL) {
            topics_reset(slow_topics(b), topic);
            if (topic->state == TOPIC_OFF)
                b->events->on_off(b->owner, topic);
            else if (state == TOPIC_ON || state == TOPIC_LEAVE)
                b->events->on_lost(b->owner, topic);
        }
    }
}

static inline void slow_pause(struct backplane *b)
{
    ((struct slow *)(void *)b)->is_paused = true;
}

static inline void slow_resume(struct backplane *b)
{
    ((struct slow *)(void *)b)->is_paused = false;
}

static inline void slow_tick(struct backplane *b, uint64_t now_ms)
{
    (void)b;
    (void)now_ms;
}

static inline bool slow_is_ready(const struct backplane *b)
{
    (void)b;
    return false;
}

static inline void slow_free(struct backplane *b)
{
    free(b);
}

static inline struct backplane *slow_new(const struct backplane_events *events, void *owner)
{
    static const struct backplane_ops ops = {.want = slow_want,
                                             .unwant = slow_unwant,
                                             .flush = slow_flush,
                                             .pause = slow_pause,
                                             .resume = slow_resume,
                                             .tick = slow_tick,
                                             .is_ready = slow_is_ready,
                                             .free = slow_free};
    struct slow *s = mem_zalloc(sizeof(*s));
    s->base = (struct backplane){&ops, events, owner};
    topics_init(&s->topics);
    return &s->base;
}

static inline void rig_wake(void *loop)
{
    assert_ptr_equal(loop, &wakes);
    wakes++;
}

static inline int rig_start(bool is_slow)
{
    wakes = 0;
    hub = hubs[hub_count++] = hub_new(&rig_config, rig_wake, &wakes);
    backplane =
        is_slow ? slow_new(&hub_events, hub) : backplane_memory_new(&rig_config, &hub_events, hub);
    hub_attach(hub, backplane);
    return 0;
}

static inline int rig_set_up(void **state)
{
    (void)state;
    return rig_start(false);
}

static inline int rig_set_up_slow(void **state)
{
    (void)state;
    return rig_start(true);
}

static inline void rig_tick(uint64_t ms)
{
    fake_clock_pass(ms);
    backplane->ops->tick(backplane, fake_mono_ms);
    hub_tick(hub, fake_mono_ms);
}

static inline void rig_run(void)
{
    while (hub_run(hub))
        ;
}

/* Everybody leaves, and then every channel must go. */
static inline int rig_tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < fake_count; i++)
        fake_close(fakes[i]);
    fake_reap();
    rig_run();
    for (int i = 0; i < 3; i++) {
        rig_tick(LINGER_MS);
        if (backplane->ops->tick == slow_tick)
            slow_reply(backplane);
    }
    backplane->ops->free(backplane);
    return stats_sum(STAT_channels) != 0 || stats_sum(STAT_subscriptions) != 0;
}

static inline struct topic *rig_topic(const char *channel)
{
    return hub_events.find(hub, channel, strlen(channel));
}

/* As the backplane hands it in. */
static inline void rig_hand_in(const char *channel, struct id id, const char *payload)
{
    const struct message_parts parts = {
        .has_id = !id_is_zero(&id), .id = id, .payload = payload, .payload_len = strlen(payload)};
    struct topic *topic = rig_topic(channel);
    assert_non_null(topic);
    hub_events.on_message(hub, topic, message_new(&parts));
}

static inline void rig_on_published(void *owner, const struct publish_outcome *outcome)
{
    assert_int_equal(outcome->status, 200);
    *(struct id *)owner = outcome->id;
}

static inline struct id rig_publish(const char *channel, const char *payload)
{
    struct id id = {0};
    const struct publication p = {.channel = channel,
                                  .channel_len = strlen(channel),
                                  .payload = payload,
                                  .payload_len = strlen(payload)};
    backplane->ops->publish(backplane, &p, rig_on_published, &id);
    return id;
}

/* A stream on up to two channels. */
static inline struct fake *rig_stream(enum frame_kind kind, const char *first, const char *second)
{
    struct fake *f = fake_new(kind);
    fake_subscribe(f, hub, first);
    if (second != NULL)
        fake_subscribe(f, hub, second);
    return f;
}

static inline void assert_written(const struct fake *f, const char *text)
{
    assert_int_equal(f->written.len, strlen(text));
    if (f->written.len != 0)
        assert_memory_equal(f->written.bytes, text, f->written.len);
}

static inline void assert_is_prefix(const struct fake *f)
{
    assert_true(f->written.len <= f->expected.len);
    if (f->written.len != 0)
        assert_memory_equal(f->written.bytes, f->expected.bytes, f->written.len);
}

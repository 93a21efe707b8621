/* redis: the backplane over Redis: one link to hear, one to publish. */
#include "common/mem.h"
#include "gateway/backplane/backplane.h"
#include "gateway/backplane/publisher.h"
#include "gateway/backplane/subscriber.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* max_reply_len: the largest payload, its envelope, room for a batch of replies read at once. */
enum { MAX_REPLY_LEN = 8 << 20, MAX_OUTPUT_LEN = 64 << 20, PROBE_CHANNEL_MAX = 80 };

struct redis {
    struct backplane base;
    struct subscriber *subscriber;
    struct publisher *publisher;
    char probe_channel[PROBE_CHANNEL_MAX];
};

static struct redis *redis_of(struct backplane *b)
{
    return container_of(b, struct redis, base);
}

static void want(struct backplane *b, struct topic *topic)
{
    subscriber_want(redis_of(b)->subscriber, topic);
}

static void unwant(struct backplane *b, struct topic *topic)
{
    subscriber_unwant(redis_of(b)->subscriber, topic);
}

static void flush(struct backplane *b)
{
    subscriber_flush(redis_of(b)->subscriber);
}

static void pause_hearing(struct backplane *b)
{
    subscriber_pause(redis_of(b)->subscriber);
}

static void resume_hearing(struct backplane *b)
{
    subscriber_resume(redis_of(b)->subscriber);
}

static void publish(struct backplane *b, const struct publication *p, publish_cb cb, void *owner)
{
    publisher_publish(redis_of(b)->publisher, p, cb, owner);
}

static void tick(struct backplane *b, uint64_t now_ms)
{
    struct redis *r = redis_of(b);
    publisher_tick(r->publisher, now_ms);
    subscriber_tick(r->subscriber, now_ms, publisher_is_ready(r->publisher));
}

static bool is_ready(const struct backplane *b)
{
    const struct redis *r = container_of(b, const struct redis, base);
    return subscriber_is_ready(r->subscriber);
}

static void redis_free(struct backplane *b)
{
    struct redis *r = redis_of(b);
    publisher_free(r->publisher);
    subscriber_free(r->subscriber);
    free(r);
}

static const struct backplane_ops ops = {
    .want = want,
    .unwant = unwant,
    .flush = flush,
    .pause = pause_hearing,
    .resume = resume_hearing,
    .publish = publish,
    .tick = tick,
    .is_ready = is_ready,
    .free = redis_free,
};

static struct link_settings link_settings(const struct config *config, const char *name)
{
    return (struct link_settings){
        .name = name,
        .address = config->redis_address,
        .user = config->redis_user,
        .password = config->redis_password,
        .connect_timeout_ms = config->redis_connect_timeout_ms,
        .backoff_max_ms = config->redis_backoff_max_ms,
        .max_reply_len = MAX_REPLY_LEN,
        .max_output_len = MAX_OUTPUT_LEN,
    };
}

struct backplane *backplane_redis_new(const struct config *config, void *loop, unsigned worker,
                                      const struct backplane_events *events, void *owner)
{
    struct redis *r = mem_zalloc(sizeof(*r));
    uint64_t unique;
    ssize_t got = getrandom(&unique, sizeof(unique), 0);
    assert(got == sizeof(unique));
    r->base = (struct backplane){&ops, events, owner};
    (void)snprintf(r->probe_channel, sizeof(r->probe_channel), "%s$probe:%016" PRIx64 ".%u",
                   config->redis_prefix, unique, worker);
    const struct subscriber_settings subscriber = {config, link_settings(config, "subscriber"),
                                                   r->probe_channel};
    const struct publisher_settings publisher = {config, link_settings(config, "command"),
                                                 r->probe_channel};
    r->subscriber = subscriber_new(&subscriber, loop, events, owner);
    r->publisher = publisher_new(&publisher, loop);
    return &r->base;
}

#include "gateway/hub/hub.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"

#include <assert.h>
#include <stdlib.h>

enum {
    WRITES_A_TURN = 512,    /* so that Redis, accepts and requests are served in between */
    WRITES_A_CHANNEL = 128, /* then the next dirty channel has its turn */
    HOLD_MS = 3000,         /* how long a stream of several channels waits for one of them */
    FUTURE_SLACK_MS = 2000  /* how far an id may lie beyond what we know of Redis' clock */
};

/* A circular list of channels, oldest first. */
struct channel_list {
    struct channel_node head;
    size_t count;
};

struct hub {
    const struct config *config;
    struct backplane *backplane;
    void (*wake)(void *loop);
    void *loop;
    struct channel *channels;   /* by name */
    struct ring_limits *limits; /* parallel to config->namespaces */
    struct shelf shelf;
    struct channel *dirty_first, *dirty_last;
    unsigned crowded;            /* channels for which the backplane is paused */
    bool is_resuming;            /* the last of them was swept */
    struct channel_list idle;    /* by how long nobody has been listening */
    struct channel_list unready; /* by how long they have been holding streams */
    struct id position;
    uint64_t clock_ms;    /* Redis' clock, as the backplane last told it */
    uint64_t clock_at_ms; /* when that was, on ours; 0: never */
    struct log_limit stale_limit, future_limit;
};

static void list_init(struct channel_list *l)
{
    l->head.prev = l->head.next = &l->head;
}

static void list_remove(struct channel_list *l, struct channel_node *n)
{
    if (n->next == NULL)
        return;
    l->count--;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->prev = n->next = NULL;
}

static void list_append(struct channel_list *l, struct channel_node *n)
{
    list_remove(l, n);
    l->count++;
    n->since_ms = clock_mono_ms();
    n->prev = l->head.prev;
    n->next = &l->head;
    l->head.prev->next = n;
    l->head.prev = n;
}

/* The first node if it has been there for age_ms, or NULL. */
static struct channel_node *list_due(const struct channel_list *l, uint64_t now_ms, uint64_t age_ms)
{
    struct channel_node *first = l->head.next;
    return first != &l->head && now_ms >= first->since_ms + age_ms ? first : NULL;
}

static struct ring_limits *ring_limits_of(const struct config *config)
{
    struct ring_limits *limits = mem_alloc(config->namespace_count * sizeof(*limits));
    for (size_t i = 0; i < config->namespace_count; i++) {
        const struct namespace_config *ns = &config->namespaces[i];
        limits[i] = (struct ring_limits){ns->ring_messages, ns->ring_bytes, ns->ring_max_age_ms};
    }
    return limits;
}

struct hub *hub_new(const struct config *config, void (*wake)(void *loop), void *loop)
{
    struct hub *h = mem_zalloc(sizeof(*h));
    h->config = config;
    h->wake = wake;
    h->loop = loop;
    h->limits = ring_limits_of(config);
    h->shelf.max_bytes = config->gateway_ring_total_bytes;
    list_init(&h->idle);
    list_init(&h->unready);
    return h;
}

void hub_attach(struct hub *h, struct backplane *b)
{
    h->backplane = b;
}

struct backplane *hub_backplane(struct hub *h)
{
    return h->backplane;
}

static struct channel *find(struct hub *h, const char *name, size_t len)
{
    struct channel *c = NULL;
    HASH_FIND(hh, h->channels, name, len, c);
    return c;
}

static struct channel *create(struct hub *h, const char *name, size_t len)
{
    const struct namespace_config *settings = config_namespace(h->config, name, len);
    const struct ring_limits *limits = &h->limits[settings - h->config->namespaces];
    struct channel *c = channel_new(h, settings, limits, &h->shelf, name, len);
    HASH_ADD_KEYPTR(hh, h->channels, c->name, len, c);
    list_append(&h->unready, &c->unready);
    stats_add(STAT_channels, 1);
    return c;
}

static void destroy(struct channel *c)
{
    struct hub *h = c->hub;
    list_remove(&h->idle, &c->idle);
    list_remove(&h->unready, &c->unready);
    HASH_DEL(h->channels, c);
    stats_sub(STAT_channels, 1);
    channel_free(c);
}

void hub_join(struct hub *h, const char *name, size_t len, struct subscription *sub,
              struct stream *stream)
{
    struct channel *c = find(h, name, len);
    if (c == NULL)
        c = create(h, name, len);
    list_remove(&h->idle, &c->idle);
    channel_join(c, sub, stream);
    stats_add(STAT_subscriptions, 1);
    h->backplane->ops->want(h->backplane, &c->topic);
    /* what is published until it is subscribed again does not arrive */
    if (c->topic.state == TOPIC_LEAVING && !channel_holds_streams(c))
        list_append(&h->unready, &c->unready);
}

/* Gives an idle channel up. False while a sweep has still to find it empty, this turn or the next.
 */
static bool let_go(struct hub *h, struct channel *c)
{
    if (c->dirty)
        return false;
    list_remove(&h->idle, &c->idle);
    h->backplane->ops->unwant(h->backplane, &c->topic);
    return true;
}

/* A client that runs through many names must not fill the memory with channels that linger. */
static void begin_idle(struct hub *h, struct channel *c)
{
    list_append(&h->idle, &c->idle);
    if (h->idle.count <= h->config->gateway_lingering_channels)
        return;
    if (let_go(h, container_of(h->idle.head.next, struct channel, idle)))
        stats_add(STAT_lingers_cut, 1);
}

void hub_leave(struct subscription *sub)
{
    struct channel *c = sub->channel;
    channel_leave(sub);
    stats_sub(STAT_subscriptions, 1);
    if (c->subscribers.count == 0)
        begin_idle(c->hub, c);
}

void hub_flush(struct hub *h)
{
    h->backplane->ops->flush(h->backplane);
}

static void put_dirty(struct hub *h, struct channel *c)
{
    c->next_dirty = NULL;
    if (h->dirty_last != NULL)
        h->dirty_last->next_dirty = c;
    else
        h->dirty_first = c;
    h->dirty_last = c;
}

void hub_mark_dirty(struct channel *c)
{
    struct hub *h = c->hub;
    if (c->dirty) {
        /* who was visited in this round has to be visited once more */
        c->sweep_again = c->sweep_again || c->subscribers.position != 0;
        return;
    }
    if (c->subscribers.count == 0)
        return;
    c->dirty = true;
    channel_begin_round(c);
    put_dirty(h, c);
    h->wake(h->loop);
}

static struct channel *take_dirty(struct hub *h)
{
    struct channel *c = h->dirty_first;
    h->dirty_first = c->next_dirty;
    if (h->dirty_first == NULL)
        h->dirty_last = NULL;
    return c;
}

/* Redis is faster than the sweeps: what it has waits there, where it is not lost, until they have
 * caught up. They do so without their slow readers, so that nobody can hold the others up. */
static void crowd(struct hub *h, struct channel *c)
{
    if (c->is_crowded || !c->dirty || !channel_is_crowding(c))
        return;
    c->is_crowded = true;
    if (h->crowded++ == 0) {
        stats_add(STAT_backplane_pauses, 1);
        h->backplane->ops->pause(h->backplane);
    }
}

static void thin_out(struct hub *h, struct channel *c)
{
    if (!c->is_crowded || channel_is_crowding(c))
        return;
    c->is_crowded = false;
    h->crowded--;
    h->is_resuming = h->crowded == 0;
}

bool hub_run(struct hub *h)
{
    unsigned budget = WRITES_A_TURN;
    while (h->dirty_first != NULL && budget > 0) {
        struct channel *c = take_dirty(h);
        bool done;
        unsigned share = budget < WRITES_A_CHANNEL ? budget : WRITES_A_CHANNEL;
        unsigned used = channel_sweep(c, share, &done);
        budget -= used == 0 ? 1 : used; /* visiting an empty channel is work too */
        thin_out(h, c);
        if (done)
            c->dirty = false;
        else
            put_dirty(h, c);
    }
    if (h->is_resuming) {
        h->is_resuming = false;
        h->backplane->ops->resume(h->backplane);
    }
    return h->dirty_first != NULL;
}

void hub_tick(struct hub *h, uint64_t now_ms)
{
    struct channel_node *n;
    while ((n = list_due(&h->idle, now_ms, h->config->gateway_unsubscribe_linger_ms)) != NULL) {
        if (!let_go(h, container_of(n, struct channel, idle)))
            break;
    }
    while ((n = list_due(&h->unready, now_ms, HOLD_MS)) != NULL) {
        list_remove(&h->unready, n);
        hub_mark_dirty(container_of(n, struct channel, unready));
    }
    shelf_expire(&h->shelf, now_ms);
    hub_flush(h);
}

struct id hub_position(const struct hub *h)
{
    return h->position;
}

bool hub_is_ready(const struct hub *h)
{
    return h->backplane->ops->is_ready(h->backplane);
}

/* The highest id that Redis can have given by now, as far as we know. */
static uint64_t latest_ms(const struct hub *h)
{
    return h->clock_ms + (clock_mono_ms() - h->clock_at_ms) + FUTURE_SLACK_MS;
}

/* Ids rise in a channel; whoever forges one must not move cursors. */
static bool is_acceptable(struct hub *h, struct channel *c, const struct message *m)
{
    uint64_t suppressed;
    if (!m->has_id)
        return true;
    if (id_compare(&m->id, &c->last_id) <= 0) {
        stats_add(STAT_dropped_stale, 1);
        if (log_allowed(&h->stale_limit, &suppressed))
            log_warn("message_dropped reason=stale_id channel=%s suppressed=%lu", c->name,
                     suppressed);
        return false;
    }
    if (h->clock_at_ms != 0 && m->id.ms > latest_ms(h)) {
        stats_add(STAT_dropped_future, 1);
        if (log_allowed(&h->future_limit, &suppressed))
            log_warn("message_dropped reason=future_id channel=%s suppressed=%lu", c->name,
                     suppressed);
        return false;
    }
    return true;
}

static struct channel *channel_of(struct topic *topic)
{
    return container_of(topic, struct channel, topic);
}

static struct topic *find_topic(void *owner, const char *name, size_t len)
{
    struct channel *c = find(owner, name, len);
    return c == NULL ? NULL : &c->topic;
}

static void advance(struct hub *h, const struct id *position)
{
    if (id_compare(position, &h->position) > 0)
        h->position = *position;
}

static void on_message(void *owner, struct topic *topic, struct message *m)
{
    struct hub *h = owner;
    struct channel *c = channel_of(topic);
    if (!is_acceptable(h, c, m)) {
        message_unref(m);
        return;
    }
    if (m->has_id) {
        c->last_id = m->id;
        advance(h, &m->id);
    }
    channel_append_take(c, m, clock_mono_ms());
    hub_mark_dirty(c);
    crowd(h, c);
}

static void on_ready(void *owner, struct topic *topic)
{
    struct hub *h = owner;
    struct channel *c = channel_of(topic);
    list_remove(&h->unready, &c->unready);
    if (id_compare(&c->last_id, &h->position) < 0)
        c->last_id = h->position; /* what comes from here on comes after it */
    hub_mark_dirty(c);            /* its streams may have been waiting for it */
}

static void on_lost(void *owner, struct topic *topic)
{
    struct hub *h = owner;
    list_append(&h->unready, &channel_of(topic)->unready);
}

static void on_off(void *owner, struct topic *topic)
{
    (void)owner;
    destroy(channel_of(topic));
}

static void on_position(void *owner, const struct id *position)
{
    struct hub *h = owner;
    /* one that was read late says less than the last one did, and the time since */
    uint64_t now_ms = clock_mono_ms();
    uint64_t expected = h->clock_at_ms == 0 ? 0 : h->clock_ms + (now_ms - h->clock_at_ms);
    h->clock_at_ms = now_ms;
    h->clock_ms = position->ms > expected ? position->ms : expected;
    advance(h, position);
}

const struct backplane_events hub_events = {
    .find = find_topic,
    .on_message = on_message,
    .on_ready = on_ready,
    .on_lost = on_lost,
    .on_off = on_off,
    .on_position = on_position,
};

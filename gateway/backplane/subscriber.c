#include "gateway/backplane/subscriber.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"
#include "gateway/backplane/admission.h"
#include "gateway/backplane/topics.h"
#include "gateway/link_h2o.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 512, /* names in one SUBSCRIBE */
    PING_INTERVAL_MS = 1000,
    DENIED_RETRY_MS = 5000, /* until refused topics are asked for again */
    PAUSE_MS = 1000         /* ticks further apart than this: we were stopped, not Redis */
};

enum { COMMANDS_MAX = 8 }; /* on their way at once; what is more waits for an answer */

/* A command on its way. The replies come in the order of the commands. */
struct command {
    enum { PROBE_SUBSCRIBE, SUBSCRIBE, UNSUBSCRIBE, PING } kind;
    size_t awaited; /* replies still to come; of a refused one, all of them */
};

struct subscriber {
    struct subscriber_settings settings;
    const struct backplane_events *events;
    void *owner;
    struct redis_link *link;
    struct topics topics;
    struct command commands[COMMANDS_MAX]; /* oldest first */
    size_t command_count;
    size_t batch_max;   /* 1 after a batch was refused, to find out which name it was */
    uint64_t denied_ms; /* when that was */
    uint64_t heard_ms;  /* the last probe or pong */
    uint64_t tick_ms;
    uint64_t ping_ms;
    bool probed;       /* a probe was heard since the link is up */
    bool resubscribed; /* every topic was confirmed or refused since the link is up */
    struct log_limit denied_limit;
};

static const char *prefix(const struct subscriber *s)
{
    return s->settings.config->redis_prefix;
}

static void send(struct subscriber *s, const struct resp_arg *args, size_t count,
                 struct command command)
{
    if (!redis_link_send(s->link, args, count))
        return; /* the link is about to go down, which starts everything anew */
    s->commands[s->command_count++] = command;
}

static bool may_send(const struct subscriber *s)
{
    return redis_link_is_ready(s->link) && s->command_count < COMMANDS_MAX;
}

/* SUBSCRIBE or UNSUBSCRIBE for the next topics that are due. */
static bool send_batch(struct subscriber *s, const char *verb, enum topic_state from,
                       enum topic_state to)
{
    size_t count;
    struct topic *topic = topics_take(&s->topics, from, to, s->batch_max, &count);
    if (count == 0)
        return false;
    size_t prefix_len = strlen(prefix(s));
    struct resp_arg *args = mem_alloc((count + 1) * sizeof(*args));
    struct buf names = {0};
    (void)buf_reserve(&names, count * (prefix_len + CHANNEL_NAME_MAX)); /* stays where it is */
    args[0] = resp_text(verb);
    for (size_t i = 1; i <= count; i++, topic = topic->next) {
        args[i] = (struct resp_arg){names.bytes + names.len, prefix_len + topic->len};
        buf_append(&names, prefix(s), prefix_len);
        buf_append(&names, topic->name, topic->len);
    }
    send(s, args, count + 1, (struct command){to == TOPIC_ASKED ? SUBSCRIBE : UNSUBSCRIBE, count});
    buf_fini(&names);
    free(args);
    return true;
}

void subscriber_flush(struct subscriber *s)
{
    while (may_send(s) && (send_batch(s, "SUBSCRIBE", TOPIC_ASKING, TOPIC_ASKED) ||
                           send_batch(s, "UNSUBSCRIBE", TOPIC_LEAVE, TOPIC_LEAVING)))
        continue;
}

/* The oldest command has its whole answer, a refusal being one too. */
static void end_command(struct subscriber *s)
{
    s->command_count--;
    memmove(s->commands, s->commands + 1, s->command_count * sizeof(s->commands[0]));
    if (!topics_has(&s->topics, TOPIC_ASKING) && !topics_has(&s->topics, TOPIC_ASKED))
        s->resubscribed = true;
    subscriber_flush(s);
}

static bool awaits(const struct subscriber *s, int kind)
{
    return s->command_count != 0 && (int)s->commands[0].kind == kind;
}

/* One reply of the oldest command has come. */
static void count_reply(struct subscriber *s, int kind)
{
    if (awaits(s, kind) && --s->commands[0].awaited == 0)
        end_command(s);
}

static void on_ready(void *owner)
{
    struct subscriber *s = owner;
    s->heard_ms = clock_mono_ms();
    s->batch_max = BATCH_MAX;
    stats_set(STAT_redis_subscriber_up, 1);
    const struct resp_arg args[] = {resp_text("SUBSCRIBE"), resp_text(s->settings.probe_channel)};
    send(s, args, 2, (struct command){PROBE_SUBSCRIBE, 1});
}

static void reset_list(struct subscriber *s, enum topic_state state)
{
    struct topic *topic;
    while ((topic = topics_first(&s->topics, state)) != NULL) {
        bool was_on = state == TOPIC_ON || state == TOPIC_LEAVE;
        topics_reset(&s->topics, topic);
        if (topic->state == TOPIC_OFF)
            s->events->on_off(s->owner, topic);
        else if (was_on)
            s->events->on_lost(s->owner, topic);
    }
}

static void on_down(void *owner, enum link_fault fault)
{
    (void)fault; /* the link logged it */
    struct subscriber *s = owner;
    s->command_count = 0;
    s->probed = s->resubscribed = false;
    stats_set(STAT_redis_subscriber_up, 0);
    stats_add(STAT_redis_subscriber_downs, 1);
    for (int state = TOPIC_ASKED; state < TOPIC_STATES; state++)
        reset_list(s, (enum topic_state)state);
}

/* `<position> <token>`, or `- <token>` while no function can tell a position. */
static void on_probe(struct subscriber *s, const struct resp *text)
{
    struct id position;
    s->heard_ms = clock_mono_ms();
    s->probed = true;
    stats_add(STAT_probes_heard, 1);
    const char *blank = memchr(text->text, ' ', text->len);
    size_t len = blank == NULL ? text->len : (size_t)(blank - text->text);
    if (id_parse(&position, text->text, len))
        s->events->on_position(s->owner, &position);
}

/* The channel's own name in a Redis channel, or false for one that is not ours. */
static bool strip_prefix(const struct subscriber *s, const struct resp *name, const char **channel,
                         size_t *len)
{
    size_t prefix_len = strlen(prefix(s));
    if (name->len <= prefix_len || memcmp(name->text, prefix(s), prefix_len) != 0)
        return false;
    *channel = name->text + prefix_len;
    *len = name->len - prefix_len;
    return true;
}

static void on_message(struct subscriber *s, const struct resp *name, const struct resp *payload)
{
    const char *channel;
    size_t len;
    if (resp_is(name, s->settings.probe_channel)) {
        on_probe(s, payload);
        return;
    }
    struct topic *topic = NULL;
    if (strip_prefix(s, name, &channel, &len))
        topic = s->events->find(s->owner, channel, len);
    /* Nobody listened when UNSUBSCRIBE went out; who came since would miss what follows this. */
    if (topic == NULL || topic->state == TOPIC_LEAVING) {
        stats_add(STAT_dropped_unrouted, 1);
        return;
    }
    struct message *m =
        admission_receive(s->settings.config, channel, len, payload->text, payload->len);
    if (m != NULL)
        s->events->on_message(s->owner, topic, m);
}

static struct topic *topic_named(struct subscriber *s, const struct resp *name)
{
    const char *channel;
    size_t len;
    if (!strip_prefix(s, name, &channel, &len))
        return NULL;
    return s->events->find(s->owner, channel, len);
}

static void on_subscribed(struct subscriber *s, const struct resp *name)
{
    if (resp_is(name, s->settings.probe_channel)) {
        count_reply(s, PROBE_SUBSCRIBE);
        return;
    }
    struct topic *topic = topic_named(s, name);
    if (topic != NULL && topics_confirm_on(&s->topics, topic))
        s->events->on_ready(s->owner, topic);
    count_reply(s, SUBSCRIBE);
}

static void on_unsubscribed(struct subscriber *s, const struct resp *name)
{
    struct topic *topic = topic_named(s, name);
    if (topic != NULL && topics_confirm_off(&s->topics, topic) && topic->state == TOPIC_OFF)
        s->events->on_off(s->owner, topic);
    count_reply(s, UNSUBSCRIBE);
}

/* A refused batch is asked for again name by name; a name refused alone waits a while. */
static void on_batch_refused(struct subscriber *s)
{
    size_t count = s->commands[0].awaited;
    enum topic_state to = count == 1 ? TOPIC_DENIED : TOPIC_ASKING;
    struct topic *topic = topics_take(&s->topics, TOPIC_ASKED, to, count, &count);
    if (to == TOPIC_DENIED && !topic->wanted)
        subscriber_unwant(s, topic); /* everybody left while the question was out */
    s->batch_max = 1;
    s->denied_ms = s->tick_ms;
    end_command(s);
}

static void on_error(struct subscriber *s, const struct resp *error)
{
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    enum link_fault fault = link_fault_of_error(error);
    if (awaits(s, SUBSCRIBE) && fault == LINK_FAULT_ACL) {
        struct topic *topic = topics_first(&s->topics, TOPIC_ASKED);
        if (log_allowed(&s->denied_limit, &suppressed))
            log_error("subscribe_denied channel=%s batch=%zu text=%s suppressed=%" PRIu64,
                      topic->name, s->commands[0].awaited,
                      log_quote(quoted, error->text, error->len), suppressed);
        on_batch_refused(s);
        return;
    }
    if (log_allowed(&s->denied_limit, &suppressed))
        log_error("subscriber_refused text=%s suppressed=%" PRIu64,
                  log_quote(quoted, error->text, error->len), suppressed);
    redis_link_drop(s->link, fault == LINK_FAULT_NONE ? LINK_FAULT_PROTOCOL : fault);
}

static void on_reply(void *owner, const struct resp *reply)
{
    struct subscriber *s = owner;
    if (reply->type == RESP_ERROR) {
        on_error(s, reply);
        return;
    }
    if (reply->type != RESP_ARRAY || reply->count < 2)
        return;
    const struct resp *kind = reply->elements[0];
    if (resp_is(kind, "pong")) {
        s->heard_ms = clock_mono_ms();
        count_reply(s, PING);
        return;
    }
    if (reply->count != 3 || reply->elements[1]->type != RESP_STRING)
        return;
    if (resp_is(kind, "message") && reply->elements[2]->type == RESP_STRING)
        on_message(s, reply->elements[1], reply->elements[2]);
    else if (resp_is(kind, "subscribe"))
        on_subscribed(s, reply->elements[1]);
    else if (resp_is(kind, "unsubscribe"))
        on_unsubscribed(s, reply->elements[1]);
}

struct subscriber *subscriber_new(const struct subscriber_settings *settings, void *loop,
                                  const struct backplane_events *events, void *owner)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_reply = on_reply, .on_down = on_down};
    struct subscriber *s = mem_zalloc(sizeof(*s));
    s->settings = *settings;
    s->events = events;
    s->owner = owner;
    s->batch_max = BATCH_MAX;
    topics_init(&s->topics);
    s->link = redis_link_new(&s->settings.link, &link_h2o_poller, loop, &callbacks, s);
    return s;
}

void subscriber_free(struct subscriber *s)
{
    redis_link_free(s->link);
    free(s);
}

void subscriber_want(struct subscriber *s, struct topic *topic)
{
    topics_want(&s->topics, topic);
}

void subscriber_unwant(struct subscriber *s, struct topic *topic)
{
    if (topics_unwant(&s->topics, topic))
        s->events->on_off(s->owner, topic);
}

void subscriber_pause(struct subscriber *s)
{
    redis_link_pause(s->link, true);
}

void subscriber_resume(struct subscriber *s)
{
    redis_link_pause(s->link, false);
}

static void check_silence(struct subscriber *s, uint64_t now_ms)
{
    if (s->tick_ms != 0 && now_ms - s->tick_ms > PAUSE_MS)
        s->heard_ms = now_ms; /* what came meanwhile has not been read yet */
    if (now_ms > s->heard_ms + s->settings.config->redis_probe_timeout_ms)
        redis_link_drop(s->link, LINK_FAULT_SILENT);
}

static void retry_denied(struct subscriber *s, uint64_t now_ms)
{
    size_t count;
    if (s->batch_max != 1 || now_ms < s->denied_ms + DENIED_RETRY_MS)
        return;
    s->batch_max = BATCH_MAX;
    do
        (void)topics_take(&s->topics, TOPIC_DENIED, TOPIC_ASKING, BATCH_MAX, &count);
    while (count != 0);
}

static void ping(struct subscriber *s, uint64_t now_ms)
{
    if (!may_send(s) || now_ms < s->ping_ms + PING_INTERVAL_MS)
        return;
    const struct resp_arg args[] = {resp_text("PING")};
    s->ping_ms = now_ms;
    send(s, args, 1, (struct command){PING, 1});
}

void subscriber_tick(struct subscriber *s, uint64_t now_ms, bool probes_come)
{
    redis_link_tick(s->link, now_ms);
    if (redis_link_is_ready(s->link)) {
        if (!probes_come)
            ping(s, now_ms);
        check_silence(s, now_ms);
        retry_denied(s, now_ms);
    }
    s->tick_ms = now_ms;
    subscriber_flush(s);
}

bool subscriber_is_ready(const struct subscriber *s)
{
    return s->probed && s->resubscribed;
}

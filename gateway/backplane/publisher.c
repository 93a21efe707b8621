#include "gateway/backplane/publisher.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/redis_commands.h"
#include "common/stats.h"
#include "gateway/link_h2o.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNSENT_MAX = 16 << 20, /* bytes; beyond it Redis is too slow for one more */
    PROBE_INTERVAL_MS = 1000,
    PAUSE_MS = 1000 /* ticks further apart than this: we were stopped, not Redis */
};

struct publisher {
    struct publisher_settings settings;
    struct redis_link *link;
    struct redis_commands *commands;
    uint64_t probe_ms;
    uint64_t tick_ms;
    bool awaits_probe;     /* the last probe's answer has not come */
    bool function_missing; /* said once */
    char *redis_channel;   /* scratch: prefix and channel */
};

/* Who waits for an answer from Redis. */
struct waiting {
    publish_cb cb;
    void *owner;
};

/* Replies to the library's own refusals: `TIDECAST <code> <text>`. */
static const struct refusal {
    const char *code;
    int status;
} refusals[] = {
    {"bad_channel", 400},         {"bad_event", 400},          {"bad_key", 400},
    {"bad_idempotency_key", 400}, {"payload_too_big", 413},    {"payload_not_utf8", 400},
    {"payload_enveloped", 400},   {"payload_not_json", 400},   {"idempotency_conflict", 409},
    {"config_missing", 503},      {"config_unsupported", 503}, {"clock_exhausted", 503},
};

/* Errors of Redis itself, by the first word or a part of the text. */
static const struct {
    const char *text;
    const char *code;
    const char *message;
} redis_errors[] = {
    {"Function not found", "function_missing", "The broker has not installed its functions yet."},
    {"OOM", "redis_full", "Redis is out of memory."},
    {"NOPERM", "redis_forbidden", "Redis does not let this gateway publish."},
    {"MISCONF", "redis_unavailable", "Redis refuses writes."},
    {"READONLY", "redis_unavailable", "Redis is a replica."},
    {"LOADING", "redis_unavailable", "Redis is loading its data."},
    {"BUSY", "redis_unavailable", "Redis is busy."},
    {"NOREPLICAS", "redis_unavailable", "Redis has too few replicas."},
};

/* What follows the code in the text of such a refusal, or NULL when it is not this one. */
static const char *refusal_message(const char *text, const char *code)
{
    static const char mark[] = "TIDECAST ";
    size_t len = strlen(code);
    if (strncmp(text, mark, sizeof(mark) - 1) != 0)
        return NULL;
    text += sizeof(mark) - 1;
    if (strncmp(text, code, len) != 0 || text[len] != ' ')
        return NULL;
    return text + len + 1;
}

static struct publish_outcome outcome_of_error(const struct resp *error)
{
    static struct log_limit limit;
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const char *message = refusal_message(error->text, refusals[i].code);
        if (message != NULL)
            return (struct publish_outcome){refusals[i].status, refusals[i].code, message, {0, 0}};
    }
    if (log_allowed(&limit, &suppressed))
        log_error("publish_failed text=%s suppressed=%" PRIu64,
                  log_quote(quoted, error->text, error->len), suppressed);
    for (size_t i = 0; i < sizeof(redis_errors) / sizeof(redis_errors[0]); i++) {
        if (strstr(error->text, redis_errors[i].text) != NULL)
            return (struct publish_outcome){
                503, redis_errors[i].code, redis_errors[i].message, {0, 0}};
    }
    return (struct publish_outcome){503, "redis_error", "Redis answered with an error.", {0, 0}};
}

static struct publish_outcome outcome_of(const struct resp *reply)
{
    struct publish_outcome outcome = {.status = 200};
    if (reply == NULL)
        return (struct publish_outcome){503,
                                        "publish_unknown",
                                        "Redis did not answer; it may or may not be published.",
                                        {0, 0}};
    if (reply->type == RESP_ERROR)
        return outcome_of_error(reply);
    if (reply->type != RESP_STRING || !id_parse(&outcome.id, reply->text, reply->len))
        return (struct publish_outcome){
            503, "redis_error", "Redis answered with something else than an id.", {0, 0}};
    return outcome;
}

static void on_published(void *owner, const struct resp *reply)
{
    struct waiting *w = owner;
    struct publish_outcome outcome = outcome_of(reply);
    w->cb(w->owner, &outcome);
    free(w);
}

static void append_option(struct resp_arg *args, size_t *count, const char *name, const char *value,
                          size_t len)
{
    if (len == 0)
        return;
    args[(*count)++] = resp_text(name);
    args[(*count)++] = (struct resp_arg){value, len};
}

void publisher_publish(struct publisher *p, const struct publication *publication, publish_cb cb,
                       void *owner)
{
    int len = snprintf(p->redis_channel, PREFIX_MAX + CHANNEL_NAME_MAX + 1, "%s%.*s",
                       p->settings.config->redis_prefix, (int)publication->channel_len,
                       publication->channel);
    struct resp_arg args[11] = {resp_text("FCALL"),
                                resp_text("tidecast_publish"),
                                resp_text("1"),
                                {p->redis_channel, (size_t)len},
                                {publication->payload, publication->payload_len}};
    size_t count = 5;
    append_option(args, &count, "event", publication->event, publication->event_len);
    append_option(args, &count, "key", publication->key, publication->key_len);
    append_option(args, &count, "idempotency", publication->idempotency_key,
                  publication->idempotency_key_len);
    struct waiting *w = mem_alloc(sizeof(*w));
    *w = (struct waiting){cb, owner};
    if (redis_link_unsent(p->link) < UNSENT_MAX &&
        redis_commands_send(p->commands, args, count, on_published, w))
        return;
    free(w);
    bool up = redis_link_is_ready(p->link);
    struct publish_outcome outcome = {503,
                                      up ? "publish_queue_full" : "redis_unavailable",
                                      up ? "Too many publish requests wait for Redis."
                                         : "Redis can't be reached.",
                                      {0, 0}};
    cb(owner, &outcome);
}

/* Without the function a probe still proves that messages arrive; it just tells no position. */
static void send_plain_probe(struct publisher *p)
{
    const struct resp_arg args[] = {resp_text("PUBLISH"), resp_text(p->settings.probe_channel),
                                    resp_text("- plain")};
    (void)redis_commands_send(p->commands, args, 3, NULL, NULL);
}

static void on_probe_answer(void *owner, const struct resp *reply)
{
    struct publisher *p = owner;
    char quoted[LOG_QUOTE_MAX];
    bool failed = reply != NULL && reply->type == RESP_ERROR;
    if (failed && !p->function_missing)
        log_warn("probe_without_function text=%s", log_quote(quoted, reply->text, reply->len));
    p->awaits_probe = false; /* of an answer that comes too late nobody is told: ask anew */
    if (reply != NULL)
        p->function_missing = failed;
    if (failed)
        send_plain_probe(p);
}

static void send_probe(struct publisher *p)
{
    const struct resp_arg args[] = {resp_text("FCALL"), resp_text("tidecast_probe"), resp_text("1"),
                                    resp_text(p->settings.probe_channel), resp_text("probe")};
    p->awaits_probe = redis_commands_send(p->commands, args, 5, on_probe_answer, p);
}

/* A link whose probes nobody answers is given up: without probes the subscriber would have to take
 * its own link for silent, too. */
static void check_silence(struct publisher *p, uint64_t now_ms)
{
    if (now_ms - p->tick_ms > PAUSE_MS)
        p->probe_ms = now_ms; /* what came meanwhile has not been read yet */
    if (now_ms > p->probe_ms + p->settings.config->redis_probe_timeout_ms)
        redis_link_drop(p->link, LINK_FAULT_SILENT);
}

void publisher_tick(struct publisher *p, uint64_t now_ms)
{
    redis_link_tick(p->link, now_ms);
    redis_commands_tick(p->commands, now_ms);
    if (redis_link_is_ready(p->link) && p->awaits_probe) {
        check_silence(p, now_ms);
    } else if (redis_link_is_ready(p->link) && now_ms >= p->probe_ms + PROBE_INTERVAL_MS) {
        p->probe_ms = now_ms;
        send_probe(p);
    }
    p->tick_ms = now_ms;
}

static void on_ready(void *owner)
{
    struct publisher *p = owner;
    stats_set(STAT_redis_command_up, 1);
    p->probe_ms = 0; /* the first probe goes out with the next tick */
    p->awaits_probe = false;
}

static void on_reply(void *owner, const struct resp *reply)
{
    struct publisher *p = owner;
    redis_commands_on_reply(p->commands, reply);
}

static void on_down(void *owner, enum link_fault fault)
{
    (void)fault; /* the link logged it */
    struct publisher *p = owner;
    stats_set(STAT_redis_command_up, 0);
    stats_add(STAT_redis_command_downs, 1);
    redis_commands_on_down(p->commands);
}

struct publisher *publisher_new(const struct publisher_settings *settings, void *loop)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_reply = on_reply, .on_down = on_down};
    const struct config *config = settings->config;
    struct publisher *p = mem_zalloc(sizeof(*p));
    p->settings = *settings;
    p->redis_channel = mem_alloc(PREFIX_MAX + CHANNEL_NAME_MAX + 1);
    p->link = redis_link_new(&p->settings.link, &link_h2o_poller, loop, &callbacks, p);
    p->commands = redis_commands_new(p->link, config->gateway_max_pending_publishes,
                                     config->gateway_publish_timeout_ms);
    return p;
}

void publisher_free(struct publisher *p)
{
    redis_commands_free(p->commands);
    redis_link_free(p->link);
    free(p->redis_channel);
    free(p);
}

bool publisher_is_ready(const struct publisher *p)
{
    return redis_link_is_ready(p->link);
}

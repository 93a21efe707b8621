#include "gateway/transport/ws_dispatch.h"

#include "common/log.h"
#include "common/mem.h"
#include "gateway/transport/gap.h"
#include "gateway/transport/streams.h"
#include "gateway/transport/ws_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMMAND_LEN = 4096, PUBLISH_WRAPPING = 1024 };

/* A publish that Redis has not answered yet. */
struct ws_publish {
    struct ws_publish *prev, *next; /* of the session */
    struct ws_session *session;     /* NULL: the client left */
    bool has_req;
    int64_t req;
};

static void send_answer(struct stream *s, const struct buf *json)
{
    struct buf frame = {0};
    ws_append_frame(&frame, WS_TEXT, json->bytes, json->len);
    stream_send(s, frame.bytes, frame.len);
    buf_fini(&frame);
}

/* Every answer begins alike: the opening brace, and "req" if the command had one. */
static struct buf begin_answer(bool has_req, int64_t req)
{
    struct buf json = {0};
    buf_append_text(&json, "{");
    if (has_req)
        buf_printf(&json, "\"req\":%" PRId64 ",", req);
    return json;
}

static void end_answer(struct stream *s, struct buf *json)
{
    buf_append_text(json, "}");
    send_answer(s, json);
    buf_fini(json);
}

static void answer_error(struct stream *s, bool has_req, int64_t req, const char *code,
                         const char *message)
{
    static struct log_limit limit;
    uint64_t suppressed;
    struct buf json = begin_answer(has_req, req);
    stats_add(STAT_ws_command_errors, 1);
    if (log_allowed(&limit, &suppressed))
        log_info("command_refused error=%s suppressed=%" PRIu64, code, suppressed);
    buf_printf(&json, "\"error\":\"%s\",\"message\":", code);
    buf_append_json_string(&json, message, strlen(message));
    end_answer(s, &json);
}

static void append_channels(struct buf *json, const char *member, const struct ws_command *c)
{
    buf_printf(json, "\"%s\":[", member);
    for (size_t i = 0; i < c->channel_count; i++) {
        buf_append_text(json, i == 0 ? "" : ",");
        buf_append_json_string(json, c->channels[i].bytes, c->channels[i].len);
    }
    buf_append_text(json, "]");
}

static size_t count_new(struct stream *s, const struct ws_command *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->channel_count; i++)
        count += stream_find(s, c->channels[i].bytes, c->channels[i].len) == NULL;
    return count;
}

/* After the answer, a message of each channel that says what may be missing. */
static void tell_gaps(struct stream *s, const struct ws_command *c, const struct id *position)
{
    struct id from;
    char to[ID_TEXT_MAX];
    if (!gap_is_there(c->since, strlen(c->since), position, &from))
        return;
    (void)id_format(position, to);
    for (size_t i = 0; i < c->channel_count; i++) {
        struct buf json = {0};
        buf_printf(&json, "{\"channel\":\"%s\",\"id\":\"%s\",\"event\":\"" GAP_EVENT "\",\"data\":",
                   c->channels[i].bytes, to);
        gap_append_json(&json, &from, position);
        end_answer(s, &json);
    }
}

static void subscribe(struct stream *s, const struct ws_command *c)
{
    if (s->sub_count + count_new(s, c) > s->all->config->gateway_channels_per_connection) {
        stats_add(STAT_refused_channels, 1);
        answer_error(s, c->has_req, c->req, "too_many_channels",
                     "This connection has as many channels as it may have.");
        return;
    }
    for (size_t i = 0; i < c->channel_count; i++) {
        if (stream_find(s, c->channels[i].bytes, c->channels[i].len) == NULL)
            stream_subscribe(s, c->channels[i].bytes, c->channels[i].len);
    }
    hub_flush(s->all->hub);
    struct id position = hub_position(s->all->hub);
    char text[ID_TEXT_MAX];
    struct buf json = begin_answer(c->has_req, c->req);
    append_channels(&json, "subscribed", c);
    if (!id_is_zero(&position)) {
        (void)id_format(&position, text);
        buf_printf(&json, ",\"id\":\"%s\"", text);
    }
    end_answer(s, &json);
    if (c->since != NULL)
        tell_gaps(s, c, &position);
}

static void unsubscribe(struct stream *s, const struct ws_command *c)
{
    for (size_t i = 0; i < c->channel_count; i++) {
        struct subscription *sub = stream_find(s, c->channels[i].bytes, c->channels[i].len);
        if (sub != NULL)
            stream_unsubscribe(s, sub);
    }
    struct buf json = begin_answer(c->has_req, c->req);
    append_channels(&json, "unsubscribed", c);
    end_answer(s, &json);
}

static void unlink_publish(struct ws_publish *p)
{
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        p->session->publishes = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    p->session->publish_count--;
}

static void answer_publish(struct stream *s, const struct ws_publish *p,
                           const struct publish_outcome *outcome)
{
    char id[ID_TEXT_MAX];
    if (outcome->status != 200) {
        stats_add(outcome->status == 503 ? STAT_publish_unavailable : STAT_publish_refused, 1);
        answer_error(s, p->has_req, p->req, outcome->code, outcome->message);
        return;
    }
    stats_add(STAT_published, 1);
    (void)id_format(&outcome->id, id);
    struct buf json = begin_answer(p->has_req, p->req);
    buf_printf(&json, "\"published\":{\"id\":\"%s\"}", id);
    end_answer(s, &json);
}

static void on_published(void *owner, const struct publish_outcome *outcome)
{
    struct ws_publish *p = owner;
    if (p->session != NULL) {
        struct stream *s = p->session->stream;
        unlink_publish(p);
        answer_publish(s, p, outcome);
        ws_session_trim(s);
    }
    free(p);
}

static struct ws_publish *remember(struct stream *s, const struct ws_command *c)
{
    struct ws_session *w = ws_session_get(s);
    struct ws_publish *p = mem_alloc(sizeof(*p));
    *p = (struct ws_publish){NULL, w->publishes, w, c->has_req, c->req};
    if (p->next != NULL)
        p->next->prev = p;
    w->publishes = p;
    w->publish_count++;
    return p;
}

static struct publication publication_of(const struct ws_command *c)
{
    struct publication p = {.channel = c->channel.bytes,
                            .channel_len = c->channel.len,
                            .payload = c->data,
                            .payload_len = c->data_len,
                            .event = c->event,
                            .key = c->key,
                            .idempotency_key = c->idempotency_key};
    p.event_len = c->event == NULL ? 0 : strlen(c->event);
    p.key_len = c->key == NULL ? 0 : strlen(c->key);
    p.idempotency_key_len = c->idempotency_key == NULL ? 0 : strlen(c->idempotency_key);
    return p;
}

static void publish(struct stream *s, const struct ws_command *c)
{
    const struct namespace_config *settings =
        config_namespace(s->all->config, c->channel.bytes, c->channel.len);
    if (settings->publish != PUBLISH_ANYONE) {
        stats_add(STAT_refused_publish, 1);
        answer_error(s, c->has_req, c->req, "publish_forbidden",
                     "Publishing is off for this channel.");
        return;
    }
    if (s->session != NULL && s->session->publish_count >= PUBLISHES_MAX) {
        answer_error(s, c->has_req, c->req, "publish_queue_full",
                     "Too many publishes of this connection wait for an answer.");
        return;
    }
    const struct publication p = publication_of(c);
    struct backplane *b = hub_backplane(s->all->hub);
    b->ops->publish(b, &p, on_published, remember(s, c));
}

static void ping(struct stream *s, const struct ws_command *c)
{
    struct buf json = begin_answer(c->has_req, c->req);
    buf_append_text(&json, "\"pong\":1");
    end_answer(s, &json);
}

static const char *const explanations[] = {
    [WS_COMMAND_NOT_JSON] = "A command is JSON, at most 32 levels deep, no member twice.",
    [WS_COMMAND_NOT_AN_OBJECT] = "A command is one JSON object.",
    [WS_COMMAND_NO_VERB] = "A command has one of subscribe, unsubscribe, publish and ping.",
    [WS_COMMAND_UNKNOWN_MEMBER] = "The command has a member that does not belong there.",
    [WS_COMMAND_WRONG_TYPE] = "A member of the command has the wrong type, or is missing.",
    [WS_COMMAND_BAD_CHANNEL] = "A channel is 1 to 200 bytes of A-Z a-z 0-9 . _ : / @ -",
    [WS_COMMAND_TOO_MANY_CHANNELS] = "One command may name only so many channels.",
    [WS_COMMAND_BAD_NAME] = "event, key, idempotency_key or since is not as it may be.",
};

void ws_dispatch(struct stream *s, const char *text, size_t len)
{
    static void (*const verbs[])(struct stream *, const struct ws_command *) = {
        [WS_VERB_SUBSCRIBE] = subscribe,
        [WS_VERB_UNSUBSCRIBE] = unsubscribe,
        [WS_VERB_PUBLISH] = publish,
        [WS_VERB_PING] = ping,
    };
    struct ws_command c;
    enum ws_command_error error =
        ws_command_parse(&c, text, len, s->all->config->gateway_channels_per_connection);
    if (error == WS_COMMAND_OK) {
        stats_add(STAT_ws_commands, 1);
        verbs[c.verb](s, &c);
    } else {
        answer_error(s, c.has_req, c.req, ws_command_error_name(error), explanations[error]);
    }
    ws_command_fini(&c);
}

size_t ws_dispatch_max_message(const struct stream *s)
{
    uint64_t max_payload = config_max_publish(s->all->config);
    return max_payload == 0 ? MAX_COMMAND_LEN : max_payload + PUBLISH_WRAPPING;
}

void ws_dispatch_forget(struct ws_session *w)
{
    for (struct ws_publish *p = w->publishes; p != NULL; p = p->next)
        p->session = NULL;
    w->publishes = NULL;
}

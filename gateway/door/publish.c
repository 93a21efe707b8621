#include "gateway/door/publish.h"

#include "common/mem.h"
#include "common/names.h"
#include "gateway/backplane/admission.h"
#include "gateway/door/channels.h"
#include "gateway/door/reply.h"

#include <stdlib.h>

struct guard;

/* A publish that waits for Redis, which may take longer than its request lives. */
struct pending {
    h2o_req_t *req; /* NULL: it is gone, nobody is to be told */
    struct guard *guard;
    struct door *door;
};

/* In the request's pool: disposed of with it. */
struct guard {
    struct pending *pending; /* NULL: answered */
};

static void on_request_gone(void *data)
{
    struct guard *g = data;
    if (g->pending != NULL)
        g->pending->req = NULL;
}

static void answer(h2o_req_t *req, const struct publish_outcome *outcome)
{
    char id[ID_TEXT_MAX];
    struct buf json = {0};
    if (outcome->status != 200) {
        stats_add(outcome->status == 503 ? STAT_publish_unavailable : STAT_publish_refused, 1);
        reply_error(req, outcome->status, outcome->code, outcome->message);
        return;
    }
    stats_add(STAT_published, 1);
    (void)id_format(&outcome->id, id);
    buf_printf(&json, "{\"id\":\"%s\"}\n", id);
    reply_json(req, 200, &json);
    buf_fini(&json);
}

static void on_published(void *owner, const struct publish_outcome *outcome)
{
    struct pending *p = owner;
    p->door->pending--;
    if (p->req != NULL) {
        p->guard->pending = NULL;
        answer(p->req, outcome);
    }
    free(p);
}

static h2o_iovec_t param(const struct request *r, const char *name)
{
    const struct query_param *p = query_find(&r->query, name);
    return p == NULL ? (h2o_iovec_t){NULL, 0} : (h2o_iovec_t){p->value, p->value_len};
}

static bool check_name(const struct request *r, h2o_iovec_t name,
                       bool (*is_valid)(const char *name, size_t len), const char *code)
{
    if (name.base == NULL || is_valid(name.base, name.len))
        return true;
    reply_refusal(r->req, 400, code, "It has a length or a character that is not allowed.",
                  STAT_refused_request);
    return false;
}

static struct pending *remember(const struct request *r)
{
    struct pending *p = mem_alloc(sizeof(*p));
    p->req = r->req;
    p->door = r->door;
    p->door->pending++;
    p->guard = h2o_mem_alloc_shared(&r->req->pool, sizeof(struct guard), on_request_gone);
    p->guard->pending = p;
    return p;
}

static void publish_to(const struct request *r, const struct channel_name *channel)
{
    h2o_iovec_t event = param(r, "event"), key = param(r, "key");
    h2o_iovec_t idempotency_key = request_header(r, "idempotency-key");
    if (!check_name(r, event, name_is_event, "bad_event") ||
        !check_name(r, key, name_is_key, "bad_key") ||
        !check_name(r, idempotency_key, name_is_idempotency_key, "bad_idempotency_key"))
        return;
    const struct publication p = {.channel = channel->bytes,
                                  .channel_len = channel->len,
                                  .payload = r->req->entity.base,
                                  .payload_len = r->req->entity.len,
                                  .event = event.base,
                                  .event_len = event.len,
                                  .key = key.base,
                                  .key_len = key.len,
                                  .idempotency_key = idempotency_key.base,
                                  .idempotency_key_len = idempotency_key.len};
    struct backplane *b = hub_backplane(r->door->streams->hub);
    b->ops->publish(b, &p, on_published, remember(r));
}

/* What can be refused here need not trouble Redis. */
static bool check_rights_and_payload(const struct request *r, const struct channel_name *channel)
{
    const struct namespace_config *settings =
        config_namespace(r->door->config, channel->bytes, channel->len);
    if (settings->publish != PUBLISH_ANYONE) {
        reply_refusal(r->req, 403, "publish_forbidden", "Publishing is off for this channel.",
                      STAT_refused_publish);
        return false;
    }
    int status;
    const char *code =
        admission_check_payload(settings, r->req->entity.base, r->req->entity.len, &status);
    if (code == NULL)
        return true;
    reply_refusal(r->req, status, code, "The payload is not allowed in this channel.",
                  STAT_refused_payload);
    return false;
}

void publish_request(const struct request *r)
{
    struct channel_names names;
    if (channel_names_take_path(&names, r) && check_rights_and_payload(r, names.items))
        publish_to(r, names.items);
    channel_names_fini(&names);
}

#include "gateway/door/health.h"

#include "gateway/door/reply.h"

static void reply_text_json(h2o_req_t *req, const char *text)
{
    struct buf json = {0};
    buf_append_text(&json, text);
    reply_json(req, 200, &json);
    buf_fini(&json);
}

void health_live(const struct request *r)
{
    reply_text_json(r->req, "{\"status\":\"ok\"}\n");
}

void health_ready(const struct request *r)
{
    if (r->door->streams->is_shutting_down)
        reply_error(r->req, 503, "shutting_down", "This gateway is shutting down.");
    else if (stats_sum(STAT_ready) < r->door->workers)
        reply_error(r->req, 503, "not_ready", "A worker is starting or has no link to Redis.");
    else
        reply_text_json(r->req, "{\"status\":\"ready\"}\n");
}

void health_metrics(const struct request *r)
{
    struct buf text = {0};
    stats_print(&text);
    reply_body(r->req, 200, "application/openmetrics-text; version=1.0.0; charset=utf-8",
               text.bytes, text.len);
    buf_fini(&text);
}

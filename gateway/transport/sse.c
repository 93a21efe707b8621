#include "gateway/transport/sse.h"

#include "common/random.h"
#include "gateway/transport/gap.h"
#include "gateway/transport/sse_codec.h"

#include <h2o/http1.h>

enum { DISCARD_MAX = 4096 };

/* A client has nothing to say after its request: a little is forgiven, then it is closed. */
static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct stream *s = sock->data;
    (void)err;
    size_t discarded = s->discarded + stream_read(s);
    if (discarded > DISCARD_MAX)
        stream_close(s, STAT_closed_policy);
    else
        s->discarded = (uint16_t)discarded;
}

static void on_taken_over(void *data, h2o_socket_t *sock, size_t reqsize)
{
    struct stream *s = data;
    (void)reqsize; /* what follows the request is discarded with it */
    if (sock != NULL)
        h2o_buffer_consume(&sock->input, sock->input->size);
    stream_open(s, sock, on_readable);
    if (s->all->is_shutting_down)
        stream_close(s, STAT_closed_shutdown);
}

void sse_set_head(h2o_req_t *req)
{
    h2o_mem_pool_t *pool = &req->pool;
    h2o_headers_t *headers = &req->res.headers;
    req->res.status = 200;
    req->res.reason = "OK";
    h2o_add_header(pool, headers, H2O_TOKEN_CONTENT_TYPE, NULL, H2O_STRLIT("text/event-stream"));
    h2o_add_header(pool, headers, H2O_TOKEN_CACHE_CONTROL, NULL,
                   H2O_STRLIT("no-cache, no-transform"));
    h2o_add_header_by_str(pool, headers, H2O_STRLIT("x-accel-buffering"), 0, NULL,
                          H2O_STRLIT("no"));
}

static void append_first_bytes(struct buf *out, const struct stream *s, const char *last_event_id,
                               size_t len)
{
    const struct config *config = s->all->config;
    struct id position = hub_position(s->all->hub);
    struct id from;
    sse_append_retry(out,
                     random_between(config->gateway_retry_min_ms, config->gateway_retry_max_ms));
    if (!id_is_zero(&position))
        sse_append_position(out, &position);
    if (!gap_is_there(last_event_id, len, &position, &from))
        return;
    buf_append_text(out, "event: " GAP_EVENT "\ndata: ");
    gap_append_json(out, &from, &position);
    buf_append_text(out, "\n\n");
}

void sse_open(struct stream *s, h2o_req_t *req, const char *last_event_id, size_t len)
{
    struct buf first = {0};
    append_first_bytes(&first, s, last_event_id, len);
    h2o_iovec_t bytes = h2o_strdup(&req->pool, first.bytes, first.len);
    buf_fini(&first);
    sse_set_head(req);
    /* close-delimited: h2o's own `upgrade` token stays beside it, which is a legal list */
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONNECTION, NULL, H2O_STRLIT("close"));
    h2o_http1_upgrade(req, &bytes, 1, on_taken_over, s);
}

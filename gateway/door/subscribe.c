#include "gateway/door/subscribe.h"

#include "gateway/door/channels.h"
#include "gateway/door/reply.h"
#include "gateway/transport/sse.h"
#include "gateway/transport/websocket.h"
#include "gateway/transport/ws_codec.h"

#include <string.h>

static bool refuse_while_shutting_down(const struct request *r)
{
    if (!r->door->streams->is_shutting_down)
        return false;
    reply_refusal(r->req, 503, "shutting_down", "This gateway is shutting down.",
                  STAT_refused_draining);
    return true;
}

/* Asks Redis for the channels before the answer goes out: what is published after the client has
 * seen the head must find it subscribed. */
static struct stream *new_stream(const struct request *r, enum frame_kind kind,
                                 const struct channel_names *names)
{
    struct stream *s = stream_new(r->door->streams, kind);
    for (size_t i = 0; i < names->count; i++)
        stream_subscribe(s, names->items[i].bytes, names->items[i].len);
    hub_flush(r->door->streams->hub);
    return s;
}

/* HEAD: the head that GET would get, and no subscription. */
static void reply_head(h2o_req_t *req)
{
    static h2o_generator_t generator = {NULL, NULL};
    sse_set_head(req);
    req->http1_is_persistent = 0;
    h2o_start_response(req, &generator);
    h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
}

static void open_sse(const struct request *r, const struct channel_names *names)
{
    if (names->count == 0) {
        reply_refusal(r->req, 400, "no_channel",
                      "Name a channel: /sse/<channel> or ?channel=", STAT_refused_channel);
        return;
    }
    if (r->method == METHOD_HEAD) {
        reply_head(r->req);
        return;
    }
    h2o_iovec_t last = request_last_event_id(r);
    sse_open(new_stream(r, FRAME_SSE, names), r->req, last.base, last.len);
}

void subscribe_sse(const struct request *r)
{
    struct channel_names names = {0};
    if (!refuse_while_shutting_down(r) && channel_names_take(&names, r))
        open_sse(r, &names);
    channel_names_fini(&names);
}

static bool refuse_handshake(const struct request *r, const char *why)
{
    reply_refusal(r->req, 400, "bad_handshake", why, STAT_refused_handshake);
    return false;
}

/* RFC 6455, sections 4.2.1 and 4.4. */
static bool check_handshake(const struct request *r, h2o_iovec_t key)
{
    h2o_iovec_t version = request_header(r, "sec-websocket-version");
    bool wants_websocket =
        r->req->upgrade.base != NULL &&
        h2o_lcstris(r->req->upgrade.base, r->req->upgrade.len, H2O_STRLIT("websocket"));
    if (r->req->version < 0x101)
        return refuse_handshake(r, "A WebSocket needs HTTP/1.1.");
    if (wants_websocket && h2o_memis(version.base, version.len, H2O_STRLIT("13")))
        return ws_key_is_valid(key.base, key.len)
                   ? true
                   : refuse_handshake(r, "Sec-WebSocket-Key is not the base64 of 16 bytes.");
    h2o_add_header_by_str(&r->req->pool, &r->req->res.headers, H2O_STRLIT("sec-websocket-version"),
                          0, NULL, H2O_STRLIT("13"));
    h2o_add_header(&r->req->pool, &r->req->res.headers, H2O_TOKEN_UPGRADE, NULL,
                   H2O_STRLIT("websocket"));
    h2o_add_header(&r->req->pool, &r->req->res.headers, H2O_TOKEN_CONNECTION, NULL,
                   H2O_STRLIT("upgrade"));
    reply_refusal(r->req, 426, "upgrade_required", "This is a WebSocket of version 13.",
                  STAT_refused_handshake);
    return false;
}

void subscribe_websocket(const struct request *r)
{
    static const char raw[] = "tidecast.raw";
    char accept[WS_ACCEPT_LEN + 1];
    struct channel_names names = {0};
    h2o_iovec_t key = request_header(r, "sec-websocket-key");
    if (!refuse_while_shutting_down(r) && check_handshake(r, key) &&
        channel_names_take(&names, r)) {
        bool is_raw = request_header_has(r, "sec-websocket-protocol", raw);
        ws_accept(accept, key.base, key.len);
        struct stream *s = new_stream(r, is_raw ? FRAME_WS_RAW : FRAME_WS_JSON, &names);
        websocket_open(s, r->req, accept, is_raw ? raw : NULL);
    }
    channel_names_fini(&names);
}

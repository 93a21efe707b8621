#include "gateway/transport/websocket.h"

#include "common/text.h"
#include "gateway/transport/ws_dispatch.h"
#include "gateway/transport/ws_session.h"

#include <h2o/http1.h>
#include <string.h>

static void fail(struct stream *s, enum ws_close_code code, const char *why)
{
    enum counter stat = code == WS_CLOSE_POLICY || code == WS_CLOSE_TOO_BIG ? STAT_closed_policy
                                                                            : STAT_closed_protocol;
    ws_session_close(s, code, why, stat);
}

static void on_message(struct stream *s, const char *text, size_t len)
{
    if (!text_is_utf8(text, len))
        fail(s, WS_CLOSE_INVALID_DATA, "text is not UTF-8");
    else if (s->kind == FRAME_WS_RAW)
        fail(s, WS_CLOSE_UNSUPPORTED, "tidecast.raw takes no commands");
    else
        ws_dispatch(s, text, len);
}

/* A fragment of a message: kept until the last one is there. */
static void on_fragment(struct stream *s, const struct ws_frame *frame, size_t max_len)
{
    struct ws_session *w = ws_session_get(s);
    if (++w->fragments > FRAGMENTS_MAX) {
        fail(s, WS_CLOSE_POLICY, "too many fragments");
        return;
    }
    if (w->message.len + frame->len > max_len) {
        fail(s, WS_CLOSE_TOO_BIG, "message too big");
        return;
    }
    buf_append(&w->message, frame->payload, frame->len);
    if (!frame->fin)
        return;
    struct buf message = w->message;
    w->message = (struct buf){0};
    w->fragments = 0;
    on_message(s, message.bytes, message.len);
    buf_fini(&message);
}

static void on_data(struct stream *s, const struct ws_frame *frame, size_t max_len)
{
    bool is_under_way = s->session != NULL && s->session->fragments != 0;
    if ((frame->opcode == WS_CONTINUATION) != is_under_way)
        fail(s, WS_CLOSE_PROTOCOL_ERROR,
             is_under_way ? "message in a message" : "nothing to continue");
    else if (frame->opcode == WS_BINARY)
        fail(s, WS_CLOSE_UNSUPPORTED, "only text is understood");
    else if (frame->fin && !is_under_way)
        on_message(s, frame->payload, frame->len);
    else
        on_fragment(s, frame, max_len);
}

static void on_frame(struct stream *s, const struct ws_frame *frame, size_t max_len)
{
    stats_add(STAT_ws_frames, 1);
    switch (frame->opcode) {
    case WS_PING:
        ws_session_pong(s, frame->payload, frame->len);
        break;
    case WS_PONG:
        break;
    case WS_CLOSE:
        ws_session_on_close(s, ws_check_close(frame->payload, frame->len));
        break;
    case WS_CONTINUATION:
    case WS_TEXT:
    case WS_BINARY:
        on_data(s, frame, max_len);
        break;
    }
}

/* Once our Close is out only the peer's Close is of interest. */
static bool wants(const struct stream *s, const struct ws_frame *frame)
{
    return !s->is_finishing || frame->opcode == WS_CLOSE;
}

/* Returns how many of the bytes are done with. What can't be understood is read all the same:
 * unread bytes would turn the end into a reset that overtakes our Close. */
static size_t pass_over(struct stream *s, const struct ws_frame *frame, size_t len)
{
    if (frame->consumed == 0)
        return len; /* where the next one begins, nobody knows */
    if (frame->consumed <= len)
        return frame->consumed;
    ws_session_get(s)->skip = frame->consumed - len;
    return len;
}

/* Of the frame that is being passed over. */
static size_t skip(struct stream *s, size_t len)
{
    struct ws_session *w = s->session;
    if (w == NULL)
        return 0;
    size_t skipped = w->skip < len ? w->skip : len;
    w->skip -= skipped;
    return skipped;
}

/* Handles every whole frame; returns how many bytes they were. */
static size_t consume(struct stream *s, char *input, size_t len)
{
    size_t at = 0;
    size_t max_len = ws_dispatch_max_message(s);
    while (at < len && !s->is_closing) {
        struct ws_frame frame;
        enum ws_close_code code;
        const char *why;
        enum ws_result result = ws_parse(input + at, len - at, max_len, &frame, &code, &why);
        if (result == WS_MORE)
            break;
        if (result == WS_BAD) {
            fail(s, code, why);
            at += pass_over(s, &frame, len - at);
            continue;
        }
        at += frame.consumed;
        if (wants(s, &frame))
            on_frame(s, &frame, max_len);
    }
    return at;
}

static void take_input(struct stream *s, char *bytes, size_t len)
{
    size_t skipped = skip(s, len);
    bytes += skipped;
    len -= skipped;
    if (s->session == NULL || s->session->input.len == 0) {
        size_t used = consume(s, bytes, len);
        if (used < len && !s->is_closing)
            buf_append(&ws_session_get(s)->input, bytes + used, len - used);
    } else {
        struct buf *input = &s->session->input;
        buf_append(input, bytes, len);
        buf_consume(input, consume(s, input->bytes, input->len));
    }
    if (!s->is_closing)
        ws_session_trim(s);
}

static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct stream *s = sock->data;
    (void)err;
    size_t len = stream_read(s);
    if (len > 0)
        take_input(s, s->all->scratch, len);
}

static void on_taken_over(void *data, h2o_socket_t *sock, size_t reqsize)
{
    struct stream *s = data;
    if (sock != NULL)
        h2o_buffer_consume(&sock->input, reqsize);
    stream_open(s, sock, on_readable);
    if (sock == NULL || s->is_closing)
        return;
    if (s->all->is_shutting_down)
        ws_session_close(s, WS_CLOSE_GOING_AWAY, "shutting down", STAT_closed_shutdown);
    size_t len = sock->input->size;
    if (len == 0)
        return;
    take_input(s, sock->input->bytes, len); /* frames that came with the request */
    h2o_buffer_consume(&sock->input, len);
}

void websocket_open(struct stream *s, h2o_req_t *req, const char *accept, const char *protocol)
{
    req->res.status = 101;
    req->res.reason = "Switching Protocols";
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_UPGRADE, NULL, H2O_STRLIT("websocket"));
    h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("sec-websocket-accept"), 0,
                          NULL, accept, strlen(accept));
    if (protocol != NULL)
        h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("sec-websocket-protocol"),
                              0, NULL, protocol, strlen(protocol));
    h2o_http1_upgrade(req, NULL, 0, on_taken_over, s);
}

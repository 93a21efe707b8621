#include "gateway/transport/ws_session.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "gateway/transport/streams.h"
#include "gateway/transport/ws_dispatch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_WAIT_MS = 5000 };

struct ws_session *ws_session_get(struct stream *s)
{
    if (s->session == NULL) {
        s->session = mem_zalloc(sizeof(*s->session));
        s->session->stream = s;
    }
    return s->session;
}

void ws_session_trim(struct stream *s)
{
    struct ws_session *w = s->session;
    if (w == NULL || w->input.len != 0 || w->fragments != 0 || w->has_pong ||
        w->publishes != NULL || s->is_finishing)
        return;
    ws_session_free(s);
}

void ws_session_free(struct stream *s)
{
    struct ws_session *w = s->session;
    if (w == NULL)
        return;
    ws_dispatch_forget(w);
    wheel_disarm(&w->timer);
    buf_fini(&w->input);
    buf_fini(&w->message);
    free(w);
    s->session = NULL;
}

bool ws_session_flush(struct stream *s)
{
    struct ws_session *w = s->session;
    if (w == NULL || !w->has_pong)
        return true;
    struct buf frame = {0};
    ws_append_frame(&frame, WS_PONG, w->pong, w->pong_len);
    w->has_pong = false;
    stream_send(s, frame.bytes, frame.len);
    buf_fini(&frame);
    ws_session_trim(s);
    return stream_is_idle(s) && !s->is_closing;
}

void ws_session_pong(struct stream *s, const char *payload, size_t len)
{
    struct ws_session *w = ws_session_get(s);
    memcpy(w->pong, payload, len);
    w->pong_len = (uint8_t)len;
    w->has_pong = true;
    if (stream_is_idle(s))
        (void)ws_session_flush(s);
}

static void on_close_timeout(struct timer *t)
{
    struct ws_session *w = container_of(t, struct ws_session, timer);
    stream_close(w->stream, w->reason);
}

static void log_close(const char *reason, enum ws_close_code code, enum counter counted_as)
{
    static struct log_limit limits[STAT_COUNT];
    uint64_t suppressed;
    bool is_fault = counted_as != STAT_closed_client && counted_as != STAT_closed_shutdown;
    if (is_fault && log_allowed(&limits[counted_as], &suppressed))
        log_info("stream_closed transport=websocket %s code=%d why=\"%s\" suppressed=%" PRIu64,
                 stats_labels(counted_as), (int)code, reason, suppressed);
}

void ws_session_close(struct stream *s, enum ws_close_code code, const char *reason,
                      enum counter counted_as)
{
    struct ws_session *w = ws_session_get(s);
    if (w->is_close_sent || s->is_closing)
        return;
    struct buf frame = {0};
    log_close(reason, code, counted_as);
    ws_append_close(&frame, code, reason);
    w->is_close_sent = true;
    w->has_pong = false;
    ws_dispatch_forget(w); /* nothing may follow a Close */
    w->reason = counted_as;
    stream_finish(s);
    wheel_arm(s->all->wheel, &w->timer, clock_mono_ms() + CLOSE_WAIT_MS, on_close_timeout);
    stream_send(s, frame.bytes, frame.len);
    buf_fini(&frame);
}

void ws_session_on_close(struct stream *s, enum ws_close_code code)
{
    ws_session_close(s, code, "", STAT_closed_client);
    ws_session_get(s)->is_close_received = true;
    if (stream_is_idle(s))
        ws_session_on_drained(s);
}

void ws_session_on_drained(struct stream *s)
{
    if (s->session != NULL && s->session->is_close_received)
        stream_close(s, s->session->reason);
}

#include "gateway/transport/streams.h"

#include "common/clock.h"
#include "common/mem.h"
#include "gateway/transport/sse_codec.h"
#include "gateway/transport/ws_session.h"

#include <stdlib.h>

/* A stream is visited four times an interval, and gets a heartbeat when nothing was written to it
 * for three visits: silence never lasts longer than the interval, and a busy stream costs nothing.
 */
enum { VISITS_AN_INTERVAL = 4, QUIET_VISITS = 3 };

struct streams *streams_new(const struct config *config, struct hub *hub, struct wheel *wheel)
{
    struct streams *all = mem_zalloc(sizeof(*all));
    all->config = config;
    all->hub = hub;
    all->wheel = wheel;
    all->tick_ms = clock_mono_ms();
    return all;
}

void streams_add(struct streams *all, struct stream *s)
{
    s->index = sweep_add(&all->rota, s);
}

static void on_moved(void *item, uint32_t index)
{
    struct stream *s = item;
    s->index = index;
}

/* What quiet streams are sent, made once a tick. */
struct heartbeat {
    struct buf position; /* for a stream that has everything up to it; empty: none known */
    struct buf comment;
    struct buf ping;
};

static void heartbeat_init(struct heartbeat *beat, const struct streams *all)
{
    struct id position = hub_position(all->hub);
    *beat = (struct heartbeat){0};
    if (!id_is_zero(&position))
        sse_append_position(&beat->position, &position);
    sse_append_comment(&beat->comment);
    ws_append_frame(&beat->ping, WS_PING, NULL, 0);
}

static void heartbeat_fini(struct heartbeat *beat)
{
    buf_fini(&beat->position);
    buf_fini(&beat->comment);
    buf_fini(&beat->ping);
}

static void visit(struct stream *s, const struct heartbeat *beat)
{
    if (!stream_is_idle(s) || s->is_finishing || s->is_closing || ++s->quiet < QUIET_VISITS)
        return;
    const struct buf *bytes = &beat->ping;
    if (s->kind == FRAME_SSE) {
        bool has_all = beat->position.len != 0 && stream_is_caught_up(s);
        bytes = has_all ? &beat->position : &beat->comment;
    }
    stream_send(s, bytes->bytes, bytes->len);
    stats_add(STAT_heartbeats, 1);
}

/* How many visits the time since the last tick is worth; at most one round. */
static uint64_t take_due(struct streams *all, uint64_t now_ms)
{
    uint64_t elapsed = now_ms - all->tick_ms;
    all->tick_ms = now_ms;
    all->visits_due +=
        elapsed * all->rota.count * VISITS_AN_INTERVAL * 1000 / all->config->gateway_heartbeat_ms;
    uint64_t due = all->visits_due / 1000;
    all->visits_due %= 1000;
    return due < all->rota.count ? due : all->rota.count;
}

void streams_tick(struct streams *all, uint64_t now_ms)
{
    struct heartbeat beat;
    uint64_t due = take_due(all, now_ms);
    if (due == 0)
        return;
    heartbeat_init(&beat, all);
    while (due-- > 0) {
        struct stream *s = sweep_next(&all->rota);
        if (s == NULL) {
            sweep_restart(&all->rota);
            s = sweep_next(&all->rota);
        }
        visit(s, &beat);
    }
    heartbeat_fini(&beat);
}

void streams_reap(struct streams *all)
{
    while (all->closing != NULL) {
        struct stream *s = all->closing;
        all->closing = s->next_closing;
        sweep_remove(&all->rota, s->index, on_moved);
        stream_free(s);
    }
}

void streams_shut_down(struct streams *all)
{
    all->is_shutting_down = true;
    for (uint32_t i = 0; i < all->rota.count; i++) {
        struct stream *s = all->rota.items[i];
        if (s->sock == NULL)
            continue; /* still opening: ends when it is open */
        if (s->kind == FRAME_SSE)
            stream_close(s, STAT_closed_shutdown);
        else
            ws_session_close(s, WS_CLOSE_GOING_AWAY, "shutting down", STAT_closed_shutdown);
    }
}

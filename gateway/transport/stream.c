#include "gateway/transport/stream.h"

#include "common/log.h"
#include "common/mem.h"
#include "gateway/hub/hub.h"
#include "gateway/transport/batch.h"
#include "gateway/transport/streams.h"
#include "gateway/transport/ws_session.h"

#include <assert.h>
#include <errno.h>
#include <h2o.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCHES_A_FLUSH = 4 };

struct stream *stream_new(struct streams *all, enum frame_kind kind)
{
    struct stream *s = mem_zalloc(sizeof(*s));
    s->all = all;
    s->kind = (uint8_t)kind;
    streams_add(all, s);
    stats_add(kind == FRAME_SSE ? STAT_connections_sse : STAT_connections_ws, 1);
    stats_add(kind == FRAME_SSE ? STAT_opened_sse : STAT_opened_ws, 1);
    return s;
}

void stream_subscribe(struct stream *s, const char *channel, size_t len)
{
    struct subscription *sub = &s->first;
    if (sub->channel != NULL) {
        sub = mem_zalloc(sizeof(*sub));
        sub->next = s->first.next;
        s->first.next = sub;
    }
    hub_join(s->all->hub, channel, len, sub, s);
    s->sub_count++;
}

struct subscription *stream_find(struct stream *s, const char *channel, size_t len)
{
    for (struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (sub->channel != NULL && sub->channel->topic.len == len &&
            memcmp(sub->channel->name, channel, len) == 0)
            return sub;
    }
    return NULL;
}

void stream_unsubscribe(struct stream *s, struct subscription *sub)
{
    hub_leave(sub);
    s->sub_count--;
    if (sub == &s->first)
        return; /* its place is used again */
    struct subscription **link = &s->first.next;
    while (*link != sub)
        link = &(*link)->next;
    *link = sub->next;
    free(sub);
}

static void on_writable(h2o_socket_t *sock, const char *err)
{
    struct stream *s = sock->data;
    s->is_blocked = false;
    stats_sub(STAT_streams_blocked, 1);
    if (err != NULL)
        stream_close(s, STAT_closed_error);
    else
        stream_flush(s, NULL);
}

static void block(struct stream *s)
{
    s->is_blocked = true;
    stats_add(STAT_streams_blocked, 1);
    h2o_socket_notify_write(s->sock, on_writable);
}

/* Bytes taken by the socket; less than len: the stream is blocked now, or closed. */
static size_t send_bytes(struct stream *s, const struct iovec *iov, int count, size_t len)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    int fd = h2o_socket_get_fd(s->sock);
    ssize_t n = count == 1 ? send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                           : sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == -1 && errno != EAGAIN && errno != EINTR) {
        stream_close(s, STAT_closed_error);
        return 0;
    }
    size_t taken = n == -1 ? 0 : (size_t)n;
    stats_add(STAT_delivered_bytes, taken);
    s->quiet = 0;
    if (taken < len)
        block(s);
    return taken;
}

static bool flush_partial(struct stream *s)
{
    if (s->partial == NULL)
        return true;
    const struct frame *f = s->partial->frames[s->kind];
    size_t left = f->len - s->offset;
    const struct iovec iov = {(char *)f->bytes + s->offset, left};
    size_t taken = send_bytes(s, &iov, 1, left);
    s->offset += (uint32_t)taken;
    if (taken < left)
        return false;
    message_unref(s->partial);
    s->partial = NULL;
    return true;
}

static bool flush_outbox(struct stream *s)
{
    if (s->outbox == NULL)
        return true;
    const struct iovec iov = {s->outbox->bytes, s->outbox->len};
    size_t taken = send_bytes(s, &iov, 1, iov.iov_len);
    buf_consume(s->outbox, taken);
    if (s->outbox->len != 0)
        return false;
    buf_fini(s->outbox);
    free(s->outbox);
    s->outbox = NULL;
    return true;
}

bool stream_is_idle(const struct stream *s)
{
    return s->sock != NULL && !s->is_blocked && s->partial == NULL && s->outbox == NULL;
}

static void count_delivered(const struct stream *s, int count)
{
    stats_add(s->kind == FRAME_SSE ? STAT_delivered_sse : STAT_delivered_ws, (uint64_t)count);
}

/* True when all of the batch is out. The cursors stand after it already: those of the messages that
 * were not begun go back, and the one begun is kept until its rest is written. */
static bool send_batch(struct stream *s, struct batch *b)
{
    size_t taken = send_bytes(s, b->iov, b->count, b->len);
    count_delivered(s, batch_settle(b, taken, &s->partial, &s->offset));
    return taken == b->len;
}

static void close_as_slow(struct stream *s)
{
    if (s->kind == FRAME_SSE)
        stream_close(s, STAT_closed_slow);
    else
        ws_session_close(s, WS_CLOSE_TRY_LATER, "slow consumer", STAT_closed_slow);
}

static bool fell_off(const struct subscription *sub)
{
    return sub->channel != NULL && sub->cursor < sub->channel->ring.tail;
}

/* Nobody notices a blocked stream's lag but the sweep that passes it. */
static bool has_fallen(const struct stream *s, const struct subscription *woken)
{
    if (woken != NULL && s->kind != FRAME_SSE)
        return fell_off(woken);
    for (const struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (fell_off(sub))
            return true;
    }
    return false;
}

/* More to come, after the others had their turn. The sweep of a channel sends a WebSocket that
 * channel's messages only, so each that has some must be swept. */
static void flush_later(const struct stream *s, const struct batch *b,
                        const struct subscription *woken)
{
    if (woken != NULL || s->kind == FRAME_SSE) {
        hub_mark_dirty(b->subs[0]->channel);
        return;
    }
    for (const struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (sub->channel != NULL && sub->cursor != sub->channel->ring.head)
            hub_mark_dirty(sub->channel);
    }
}

void stream_flush(struct stream *s, struct subscription *woken)
{
    struct batch b;
    if (s->sock == NULL || s->is_closing)
        return;
    if (!s->is_finishing && has_fallen(s, woken)) {
        close_as_slow(s);
        return;
    }
    if (s->is_blocked || !flush_partial(s) || !flush_outbox(s) || !ws_session_flush(s))
        return;
    if (s->is_finishing) {
        ws_session_on_drained(s);
        return;
    }
    for (int i = 0; i < BATCHES_A_FLUSH; i++) {
        batch_gather(&b, s, woken);
        if (b.count == 0 || !send_batch(s, &b))
            return;
    }
    flush_later(s, &b, woken);
}

void stream_send(struct stream *s, const char *bytes, size_t len)
{
    size_t taken = 0;
    if (s->is_closing)
        return;
    if (stream_is_idle(s)) {
        const struct iovec iov = {(char *)bytes, len};
        taken = send_bytes(s, &iov, 1, len);
    }
    if (taken == len || s->is_closing)
        return;
    if (s->outbox == NULL)
        s->outbox = mem_zalloc(sizeof(*s->outbox));
    if (s->outbox->len + len - taken > OUTBOX_MAX)
        stream_close(s, STAT_closed_slow);
    else
        buf_append(s->outbox, bytes + taken, len - taken);
}

/* Leaving is the client's right, by FIN or by reset; anything else befell it. */
static enum counter reason_of_end(const struct stream *s, ssize_t n)
{
    if (s->is_finishing)
        return s->session->reason;
    return n == 0 || errno == ECONNRESET ? STAT_closed_client : STAT_closed_error;
}

size_t stream_read(struct stream *s)
{
    if (s->is_closing)
        return 0;
    ssize_t n = read(h2o_socket_get_fd(s->sock), s->all->scratch, sizeof(s->all->scratch));
    if (n > 0)
        return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        stream_close(s, reason_of_end(s, n));
    return 0;
}

bool stream_is_caught_up(const struct stream *s)
{
    for (const struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (sub->channel != NULL &&
            (sub->cursor != sub->channel->ring.head || channel_holds_streams(sub->channel)))
            return false;
    }
    return true;
}

static void leave_all(struct stream *s)
{
    while (s->first.next != NULL)
        stream_unsubscribe(s, s->first.next);
    if (s->first.channel != NULL)
        stream_unsubscribe(s, &s->first);
}

void stream_open(struct stream *s, h2o_socket_t *sock, stream_readable_cb on_readable)
{
    if (sock == NULL) {
        stream_close(s, STAT_closed_client);
        return;
    }
    s->sock = sock;
    sock->data = s;
    /* we read on our own, into one buffer for all: h2o's would cost 8 KB a client */
    h2o_socket_dont_read(sock, 1);
    h2o_socket_read_start(sock, on_readable);
    stream_flush(s, NULL);
}

void stream_finish(struct stream *s)
{
    if (s->is_closing || s->is_finishing)
        return;
    leave_all(s);
    s->is_finishing = true;
}

/* Ends that somebody should look into; a WebSocket's were logged with its Close frame. */
static void log_end(const struct stream *s, enum counter reason)
{
    static struct log_limit limit;
    uint64_t suppressed;
    bool is_fault = reason == STAT_closed_slow || reason == STAT_closed_policy;
    if (s->kind == FRAME_SSE && is_fault && log_allowed(&limit, &suppressed))
        log_info("stream_closed transport=sse %s channel=%s suppressed=%" PRIu64,
                 stats_labels(reason), s->first.channel == NULL ? "" : s->first.channel->name,
                 suppressed);
}

void stream_close(struct stream *s, enum counter reason)
{
    if (s->is_closing)
        return;
    log_end(s, reason);
    s->is_closing = true;
    stats_add(reason, 1);
    s->next_closing = s->all->closing;
    s->all->closing = s;
}

void stream_free(struct stream *s)
{
    leave_all(s);
    if (s->is_blocked)
        stats_sub(STAT_streams_blocked, 1);
    stats_sub(s->kind == FRAME_SSE ? STAT_connections_sse : STAT_connections_ws, 1);
    message_unref(s->partial);
    if (s->outbox != NULL)
        buf_fini(s->outbox);
    free(s->outbox);
    ws_session_free(s);
    if (s->sock != NULL)
        h2o_socket_close(s->sock);
    free(s);
}

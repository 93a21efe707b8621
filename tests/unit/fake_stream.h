/* fake_stream: streams whose socket is a buffer that takes as much as a test lets it. On the heap,
 * and gone after fake_reap, as the real ones are. For one file of a program: it brings
 * stream_flush. */
#pragma once

#include "common/frame.h"
#include "common/mem.h"
#include "gateway/hub/hub.h"
#include "gateway/transport/batch.h"

#include <stdlib.h>
#include <string.h>

enum { FAKE_MAX = 2000, FAKE_BATCHES_A_FLUSH = 4 };

struct fake {
    struct stream base;
    struct buf written;
    struct buf expected; /* a queue of its own, which the real thing must never need */
    size_t room;         /* bytes that its socket takes before it is full */
    unsigned flushes;
    bool closes_itself; /* at its next flush, as a WebSocket that is too slow does */
};

static struct fake *fakes[FAKE_MAX];
static unsigned fake_count;
static unsigned fake_flushes;

static inline struct fake *fake_of(struct stream *s)
{
    return container_of(s, struct fake, base);
}

static inline struct fake *fake_new(enum frame_kind kind)
{
    struct fake *f = mem_zalloc(sizeof(*f));
    f->base.kind = (uint8_t)kind;
    f->room = SIZE_MAX;
    fakes[fake_count++] = f;
    return f;
}

/* The place for one more channel. */
static inline struct subscription *fake_place(struct fake *f)
{
    struct subscription *sub = &f->base.first;
    if (sub->channel != NULL) {
        sub = mem_zalloc(sizeof(*sub));
        sub->next = f->base.first.next;
        f->base.first.next = sub;
    }
    f->base.sub_count++;
    return sub;
}

static inline void fake_subscribe(struct fake *f, struct hub *hub, const char *channel)
{
    hub_join(hub, channel, strlen(channel), fake_place(f), &f->base);
}

static inline void fake_leave(struct fake *f, struct subscription *sub)
{
    hub_leave(sub);
    f->base.sub_count--;
    if (sub != &f->base.first) {
        f->base.first.next = sub->next; /* only the first of the further ones */
        free(sub);
    }
}

static inline void fake_leave_all(struct fake *f)
{
    while (f->base.first.next != NULL)
        fake_leave(f, f->base.first.next);
    if (f->base.first.channel != NULL)
        fake_leave(f, &f->base.first);
}

/* Marks only: it is still on its channels. */
static inline void fake_close(struct fake *f)
{
    f->base.is_closing = true;
}

static inline void fake_reap(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < fake_count; i++) {
        struct fake *f = fakes[i];
        if (!f->base.is_closing) {
            fakes[kept++] = f;
            continue;
        }
        fake_leave_all(f);
        message_unref(f->base.partial);
        buf_fini(&f->written);
        buf_fini(&f->expected);
        free(f);
    }
    fake_count = kept;
}

/* What the socket took; it is blocked when that is less than len. */
static inline size_t fake_send(struct fake *f, const struct iovec *iov, int count, size_t len)
{
    size_t taken = len < f->room ? len : f->room;
    size_t left = taken;
    for (int i = 0; i < count && left != 0; i++) {
        size_t n = iov[i].iov_len < left ? iov[i].iov_len : left;
        buf_append(&f->written, iov[i].iov_base, n);
        left -= n;
    }
    f->room -= taken;
    f->base.is_blocked = taken < len;
    return taken;
}

static inline bool fake_flush_partial(struct fake *f)
{
    struct stream *s = &f->base;
    if (s->partial == NULL)
        return true;
    const struct frame *frame = s->partial->frames[s->kind];
    const struct iovec iov = {(char *)frame->bytes + s->offset, frame->len - s->offset};
    size_t taken = fake_send(f, &iov, 1, iov.iov_len);
    s->offset += (uint32_t)taken;
    if (taken < iov.iov_len)
        return false;
    message_unref(s->partial);
    s->partial = NULL;
    return true;
}

void stream_flush(struct stream *s, struct subscription *woken)
{
    struct fake *f = fake_of(s);
    struct batch b;
    f->flushes++;
    fake_flushes++;
    if (s->is_closing || s->is_blocked)
        return;
    if (f->closes_itself) {
        fake_leave_all(f);
        fake_close(f);
        return;
    }
    if (!fake_flush_partial(f))
        return;
    for (int i = 0; i < FAKE_BATCHES_A_FLUSH; i++) {
        batch_gather(&b, s, woken);
        if (b.count == 0)
            return;
        size_t taken = fake_send(f, b.iov, b.count, b.len);
        (void)batch_settle(&b, taken, &s->partial, &s->offset);
        if (taken != b.len)
            return;
    }
    hub_mark_dirty(b.subs[0]->channel);
}

/* The socket has room for so many bytes again. */
static inline void fake_unblock(struct fake *f, size_t room)
{
    f->room = room;
    f->base.is_blocked = false;
    stream_flush(&f->base, NULL);
}

#include "gateway/transport/batch.h"

static bool has_more(const struct subscription *sub)
{
    return sub->channel != NULL && sub->cursor != sub->channel->ring.head;
}

static const struct message *next_of(const struct subscription *sub)
{
    return ring_at(&sub->channel->ring, sub->cursor);
}

/* The one of all channels whose next message came first; NULL while one of them holds the stream.
 * A link delivers in the order of ids, so the order of arrival is theirs. */
static struct subscription *earliest(struct stream *s)
{
    struct subscription *best = NULL;
    if (s->sub_count == 1 && s->first.channel != NULL)
        return has_more(&s->first) ? &s->first : NULL;
    for (struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (sub->channel != NULL && channel_holds_streams(sub->channel))
            return NULL;
        if (has_more(sub) && (best == NULL || next_of(sub)->order < next_of(best)->order))
            best = sub;
    }
    return best;
}

static struct subscription *any(struct stream *s)
{
    for (struct subscription *sub = &s->first; sub != NULL; sub = sub->next) {
        if (has_more(sub))
            return sub;
    }
    return NULL;
}

static struct subscription *pick(struct stream *s, struct subscription *woken)
{
    if (s->kind == FRAME_SSE)
        return earliest(s);
    if (woken == NULL)
        return any(s);
    return has_more(woken) ? woken : NULL;
}

void batch_gather(struct batch *b, struct stream *s, struct subscription *woken)
{
    struct subscription *sub;
    b->count = 0;
    b->len = 0;
    while (b->count < BATCH_FRAMES && b->len < BATCH_BYTES && (sub = pick(s, woken)) != NULL) {
        struct message *m = ring_at(&sub->channel->ring, sub->cursor++);
        const struct frame_context context = channel_frame_context(sub->channel);
        const struct frame *f = frames_get(m, s->kind, &context);
        b->iov[b->count] = (struct iovec){(char *)f->bytes, f->len};
        b->messages[b->count] = m;
        b->subs[b->count] = sub;
        b->count++;
        b->len += f->len;
    }
}

int batch_settle(struct batch *b, size_t taken, struct message **partial, uint32_t *offset)
{
    int begun = 0;
    while (begun < b->count && taken >= b->iov[begun].iov_len)
        taken -= b->iov[begun++].iov_len;
    if (begun < b->count && taken > 0) {
        *partial = message_ref(b->messages[begun++]);
        *offset = (uint32_t)taken;
    }
    for (int i = begun; i < b->count; i++)
        b->subs[i]->cursor--;
    return begun;
}

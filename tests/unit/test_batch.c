#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/mem.h"
#include "gateway/transport/batch.h"
#include "tests/unit/dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 4 };

static const struct namespace_config settings = {.content = CONTENT_TEXT};
static const struct ring_limits limits = {65536, SIZE_MAX, 60000};
static struct shelf shelf;
static struct channel *channels[CHANNELS];
static struct channel_node nowhere;

/* Cursors are moved by hand here, never by a sweep. */
void stream_flush(struct stream *s, struct subscription *woken)
{
    (void)s;
    (void)woken;
    fail();
}

/* One stream and what became of it. */
struct client {
    struct stream *stream;
    struct message *partial;
    uint32_t offset;
    struct buf written;
    struct buf expected; /* all messages of its channels in the order of their publication */
};

static struct client client_new(enum frame_kind kind, int channel_count)
{
    struct stream *s = mem_zalloc(sizeof(*s));
    s->kind = (uint8_t)kind;
    for (int i = 0; i < channel_count; i++) {
        struct subscription *sub = i == 0 ? &s->first : mem_zalloc(sizeof(*sub));
        if (i != 0) {
            sub->next = s->first.next;
            s->first.next = sub;
        }
        channel_join(channels[i], sub, s);
        s->sub_count++;
    }
    return (struct client){.stream = s};
}

static void client_free(struct client *c)
{
    struct subscription *next;
    for (struct subscription *sub = &c->stream->first; sub != NULL; sub = next) {
        next = sub->next;
        if (sub->channel != NULL)
            channel_leave(sub);
        if (sub != &c->stream->first)
            free(sub);
    }
    free(c->stream);
    message_unref(c->partial);
    buf_fini(&c->written);
    buf_fini(&c->expected);
}

static struct subscription *subscription_to(const struct client *c, int channel)
{
    struct subscription *sub = &c->stream->first;
    while (sub->channel != channels[channel])
        sub = sub->next;
    return sub;
}

static void publish(int channel, size_t payload_len, struct client *c)
{
    static unsigned number;
    static char payload[BATCH_BYTES];
    memset(payload, 'x', payload_len);
    int len = snprintf(payload, payload_len, "%c%u", 'a' + channel, number++);
    payload[len] = 'x';
    const struct message_parts parts = {.payload = payload, .payload_len = payload_len};
    const struct frame_context context = channel_frame_context(channels[channel]);
    struct message *m = message_new(&parts);
    ring_append_take(&channels[channel]->ring, m, 0);
    const struct frame *f = frames_get(m, (enum frame_kind)c->stream->kind, &context);
    buf_append(&c->expected, f->bytes, f->len);
}

static void write_partial(struct client *c)
{
    if (c->partial == NULL)
        return;
    const struct frame *f = c->partial->frames[c->stream->kind];
    assert_true(c->offset > 0 && c->offset < f->len);
    buf_append(&c->written, f->bytes + c->offset, f->len - c->offset);
    message_unref(c->partial);
    c->partial = NULL;
}

/* The socket takes so many bytes of the batch. */
static int take(struct client *c, struct batch *b, size_t taken)
{
    size_t left = taken;
    assert_null(c->partial);
    for (int i = 0; left != 0; i++) {
        assert_true(i < b->count);
        size_t n = b->iov[i].iov_len < left ? b->iov[i].iov_len : left;
        buf_append(&c->written, b->iov[i].iov_base, n);
        left -= n;
    }
    return batch_settle(b, taken, &c->partial, &c->offset);
}

static void assert_prefix(const struct client *c)
{
    assert_true(c->written.len <= c->expected.len);
    if (c->written.len != 0)
        assert_memory_equal(c->written.bytes, c->expected.bytes, c->written.len);
}

static void write_rest(struct client *c)
{
    struct batch b;
    write_partial(c);
    for (batch_gather(&b, c->stream, NULL); b.count != 0; batch_gather(&b, c->stream, NULL))
        (void)take(c, &b, b.len);
    assert_prefix(c);
    assert_int_equal(c->written.len, c->expected.len);
}

static int set_up(void **state)
{
    (void)state;
    shelf = (struct shelf){.max_bytes = SIZE_MAX};
    for (int i = 0; i < CHANNELS; i++) {
        const char name = (char)('a' + i);
        channels[i] = channel_new(NULL, &settings, &limits, &shelf, &name, 1);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS; i++)
        channel_free(channels[i]);
    return shelf.bytes != 0;
}

static const int order[] = {0, 1, 1, 0, 0, 0, 1, 0};
enum { ORDER_COUNT = sizeof(order) / sizeof(order[0]) };

static void publish_in_order(struct client *c)
{
    for (int i = 0; i < ORDER_COUNT; i++)
        publish(order[i], 10 + (size_t)i, c);
}

static void an_sse_stream_gets_its_channels_in_the_order_of_arrival(void **state)
{
    struct client c = client_new(FRAME_SSE, 2);
    struct batch b;
    (void)state;
    publish_in_order(&c);
    batch_gather(&b, c.stream, subscription_to(&c, 1)); /* whoever woke it */
    assert_int_equal(b.count, ORDER_COUNT);
    for (int i = 0; i < ORDER_COUNT; i++)
        assert_ptr_equal(b.subs[i]->channel, channels[order[i]]);
    assert_int_equal(b.len, c.expected.len);
    assert_int_equal(take(&c, &b, b.len), ORDER_COUNT);
    assert_null(c.partial);
    write_rest(&c);
    client_free(&c);
}

/* The socket takes n bytes, for every n: nothing is lost, doubled or out of order afterwards. */
static void a_cut_at_any_byte_leaves_a_prefix_and_loses_nothing(void **state)
{
    size_t len = 0;
    (void)state;
    for (size_t taken = 0; taken <= len; taken++) {
        struct client c = client_new(FRAME_SSE, 2);
        struct batch b;
        publish_in_order(&c);
        batch_gather(&b, c.stream, NULL);
        len = b.len;
        int begun = take(&c, &b, taken);
        assert_prefix(&c);
        uint64_t unread = channels[0]->ring.head - subscription_to(&c, 0)->cursor +
                          channels[1]->ring.head - subscription_to(&c, 1)->cursor;
        assert_int_equal(unread, ORDER_COUNT - begun);
        write_rest(&c);
        client_free(&c);
    }
    assert_true(len > 100);
}

static void a_message_that_was_begun_is_ended_though_its_ring_dropped_it(void **state)
{
    struct client c = client_new(FRAME_SSE, 1);
    struct batch b;
    (void)state;
    publish(0, 20, &c);
    batch_gather(&b, c.stream, NULL);
    assert_int_equal(take(&c, &b, 1), 1);
    shelf_expire(&shelf, 60001);
    assert_int_equal(shelf.bytes, 0);
    write_rest(&c);
    client_free(&c);
}

static void one_channel_that_holds_stops_an_sse_stream_of_several(void **state)
{
    struct client several = client_new(FRAME_SSE, 2);
    struct batch b;
    (void)state;
    publish_in_order(&several);
    for (int held = 0; held < 2; held++) {
        channels[held]->unready.next = &nowhere;
        batch_gather(&b, several.stream, subscription_to(&several, 1 - held));
        assert_int_equal(b.count, 0);
        channels[held]->unready.next = NULL;
    }
    write_rest(&several);
    client_free(&several);
}

static void a_stream_of_one_channel_and_a_websocket_are_not_held(void **state)
{
    struct client one = client_new(FRAME_SSE, 1);
    struct client websocket = client_new(FRAME_WS_RAW, 2);
    struct batch b;
    (void)state;
    publish(0, 10, &one);
    channels[0]->unready.next = &nowhere;
    batch_gather(&b, one.stream, NULL);
    assert_int_equal(b.count, 1);
    batch_gather(&b, websocket.stream, NULL);
    assert_int_equal(b.count, 1);
    channels[0]->unready.next = NULL;
    client_free(&one);
    client_free(&websocket);
}

static void a_websocket_gets_of_the_channel_that_woke_it(void **state)
{
    struct client c = client_new(FRAME_WS_RAW, 3);
    struct batch b;
    (void)state;
    publish_in_order(&c);
    batch_gather(&b, c.stream, subscription_to(&c, 1));
    assert_int_equal(b.count, 3);
    for (int i = 0; i < b.count; i++)
        assert_ptr_equal(b.subs[i], subscription_to(&c, 1));
    assert_int_equal(batch_settle(&b, b.iov[0].iov_len, &c.partial, &c.offset), 1);
    assert_int_equal(subscription_to(&c, 1)->cursor, 1);
    assert_int_equal(subscription_to(&c, 0)->cursor, 0);
    batch_gather(&b, c.stream, subscription_to(&c, 2));
    assert_int_equal(b.count, 0);
    batch_gather(&b, c.stream, NULL); /* its socket has room again: all of them */
    assert_int_equal(b.count, ORDER_COUNT - 1);
    client_free(&c);
}

static void a_websocket_that_left_its_first_channel_gets_the_others(void **state)
{
    struct client c = client_new(FRAME_WS_RAW, 2);
    struct batch b;
    (void)state;
    publish_in_order(&c);
    channel_leave(&c.stream->first);
    c.stream->sub_count--;
    batch_gather(&b, c.stream, NULL);
    assert_int_equal(b.count, 3);
    client_free(&c);
}

static void a_batch_ends_at_its_frames_and_at_its_bytes(void **state)
{
    struct client c = client_new(FRAME_SSE, 2);
    struct batch b;
    (void)state;
    for (int i = 0; i < BATCH_FRAMES + 1; i++)
        publish(i % 2, 10, &c);
    batch_gather(&b, c.stream, NULL);
    assert_int_equal(b.count, BATCH_FRAMES);
    (void)take(&c, &b, b.len);
    write_rest(&c);
    for (int i = 0; i < 4; i++)
        publish(i % 2, BATCH_BYTES / 2, &c);
    batch_gather(&b, c.stream, NULL);
    assert_int_equal(b.count, 2);
    (void)take(&c, &b, b.len);
    write_rest(&c);
    client_free(&c);
}

static void any_mix_of_publications_and_cuts_writes_everything_in_order(void **state)
{
    struct dice d = dice_new("batch");
    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct client c = client_new(FRAME_SSE, 1 + (int)dice_roll(&d, CHANNELS));
        for (uint32_t i = dice_roll(&d, 30); i > 0; i--) {
            struct batch b;
            for (uint32_t k = dice_roll(&d, 12); k > 0; k--)
                publish((int)dice_roll(&d, c.stream->sub_count), 10 + dice_roll(&d, 50), &c);
            write_partial(&c);
            batch_gather(&b, c.stream, NULL);
            (void)take(&c, &b, dice_roll(&d, (uint32_t)b.len + 1));
            assert_prefix(&c);
        }
        write_rest(&c);
        client_free(&c);
        shelf_expire(&shelf, 60001);
    }
}

#define WITH_CHANNELS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CHANNELS(an_sse_stream_gets_its_channels_in_the_order_of_arrival),
        WITH_CHANNELS(a_cut_at_any_byte_leaves_a_prefix_and_loses_nothing),
        WITH_CHANNELS(a_message_that_was_begun_is_ended_though_its_ring_dropped_it),
        WITH_CHANNELS(one_channel_that_holds_stops_an_sse_stream_of_several),
        WITH_CHANNELS(a_stream_of_one_channel_and_a_websocket_are_not_held),
        WITH_CHANNELS(a_websocket_gets_of_the_channel_that_woke_it),
        WITH_CHANNELS(a_websocket_that_left_its_first_channel_gets_the_others),
        WITH_CHANNELS(a_batch_ends_at_its_frames_and_at_its_bytes),
        WITH_CHANNELS(any_mix_of_publications_and_cuts_writes_everything_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "gateway/hub/channel.h"
#include "gateway/transport/stream.h"
#include "tests/unit/dice.h"

#include <stdlib.h>
#include <string.h>

static const struct namespace_config settings = {.content = CONTENT_JSON};
static const struct ring_limits limits = {65536, SIZE_MAX, 60000};
static struct shelf shelf;
static struct channel *channel;

/* A stream with nothing but its place in the channel; on the heap, and gone when it left. */
struct reader {
    struct stream base;
    unsigned flushes;
    bool is_blocked;
    bool leaves; /* at its next flush */
};

static struct reader *reader_of(struct subscription *sub)
{
    return container_of(sub->stream, struct reader, base);
}

static struct reader *join(void)
{
    struct reader *r = mem_zalloc(sizeof(*r));
    channel_join(channel, &r->base.first, &r->base);
    return r;
}

static struct reader *at(uint32_t index)
{
    struct reader *r = reader_of(channel->subscribers.items[index]);
    assert_int_equal(r->base.first.index, index);
    return r;
}

static void leave(struct reader *r)
{
    channel_leave(&r->base.first);
    assert_null(r->base.first.channel);
    free(r);
}

void stream_flush(struct stream *s, struct subscription *woken)
{
    struct reader *r = reader_of(woken);
    assert_ptr_equal(s, woken->stream);
    r->flushes++;
    if (r->leaves)
        leave(r);
    else if (!r->is_blocked)
        woken->cursor = channel->ring.head;
}

/* As the hub does it when a message came. */
static void publish(void)
{
    const struct message_parts parts = {0};
    channel_append_take(channel, message_new(&parts), 0);
    if (channel->dirty) {
        channel->sweep_again = channel->sweep_again || channel->subscribers.position != 0;
    } else {
        channel->dirty = true;
        channel_begin_round(channel);
    }
}

static unsigned sweep(unsigned budget)
{
    bool done = false;
    unsigned used = channel_sweep(channel, budget, &done);
    channel->dirty = !done;
    return used;
}

static int set_up(void **state)
{
    (void)state;
    shelf = (struct shelf){.max_bytes = SIZE_MAX};
    channel = channel_new(NULL, &settings, &limits, &shelf, "news:eu", 4);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (channel->subscribers.count != 0)
        leave(at(0));
    channel->dirty = false;
    channel_free(channel);
    return shelf.bytes != 0;
}

static void a_new_channel_has_its_name_and_nothing_else(void **state)
{
    (void)state;
    assert_string_equal(channel->name, "news");
    assert_ptr_equal(channel->topic.name, channel->name);
    assert_int_equal(channel->topic.len, 4);
    assert_int_equal(channel->topic.state, TOPIC_OFF);
    assert_false(channel_holds_streams(channel));
    struct frame_context context = channel_frame_context(channel);
    assert_ptr_equal(context.channel, channel->name);
    assert_int_equal(context.channel_len, 4);
    assert_int_equal(context.content, CONTENT_JSON);
}

static void who_joins_gets_what_comes_from_then_on(void **state)
{
    (void)state;
    publish();
    publish();
    struct reader *r = join();
    assert_int_equal(r->base.first.cursor, 2);
    publish();
    assert_int_equal(channel->ring.head - r->base.first.cursor, 1);
    (void)sweep(10);
    assert_int_equal(r->base.first.cursor, 3);
}

static void joining_keeps_the_streams_other_channels(void **state)
{
    struct subscription other = {0};
    (void)state;
    struct reader *r = mem_zalloc(sizeof(*r));
    r->base.first.next = &other;
    channel_join(channel, &r->base.first, &r->base);
    assert_ptr_equal(r->base.first.next, &other);
}

static void a_sweep_keeps_to_its_budget_and_goes_on_where_it_was(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        (void)join();
    publish();
    assert_int_equal(sweep(4), 4);
    assert_true(channel->dirty);
    assert_int_equal(sweep(4), 4);
    assert_true(channel->dirty);
    assert_int_equal(sweep(4), 2);
    assert_false(channel->dirty);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(at(i)->flushes, 1);
}

static void a_message_during_a_sweep_brings_a_second_round(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        (void)join();
    publish();
    assert_int_equal(sweep(4), 4);
    publish();
    assert_int_equal(sweep(100), 6 + 10);
    assert_false(channel->dirty);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(at(i)->base.first.cursor, 2);
}

static void a_channel_that_all_have_left_is_done(void **state)
{
    (void)state;
    leave(join());
    publish();
    assert_int_equal(sweep(4), 0);
    assert_false(channel->dirty);
}

static void a_stream_that_leaves_in_its_flush_spares_its_neighbours(void **state)
{
    (void)state;
    for (uint32_t leaver = 0; leaver < 5; leaver++) {
        for (int i = 0; i < 5; i++)
            (void)join();
        at(leaver)->leaves = true;
        publish();
        assert_int_equal(sweep(3), 3);
        assert_int_equal(sweep(3), 2);
        assert_int_equal(channel->subscribers.count, 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(at(i)->base.first.cursor, channel->ring.head);
        while (channel->subscribers.count != 0)
            leave(at(0));
        (void)sweep(1);
    }
}

static void act(struct dice *d)
{
    uint32_t what = dice_roll(d, 12);
    uint32_t count = channel->subscribers.count;
    if (what < 4)
        (void)join();
    else if (what < 6 && count != 0)
        leave(at(dice_roll(d, count)));
    else if (what < 7 && count != 0)
        at(dice_roll(d, count))->leaves = true;
    else if (what < 8)
        publish();
    else if (channel->dirty)
        (void)sweep(dice_roll(d, 8));
}

static void any_mix_of_join_leave_and_publish_ends_with_every_cursor_at_the_head(void **state)
{
    struct dice d = dice_new("channel");
    (void)state;
    for (int round = 0; round < 2000; round++) {
        for (uint32_t i = dice_roll(&d, 60); i > 0; i--)
            act(&d);
        while (channel->dirty)
            (void)sweep(1 + dice_roll(&d, 50));
        for (uint32_t i = 0; i < channel->subscribers.count; i++)
            assert_int_equal(at(i)->base.first.cursor, channel->ring.head);
        shelf_expire(&shelf, 60001);
    }
}

static void a_blocked_stream_lags_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        (void)join();
    at(1)->is_blocked = true;
    publish();
    publish();
    (void)sweep(100);
    assert_false(channel->dirty);
    assert_int_equal(at(0)->base.first.cursor, 2);
    assert_int_equal(at(1)->base.first.cursor, 0);
    assert_int_equal(at(2)->base.first.cursor, 2);
}

#define WITH_CHANNEL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CHANNEL(a_new_channel_has_its_name_and_nothing_else),
        WITH_CHANNEL(who_joins_gets_what_comes_from_then_on),
        WITH_CHANNEL(joining_keeps_the_streams_other_channels),
        WITH_CHANNEL(a_sweep_keeps_to_its_budget_and_goes_on_where_it_was),
        WITH_CHANNEL(a_message_during_a_sweep_brings_a_second_round),
        WITH_CHANNEL(a_channel_that_all_have_left_is_done),
        WITH_CHANNEL(a_stream_that_leaves_in_its_flush_spares_its_neighbours),
        WITH_CHANNEL(a_blocked_stream_lags_alone),
        WITH_CHANNEL(any_mix_of_join_leave_and_publish_ends_with_every_cursor_at_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

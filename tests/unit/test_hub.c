#include "tests/unit/dice.h"
#include "tests/unit/hub_rig.h"

#include "gateway/transport/sse_codec.h"

#include <stdio.h>

static const struct id no_id = {0};

static void what_is_published_reaches_every_stream_of_its_channel_and_no_other(void **state)
{
    (void)state;
    struct fake *first = rig_stream(FRAME_WS_RAW, "a", NULL);
    struct fake *second = rig_stream(FRAME_WS_RAW, "a", "b");
    struct fake *other = rig_stream(FRAME_WS_RAW, "b", NULL);
    hub_flush(hub);
    rig_run();
    wakes = 0;
    (void)rig_publish("a", "hello");
    (void)rig_publish("nobody", "hello");
    assert_int_equal(wakes, 1);
    assert_false(hub_run(hub));
    assert_written(first, "\x81\x05hello");
    assert_written(second, "\x81\x05hello");
    assert_written(other, "");
    struct fake *late = rig_stream(FRAME_WS_RAW, "a", NULL);
    (void)rig_publish("a", "2");
    rig_run();
    assert_written(late, "\x81\x01"
                         "2");
    assert_true(hub_is_ready(hub));
    assert_ptr_equal(hub_backplane(hub), backplane);
}

static void a_turn_writes_a_bounded_number_and_small_channels_go_first(void **state)
{
    (void)state;
    for (int i = 0; i < 1300; i++)
        (void)rig_stream(FRAME_WS_RAW, "big", NULL);
    struct fake *small = rig_stream(FRAME_WS_RAW, "small", NULL);
    hub_flush(hub);
    rig_run();
    fake_flushes = 0;
    (void)rig_publish("big", "x");
    (void)rig_publish("small", "y");
    assert_true(hub_run(hub));
    assert_in_range(fake_flushes, 256, 512);
    assert_written(small, "\x81\x01y");
    rig_run();
    assert_int_equal(fake_flushes, 1301);
    for (unsigned i = 0; i < fake_count; i++)
        assert_int_equal(fakes[i]->written.len, 3);
}

static void everyone_left_between_publish_and_sweep_is_nobodys_harm(void **state)
{
    (void)state;
    struct fake *f = rig_stream(FRAME_WS_RAW, "a", NULL);
    struct fake *stays = rig_stream(FRAME_WS_RAW, "b", NULL);
    hub_flush(hub);
    (void)rig_publish("a", "x");
    (void)rig_publish("b", "y");
    fake_close(f);
    fake_reap();
    rig_tick(LINGER_MS); /* its channel is due to go, and still waits for its sweep */
    rig_run();
    assert_written(stays, "\x81\x01y");
}

/* It is closed, not reaped, while more is published and swept. */
static void a_stream_that_closes_in_its_flush_spares_its_neighbours(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++)
        (void)rig_stream(FRAME_WS_RAW, "a", i % 2 == 0 ? "b" : NULL);
    hub_flush(hub);
    rig_run();
    fakes[0]->closes_itself = fakes[4]->closes_itself = fakes[8]->closes_itself = true;
    (void)rig_publish("a", "1");
    rig_run();
    (void)rig_publish("a", "2");
    (void)rig_publish("b", "3");
    rig_run();
    for (unsigned i = 0; i < 9; i++) {
        bool is_closed = i % 4 == 0;
        assert_int_equal(fakes[i]->written.len, is_closed ? 0 : i % 2 == 0 ? 9 : 6);
    }
    fake_reap();
    assert_int_equal(fake_count, 6);
    (void)rig_publish("b", "4");
    rig_run();
}

static void expect(struct fake *f, struct id id, const char *payload)
{
    const struct message_parts parts = {
        .has_id = true, .id = id, .payload = payload, .payload_len = strlen(payload)};
    struct message *m = message_new(&parts);
    sse_append_message(&f->expected, m);
    message_unref(m);
}

static struct subscription *subscription_to(struct fake *f, const struct topic *topic)
{
    for (struct subscription *sub = &f->base.first; sub != NULL; sub = sub->next) {
        if (sub->channel != NULL && &sub->channel->topic == topic)
            return sub;
    }
    return NULL;
}

static void publish_and_expect(const char *channel, const char *payload)
{
    struct id id = rig_publish(channel, payload);
    struct topic *topic = rig_topic(channel);
    for (unsigned i = 0; topic != NULL && i < fake_count; i++) {
        if (subscription_to(fakes[i], topic) != NULL)
            expect(fakes[i], id, payload);
    }
}

/* One stream on a channel of very many and on one of its own; wherever the client is cut, what it
 * has is all of both channels up to there. */
static void two_channels_have_one_position_wherever_the_client_is_cut(void **state)
{
    static const char *const channels[] = {"big", "small", "small", "big", "big", "small", "big"};
    (void)state;
    for (int i = 0; i < 700; i++)
        (void)rig_stream(FRAME_SSE, "big", NULL);
    struct fake *both = rig_stream(FRAME_SSE, "small", "big");
    hub_flush(hub);
    rig_run();
    for (size_t room = 0; room < 400; room += 13) {
        both->room = room;
        for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
            publish_and_expect(channels[i], channels[i]);
            (void)hub_run(hub);
            assert_is_prefix(both);
        }
        rig_run();
        assert_is_prefix(both);
        fake_unblock(both, SIZE_MAX);
        rig_run();
        assert_int_equal(both->written.len, both->expected.len);
        assert_is_prefix(both);
    }
}

static void a_stream_far_behind_lets_the_others_have_their_turn(void **state)
{
    (void)state;
    struct fake *f = rig_stream(FRAME_SSE, "a", NULL);
    struct fake *other = rig_stream(FRAME_SSE, "a", NULL);
    hub_flush(hub);
    rig_run();
    f->room = 0;
    for (int i = 0; i < 200; i++) {
        publish_and_expect("a", "x");
        rig_run();
    }
    assert_int_equal(other->written.len, other->expected.len);
    unsigned before = wakes;
    fake_unblock(f, SIZE_MAX);
    assert_true(f->written.len > 0 && f->written.len < f->expected.len);
    assert_int_equal(wakes, before + 1);
    rig_run();
    assert_int_equal(f->written.len, f->expected.len);
}

static void a_channel_not_subscribed_yet_holds_streams_of_several_only(void **state)
{
    (void)state;
    struct fake *held = rig_stream(FRAME_SSE, "a", "b");
    hub_flush(hub);
    slow_reply(backplane);
    struct fake *both = rig_stream(FRAME_SSE, "a", "new");
    struct fake *one = rig_stream(FRAME_SSE, "new", NULL);
    struct fake *websocket = rig_stream(FRAME_WS_RAW, "a", "new");
    hub_flush(hub);
    rig_hand_in("a", no_id, "x");
    rig_hand_in("new", no_id, "y");
    rig_run();
    assert_written(held, "data: x\n\n");
    assert_written(both, "");
    assert_written(one, "data: y\n\n");
    assert_int_equal(websocket->written.len, 6);
    slow_reply(backplane);
    rig_run();
    assert_written(both, "data: x\n\ndata: y\n\n");
}

static void a_channel_holds_streams_for_three_seconds_at_most(void **state)
{
    (void)state;
    struct fake *both = rig_stream(FRAME_SSE, "a", "b");
    hub_flush(hub);
    rig_hand_in("a", no_id, "x");
    for (int ms = 0; ms < 2900; ms += 100) {
        rig_tick(100);
        rig_run();
        assert_written(both, "");
    }
    rig_tick(100);
    rig_run();
    assert_written(both, "data: x\n\n");
    fake_wall_ms += 3600000;
    rig_hand_in("a", no_id, "y");
    rig_run();
    assert_int_equal(both->written.len, 18);
}

static void a_link_that_was_lost_holds_again_until_it_is_back(void **state)
{
    (void)state;
    struct fake *both = rig_stream(FRAME_SSE, "a", "b");
    hub_flush(hub);
    slow_reply(backplane);
    slow_break(backplane);
    rig_hand_in("a", no_id, "x");
    rig_run();
    assert_written(both, "");
    rig_tick(1000);
    slow_reply(backplane);
    rig_run();
    assert_written(both, "data: x\n\n");
    slow_break(backplane);
    rig_hand_in("b", no_id, "y");
    rig_tick(3000);
    rig_run();
    assert_written(both, "data: x\n\ndata: y\n\n");
}

static void a_channel_nobody_listens_to_stays_for_its_linger(void **state)
{
    (void)state;
    struct fake *f = rig_stream(FRAME_SSE, "a", NULL);
    hub_flush(hub);
    slow_reply(backplane);
    fake_close(f);
    fake_reap();
    rig_tick(LINGER_MS - 1);
    assert_int_equal(rig_topic("a")->state, TOPIC_ON);
    assert_true(rig_topic("a")->wanted);
    f = rig_stream(FRAME_SSE, "a", NULL); /* somebody came in time */
    rig_tick(LINGER_MS);
    assert_int_equal(rig_topic("a")->state, TOPIC_ON);
    rig_hand_in("a", no_id, "x");
    rig_run();
    assert_written(f, "data: x\n\n");
    fake_close(f);
    fake_reap();
    rig_tick(LINGER_MS);
    assert_int_equal(rig_topic("a")->state, TOPIC_LEAVING);
    slow_reply(backplane);
    assert_null(rig_topic("a"));
    assert_int_equal(stats_sum(STAT_channels), 0);
}

static void a_channel_joined_while_it_is_being_left_holds_until_it_is_back(void **state)
{
    (void)state;
    struct fake *f = rig_stream(FRAME_SSE, "a", NULL);
    hub_flush(hub);
    slow_reply(backplane);
    rig_run();
    fake_close(f);
    fake_reap();
    rig_tick(LINGER_MS);
    assert_int_equal(rig_topic("a")->state, TOPIC_LEAVING);
    struct fake *both = rig_stream(FRAME_SSE, "a", "b");
    hub_flush(hub);
    slow_reply(backplane); /* left; b is there */
    rig_hand_in("b", no_id, "x");
    rig_run();
    assert_written(both, "");
    hub_flush(hub);
    slow_reply(backplane); /* a is there again */
    rig_run();
    assert_written(both, "data: x\n\n");
}

static void a_stale_id_is_dropped_and_counted(void **state)
{
    (void)state;
    struct fake *f = rig_stream(FRAME_SSE, "a", "b");
    hub_flush(hub);
    slow_reply(backplane);
    uint64_t dropped = stats_sum(STAT_dropped_stale);
    rig_hand_in("a", (struct id){5, 1}, "1");
    rig_hand_in("a", (struct id){5, 1}, "again");
    rig_hand_in("a", (struct id){5, 0}, "before");
    rig_hand_in("a", (struct id){4, 9}, "before");
    assert_int_equal(stats_sum(STAT_dropped_stale), dropped + 3);
    rig_hand_in("b", (struct id){5, 0}, "2"); /* another channel's own order */
    rig_hand_in("a", no_id, "3");
    rig_hand_in("a", (struct id){5, 2}, "4");
    assert_int_equal(stats_sum(STAT_dropped_stale), dropped + 3);
    rig_run();
    assert_written(f, "id: 5-1\ndata: 1\n\nid: 5-0\ndata: 2\n\ndata: 3\n\nid: 5-2\ndata: 4\n\n");
}

static void an_id_beyond_the_clock_is_dropped_and_moves_nothing(void **state)
{
    const struct id position = {1000000, 7};
    (void)state;
    struct fake *f = rig_stream(FRAME_SSE, "a", NULL);
    hub_flush(hub);
    slow_reply(backplane);
    uint64_t dropped = stats_sum(STAT_dropped_future);
    hub_events.on_position(hub, &position);
    fake_clock_pass(2000);
    fake_wall_ms -= 3600000; /* whose clock is nobody's business here */
    rig_hand_in("a", (struct id){1000000 + 2000 + 2001, 0}, "forged");
    rig_hand_in("a", (struct id){UINT64_MAX, UINT64_MAX}, "forged");
    assert_int_equal(stats_sum(STAT_dropped_future), dropped + 2);
    struct id now = hub_position(hub);
    assert_int_equal(id_compare(&now, &position), 0);
    rig_hand_in("a", (struct id){1000000 + 2000 + 2000, 0}, "x");
    rig_run();
    assert_written(f, "id: 1004000-0\ndata: x\n\n");
}

static void the_position_is_the_highest_that_was_handed_in(void **state)
{
    (void)state;
    (void)rig_stream(FRAME_SSE, "a", NULL);
    struct id position = hub_position(hub);
    assert_true(id_is_zero(&position));
    assert_false(hub_is_ready(hub));
    rig_hand_in("a", (struct id){900, 1}, "x");
    position = hub_position(hub);
    assert_int_equal(position.ms, 900);
    hub_events.on_position(hub, &(const struct id){1000, 0});
    hub_events.on_position(hub, &(const struct id){999, 0});
    position = hub_position(hub);
    assert_int_equal(position.ms, 1000);
    rig_hand_in("a", no_id, "plain");
    rig_hand_in("a", (struct id){950, 0}, "late");
    position = hub_position(hub);
    assert_int_equal(position.ms, 1000);
}

/* Streams come, go and block; every stream must get what a queue of its own would have given it. */
static void act(struct dice *d, unsigned *number)
{
    static const char *const names[] = {"a", "b", "c:1", "c:2", "d"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    char payload[20];
    uint32_t what = dice_roll(d, 20);
    struct fake *any = fake_count != 0 ? fakes[dice_roll(d, fake_count)] : NULL;
    if (what < 3 && fake_count < 60) {
        uint32_t first = dice_roll(d, NAMES);
        uint32_t second = (first + dice_roll(d, NAMES)) % NAMES;
        (void)rig_stream(FRAME_SSE, names[first], second == first ? NULL : names[second]);
        hub_flush(hub);
    } else if (what < 5 && any != NULL) {
        fake_close(any);
        if (dice_roll(d, 2) == 0)
            fake_reap();
    } else if (what < 10) {
        (void)snprintf(payload, sizeof(payload), "%u", ++*number);
        publish_and_expect(names[dice_roll(d, NAMES)], payload);
    } else if (what < 12 && any != NULL) {
        any->room = dice_roll(d, 100);
    } else if (what < 15 && any != NULL) {
        if (any->base.is_blocked)
            fake_unblock(any, dice_roll(d, 300));
    } else if (what < 17) {
        rig_tick(dice_roll(d, 4000));
    } else {
        (void)hub_run(hub);
    }
}

static void unblock_all(void)
{
    for (unsigned i = 0; i < fake_count; i++)
        fake_unblock(fakes[i], SIZE_MAX);
    rig_run();
}

static void every_stream_gets_what_its_own_queue_would_have_given_it(void **state)
{
    struct dice d = dice_new("hub");
    unsigned number = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        for (uint32_t i = dice_roll(&d, 100); i > 0; i--)
            act(&d, &number);
        fake_reap();
        for (unsigned i = 0; i < fake_count; i++)
            assert_is_prefix(fakes[i]);
        if (dice_roll(&d, 4) != 0)
            continue;
        unblock_all();
        for (unsigned i = 0; i < fake_count; i++) {
            assert_is_prefix(fakes[i]);
            assert_int_equal(fakes[i]->written.len, fakes[i]->expected.len);
        }
    }
}

#define WITH_MEMORY(test) cmocka_unit_test_setup_teardown(test, rig_set_up, rig_tear_down)
#define WITH_SLOW(test)   cmocka_unit_test_setup_teardown(test, rig_set_up_slow, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MEMORY(what_is_published_reaches_every_stream_of_its_channel_and_no_other),
        WITH_MEMORY(a_turn_writes_a_bounded_number_and_small_channels_go_first),
        WITH_MEMORY(everyone_left_between_publish_and_sweep_is_nobodys_harm),
        WITH_MEMORY(a_stream_that_closes_in_its_flush_spares_its_neighbours),
        WITH_MEMORY(two_channels_have_one_position_wherever_the_client_is_cut),
        WITH_MEMORY(a_stream_far_behind_lets_the_others_have_their_turn),
        WITH_SLOW(a_channel_not_subscribed_yet_holds_streams_of_several_only),
        WITH_SLOW(a_channel_holds_streams_for_three_seconds_at_most),
        WITH_SLOW(a_link_that_was_lost_holds_again_until_it_is_back),
        WITH_SLOW(a_channel_nobody_listens_to_stays_for_its_linger),
        WITH_SLOW(a_channel_joined_while_it_is_being_left_holds_until_it_is_back),
        WITH_SLOW(a_stale_id_is_dropped_and_counted),
        WITH_SLOW(an_id_beyond_the_clock_is_dropped_and_moves_nothing),
        WITH_SLOW(the_position_is_the_highest_that_was_handed_in),
        WITH_MEMORY(every_stream_gets_what_its_own_queue_would_have_given_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

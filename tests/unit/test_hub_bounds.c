#include "tests/unit/hub_rig.h"

enum { RING_MESSAGES = 8, RING_BYTES = 100000 };

static bool is_paused(void)
{
    return ((struct slow *)(void *)backplane)->is_paused;
}

static int set_up_small_ring(void **state)
{
    rig_namespaces[0].ring_messages = RING_MESSAGES;
    rig_namespaces[0].ring_bytes = RING_BYTES;
    rig_namespaces[0].max_payload = RING_BYTES;
    return rig_set_up_slow(state);
}

static struct fake *ready_stream(const char *channel)
{
    struct fake *f = rig_stream(FRAME_WS_RAW, channel, NULL);
    hub_flush(hub);
    slow_reply(backplane);
    rig_run();
    return f;
}

static void a_burst_waits_outside_until_the_ring_is_swept(void **state)
{
    (void)state;
    (void)ready_stream("a");
    for (int i = 0; i < RING_MESSAGES / 2 - 1; i++)
        rig_hand_in("a", (struct id){0}, "x");
    assert_false(is_paused());
    rig_hand_in("a", (struct id){0}, "x");
    assert_true(is_paused());
    rig_run();
    assert_false(is_paused());
    rig_hand_in("a", (struct id){0}, "x");
    assert_false(is_paused());
}

static void one_crowded_channel_of_two_keeps_it_waiting(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++) /* more than a turn's writes */
        (void)rig_stream(FRAME_WS_RAW, "big", NULL);
    (void)ready_stream("small");
    for (int i = 0; i < RING_MESSAGES / 2; i++) {
        rig_hand_in("big", (struct id){0}, "x");
        rig_hand_in("small", (struct id){0}, "x");
    }
    assert_true(is_paused());
    assert_true(hub_run(hub)); /* small is done, big is not */
    assert_true(is_paused());
    rig_run();
    assert_false(is_paused());
}

static void large_messages_crowd_before_they_are_many(void **state)
{
    (void)state;
    char payload[RING_BYTES / 4 + 1];
    memset(payload, 'x', sizeof(payload) - 1);
    payload[sizeof(payload) - 1] = '\0';
    (void)ready_stream("a");
    rig_hand_in("a", (struct id){0}, "small"); /* begins the round */
    rig_hand_in("a", (struct id){0}, payload);
    assert_true(is_paused());
    rig_run();
    assert_false(is_paused());
}

static void a_blocked_reader_holds_nobody_up(void **state)
{
    (void)state;
    struct fake *f = ready_stream("a");
    f->room = 0;
    for (int i = 0; i < 10 * RING_MESSAGES; i++) {
        rig_hand_in("a", (struct id){0}, "x");
        if (is_paused())
            rig_run();
        assert_false(is_paused());
    }
}

static void nobody_listens_so_nothing_is_crowded(void **state)
{
    (void)state;
    struct fake *f = ready_stream("a");
    fake_close(f);
    fake_reap();
    for (int i = 0; i < 10 * RING_MESSAGES; i++)
        rig_hand_in("a", (struct id){0}, "x");
    assert_false(is_paused());
}

static void too_many_lingering_channels_go_oldest_first(void **state)
{
    char name[16];
    (void)state;
    uint64_t cut = stats_sum(STAT_lingers_cut);
    for (int i = 0; i < LINGERING_CHANNELS + 5; i++) {
        (void)snprintf(name, sizeof(name), "c%d", i);
        struct fake *f = ready_stream(name);
        fake_close(f);
        fake_reap();
    }
    hub_flush(hub);
    slow_reply(backplane);
    assert_int_equal(stats_sum(STAT_lingers_cut), cut + 5);
    assert_int_equal(stats_sum(STAT_channels), LINGERING_CHANNELS);
    assert_null(rig_topic("c4"));
    assert_non_null(rig_topic("c5"));
}

static void a_clock_that_was_read_late_does_not_go_back(void **state)
{
    (void)state;
    (void)ready_stream("a");
    uint64_t dropped = stats_sum(STAT_dropped_future);
    hub_events.on_position(hub, &(const struct id){1000000, 0});
    fake_clock_pass(10000); /* the process was stopped; this probe waited all the while */
    hub_events.on_position(hub, &(const struct id){1001000, 0});
    rig_hand_in("a", (struct id){1009000, 0}, "x");
    assert_int_equal(stats_sum(STAT_dropped_future), dropped);
}

static void an_id_before_the_position_is_stale_on_a_new_channel_too(void **state)
{
    (void)state;
    hub_events.on_position(hub, &(const struct id){1000, 0});
    struct fake *f = ready_stream("a");
    uint64_t dropped = stats_sum(STAT_dropped_stale);
    rig_hand_in("a", (struct id){1, 1}, "forged");
    assert_int_equal(stats_sum(STAT_dropped_stale), dropped + 1);
    rig_hand_in("a", (struct id){1000, 1}, "x");
    rig_run();
    assert_true(f->written.len != 0);
}

#define SMALL(test) cmocka_unit_test_setup_teardown(test, set_up_small_ring, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL(a_burst_waits_outside_until_the_ring_is_swept),
        SMALL(one_crowded_channel_of_two_keeps_it_waiting),
        SMALL(large_messages_crowd_before_they_are_many),
        SMALL(a_blocked_reader_holds_nobody_up),
        SMALL(nobody_listens_so_nothing_is_crowded),
        SMALL(too_many_lingering_channels_go_oldest_first),
        SMALL(a_clock_that_was_read_late_does_not_go_back),
        SMALL(an_id_before_the_position_is_stale_on_a_new_channel_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/mem.h"
#include "common/stats.h"
#include "gateway/hub/frames.h"
#include "gateway/hub/ring.h"
#include "tests/unit/dice.h"

#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)1000) /* what a message of message() takes */

static const struct ring_limits wide = {256, 1 << 20, 60000};
static const struct frame_context context = {"a", 1, CONTENT_TEXT};

static struct message *message(void)
{
    static const char payload[SIZE];
    const struct message_parts parts = {.payload = payload,
                                        .payload_len = SIZE - sizeof(struct message)};
    struct message *m = message_new(&parts);
    assert_int_equal(message_size(m), SIZE);
    return m;
}

static void append(struct ring *r, unsigned count, uint64_t now_ms)
{
    for (unsigned i = 0; i < count; i++)
        ring_append_take(r, message(), now_ms);
}

static uint64_t count_of(const struct ring *r)
{
    return r->head - r->tail;
}

static void doubles_its_slots_from_four_up_to_its_bound(void **state)
{
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &wide, &shelf);
    assert_null(r.slots);
    append(&r, 1, 0);
    assert_int_equal(r.capacity, 4);
    append(&r, 3, 0);
    assert_int_equal(r.capacity, 4);
    append(&r, 1, 0);
    assert_int_equal(r.capacity, 8);
    append(&r, 251, 0);
    assert_int_equal(r.capacity, 256);
    append(&r, 1000, 0);
    assert_int_equal(r.capacity, 256);
    assert_int_equal(count_of(&r), 256);
    assert_int_equal(r.head, 1256);
    ring_fini(&r);
    assert_int_equal(shelf.bytes, 0);
    assert_null(shelf.oldest);
    assert_null(shelf.newest);
}

/* The bound is no power of two, and the tail is anywhere when the slots double. */
static void a_cursor_finds_the_same_message_while_slots_move(void **state)
{
    static const struct ring_limits limits = {77, 1 << 20, 60000};
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct message *expected[500];
    struct ring r;
    (void)state;
    ring_init(&r, &limits, &shelf);
    append(&r, 4, 0);
    ring_append_take(&r, message(), 100000); /* drops the four for their age */
    assert_int_equal(r.tail, 4);
    expected[4] = ring_at(&r, 4);
    for (unsigned i = 5; i < 500; i++) {
        expected[i] = message();
        ring_append_take(&r, expected[i], 100000);
        assert_int_equal(r.head, i + 1);
        for (uint64_t cursor = r.tail; cursor < r.head; cursor++)
            assert_ptr_equal(ring_at(&r, cursor), expected[cursor]);
    }
    assert_int_equal(count_of(&r), 77);
    ring_fini(&r);
}

static void drops_the_oldest_beyond_its_bytes_and_counts_it(void **state)
{
    static const struct ring_limits limits = {256, 3 * SIZE, 60000};
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &limits, &shelf);
    uint64_t dropped = stats_sum(STAT_ring_dropped_bytes);
    append(&r, 3, 0);
    assert_int_equal(count_of(&r), 3);
    assert_int_equal(stats_sum(STAT_ring_dropped_bytes), dropped);
    append(&r, 1, 0);
    assert_int_equal(count_of(&r), 3);
    assert_int_equal(r.tail, 1);
    assert_int_equal(r.bytes, 3 * SIZE);
    assert_int_equal(stats_sum(STAT_ring_dropped_bytes), dropped + 1);
    ring_fini(&r);
}

static void the_newest_message_stays_whatever_it_takes(void **state)
{
    static const struct ring_limits limits = {256, SIZE / 2, 60000};
    struct shelf shelf = {.max_bytes = SIZE / 3};
    struct ring r;
    (void)state;
    ring_init(&r, &limits, &shelf);
    for (unsigned i = 1; i <= 10; i++) {
        append(&r, 1, 0);
        assert_int_equal(count_of(&r), 1);
        assert_int_equal(r.head, i);
        assert_int_equal(shelf.bytes, SIZE);
    }
    ring_fini(&r);
}

static void drops_what_is_past_its_age_and_not_what_is_just_that_old(void **state)
{
    static const struct ring_limits limits = {256, 1 << 20, 1000};
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &limits, &shelf);
    append(&r, 2, 5000);
    append(&r, 1, 5001);
    append(&r, 1, 6000);
    assert_int_equal(r.tail, 0);
    append(&r, 1, 6001);
    assert_int_equal(r.tail, 2);
    shelf_expire(&shelf, 6001);
    assert_int_equal(r.tail, 2);
    shelf_expire(&shelf, 7000);
    assert_int_equal(r.tail, 3);
    shelf_expire(&shelf, 7002); /* the newest goes too: a quiet channel holds no memory */
    assert_int_equal(r.tail, 5);
    assert_int_equal(shelf.bytes, 0);
    assert_int_equal(stats_sum(STAT_ring_bytes), 0);
    append(&r, 1, 8000);
    assert_int_equal(r.head, 6);
    assert_int_equal(count_of(&r), 1);
    ring_fini(&r);
}

static void the_total_evicts_the_oldest_of_any_ring_and_counts_it(void **state)
{
    struct shelf shelf = {.max_bytes = 4 * SIZE};
    struct ring quiet, busy;
    (void)state;
    ring_init(&quiet, &wide, &shelf);
    ring_init(&busy, &wide, &shelf);
    uint64_t evicted = stats_sum(STAT_ring_evicted);
    append(&busy, 1, 0);
    append(&quiet, 2, 0);
    append(&busy, 1, 0);
    assert_int_equal(stats_sum(STAT_ring_evicted), evicted);
    append(&busy, 1, 0); /* its own first */
    assert_int_equal(count_of(&quiet), 2);
    assert_int_equal(busy.tail, 1);
    append(&busy, 2, 0); /* then both of the quiet one */
    assert_int_equal(count_of(&quiet), 0);
    assert_int_equal(quiet.bytes, 0);
    assert_int_equal(busy.tail, 1);
    append(&busy, 1, 0);
    assert_int_equal(busy.tail, 2);
    assert_int_equal(shelf.bytes, 4 * SIZE);
    assert_int_equal(stats_sum(STAT_ring_evicted), evicted + 4);
    assert_int_equal(stats_sum(STAT_ring_bytes), 4 * SIZE);
    ring_fini(&quiet);
    ring_fini(&busy);
}

static void frames_are_charged_to_the_ring_and_leave_with_their_message(void **state)
{
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &wide, &shelf);
    append(&r, 2, 0);
    const struct frame *raw = frames_get(ring_at(&r, 0), FRAME_WS_RAW, &context);
    size_t charged = sizeof(*raw) + raw->len;
    assert_int_equal(r.bytes, 2 * SIZE + charged);
    assert_int_equal(shelf.bytes, 2 * SIZE + charged);
    assert_ptr_equal(frames_get(ring_at(&r, 0), FRAME_WS_RAW, &context), raw);
    assert_int_equal(r.bytes, 2 * SIZE + charged);
    ring_append_take(&r, message(), 60001); /* both are too old now */
    assert_int_equal(r.bytes, SIZE);
    assert_int_equal(shelf.bytes, SIZE);
    ring_fini(&r);
}

static void frames_made_too_big_push_older_messages_out_at_the_next_append(void **state)
{
    static const struct ring_limits limits = {256, 5 * SIZE, 60000};
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &limits, &shelf);
    append(&r, 3, 0);
    for (uint64_t i = 0; i < 3; i++)
        (void)frames_get(ring_at(&r, i), FRAME_SSE, &context);
    append(&r, 1, 0);
    assert_true(count_of(&r) < 4);
    assert_true(r.bytes <= 5 * SIZE);
    ring_fini(&r);
}

/* A message that is on a socket in part outlives its ring, and charges nobody for frames then. */
static void a_reader_may_keep_a_message_that_was_dropped(void **state)
{
    struct shelf shelf = {.max_bytes = SIZE_MAX};
    struct ring r;
    (void)state;
    ring_init(&r, &wide, &shelf);
    append(&r, 1, 0);
    struct message *kept = message_ref(ring_at(&r, 0));
    shelf_expire(&shelf, 60001);
    assert_int_equal(shelf.bytes, 0);
    assert_int_equal(kept->refs, 1);
    assert_null(kept->ring);
    (void)frames_get(kept, FRAME_SSE, &context);
    assert_int_equal(shelf.bytes, 0);
    ring_fini(&r);
    message_unref(kept);
}

/* The rings of many channels against plain arithmetic over one array. */
enum { RINGS = 5, HISTORY = 20000 };

struct arrival {
    unsigned ring;
    uint64_t arrived_ms;
};

struct model {
    struct dice dice;
    struct shelf shelf;
    struct ring rings[RINGS];
    struct arrival arrivals[HISTORY];
    uint64_t first[RINGS]; /* tails, by arrival */
    uint64_t counts[RINGS];
    unsigned arrived;
    uint64_t now_ms;
};

static uint64_t oldest_of(const struct model *m, unsigned ring, unsigned *arrival)
{
    uint64_t seen = 0;
    for (unsigned i = 0; i < m->arrived; i++) {
        if (m->arrivals[i].ring == ring && seen++ == m->first[ring]) {
            *arrival = i;
            return m->arrivals[i].arrived_ms;
        }
    }
    return UINT64_MAX;
}

static void assert_shelf_is_in_order(const struct model *m)
{
    const struct message *previous = NULL;
    size_t bytes = 0;
    for (const struct message *at = m->shelf.oldest; at != NULL; at = at->newer) {
        assert_ptr_equal(at->older, previous);
        assert_true(previous == NULL || at->order > previous->order);
        bytes += message_size(at);
        previous = at;
    }
    assert_ptr_equal(m->shelf.newest, previous);
    assert_int_equal(m->shelf.bytes, bytes);
}

static void publish(struct model *m, const struct ring_limits *limits)
{
    unsigned ring = dice_roll(&m->dice, RINGS);
    unsigned arrival = 0;
    m->arrivals[m->arrived++] = (struct arrival){ring, m->now_ms};
    m->counts[ring]++;
    append(&m->rings[ring], 1, m->now_ms);
    if (m->counts[ring] - m->first[ring] > limits->messages)
        m->first[ring]++;
    while (m->counts[ring] - m->first[ring] > 1 &&
           m->now_ms - oldest_of(m, ring, &arrival) > limits->max_age_ms)
        m->first[ring]++;
    assert_int_equal(m->rings[ring].head, m->counts[ring]);
    assert_int_equal(m->rings[ring].tail, m->first[ring]);
}

static void any_mix_of_rings_keeps_bounds_and_the_shelf_in_order(void **state)
{
    static const struct ring_limits limits = {13, 1 << 20, 500};
    static struct model m;
    (void)state;
    m.dice = dice_new("ring");
    m.shelf.max_bytes = SIZE_MAX;
    for (unsigned i = 0; i < RINGS; i++)
        ring_init(&m.rings[i], &limits, &m.shelf);
    for (int round = 0; round < 1500; round++) {
        m.now_ms += dice_roll(&m.dice, 40);
        publish(&m, &limits);
        assert_shelf_is_in_order(&m);
    }
    for (unsigned i = 0; i < RINGS; i++)
        ring_fini(&m.rings[i]);
    assert_int_equal(m.shelf.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_its_slots_from_four_up_to_its_bound),
        cmocka_unit_test(a_cursor_finds_the_same_message_while_slots_move),
        cmocka_unit_test(drops_the_oldest_beyond_its_bytes_and_counts_it),
        cmocka_unit_test(the_newest_message_stays_whatever_it_takes),
        cmocka_unit_test(drops_what_is_past_its_age_and_not_what_is_just_that_old),
        cmocka_unit_test(the_total_evicts_the_oldest_of_any_ring_and_counts_it),
        cmocka_unit_test(frames_are_charged_to_the_ring_and_leave_with_their_message),
        cmocka_unit_test(frames_made_too_big_push_older_messages_out_at_the_next_append),
        cmocka_unit_test(a_reader_may_keep_a_message_that_was_dropped),
        cmocka_unit_test(any_mix_of_rings_keeps_bounds_and_the_shelf_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

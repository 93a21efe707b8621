#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/message.h"
#include "tests/unit/exact.h"

#include <stdlib.h>
#include <string.h>

static void copies_its_parts_and_needs_the_originals_no_more(void **state)
{
    char *event = exact("tick", 4), *key = exact("k", 1), *payload = exact("pay\0load", 8);
    const struct message_parts parts = {.has_id = true,
                                        .sequenced = true,
                                        .id = {1, 2},
                                        .prev = {3, 4},
                                        .event = event,
                                        .event_len = 4,
                                        .key = key,
                                        .key_len = 1,
                                        .payload = payload,
                                        .payload_len = 8};
    (void)state;
    struct message *m = message_new(&parts);
    free(event);
    free(key);
    free(payload);
    assert_int_equal(m->refs, 1);
    assert_true(m->has_id && m->sequenced);
    assert_int_equal(m->id.ms * 1000 + m->id.seq, 1002);
    assert_int_equal(m->prev.ms * 1000 + m->prev.seq, 3004);
    assert_int_equal(m->event_len * 100 + m->key_len * 10 + m->payload_len, 418);
    assert_memory_equal(m->event, "tick", 4);
    assert_memory_equal(m->key, "k", 1);
    assert_memory_equal(m->payload, "pay\0load", 8);
    assert_int_equal(message_size(m), sizeof(*m) + 13);
    message_unref(m);
}

static void absent_parts_take_nothing(void **state)
{
    const struct message_parts parts = {0};
    (void)state;
    struct message *m = message_new(&parts);
    assert_false(m->has_id || m->sequenced);
    assert_int_equal(m->event_len + m->key_len + m->payload_len, 0);
    assert_int_equal(message_size(m), sizeof(*m));
    assert_null(m->ring);
    message_unref(m);
}

/* The sanitizer sees a frame that is kept too long, or freed twice. */
static void goes_with_its_last_reference_and_its_frames_with_it(void **state)
{
    const struct message_parts parts = {.payload = "x", .payload_len = 1};
    (void)state;
    struct message *m = message_new(&parts);
    size_t size = message_size(m);
    for (int kind = 0; kind < FRAME_KINDS; kind++) {
        m->frames[kind] = mem_alloc(sizeof(struct frame) + 10);
        m->frames[kind]->len = 10;
        size += sizeof(struct frame) + 10;
        assert_int_equal(message_size(m), size);
    }
    assert_ptr_equal(message_ref(m), m);
    assert_int_equal(m->refs, 2);
    message_unref(m);
    assert_int_equal(m->refs, 1);
    assert_int_equal(m->payload[0], 'x');
    message_unref(m);
    message_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_its_parts_and_needs_the_originals_no_more),
        cmocka_unit_test(absent_parts_take_nothing),
        cmocka_unit_test(goes_with_its_last_reference_and_its_frames_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

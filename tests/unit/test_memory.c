#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/backplane/backplane.h"
#include "tests/unit/fake_clock.h"

#include <stdlib.h>
#include <string.h>

static struct namespace_config namespaces[] = {
    {.name = (char *)"default", .content = CONTENT_JSON, .max_payload = 10}};
static const struct config config = {.namespaces = namespaces, .namespace_count = 1};

/* A hub of one channel, "a". */
struct owner {
    struct topic topic;
    struct message *last;
    struct id position;
    unsigned messages, readies, offs, positions;
};

static struct owner owner;
static struct backplane *memory;

static struct topic *find(void *o, const char *channel, size_t len)
{
    assert_ptr_equal(o, &owner);
    return len == 1 && channel[0] == 'a' ? &owner.topic : NULL;
}

static void on_message(void *o, struct topic *topic, struct message *m)
{
    assert_ptr_equal(o, &owner);
    assert_ptr_equal(topic, &owner.topic);
    message_unref(owner.last);
    owner.last = m;
    owner.messages++;
}

static void on_ready(void *o, struct topic *topic)
{
    assert_ptr_equal(o, &owner);
    assert_ptr_equal(topic, &owner.topic);
    owner.readies++;
}

static void on_lost(void *o, struct topic *topic)
{
    (void)o;
    (void)topic;
    fail();
}

static void on_off(void *o, struct topic *topic)
{
    assert_ptr_equal(o, &owner);
    assert_ptr_equal(topic, &owner.topic);
    assert_int_equal(topic->state, TOPIC_OFF);
    owner.offs++;
}

static void on_position(void *o, const struct id *position)
{
    assert_ptr_equal(o, &owner);
    owner.position = *position;
    owner.positions++;
}

static const struct backplane_events events = {.find = find,
                                               .on_message = on_message,
                                               .on_ready = on_ready,
                                               .on_lost = on_lost,
                                               .on_off = on_off,
                                               .on_position = on_position};

static int set_up(void **state)
{
    (void)state;
    owner = (struct owner){.topic = {.name = "a", .len = 1}};
    memory = backplane_memory_new(&config, &events, &owner);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    message_unref(owner.last);
    memory->ops->free(memory);
    return 0;
}

static void on_published(void *o, const struct publish_outcome *outcome)
{
    struct publish_outcome *copy = o;
    assert_int_equal(copy->status, 0);
    *copy = *outcome;
}

static struct publish_outcome publish(const char *channel, const char *payload)
{
    struct publish_outcome outcome = {0};
    const struct publication p = {.channel = channel,
                                  .channel_len = strlen(channel),
                                  .payload = payload,
                                  .payload_len = strlen(payload),
                                  .event = "e",
                                  .event_len = 1,
                                  .key = "key",
                                  .key_len = 3};
    memory->ops->publish(memory, &p, on_published, &outcome);
    return outcome;
}

static void what_is_published_comes_out_with_an_id(void **state)
{
    (void)state;
    struct publish_outcome outcome = publish("a", "[1]");
    assert_int_equal(outcome.status, 200);
    assert_null(outcome.code);
    assert_int_equal(owner.messages, 1);
    assert_true(owner.last->has_id);
    assert_int_equal(id_compare(&owner.last->id, &outcome.id), 0);
    assert_memory_equal(owner.last->payload, "[1]", owner.last->payload_len);
    assert_memory_equal(owner.last->event, "e", owner.last->event_len);
    assert_memory_equal(owner.last->key, "key", owner.last->key_len);
    assert_int_equal(publish("nobody", "[2]").status, 200);
    assert_int_equal(owner.messages, 1);
    assert_true(memory->ops->is_ready(memory));
}

static void what_may_not_be_published_is_refused_and_goes_nowhere(void **state)
{
    (void)state;
    struct publish_outcome outcome = publish("a", "{");
    assert_int_equal(outcome.status, 400);
    assert_string_equal(outcome.code, "payload_not_json");
    assert_non_null(outcome.message);
    outcome = publish("a", "[1,2,3,4,5]");
    assert_int_equal(outcome.status, 413);
    assert_string_equal(outcome.code, "payload_too_big");
    assert_int_equal(owner.messages, 0);
}

/* And lie after every position that was announced, and not before one that will be. */
static void ids_rise_whatever_the_wall_clock_does(void **state)
{
    static const int64_t steps[] = {0, 0, 1, 0, -3600000, 0, 5, 7200000, 0};
    struct id last = {0};
    (void)state;
    for (size_t i = 0; i < 4 * sizeof(steps) / sizeof(steps[0]); i++) {
        fake_wall_ms += (uint64_t)steps[i / 4];
        if (i % 2 == 0) {
            memory->ops->tick(memory, fake_mono_ms);
            assert_true(id_compare(&owner.position, &last) >= 0);
            last = owner.position;
        }
        struct id id = publish("a", "1").id;
        assert_true(id_compare(&id, &last) > 0);
        assert_true(id_compare(&id, &owner.position) > 0);
        last = id;
    }
}

/* Else the hub takes what is published before the next tick for forged. */
static void a_step_of_the_clock_is_told_before_the_ids_that_follow_it(void **state)
{
    (void)state;
    memory->ops->tick(memory, fake_mono_ms);
    fake_wall_ms += 3600000;
    struct id id = publish("a", "1").id;
    assert_int_equal(owner.position.ms, fake_wall_ms);
    assert_int_equal(id.ms, fake_wall_ms);
}

static void a_topic_is_on_with_the_next_flush_and_off_with_the_one_after_its_end(void **state)
{
    (void)state;
    memory->ops->want(memory, &owner.topic);
    memory->ops->want(memory, &owner.topic);
    assert_int_equal(owner.readies, 0);
    memory->ops->flush(memory);
    memory->ops->flush(memory);
    assert_int_equal(owner.readies, 1);
    assert_int_equal(owner.topic.state, TOPIC_ON);
    memory->ops->unwant(memory, &owner.topic);
    assert_int_equal(owner.offs, 0);
    memory->ops->flush(memory);
    memory->ops->flush(memory);
    assert_int_equal(owner.offs, 1);
}

static void a_topic_unwanted_before_its_flush_is_off_at_once(void **state)
{
    (void)state;
    memory->ops->want(memory, &owner.topic);
    memory->ops->unwant(memory, &owner.topic);
    assert_int_equal(owner.offs, 1);
    memory->ops->flush(memory);
    assert_int_equal(owner.readies, 0);
}

#define WITH_MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MEMORY(what_is_published_comes_out_with_an_id),
        WITH_MEMORY(what_may_not_be_published_is_refused_and_goes_nowhere),
        WITH_MEMORY(ids_rise_whatever_the_wall_clock_does),
        WITH_MEMORY(a_step_of_the_clock_is_told_before_the_ids_that_follow_it),
        WITH_MEMORY(a_topic_is_on_with_the_next_flush_and_off_with_the_one_after_its_end),
        WITH_MEMORY(a_topic_unwanted_before_its_flush_is_off_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/stats.h"
#include "gateway/backplane/subscriber.h"
#include "gateway/link_h2o.h"
#include "tests/unit/fake_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPICS = 1100, BATCH_MAX = 512, PROBE_TIMEOUT_MS = 3000 };

static struct namespace_config namespaces[] = {
    {.name = (char *)"default", .content = CONTENT_TEXT, .max_payload = 100}};
static const struct config config = {.namespaces = namespaces,
                                     .namespace_count = 1,
                                     .redis_prefix = (char *)"tide:",
                                     .redis_probe_timeout_ms = PROBE_TIMEOUT_MS};

/* A link that a test takes up and down; what was sent last lies here. */
struct redis_link {
    const struct link_callbacks *callbacks;
    void *owner;
    bool is_ready;
    unsigned sent_count;
    struct buf sent; /* the last command, its words with a blank between */
    size_t sent_words;
    enum link_fault dropped;
};

static struct redis_link *last_link;

const struct link_poller link_h2o_poller = {NULL, NULL, NULL};

struct redis_link *redis_link_new(const struct link_settings *settings,
                                  const struct link_poller *poller, void *loop,
                                  const struct link_callbacks *callbacks, void *link_owner)
{
    (void)settings;
    (void)poller;
    (void)loop;
    struct redis_link *l = mem_zalloc(sizeof(*l));
    l->callbacks = callbacks;
    l->owner = link_owner;
    last_link = l;
    return l;
}

void redis_link_free(struct redis_link *l)
{
    buf_fini(&l->sent);
    free(l);
}

void redis_link_tick(struct redis_link *l, uint64_t now_ms)
{
    (void)l;
    (void)now_ms;
}

bool redis_link_is_ready(const struct redis_link *l)
{
    return l->is_ready;
}

bool redis_link_send(struct redis_link *l, const struct resp_arg *args, size_t count)
{
    l->sent_count++;
    l->sent_words = count;
    l->sent.len = 0;
    for (size_t i = 0; i < count; i++) {
        buf_append(&l->sent, args[i].bytes, args[i].len);
        buf_append_text(&l->sent, i + 1 < count ? " " : "");
    }
    return l->is_ready;
}

void redis_link_pause(struct redis_link *l, bool is_paused)
{
    (void)l;
    (void)is_paused;
}

void redis_link_drop(struct redis_link *l, enum link_fault fault)
{
    l->dropped = fault;
}

/* The hub: topics by number, and what it was told of each. */
struct owner {
    struct subscriber *subscriber;
    struct redis_link *link;
    struct topic topics[TOPICS];
    char names[TOPICS][8];
    unsigned readies, losts, offs, messages;
    struct id position;
};

static struct owner *owner;

static struct topic *find(void *o, const char *channel, size_t len)
{
    assert_ptr_equal(o, owner);
    for (int i = 0; i < TOPICS; i++) {
        if (strlen(owner->names[i]) == len && memcmp(owner->names[i], channel, len) == 0)
            return &owner->topics[i];
    }
    return NULL;
}

static void on_message(void *o, struct topic *topic, struct message *m)
{
    assert_ptr_equal(o, owner);
    assert_non_null(topic);
    message_unref(m);
    owner->messages++;
}

static void on_ready(void *o, struct topic *topic)
{
    assert_ptr_equal(o, owner);
    assert_true(topic->state == TOPIC_ON || topic->state == TOPIC_LEAVE);
    owner->readies++;
}

static void on_lost(void *o, struct topic *topic)
{
    assert_ptr_equal(o, owner);
    assert_int_equal(topic->state, TOPIC_ASKING);
    owner->losts++;
}

static void on_off(void *o, struct topic *topic)
{
    assert_ptr_equal(o, owner);
    assert_int_equal(topic->state, TOPIC_OFF);
    owner->offs++;
}

static void on_position(void *o, const struct id *position)
{
    assert_ptr_equal(o, owner);
    owner->position = *position;
}

static const struct backplane_events events = {.find = find,
                                               .on_message = on_message,
                                               .on_ready = on_ready,
                                               .on_lost = on_lost,
                                               .on_off = on_off,
                                               .on_position = on_position};

static void assert_sent(const char *words)
{
    assert_int_equal(owner->link->sent.len, strlen(words));
    assert_memory_equal(owner->link->sent.bytes, words, strlen(words));
}

/* One reply as it stands on the wire. */
static void hear(const char *wire, size_t len)
{
    const struct resp *value;
    struct resp_reader *r = resp_reader_new(4096);
    resp_reader_feed(r, wire, len);
    assert_int_equal(resp_reader_next(r, &value), RESP_OK);
    owner->link->callbacks->on_reply(owner->link->owner, value);
    resp_reader_free(r);
}

static void hear_push(const char *kind, const char *channel, const char *third)
{
    char wire[300];
    int len = snprintf(wire, sizeof(wire), "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n%s\r\n", strlen(kind),
                       kind, strlen(channel), channel, third);
    hear(wire, (size_t)len);
}

static void hear_done(const char *kind, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        char channel[20];
        (void)snprintf(channel, sizeof(channel), "tide:%s", owner->names[i]);
        hear_push(kind, channel, ":1");
    }
}

static void hear_denied(void)
{
    static const char wire[] = "-NOPERM No permissions to access a channel\r\n";
    hear(wire, sizeof(wire) - 1);
}

static void link_up(void)
{
    owner->link->is_ready = true;
    owner->link->callbacks->on_ready(owner->link->owner);
    assert_sent("SUBSCRIBE tide:$probe");
    hear_push("subscribe", "tide:$probe", ":1");
}

static void link_down(void)
{
    owner->link->is_ready = false;
    owner->link->callbacks->on_down(owner->link->owner, LINK_FAULT_CLOSED);
}

static void tick(uint64_t ms)
{
    fake_clock_pass(ms);
    subscriber_tick(owner->subscriber, fake_mono_ms, true);
}

static void want(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        subscriber_want(owner->subscriber, &owner->topics[i]);
    subscriber_flush(owner->subscriber);
}

static void unwant(unsigned i)
{
    subscriber_unwant(owner->subscriber, &owner->topics[i]);
    subscriber_flush(owner->subscriber);
}

static int set_up(void **state)
{
    static const struct subscriber_settings settings = {.config = &config,
                                                        .probe_channel = "tide:$probe"};
    (void)state;
    owner = mem_zalloc(sizeof(*owner));
    for (int i = 0; i < TOPICS; i++) {
        int len = snprintf(owner->names[i], sizeof(owner->names[i]), "c%d", i);
        owner->topics[i] = (struct topic){.name = owner->names[i], .len = (uint16_t)len};
    }
    owner->subscriber = subscriber_new(&settings, NULL, &events, owner);
    owner->link = last_link;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    subscriber_free(owner->subscriber);
    free(owner);
    return 0;
}

static void asks_in_batches_and_waits_for_no_answer_between_them(void **state)
{
    (void)state;
    want(0, TOPICS);
    assert_int_equal(owner->link->sent_count, 0);
    link_up();
    assert_int_equal(owner->link->sent_count, 1 + 3);
    assert_int_equal(owner->link->sent_words, 1 + TOPICS - 2 * BATCH_MAX);
    tick(100);
    hear_done("subscribe", 0, 2 * BATCH_MAX);
    assert_int_equal(owner->link->sent_count, 1 + 3);
    assert_false(subscriber_is_ready(owner->subscriber));
    hear_done("subscribe", 2 * BATCH_MAX, TOPICS);
    assert_int_equal(owner->readies, TOPICS);
    assert_false(subscriber_is_ready(owner->subscriber)); /* no probe was heard yet */
    hear_push("message", "tide:$probe", "$8\r\n17-4 abc");
    assert_true(subscriber_is_ready(owner->subscriber));
    assert_int_equal(owner->position.ms, 17);
}

static void a_lost_link_asks_for_what_is_wanted_and_forgets_the_rest(void **state)
{
    (void)state;
    want(0, 3);
    link_up();
    hear_done("subscribe", 0, 3);
    unwant(1);
    assert_sent("UNSUBSCRIBE tide:c1");
    want(3, 4);
    link_down();
    assert_false(subscriber_is_ready(owner->subscriber));
    assert_int_equal(owner->offs, 1);
    assert_int_equal(owner->losts, 2);
    link_up();
    assert_int_equal(owner->link->sent_words, 1 + 3);
    hear_done("subscribe", 0, 1);
    hear_done("subscribe", 2, 4);
    assert_int_equal(owner->readies, 3 + 3);
}

static void one_refused_name_does_not_stop_the_others(void **state)
{
    (void)state;
    tick(100);
    want(0, 3);
    link_up();
    hear_denied();
    assert_int_equal(owner->link->sent_count, 2 + 3); /* one by one now */
    assert_sent("SUBSCRIBE tide:c2");
    hear_done("subscribe", 0, 1);
    hear_denied();
    assert_int_equal(owner->topics[1].state, TOPIC_DENIED);
    hear_done("subscribe", 2, 3);
    assert_int_equal(owner->readies, 2);
    tick(900);
    assert_sent("SUBSCRIBE tide:c2"); /* not in a hot loop */
    for (int i = 0; i < 50; i++) {
        hear_push("message", "tide:$probe", "$3\r\n- x");
        tick(100);
    }
    assert_sent("SUBSCRIBE tide:c1");
    assert_int_equal(owner->link->dropped, LINK_FAULT_NONE);
}

static void has_eight_commands_on_their_way_at_most(void **state)
{
    (void)state;
    want(0, 20);
    link_up();
    hear_denied(); /* so that each is asked for alone */
    assert_int_equal(owner->link->sent_count, 2 + 8);
    hear_done("subscribe", 0, 1);
    assert_int_equal(owner->link->sent_count, 2 + 9);
    hear_done("subscribe", 1, 20);
    assert_int_equal(owner->link->sent_count, 2 + 20);
    assert_int_equal(owner->readies, 20);
}

static void asks_while_another_answer_is_awaited(void **state)
{
    (void)state;
    want(0, 2);
    link_up();
    hear_done("subscribe", 0, 2);
    unwant(0);
    assert_sent("UNSUBSCRIBE tide:c0");
    want(2, 3);
    subscriber_flush(owner->subscriber);
    assert_sent("SUBSCRIBE tide:c2");
    hear_done("unsubscribe", 0, 1);
    hear_done("subscribe", 2, 3);
    assert_int_equal(owner->offs, 1);
    assert_int_equal(owner->readies, 3);
}

/* Else it would be asked for again for ever, and its channel never freed. */
static void a_refused_name_that_everybody_left_meanwhile_is_off(void **state)
{
    (void)state;
    want(0, 1);
    link_up();
    assert_sent("SUBSCRIBE tide:c0");
    unwant(0);
    assert_int_equal(owner->offs, 0);
    hear_denied();
    assert_int_equal(owner->offs, 1);
    assert_int_equal(owner->topics[0].state, TOPIC_OFF);
}

static void another_error_takes_the_link_down(void **state)
{
    static const char loading[] = "-LOADING Redis is loading\r\n";
    static const char unknown[] = "-ERR unknown\r\n";
    (void)state;
    want(0, 1);
    link_up();
    hear(loading, sizeof(loading) - 1);
    assert_int_equal(owner->link->dropped, LINK_FAULT_LOADING);
    hear(unknown, sizeof(unknown) - 1);
    assert_int_equal(owner->link->dropped, LINK_FAULT_PROTOCOL);
}

static void a_silent_link_is_given_up_and_a_pause_of_ours_is_not_silence(void **state)
{
    (void)state;
    link_up();
    tick(100);
    tick(10 *
         (uint64_t)PROBE_TIMEOUT_MS); /* we were stopped; what came meanwhile was not read yet */
    assert_int_equal(owner->link->dropped, LINK_FAULT_NONE);
    for (uint64_t ms = 0; ms < PROBE_TIMEOUT_MS; ms += 100) {
        tick(100);
        assert_int_equal(owner->link->dropped, LINK_FAULT_NONE);
    }
    tick(100);
    assert_int_equal(owner->link->dropped, LINK_FAULT_SILENT);
}

static void without_probes_the_link_itself_is_asked(void **state)
{
    static const char pong[] = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
    (void)state;
    link_up();
    for (int second = 0; second < 10; second++) {
        unsigned sent = owner->link->sent_count;
        for (int i = 0; i < 10; i++) {
            fake_clock_pass(100);
            subscriber_tick(owner->subscriber, fake_mono_ms, false);
        }
        assert_int_equal(owner->link->sent_count, sent + 1);
        assert_sent("PING");
        hear(pong, sizeof(pong) - 1);
    }
    assert_int_equal(owner->link->dropped, LINK_FAULT_NONE);
    assert_false(subscriber_is_ready(owner->subscriber));
}

static void messages_go_to_their_topic_or_are_counted(void **state)
{
    (void)state;
    uint64_t unrouted = stats_sum(STAT_dropped_unrouted);
    want(7, 8);
    link_up();
    hear_push("message", "tide:c7", "$5\r\nhello");
    assert_int_equal(owner->messages, 1);
    hear_push("message", "tide:nobody", "$5\r\nhello");
    hear_push("message", "c7", "$5\r\nhello");
    hear_push("message", "tide:", "$5\r\nhello");
    assert_int_equal(owner->messages, 1);
    assert_int_equal(stats_sum(STAT_dropped_unrouted), unrouted + 3);
    hear_push("message", "tide:c7", "$1\r\n\xff");
    assert_int_equal(owner->messages, 1);
}

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LINK(asks_in_batches_and_waits_for_no_answer_between_them),
        WITH_LINK(a_lost_link_asks_for_what_is_wanted_and_forgets_the_rest),
        WITH_LINK(has_eight_commands_on_their_way_at_most),
        WITH_LINK(asks_while_another_answer_is_awaited),
        WITH_LINK(one_refused_name_does_not_stop_the_others),
        WITH_LINK(a_refused_name_that_everybody_left_meanwhile_is_off),
        WITH_LINK(another_error_takes_the_link_down),
        WITH_LINK(a_silent_link_is_given_up_and_a_pause_of_ours_is_not_silence),
        WITH_LINK(without_probes_the_link_itself_is_asked),
        WITH_LINK(messages_go_to_their_topic_or_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/backplane/topics.h"
#include "tests/unit/dice.h"

#include <string.h>

static size_t count_of(const struct topics *t, enum topic_state state)
{
    const struct topic *head = &t->lists[state];
    size_t count = 0;
    for (const struct topic *at = head->next; at != head; at = at->next, count++) {
        assert_int_equal(at->state, state);
        assert_ptr_equal(at->next->prev, at);
    }
    assert_int_equal(topics_has(t, state), count != 0);
    return count;
}

/* Where it is, and that it is on that list and no other. */
static void assert_state(const struct topics *t, const struct topic *topic, enum topic_state state)
{
    assert_int_equal(topic->state, state);
    for (int s = TOPIC_ASKING; s < TOPIC_STATES; s++) {
        size_t found = 0;
        for (const struct topic *at = t->lists[s].next; at != &t->lists[s]; at = at->next)
            found += at == topic;
        assert_int_equal(found, s == (int)state);
    }
}

static struct topic *take(struct topics *t, enum topic_state from, enum topic_state to)
{
    size_t count;
    struct topic *topic = topics_take(t, from, to, 1, &count);
    assert_int_equal(count, topic == NULL ? 0 : 1);
    return topic;
}

/* Brings a fresh topic to a state by the ways that the header draws. */
static void bring(struct topics *t, struct topic *topic, enum topic_state state)
{
    topics_init(t);
    *topic = (struct topic){.name = "a", .len = 1};
    if (state == TOPIC_OFF)
        return;
    topics_want(t, topic);
    if (state == TOPIC_ASKING)
        return;
    assert_ptr_equal(take(t, TOPIC_ASKING, TOPIC_ASKED), topic);
    if (state == TOPIC_ASKED)
        return;
    if (state == TOPIC_DENIED) {
        assert_ptr_equal(take(t, TOPIC_ASKED, TOPIC_DENIED), topic);
        return;
    }
    assert_true(topics_confirm_on(t, topic));
    if (state == TOPIC_ON)
        return;
    assert_false(topics_unwant(t, topic));
    if (state == TOPIC_LEAVING)
        assert_ptr_equal(take(t, TOPIC_LEAVE, TOPIC_LEAVING), topic);
}

enum act { WANT, UNWANT, CONFIRM_ON, CONFIRM_OFF, RESET, ACTS };

static bool perform(struct topics *t, struct topic *topic, enum act act)
{
    switch (act) {
    case WANT:
        topics_want(t, topic);
        return true;
    case UNWANT:
        return topics_unwant(t, topic);
    case CONFIRM_ON:
        return topics_confirm_on(t, topic);
    case CONFIRM_OFF:
        return topics_confirm_off(t, topic);
    case RESET:
        topics_reset(t, topic);
        return true;
    case ACTS:
        break;
    }
    fail();
    return false;
}

/* The reference: what each act does in each state, wanted or not. RESET is not for what no link
 * knows of: such a topic has nothing to lose. */
static const enum topic_state after[TOPIC_STATES][ACTS] = {
    [TOPIC_OFF] = {TOPIC_ASKING, TOPIC_OFF, TOPIC_OFF, TOPIC_OFF, TOPIC_STATES},
    [TOPIC_ASKING] = {TOPIC_ASKING, TOPIC_OFF, TOPIC_ASKING, TOPIC_ASKING, TOPIC_STATES},
    [TOPIC_ASKED] = {TOPIC_ASKED, TOPIC_ASKED, TOPIC_ON, TOPIC_ASKED, TOPIC_ASKING},
    [TOPIC_DENIED] = {TOPIC_DENIED, TOPIC_OFF, TOPIC_DENIED, TOPIC_DENIED, TOPIC_ASKING},
    [TOPIC_ON] = {TOPIC_ON, TOPIC_LEAVE, TOPIC_ON, TOPIC_ON, TOPIC_ASKING},
    [TOPIC_LEAVE] = {TOPIC_ON, TOPIC_LEAVE, TOPIC_LEAVE, TOPIC_LEAVE, TOPIC_ASKING},
    [TOPIC_LEAVING] = {TOPIC_LEAVING, TOPIC_LEAVING, TOPIC_LEAVING, TOPIC_ASKING, TOPIC_ASKING},
};

static enum topic_state expected_after(const struct topic *topic, enum act act)
{
    enum topic_state next = after[topic->state][act];
    if (topic->wanted)
        return next;
    if (act == RESET || (act == CONFIRM_OFF && topic->state == TOPIC_LEAVING))
        return TOPIC_OFF;
    return act == CONFIRM_ON && topic->state == TOPIC_ASKED ? TOPIC_LEAVE : next;
}

static bool expected_answer(const struct topic *topic, enum act act)
{
    switch (act) {
    case UNWANT:
        return expected_after(topic, act) == TOPIC_OFF;
    case CONFIRM_ON:
        return topic->state == TOPIC_ASKED;
    case CONFIRM_OFF:
        return topic->state == TOPIC_LEAVING;
    case WANT:
    case RESET:
    case ACTS:
        break;
    }
    return true;
}

static bool is_possible(const struct topic *topic, enum act act)
{
    return after[topic->state][act] != TOPIC_STATES;
}

static void perform_and_compare(struct topics *t, struct topic *topic, enum act act)
{
    enum topic_state next = expected_after(topic, act);
    bool answer = expected_answer(topic, act);
    bool wanted = act == WANT || (act != UNWANT && topic->wanted);
    assert_int_equal(perform(t, topic, act), answer);
    assert_state(t, topic, next);
    assert_int_equal(topic->wanted, wanted);
}

static void try_from(enum topic_state from, enum act act, bool wanted)
{
    struct topics t;
    struct topic topic;
    bring(&t, &topic, from);
    assert_state(&t, &topic, from);
    topic.wanted = wanted;
    if (is_possible(&topic, act))
        perform_and_compare(&t, &topic, act);
}

static void every_act_in_every_state_leads_where_it_should(void **state)
{
    (void)state;
    for (int from = 0; from < TOPIC_STATES; from++) {
        for (int act = 0; act < ACTS; act++) {
            try_from((enum topic_state)from, (enum act)act, true);
            try_from((enum topic_state)from, (enum act)act, false);
        }
    }
}

static void wanted_again_before_its_end_it_stays_without_a_word_to_the_server(void **state)
{
    struct topics t;
    struct topic topic;
    (void)state;
    bring(&t, &topic, TOPIC_ON);
    assert_false(topics_unwant(&t, &topic));
    topics_want(&t, &topic);
    assert_false(topics_has(&t, TOPIC_LEAVE));
    assert_null(topics_first(&t, TOPIC_LEAVE));
    assert_ptr_equal(topics_first(&t, TOPIC_ON), &topic);
}

static void wanted_again_while_leaving_it_is_asked_for_anew(void **state)
{
    struct topics t;
    struct topic topic;
    (void)state;
    bring(&t, &topic, TOPIC_LEAVING);
    topics_want(&t, &topic);
    assert_false(topics_has(&t, TOPIC_ASKING));
    assert_true(topics_confirm_off(&t, &topic));
    assert_ptr_equal(topics_first(&t, TOPIC_ASKING), &topic);
}

static void a_batch_is_taken_in_order_and_up_to_its_size(void **state)
{
    enum { COUNT = 10, BATCH = 4 };
    struct topics t;
    struct topic all[COUNT] = {0};
    size_t count;
    (void)state;
    topics_init(&t);
    for (int i = 0; i < COUNT; i++)
        topics_want(&t, &all[i]);
    for (size_t begin = 0; begin < COUNT; begin += count) {
        struct topic *at = topics_take(&t, TOPIC_ASKING, TOPIC_ASKED, BATCH, &count);
        assert_int_equal(count, COUNT - begin < BATCH ? COUNT - begin : BATCH);
        for (size_t i = begin; i < begin + count; i++, at = at->next)
            assert_ptr_equal(at, &all[i]);
        assert_int_equal(count_of(&t, TOPIC_ASKED), begin + count);
    }
    assert_null(topics_take(&t, TOPIC_ASKING, TOPIC_ASKED, BATCH, &count));
    assert_int_equal(count, 0);
}

enum { TOPICS = 12 };

static void act_at_random(struct topics *t, struct topic *all, struct dice *d)
{
    static const enum topic_state batches[][2] = {{TOPIC_ASKING, TOPIC_ASKED},
                                                  {TOPIC_LEAVE, TOPIC_LEAVING},
                                                  {TOPIC_ASKED, TOPIC_DENIED},
                                                  {TOPIC_ASKED, TOPIC_ASKING},
                                                  {TOPIC_DENIED, TOPIC_ASKING}};
    uint32_t what = dice_roll(d, 12);
    if (what < sizeof(batches) / sizeof(batches[0])) {
        const enum topic_state *batch = batches[what];
        size_t due = count_of(t, batch[0]);
        size_t there = count_of(t, batch[1]);
        size_t max = 1 + dice_roll(d, TOPICS);
        size_t count;
        (void)topics_take(t, batch[0], batch[1], max, &count);
        assert_int_equal(count, due < max ? due : max);
        assert_int_equal(count_of(t, batch[0]), due - count);
        assert_int_equal(count_of(t, batch[1]), there + count);
        return;
    }
    struct topic *topic = &all[dice_roll(d, TOPICS)];
    enum act act = (enum act)dice_roll(d, ACTS);
    if (is_possible(topic, act))
        perform_and_compare(t, topic, act);
}

/* Whatever happened: a server that answers everything brings each topic to where it is wanted. */
static void settle(struct topics *t)
{
    struct topic *topic;
    while (take(t, TOPIC_DENIED, TOPIC_ASKING) != NULL)
        continue;
    for (int turn = 0; turn < 3; turn++) {
        while (take(t, TOPIC_ASKING, TOPIC_ASKED) != NULL)
            continue;
        while ((topic = topics_first(t, TOPIC_ASKED)) != NULL)
            assert_true(topics_confirm_on(t, topic));
        while (take(t, TOPIC_LEAVE, TOPIC_LEAVING) != NULL)
            continue;
        while ((topic = topics_first(t, TOPIC_LEAVING)) != NULL)
            assert_true(topics_confirm_off(t, topic));
    }
}

static void any_mix_of_acts_agrees_with_the_reference_and_settles(void **state)
{
    struct dice d = dice_new("topics");
    struct topic all[TOPICS] = {0};
    struct topics t;
    (void)state;
    topics_init(&t);
    for (int round = 0; round < 3000; round++) {
        size_t listed = 0;
        for (uint32_t i = dice_roll(&d, 40); i > 0; i--)
            act_at_random(&t, all, &d);
        for (int s = TOPIC_ASKING; s < TOPIC_STATES; s++)
            listed += count_of(&t, (enum topic_state)s);
        for (int i = 0; i < TOPICS; i++)
            listed += all[i].state == TOPIC_OFF;
        assert_int_equal(listed, TOPICS);
        if (dice_roll(&d, 20) != 0)
            continue;
        settle(&t);
        for (int i = 0; i < TOPICS; i++)
            assert_int_equal(all[i].state, all[i].wanted ? TOPIC_ON : TOPIC_OFF);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_act_in_every_state_leads_where_it_should),
        cmocka_unit_test(wanted_again_before_its_end_it_stays_without_a_word_to_the_server),
        cmocka_unit_test(wanted_again_while_leaving_it_is_asked_for_anew),
        cmocka_unit_test(a_batch_is_taken_in_order_and_up_to_its_size),
        cmocka_unit_test(any_mix_of_acts_agrees_with_the_reference_and_settles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/redis_rig.h"

#include "common/redis_commands.h"

enum { MAX_PENDING = 4, TIMEOUT_MS = 500 };

static struct redis_commands *commands;

/* Static in each test: what is still pending is called in the teardown. */
struct asker {
    unsigned answered_count;
    unsigned null_count;
    char answers[64]; /* their texts, one after the other */
    bool sends_again;
};

static bool ask(struct asker *asker);

static void on_answer(void *owner, const struct resp *reply)
{
    struct asker *asker = owner;
    asker->answered_count++;
    if (reply == NULL)
        asker->null_count++;
    else
        strncat(asker->answers, reply->text, 8);
    if (asker->sends_again)
        (void)ask(asker);
}

static bool ask(struct asker *asker)
{
    const struct resp_arg args[] = {resp_text("PING")};
    return redis_commands_send(commands, args, 1, on_answer, asker);
}

static void pass_reply(struct rig *rig, const struct resp *reply)
{
    (void)rig;
    redis_commands_on_reply(commands, reply);
}

static void pass_down(struct rig *rig)
{
    (void)rig;
    redis_commands_on_down(commands);
}

static int setup(void **state)
{
    int result = rig_setup(state);
    struct rig *rig = *state;
    rig->on_reply = pass_reply;
    rig->on_down = pass_down;
    commands = redis_commands_new(rig->link, MAX_PENDING, TIMEOUT_MS);
    return result;
}

static int teardown(void **state)
{
    redis_commands_free(commands);
    commands = NULL;
    return rig_teardown(state);
}

static void tick(struct rig *rig, uint64_t after_ms)
{
    rig->now_ms += after_ms;
    redis_commands_tick(commands, rig->now_ms);
}

static void answers_come_in_the_order_of_the_questions(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    static struct asker b;
    b = (struct asker){0};
    rig_make_ready(rig);
    assert_true(ask(&a));
    assert_true(ask(&b));
    assert_true(ask(&a));
    assert_int_equal(redis_commands_pending(commands), 3);
    rig_say(rig, "+1\r\n+2\r\n-3\r\n");
    rig_turn(rig);
    assert_string_equal(a.answers, "13");
    assert_string_equal(b.answers, "2");
    assert_int_equal(redis_commands_pending(commands), 0);
}

static void refuses_before_it_is_ready(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    assert_false(ask(&a));
    rig_connect(rig);
    assert_false(ask(&a));
    assert_int_equal(a.answered_count, 0);
}

static void refuses_one_past_its_bound_and_takes_more_after_an_answer(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    rig_make_ready(rig);
    for (int round = 0; round < 5; round++) { /* round the ring */
        while (redis_commands_pending(commands) < MAX_PENDING)
            assert_true(ask(&a));
        assert_false(ask(&a));
        rig_say(rig, "+a\r\n+b\r\n+c\r\n");
        rig_turn(rig);
        assert_int_equal(redis_commands_pending(commands), 1);
    }
    assert_int_equal(a.answered_count, 15);
    assert_int_equal(a.null_count, 0);
}

static void swallows_the_answer_that_comes_too_late(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    static struct asker b;
    b = (struct asker){0};
    rig_make_ready(rig);
    assert_true(ask(&a));
    tick(rig, 100000); /* seen now: no loop's delay counts against Redis */
    tick(rig, TIMEOUT_MS - 1);
    assert_int_equal(a.answered_count, 0);
    assert_true(ask(&b));
    tick(rig, 1);
    tick(rig, 1);
    assert_int_equal(a.null_count, 1);
    assert_int_equal(b.answered_count, 0);
    assert_int_equal(redis_commands_pending(commands), 2);
    rig_say(rig, "+late\r\n+mine\r\n");
    rig_turn(rig);
    assert_int_equal(a.answered_count, 1);
    assert_string_equal(b.answers, "mine");
    assert_int_equal(b.null_count, 0);
}

static void a_question_after_an_answered_one_has_its_whole_time(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    rig_make_ready(rig);
    assert_true(ask(&a));
    tick(rig, 0);
    rig_say(rig, "+1\r\n");
    rig_turn(rig);
    assert_true(ask(&a));
    tick(rig, 100);
    tick(rig, TIMEOUT_MS - 1);
    assert_int_equal(a.answered_count, 1);
    tick(rig, 1);
    assert_int_equal(a.null_count, 1);
}

static void drops_a_link_that_is_silent_for_twice_the_timeout(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    rig_make_ready(rig);
    assert_true(ask(&a));
    tick(rig, 0);
    tick(rig, 2 * TIMEOUT_MS - 1);
    assert_int_equal(rig->down_count, 0);
    tick(rig, 1);
    assert_int_equal(rig->down_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_SILENT);
    assert_int_equal(a.answered_count, 1);
    assert_int_equal(redis_commands_pending(commands), 0);
}

static void everybody_hears_of_the_end_once_and_cannot_ask_again(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){.sends_again = true};
    rig_make_ready(rig);
    for (int i = 0; i < MAX_PENDING; i++)
        assert_true(ask(&a));
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_int_equal(a.null_count, MAX_PENDING);
    assert_int_equal(a.answered_count, MAX_PENDING);
    assert_int_equal(redis_commands_pending(commands), 0);
    a.sends_again = false;
    rig_make_ready(rig);
    assert_true(ask(&a));
    rig_say(rig, "+back\r\n");
    rig_turn(rig);
    assert_string_equal(a.answers, "back");
}

static void an_answer_may_lead_to_the_next_question(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){.sends_again = true};
    rig_make_ready(rig);
    for (int i = 0; i < MAX_PENDING; i++)
        assert_true(ask(&a));
    rig_say(rig, "+1\r\n+2\r\n+3\r\n+4\r\n+5\r\n");
    rig_turn(rig);
    assert_string_equal(a.answers, "12345");
    assert_int_equal(redis_commands_pending(commands), MAX_PENDING);
    redis_link_drop(rig->link, LINK_FAULT_SILENT); /* while whoever waits is still there */
}

static void a_timeout_may_lead_to_the_next_question(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){.sends_again = true};
    rig_make_ready(rig);
    assert_true(ask(&a));
    tick(rig, 0);
    tick(rig, TIMEOUT_MS);
    assert_int_equal(a.null_count, 1);
    assert_int_equal(redis_commands_pending(commands), 2);
    redis_link_drop(rig->link, LINK_FAULT_SILENT); /* while whoever waits is still there */
}

static void an_answer_without_question_drops_the_link(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig_say(rig, "+what\r\n");
    rig_turn(rig);
    assert_int_equal(rig->fault, LINK_FAULT_PROTOCOL);
    rig_make_ready(rig);
    rig_say(rig, "-LOADING again\r\n");
    rig_turn(rig);
    assert_int_equal(rig->fault, LINK_FAULT_LOADING);
}

static void nobody_need_wait_for_an_answer(void **state)
{
    const struct resp_arg args[] = {resp_text("PING")};
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){0};
    rig_make_ready(rig);
    assert_true(redis_commands_send(commands, args, 1, NULL, NULL));
    assert_true(ask(&a));
    assert_true(redis_commands_send(commands, args, 1, NULL, NULL));
    rig_say(rig, "+1\r\n+2\r\n");
    rig_turn(rig);
    assert_string_equal(a.answers, "2");
    tick(rig, 0);
    tick(rig, TIMEOUT_MS);
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
}

static void whoever_waits_hears_of_a_free(void **state)
{
    struct rig *rig = *state;
    static struct asker a;
    a = (struct asker){.sends_again = true};
    rig_make_ready(rig);
    assert_true(ask(&a));
    redis_commands_free(commands);
    commands = NULL;
    rig->on_down = NULL;
    assert_int_equal(a.null_count, 1);
    assert_int_equal(a.answered_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_come_in_the_order_of_the_questions),
        TEST(refuses_before_it_is_ready),
        TEST(refuses_one_past_its_bound_and_takes_more_after_an_answer),
        TEST(swallows_the_answer_that_comes_too_late),
        TEST(a_question_after_an_answered_one_has_its_whole_time),
        TEST(drops_a_link_that_is_silent_for_twice_the_timeout),
        TEST(everybody_hears_of_the_end_once_and_cannot_ask_again),
        TEST(an_answer_may_lead_to_the_next_question),
        TEST(a_timeout_may_lead_to_the_next_question),
        TEST(an_answer_without_question_drops_the_link),
        TEST(nobody_need_wait_for_an_answer),
        TEST(whoever_waits_hears_of_a_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

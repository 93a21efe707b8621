#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "gateway/hub/sweep.h"
#include "tests/unit/dice.h"

#include <stdbool.h>
#include <stdlib.h>

/* On the heap, gone when it leaves; `cursor` as a subscription has one. */
struct item {
    uint32_t index;
    uint64_t cursor;
};

static void on_moved(void *item, uint32_t index)
{
    ((struct item *)item)->index = index;
}

static struct item *join(struct sweep *s, uint64_t cursor)
{
    struct item *item = mem_zalloc(sizeof(*item));
    item->cursor = cursor;
    item->index = sweep_add(s, item);
    return item;
}

static void leave(struct sweep *s, struct item *item)
{
    sweep_remove(s, item->index, on_moved);
    free(item);
}

static void empty(struct sweep *s)
{
    while (s->count != 0)
        leave(s, s->items[s->count - 1]);
    sweep_fini(s);
}

static void assert_indices(const struct sweep *s)
{
    assert_true(s->position <= s->count && s->count <= s->capacity);
    for (uint32_t i = 0; i < s->count; i++)
        assert_int_equal(((struct item *)s->items[i])->index, i);
}

static void visits_each_once_a_round(void **state)
{
    struct sweep s = {0};
    (void)state;
    assert_null(sweep_next(&s));
    for (int i = 0; i < 10; i++)
        (void)join(&s, 0);
    for (uint64_t round = 1; round <= 3; round++) {
        struct item *item;
        int visits = 0;
        sweep_restart(&s);
        for (; (item = sweep_next(&s)) != NULL; visits++)
            assert_int_equal(++item->cursor, round);
        assert_int_equal(visits, 10);
        assert_null(sweep_next(&s));
    }
    empty(&s);
}

static void who_comes_after_the_last_was_visited_is_visited_too(void **state)
{
    struct sweep s = {0};
    (void)state;
    (void)join(&s, 0);
    assert_non_null(sweep_next(&s));
    struct item *late = join(&s, 0);
    assert_ptr_equal(sweep_next(&s), late);
    assert_null(sweep_next(&s));
    empty(&s);
}

/* Every index of removal against every position, once each. */
static void who_leaves_carries_no_unvisited_item_behind_the_position(void **state)
{
    enum { COUNT = 7 };
    (void)state;
    for (uint32_t position = 0; position <= COUNT; position++) {
        for (uint32_t index = 0; index < COUNT; index++) {
            struct sweep s = {0};
            struct item *item;
            for (int i = 0; i < COUNT; i++)
                (void)join(&s, 0);
            for (uint32_t i = 0; i < position; i++)
                ((struct item *)sweep_next(&s))->cursor++;
            leave(&s, s.items[index]);
            assert_indices(&s);
            while ((item = sweep_next(&s)) != NULL)
                item->cursor++;
            for (uint32_t i = 0; i < s.count; i++)
                assert_int_equal(((struct item *)s.items[i])->cursor, 1);
            assert_int_equal(s.count, COUNT - 1);
            empty(&s);
        }
    }
}

static void gives_its_memory_back_when_all_leave(void **state)
{
    struct sweep s = {0};
    (void)state;
    for (int i = 0; i < 10000; i++)
        (void)join(&s, 0);
    assert_true(s.capacity >= 10000 && s.capacity <= 2 * 10000);
    while (s.count > 5)
        leave(&s, s.items[s.count / 2]);
    assert_true(s.capacity <= 32);
    assert_indices(&s);
    empty(&s);
}

/* What channel.c does with a sweep, and the head of a ring that is only a number. */
struct model {
    struct sweep sweep;
    struct dice dice;
    uint64_t head;
    bool dirty, again;
};

static void publish(struct model *m)
{
    m->head++;
    if (m->dirty) {
        m->again = m->again || m->sweep.position != 0;
        return;
    }
    m->dirty = true;
    m->again = false;
    sweep_restart(&m->sweep);
}

static void run_slice(struct model *m, uint32_t budget)
{
    while (m->dirty && budget-- > 0) {
        struct item *item = sweep_next(&m->sweep);
        if (item != NULL) {
            item->cursor = m->head;
        } else if (m->again) {
            m->again = false;
            sweep_restart(&m->sweep);
        } else {
            m->dirty = false;
        }
    }
}

/* Nobody before the position waits for something that no coming visit brings. */
static void assert_nobody_is_forgotten(const struct model *m)
{
    for (uint32_t i = 0; i < m->sweep.count; i++) {
        const struct item *item = m->sweep.items[i];
        bool will_be_visited = m->dirty && (i >= m->sweep.position || m->again);
        assert_true(item->cursor == m->head || will_be_visited);
    }
}

static void act(struct model *m)
{
    uint32_t what = dice_roll(&m->dice, 10);
    if (what < 3)
        (void)join(&m->sweep, m->head);
    else if (what < 6 && m->sweep.count != 0)
        leave(&m->sweep, m->sweep.items[dice_roll(&m->dice, m->sweep.count)]);
    else if (what < 7)
        publish(m);
    else
        run_slice(m, dice_roll(&m->dice, 8));
}

static void any_mix_of_join_leave_and_publish_ends_with_every_cursor_at_the_head(void **state)
{
    struct model m = {.dice = dice_new("sweep")};
    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint32_t acts = dice_roll(&m.dice, 60);
        for (uint32_t i = 0; i < acts; i++) {
            act(&m);
            assert_nobody_is_forgotten(&m);
        }
        assert_indices(&m.sweep);
        run_slice(&m, UINT32_MAX);
        assert_false(m.dirty);
        for (uint32_t i = 0; i < m.sweep.count; i++)
            assert_int_equal(((struct item *)m.sweep.items[i])->cursor, m.head);
    }
    empty(&m.sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visits_each_once_a_round),
        cmocka_unit_test(who_comes_after_the_last_was_visited_is_visited_too),
        cmocka_unit_test(who_leaves_carries_no_unvisited_item_behind_the_position),
        cmocka_unit_test(gives_its_memory_back_when_all_leave),
        cmocka_unit_test(any_mix_of_join_leave_and_publish_ends_with_every_cursor_at_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

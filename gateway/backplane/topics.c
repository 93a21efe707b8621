#include "gateway/backplane/topics.h"

#include <assert.h>

static const bool allowed[TOPIC_STATES][TOPIC_STATES] = {
    [TOPIC_OFF] = {[TOPIC_ASKING] = true},
    [TOPIC_ASKING] = {[TOPIC_ASKED] = true, [TOPIC_OFF] = true},
    [TOPIC_ASKED] =
        {[TOPIC_ON] = true, [TOPIC_DENIED] = true, [TOPIC_ASKING] = true, [TOPIC_OFF] = true},
    [TOPIC_DENIED] = {[TOPIC_ASKING] = true, [TOPIC_OFF] = true},
    [TOPIC_ON] = {[TOPIC_LEAVE] = true, [TOPIC_ASKING] = true, [TOPIC_OFF] = true},
    [TOPIC_LEAVE] =
        {[TOPIC_LEAVING] = true, [TOPIC_ON] = true, [TOPIC_ASKING] = true, [TOPIC_OFF] = true},
    [TOPIC_LEAVING] = {[TOPIC_OFF] = true, [TOPIC_ASKING] = true},
};

void topics_init(struct topics *t)
{
    for (int state = 0; state < TOPIC_STATES; state++) {
        struct topic *head = &t->lists[state];
        *head = (struct topic){.prev = head, .next = head};
    }
}

static void enter(struct topics *t, struct topic *topic, enum topic_state next)
{
    assert(allowed[topic->state][next]);
    if (topic->state != TOPIC_OFF) {
        topic->prev->next = topic->next;
        topic->next->prev = topic->prev;
    }
    topic->state = (uint8_t)next;
    topic->prev = topic->next = NULL;
    if (next == TOPIC_OFF)
        return;
    struct topic *head = &t->lists[next];
    topic->prev = head->prev;
    topic->next = head;
    head->prev->next = topic;
    head->prev = topic;
}

void topics_want(struct topics *t, struct topic *topic)
{
    topic->wanted = true;
    if (topic->state == TOPIC_OFF)
        enter(t, topic, TOPIC_ASKING);
    else if (topic->state == TOPIC_LEAVE)
        enter(t, topic, TOPIC_ON);
}

bool topics_unwant(struct topics *t, struct topic *topic)
{
    topic->wanted = false;
    if (topic->state == TOPIC_ASKING || topic->state == TOPIC_DENIED)
        enter(t, topic, TOPIC_OFF);
    else if (topic->state == TOPIC_ON)
        enter(t, topic, TOPIC_LEAVE);
    return topic->state == TOPIC_OFF;
}

struct topic *topics_take(struct topics *t, enum topic_state from, enum topic_state to, size_t max,
                          size_t *count)
{
    struct topic *first = NULL;
    *count = 0;
    while (*count < max && topics_has(t, from)) {
        struct topic *topic = t->lists[from].next;
        enter(t, topic, to);
        if (first == NULL)
            first = topic;
        ++*count;
    }
    return first;
}

bool topics_confirm_on(struct topics *t, struct topic *topic)
{
    if (topic->state != TOPIC_ASKED)
        return false;
    enter(t, topic, TOPIC_ON);
    if (!topic->wanted)
        enter(t, topic, TOPIC_LEAVE); /* everybody left while the question was out */
    return true;
}

bool topics_confirm_off(struct topics *t, struct topic *topic)
{
    if (topic->state != TOPIC_LEAVING)
        return false;
    enter(t, topic, topic->wanted ? TOPIC_ASKING : TOPIC_OFF);
    return true;
}

struct topic *topics_first(struct topics *t, enum topic_state state)
{
    struct topic *head = &t->lists[state];
    return head->next == head ? NULL : head->next;
}

bool topics_has(const struct topics *t, enum topic_state state)
{
    const struct topic *head = &t->lists[state];
    return head->next != head;
}

void topics_reset(struct topics *t, struct topic *topic)
{
    enter(t, topic, topic->wanted ? TOPIC_ASKING : TOPIC_OFF);
}

/* topics: which state each topic is in, and which are due to be asked for. No I/O. */
#pragma once

#include "gateway/backplane/backplane.h"

/* One circular list a state; TOPIC_OFF has none. */
struct topics {
    struct topic lists[TOPIC_STATES];
};

void topics_init(struct topics *t);
/* What has to happen after a change is told by the state it leaves the topic in. */
void topics_want(struct topics *t, struct topic *topic);
/* True when the topic is OFF now: it never reached the server. */
bool topics_unwant(struct topics *t, struct topic *topic);
/* Moves up to max topics from `from` to `to`; they are then the last of that list, in order.
 * Returns the first of them and their number. */
struct topic *topics_take(struct topics *t, enum topic_state from, enum topic_state to, size_t max,
                          size_t *count);
/* The server said so. True when that was awaited. */
bool topics_confirm_on(struct topics *t, struct topic *topic);
bool topics_confirm_off(struct topics *t, struct topic *topic);
/* Any topic in that state, or NULL. */
struct topic *topics_first(struct topics *t, enum topic_state state);
bool topics_has(const struct topics *t, enum topic_state state);
/* For a link that went down: moves the topic to ASKING if it is wanted, else to OFF. */
void topics_reset(struct topics *t, struct topic *topic);

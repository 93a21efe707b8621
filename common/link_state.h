/* link_state: which state of a Redis link may follow which. */
#pragma once

#include "common/redis_link.h"

#include <stdbool.h>

enum { LINK_STATES = LINK_READY + 1 };

bool link_state_may_follow(enum link_state from, enum link_state to);
const char *link_state_name(enum link_state state);

#include "common/link_state.h"

static const char *const names[LINK_STATES] = {"down", "resolving", "connecting", "greeting",
                                               "ready"};

/* From GREETING back to CONNECTING, or from there to itself: the next address. */
static const bool allowed[LINK_STATES][LINK_STATES] = {
    [LINK_DOWN] = {[LINK_RESOLVING] = true, [LINK_CONNECTING] = true},
    [LINK_RESOLVING] = {[LINK_CONNECTING] = true, [LINK_DOWN] = true},
    [LINK_CONNECTING] = {[LINK_CONNECTING] = true, [LINK_GREETING] = true, [LINK_DOWN] = true},
    [LINK_GREETING] = {[LINK_CONNECTING] = true, [LINK_READY] = true, [LINK_DOWN] = true},
    [LINK_READY] = {[LINK_DOWN] = true},
};

bool link_state_may_follow(enum link_state from, enum link_state to)
{
    return allowed[from][to];
}

const char *link_state_name(enum link_state state)
{
    return names[state];
}

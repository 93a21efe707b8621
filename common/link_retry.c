#include "common/link_retry.h"

#include <stdbool.h>

enum { BACKOFF_BASE_MS = 100, STEADY_MS = 5000 };

void link_retry_init(struct link_retry *r, uint64_t backoff_max_ms)
{
    r->due_ms = 0;
    backoff_init(&r->backoff, BACKOFF_BASE_MS, backoff_max_ms);
}

/* Somebody has to change something first. */
static bool is_configuration(enum link_fault fault)
{
    return fault == LINK_FAULT_AUTH || fault == LINK_FAULT_ACL || fault == LINK_FAULT_MAXCLIENTS;
}

void link_retry_schedule(struct link_retry *r, enum link_fault fault, uint64_t was_ready_ms,
                         uint64_t now_ms)
{
    if (was_ready_ms >= STEADY_MS)
        backoff_reset(&r->backoff);
    r->due_ms = now_ms + (is_configuration(fault) ? backoff_slow_ms(&r->backoff)
                                                  : backoff_next_ms(&r->backoff));
}

/* link_retry: when a link that went down may try again. No clock. */
#pragma once

#include "common/backoff.h"
#include "common/redis_link.h"

#include <stdint.h>

/* Starts by link_retry_init; due at once. */
struct link_retry {
    struct backoff backoff;
    uint64_t due_ms;
};

void link_retry_init(struct link_retry *r, uint64_t backoff_max_ms);
/* Only a link that was ready for a good while begins anew with short waits; one that comes up and
 * falls again at once must not spin. */
void link_retry_schedule(struct link_retry *r, enum link_fault fault, uint64_t was_ready_ms,
                         uint64_t now_ms);

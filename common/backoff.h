/* backoff: how long to wait before the next attempt, so that many clients never come in step. */
#pragma once

#include <stdint.h>

/* Plain data, the caller's. */
struct backoff {
    uint64_t base_ms;
    uint64_t max_ms;
    unsigned attempt; /* runtime */
};

void backoff_init(struct backoff *b, uint64_t base_ms, uint64_t max_ms);
/* Full jitter: 1 to min(max, base * 2^attempt). */
uint64_t backoff_next_ms(struct backoff *b);
/* For faults that time does not heal: half of max to max. Counts as an attempt too. */
uint64_t backoff_slow_ms(struct backoff *b);
void backoff_reset(struct backoff *b);

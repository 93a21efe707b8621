#include "common/backoff.h"

#include "common/random.h"

enum { MAX_SHIFT = 20 };

void backoff_init(struct backoff *b, uint64_t base_ms, uint64_t max_ms)
{
    *b = (struct backoff){.base_ms = base_ms, .max_ms = max_ms};
}

uint64_t backoff_next_ms(struct backoff *b)
{
    uint64_t ceiling = b->base_ms << b->attempt;
    if (b->attempt < MAX_SHIFT)
        b->attempt++;
    return random_between(1, ceiling < b->max_ms ? ceiling : b->max_ms);
}

uint64_t backoff_slow_ms(struct backoff *b)
{
    if (b->attempt < MAX_SHIFT)
        b->attempt++;
    return random_between(b->max_ms / 2, b->max_ms);
}

void backoff_reset(struct backoff *b)
{
    b->attempt = 0;
}

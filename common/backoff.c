#include "common/backoff.h"

#include "common/clock.h"

#include <sys/random.h>

enum { MAX_SHIFT = 20 };

void backoff_init(struct backoff *b, uint64_t base_ms, uint64_t max_ms)
{
    *b = (struct backoff){.base_ms = base_ms, .max_ms = max_ms};
    if (getrandom(&b->random, sizeof(b->random), GRND_NONBLOCK) != (ssize_t)sizeof(b->random))
        b->random = clock_mono_ns();
    b->random |= 1; /* xorshift never leaves zero */
}

static uint64_t draw(struct backoff *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* From low to high, both included. */
static uint64_t between(struct backoff *b, uint64_t low, uint64_t high)
{
    return high <= low ? low : low + (draw(b) >> 11) % (high - low + 1);
}

uint64_t backoff_next_ms(struct backoff *b)
{
    uint64_t ceiling = b->base_ms << b->attempt;
    if (b->attempt < MAX_SHIFT)
        b->attempt++;
    return between(b, 1, ceiling < b->max_ms ? ceiling : b->max_ms);
}

uint64_t backoff_slow_ms(struct backoff *b)
{
    if (b->attempt < MAX_SHIFT)
        b->attempt++;
    return between(b, b->max_ms / 2, b->max_ms);
}

void backoff_reset(struct backoff *b)
{
    b->attempt = 0;
}

#include "common/random.h"

#include <assert.h>
#include <sys/random.h>

static uint64_t state; /* 0: not seeded */

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016. */
static uint64_t next(void)
{
    while (state == 0)
        random_reseed();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Du;
}

void random_reseed(void)
{
    ssize_t got = getrandom(&state, sizeof(state), 0);
    assert(got == sizeof(state));
}

uint64_t random_between(uint64_t low, uint64_t high)
{
    assert(low <= high);
    uint64_t span = high - low + 1;
    return span == 0 ? next() : low + next() % span;
}

/* dice: a seeded source of chance for property tests. A run prints its seed, SEED repeats
 * it.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct dice {
    uint64_t state;
};

static inline struct dice dice_new(const char *what)
{
    struct timespec now;
    const char *given = getenv("SEED");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0)
                                  : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    printf("%s: SEED=%#llx\n", what, (unsigned long long)seed);
    return (struct dice){seed};
}

/* Uniform in [0, sides): splitmix64. */
static inline uint32_t dice_roll(struct dice *d, uint32_t sides)
{
    uint64_t z = (d->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) % sides);
}

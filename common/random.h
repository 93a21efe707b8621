/* random: for jitter, not for secrets. */
#pragma once

#include <stdint.h>

/* Uniform in [low, high]. Seeded by the kernel at the first call in a process. */
uint64_t random_between(uint64_t low, uint64_t high);
/* After a fork: the child draws numbers of its own, not its parent's. */
void random_reseed(void);

/* tick_clock: Unix time as the monotonic clock carries it on. No I/O.
 *
 * The wall clock is read at start; later it is only compared, and its steps are taken over one by
 * one, so that no tick depends on it between two comparisons. All times in ns. */
#pragma once

#include <stdint.h>

struct tick_clock {
    int64_t offset_ns; /* wall minus monotonic */
};

void tick_clock_init(struct tick_clock *c, uint64_t mono_ns, uint64_t wall_ns);
uint64_t tick_clock_now(const struct tick_clock *c, uint64_t mono_ns);
/* Compares. Differences up to 50 ms are left alone; a larger one is taken over and returned, in ms
 * (negative: the wall clock stepped back), else 0. */
int64_t tick_clock_adjust(struct tick_clock *c, uint64_t mono_ns, uint64_t wall_ns);

enum { TICK_CLOCK_TOLERANCE_MS = 50 };

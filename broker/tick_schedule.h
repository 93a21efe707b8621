/* tick_schedule: which tick is due when. No I/O, no clock of its own.
 *
 * Slot k of a rate lies at Unix time k / rate, exactly: nothing is added up, so nothing drifts, and
 * every broker counts alike. */
#pragma once

#include <stdint.h>

struct tick_rate {
    uint64_t nano_hz;
};

/* A decimal rate as it was written: 0.1 Hz is a slot every 10 s, though no double is 0.1. */
struct tick_rate tick_rate_of(double hz);
/* When slot k is, in ns since the Unix epoch. */
uint64_t tick_slot_ns(struct tick_rate rate, uint64_t slot);
uint64_t tick_slot_at_or_after(struct tick_rate rate, uint64_t ns);

/* What to do now: leave `skipped` slots out, then send `count` from `first` on. */
struct tick_plan {
    uint64_t skipped;
    uint64_t first;
    uint64_t count;
    uint64_t late_ns; /* how late the first of all of them is; 0 if none is due */
};

/* `next` is the first slot not dealt with yet. Slots older than backlog_ns are skipped, and at most
 * count_max are planned; the rest stays due. */
struct tick_plan tick_plan(struct tick_rate rate, uint64_t next, uint64_t now_ns,
                           uint64_t backlog_ns, uint64_t count_max);

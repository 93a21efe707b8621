#include "broker/tick_schedule.h"

#include <math.h>

/* A slot's number times 10^18 passes 64 bits. */
__extension__ typedef unsigned __int128 wide;

static const uint64_t nano = 1000000000;

struct tick_rate tick_rate_of(double hz)
{
    return (struct tick_rate){.nano_hz = (uint64_t)llround(hz * 1e9)};
}

uint64_t tick_slot_ns(struct tick_rate rate, uint64_t slot)
{
    return (uint64_t)((wide)slot * nano * nano / rate.nano_hz);
}

uint64_t tick_slot_at_or_after(struct tick_rate rate, uint64_t ns)
{
    wide period = (wide)nano * nano;
    return (uint64_t)(((wide)ns * rate.nano_hz + period - 1) / period);
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct tick_plan tick_plan(struct tick_rate rate, uint64_t next, uint64_t now_ns,
                           uint64_t backlog_ns, uint64_t count_max)
{
    uint64_t end = tick_slot_at_or_after(rate, now_ns + 1); /* the first that is not due */
    if (next >= end)
        return (struct tick_plan){.first = next};

    uint64_t oldest_ns = now_ns > backlog_ns ? now_ns - backlog_ns : 0;
    uint64_t first = max(next, tick_slot_at_or_after(rate, oldest_ns));
    if (first > end)
        first = end;
    uint64_t count = end - first;
    return (struct tick_plan){
        .skipped = first - next,
        .first = first,
        .count = count < count_max ? count : count_max,
        .late_ns = now_ns - tick_slot_ns(rate, next),
    };
}

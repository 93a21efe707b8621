#include "broker/tick_clock.h"

static const int64_t ns_per_ms = 1000000;

void tick_clock_init(struct tick_clock *c, uint64_t mono_ns, uint64_t wall_ns)
{
    c->offset_ns = (int64_t)(wall_ns - mono_ns);
}

uint64_t tick_clock_now(const struct tick_clock *c, uint64_t mono_ns)
{
    return mono_ns + (uint64_t)c->offset_ns;
}

int64_t tick_clock_adjust(struct tick_clock *c, uint64_t mono_ns, uint64_t wall_ns)
{
    int64_t step_ns = (int64_t)(wall_ns - mono_ns) - c->offset_ns;
    int64_t tolerance_ns = TICK_CLOCK_TOLERANCE_MS * ns_per_ms;
    if (step_ns <= tolerance_ns && step_ns >= -tolerance_ns)
        return 0;
    c->offset_ns += step_ns;
    return step_ns / ns_per_ms;
}

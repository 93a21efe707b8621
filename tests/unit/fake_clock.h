/* fake_clock: common/clock for a test, which sets the time. For one file of a program. */
#pragma once

#include "common/clock.h"

static uint64_t fake_mono_ms = 1000000;
static uint64_t fake_wall_ms = 1700000000000;

uint64_t clock_mono_ns(void)
{
    return fake_mono_ms * 1000000u;
}

uint64_t clock_mono_ms(void)
{
    return fake_mono_ms;
}

uint64_t clock_wall_ns(void)
{
    return fake_wall_ms * 1000000u;
}

uint64_t clock_wall_ms(void)
{
    return fake_wall_ms;
}

static inline void fake_clock_pass(uint64_t ms)
{
    fake_mono_ms += ms;
    fake_wall_ms += ms;
}

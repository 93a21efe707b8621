/* clock: the two clocks, and who may use which. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC: every timer, timeout and age. A step of the wall clock does not touch it. */
uint64_t clock_mono_ns(void);
uint64_t clock_mono_ms(void);
/* CLOCK_REALTIME, since the Unix epoch: only what people or other machines read. */
uint64_t clock_wall_ns(void);
uint64_t clock_wall_ms(void);

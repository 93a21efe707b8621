/* wheel: deadlines on our own monotonic clock. No I/O.
 *
 * h2o's timeouts run on the wall clock: a step of it fires them all, or none for as long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wheel;

/* Embedded in its owner; {0} until first armed. */
struct timer {
    struct timer *prev, *next;
    uint64_t deadline_ms;
    void (*on_fire)(struct timer *t);
};

/* Resolution is one slot: 100 ms, never early. */
struct wheel *wheel_new(uint64_t now_ms);
/* Timers still armed are forgotten. */
void wheel_free(struct wheel *w);
/* Re-arming moves it. */
void wheel_arm(struct wheel *w, struct timer *t, uint64_t deadline_ms,
               void (*on_fire)(struct timer *t));
void wheel_disarm(struct timer *t);
bool wheel_is_armed(const struct timer *t);
/* Fires all that are due. A callback may arm and disarm any timer, its own too. */
void wheel_advance(struct wheel *w, uint64_t now_ms);

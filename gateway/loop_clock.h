/* loop_clock: keeps h2o's timeouts running when the wall clock, which they run on, steps back. */
#pragma once

#include <h2o.h>

/* Every tick. Without it a step back by an hour keeps every request that was under way, and all
 * that began later, from timing out for an hour. */
void loop_clock_tick(h2o_loop_t *loop);

/* ticker: publishes the configured ticks on time, or says how many it left out.
 *
 * It runs while started, and sends only under the lease; each tick carries the lease's epoch. */
#pragma once

#include "broker/lease.h"
#include "common/config.h"
#include "common/redis_commands.h"

#include <ev.h>

struct ticker;

struct ticker_settings {
    const struct config *config;
    struct redis_link *link; /* asked only how much it has not sent */
    struct redis_commands *commands;
    struct lease *lease;
};

/* Borrows the settings' members for its whole life. NULL after a fault in the ticks' content was
 * logged. */
struct ticker *ticker_new(struct ev_loop *loop, const struct ticker_settings *settings);
void ticker_free(struct ticker *t);
/* From the next slot on; never one that this ticker has sent before. */
void ticker_start(struct ticker *t);
void ticker_stop(struct ticker *t);

/* Unanswered ticks; beyond it slots are skipped. Room for other commands must be on top. */
enum { TICKER_PENDING_MAX = 10000 };

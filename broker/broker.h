/* broker: what is done once Redis is there: library, namespace table, lease, ticks. */
#pragma once

#include "common/config.h"

#include <ev.h>

struct broker;

/* Borrows both. NULL after a fault in the config was logged. Connects once the loop runs. */
struct broker *broker_new(struct ev_loop *loop, const struct config *config);
void broker_free(struct broker *b);
/* Gives the lease back, after the ticks already sent, then breaks the loop; within a second. */
void broker_stop(struct broker *b);

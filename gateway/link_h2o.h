/* link_h2o: watches a redis_link on h2o's loop. */
#pragma once

#include "common/redis_link.h"

/* The loop is an h2o_loop_t. */
extern const struct link_poller link_h2o_poller;

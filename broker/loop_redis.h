/* loop_redis: redis_link on libev. */
#pragma once

#include "common/redis_link.h"

/* Its loop is a struct ev_loop *. */
extern const struct link_poller loop_redis_poller;

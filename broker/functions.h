/* functions: puts the Function library into Redis, its namespace table, and proves both usable.
 *
 *         install            absent or older          loaded
 *   IDLE ---------> ASKING ------------------> LOADING ------> CHECKING -----> READY
 *    ^                 |  as new as ours, or newer                 ^
 *    |                 +--------------------------------------------+
 *    +---- any refusal, no answer, or reset
 */
#pragma once

#include "common/config.h"
#include "common/redis_commands.h"

#include <stdint.h>

struct functions;

struct functions_callbacks {
    /* A usable library is there. Which rights its user lacks was logged. */
    void (*on_ready)(void *owner);
    /* Why was logged; try again later. */
    void (*on_failed)(void *owner);
    /* The namespace table stands in Redis. */
    void (*on_configured)(void *owner);
};

/* Borrows the config, the commands and the callbacks for its whole life. */
struct functions *functions_new(struct redis_commands *commands, const struct config *config,
                                const struct functions_callbacks *callbacks, void *owner);
void functions_free(struct functions *f);
/* Begins, unless it is under way. */
void functions_install(struct functions *f);
/* What is known of Redis no longer holds. */
void functions_reset(struct functions *f);
bool functions_is_ready(const struct functions *f);
/* Writes our namespace table over whichever stands there, unless that is of a newer schema. */
void functions_configure(struct functions *f);
/* Of our namespace table, as `tidecast_lease` tells that of the one in force. */
const char *functions_table_hash(const struct functions *f);
/* Of the library that this program carries. */
int64_t functions_version(void);
/* Whether an error says that a function is not there. */
bool functions_is_missing(const struct resp *error);

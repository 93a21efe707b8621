/* lease: which one broker acts, by a key in Redis that its holder renews.
 *
 * A lease is believed until a deadline on the monotonic clock that is counted from before the
 * request was sent, so never longer than Redis holds it. What acts under a lease carries its epoch,
 * and Redis refuses any but the present one. */
#pragma once

#include "common/redis_commands.h"

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

struct lease;

/* What Redis told along with the lease, whoever holds it. Borrowed for the call. */
struct lease_news {
    const char *table_hash; /* of the namespace table in force; empty: there is none */
    int64_t library_version;
};

struct lease_callbacks {
    void (*on_lost)(void *owner);
    /* After each answer; whether the lease is held is known by then. */
    void (*on_news)(void *owner, const struct lease_news *news);
    void (*on_refused)(void *owner, const struct resp *error);
};

struct lease_settings {
    const char *prefix;
    const char *name; /* of this broker; a number of this process is added */
    uint64_t length_ms;
};

/* Borrows all but the settings' struct itself for its whole life. */
struct lease *lease_new(struct ev_loop *loop, struct redis_commands *commands,
                        const struct lease_settings *settings,
                        const struct lease_callbacks *callbacks, void *owner);
void lease_free(struct lease *l);
/* Asks now, and from then on: a quarter of its length after each answer. */
void lease_start(struct lease *l);
/* Stops asking. A lease that is held stays so until its deadline. */
void lease_stop(struct lease *l);
/* Gives it up here; it is asked for again. */
void lease_drop(struct lease *l, const char *reason);
/* Stops asking and gives it back to Redis, after all that was sent before. True: on_released will
 * be called once, when Redis has answered or never will. False: there was nothing to give back. */
bool lease_release(struct lease *l, void (*on_released)(void *owner));
/* By the clock of this moment. */
bool lease_is_held(const struct lease *l);
uint64_t lease_epoch(const struct lease *l);

/* redis_link: one connection to Redis and its life, on any loop.
 *
 *            start               resolved           connected            greeted
 *   DOWN -----------> RESOLVING ---------> CONNECTING --------> GREETING -------> READY
 *    ^  backoff over      |                    |                    |               |
 *    +--------------------+--------------------+--------------------+---------------+
 *                            any fault: full-jitter backoff
 *
 * All addresses of a name are tried in the resolver's order before a backoff begins. GREETING is
 * AUTH (when a password is set) and CLIENT SETNAME; nothing else goes out before AUTH was answered
 * well. A unix socket or a literal address skips RESOLVING. */
#pragma once

#include "common/buf.h"
#include "common/resp.h"

#include <stdbool.h>
#include <stdint.h>

struct redis_link;

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_GREETING, LINK_READY };

/* Why a link went down, told apart because operators act on each in another way. The configuration
 * faults (AUTH, ACL, MAXCLIENTS) back off at the slow end at once and are logged when they begin
 * and when they end, not on every attempt; so is every other fault that repeats. */
enum link_fault {
    LINK_FAULT_NONE,
    LINK_FAULT_RESOLVE,    /* the host name has no address */
    LINK_FAULT_CONNECT,    /* refused, unreachable, timed out */
    LINK_FAULT_CLOSED,     /* Redis closed it, perhaps in mid-reply */
    LINK_FAULT_PROTOCOL,   /* not RESP */
    LINK_FAULT_AUTH,       /* WRONGPASS, NOAUTH */
    LINK_FAULT_ACL,        /* NOPERM */
    LINK_FAULT_LOADING,    /* LOADING, BUSY, MASTERDOWN, READONLY */
    LINK_FAULT_MAXCLIENTS, /* "max number of clients reached" */
    LINK_FAULT_SILENT,     /* nothing heard for too long; said by the owner */
    LINK_FAULT_OVERFLOW    /* what was to be sent outgrew its bound */
};
const char *link_fault_name(enum link_fault fault);
/* The fault that an error reply means for a whole link, or LINK_FAULT_NONE if it concerns one
 * command only. */
enum link_fault link_fault_of_error(const struct resp *error);

/* What the loop does for a link. One watch is open at a time; the poller owns the descriptor from
 * open to close. */
struct link_poller {
    /* Watches fd for reading, level-triggered: redis_link_on_readable(link). Returns the watch. */
    void *(*open)(void *loop, int fd, struct redis_link *link);
    /* Once, when fd is writable: redis_link_on_writable(link). Asking twice is asking once. */
    void (*want_write)(void *watch);
    /* Stops watching and closes the descriptor. May be called from within its own callbacks. */
    void (*close)(void *watch);
};

/* Called by the link; none of them may free it. */
struct link_callbacks {
    void (*on_ready)(void *owner);
    /* Every reply and push while READY; borrowed for the call. */
    void (*on_reply)(void *owner, const struct resp *reply);
    /* It was READY and is no longer; pending replies will never come. */
    void (*on_down)(void *owner, enum link_fault fault);
};

struct link_settings {
    const char *name;            /* in logs and CLIENT SETNAME: "subscriber", "command" */
    const char *address;         /* host:port, [v6]:port or unix:/path */
    const char *user;            /* empty: none */
    const char *password;        /* empty: no AUTH */
    uint64_t connect_timeout_ms; /* for RESOLVING; then for each address until READY */
    uint64_t backoff_max_ms;
    size_t max_reply_len;
    size_t max_output_len; /* unsent bytes; beyond it the link is dropped, LINK_FAULT_OVERFLOW */
};

/* Borrows the settings' strings, the poller and the callbacks for its whole life. */
struct redis_link *redis_link_new(const struct link_settings *settings,
                                  const struct link_poller *poller, void *loop,
                                  const struct link_callbacks *callbacks, void *owner);
/* Closes without on_down. Not from within a callback of this link. */
void redis_link_free(struct redis_link *l);

/* The owner calls this at least every 200 ms: starts attempts that are due, ends those that took
 * too long. The first call starts the first attempt. */
void redis_link_tick(struct redis_link *l, uint64_t now_ms);
void redis_link_on_readable(struct redis_link *l);
void redis_link_on_writable(struct redis_link *l);

enum link_state redis_link_state(const struct redis_link *l);
bool redis_link_is_ready(const struct redis_link *l);
/* Queues one command and writes what the socket takes. False when not READY, or when this outgrew
 * max_output_len (the link is then dropped at the next tick, not within this call). */
bool redis_link_send(struct redis_link *l, const struct resp_arg *args, size_t count);
size_t redis_link_unsent(const struct redis_link *l);
/* The owner found the link bad. Goes down at once when called outside on_reply, else after it. */
void redis_link_drop(struct redis_link *l, enum link_fault fault);
/* True: hands out no more replies, not even those that were read already, and reads no more; Redis
 * keeps what comes meanwhile. For moments only; may be called from on_reply.
 * False: goes on, and hands out what had been read; not from within a callback of this link. */
void redis_link_pause(struct redis_link *l, bool is_paused);

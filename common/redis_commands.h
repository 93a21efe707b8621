/* redis_commands: request and answer over a redis_link, in order. */
#pragma once

#include "common/redis_link.h"

/* `reply` is NULL when the answer will never come (the link went down, or it took too long: a late
 * answer is then swallowed). Called exactly once for each accepted command; may send new commands.
 */
typedef void (*redis_command_cb)(void *owner, const struct resp *reply);

struct redis_commands;

/* At most max_pending commands may be unanswered. The link is the caller's; it must pass its
 * replies and its end on, by the two functions below. */
struct redis_commands *redis_commands_new(struct redis_link *link, size_t max_pending,
                                          uint64_t timeout_ms);
/* Whoever still waits is called with NULL first. Not from within a callback of these commands. */
void redis_commands_free(struct redis_commands *c);
/* False: not ready, or max_pending reached; the callback is not called then. A NULL callback takes
 * no notice of the answer. */
bool redis_commands_send(struct redis_commands *c, const struct resp_arg *args, size_t count,
                         redis_command_cb cb, void *owner);
size_t redis_commands_pending(const struct redis_commands *c);
/* Gives up on commands older than the timeout, counted from the first tick that sees them. When the
 * oldest is unanswered for twice as long the link is dropped, LINK_FAULT_SILENT. An answer that
 * nobody asked for drops it too. */
void redis_commands_tick(struct redis_commands *c, uint64_t now_ms);
/* For the link's callbacks. */
void redis_commands_on_reply(struct redis_commands *c, const struct resp *reply);
void redis_commands_on_down(struct redis_commands *c);

/* link_greeting: what a Redis link says before it is ready, and what the answers mean. No I/O. */
#pragma once

#include "common/buf.h"
#include "common/redis_link.h"
#include "common/resp.h"

/* What was said last and awaits its answer. */
enum link_greeting { GREETING_AUTH, GREETING_NAME, GREETING_DONE };

/* Appends the first words: AUTH if there is a password, else the name. */
enum link_greeting link_greeting_start(const struct link_settings *settings, struct buf *out);
/* Takes the answer to *step, goes on to the next and appends its words. A fault ends the link; it
 * stands in the answer if that is an error. */
enum link_fault link_greeting_take(enum link_greeting *step, const struct link_settings *settings,
                                   const struct resp *answer, struct buf *out)
    __attribute__((warn_unused_result));

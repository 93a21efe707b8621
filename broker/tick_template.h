/* tick_template: the payload of a tick, from the configured content. No I/O.
 *
 * {seq}, {t} (ns), {channel} and {pad} are replaced; all else, other braces included, stays. */
#pragma once

#include "common/buf.h"
#include "common/config.h"

struct tick_template;

enum tick_template_fault {
    TICK_TEMPLATE_OK,
    TICK_TEMPLATE_NO_PAD,   /* a payload size, but nothing that could be padded */
    TICK_TEMPLATE_TWO_PADS, /* which one should grow? */
    TICK_TEMPLATE_TOO_LONG  /* the content alone is longer than the payload size */
};
const char *tick_template_fault_text(enum tick_template_fault fault);

/* NULL with *fault set. `last_seq` and `last_t` are the largest that will ever be filled in. The
 * default content gets a member "pad" when a payload size is set. */
struct tick_template *tick_template_new(const struct tick_config *tick, uint64_t last_seq,
                                        uint64_t last_t, enum tick_template_fault *fault);
void tick_template_free(struct tick_template *t);
/* Replaces what is in out. */
void tick_template_fill(const struct tick_template *t, uint64_t seq, uint64_t t_ns,
                        struct buf *out);

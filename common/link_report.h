/* link_report: what the log says of a link: when a fault begins, a reminder a minute, when it ends.
 */
#pragma once

#include "common/redis_link.h"

#include <stdbool.h>
#include <stdint.h>

struct link_report {
    const char *name;
    const char *address;
    enum link_fault fault; /* runtime: what was said last; NONE while the link is well */
    uint64_t down_since_ms;
    uint64_t remind_ms;
    uint64_t repeats; /* of that fault, not said yet */
};

/* Text must be fit for a log line. True: it was said. */
bool link_report_down(struct link_report *r, enum link_fault fault, const char *text,
                      uint64_t now_ms);
void link_report_ready(struct link_report *r, const char *at, uint64_t now_ms);

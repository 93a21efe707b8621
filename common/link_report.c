#include "common/link_report.h"

#include "common/log.h"

#include <inttypes.h>

enum { REMIND_MS = 60000 };

bool link_report_down(struct link_report *r, enum link_fault fault, const char *text,
                      uint64_t now_ms)
{
    if (r->fault == LINK_FAULT_NONE)
        r->down_since_ms = now_ms;
    if (r->fault == fault && now_ms < r->remind_ms) {
        r->repeats++;
        return false;
    }
    log_warn("redis_link_down link=%s fault=%s address=%s repeats=%" PRIu64 " text=\"%s\"", r->name,
             link_fault_name(fault), r->address, r->repeats, text);
    r->fault = fault;
    r->repeats = 0;
    r->remind_ms = now_ms + REMIND_MS;
    return true;
}

void link_report_ready(struct link_report *r, const char *at, uint64_t now_ms)
{
    uint64_t after_ms = r->fault == LINK_FAULT_NONE ? 0 : now_ms - r->down_since_ms;
    log_info("redis_link_ready link=%s address=%s at=%s after_ms=%" PRIu64, r->name, r->address, at,
             after_ms);
    r->fault = LINK_FAULT_NONE;
    r->repeats = 0;
}

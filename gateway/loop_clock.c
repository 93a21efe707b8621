#include "gateway/loop_clock.h"

/* Entries are in the order of their start, which for those from before a step lies ahead. Their
 * time starts again now. */
static void restart_those_ahead(h2o_timeout_t *timeout, uint64_t now_ms)
{
    h2o_linklist_t *list = &timeout->_entries;
    for (h2o_linklist_t *link = list->next; link != list; link = link->next) {
        h2o_timeout_entry_t *entry = H2O_STRUCT_FROM_MEMBER(h2o_timeout_entry_t, _link, link);
        if (entry->registered_at <= now_ms)
            return;
        entry->registered_at = now_ms;
    }
}

void loop_clock_tick(h2o_loop_t *loop)
{
    h2o_linklist_t *list = &loop->_timeouts;
    for (h2o_linklist_t *link = list->next; link != list; link = link->next)
        restart_those_ahead(H2O_STRUCT_FROM_MEMBER(h2o_timeout_t, _link, link), h2o_now(loop));
}

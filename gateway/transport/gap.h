/* gap: what a client is told when it can't be given everything after the id that it saw last. */
#pragma once

#include "common/buf.h"
#include "common/id.h"

#include <stdbool.h>

#define GAP_EVENT "tidecast.gap"

/* Whether something may be missing between the id that a client named (len 0: none, then nothing
 * is) and the position. *from is that id, zero if it is none of ours. */
bool gap_is_there(const char *last_id, size_t len, const struct id *position, struct id *from);
/* {"from":"…","to":"…","reason":"resume_unavailable"} */
void gap_append_json(struct buf *out, const struct id *from, const struct id *to);

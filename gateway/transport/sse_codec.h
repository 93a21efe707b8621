/* sse_codec: the text of a server-sent event (WHATWG HTML, section 9.2). No I/O.
 *
 * Only LF is ever written. Each function appends whole lines. */
#pragma once

#include "common/buf.h"
#include "common/message.h"

/* `id:` when the message has one, `event:` when it is named, a `data:` line for each line of the
 * payload (CRLF, CR and LF all end a line), the empty line. */
void sse_append_message(struct buf *out, const struct message *m);
/* `id: <id>` and the empty line: sets the client's last id and dispatches nothing. */
void sse_append_position(struct buf *out, const struct id *position);
/* `retry: <ms>` and the empty line. */
void sse_append_retry(struct buf *out, uint64_t retry_ms);
/* A comment line and the empty line, for heartbeats without a position. */
void sse_append_comment(struct buf *out);

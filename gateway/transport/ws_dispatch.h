/* ws_dispatch: carries out what a WebSocket client commands, and answers. */
#pragma once

#include "gateway/transport/ws_session.h"

/* One text message, valid UTF-8. Answers now or, for a publish, when Redis did. */
void ws_dispatch(struct stream *s, const char *text, size_t len);
/* The longest message this client may send: 64 KiB and its wrapping where it may publish, 4 KiB
 * elsewhere. */
size_t ws_dispatch_max_message(const struct stream *s);
/* The session ends, or may send nothing more: its publishes under way have nobody to answer. */
void ws_dispatch_forget(struct ws_session *w);

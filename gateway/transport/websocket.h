/* websocket: the way from a request on /ws to an open stream, and what its client sends. */
#pragma once

#include "gateway/transport/streams.h"

#include <h2o.h>

/* A WebSocket handshake that was accepted: answers 101 and takes the socket over. The stream has
 * its channels already. `accept` is Sec-WebSocket-Accept; `protocol` is NULL or the subprotocol. */
void websocket_open(struct stream *s, h2o_req_t *req, const char *accept, const char *protocol);

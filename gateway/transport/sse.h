/* sse: the way from a request on /sse to an open stream. */
#pragma once

#include "gateway/transport/streams.h"

#include <h2o.h>

/* Answers 200 with the first bytes and takes the socket over. The stream has its channels already.
 * `last_event_id` is what the client saw last, empty if it said nothing. */
void sse_open(struct stream *s, h2o_req_t *req, const char *last_event_id, size_t len);
/* The head that a stream's answer has, for HEAD too. */
void sse_set_head(h2o_req_t *req);

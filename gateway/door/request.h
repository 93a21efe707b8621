/* request: what a handler may ask of a request: its target in parts, its headers. */
#pragma once

#include "gateway/door/door.h"
#include "gateway/door/query.h"

#include <stdbool.h>
#include <stddef.h>

enum request_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OPTIONS, METHOD_OTHER };

/* Borrowed from the h2o request; lives until the handler returns. */
struct request {
    struct door *door;
    h2o_req_t *req;
    enum request_method method;
    h2o_iovec_t rest; /* of the path, behind the route's own; still percent-encoded */
    struct query query;
};

/* Blanks around it are no part of a value. Empty when absent. */
h2o_iovec_t request_header(const struct request *r, const char *name);
/* Whether a comma-separated header has that token; letter case does not count. */
bool request_header_has(const struct request *r, const char *name, const char *token);
bool request_method_is(const h2o_req_t *req, const char *method);
/* What the client saw last: the Last-Event-ID header, else lastEventId or lastEventID of the query.
 */
h2o_iovec_t request_last_event_id(const struct request *r);

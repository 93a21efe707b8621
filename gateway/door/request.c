#include "gateway/door/request.h"

#include <string.h>
#include <strings.h>

static h2o_iovec_t trim(h2o_iovec_t text)
{
    while (text.len != 0 && (text.base[0] == ' ' || text.base[0] == '\t')) {
        text.base++;
        text.len--;
    }
    while (text.len != 0 && (text.base[text.len - 1] == ' ' || text.base[text.len - 1] == '\t'))
        text.len--;
    return text;
}

h2o_iovec_t request_header(const struct request *r, const char *name)
{
    ssize_t i = h2o_find_header_by_str(&r->req->headers, name, strlen(name), -1);
    if (i == -1)
        return (h2o_iovec_t){NULL, 0};
    return trim(r->req->headers.entries[i].value);
}

bool request_header_has(const struct request *r, const char *name, const char *token)
{
    h2o_iovec_t left = request_header(r, name);
    size_t token_len = strlen(token);
    while (left.len != 0) {
        const char *comma = memchr(left.base, ',', left.len);
        size_t len = comma == NULL ? left.len : (size_t)(comma - left.base);
        h2o_iovec_t item = trim((h2o_iovec_t){left.base, len});
        if (item.len == token_len && strncasecmp(item.base, token, token_len) == 0)
            return true;
        len += comma != NULL;
        left = (h2o_iovec_t){left.base + len, left.len - len};
    }
    return false;
}

bool request_method_is(const h2o_req_t *req, const char *method)
{
    return h2o_memis(req->method.base, req->method.len, method, strlen(method));
}

h2o_iovec_t request_last_event_id(const struct request *r)
{
    h2o_iovec_t header = request_header(r, "last-event-id");
    if (header.len != 0)
        return header;
    const struct query_param *p = query_find(&r->query, "lastEventId");
    if (p == NULL)
        p = query_find(&r->query, "lastEventID");
    return p == NULL ? header : (h2o_iovec_t){p->value, p->value_len};
}

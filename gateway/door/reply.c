#include "gateway/door/reply.h"

#include "common/log.h"
#include "gateway/door/request.h"

#include <inttypes.h>
#include <string.h>

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 304:
        return "Not Modified";
    case 404:
        return "Not Found";
    case 403:
        return "Forbidden";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 426:
        return "Upgrade Required";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Bad Request";
    }
}

static void add_header(h2o_req_t *req, const char *name, const char *value)
{
    h2o_add_header_by_str(&req->pool, &req->res.headers, name, strlen(name), 0, NULL, value,
                          strlen(value));
}

void reply_body(h2o_req_t *req, int status, const char *content_type, const char *bytes, size_t len)
{
    req->res.status = status;
    req->res.reason = reason_of(status);
    if (req->version < 0x101)
        req->http1_is_persistent = 0; /* an HTTP/1.0 keep-alive would have to be offered by us */
    if (content_type != NULL)
        h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, content_type,
                       strlen(content_type));
    if (status != 204 && status != 304)
        req->res.content_length = len;
    h2o_send_inline(req, bytes, len);
}

void reply_json(h2o_req_t *req, int status, const struct buf *json)
{
    add_header(req, "cache-control", "no-store");
    reply_body(req, status, "application/json", json->bytes, json->len);
}

void reply_error(h2o_req_t *req, int status, const char *code, const char *message)
{
    struct buf json = {0};
    if (status == 503)
        add_header(req, "retry-after", "5");
    buf_printf(&json, "{\"error\":\"%s\",\"message\":", code);
    buf_append_json_string(&json, message, strlen(message));
    buf_append_text(&json, "}\n");
    reply_json(req, status, &json);
    buf_fini(&json);
}

void reply_refusal(h2o_req_t *req, int status, const char *code, const char *message,
                   enum counter counted_as)
{
    static struct log_limit limits[STAT_COUNT];
    uint64_t suppressed;
    char target[LOG_QUOTE_MAX];
    stats_add(counted_as, 1);
    if (log_allowed(&limits[counted_as], &suppressed))
        log_info("request_refused status=%d error=%s target=%s suppressed=%" PRIu64, status, code,
                 log_quote(target, req->path.base,
                           req->query_at == SIZE_MAX ? req->path.len : req->query_at),
                 suppressed);
    reply_error(req, status, code, message);
}

void reply_methods(h2o_req_t *req, const char *allow)
{
    add_header(req, "allow", allow);
    if (request_method_is(req, "OPTIONS"))
        reply_body(req, 204, NULL, "", 0);
    else
        reply_refusal(req, 405, "method_not_allowed", "See the Allow header.", STAT_refused_method);
}

/* routes: which path is whose. */
#include "gateway/console/assets.h"
#include "gateway/door/door.h"
#include "gateway/door/health.h"
#include "gateway/door/publish.h"
#include "gateway/door/reply.h"
#include "gateway/door/request.h"
#include "gateway/door/subscribe.h"

#include <string.h>

enum { HEAD_MAX = 16 * 1024 };

static void send_asset(const struct request *r);

/* A path that ends in '/', but for the root, takes everything below it as its rest. */
struct route {
    const char *path;
    const char *allow;
    void (*handle)(const struct request *r);
};

static const struct route public_routes[] = {
    {"/sse/", "GET, HEAD", subscribe_sse},
    {"/sse", "GET, HEAD", subscribe_sse},
    {"/ws", "GET", subscribe_websocket},
    {"/publish/", "POST", publish_request},
    {"/healthz", "GET, HEAD", health_live},
    {"/readyz", "GET, HEAD", health_ready},
    {"/tidecast.js", "GET, HEAD", send_asset},
    {"/", "GET, HEAD", send_asset}, /* the page, and nothing below */
};

static const struct route admin_routes[] = {
    {"/metrics", "GET, HEAD", health_metrics},
    {"/healthz", "GET, HEAD", health_live},
    {"/readyz", "GET, HEAD", health_ready},
};

struct handler {
    h2o_handler_t super;
    struct door *door;
    const struct route *routes;
    size_t count;
};

static h2o_iovec_t path_of(const h2o_req_t *req)
{
    return (h2o_iovec_t){req->path.base, req->query_at == SIZE_MAX ? req->path.len : req->query_at};
}

static void send_asset(const struct request *r)
{
    h2o_iovec_t path = path_of(r->req);
    const struct asset *a = asset_find(path.base, path.len);
    h2o_iovec_t known = request_header(r, "if-none-match");
    h2o_add_header_by_str(&r->req->pool, &r->req->res.headers, H2O_STRLIT("etag"), 0, NULL, a->etag,
                          strlen(a->etag));
    h2o_add_header(&r->req->pool, &r->req->res.headers, H2O_TOKEN_CACHE_CONTROL, NULL,
                   H2O_STRLIT("no-cache"));
    if (h2o_memis(known.base, known.len, a->etag, strlen(a->etag)))
        reply_body(r->req, 304, NULL, "", 0);
    else
        reply_body(r->req, 200, a->content_type, (const char *)a->bytes, a->len);
}

static bool matches(const struct route *route, h2o_iovec_t path, h2o_iovec_t *rest)
{
    size_t len = strlen(route->path);
    if (path.len < len || memcmp(path.base, route->path, len) != 0)
        return false;
    bool takes_rest = len > 1 && route->path[len - 1] == '/';
    *rest = takes_rest ? (h2o_iovec_t){path.base + len, path.len - len} : (h2o_iovec_t){NULL, 0};
    return takes_rest || path.len == len;
}

/* The rest's base is NULL for a route without one. */
static const struct route *find(const struct handler *h, h2o_iovec_t path, h2o_iovec_t *rest)
{
    for (size_t i = 0; i < h->count; i++) {
        if (matches(&h->routes[i], path, rest))
            return &h->routes[i];
    }
    return NULL;
}

static enum request_method method_of(const h2o_req_t *req)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "OPTIONS"};
    for (int i = 0; i < METHOD_OTHER; i++) {
        if (request_method_is(req, names[i]))
            return (enum request_method)i;
    }
    return METHOD_OTHER;
}

static bool is_allowed(const struct route *route, const h2o_req_t *req)
{
    const char *at = strstr(route->allow, "HEAD");
    if (request_method_is(req, "HEAD"))
        return at != NULL;
    at = strchr(route->allow, ',');
    size_t len = at == NULL ? strlen(route->allow) : (size_t)(at - route->allow);
    return h2o_memis(req->method.base, req->method.len, route->allow, len);
}

static void dispatch(const struct route *route, struct request *r)
{
    h2o_req_t *req = r->req;
    h2o_iovec_t query = {NULL, 0};
    if (req->query_at != SIZE_MAX)
        query =
            (h2o_iovec_t){req->path.base + req->query_at + 1, req->path.len - req->query_at - 1};
    switch (query_parse(&r->query, query.base, query.len)) {
    case QUERY_OK:
        route->handle(r);
        break;
    case QUERY_BAD_ESCAPE:
        reply_refusal(req, 400, "bad_query", "A percent escape is malformed.",
                      STAT_refused_request);
        break;
    case QUERY_TOO_MANY:
        reply_refusal(req, 400, "bad_query", "The query has too many parameters.",
                      STAT_refused_request);
        break;
    }
    query_fini(&r->query);
}

/* h2o takes heads of 400 KB; nothing that we serve needs more than a proxy lets through. */
static bool has_too_large_head(const h2o_req_t *req)
{
    size_t len = req->path.len;
    for (size_t i = 0; i < req->headers.size; i++)
        len += req->headers.entries[i].name->len + req->headers.entries[i].value.len;
    return len > HEAD_MAX;
}

static int on_request(h2o_handler_t *super, h2o_req_t *req)
{
    struct handler *h = (struct handler *)super;
    struct request r = {.door = h->door, .req = req, .method = method_of(req)};
    const struct route *route = find(h, path_of(req), &r.rest);
    if (has_too_large_head(req))
        reply_refusal(req, 431, "head_too_large", "The request's head is over 16 KiB.",
                      STAT_refused_request);
    else if (route == NULL)
        reply_refusal(req, 404, "not_found", "There is nothing at this path.", STAT_refused_path);
    else if (!is_allowed(route, req))
        reply_methods(req, route->allow);
    else if (r.method != METHOD_POST && req->entity.len != 0)
        reply_refusal(req, 400, "unexpected_body", "This request may not have a body.",
                      STAT_refused_request);
    else
        dispatch(route, &r);
    return 0;
}

static void register_routes(h2o_hostconf_t *host, struct door *door, const struct route *routes,
                            size_t count)
{
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    struct handler *h = (struct handler *)h2o_create_handler(path, sizeof(*h));
    h->super.on_req = on_request;
    h->door = door;
    h->routes = routes;
    h->count = count;
}

void door_register_public(h2o_hostconf_t *host, struct door *door)
{
    register_routes(host, door, public_routes, sizeof(public_routes) / sizeof(public_routes[0]));
}

void door_register_admin(h2o_hostconf_t *host, struct door *door)
{
    register_routes(host, door, admin_routes, sizeof(admin_routes) / sizeof(admin_routes[0]));
}

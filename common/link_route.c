#include "common/link_route.h"

#include <errno.h>

void link_route_init(struct link_route *r, const char *address)
{
    *r = (struct link_route){0};
    r->is_valid = redis_address_parse(&r->address, address);
    r->literal = redis_address_info(&r->address);
}

void link_route_fini(struct link_route *r)
{
    resolution_free(r->resolution);
    r->resolution = NULL;
    r->current = NULL;
    r->next = NULL;
}

bool link_route_restart(struct link_route *r)
{
    link_route_fini(r);
    if (r->is_valid && r->address.is_literal)
        r->next = &r->literal;
    return r->is_valid && !r->address.is_literal;
}

void link_route_give(struct link_route *r, struct resolution *resolution)
{
    link_route_fini(r);
    r->resolution = resolution;
    r->next = resolution->addresses;
}

bool link_route_has_next(const struct link_route *r)
{
    return r->next != NULL;
}

int link_route_open(struct link_route *r)
{
    if (r->next == NULL) {
        errno = EDESTADDRREQ;
        return -1;
    }
    r->current = r->next;
    r->next = r->current->ai_next;
    return redis_socket_open(r->current);
}

const char *link_route_text(const struct link_route *r, char out[REDIS_ADDRESS_TEXT_MAX])
{
    out[0] = '\0';
    return r->current == NULL ? out : redis_socket_text(out, r->current);
}

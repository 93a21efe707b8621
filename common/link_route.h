/* link_route: the addresses of one Redis, tried one after the other. */
#pragma once

#include "common/redis_address.h"
#include "common/redis_socket.h"
#include "common/resolver.h"

#include <stdbool.h>

struct link_route {
    bool is_valid;
    struct redis_address address;
    struct addrinfo literal;
    struct resolution *resolution; /* runtime, as are the next two */
    const struct addrinfo *current;
    const struct addrinfo *next;
};

/* Not to be moved afterwards. An address that is none leaves a route that leads nowhere. */
void link_route_init(struct link_route *r, const char *address);
void link_route_fini(struct link_route *r);
/* Forgets what DNS said. True: it must be asked again, and the answer given to link_route_give. */
bool link_route_restart(struct link_route *r);
/* Takes the resolution over. */
void link_route_give(struct link_route *r, struct resolution *resolution);
bool link_route_has_next(const struct link_route *r);
/* Begins to connect to the next address: the descriptor, or -1 with errno. */
int link_route_open(struct link_route *r) __attribute__((warn_unused_result));
/* Where it was opened to last, or "". Returns out. */
const char *link_route_text(const struct link_route *r, char out[REDIS_ADDRESS_TEXT_MAX]);

/* redis_address: where a Redis is, as the configuration writes it. No DNS. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { REDIS_HOST_MAX = 253, REDIS_PORT_MAX = 5 };

struct redis_address {
    bool is_literal; /* a unix socket or a numeric address: nothing to resolve */
    char host[REDIS_HOST_MAX + 1];
    char port[REDIS_PORT_MAX + 1];
    struct sockaddr_storage storage; /* of a literal */
    socklen_t storage_len;
};

/* host:port, [v6]:port or unix:/path. False: it is none of them, a port is not 1 to 65535, or the
 * path does not fit a socket's name (107 bytes). */
bool redis_address_parse(struct redis_address *a, const char *text)
    __attribute__((warn_unused_result));
/* A literal as getaddrinfo would have it; borrows the address. */
struct addrinfo redis_address_info(struct redis_address *a);

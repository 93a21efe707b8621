#include "common/redis_address.h"

#include <stddef.h>
#include <string.h>
#include <sys/un.h>

static bool parse_unix(struct redis_address *a, const char *path)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&a->storage;
    size_t len = strlen(path);
    if (path[0] != '/' || len >= sizeof(un->sun_path))
        return false;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    a->storage_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    a->is_literal = true;
    return true;
}

static bool parse_port(struct redis_address *a, const char *text)
{
    size_t len = strlen(text);
    unsigned port = 0;
    if (len == 0 || len > REDIS_PORT_MAX || strspn(text, "0123456789") != len)
        return false;
    for (size_t i = 0; i < len; i++)
        port = port * 10 + (unsigned)(text[i] - '0');
    memcpy(a->port, text, len + 1);
    return port >= 1 && port <= 65535;
}

static bool parse_host(struct redis_address *a, const char *host, size_t len)
{
    if (len == 0 || len > REDIS_HOST_MAX)
        return false;
    memcpy(a->host, host, len);
    a->host[len] = '\0';
    return true;
}

/* getaddrinfo knows every numeric form, scopes included, and asks nobody for it. */
static bool take_literal(struct redis_address *a, int family)
{
    const struct addrinfo hints = {.ai_family = family,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(a->host, a->port, &hints, &found) != 0)
        return false;
    memcpy(&a->storage, found->ai_addr, found->ai_addrlen);
    a->storage_len = found->ai_addrlen;
    freeaddrinfo(found);
    a->is_literal = true;
    return true;
}

static bool parse_bracketed(struct redis_address *a, const char *text)
{
    const char *end = strchr(text, ']');
    if (end == NULL || end[1] != ':')
        return false;
    return parse_host(a, text, (size_t)(end - text)) && parse_port(a, end + 2) &&
           take_literal(a, AF_INET6);
}

bool redis_address_parse(struct redis_address *a, const char *text)
{
    *a = (struct redis_address){0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(a, text + 5);
    if (text[0] == '[')
        return parse_bracketed(a, text + 1);
    const char *colon = strchr(text, ':');
    if (colon == NULL || !parse_host(a, text, (size_t)(colon - text)) || !parse_port(a, colon + 1))
        return false;
    (void)take_literal(a, AF_INET);
    return true;
}

struct addrinfo redis_address_info(struct redis_address *a)
{
    return (struct addrinfo){.ai_family = a->storage.ss_family,
                             .ai_socktype = SOCK_STREAM,
                             .ai_addrlen = a->storage_len,
                             .ai_addr = (struct sockaddr *)&a->storage};
}

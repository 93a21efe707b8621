#include "common/redis_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEEPALIVE_IDLE_S = 30, KEEPALIVE_INTERVAL_S = 10, KEEPALIVE_PROBES = 3 };
enum { USER_TIMEOUT_MS = 30000 };

static const struct {
    int level;
    int name;
    int value;
} tcp_options[] = {
    {SOL_SOCKET, SO_KEEPALIVE, 1},
    {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
    {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
    {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
    {IPPROTO_TCP, TCP_NODELAY, 1},
};

/* A link without one of these still works, only later to notice a dead peer. */
static void set_tcp_options(int fd)
{
    for (size_t i = 0; i < sizeof(tcp_options) / sizeof(tcp_options[0]); i++)
        (void)setsockopt(fd, tcp_options[i].level, tcp_options[i].name, &tcp_options[i].value,
                         sizeof(tcp_options[i].value));
}

int redis_socket_open(const struct addrinfo *to)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (to->ai_family != AF_UNIX)
        set_tcp_options(fd);
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS || errno == EINTR)
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

enum redis_socket_result redis_socket_check(int fd)
{
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);
    int error = 0;
    socklen_t error_len = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len) == -1)
        return REDIS_SOCKET_FAILED;
    if (error != 0) {
        errno = error;
        return REDIS_SOCKET_FAILED;
    }
    /* No error is also what a socket says whose handshake still runs. */
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0)
        return REDIS_SOCKET_CONNECTED;
    return errno == ENOTCONN ? REDIS_SOCKET_WAIT : REDIS_SOCKET_FAILED;
}

const char *redis_socket_text(char out[REDIS_ADDRESS_TEXT_MAX], const struct addrinfo *address)
{
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    if (address->ai_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)address->ai_addr;
        (void)snprintf(out, REDIS_ADDRESS_TEXT_MAX, "%s", un->sun_path);
        return out;
    }
    (void)getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port, sizeof(port),
                      NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(out, REDIS_ADDRESS_TEXT_MAX,
                   address->ai_family == AF_INET6 ? "[%.*s]:%.8s" : "%.*s:%.8s", 100, host, port);
    return out;
}

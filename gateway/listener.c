#include "gateway/listener.h"

#include "common/log.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A vanished client is gone within 60 s: 30 s until the first probe, three more in 30 s. */
enum { KEEPALIVE_IDLE_S = 30, KEEPALIVE_INTERVAL_S = 10, KEEPALIVE_COUNT = 3, BACKLOG = 4096 };

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value));
}

static bool set_options(int fd, const struct config *config)
{
    return set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) == 0 &&
           set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) == 0 &&
           set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)config->gateway_send_buffer) == 0 &&
           set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) == 0 &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S) == 0 &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S) == 0 &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT) == 0 &&
           set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)config->gateway_user_timeout_ms) == 0;
}

static int listen_on(const struct sockaddr *address, socklen_t len, const struct config *config)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (!set_options(fd, config) || bind(fd, address, len) == -1 || listen(fd, BACKLOG) == -1) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* The first address of the name on which the first socket can listen. */
static int listen_first(const struct addrinfo *addresses, const struct config *config,
                        struct sockaddr_storage *bound, socklen_t *len)
{
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        int fd = listen_on(a->ai_addr, a->ai_addrlen, config);
        *len = sizeof(*bound);
        if (fd != -1 && getsockname(fd, (struct sockaddr *)bound, len) == 0)
            return fd;
    }
    return -1;
}

static struct addrinfo *resolve(const char *address)
{
    char host[LISTENER_ADDRESS_MAX];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const char *colon = strrchr(address, ':');
    if (colon == NULL || strlen(address) >= sizeof(host)) {
        log_error("listen_failed address=%s error=\"not host:port\"", address);
        return NULL;
    }
    size_t len = (size_t)(colon - address);
    bool is_bracketed = len >= 2 && address[0] == '[' && address[len - 1] == ']';
    (void)snprintf(host, sizeof(host), "%.*s", (int)(is_bracketed ? len - 2 : len),
                   address + is_bracketed);
    int error = getaddrinfo(host[0] == '\0' ? NULL : host, colon + 1, &hints, &found);
    if (error != 0)
        log_error("listen_failed address=%s error=\"%s\"", address, gai_strerror(error));
    return found;
}

static void write_text(char text[LISTENER_ADDRESS_MAX], const struct sockaddr_storage *bound,
                       socklen_t len)
{
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    (void)getnameinfo((const struct sockaddr *)bound, len, host, sizeof(host), port, sizeof(port),
                      NI_NUMERICHOST | NI_NUMERICSERV);
    bool is_v6 = bound->ss_family == AF_INET6;
    (void)snprintf(text, LISTENER_ADDRESS_MAX, "%s%.255s%s:%.31s", is_v6 ? "[" : "", host,
                   is_v6 ? "]" : "", port);
}

int listener_open(int *fds, size_t count, const char *address, const struct config *config,
                  char text[LISTENER_ADDRESS_MAX])
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    struct addrinfo *addresses = resolve(address);
    if (addresses == NULL)
        return -1;
    fds[0] = listen_first(addresses, config, &bound, &len);
    freeaddrinfo(addresses);
    size_t opened = fds[0] == -1 ? 0 : 1;
    while (opened > 0 && opened < count) {
        fds[opened] = listen_on((const struct sockaddr *)&bound, len, config);
        if (fds[opened] == -1)
            break;
        opened++;
    }
    if (opened == count) {
        write_text(text, &bound, len);
        return 0;
    }
    log_errno("listen_failed address=%s", address);
    while (opened > 0)
        (void)close(fds[--opened]);
    return -1;
}

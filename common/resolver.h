/* resolver: host names to addresses, on a thread of its own, so that no loop ever waits for DNS. */
#pragma once

#include <netdb.h>

/* What came of one question: `addresses` in the resolver's order (all families), or NULL with
 * `error` set to getaddrinfo's code. */
struct resolution {
    struct addrinfo *addresses;
    int error;
};

/* Asks; returns the descriptor that becomes readable when the answer is there, or -1 with errno.
 * Closing it before that is allowed and forgets the question. */
int resolver_ask(const char *host, const char *port);
/* Takes the answer from a readable descriptor (which stays open; the caller closes it).
 * NULL: nothing was there. Free with resolution_free. */
struct resolution *resolver_take(int fd);
void resolution_free(struct resolution *r);

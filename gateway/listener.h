/* listener: the sockets that a gateway listens on; opened before the workers are forked. */
#pragma once

#include "common/config.h"

#include <stddef.h>

enum { LISTENER_ADDRESS_MAX = 300 };

/* `count` sockets on one address (host:port or [v6]:port), which share it by SO_REUSEPORT when
 * there are several; port 0 takes a free one for all. Their options (buffer, keepalive, user
 * timeout) are inherited by what they accept. `text` gets the address really listened on. 0, or -1
 * after the cause was logged. */
int listener_open(int *fds, size_t count, const char *address, const struct config *config,
                  char text[LISTENER_ADDRESS_MAX]);

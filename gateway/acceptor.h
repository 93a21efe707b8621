/* acceptor: takes connections from a listening socket into h2o, within limits. */
#pragma once

#include <h2o.h>
#include <stdbool.h>
#include <stdint.h>

struct acceptor;

/* `max_sockets`: accepted sockets open at once; beyond it a client is told 503 and closed. Takes
 * the descriptor over. */
struct acceptor *acceptor_open(h2o_context_t *ctx, int fd, uint64_t max_sockets);
/* Every 100 ms: goes on after a pause for want of descriptors. */
void acceptor_tick(struct acceptor *a);
/* Takes what is queued, then stops listening. */
void acceptor_close(struct acceptor *a);

/* door: what every request handler needs. */
#pragma once

#include "gateway/transport/streams.h"

#include <h2o.h>

struct door {
    const struct config *config;
    struct streams *streams;
    unsigned workers; /* of the whole gateway */
    unsigned pending; /* requests that wait for the backplane */
};

/* Handles every request of a host: one for clients, one for operators. */
void door_register_public(h2o_hostconf_t *host, struct door *door);
void door_register_admin(h2o_hostconf_t *host, struct door *door);

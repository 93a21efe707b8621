/* publisher: the link on which a worker publishes, and has its probes published. */
#pragma once

#include "common/redis_link.h"
#include "gateway/backplane/backplane.h"

struct publisher;

struct publisher_settings {
    const struct config *config;
    struct link_settings link;
    const char *probe_channel; /* with prefix */
};

/* Borrows everything for its life. */
struct publisher *publisher_new(const struct publisher_settings *settings, void *loop);
/* Calls back what is pending. */
void publisher_free(struct publisher *p);
/* As backplane_ops.publish. */
void publisher_publish(struct publisher *p, const struct publication *publication, publish_cb cb,
                       void *owner);
void publisher_tick(struct publisher *p, uint64_t now_ms);
/* Whether probes can be sent. */
bool publisher_is_ready(const struct publisher *p);

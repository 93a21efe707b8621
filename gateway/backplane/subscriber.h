/* subscriber: the link on which a worker hears what is published. */
#pragma once

#include "common/redis_link.h"
#include "gateway/backplane/backplane.h"

struct subscriber;

struct subscriber_settings {
    const struct config *config;
    struct link_settings link;
    const char *probe_channel; /* with prefix; heard by this worker alone */
};

/* Borrows everything for its life. */
struct subscriber *subscriber_new(const struct subscriber_settings *settings, void *loop,
                                  const struct backplane_events *events, void *owner);
void subscriber_free(struct subscriber *s);

void subscriber_want(struct subscriber *s, struct topic *topic);
void subscriber_unwant(struct subscriber *s, struct topic *topic);
/* Sends the next batch, unless one is on its way. */
void subscriber_flush(struct subscriber *s);
/* As in backplane_ops. */
void subscriber_pause(struct subscriber *s);
void subscriber_resume(struct subscriber *s);
/* `probes_come`: whether probes are being published now; else the link is asked itself (PING). */
void subscriber_tick(struct subscriber *s, uint64_t now_ms, bool probes_come);
/* Every wanted topic was confirmed since the link is up, and a probe was heard. */
bool subscriber_is_ready(const struct subscriber *s);

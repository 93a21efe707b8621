/* hub: a worker's channels, between its backplane and its streams. */
#pragma once

#include "gateway/hub/channel.h"

struct hub;

/* `wake` asks the loop to call hub_run in its next turn. Borrows config for its life. */
struct hub *hub_new(const struct config *config, void (*wake)(void *loop), void *loop);
/* What the backplane is to call, with the hub as its owner. */
extern const struct backplane_events hub_events;
/* Once, before anything else. The hub does not own it. */
void hub_attach(struct hub *h, struct backplane *b);

/* Subscribes a stream; the name must be valid. The SUBSCRIBE goes out with hub_flush at the latest
 * at the end of this turn. */
void hub_join(struct hub *h, const char *name, size_t len, struct subscription *sub,
              struct stream *stream);
void hub_leave(struct subscription *sub);
/* Sends due SUBSCRIBEs now. */
void hub_flush(struct hub *h);
struct backplane *hub_backplane(struct hub *h);

/* One slice of the sweeps. True when more is to be done: call it again next turn. */
bool hub_run(struct hub *h);
/* Sweeps this channel in a coming turn. */
void hub_mark_dirty(struct channel *c);
/* Every 100 ms. */
void hub_tick(struct hub *h, uint64_t now_ms);

/* Everything up to it has been handed to the channels; zero while unknown. */
struct id hub_position(const struct hub *h);
bool hub_is_ready(const struct hub *h);

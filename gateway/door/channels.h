/* channels: which channels a request names, each once. */
#pragma once

#include "gateway/door/request.h"

struct channel_name {
    char *bytes; /* NUL-terminated */
    size_t len;
};

struct channel_names {
    struct channel_name *items;
    size_t count;
};

/* From the rest of the path, when there is one, and every `channel` of the query. False: the
 * request was refused and answered. channel_names_fini afterwards in either case. */
bool channel_names_take(struct channel_names *names, const struct request *r);
/* The one channel that the path names, for publishing. */
bool channel_names_take_path(struct channel_names *names, const struct request *r);
void channel_names_fini(struct channel_names *names);

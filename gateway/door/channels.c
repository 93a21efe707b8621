#include "gateway/door/channels.h"

#include "common/mem.h"
#include "common/names.h"
#include "gateway/door/reply.h"

#include <stdlib.h>
#include <string.h>

static bool refuse_name(const struct request *r)
{
    reply_refusal(r->req, 400, "bad_channel",
                  "A channel is 1 to 200 bytes of A-Z a-z 0-9 . _ : / @ -", STAT_refused_channel);
    return false;
}

static bool has(const struct channel_names *names, const char *bytes, size_t len)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].len == len && memcmp(names->items[i].bytes, bytes, len) == 0)
            return true;
    }
    return false;
}

/* Takes the name over. A name given twice counts once. */
static void add_take(struct channel_names *names, char *bytes, size_t len)
{
    if (has(names, bytes, len)) {
        free(bytes);
        return;
    }
    names->items = mem_realloc(names->items, (names->count + 1) * sizeof(*names->items));
    names->items[names->count++] = (struct channel_name){bytes, len};
}

/* Whether a proxy on the way would take the path for another one. */
static bool has_dot_segment(const char *path, size_t len)
{
    size_t start = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i != len && path[i] != '/')
            continue;
        size_t segment = i - start;
        if ((segment == 1 && path[start] == '.') ||
            (segment == 2 && path[start] == '.' && path[start + 1] == '.'))
            return true;
        start = i + 1;
    }
    return false;
}

bool channel_names_take_path(struct channel_names *names, const struct request *r)
{
    size_t len;
    *names = (struct channel_names){0};
    char *name = query_decode_segment(r->rest.base, r->rest.len, &len);
    if (name == NULL || !name_is_channel(name, len) || has_dot_segment(name, len)) {
        free(name);
        return refuse_name(r);
    }
    add_take(names, name, len);
    return true;
}

bool channel_names_take(struct channel_names *names, const struct request *r)
{
    *names = (struct channel_names){0};
    if (r->rest.base != NULL && !channel_names_take_path(names, r))
        return false;
    for (size_t i = 0; i < r->query.count; i++) {
        const struct query_param *p = &r->query.params[i];
        if (strcmp(p->name, "channel") != 0)
            continue;
        if (!name_is_channel(p->value, p->value_len))
            return refuse_name(r);
        add_take(names, mem_strndup(p->value, p->value_len), p->value_len);
    }
    const struct config *config = r->door->config;
    if (names->count <= config->gateway_channels_per_request &&
        names->count <= config->gateway_channels_per_connection)
        return true;
    reply_refusal(r->req, 400, "too_many_channels",
                  "One request may name only so many channels; see gateway.channels_per_request "
                  "and gateway.channels_per_connection.",
                  STAT_refused_channels);
    return false;
}

void channel_names_fini(struct channel_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].bytes);
    free(names->items);
}

#include "common/message.h"

#include "common/frame.h"
#include "common/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *put(char **to, const char *from, size_t len)
{
    char *start = *to;
    if (len != 0)
        memcpy(start, from, len);
    *to += len;
    return start;
}

struct message *message_new(const struct message_parts *parts)
{
    size_t len = parts->event_len + parts->key_len + parts->payload_len;
    struct message *m = mem_alloc(sizeof(*m) + len);
    *m = (struct message){.refs = 1,
                          .has_id = parts->has_id,
                          .sequenced = parts->sequenced,
                          .id = parts->id,
                          .prev = parts->prev,
                          .event_len = (uint32_t)parts->event_len,
                          .key_len = (uint32_t)parts->key_len,
                          .payload_len = (uint32_t)parts->payload_len};
    char *to = m->bytes;
    m->event = put(&to, parts->event, parts->event_len);
    m->key = put(&to, parts->key, parts->key_len);
    m->payload = put(&to, parts->payload, parts->payload_len);
    return m;
}

struct message *message_ref(struct message *m)
{
    m->refs++;
    return m;
}

void message_unref(struct message *m)
{
    if (m == NULL)
        return;
    assert(m->refs > 0);
    if (--m->refs != 0)
        return;
    for (int kind = 0; kind < FRAME_KINDS; kind++)
        free(m->frames[kind]);
    free(m);
}

size_t message_size(const struct message *m)
{
    size_t size = sizeof(*m) + m->event_len + m->key_len + m->payload_len;
    for (int kind = 0; kind < FRAME_KINDS; kind++) {
        if (m->frames[kind] != NULL)
            size += sizeof(struct frame) + m->frames[kind]->len;
    }
    return size;
}

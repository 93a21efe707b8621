#include "broker/namespace_table.h"

#include "common/buf.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const contents[] = {
    [CONTENT_AUTO] = "auto",
    [CONTENT_TEXT] = "text",
    [CONTENT_JSON] = "json",
};

static char *take_text(struct buf *b)
{
    char *text = mem_strndup(b->bytes, b->len);
    buf_fini(b);
    return text;
}

static char *name_of(const struct namespace_config *namespace)
{
    struct buf b = {0};
    buf_printf(&b, "ns:%s", namespace->name);
    return take_text(&b);
}

static char *row_of(const struct namespace_config *namespace)
{
    struct buf b = {0};
    buf_printf(&b, "messages=%" PRIu64 " ttl_ms=%" PRIu64 " max_payload=%" PRIu64 " content=%s",
               namespace->history_messages, namespace->history_ttl_ms, namespace->max_payload,
               contents[namespace->content]);
    return take_text(&b);
}

/* FNV-1a, the NUL included, so that the borders count. */
static uint64_t add_to_hash(uint64_t hash, const char *text)
{
    for (size_t i = 0; i <= strlen(text); i++) {
        hash ^= (unsigned char)text[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

void namespace_table_init(struct namespace_table *t, const struct config *config)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    t->count = config->namespace_count;
    t->names = mem_zalloc(t->count * sizeof(*t->names));
    t->rows = mem_zalloc(t->count * sizeof(*t->rows));
    for (size_t i = 0; i < t->count; i++) {
        t->names[i] = name_of(&config->namespaces[i]);
        t->rows[i] = row_of(&config->namespaces[i]);
        /* A sum: the order of the sections in a file means nothing. */
        hash += add_to_hash(add_to_hash(UINT64_C(0xcbf29ce484222325), t->names[i]), t->rows[i]);
    }
    (void)snprintf(t->hash, sizeof(t->hash), "%016" PRIx64, hash);
}

void namespace_table_fini(struct namespace_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->names[i]);
        free(t->rows[i]);
    }
    free(t->names);
    free(t->rows);
}

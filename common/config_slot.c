#include "common/config_slot.h"

#include "common/config_value.h"
#include "common/mem.h"

#include <string.h>

static const char namespaces_name[] = "namespaces";

struct namespace_config *config_slot_add_namespace(struct config *c, const char *name)
{
    size_t count = c->namespace_count + 1;
    c->namespaces = mem_realloc(c->namespaces, count * sizeof(*c->namespaces));
    struct namespace_config *ns = &c->namespaces[c->namespace_count];
    *ns = (struct namespace_config){.name = mem_strndup(name, strlen(name))};
    config_value_set_defaults(&config_namespace_keys, ns);
    c->namespace_count = count;
    return ns;
}

struct config_slot config_slot_root(struct config *c)
{
    return (struct config_slot){.table = &config_settings, .base = c};
}

static bool is_root(const struct config_slot *section)
{
    return section->table == &config_settings && section->prefix_len == 0;
}

static struct namespace_config *find_namespace(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->namespace_count; i++) {
        if (strcmp(c->namespaces[i].name, name) == 0)
            return &c->namespaces[i];
    }
    return NULL;
}

static enum config_slot_result find_in_namespaces(struct config *c, const char *name,
                                                  struct config_slot *slot)
{
    if (!name_is_namespace(name, strlen(name)))
        return CONFIG_SLOT_UNKNOWN;
    struct namespace_config *ns = find_namespace(c, name);
    if (ns == NULL && c->namespace_count == CONFIG_NAMESPACES_MAX)
        return CONFIG_SLOT_NO_ROOM;
    if (ns == NULL)
        ns = config_slot_add_namespace(c, name);
    *slot = (struct config_slot){.table = &config_namespace_keys, .base = ns};
    return CONFIG_SLOT_FOUND;
}

/* The rest of the key's path within the section, or NULL if it is not in it. */
static const char *path_within(const struct config_slot *section, const struct config_key *key)
{
    size_t len = section->prefix_len;
    return len == 0 || strncmp(key->path, section->prefix, len) == 0 ? key->path + len : NULL;
}

static enum config_slot_result find_in_table(const struct config_slot *section, const char *name,
                                             struct config_slot *slot)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < section->table->count; i++) {
        const struct config_key *key = &section->table->keys[i];
        const char *path = path_within(section, key);
        if (path == NULL || strcspn(path, ".") != len || strncmp(path, name, len) != 0)
            continue;
        *slot = (struct config_slot){.table = section->table, .base = section->base};
        if (path[len] == '\0') {
            slot->key = key;
        } else {
            slot->prefix = key->path;
            slot->prefix_len = section->prefix_len + len + 1;
        }
        return CONFIG_SLOT_FOUND;
    }
    return CONFIG_SLOT_UNKNOWN;
}

enum config_slot_result config_slot_find(struct config *c, const struct config_slot *section,
                                         const char *name, struct config_slot *slot)
{
    if (section->key != NULL)
        return CONFIG_SLOT_UNKNOWN;
    if (section->table == NULL)
        return find_in_namespaces(c, name, slot);
    if (is_root(section) && strcmp(name, namespaces_name) == 0) {
        *slot = (struct config_slot){.base = c};
        return CONFIG_SLOT_FOUND;
    }
    return find_in_table(section, name, slot);
}

static void append_name(struct buf *out, const char *name, size_t len)
{
    if (out->len != 0)
        buf_append_text(out, ", ");
    buf_append(out, name, len);
}

void config_slot_append_names(struct buf *out, const struct config_slot *section)
{
    const char *last = "";
    size_t last_len = 0;
    if (section->key != NULL) {
        buf_append_text(out, "nothing below this key");
        return;
    }
    if (section->table == NULL) {
        buf_append_text(out, "names of 1 to 32 of a-z 0-9 _ -");
        return;
    }
    for (size_t i = 0; i < section->table->count; i++) {
        const char *path = path_within(section, &section->table->keys[i]);
        size_t len = path != NULL ? strcspn(path, ".") : 0;
        if (path == NULL || (len == last_len && strncmp(path, last, len) == 0))
            continue;
        append_name(out, path, len);
        last = path;
        last_len = len;
    }
    if (is_root(section))
        append_name(out, namespaces_name, sizeof(namespaces_name) - 1);
}

void config_slot_mark(const struct config_slot *slot)
{
    if (slot->table != &config_namespace_keys)
        return;
    struct namespace_config *ns = slot->base;
    ns->own_keys |= (uint64_t)1 << (slot->key - slot->table->keys);
}

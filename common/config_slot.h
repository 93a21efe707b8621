/* config_slot: a place in the settings: a key, or a section of them. */
#pragma once

#include "common/buf.h"
#include "common/config_table.h"

enum { CONFIG_NAMESPACES_MAX = 256 };

/* A section is the keys of `table` whose path begins with `prefix`; no table: the map of
 * namespaces. */
struct config_slot {
    const struct config_table *table;
    void *base;                   /* the table's struct */
    const struct config_key *key; /* NULL: a section */
    const char *prefix;           /* with its dot, as "history."; borrowed from a key's path */
    size_t prefix_len;
};

enum config_slot_result { CONFIG_SLOT_FOUND, CONFIG_SLOT_UNKNOWN, CONFIG_SLOT_NO_ROOM };

/* Every key at its default. Moves all other namespaces. */
struct namespace_config *config_slot_add_namespace(struct config *c, const char *name);
struct config_slot config_slot_root(struct config *c);
/* What `name` is within a section; adds a namespace that is not there yet. */
enum config_slot_result config_slot_find(struct config *c, const struct config_slot *section,
                                         const char *name, struct config_slot *slot)
    __attribute__((warn_unused_result));
/* The names that a section knows. */
void config_slot_append_names(struct buf *out, const struct config_slot *section);
/* Remembers that a source gave this key, if it is a namespace's. */
void config_slot_mark(const struct config_slot *slot);

/* config_value: one setting between its text and its field. */
#pragma once

#include "common/buf.h"
#include "common/config_table.h"

/* Parses text into the key's field of the struct at base. -1: reason says what is wrong with it and
 * what is allowed, and nothing was changed. Not for CONFIG_TICKS. */
int config_value_set(const struct config_key *key, void *base, const char *text,
                     struct config_error *reason);
/* Every field at its default; those without one are zero. The memory must be zero before. */
void config_value_set_defaults(const struct config_table *table, void *base);
/* Copies a field that owns nothing. */
void config_value_copy(const struct config_key *key, void *to, const void *from);
/* Frees what the fields own. */
void config_value_free_all(const struct config_table *table, void *base);
/* The value as YAML that parses back to it; a secret that is set is "***". */
void config_value_append(struct buf *out, const struct config_key *key, const void *base);
/* What may be written for the key. */
void config_value_append_allowed(struct buf *out, const struct config_key *key);

/* namespace_table: the namespaces as the Redis Functions read them. No I/O. */
#pragma once

#include "common/config.h"

/* `names[i]` (`ns:<name>`) has `rows[i]`, such as
 * `messages=1000 ttl_ms=600000 max_payload=65536 content=auto`. */
struct namespace_table {
    char hash[17]; /* of all names and rows, in hexadecimal */
    size_t count;
    char **names;
    char **rows;
};

/* Which form of the table this is; a library refuses one that is newer than it knows. */
#define NAMESPACE_TABLE_SCHEMA "1"

void namespace_table_init(struct namespace_table *t, const struct config *config);
void namespace_table_fini(struct namespace_table *t);

/* config_error: how a fault in a setting is told. */
#pragma once

#include "common/config.h"

/* Where a setting was written; line 0 where lines have no meaning. */
struct config_place {
    const char *origin;
    size_t line;
};

/* Writes `origin:line: key: text`, with control characters made harmless; key may be empty.
 * Always -1. */
int config_fault(struct config_error *error, struct config_place place, const char *key,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

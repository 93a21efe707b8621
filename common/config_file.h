/* config_file: a small file as a run of bytes. */
#pragma once

#include "common/buf.h"
#include "common/config_error.h"

/* Appends the file. -1: missing, unreadable, a directory, or longer than max; *error says which;
 * `key` is the setting that named it, or empty. */
int config_file_read(struct buf *out, const char *path, size_t max, const char *key,
                     struct config_error *error);

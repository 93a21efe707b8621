/* assets: the files of the console, embedded when the program is built. */
#pragma once

#include <stddef.h>

struct asset {
    const char *path; /* of the URL, without a query */
    const char *content_type;
    const unsigned char *bytes;
    size_t len;
    const char *etag; /* as the ETag header has it, with its quotes */
};

/* The asset with exactly that path, or NULL. */
const struct asset *asset_find(const char *path, size_t len);

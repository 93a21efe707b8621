/* exact: heap copies without a byte to spare, so that a sanitizer sees every read past the end. */
#pragma once

#include "common/mem.h"

#include <string.h>

static inline char *exact(const char *bytes, size_t len)
{
    char *copy = mem_alloc(len);
    if (len != 0)
        memcpy(copy, bytes, len);
    return copy;
}

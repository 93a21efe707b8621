#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p, size_t len)
{
    if (p == NULL && len != 0) {
        (void)fprintf(stderr, "out of memory: %zu bytes\n", len);
        abort();
    }
    return p;
}

void *mem_alloc(size_t len)
{
    return checked(malloc(len), len);
}

void *mem_zalloc(size_t len)
{
    return checked(calloc(1, len), len);
}

void *mem_realloc(void *p, size_t len)
{
    return checked(realloc(p, len), len);
}

char *mem_strndup(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

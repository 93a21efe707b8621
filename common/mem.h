/* mem: allocation that never fails; out of memory ends the process. */
#pragma once

#include <stddef.h>

/* Every size that a peer can choose must be bounded before it comes here. */
void *mem_alloc(size_t len) __attribute__((malloc, warn_unused_result));
void *mem_zalloc(size_t len) __attribute__((malloc, warn_unused_result));
void *mem_realloc(void *p, size_t len) __attribute__((warn_unused_result));
/* A NUL-terminated copy of len bytes. */
char *mem_strndup(const char *s, size_t len) __attribute__((malloc, warn_unused_result));

#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

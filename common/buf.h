/* buf: a growing run of bytes. */
#pragma once

#include <stddef.h>

/* Starts as {0}; bytes is NULL while nothing was ever appended. */
struct buf {
    char *bytes;
    size_t len;
    size_t capacity;
};

void buf_fini(struct buf *b);
/* Room for len more bytes: the place to write them; the caller then adds to b->len. */
char *buf_reserve(struct buf *b, size_t len);
void buf_append(struct buf *b, const char *bytes, size_t len);
void buf_append_text(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text as a JSON string, quotes included. The bytes must be valid UTF-8. */
void buf_append_json_string(struct buf *b, const char *bytes, size_t len);
/* Removes the first len bytes. */
void buf_consume(struct buf *b, size_t len);

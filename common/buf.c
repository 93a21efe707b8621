#include "common/buf.h"

#include "common/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_fini(struct buf *b)
{
    free(b->bytes);
    *b = (struct buf){0};
}

char *buf_reserve(struct buf *b, size_t len)
{
    if (b->capacity - b->len < len) {
        size_t wanted = b->len + len;
        size_t doubled = b->capacity * 2;
        b->capacity = wanted > doubled ? wanted : doubled;
        b->bytes = mem_realloc(b->bytes, b->capacity);
    }
    return b->bytes + b->len;
}

void buf_append(struct buf *b, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    memcpy(buf_reserve(b, len), bytes, len);
    b->len += len;
}

void buf_append_text(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(len >= 0);
    char *to = buf_reserve(b, (size_t)len + 1);
    va_start(args, format);
    (void)vsnprintf(to, (size_t)len + 1, format, args);
    va_end(args);
    b->len += (size_t)len;
}

void buf_append_json_string(struct buf *b, const char *bytes, size_t len)
{
    static const char short_forms[] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                       ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't'};
    size_t plain = 0; /* where the run of bytes that need no escape began */
    buf_append(b, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_append(b, bytes + plain, i - plain);
        plain = i + 1;
        if (short_forms[c] != 0) {
            char escape[2] = {'\\', short_forms[c]};
            buf_append(b, escape, sizeof(escape));
        } else {
            buf_printf(b, "\\u%04x", c);
        }
    }
    buf_append(b, bytes + plain, len - plain);
    buf_append(b, "\"", 1);
}

void buf_consume(struct buf *b, size_t len)
{
    assert(len <= b->len);
    b->len -= len;
    if (b->len != 0)
        memmove(b->bytes, b->bytes + len, b->len);
}

#include "gateway/door/query.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Writes at most len bytes to `to`. */
static bool decode(char *to, size_t *decoded_len, const char *text, size_t len, bool plus_is_blank)
{
    char *start = to;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            bool is_blank = plus_is_blank && text[i] == '+';
            *to++ = (char)(is_blank ? ' ' : text[i]);
            continue;
        }
        int high = len - i > 2 ? hex_value(text[i + 1]) : -1;
        int low = len - i > 2 ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0)
            return false;
        *to++ = (char)(unsigned char)(high * 16 + low);
        i += 2;
    }
    *decoded_len = (size_t)(to - start);
    return true;
}

/* Name and value lie in one allocation, which `name` owns. */
static bool add_param(struct query *q, const char *text, size_t len)
{
    const char *equals = memchr(text, '=', len);
    size_t raw_len = equals != NULL ? (size_t)(equals - text) : len;
    const char *raw_value = equals != NULL ? equals + 1 : text + len;
    struct query_param p;
    p.name = mem_alloc(len + 2);
    p.value = p.name + raw_len + 1;
    if (!decode(p.name, &p.name_len, text, raw_len, true) ||
        !decode(p.value, &p.value_len, raw_value, (size_t)(text + len - raw_value), true)) {
        free(p.name);
        return false;
    }
    p.name[p.name_len] = '\0';
    p.value[p.value_len] = '\0';
    q->params = mem_realloc(q->params, (q->count + 1) * sizeof(p));
    q->params[q->count++] = p;
    return true;
}

enum query_result query_parse(struct query *q, const char *text, size_t len)
{
    *q = (struct query){0};
    while (len != 0) {
        const char *ampersand = memchr(text, '&', len);
        size_t part_len = ampersand != NULL ? (size_t)(ampersand - text) : len;
        if (part_len != 0) {
            if (q->count == QUERY_PARAMS_MAX)
                return QUERY_TOO_MANY;
            if (!add_param(q, text, part_len))
                return QUERY_BAD_ESCAPE;
        }
        size_t taken = ampersand != NULL ? part_len + 1 : part_len;
        text += taken;
        len -= taken;
    }
    return QUERY_OK;
}

void query_fini(struct query *q)
{
    for (size_t i = 0; i < q->count; i++)
        free(q->params[i].name);
    free(q->params);
    *q = (struct query){0};
}

const struct query_param *query_find(const struct query *q, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < q->count; i++) {
        const struct query_param *p = &q->params[i];
        if (p->name_len == len && memcmp(p->name, name, len) == 0)
            return p;
    }
    return NULL;
}

char *query_decode_segment(const char *text, size_t len, size_t *decoded_len)
{
    char *segment = mem_alloc(len + 1);
    if (!decode(segment, decoded_len, text, len, false)) {
        free(segment);
        return NULL;
    }
    segment[*decoded_len] = '\0';
    return segment;
}

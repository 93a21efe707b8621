#include "common/text.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>
#include <unistr.h>

bool text_is_utf8(const char *bytes, size_t len)
{
    return len == 0 || u8_check((const uint8_t *)bytes, len) == NULL;
}

bool text_is_json(const char *bytes, size_t len)
{
    /* The library's lexer skips a NUL that follows a number or a literal. */
    if (len == 0 || memchr(bytes, '\0', len) != NULL)
        return false;
    /* As reals, so that an integer beyond 64 bits is JSON too. */
    json_error_t error;
    json_t *value =
        json_loadb(bytes, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    json_decref(value);
    return value != NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool text_is_json_container(const char *bytes, size_t len)
{
    size_t start = 0;
    while (start < len && is_blank(bytes[start]))
        start++;
    if (start == len || (bytes[start] != '{' && bytes[start] != '['))
        return false;
    return text_is_json(bytes, len);
}

#include "gateway/transport/json_slice.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* p is at a string's opening quote; returns the place behind the closing one. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"')
            return p + 1;
        if (*p == '\\' && end - p > 1)
            p++;
    }
    return end;
}

static const char *skip_container(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        if ((*p == '}' || *p == ']') && --depth == 0)
            return p + 1;
        p++;
    }
    return end;
}

static const char *skip_value(const char *p, const char *end)
{
    if (p == end)
        return end;
    if (*p == '"')
        return skip_string(p, end);
    if (*p == '{' || *p == '[')
        return skip_container(p, end);
    while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_blank(*p))
        p++;
    return p;
}

bool json_slice_is_deeper(const char *text, size_t len, size_t max_depth)
{
    const char *p = text;
    const char *end = text + len;
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if ((*p == '{' || *p == '[') && ++depth > max_depth)
            return true;
        if ((*p == '}' || *p == ']') && depth > 0)
            depth--;
        p++;
    }
    return false;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 0;
}

/* The next character of a string if it is ASCII, else -1. Moves *p behind it. */
static int take_ascii(const char **p, const char *end)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    char c = *(*p)++;
    if (c != '\\' || *p == end)
        return (signed char)c;
    c = *(*p)++;
    if (c != 'u') {
        const char *found = c != '\0' ? strchr(from, c) : NULL;
        return found != NULL ? to[found - from] : c;
    }
    if (end - *p < 4)
        return -1;
    int character = 0;
    for (int i = 0; i < 4; i++)
        character = character * 16 + hex_value(*(*p)++);
    return character < 0x80 ? character : -1;
}

/* text lies between a string's quotes. */
static bool is_name(const char *text, const char *end, const char *name)
{
    while (text < end) {
        if (*name == '\0' || take_ascii(&text, end) != *name)
            return false;
        name++;
    }
    return *name == '\0';
}

bool json_slice_member(struct json_slice *value, const char *object, size_t len, const char *name)
{
    const char *end = object + len;
    const char *p = skip_blanks(object, end);
    if (p == end || *p != '{')
        return false;
    p = skip_blanks(p + 1, end);
    while (p < end && *p == '"') {
        const char *name_end = skip_string(p, end);
        bool is_it = name_end - p >= 2 && is_name(p + 1, name_end - 1, name);
        p = skip_blanks(name_end, end);
        if (p == end || *p != ':')
            return false;
        p = skip_blanks(p + 1, end);
        const char *value_end = skip_value(p, end);
        if (is_it) {
            *value = (struct json_slice){.bytes = p, .len = (size_t)(value_end - p)};
            return true;
        }
        p = skip_blanks(value_end, end);
        if (p < end && *p == ',')
            p = skip_blanks(p + 1, end);
    }
    return false;
}

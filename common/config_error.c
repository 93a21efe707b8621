#include "common/config_error.h"

#include <stdarg.h>

/* A value may hold what a terminal or a log must not be given. */
static void scrub(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f)
            *text = '?';
    }
}

static size_t append(struct config_error *error, size_t len, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static size_t append(struct config_error *error, size_t len, const char *format, va_list args)
{
    int n = vsnprintf(error->text + len, sizeof(error->text) - len, format, args);
    size_t wanted = len + (n > 0 ? (size_t)n : 0);
    return wanted < sizeof(error->text) ? wanted : sizeof(error->text) - 1;
}

static size_t add(struct config_error *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t add(struct config_error *error, size_t len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    len = append(error, len, format, args);
    va_end(args);
    return len;
}

int config_fault(struct config_error *error, struct config_place place, const char *key,
                 const char *format, ...)
{
    size_t len = 0;
    error->text[0] = '\0';
    if (place.origin != NULL)
        len = add(error, len, "%.200s:", place.origin);
    if (place.line != 0)
        len = add(error, len, "%zu:", place.line);
    if (len != 0)
        len = add(error, len, " ");
    if (key[0] != '\0')
        len = add(error, len, "%.128s: ", key);
    va_list args;
    va_start(args, format);
    (void)append(error, len, format, args);
    va_end(args);
    scrub(error->text);
    return -1;
}

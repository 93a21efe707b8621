#include "common/log.h"

#include "common/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_LEN = 2048, LIMIT_INTERVAL_MS = 1000 };

static enum log_level threshold = LOG_INFO;
static const char *process_name = "tidecast";

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_name(const char *name)
{
    process_name = name;
}

static size_t timestamp(char *out, size_t len)
{
    uint64_t ms = clock_wall_ms();
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    (void)gmtime_r(&seconds, &utc);
    size_t n = strftime(out, len, "%Y-%m-%dT%H:%M:%S", &utc);
    return n + (size_t)snprintf(out + n, len - n, ".%03uZ", (unsigned)(ms % 1000));
}

/* One write() a line, so that lines of several processes never mix. */
__attribute__((format(printf, 3, 0))) static void write_line(enum log_level level, int error,
                                                             const char *format, va_list args)
{
    char line[LINE_MAX_LEN];
    const size_t room = sizeof(line) - 1; /* the line feed always fits */
    size_t n = timestamp(line, sizeof(line));
    n += (size_t)snprintf(line + n, room - n, " %s %s ", level_names[level], process_name);
    int body = vsnprintf(line + n, room - n, format, args);
    n = body < 0 ? n : n + (size_t)body;
    if (error != 0 && n < room)
        n += (size_t)snprintf(line + n, room - n, " error=\"%s\"", strerror(error));
    if (n > room - 1)
        n = room - 1;
    line[n++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written; /* nowhere left to say it */
}

#define LOG_AT(level, error)                                                                       \
    do {                                                                                           \
        if ((level) > threshold)                                                                   \
            return;                                                                                \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        write_line((level), (error), format, args);                                                \
        va_end(args);                                                                              \
    } while (0)

void log_error(const char *format, ...)
{
    LOG_AT(LOG_ERROR, 0);
}

void log_warn(const char *format, ...)
{
    LOG_AT(LOG_WARN, 0);
}

void log_info(const char *format, ...)
{
    LOG_AT(LOG_INFO, 0);
}

void log_debug(const char *format, ...)
{
    LOG_AT(LOG_DEBUG, 0);
}

void log_errno(const char *format, ...)
{
    int error = errno;
    LOG_AT(LOG_ERROR, error);
}

const char *log_quote(char out[LOG_QUOTE_MAX], const char *bytes, uint64_t len)
{
    size_t n = 0;
    for (uint64_t i = 0; i < len && n + 5 < LOG_QUOTE_MAX; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c > 0x20 && c < 0x7f && c != '"' && c != '\\')
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, LOG_QUOTE_MAX - n, "\\x%02x", c);
    }
    out[n] = '\0';
    return out;
}

bool log_allowed(struct log_limit *limit, uint64_t *suppressed)
{
    uint64_t now = clock_mono_ms();
    if (now < limit->next_ms) {
        limit->suppressed++;
        return false;
    }
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    limit->next_ms = now + LIMIT_INTERVAL_MS;
    return true;
}

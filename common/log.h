/* log: one line an event on standard error, as `time level event key=value ...`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
/* Named in every line, such as "gateway" or "worker-2". Keeps the pointer. */
void log_set_name(const char *name);

/* The format begins with the event's name; values that a peer chose go in with %s only through
 * log_quote(), so that they can't forge a line. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* log_error, with errno's text added. */
void log_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum { LOG_QUOTE_MAX = 160 };
/* The bytes with everything outside printable ASCII escaped as \xNN, cut to fit out. Returns out.
 */
const char *log_quote(char out[LOG_QUOTE_MAX], const char *bytes, uint64_t len);

/* For an event that a peer can repeat at will: true at most once a second for each limit, and then
 * *suppressed is how many were not logged since. Starts as {0}. */
struct log_limit {
    uint64_t next_ms;
    uint64_t suppressed;
};
bool log_allowed(struct log_limit *limit, uint64_t *suppressed);

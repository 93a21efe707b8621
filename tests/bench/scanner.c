#include "tests/bench/scanner.h"

#include <stdbool.h>
#include <string.h>

static const char seq_name[] = "\"seq\":";
static const char t_name[] = ",\"t\":";
enum { SEQ_NAME_LEN = sizeof(seq_name) - 1, T_NAME_LEN = sizeof(t_name) - 1, DIGITS_MAX = 20 };

enum match { MATCH, NO_MATCH, MORE };

static enum match match_text(const char **at, const char *end, const char *text, size_t len)
{
    size_t there = (size_t)(end - *at);
    size_t n = there < len ? there : len;
    if (memcmp(*at, text, n) != 0)
        return NO_MATCH;
    *at += n;
    return n == len ? MATCH : MORE;
}

/* A number ends at the byte after it; until that came it may go on. */
static enum match match_number(const char **at, const char *end, uint64_t *number)
{
    uint64_t value = 0;
    int digits = 0;
    for (; *at != end && **at >= '0' && **at <= '9'; (*at)++) {
        if (++digits > DIGITS_MAX)
            return NO_MATCH;
        value = value * 10 + (uint64_t)(**at - '0');
    }
    *number = value;
    if (*at == end)
        return MORE;
    return digits == 0 ? NO_MATCH : MATCH;
}

static enum match match_tick(const char **at, const char *end, uint64_t *seq, uint64_t *t_ns)
{
    enum match result = match_text(at, end, seq_name, SEQ_NAME_LEN);
    if (result == MATCH)
        result = match_number(at, end, seq);
    if (result == MATCH)
        result = match_text(at, end, t_name, T_NAME_LEN);
    if (result == MATCH)
        result = match_number(at, end, t_ns);
    return result;
}

static void carry(struct scanner *s, const char *from, const char *end)
{
    s->len = (uint8_t)(end - from);
    memcpy(s->carry, from, s->len);
}

void scanner_feed(struct scanner *s, char *bytes, size_t len, scanner_cb cb, void *owner)
{
    const char *end = bytes + len;
    memcpy(bytes - s->len, s->carry, s->len);
    const char *from = bytes - s->len;
    s->len = 0;
    while ((from = memchr(from, '"', (size_t)(end - from))) != NULL) {
        uint64_t seq = 0;
        uint64_t t_ns = 0;
        const char *at = from;
        enum match result = match_tick(&at, end, &seq, &t_ns);
        if (result == MORE) {
            carry(s, from, end);
            return;
        }
        if (result == MATCH)
            cb(owner, seq, t_ns);
        from = result == MATCH ? at : from + 1;
    }
}

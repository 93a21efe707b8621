#include "common/id.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool parse_number(uint64_t *number, const char *text, size_t len)
{
    if (len == 0 || (len > 1 && text[0] == '0'))
        return false;
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *number = n;
    return true;
}

bool id_parse(struct id *id, const char *text, size_t len)
{
    const char *dash = len != 0 ? memchr(text, '-', len) : NULL;
    if (dash == NULL)
        return false;
    struct id parsed;
    size_t ms_len = (size_t)(dash - text);
    if (!parse_number(&parsed.ms, text, ms_len) ||
        !parse_number(&parsed.seq, dash + 1, len - ms_len - 1))
        return false;
    *id = parsed;
    return true;
}

size_t id_format(const struct id *id, char text[ID_TEXT_MAX])
{
    int len = snprintf(text, ID_TEXT_MAX, "%" PRIu64 "-%" PRIu64, id->ms, id->seq);
    assert(len > 0 && len < ID_TEXT_MAX);
    return (size_t)len;
}

int id_compare(const struct id *a, const struct id *b)
{
    if (a->ms != b->ms)
        return a->ms < b->ms ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return 0;
}

bool id_is_zero(const struct id *id)
{
    return id->ms == 0 && id->seq == 0;
}

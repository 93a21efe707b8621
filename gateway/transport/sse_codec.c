#include "gateway/transport/sse_codec.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* What messages carry beside their payload is checked where they come in; a line end in it here
 * would let a publisher forge fields. */
static bool is_one_line(const char *text, size_t len)
{
    return len == 0 || (memchr(text, '\n', len) == NULL && memchr(text, '\r', len) == NULL);
}

/* At least as many as there are lines: a CRLF counts twice. */
static size_t count_lines(const char *payload, size_t len)
{
    size_t count = 1;
    for (size_t i = 0; i < len; i++)
        count += payload[i] == '\n' || payload[i] == '\r';
    return count;
}

static char *put(char *to, const char *bytes, size_t len)
{
    if (len != 0)
        memcpy(to, bytes, len);
    return to + len;
}

/* Where c is in the n bytes from p, or their end. */
static const char *find(const char *p, char c, size_t n)
{
    const char *found = memchr(p, c, n);
    return found != NULL ? found : p + n;
}

/* The next LF is looked for once, not once a line: a payload of CRs alone must not cost its square.
 */
static char *put_data(char *to, const char *payload, size_t len)
{
    const char *p = payload;
    const char *end = payload + len;
    const char *lf = find(p, '\n', len);
    for (;;) {
        const char *line_end = find(p, '\r', (size_t)(lf - p));
        to = put(to, "data: ", 6);
        to = put(to, p, (size_t)(line_end - p));
        *to++ = '\n';
        if (line_end == end)
            return to;
        p = line_end + 1;
        if (*line_end == '\r' && line_end + 1 == lf && lf != end)
            p = lf + 1;
        if (p > lf)
            lf = find(p, '\n', (size_t)(end - p));
    }
}

void sse_append_message(struct buf *out, const struct message *m)
{
    assert(is_one_line(m->event, m->event_len));
    size_t data_len = m->payload_len + count_lines(m->payload, m->payload_len) * 6 + 1;
    char *start = buf_reserve(out, 4 + ID_TEXT_MAX + 8 + m->event_len + data_len + 1);
    char *to = start;
    if (m->has_id) {
        to = put(to, "id: ", 4);
        to += id_format(&m->id, to);
        *to++ = '\n';
    }
    if (m->event_len != 0) {
        to = put(to, "event: ", 7);
        to = put(to, m->event, m->event_len);
        *to++ = '\n';
    }
    to = put_data(to, m->payload, m->payload_len);
    *to++ = '\n';
    out->len += (size_t)(to - start);
}

void sse_append_position(struct buf *out, const struct id *position)
{
    char text[ID_TEXT_MAX];
    (void)id_format(position, text);
    buf_printf(out, "id: %s\n\n", text);
}

void sse_append_retry(struct buf *out, uint64_t retry_ms)
{
    buf_printf(out, "retry: %" PRIu64 "\n\n", retry_ms);
}

void sse_append_comment(struct buf *out)
{
    buf_append(out, ":\n\n", 3);
}

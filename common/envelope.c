#include "common/envelope.h"

#include "common/names.h"
#include "common/text.h"

#include <string.h>

enum { HEADER_MAX = 1024 }; /* from the NUL to the LF; all of today's fields take 500 at most */

static bool take_id(struct message_parts *parts, const char *value, size_t len)
{
    parts->has_id = true;
    return id_parse(&parts->id, value, len);
}

static bool take_prev(struct message_parts *parts, const char *value, size_t len)
{
    return id_parse(&parts->prev, value, len);
}

static bool take_event(struct message_parts *parts, const char *value, size_t len)
{
    parts->event = value;
    parts->event_len = len;
    return name_is_event(value, len);
}

static bool take_key(struct message_parts *parts, const char *value, size_t len)
{
    parts->key = value;
    parts->key_len = len;
    return name_is_key(value, len);
}

static bool take_seq(struct message_parts *parts, const char *value, size_t len)
{
    parts->sequenced = true;
    return len == 1 && value[0] == '1';
}

/* `take` is false for a value that the field can't have. */
static const struct field {
    const char *name;
    bool (*take)(struct message_parts *parts, const char *value, size_t len);
} fields[] = {
    {"id", take_id},   {"prev", take_prev}, {"event", take_event},
    {"key", take_key}, {"seq", take_seq},
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static bool is_field_name(const char *name, size_t len)
{
    if (len == 0 || name[0] < 'a' || name[0] > 'z')
        return false;
    for (size_t i = 1; i < len; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return true;
}

/* *seen has a bit for each known field that was there. */
static bool take_field(struct message_parts *parts, unsigned *seen, const char *text, size_t len)
{
    const char *equals = memchr(text, '=', len);
    if (equals == NULL || memchr(text, '\0', len) != NULL)
        return false;
    size_t name_len = (size_t)(equals - text);
    if (!is_field_name(text, name_len))
        return false;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strlen(fields[i].name) != name_len || memcmp(fields[i].name, text, name_len) != 0)
            continue;
        if ((*seen & 1U << i) != 0)
            return false;
        *seen |= 1U << i;
        return fields[i].take(parts, equals + 1, len - name_len - 1);
    }
    return true;
}

/* The text between the version and the LF. */
static bool take_fields(struct message_parts *parts, const char *text, size_t len)
{
    unsigned seen = 0;
    const char *end = text + len;
    while (text != end) {
        if (*text != ' ')
            return false;
        text++;
        const char *blank = memchr(text, ' ', (size_t)(end - text));
        const char *field_end = blank != NULL ? blank : end;
        if (!take_field(parts, &seen, text, (size_t)(field_end - text)))
            return false;
        text = field_end;
    }
    return parts->has_id;
}

static enum envelope_result take_payload(struct message_parts *parts, const char *bytes, size_t len,
                                         size_t max_payload)
{
    if (len > max_payload)
        return ENVELOPE_TOO_BIG;
    if (!text_is_utf8(bytes, len))
        return ENVELOPE_NOT_UTF8;
    parts->payload = bytes;
    parts->payload_len = len;
    return ENVELOPE_OK;
}

enum envelope_result envelope_open(struct message_parts *parts, const char *bytes, size_t len,
                                   size_t max_payload)
{
    *parts = (struct message_parts){.event = "", .key = ""};
    if (len == 0 || bytes[0] != '\0')
        return take_payload(parts, bytes, len, max_payload);
    if (len == 1)
        return ENVELOPE_MALFORMED;
    if (bytes[1] != '1')
        return ENVELOPE_UNKNOWN_VERSION;
    const char *end = memchr(bytes, '\n', len < HEADER_MAX ? len : HEADER_MAX);
    if (end == NULL || !take_fields(parts, bytes + 2, (size_t)(end - bytes) - 2))
        return ENVELOPE_MALFORMED;
    return take_payload(parts, end + 1, len - (size_t)(end + 1 - bytes), max_payload);
}

const char *envelope_result_name(enum envelope_result result)
{
    static const char *const names[] = {
        [ENVELOPE_OK] = "ok",
        [ENVELOPE_UNKNOWN_VERSION] = "unknown_version",
        [ENVELOPE_MALFORMED] = "malformed",
        [ENVELOPE_NOT_UTF8] = "not_utf8",
        [ENVELOPE_TOO_BIG] = "too_big",
    };
    return names[result];
}

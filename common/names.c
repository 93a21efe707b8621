#include "common/names.h"

#include <string.h>

static const char own_events[] = "tidecast.";

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_namespace_char(char c)
{
    return is_lower_or_digit(c) || c == '_' || c == '-';
}

static bool is_prefix_char(char c)
{
    return is_namespace_char(c) || (c >= 'A' && c <= 'Z');
}

static bool is_channel_char(char c)
{
    return is_prefix_char(c) || c == '.' || c == ':' || c == '/' || c == '@';
}

static bool is_made_of(bool (*allowed)(char), const char *name, size_t len, size_t max)
{
    if (len == 0 || len > max)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!allowed(name[i]))
            return false;
    }
    return true;
}

bool name_is_channel(const char *name, size_t len)
{
    return is_made_of(is_channel_char, name, len, CHANNEL_NAME_MAX);
}

bool name_is_prefix(const char *name, size_t len)
{
    return len != 0 && name[len - 1] == ':' &&
           is_made_of(is_prefix_char, name, len - 1, PREFIX_MAX - 1);
}

bool name_is_event(const char *name, size_t len)
{
    size_t own_len = sizeof(own_events) - 1;
    if (len >= own_len && memcmp(name, own_events, own_len) == 0)
        return false;
    return is_made_of(is_channel_char, name, len, EVENT_NAME_MAX);
}

bool name_is_key(const char *name, size_t len)
{
    return is_made_of(is_channel_char, name, len, MESSAGE_KEY_MAX);
}

bool name_is_idempotency_key(const char *name, size_t len)
{
    return is_made_of(is_channel_char, name, len, IDEMPOTENCY_KEY_MAX);
}

bool name_is_namespace(const char *name, size_t len)
{
    return is_made_of(is_namespace_char, name, len, NAMESPACE_NAME_MAX);
}

size_t name_namespace_len(const char *channel, size_t len)
{
    const char *colon = len != 0 ? memchr(channel, ':', len) : NULL;
    return colon != NULL ? (size_t)(colon - channel) : 0;
}

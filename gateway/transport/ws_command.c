#include "gateway/transport/ws_command.h"

#include "common/mem.h"
#include "gateway/transport/json_slice.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, SINCE_MAX = 128 };

/* What a verb's reader needs: its value and the whole command, as jansson read them and as bytes.
 */
struct input {
    const json_t *root;
    const json_t *value;
    struct json_slice text;
    size_t max_channels;
};

static void copy_string(char **to, const json_t *string)
{
    *to = mem_strndup(json_string_value(string), json_string_length(string));
}

/* The reader hands out integers as reals, so that those beyond 64 bits pass in `data`: the digits
 * of req are read from the text. */
static bool read_integer(int64_t *n, const struct json_slice *digits)
{
    char text[24];
    if (digits->len >= sizeof(text))
        return false;
    memcpy(text, digits->bytes, digits->len);
    text[digits->len] = '\0';
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *n = parsed;
    return true;
}

static enum ws_command_error read_req(struct ws_command *c, const struct input *in)
{
    const json_t *req = json_object_get(in->root, "req");
    if (req == NULL)
        return WS_COMMAND_OK;
    struct json_slice digits;
    if (!json_is_number(req) || !json_slice_member(&digits, in->text.bytes, in->text.len, "req") ||
        !read_integer(&c->req, &digits))
        return WS_COMMAND_WRONG_TYPE;
    c->has_req = true;
    return WS_COMMAND_OK;
}

static enum ws_command_error read_channel(struct ws_name *channel, const json_t *value)
{
    if (!json_is_string(value))
        return WS_COMMAND_WRONG_TYPE;
    size_t len = json_string_length(value);
    if (!name_is_channel(json_string_value(value), len))
        return WS_COMMAND_BAD_CHANNEL;
    copy_string(&channel->bytes, value);
    channel->len = len;
    return WS_COMMAND_OK;
}

static enum ws_command_error add_channel(struct ws_command *c, json_t *seen, const json_t *value,
                                         size_t max_channels)
{
    struct ws_name channel;
    enum ws_command_error error = read_channel(&channel, value);
    if (error != WS_COMMAND_OK)
        return error;
    if (json_object_get(seen, channel.bytes) != NULL) {
        free(channel.bytes);
        return WS_COMMAND_OK;
    }
    if (c->channel_count == max_channels) {
        free(channel.bytes);
        return WS_COMMAND_TOO_MANY_CHANNELS;
    }
    (void)json_object_set_new(seen, channel.bytes, json_true());
    c->channels[c->channel_count++] = channel;
    return WS_COMMAND_OK;
}

static enum ws_command_error read_channels(struct ws_command *c, const struct input *in)
{
    if (!json_is_array(in->value))
        return WS_COMMAND_WRONG_TYPE;
    size_t count = json_array_size(in->value);
    if (count == 0)
        return WS_COMMAND_BAD_CHANNEL;
    c->channels =
        mem_zalloc((count < in->max_channels ? count : in->max_channels) * sizeof(*c->channels));
    json_t *seen = json_object();
    enum ws_command_error error = WS_COMMAND_OK;
    for (size_t i = 0; i < count && error == WS_COMMAND_OK; i++)
        error = add_channel(c, seen, json_array_get(in->value, i), in->max_channels);
    json_decref(seen);
    return error;
}

static enum ws_command_error read_subscribe(struct ws_command *c, const struct input *in)
{
    const json_t *since = json_object_get(in->root, "since");
    if (since != NULL && !json_is_string(since))
        return WS_COMMAND_WRONG_TYPE;
    size_t since_len = json_string_length(since);
    if (since_len > SINCE_MAX)
        return WS_COMMAND_BAD_NAME;
    if (since_len != 0)
        copy_string(&c->since, since);
    return read_channels(c, in);
}

static enum ws_command_error read_name(char **to, const json_t *value,
                                       bool (*is_valid)(const char *name, size_t len))
{
    if (!json_is_string(value))
        return WS_COMMAND_WRONG_TYPE;
    if (!is_valid(json_string_value(value), json_string_length(value)))
        return WS_COMMAND_BAD_NAME;
    copy_string(to, value);
    return WS_COMMAND_OK;
}

static void read_data(struct ws_command *c, const json_t *value, const struct input *in)
{
    struct json_slice publish;
    struct json_slice data = {.bytes = "", .len = 0};
    if (json_is_string(value))
        data = (struct json_slice){json_string_value(value), json_string_length(value)};
    else if (json_slice_member(&publish, in->text.bytes, in->text.len, "publish"))
        (void)json_slice_member(&data, publish.bytes, publish.len, "data");
    c->data = mem_strndup(data.bytes, data.len);
    c->data_len = data.len;
}

static enum ws_command_error read_publish_member(struct ws_command *c, const struct input *in,
                                                 const char *name, const json_t *value)
{
    if (strcmp(name, "channel") == 0)
        return read_channel(&c->channel, value);
    if (strcmp(name, "event") == 0)
        return read_name(&c->event, value, name_is_event);
    if (strcmp(name, "key") == 0)
        return read_name(&c->key, value, name_is_key);
    if (strcmp(name, "idempotency_key") == 0)
        return read_name(&c->idempotency_key, value, name_is_idempotency_key);
    if (strcmp(name, "data") != 0)
        return WS_COMMAND_UNKNOWN_MEMBER;
    read_data(c, value, in);
    return WS_COMMAND_OK;
}

static enum ws_command_error read_publish(struct ws_command *c, const struct input *in)
{
    if (!json_is_object(in->value))
        return WS_COMMAND_WRONG_TYPE;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)in->value, name, value)
    {
        enum ws_command_error error = read_publish_member(c, in, name, value);
        if (error != WS_COMMAND_OK)
            return error;
    }
    if (c->channel.bytes == NULL)
        return WS_COMMAND_BAD_CHANNEL;
    return c->data != NULL ? WS_COMMAND_OK : WS_COMMAND_WRONG_TYPE;
}

static enum ws_command_error read_ping(struct ws_command *c, const struct input *in)
{
    (void)c;
    (void)in;
    return WS_COMMAND_OK;
}

static const struct verb {
    const char *name;
    enum ws_command_error (*read)(struct ws_command *c, const struct input *in);
} verbs[] = {
    [WS_VERB_SUBSCRIBE] = {"subscribe", read_subscribe},
    [WS_VERB_UNSUBSCRIBE] = {"unsubscribe", read_channels},
    [WS_VERB_PUBLISH] = {"publish", read_publish},
    [WS_VERB_PING] = {"ping", read_ping},
};

enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static enum ws_command_error find_verb(struct ws_command *c, struct input *in)
{
    size_t count = 0;
    for (int i = 0; i < VERB_COUNT; i++) {
        const json_t *value = json_object_get(in->root, verbs[i].name);
        if (value == NULL)
            continue;
        c->verb = (enum ws_verb)i;
        in->value = value;
        count++;
    }
    size_t known = count + (json_object_get(in->root, "req") != NULL);
    bool takes_since = count != 1 || c->verb == WS_VERB_SUBSCRIBE;
    known += takes_since && json_object_get(in->root, "since") != NULL;
    if (json_object_size(in->root) != known)
        return WS_COMMAND_UNKNOWN_MEMBER;
    return count == 1 ? WS_COMMAND_OK : WS_COMMAND_NO_VERB;
}

static enum ws_command_error read_command(struct ws_command *c, struct input *in)
{
    if (!json_is_object(in->root))
        return WS_COMMAND_NOT_AN_OBJECT;
    enum ws_command_error error = read_req(c, in);
    if (error == WS_COMMAND_OK)
        error = find_verb(c, in);
    if (error == WS_COMMAND_OK)
        error = verbs[c->verb].read(c, in);
    return error;
}

enum ws_command_error ws_command_parse(struct ws_command *c, const char *text, size_t len,
                                       size_t max_channels)
{
    *c = (struct ws_command){0};
    if (json_slice_is_deeper(text, len, DEPTH_MAX))
        return WS_COMMAND_NOT_JSON;
    /* The library's lexer skips a NUL that follows a number or a literal. */
    if (len == 0 || memchr(text, '\0', len) != NULL)
        return WS_COMMAND_NOT_JSON;
    json_error_t json_error;
    json_t *root = json_loadb(
        text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &json_error);
    if (root == NULL)
        return WS_COMMAND_NOT_JSON;
    struct input in = {.root = root, .text = {text, len}, .max_channels = max_channels};
    enum ws_command_error error = read_command(c, &in);
    json_decref(root);
    if (error != WS_COMMAND_OK) {
        struct ws_command rest = {.has_req = c->has_req, .req = c->req};
        ws_command_fini(c);
        *c = rest;
    }
    return error;
}

void ws_command_fini(struct ws_command *c)
{
    for (size_t i = 0; i < c->channel_count; i++)
        free(c->channels[i].bytes);
    free(c->channels);
    free(c->since);
    free(c->channel.bytes);
    free(c->data);
    free(c->event);
    free(c->key);
    free(c->idempotency_key);
    *c = (struct ws_command){0};
}

const char *ws_command_error_name(enum ws_command_error error)
{
    static const char *const names[] = {
        [WS_COMMAND_OK] = "ok",
        [WS_COMMAND_NOT_JSON] = "not_json",
        [WS_COMMAND_NOT_AN_OBJECT] = "not_an_object",
        [WS_COMMAND_NO_VERB] = "no_verb",
        [WS_COMMAND_UNKNOWN_MEMBER] = "unknown_member",
        [WS_COMMAND_WRONG_TYPE] = "wrong_type",
        [WS_COMMAND_BAD_CHANNEL] = "bad_channel",
        [WS_COMMAND_TOO_MANY_CHANNELS] = "too_many_channels",
        [WS_COMMAND_BAD_NAME] = "bad_name",
    };
    return names[error];
}

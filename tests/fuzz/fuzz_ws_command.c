#include "common/text.h"
#include "gateway/transport/json_slice.h"
#include "gateway/transport/ws_command.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_publish(const struct ws_command *c)
{
    assert(name_is_channel(c->channel.bytes, c->channel.len));
    assert(c->data != NULL && strlen(c->data) == c->data_len);
    assert(text_is_utf8(c->data, c->data_len));
    assert(c->event == NULL || name_is_event(c->event, strlen(c->event)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_CHANNELS = 4 };
    const char *text = (const char *)data;
    struct json_slice slice = {.bytes = text, .len = 0};
    if (json_slice_member(&slice, text, size, "a"))
        assert(slice.bytes >= text && slice.bytes + slice.len <= text + size);
    if (!text_is_utf8(text, size))
        return 0;
    struct ws_command c;
    enum ws_command_error error = ws_command_parse(&c, text, size, MAX_CHANNELS);
    assert(ws_command_error_name(error) != NULL);
    assert(c.channel_count <= MAX_CHANNELS);
    if (error == WS_COMMAND_OK && c.verb == WS_VERB_PUBLISH)
        check_publish(&c);
    ws_command_fini(&c);
    return 0;
}

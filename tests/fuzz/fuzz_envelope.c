#include "common/envelope.h"
#include "common/names.h"
#include "common/text.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_PAYLOAD = 512 };
    struct message_parts parts;
    enum envelope_result result = envelope_open(&parts, (const char *)data, size, MAX_PAYLOAD);
    if (result != ENVELOPE_OK)
        return 0;
    assert(parts.payload_len <= MAX_PAYLOAD && text_is_utf8(parts.payload, parts.payload_len));
    assert(parts.has_id == (size != 0 && data[0] == 0));
    assert(parts.event_len == 0 || name_is_event(parts.event, parts.event_len));
    assert(parts.key_len == 0 || name_is_key(parts.key, parts.key_len));
    message_unref(message_new(&parts));
    return 0;
}

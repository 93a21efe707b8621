#include "gateway/hub/frames.h"

#include "common/mem.h"
#include "common/text.h"
#include "gateway/hub/ring.h"
#include "gateway/transport/sse_codec.h"
#include "gateway/transport/ws_codec.h"

#include <string.h>

/* Whether the payload stands in a JSON frame as its own bytes. */
static bool data_is_json(const struct message *m, enum content_kind content)
{
    switch (content) {
    case CONTENT_JSON:
        return true; /* checked when it came in */
    case CONTENT_AUTO:
        return text_is_json_container(m->payload, m->payload_len);
    case CONTENT_TEXT:
        break;
    }
    return false;
}

static void append_ws_json(struct buf *out, const struct message *m,
                           const struct frame_context *context)
{
    struct buf json = {0};
    ws_append_envelope(&json, context->channel, context->channel_len, m,
                       data_is_json(m, context->content));
    ws_append_frame(out, WS_TEXT, json.bytes, json.len);
    buf_fini(&json);
}

static void append_kind(struct buf *out, const struct message *m, enum frame_kind kind,
                        const struct frame_context *context)
{
    switch (kind) {
    case FRAME_SSE:
        sse_append_message(out, m);
        break;
    case FRAME_WS_JSON:
        append_ws_json(out, m, context);
        break;
    case FRAME_WS_RAW:
        ws_append_frame(out, WS_TEXT, m->payload, m->payload_len);
        break;
    case FRAME_KINDS:
        break;
    }
}

const struct frame *frames_get(struct message *m, enum frame_kind kind,
                               const struct frame_context *context)
{
    if (m->frames[kind] != NULL)
        return m->frames[kind];
    struct buf bytes = {0};
    append_kind(&bytes, m, kind, context);
    struct frame *f = mem_alloc(sizeof(*f) + bytes.len);
    f->len = (uint32_t)bytes.len;
    if (bytes.len != 0)
        memcpy(f->bytes, bytes.bytes, bytes.len);
    buf_fini(&bytes);
    m->frames[kind] = f;
    if (m->ring != NULL)
        ring_charge(m->ring, sizeof(*f) + f->len);
    return f;
}

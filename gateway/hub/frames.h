/* frames: the bytes of a message for each transport, made once and shared by all its readers. */
#pragma once

#include "common/config.h"
#include "common/frame.h"
#include "common/message.h"

struct frame_context {
    const char *channel; /* named in WebSocket frames */
    size_t channel_len;
    enum content_kind content;
};

/* Borrowed from the message. Made on the first call for a kind; charges the message's ring. */
const struct frame *frames_get(struct message *m, enum frame_kind kind,
                               const struct frame_context *context);

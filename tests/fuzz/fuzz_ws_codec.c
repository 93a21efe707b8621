#include "common/mem.h"
#include "gateway/transport/ws_codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PAYLOAD = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A fault must already show in the shortest prefix that is not WS_MORE. */
static void check_prefixes(const char *input, size_t len, enum ws_result whole)
{
    for (size_t n = 0; n < len && n < 16; n++) {
        struct ws_frame frame;
        enum ws_close_code code;
        const char *why;
        char *prefix = mem_alloc(n);
        if (n != 0)
            memcpy(prefix, input, n);
        enum ws_result result = ws_parse(prefix, n, MAX_PAYLOAD, &frame, &code, &why);
        assert(result == WS_MORE || result == whole);
        free(prefix);
    }
}

static void check_frame(const char *input, const struct ws_frame *frame)
{
    char header[WS_HEADER_MAX];
    size_t header_len = ws_header(header, frame->opcode, frame->len);
    assert(frame->consumed == header_len + 4 + frame->len);
    assert(frame->payload == input + header_len + 4);
    assert((header[0] & 0x0F) == (input[0] & 0x0F));
    if (frame->opcode == WS_CLOSE) {
        struct buf answer = {0};
        ws_append_close(&answer, ws_check_close(frame->payload, frame->len), "");
        buf_fini(&answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *input = mem_alloc(size);
    if (size != 0)
        memcpy(input, data, size);
    size_t done = 0;
    enum ws_result result = WS_FRAME;
    while (done < size && result == WS_FRAME) {
        struct ws_frame frame;
        enum ws_close_code code;
        const char *why;
        result = ws_parse(input + done, size - done, MAX_PAYLOAD, &frame, &code, &why);
        check_prefixes((const char *)data + done, size - done, result);
        if (result == WS_FRAME) {
            check_frame(input + done, &frame);
            done += frame.consumed;
        } else {
            assert(memcmp(input + done, data + done, size - done) == 0);
        }
    }
    free(input);
    (void)ws_key_is_valid((const char *)data, size);
    return 0;
}

#include "gateway/transport/ws_codec.h"

#include "common/message.h"
#include "common/text.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

enum {
    FIN_BIT = 0x80,
    RSV_BITS = 0x70,
    OPCODE_BITS = 0x0F,
    CONTROL_BIT = 0x08,
    MASK_BIT = 0x80,
    LENGTH_BITS = 0x7F,
    LENGTH_16 = 126,
    LENGTH_64 = 127,
    MASK_LEN = 4
};

enum { KEY_LEN = 24, KEY_DIGITS = 22 }; /* base64 of 16 bytes: 22 digits and "==" */
static const char accept_guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

struct header {
    size_t len; /* up to the mask */
    uint64_t payload_len;
};

static enum ws_result refuse(enum ws_close_code *code, const char **why, enum ws_close_code refusal,
                             const char *reason)
{
    *code = refusal;
    *why = reason;
    return WS_BAD;
}

static bool is_opcode(unsigned opcode)
{
    switch (opcode) {
    case WS_CONTINUATION:
    case WS_TEXT:
    case WS_BINARY:
    case WS_CLOSE:
    case WS_PING:
    case WS_PONG:
        return true;
    default:
        return false;
    }
}

/* NULL when the two bytes that begin every frame are in order; len may be less than two. */
static const char *fault_of_start(const unsigned char *input, size_t len)
{
    if (len == 0)
        return NULL;
    bool is_control = (input[0] & CONTROL_BIT) != 0;
    if ((input[0] & RSV_BITS) != 0)
        return "reserved bits set";
    if (!is_opcode(input[0] & OPCODE_BITS))
        return "unknown opcode";
    if (is_control && (input[0] & FIN_BIT) == 0)
        return "fragmented control frame";
    if (len == 1)
        return NULL;
    if ((input[1] & MASK_BIT) == 0)
        return "unmasked frame";
    if (is_control && (input[1] & LENGTH_BITS) > WS_CONTROL_MAX)
        return "control frame too long";
    return NULL;
}

static uint64_t read_big_endian(const unsigned char *bytes, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n = n << 8 | bytes[i];
    return n;
}

/* NULL when all is well so far; h->len is 0 while the length is not complete. */
static const char *read_header(struct header *h, const unsigned char *input, size_t len)
{
    *h = (struct header){0};
    const char *fault = fault_of_start(input, len);
    if (fault != NULL || len < 2)
        return fault;
    unsigned short_len = input[1] & LENGTH_BITS;
    if (short_len < LENGTH_16) {
        *h = (struct header){.len = 2, .payload_len = short_len};
        return NULL;
    }
    size_t length_len = short_len == LENGTH_16 ? 2 : 8;
    if (len < 2 + length_len)
        return NULL;
    uint64_t payload_len = read_big_endian(input + 2, length_len);
    if (payload_len < LENGTH_16 || (length_len == 8 && payload_len <= UINT16_MAX))
        return "length not in its shortest form";
    if (payload_len >> 63 != 0)
        return "length beyond 2^63";
    *h = (struct header){.len = 2 + length_len, .payload_len = payload_len};
    return NULL;
}

static void unmask(char *payload, size_t len, const char mask[MASK_LEN])
{
    char twice[2 * MASK_LEN];
    memcpy(twice, mask, MASK_LEN);
    memcpy(twice + MASK_LEN, mask, MASK_LEN);
    uint64_t wide_mask;
    memcpy(&wide_mask, twice, sizeof(wide_mask));
    size_t i = 0;
    for (; len - i >= sizeof(wide_mask); i += sizeof(wide_mask)) {
        uint64_t wide;
        memcpy(&wide, payload + i, sizeof(wide));
        wide ^= wide_mask;
        memcpy(payload + i, &wide, sizeof(wide));
    }
    for (; i < len; i++)
        payload[i] = (char)(payload[i] ^ mask[i % MASK_LEN]);
}

enum ws_result ws_parse(char *input, size_t len, size_t max_payload, struct ws_frame *frame,
                        enum ws_close_code *code, const char **why)
{
    struct header h;
    const char *fault = read_header(&h, (const unsigned char *)input, len);
    frame->consumed = 0;
    if (fault != NULL)
        return refuse(code, why, WS_CLOSE_PROTOCOL_ERROR, fault);
    if (h.len == 0)
        return WS_MORE;
    unsigned char first = (unsigned char)input[0];
    size_t start = h.len + MASK_LEN;
    if ((first & CONTROL_BIT) == 0 && h.payload_len > max_payload) {
        frame->consumed = start + (size_t)h.payload_len;
        return refuse(code, why, WS_CLOSE_TOO_BIG, "message too big");
    }
    if (len < start || len - start < h.payload_len)
        return WS_MORE;
    size_t payload_len = (size_t)h.payload_len;
    unmask(input + start, payload_len, input + h.len);
    *frame = (struct ws_frame){.opcode = (enum ws_opcode)(first & OPCODE_BITS),
                               .fin = (first & FIN_BIT) != 0,
                               .payload = input + start,
                               .len = payload_len,
                               .consumed = start + payload_len};
    return WS_FRAME;
}

/* 1004, 1005, 1006 and 1015 are names for what was not sent; 1016 to 2999 are not given out. */
static bool may_be_on_the_wire(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

enum ws_close_code ws_check_close(const char *payload, size_t len)
{
    if (len == 0)
        return WS_CLOSE_NONE;
    if (len == 1)
        return WS_CLOSE_PROTOCOL_ERROR;
    unsigned code = (unsigned)read_big_endian((const unsigned char *)payload, 2);
    if (!may_be_on_the_wire(code))
        return WS_CLOSE_PROTOCOL_ERROR;
    if (!text_is_utf8(payload + 2, len - 2))
        return WS_CLOSE_INVALID_DATA;
    return (enum ws_close_code)code;
}

size_t ws_header(char header[WS_HEADER_MAX], enum ws_opcode opcode, size_t len)
{
    unsigned char *h = (unsigned char *)header;
    h[0] = (unsigned char)(FIN_BIT | (unsigned)opcode);
    if (len < LENGTH_16) {
        h[1] = (unsigned char)len;
        return 2;
    }
    size_t length_len = len <= UINT16_MAX ? 2 : 8;
    h[1] = length_len == 2 ? LENGTH_16 : LENGTH_64;
    uint64_t rest = len;
    for (size_t i = length_len; i > 0; i--) {
        h[1 + i] = (unsigned char)(rest & 0xFF);
        rest >>= 8;
    }
    return 2 + length_len;
}

void ws_append_frame(struct buf *out, enum ws_opcode opcode, const char *payload, size_t len)
{
    assert(len <= WS_CONTROL_MAX || ((unsigned)opcode & CONTROL_BIT) == 0);
    char *start = buf_reserve(out, WS_HEADER_MAX + len);
    size_t header_len = ws_header(start, opcode, len);
    if (len != 0)
        memcpy(start + header_len, payload, len);
    out->len += header_len + len;
}

static size_t cut_at_character(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
        max--;
    return max;
}

void ws_append_close(struct buf *out, enum ws_close_code code, const char *reason)
{
    if (code == WS_CLOSE_NONE) {
        ws_append_frame(out, WS_CLOSE, "", 0);
        return;
    }
    assert(may_be_on_the_wire((unsigned)code));
    size_t reason_len = cut_at_character(reason, strlen(reason), WS_CLOSE_REASON_MAX);
    char header[WS_HEADER_MAX];
    size_t header_len = ws_header(header, WS_CLOSE, 2 + reason_len);
    const char number[2] = {(char)((unsigned)code >> 8), (char)((unsigned)code & 0xFF)};
    buf_append(out, header, header_len);
    buf_append(out, number, sizeof(number));
    buf_append(out, reason, reason_len);
}

static bool is_base64_digit(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

bool ws_key_is_valid(const char *key, size_t len)
{
    if (len != KEY_LEN || key[KEY_LEN - 2] != '=' || key[KEY_LEN - 1] != '=')
        return false;
    for (size_t i = 0; i < KEY_DIGITS; i++) {
        if (!is_base64_digit(key[i]))
            return false;
    }
    return true;
}

void ws_accept(char accept[WS_ACCEPT_LEN + 1], const char *key, size_t len)
{
    assert(len == KEY_LEN);
    char text[KEY_LEN + sizeof(accept_guid)];
    memcpy(text, key, KEY_LEN);
    memcpy(text + KEY_LEN, accept_guid, sizeof(accept_guid));
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    int done = EVP_Digest(text, sizeof(text) - 1, digest, &digest_len, EVP_sha1(), NULL);
    assert(done == 1 && digest_len == 20);
    int accept_len = EVP_EncodeBlock((unsigned char *)accept, digest, (int)digest_len);
    assert(accept_len == WS_ACCEPT_LEN);
}

void ws_append_envelope(struct buf *out, const char *channel, size_t channel_len,
                        const struct message *m, bool data_is_json)
{
    (void)buf_reserve(out, channel_len + m->event_len + m->payload_len + ID_TEXT_MAX + 64);
    buf_append_text(out, "{\"channel\":");
    buf_append_json_string(out, channel, channel_len);
    if (m->has_id) {
        char id[ID_TEXT_MAX];
        (void)id_format(&m->id, id);
        buf_printf(out, ",\"id\":\"%s\"", id);
    }
    if (m->event_len != 0) {
        buf_append_text(out, ",\"event\":");
        buf_append_json_string(out, m->event, m->event_len);
    }
    buf_append_text(out, ",\"data\":");
    if (data_is_json)
        buf_append(out, m->payload, m->payload_len);
    else
        buf_append_json_string(out, m->payload, m->payload_len);
    buf_append(out, "}", 1);
}

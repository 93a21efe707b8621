#include "broker/tick_template.h"

#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum part_kind { PART_TEXT, PART_SEQ, PART_T, PART_CHANNEL, PART_PAD };

struct part {
    enum part_kind kind;
    const char *text;
    size_t len;
};

struct tick_template {
    char *content;
    char *channel;
    size_t payload_len; /* 0: as long as it is */
    size_t count;
    struct part parts[];
};

static const char default_content[] = "{\"seq\":{seq},\"t\":{t},\"channel\":\"{channel}\"}";
static const char padded_content[] =
    "{\"seq\":{seq},\"t\":{t},\"channel\":\"{channel}\",\"pad\":\"{pad}\"}";

static const struct {
    const char *text;
    enum part_kind kind;
} tokens[] = {
    {"{seq}", PART_SEQ},
    {"{t}", PART_T},
    {"{channel}", PART_CHANNEL},
    {"{pad}", PART_PAD},
};

static const char *const fault_texts[] = {
    [TICK_TEMPLATE_OK] = "none",
    [TICK_TEMPLATE_NO_PAD] = "a payload size needs a {pad} in the content",
    [TICK_TEMPLATE_TWO_PADS] = "the content has more than one {pad}",
    [TICK_TEMPLATE_TOO_LONG] = "the content is longer than the payload size",
};

const char *tick_template_fault_text(enum tick_template_fault fault)
{
    return fault_texts[fault];
}

/* The part that begins at text: a token, or all up to the next brace that could begin one. */
static struct part next_part(const char *text)
{
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        size_t len = strlen(tokens[i].text);
        if (strncmp(text, tokens[i].text, len) == 0)
            return (struct part){.kind = tokens[i].kind, .text = text, .len = len};
    }
    return (struct part){.kind = PART_TEXT, .text = text, .len = 1 + strcspn(text + 1, "{")};
}

static size_t split(const char *content, struct part *parts)
{
    size_t count = 0;
    for (const char *at = content; *at != '\0'; count++) {
        struct part part = next_part(at);
        if (parts != NULL)
            parts[count] = part;
        at += part.len;
    }
    return count;
}

static size_t count_pads(const struct tick_template *t)
{
    size_t pads = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->parts[i].kind == PART_PAD)
            pads++;
    return pads;
}

static void append_part(const struct tick_template *t, const struct part *part, uint64_t seq,
                        uint64_t t_ns, struct buf *out)
{
    switch (part->kind) {
    case PART_TEXT:
        buf_append(out, part->text, part->len);
        break;
    case PART_SEQ:
        buf_printf(out, "%" PRIu64, seq);
        break;
    case PART_T:
        buf_printf(out, "%" PRIu64, t_ns);
        break;
    case PART_CHANNEL:
        buf_append_text(out, t->channel);
        break;
    case PART_PAD:
        break;
    }
}

/* The pad is known last: it is put in where its part stood. */
static void pad(const struct tick_template *t, size_t at, struct buf *out)
{
    if (t->payload_len <= out->len)
        return;
    size_t len = t->payload_len - out->len;
    (void)buf_reserve(out, len);
    memmove(out->bytes + at + len, out->bytes + at, out->len - at);
    memset(out->bytes + at, 'x', len);
    out->len += len;
}

void tick_template_fill(const struct tick_template *t, uint64_t seq, uint64_t t_ns, struct buf *out)
{
    size_t pad_at = 0;
    out->len = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->parts[i].kind == PART_PAD)
            pad_at = out->len;
        append_part(t, &t->parts[i], seq, t_ns, out);
    }
    if (t->payload_len > 0)
        pad(t, pad_at, out);
}

static enum tick_template_fault check(const struct tick_template *t, uint64_t last_seq,
                                      uint64_t last_t)
{
    size_t pads = count_pads(t);
    if (pads > 1)
        return TICK_TEMPLATE_TWO_PADS;
    if (t->payload_len == 0)
        return TICK_TEMPLATE_OK;
    if (pads == 0)
        return TICK_TEMPLATE_NO_PAD;
    struct buf longest = {0};
    tick_template_fill(t, last_seq, last_t, &longest);
    size_t len = longest.len;
    buf_fini(&longest);
    return len > t->payload_len ? TICK_TEMPLATE_TOO_LONG : TICK_TEMPLATE_OK;
}

struct tick_template *tick_template_new(const struct tick_config *tick, uint64_t last_seq,
                                        uint64_t last_t, enum tick_template_fault *fault)
{
    const char *content = tick->content;
    if (tick->payload_bytes > 0 && strcmp(content, default_content) == 0)
        content = padded_content;

    size_t count = split(content, NULL);
    struct tick_template *t = mem_zalloc(sizeof(*t) + count * sizeof(struct part));
    t->content = mem_strndup(content, strlen(content));
    t->channel = mem_strndup(tick->channel, strlen(tick->channel));
    t->payload_len = tick->payload_bytes;
    t->count = split(t->content, t->parts);

    *fault = check(t, last_seq, last_t);
    if (*fault == TICK_TEMPLATE_OK)
        return t;
    tick_template_free(t);
    return NULL;
}

void tick_template_free(struct tick_template *t)
{
    if (t == NULL)
        return;
    free(t->content);
    free(t->channel);
    free(t);
}

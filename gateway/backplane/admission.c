#include "gateway/backplane/admission.h"

#include "common/envelope.h"
#include "common/log.h"
#include "common/stats.h"
#include "common/text.h"

static const enum counter drop_stats[] = {
    [ENVELOPE_UNKNOWN_VERSION] = STAT_dropped_version,
    [ENVELOPE_MALFORMED] = STAT_dropped_malformed,
    [ENVELOPE_NOT_UTF8] = STAT_dropped_utf8,
    [ENVELOPE_TOO_BIG] = STAT_dropped_too_big,
};

static struct message *drop(const char *channel, size_t channel_len, enum counter stat,
                            const char *reason)
{
    static struct log_limit limits[STAT_COUNT];
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    stats_add(stat, 1);
    if (log_allowed(&limits[stat], &suppressed))
        log_warn("message_dropped reason=%s channel=%s suppressed=%lu", reason,
                 log_quote(quoted, channel, channel_len), suppressed);
    return NULL;
}

struct message *admission_receive(const struct config *config, const char *channel,
                                  size_t channel_len, const char *bytes, size_t len)
{
    const struct namespace_config *settings = config_namespace(config, channel, channel_len);
    struct message_parts parts;
    enum envelope_result result = envelope_open(&parts, bytes, len, settings->max_payload);
    if (result != ENVELOPE_OK)
        return drop(channel, channel_len, drop_stats[result], envelope_result_name(result));
    if (settings->content == CONTENT_JSON && !text_is_json(parts.payload, parts.payload_len))
        return drop(channel, channel_len, STAT_dropped_json, "not_json");
    stats_add(parts.has_id ? STAT_received_enveloped : STAT_received_plain, 1);
    return message_new(&parts);
}

const char *admission_check_payload(const struct namespace_config *settings, const char *payload,
                                    size_t len, int *status)
{
    *status = 413;
    if (len > settings->max_payload)
        return "payload_too_big";
    *status = 400;
    if (len != 0 && payload[0] == '\0')
        return "payload_enveloped";
    if (!text_is_utf8(payload, len))
        return "payload_not_utf8";
    if (settings->content == CONTENT_JSON && !text_is_json(payload, len))
        return "payload_not_json";
    return NULL;
}

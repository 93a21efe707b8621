#include "common/config_table.h"

#include "common/config_rules.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
#define DAY (24 * (uint64_t)HOUR)
#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct config_choice log_levels[] = {[LOG_ERROR] = {"error", false},
                                                  [LOG_WARN] = {"warn", false},
                                                  [LOG_INFO] = {"info", false},
                                                  [LOG_DEBUG] = {"debug", false},
                                                  [LOG_DEBUG + 1] = {NULL, false}};
static const struct config_choice backplanes[] = {
    [BACKPLANE_REDIS] = {"redis", false}, [BACKPLANE_MEMORY] = {"memory", false}, {NULL, false}};
static const struct config_choice publish_policies[] = {[PUBLISH_OFF] = {"off", false},
                                                        [PUBLISH_TOKEN] = {"token", true},
                                                        [PUBLISH_ANYONE] = {"anyone", false},
                                                        {NULL, false}};
static const struct config_choice contents[] = {[CONTENT_AUTO] = {"auto", false},
                                                [CONTENT_TEXT] = {"text", false},
                                                [CONTENT_JSON] = {"json", false},
                                                {NULL, false}};
static const struct config_choice overflows[] = {[OVERFLOW_DISCONNECT] = {"disconnect", false},
                                                 [OVERFLOW_DROP_OLDEST] = {"drop_oldest", true},
                                                 [OVERFLOW_LATEST] = {"latest", true},
                                                 {NULL, false}};

/* The columns after the help, by type: the field's place, the default, what is allowed. */
#define NUMBER(at, text, low, high)                                                                \
    .type = CONFIG_NUMBER, .offset = (at), .value = (text), .min = (low), .max = (high)
#define SIZE(at, text, low, high)                                                                  \
    .type = CONFIG_SIZE, .offset = (at), .value = (text), .min = (low), .max = (high)
#define DURATION(at, text, low, high)                                                              \
    .type = CONFIG_DURATION, .offset = (at), .value = (text), .min = (low), .max = (high)
#define RATE(at, text, low, high)                                                                  \
    .type = CONFIG_RATE, .offset = (at), .value = (text), .min = (low), .max = (high)
#define CHOICE(at, text, names)                                                                    \
    .type = CONFIG_CHOICE, .offset = (at), .value = (text), .choices = (names)
#define TEXT(at, text, checked)                                                                    \
    .type = CONFIG_TEXT, .offset = (at), .value = (text), .rule = &config_rule_##checked
#define SECRET(at, text, checked)                                                                  \
    .type = CONFIG_SECRET, .offset = (at), .value = (text), .rule = &config_rule_##checked
#define KEY(name, comment, ...)                                                                    \
    {                                                                                              \
        .path = (name), .help = (comment), __VA_ARGS__                                             \
    }

#define AT(field) offsetof(struct config, field)
static const struct config_key settings[] = {
    KEY("log.level", "The least severe lines that are logged",
        CHOICE(AT(log_level), "info", log_levels)),

    KEY("gateway.listen", "Where clients connect; port 0 takes any free one",
        TEXT(AT(gateway_listen), "127.0.0.1:8000", listen)),
    KEY("gateway.workers", "Worker processes; 0 is one per core",
        NUMBER(AT(gateway_workers), "0", 0, 256)),
    KEY("gateway.backplane", "Where messages come from; memory is one worker without Redis",
        CHOICE(AT(gateway_backplane), "redis", backplanes)),
    KEY("gateway.max_connections",
        "Most clients of a worker; 0 derives it from the open-files limit",
        NUMBER(AT(gateway_max_connections), "0", 0, 10000000)),
    KEY("gateway.send_buffer", "Kernel send buffer of a client's socket",
        SIZE(AT(gateway_send_buffer), "16KiB", 4 * KIB, 4 * MIB)),
    KEY("gateway.heartbeat",
        "Most silence on a stream; keep 3 times this below every proxy's timeout",
        DURATION(AT(gateway_heartbeat_ms), "15s", SECOND, HOUR)),
    KEY("gateway.retry_min", "Shortest wait before a client reconnects",
        DURATION(AT(gateway_retry_min_ms), "1s", 100, HOUR)),
    KEY("gateway.retry_max", "Longest wait before a client reconnects, not below retry_min",
        DURATION(AT(gateway_retry_max_ms), "10s", 100, HOUR)),
    KEY("gateway.user_timeout", "A client that acknowledges nothing for so long is gone",
        DURATION(AT(gateway_user_timeout_ms), "30s", SECOND, HOUR)),
    KEY("gateway.request_timeout", "Most time that a request may take to arrive",
        DURATION(AT(gateway_request_timeout_ms), "10s", SECOND, HOUR)),
    KEY("gateway.channels_per_request", "Most channels in one request",
        NUMBER(AT(gateway_channels_per_request), "64", 1, 1024)),
    KEY("gateway.channels_per_connection", "Most channels of one connection",
        NUMBER(AT(gateway_channels_per_connection), "256", 1, 10000)),
    KEY("gateway.ring_total", "Most memory of all channels' rings in a worker",
        SIZE(AT(gateway_ring_total_bytes), "256MiB", MIB, 1024 * GIB)),
    KEY("gateway.unsubscribe_linger",
        "A channel without clients stays subscribed in Redis for so long",
        DURATION(AT(gateway_unsubscribe_linger_ms), "5s", 0, HOUR)),
    KEY("gateway.lingering_channels",
        "Most channels of a worker that stay subscribed without clients",
        NUMBER(AT(gateway_lingering_channels), "10000", 0, 10000000)),
    KEY("gateway.max_pending_publishes", "Most publishes of a worker that wait for Redis",
        NUMBER(AT(gateway_max_pending_publishes), "10000", 1, 1000000)),
    KEY("gateway.publish_timeout", "A publish that Redis leaves unanswered for so long has failed",
        DURATION(AT(gateway_publish_timeout_ms), "5s", 100, HOUR)),
    KEY("gateway.shutdown_timeout", "Most time between SIGTERM and the end",
        DURATION(AT(gateway_shutdown_timeout_ms), "5s", 0, HOUR)),

    KEY("admin.listen", "Where /metrics is served; empty is nowhere",
        TEXT(AT(admin_listen), "127.0.0.1:9000", optional_listen)),

    KEY("redis.address", "Where Redis is",
        TEXT(AT(redis_address), "127.0.0.1:6379", redis_address)),
    KEY("redis.user", "User in Redis' ACL; empty is the default user",
        TEXT(AT(redis_user), "", user)),
    KEY("redis.password", "Better set by TIDECAST_REDIS_PASSWORD; empty sends no AUTH",
        SECRET(AT(redis_password), "", secret)),
    KEY("redis.password_file",
        "File whose first line is the password, read at start; empty is none",
        TEXT(AT(redis_password_file), "", path)),
    KEY("redis.prefix", "Begins every name in Redis", TEXT(AT(redis_prefix), "tide:", prefix)),
    KEY("redis.connect_timeout", "Most time to connect and log in to one address of Redis",
        DURATION(AT(redis_connect_timeout_ms), "3s", 100, 5 * (uint64_t)MINUTE)),
    KEY("redis.probe_timeout", "A link that was silent for so long is given up",
        DURATION(AT(redis_probe_timeout_ms), "3s", SECOND, 5 * (uint64_t)MINUTE)),
    KEY("redis.backoff_max", "Longest wait between two attempts to connect",
        DURATION(AT(redis_backoff_max_ms), "5s", 100, HOUR)),

    KEY("broker.name", "Name of this broker; empty is host name and process id",
        TEXT(AT(broker_name), "", broker_name)),
    KEY("broker.lease", "How soon another broker takes over from one that is gone",
        DURATION(AT(broker_lease_ms), "2s", 500, MINUTE)),
    KEY("broker.ticks", "What the broker publishes by itself", .type = CONFIG_TICKS, .value = "[]"),
};
#undef AT

#define AT(field) offsetof(struct namespace_config, field)
static const struct config_key namespace_keys[] = {
    KEY("publish", "Who may publish over HTTP and WebSocket",
        CHOICE(AT(publish), "off", publish_policies)),
    KEY("content", "What payloads are; auto tells JSON objects and arrays from text",
        CHOICE(AT(content), "auto", contents)),
    KEY("overflow", "What happens to a client that fell behind the ring",
        CHOICE(AT(overflow), "disconnect", overflows)),
    KEY("max_payload", "Largest payload of a message", SIZE(AT(max_payload), "64KiB", 1, MIB)),
    KEY("history.messages", "Messages of a channel kept in Redis; 0 is no history",
        NUMBER(AT(history_messages), "1000", 0, 1000000)),
    KEY("history.ttl", "A channel's history goes so long after its last message",
        DURATION(AT(history_ttl_ms), "10m", SECOND, 30 * DAY)),
    KEY("ring.messages", "Messages of a channel kept in each worker",
        NUMBER(AT(ring_messages), "256", 4, 65536)),
    KEY("ring.bytes", "Memory of a channel's ring", SIZE(AT(ring_bytes), "1MiB", 4 * KIB, GIB)),
    KEY("ring.max_age", "Oldest message in a ring",
        DURATION(AT(ring_max_age_ms), "1m", SECOND, DAY)),
};
#undef AT

#define AT(field) offsetof(struct tick_config, field)
static const struct config_key tick_keys[] = {
    KEY("channel", "Where it is published", TEXT(AT(channel), NULL, channel)),
    KEY("rate", "Hz", RATE(AT(rate), NULL, 1, (uint64_t)100000 * 1000)),
    KEY("payload", "Size of the whole payload, padded; 0 is as long as the content",
        SIZE(AT(payload_bytes), "0", 0, MIB)),
    KEY("content", "Template of the payload; {seq}, {t}, {channel} and {pad} are replaced",
        TEXT(AT(content), "{\"seq\":{seq},\"t\":{t},\"channel\":\"{channel}\"}", content)),
};
#undef AT

#define TABLE(rows)                                                                                \
    {                                                                                              \
        (rows), sizeof(rows) / sizeof((rows)[0])                                                   \
    }
const struct config_table config_settings = TABLE(settings);
const struct config_table config_namespace_keys = TABLE(namespace_keys);
const struct config_table config_tick_keys = TABLE(tick_keys);

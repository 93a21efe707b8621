/* config: every setting, typed. Filled once at start, read-only afterwards.
 *
 * One table (config_table.c) parses, checks and prints every key, from whichever source it comes:
 * defaults, then the file, then environment (TIDECAST_GATEWAY_LISTEN), then --set key=value. */
#pragma once

#include "common/log.h"
#include "common/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum backplane_kind { BACKPLANE_REDIS, BACKPLANE_MEMORY };
enum publish_policy { PUBLISH_OFF, PUBLISH_TOKEN, PUBLISH_ANYONE };
enum content_kind { CONTENT_AUTO, CONTENT_TEXT, CONTENT_JSON };
enum overflow_policy { OVERFLOW_DISCONNECT, OVERFLOW_DROP_OLDEST, OVERFLOW_LATEST };

/* The settings of one namespace; what a section leaves out is taken from `default`. */
struct namespace_config {
    char *name;
    enum publish_policy publish;
    enum content_kind content;
    enum overflow_policy overflow;
    uint64_t max_payload;      /* bytes */
    uint64_t history_messages; /* 0: no history */
    uint64_t history_ttl_ms;
    uint64_t ring_messages;
    uint64_t ring_bytes;
    uint64_t ring_max_age_ms;
    uint64_t own_keys; /* which keys its section gives, a bit each; only the loader reads it */
};

/* One channel that the broker ticks on. */
struct tick_config {
    char *channel;
    double rate;            /* Hz */
    uint64_t payload_bytes; /* of the whole payload, padded; 0: as long as the content is */
    char *content;          /* template, see docs/protocol.md */
};

struct config {
    enum log_level log_level;
    const char *log_level_name; /* set by config_finish */

    char *gateway_listen;     /* host:port, [v6]:port; port 0 = any */
    uint64_t gateway_workers; /* 0: one per core */
    enum backplane_kind gateway_backplane;
    uint64_t gateway_max_connections; /* a worker; 0: from the open-files limit */
    uint64_t gateway_send_buffer;     /* SO_SNDBUF of a client's socket, bytes */
    uint64_t gateway_heartbeat_ms;
    uint64_t gateway_retry_min_ms; /* the `retry:` a stream gets is drawn between these */
    uint64_t gateway_retry_max_ms;
    uint64_t gateway_user_timeout_ms; /* TCP_USER_TIMEOUT: unacknowledged bytes */
    uint64_t gateway_request_timeout_ms;
    uint64_t gateway_channels_per_request;
    uint64_t gateway_channels_per_connection;
    uint64_t gateway_ring_total_bytes; /* a worker */
    uint64_t gateway_unsubscribe_linger_ms;
    uint64_t gateway_lingering_channels;    /* a worker */
    uint64_t gateway_max_pending_publishes; /* a worker */
    uint64_t gateway_publish_timeout_ms;
    uint64_t gateway_shutdown_timeout_ms;
    char *admin_listen; /* empty: none */

    char *redis_address; /* host:port, [v6]:port or unix:/path */
    char *redis_user;
    char *redis_password;      /* never logged, never printed */
    char *redis_password_file; /* read at start; its first line */
    char *redis_prefix;
    uint64_t redis_connect_timeout_ms;
    uint64_t redis_probe_timeout_ms; /* a silent link is given up after so long */
    uint64_t redis_backoff_max_ms;

    char *broker_name; /* empty: host name and process id */
    uint64_t broker_lease_ms;
    struct tick_config *ticks;
    size_t tick_count;

    struct namespace_config *namespaces; /* [0] is `default` */
    size_t namespace_count;
};

/* A fault, complete: `config.yaml:12: gateway.workers: ...; allowed: 0 to 256`. */
struct config_error {
    char text[1024];
};

/* Everything at its default. */
struct config *config_new(void);
void config_free(struct config *c);

/* Each of these: 0, or -1 with *error filled; then the config may be half changed and is only fit
 * for config_free. */
int config_load_file(struct config *c, const char *path, struct config_error *error);
/* `origin` names the source in errors, such as "config.yaml". */
int config_load_text(struct config *c, const char *text, size_t len, const char *origin,
                     struct config_error *error);
/* Takes every TIDECAST_* variable of environ but TIDECAST_CONFIG, which is the program's; an
 * unknown one is an error. */
int config_load_environment(struct config *c, char *const *environment, struct config_error *error);
/* `key=value`, as --set takes it. */
int config_set(struct config *c, const char *assignment, struct config_error *error);
/* Once, after the last source: fills namespaces from `default`, reads the password file, checks
 * settings against each other. (What this version does not have yet is refused where it is set.) */
int config_finish(struct config *c, struct config_error *error);

/* All settings as YAML that config_load_text would take, secrets as "***". */
void config_print(const struct config *c, FILE *out);

/* The largest payload that a client may publish anywhere; 0: none may publish. */
uint64_t config_max_publish(const struct config *c);

/* The namespace of a channel: by name_namespace_len, or `default` when there is no such section. */
const struct namespace_config *config_namespace(const struct config *c, const char *channel,
                                                size_t len);

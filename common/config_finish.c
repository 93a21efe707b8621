#include "common/config_file.h"
#include "common/config_table.h"
#include "common/config_value.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PASSWORD_MAX = 512 };

static const struct config_place no_place = {NULL, 0};

/* Only now, as `default` may have been changed by any source. */
static void inherit(struct config *c)
{
    for (size_t i = 1; i < c->namespace_count; i++) {
        struct namespace_config *ns = &c->namespaces[i];
        for (size_t k = 0; k < config_namespace_keys.count; k++) {
            if ((ns->own_keys >> k & 1) == 0)
                config_value_copy(&config_namespace_keys.keys[k], ns, &c->namespaces[0]);
        }
    }
}

static int take_password(struct config *c, const struct buf *file, struct config_error *error)
{
    const struct config_place place = {c->redis_password_file, 0};
    const char *end = file->len != 0 ? memchr(file->bytes, '\n', file->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - file->bytes) : file->len;
    if (len != 0 && file->bytes[len - 1] == '\r')
        len--;
    if (len == 0 || len > PASSWORD_MAX || memchr(file->bytes, '\0', len) != NULL)
        return config_fault(error, place, "redis.password_file",
                            "its first line is not a password; allowed: 1 to %d bytes without NUL",
                            PASSWORD_MAX);
    free(c->redis_password);
    c->redis_password = mem_strndup(file->bytes, len);
    return 0;
}

static int read_password(struct config *c, struct config_error *error)
{
    enum { PASSWORD_FILE_MAX = 64 * 1024 };
    struct buf file = {0};
    if (c->redis_password_file[0] == '\0')
        return 0;
    if (c->redis_password[0] != '\0')
        return config_fault(error, no_place, "redis.password_file",
                            "redis.password is set too; allowed: one of them");
    int result = config_file_read(&file, c->redis_password_file, PASSWORD_FILE_MAX,
                                  "redis.password_file", error);
    if (result == 0)
        result = take_password(c, &file, error);
    if (file.len != 0)
        explicit_bzero(file.bytes, file.len);
    buf_fini(&file);
    return result;
}

/* Without a password there is no AUTH to name the user in. */
static int check_user(const struct config *c, struct config_error *error)
{
    if (c->redis_user[0] == '\0' || c->redis_password[0] != '\0')
        return 0;
    return config_fault(error, no_place, "redis.user",
                        "a user needs a password; allowed: redis.password or redis.password_file");
}

static int check_retry(const struct config *c, struct config_error *error)
{
    if (c->gateway_retry_max_ms >= c->gateway_retry_min_ms)
        return 0;
    return config_fault(error, no_place, "gateway.retry_max",
                        "%llums is below gateway.retry_min; allowed: at least %llums",
                        (unsigned long long)c->gateway_retry_max_ms,
                        (unsigned long long)c->gateway_retry_min_ms);
}

static int settle_workers(struct config *c, struct config_error *error)
{
    if (c->gateway_backplane != BACKPLANE_MEMORY)
        return 0;
    if (c->gateway_workers > 1)
        return config_fault(error, no_place, "gateway.workers",
                            "%llu is too many for gateway.backplane memory, which serves one "
                            "worker; allowed: 0 or 1",
                            (unsigned long long)c->gateway_workers);
    c->gateway_workers = 1;
    return 0;
}

/* A gateway drops what is larger than its namespace allows: such a tick would never arrive. */
static int check_ticks(const struct config *c, struct config_error *error)
{
    for (size_t i = 0; i < c->tick_count; i++) {
        const struct tick_config *tick = &c->ticks[i];
        uint64_t max = config_namespace(c, tick->channel, strlen(tick->channel))->max_payload;
        char key[64];
        if (tick->payload_bytes <= max)
            continue;
        (void)snprintf(key, sizeof(key), "broker.ticks[%zu].payload", i);
        return config_fault(error, no_place, key,
                            "%llu bytes are above max_payload of its namespace; allowed: up to "
                            "%llu bytes",
                            (unsigned long long)tick->payload_bytes, (unsigned long long)max);
    }
    return 0;
}

static void name_log_level(struct config *c)
{
    for (size_t i = 0; i < config_settings.count; i++) {
        const struct config_key *key = &config_settings.keys[i];
        if (key->offset == offsetof(struct config, log_level) && key->type == CONFIG_CHOICE)
            c->log_level_name = key->choices[c->log_level].name;
    }
}

int config_finish(struct config *c, struct config_error *error)
{
    inherit(c);
    name_log_level(c);
    if (check_retry(c, error) != 0 || settle_workers(c, error) != 0 || check_ticks(c, error) != 0)
        return -1;
    return read_password(c, error) != 0 ? -1 : check_user(c, error);
}

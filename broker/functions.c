#include "broker/functions.h"

#include "broker/namespace_table.h"
#include "common/log.h"
#include "common/mem.h"
#include "functions_library.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum functions_state { IDLE, ASKING, LOADING, CHECKING, READY, FUNCTIONS_STATES };

struct functions {
    struct redis_commands *commands;
    const struct functions_callbacks *callbacks;
    void *owner;
    struct namespace_table table;
    char *config_key;
    char *check_key;

    enum functions_state state;
    bool is_usable;      /* an older library than ours, at least */
    bool is_configuring; /* a table was sent and not answered */
    struct log_limit refusals;
};

static const bool allowed[FUNCTIONS_STATES][FUNCTIONS_STATES] = {
    [IDLE] = {[IDLE] = true, [ASKING] = true},
    [ASKING] = {[IDLE] = true, [LOADING] = true, [CHECKING] = true},
    [LOADING] = {[IDLE] = true, [CHECKING] = true},
    [CHECKING] = {[IDLE] = true, [READY] = true},
    [READY] = {[IDLE] = true, [ASKING] = true},
};

static void enter(struct functions *f, enum functions_state next)
{
    assert(allowed[f->state][next]);
    f->state = next;
}

static char *control_key(const char *prefix, const char *name)
{
    struct buf b = {0};
    buf_printf(&b, "%s%s", prefix, name);
    char *key = mem_strndup(b.bytes, b.len);
    buf_fini(&b);
    return key;
}

struct functions *functions_new(struct redis_commands *commands, const struct config *config,
                                const struct functions_callbacks *callbacks, void *owner)
{
    struct functions *f = mem_zalloc(sizeof(*f));
    f->commands = commands;
    f->callbacks = callbacks;
    f->owner = owner;
    namespace_table_init(&f->table, config);
    f->config_key = control_key(config->redis_prefix, "$config");
    f->check_key = control_key(config->redis_prefix, "$check");
    return f;
}

void functions_free(struct functions *f)
{
    if (f == NULL)
        return;
    namespace_table_fini(&f->table);
    free(f->config_key);
    free(f->check_key);
    free(f);
}

bool functions_is_ready(const struct functions *f)
{
    return f->state == READY;
}

const char *functions_table_hash(const struct functions *f)
{
    return f->table.hash;
}

int64_t functions_version(void)
{
    return FUNCTIONS_VERSION;
}

bool functions_is_missing(const struct resp *error)
{
    return error->type == RESP_ERROR && strstr(error->text, "Function not found") != NULL;
}

void functions_reset(struct functions *f)
{
    enter(f, IDLE);
}

static void fail(struct functions *f)
{
    enter(f, IDLE);
    f->callbacks->on_failed(f->owner);
}

/* Retried every second, so it is limited. */
static void log_refusal(struct functions *f, const char *step, const struct resp *error)
{
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    if (log_allowed(&f->refusals, &suppressed))
        log_error("library_refused step=%s error=\"%s\"", step,
                  log_quote(quoted, error->text, error->len));
}

/* False when there is no answer, or a refusal, and it is dealt with. */
static bool is_answered(struct functions *f, const char *step, const struct resp *reply)
{
    if (reply != NULL && reply->type != RESP_ERROR)
        return true;
    if (reply != NULL)
        log_refusal(f, step, reply);
    fail(f);
    return false;
}

static void on_checked(void *owner, const struct resp *reply)
{
    struct functions *f = owner;
    if (f->state != CHECKING || !is_answered(f, "check", reply))
        return;
    for (size_t i = 0; reply->type == RESP_ARRAY && i < reply->count; i++)
        log_error("acl_missing command=%s", reply->elements[i]->text);
    enter(f, READY);
    f->callbacks->on_ready(f->owner);
}

static void check(struct functions *f)
{
    const struct resp_arg args[] = {resp_text("FCALL"), resp_text("tidecast_check"), resp_text("1"),
                                    resp_text(f->check_key)};
    enter(f, CHECKING);
    if (!redis_commands_send(f->commands, args, sizeof(args) / sizeof(args[0]), on_checked, f))
        fail(f);
}

/* Without the right to load, whatever usable library stands there is used. */
static void on_loaded(void *owner, const struct resp *reply)
{
    struct functions *f = owner;
    if (f->state != LOADING)
        return;
    if (f->is_usable && reply != NULL && reply->type == RESP_ERROR) {
        log_refusal(f, "upgrade", reply);
        check(f);
        return;
    }
    if (!is_answered(f, "load", reply))
        return;
    log_info("library_installed version=%" PRId64, functions_version());
    check(f);
}

/* REPLACE only over what was seen to be older: if two brokers meet an empty Redis, the second load
 * fails, and its next try finds the first one's. */
static void load(struct functions *f, bool is_replacing)
{
    struct resp_arg args[4] = {resp_text("FUNCTION"), resp_text("LOAD"), resp_text("REPLACE")};
    size_t count = is_replacing ? 3 : 2;
    args[count++] =
        (struct resp_arg){.bytes = (const char *)functions_lua, .len = sizeof(functions_lua)};
    enter(f, LOADING);
    if (!redis_commands_send(f->commands, args, count, on_loaded, f))
        fail(f);
}

static void on_version(void *owner, const struct resp *reply)
{
    struct functions *f = owner;
    if (f->state != ASKING)
        return;
    f->is_usable = false;
    if (reply != NULL && functions_is_missing(reply)) {
        load(f, false);
        return;
    }
    if (!is_answered(f, "version", reply))
        return;
    f->is_usable = true;
    if (reply->integer < functions_version()) {
        log_info("library_outdated version=%" PRId64, reply->integer);
        load(f, true);
        return;
    }
    if (reply->integer > functions_version())
        log_info("library_newer version=%" PRId64, reply->integer);
    check(f);
}

void functions_install(struct functions *f)
{
    if (f->state != IDLE && f->state != READY)
        return;
    const struct resp_arg args[] = {resp_text("FCALL"), resp_text("tidecast_version"),
                                    resp_text("0")};
    enter(f, ASKING);
    if (!redis_commands_send(f->commands, args, sizeof(args) / sizeof(args[0]), on_version, f))
        fail(f);
}

static void on_configured(void *owner, const struct resp *reply)
{
    struct functions *f = owner;
    f->is_configuring = false;
    if (reply == NULL)
        return;
    if (reply->type == RESP_ERROR) {
        log_refusal(f, "configure", reply);
        return;
    }
    if (reply->integer == 1)
        log_info("namespaces_configured count=%zu hash=%s", f->table.count, f->table.hash);
    f->callbacks->on_configured(f->owner);
}

void functions_configure(struct functions *f)
{
    size_t count = 0;
    if (f->is_configuring)
        return;
    struct resp_arg *args = mem_alloc((7 + 2 * f->table.count) * sizeof(*args));
    args[count++] = resp_text("FCALL");
    args[count++] = resp_text("tidecast_configure");
    args[count++] = resp_text("1");
    args[count++] = resp_text(f->config_key);
    args[count++] = resp_text(NAMESPACE_TABLE_SCHEMA);
    args[count++] = resp_text("hash");
    args[count++] = resp_text(f->table.hash);
    for (size_t i = 0; i < f->table.count; i++) {
        args[count++] = resp_text(f->table.names[i]);
        args[count++] = resp_text(f->table.rows[i]);
    }
    f->is_configuring = redis_commands_send(f->commands, args, count, on_configured, f);
    free(args);
}

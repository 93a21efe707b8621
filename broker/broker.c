#include "broker/broker.h"

#include "broker/functions.h"
#include "broker/lease.h"
#include "broker/loop_redis.h"
#include "broker/ticker.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/redis_commands.h"
#include "common/redis_link.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REPLY_LEN_MAX = 1 << 20,
    OUTPUT_LEN_MAX = 64 << 20,
    OTHER_COMMANDS_MAX = 64,
    RETRY_MS = 1000
};
static const double upkeep_s = .1;
static const double stop_s = 1.;

struct broker {
    struct ev_loop *loop;
    const struct config *config;
    struct redis_link *link;
    struct redis_commands *commands;
    struct functions *functions;
    struct lease *lease;
    struct ticker *ticker;
    char name[HOST_NAME_MAX + 32];
    struct link_settings link_settings;

    ev_timer upkeep;
    ev_timer stop_limit;
    uint64_t retry_ms; /* when to install again; 0: not at all */
    bool is_ready;
    bool is_stopping;
    struct log_limit refusals;
};

static void on_link_ready(void *owner)
{
    struct broker *b = owner;
    if (!b->is_stopping)
        functions_install(b->functions);
}

static void on_link_reply(void *owner, const struct resp *reply)
{
    struct broker *b = owner;
    redis_commands_on_reply(b->commands, reply);
}

/* The lease may outlive a link: after a quick reconnect it is renewed under its old epoch. */
static void on_link_down(void *owner, enum link_fault fault)
{
    struct broker *b = owner;
    (void)fault;
    ticker_stop(b->ticker);
    lease_stop(b->lease);
    functions_reset(b->functions);
    b->is_ready = false;
    b->retry_ms = 0;
    redis_commands_on_down(b->commands);
}

static void on_functions_ready(void *owner)
{
    struct broker *b = owner;
    if (!b->is_stopping)
        lease_start(b->lease);
}

static void on_functions_failed(void *owner)
{
    struct broker *b = owner;
    b->retry_ms = clock_mono_ms() + RETRY_MS;
}

static void tell_ready(struct broker *b)
{
    if (b->is_ready)
        return;
    b->is_ready = true;
    log_info("broker_ready name=%s prefix=%s ticks=%zu", b->name, b->config->redis_prefix,
             b->config->tick_count);
}

/* Ticks need the table. */
static void start_work(struct broker *b)
{
    tell_ready(b);
    if (lease_is_held(b->lease) && !b->is_stopping)
        ticker_start(b->ticker);
}

static void on_functions_configured(void *owner)
{
    start_work(owner);
}

static void on_lease_lost(void *owner)
{
    struct broker *b = owner;
    ticker_stop(b->ticker);
}

/* The table of the lease's holder is the one in force; anybody fills an empty place. */
static void on_lease_news(void *owner, const struct lease_news *news)
{
    struct broker *b = owner;
    bool is_absent = news->table_hash[0] == '\0';
    bool is_ours = strcmp(news->table_hash, functions_table_hash(b->functions)) == 0;
    if (news->library_version < functions_version())
        functions_install(b->functions);
    if (is_absent || (!is_ours && lease_is_held(b->lease)))
        functions_configure(b->functions);
    else
        start_work(b);
}

static void on_lease_refused(void *owner, const struct resp *error)
{
    struct broker *b = owner;
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    if (log_allowed(&b->refusals, &suppressed))
        log_error("lease_refused error=\"%s\"", log_quote(quoted, error->text, error->len));
    if (functions_is_missing(error))
        functions_install(b->functions);
}

static void on_upkeep(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct broker *b = timer->data;
    uint64_t now_ms = clock_mono_ms();
    (void)loop;
    (void)events;
    redis_link_tick(b->link, now_ms);
    redis_commands_tick(b->commands, now_ms);
    if (b->retry_ms == 0 || now_ms < b->retry_ms || !redis_link_is_ready(b->link))
        return;
    b->retry_ms = 0;
    functions_install(b->functions);
}

static void break_loop(void *owner)
{
    struct broker *b = owner;
    ev_break(b->loop, EVBREAK_ALL);
}

static void on_stop_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    log_warn("release_unanswered");
    break_loop(timer->data);
}

static const struct link_callbacks link_callbacks = {
    .on_ready = on_link_ready,
    .on_reply = on_link_reply,
    .on_down = on_link_down,
};
static const struct functions_callbacks functions_callbacks = {
    .on_ready = on_functions_ready,
    .on_failed = on_functions_failed,
    .on_configured = on_functions_configured,
};
static const struct lease_callbacks lease_callbacks = {
    .on_lost = on_lease_lost,
    .on_news = on_lease_news,
    .on_refused = on_lease_refused,
};

static void name_broker(struct broker *b)
{
    char host[HOST_NAME_MAX + 1] = "unnamed";
    (void)gethostname(host, sizeof(host) - 1);
    if (b->config->broker_name[0] != '\0')
        (void)snprintf(b->name, sizeof(b->name), "%s", b->config->broker_name);
    else
        (void)snprintf(b->name, sizeof(b->name), "%s:%ld", host, (long)getpid());
}

/* A command that gets no answer ends its link after twice its timeout (redis_commands_tick): half
 * of what a silent link is allowed. */
static void open_redis(struct broker *b)
{
    b->link_settings = (struct link_settings){
        .name = "broker",
        .address = b->config->redis_address,
        .user = b->config->redis_user,
        .password = b->config->redis_password,
        .connect_timeout_ms = b->config->redis_connect_timeout_ms,
        .backoff_max_ms = b->config->redis_backoff_max_ms,
        .max_reply_len = REPLY_LEN_MAX,
        .max_output_len = OUTPUT_LEN_MAX,
    };
    b->link = redis_link_new(&b->link_settings, &loop_redis_poller, b->loop, &link_callbacks, b);
    b->commands = redis_commands_new(b->link, TICKER_PENDING_MAX + OTHER_COMMANDS_MAX,
                                     b->config->redis_probe_timeout_ms / 2);
}

struct broker *broker_new(struct ev_loop *loop, const struct config *config)
{
    struct broker *b = mem_zalloc(sizeof(*b));
    b->loop = loop;
    b->config = config;
    name_broker(b);
    open_redis(b);
    b->functions = functions_new(b->commands, config, &functions_callbacks, b);
    const struct lease_settings lease = {
        .prefix = config->redis_prefix, .name = b->name, .length_ms = config->broker_lease_ms};
    b->lease = lease_new(loop, b->commands, &lease, &lease_callbacks, b);
    const struct ticker_settings ticker = {
        .config = config, .link = b->link, .commands = b->commands, .lease = b->lease};
    b->ticker = ticker_new(loop, &ticker);

    ev_timer_init(&b->upkeep, on_upkeep, 0., upkeep_s);
    ev_timer_init(&b->stop_limit, on_stop_limit, stop_s, 0.);
    b->upkeep.data = b;
    b->stop_limit.data = b;
    if (b->ticker != NULL) {
        ev_timer_start(loop, &b->upkeep);
        return b;
    }
    broker_free(b);
    return NULL;
}

/* The commands first: freeing them calls back into all others. */
void broker_free(struct broker *b)
{
    if (b == NULL)
        return;
    b->is_stopping = true;
    ev_timer_stop(b->loop, &b->upkeep);
    ev_timer_stop(b->loop, &b->stop_limit);
    redis_commands_free(b->commands);
    ticker_free(b->ticker);
    lease_free(b->lease);
    functions_free(b->functions);
    redis_link_free(b->link);
    free(b);
}

void broker_stop(struct broker *b)
{
    if (b->is_stopping)
        return;
    log_info("broker_stopping");
    b->is_stopping = true;
    ticker_stop(b->ticker);
    if (lease_release(b->lease, break_loop))
        ev_timer_start(b->loop, &b->stop_limit);
    else
        break_loop(b);
}

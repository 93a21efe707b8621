#include "broker/ticker.h"

#include "broker/tick_clock.h"
#include "broker/tick_schedule.h"
#include "broker/tick_template.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURN_TICKS_MAX = 1000,
    UNSENT_MAX = 16 << 20,
    LIFETIME_S = INT32_MAX, /* more than 60 years */
    NUMBER_TEXT_MAX = 21,
    MS = 1000000 /* ns */
};
static const uint64_t backlog_ns = UINT64_C(1000) * MS;

/* One channel's ticks. */
struct tick {
    struct ticker *ticker;
    const struct tick_config *config;
    struct tick_rate rate;
    struct tick_template *template;
    char *key; /* the channel's name in Redis */
    uint64_t next_slot;
    ev_timer due;

    uint64_t skipped; /* and not told yet */
    uint64_t late_ns; /* the most of them */
    struct log_limit behind;
    struct log_limit refused;
};

struct ticker {
    struct ev_loop *loop;
    struct ticker_settings settings;
    struct tick_clock clock;
    ev_timer clock_check;
    bool is_running;
    char epoch[NUMBER_TEXT_MAX];
    struct buf payload; /* of the tick being sent */
    size_t count;
    struct tick ticks[];
};

static uint64_t now_ns(const struct ticker *t)
{
    return tick_clock_now(&t->clock, clock_mono_ns());
}

static void tell_skipped(struct tick *tick)
{
    uint64_t suppressed;
    if (tick->skipped == 0 || !log_allowed(&tick->behind, &suppressed))
        return;
    log_warn("ticker_behind channel=%s skipped=%" PRIu64 " late_ms=%" PRIu64, tick->config->channel,
             tick->skipped, tick->late_ns / MS);
    tick->skipped = 0;
    tick->late_ns = 0;
}

static void skip(struct tick *tick, uint64_t count, uint64_t late_ns)
{
    tick->skipped += count;
    if (count > 0 && late_ns > tick->late_ns)
        tick->late_ns = late_ns;
    tell_skipped(tick);
}

/* Answers come in order: one of an older epoch can't come after that of a newer lease. */
static void on_answer(void *owner, const struct resp *reply)
{
    struct tick *tick = owner;
    uint64_t suppressed;
    char quoted[LOG_QUOTE_MAX];
    if (reply == NULL || reply->type != RESP_ERROR)
        return;
    if (strncmp(reply->text, "TIDECAST stale_epoch", strlen("TIDECAST stale_epoch")) == 0) {
        lease_drop(tick->ticker->settings.lease, "stale_epoch");
        return;
    }
    if (log_allowed(&tick->refused, &suppressed))
        log_error("tick_refused channel=%s error=\"%s\" more=%" PRIu64, tick->config->channel,
                  log_quote(quoted, reply->text, reply->len), suppressed);
}

static bool has_room(const struct ticker *t)
{
    return redis_commands_pending(t->settings.commands) < TICKER_PENDING_MAX &&
           redis_link_unsent(t->settings.link) < UNSENT_MAX;
}

static bool send_tick(struct tick *tick, uint64_t slot)
{
    struct ticker *t = tick->ticker;
    if (!has_room(t))
        return false;
    tick_template_fill(tick->template, slot, tick_slot_ns(tick->rate, slot), &t->payload);
    const struct resp_arg args[] = {
        resp_text("FCALL"),  resp_text("tidecast_tick"),
        resp_text("1"),      resp_text(tick->key),
        resp_text(t->epoch), {.bytes = t->payload.bytes, .len = t->payload.len},
    };
    return redis_commands_send(t->settings.commands, args, sizeof(args) / sizeof(args[0]),
                               on_answer, tick);
}

/* The slots that are due; what finds no room is skipped rather than queued. */
static void send_due(struct tick *tick)
{
    struct tick_plan plan =
        tick_plan(tick->rate, tick->next_slot, now_ns(tick->ticker), backlog_ns, TURN_TICKS_MAX);
    uint64_t sent = 0;
    while (sent < plan.count && send_tick(tick, plan.first + sent))
        sent++;
    tick->next_slot = plan.first + plan.count;
    skip(tick, plan.skipped + plan.count - sent, plan.late_ns);
}

static void wait_for_next(struct tick *tick)
{
    uint64_t now = now_ns(tick->ticker);
    uint64_t next = tick_slot_ns(tick->rate, tick->next_slot);
    ev_now_update(tick->ticker->loop);
    ev_timer_set(&tick->due, next > now ? (double)(next - now) / 1e9 : 0., 0.);
    ev_timer_start(tick->ticker->loop, &tick->due);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct tick *tick = timer->data;
    (void)loop;
    (void)events;
    if (!lease_is_held(tick->ticker->settings.lease)) {
        lease_drop(tick->ticker->settings.lease, "expired");
        return;
    }
    send_due(tick);
    wait_for_next(tick);
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* After a step forward the slots in between never were; after one back, none is used twice. */
static void on_clock_check(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct ticker *t = timer->data;
    (void)loop;
    (void)events;
    int64_t step_ms = tick_clock_adjust(&t->clock, clock_mono_ns(), clock_wall_ns());
    if (step_ms == 0)
        return;
    log_warn("clock_stepped by_ms=%" PRId64, step_ms);
    for (size_t i = 0; i < t->count && t->is_running; i++) {
        struct tick *tick = &t->ticks[i];
        if (step_ms > 0)
            tick->next_slot = max(tick->next_slot, tick_slot_at_or_after(tick->rate, now_ns(t)));
        ev_timer_stop(t->loop, &tick->due);
        wait_for_next(tick);
    }
}

/* The payload must fit for as long as anybody will run this. */
static int init_template(struct tick *tick, const struct config *config)
{
    const struct tick_config *c = tick->config;
    enum tick_template_fault fault;
    uint64_t last_t = clock_wall_ns() + UINT64_C(1000) * MS * LIFETIME_S;
    tick->template =
        tick_template_new(c, tick_slot_at_or_after(tick->rate, last_t), last_t, &fault);
    if (tick->template == NULL) {
        log_error("tick_bad channel=%s reason=\"%s\"", c->channel, tick_template_fault_text(fault));
        return -1;
    }
    uint64_t max_payload = config_namespace(config, c->channel, strlen(c->channel))->max_payload;
    if (c->payload_bytes <= max_payload)
        return 0;
    log_error("tick_bad channel=%s reason=\"the payload size is above max_payload=%" PRIu64 "\"",
              c->channel, max_payload);
    return -1;
}

static int init_tick(struct ticker *t, struct tick *tick, const struct tick_config *config)
{
    struct buf key = {0};
    buf_printf(&key, "%s%s", t->settings.config->redis_prefix, config->channel);
    tick->key = mem_strndup(key.bytes, key.len);
    buf_fini(&key);
    tick->ticker = t;
    tick->config = config;
    tick->rate = tick_rate_of(config->rate);
    ev_init(&tick->due, on_due);
    tick->due.data = tick;
    return init_template(tick, t->settings.config);
}

struct ticker *ticker_new(struct ev_loop *loop, const struct ticker_settings *settings)
{
    size_t count = settings->config->tick_count;
    struct ticker *t = mem_zalloc(sizeof(*t) + count * sizeof(struct tick));
    t->loop = loop;
    t->settings = *settings;
    ev_init(&t->clock_check, on_clock_check);
    t->clock_check.data = t;
    for (; t->count < count; t->count++) {
        if (init_tick(t, &t->ticks[t->count], &settings->config->ticks[t->count]) == 0)
            continue;
        t->count++;
        ticker_free(t);
        return NULL;
    }
    return t;
}

void ticker_free(struct ticker *t)
{
    if (t == NULL)
        return;
    ticker_stop(t);
    for (size_t i = 0; i < t->count; i++) {
        tick_template_free(t->ticks[i].template);
        free(t->ticks[i].key);
    }
    buf_fini(&t->payload);
    free(t);
}

/* The holder before us may have had a clock ahead of ours by what a step is allowed to be: what it
 * may have sent is left out. */
void ticker_start(struct ticker *t)
{
    if (t->is_running)
        return;
    t->is_running = true;
    (void)snprintf(t->epoch, sizeof(t->epoch), "%" PRIu64, lease_epoch(t->settings.lease));
    tick_clock_init(&t->clock, clock_mono_ns(), clock_wall_ns());
    ev_timer_set(&t->clock_check, 1., 1.);
    ev_timer_start(t->loop, &t->clock_check);

    uint64_t start = now_ns(t) + (uint64_t)TICK_CLOCK_TOLERANCE_MS * MS;
    for (size_t i = 0; i < t->count; i++) {
        struct tick *tick = &t->ticks[i];
        tick->next_slot = max(tick->next_slot, tick_slot_at_or_after(tick->rate, start));
        log_info("ticker_started channel=%s rate=%g slot=%" PRIu64, tick->config->channel,
                 tick->config->rate, tick->next_slot);
        wait_for_next(tick);
    }
}

void ticker_stop(struct ticker *t)
{
    if (!t->is_running)
        return;
    t->is_running = false;
    ev_timer_stop(t->loop, &t->clock_check);
    for (size_t i = 0; i < t->count; i++)
        ev_timer_stop(t->loop, &t->ticks[i].due);
}

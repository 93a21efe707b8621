#include "broker/lease.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { NUMBER_TEXT_MAX = 21, OWNER_TEXT_MAX = CHANNEL_NAME_MAX + 1, NAME_LEN_MAX = 180 };

struct lease {
    struct ev_loop *loop;
    struct redis_commands *commands;
    const struct lease_callbacks *callbacks;
    void *owner;
    uint64_t length_ms;
    char key[PREFIX_MAX + sizeof("$lease")];
    char holder[OWNER_TEXT_MAX]; /* our name in Redis */
    char length_text[NUMBER_TEXT_MAX];

    ev_timer next_ask;
    ev_timer expiry;
    bool is_waiting; /* for an answer */
    uint64_t asked_ms;
    uint64_t epoch; /* 0: not held */
    uint64_t deadline_ms;
    void (*on_released)(void *owner);
};

static void ask(struct lease *l);

static void on_next_ask(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    ask(timer->data);
}

static void on_expiry(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct lease *l = timer->data;
    (void)loop;
    (void)events;
    if (l->epoch != 0 && !lease_is_held(l))
        lease_drop(l, "expired");
}

/* Two brokers may be given one name, and a restarted one must not take its predecessor's lease for
 * its own: hence the random number. */
static void name_holder(struct lease *l, const char *name)
{
    uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
        nonce = clock_mono_ns();
    (void)snprintf(l->holder, sizeof(l->holder), "%.*s:%016" PRIx64, NAME_LEN_MAX, name, nonce);
    for (char *c = l->holder; *c != '\0'; c++)
        if (!name_is_channel(c, 1))
            *c = '-';
}

struct lease *lease_new(struct ev_loop *loop, struct redis_commands *commands,
                        const struct lease_settings *settings,
                        const struct lease_callbacks *callbacks, void *owner)
{
    struct lease *l = mem_zalloc(sizeof(*l));
    l->loop = loop;
    l->commands = commands;
    l->callbacks = callbacks;
    l->owner = owner;
    l->length_ms = settings->length_ms;
    (void)snprintf(l->key, sizeof(l->key), "%s$lease", settings->prefix);
    (void)snprintf(l->length_text, sizeof(l->length_text), "%" PRIu64, l->length_ms);
    name_holder(l, settings->name);
    ev_init(&l->next_ask, on_next_ask);
    ev_init(&l->expiry, on_expiry);
    l->next_ask.data = l;
    l->expiry.data = l;
    return l;
}

void lease_free(struct lease *l)
{
    if (l == NULL)
        return;
    ev_timer_stop(l->loop, &l->next_ask);
    ev_timer_stop(l->loop, &l->expiry);
    free(l);
}

bool lease_is_held(const struct lease *l)
{
    return l->epoch != 0 && clock_mono_ms() < l->deadline_ms;
}

uint64_t lease_epoch(const struct lease *l)
{
    return l->epoch;
}

/* libev counts from the start of its turn, which may be long ago. */
static void start_timer(struct lease *l, ev_timer *timer, uint64_t after_ms)
{
    ev_timer_stop(l->loop, timer);
    ev_now_update(l->loop);
    ev_timer_set(timer, (double)after_ms / 1e3, 0.);
    ev_timer_start(l->loop, timer);
}

void lease_drop(struct lease *l, const char *reason)
{
    if (l->epoch == 0)
        return;
    log_warn("lease_lost epoch=%" PRIu64 " reason=%s", l->epoch, reason);
    l->epoch = 0;
    ev_timer_stop(l->loop, &l->expiry);
    l->callbacks->on_lost(l->owner);
}

static void take(struct lease *l, uint64_t epoch)
{
    if (l->epoch != 0 && l->epoch != epoch)
        lease_drop(l, "reacquired");
    if (l->epoch == 0)
        log_info("lease_acquired epoch=%" PRIu64, epoch);
    l->epoch = epoch;
    l->deadline_ms = l->asked_ms + l->length_ms;
    uint64_t now_ms = clock_mono_ms();
    start_timer(l, &l->expiry, l->deadline_ms > now_ms ? l->deadline_ms - now_ms : 0);
}

/* {epoch or 0, remaining ms, hash of the namespace table, version of the library} */
static bool is_well_formed(const struct resp *reply)
{
    return reply->type == RESP_ARRAY && reply->count >= 4 &&
           reply->elements[0]->type == RESP_INTEGER && reply->elements[0]->integer >= 0 &&
           reply->elements[1]->type == RESP_INTEGER && reply->elements[2]->type == RESP_STRING &&
           reply->elements[3]->type == RESP_INTEGER;
}

/* Whoever waits comes back the moment that the other's lease would end. */
static uint64_t next_ask_ms(const struct lease *l, const struct resp *reply)
{
    uint64_t quarter = l->length_ms / 4;
    uint64_t remaining = (uint64_t)reply->elements[1]->integer;
    return l->epoch == 0 && remaining < quarter ? remaining + 1 : quarter;
}

static void read_answer(struct lease *l, const struct resp *reply)
{
    uint64_t epoch = (uint64_t)reply->elements[0]->integer;
    if (epoch == 0)
        lease_drop(l, "taken");
    else
        take(l, epoch);
    start_timer(l, &l->next_ask, next_ask_ms(l, reply));
    const struct lease_news news = {.table_hash = reply->elements[2]->text,
                                    .library_version = reply->elements[3]->integer};
    l->callbacks->on_news(l->owner, &news);
}

static void on_answer(void *owner, const struct resp *reply)
{
    struct lease *l = owner;
    if (!l->is_waiting)
        return;
    l->is_waiting = false;
    if (reply != NULL && is_well_formed(reply)) {
        read_answer(l, reply);
        return;
    }
    start_timer(l, &l->next_ask, l->length_ms / 4);
    if (reply != NULL)
        l->callbacks->on_refused(l->owner, reply);
}

static void ask(struct lease *l)
{
    const struct resp_arg args[] = {
        resp_text("FCALL"), resp_text("tidecast_lease"), resp_text("1"),
        resp_text(l->key),  resp_text(l->holder),        resp_text(l->length_text),
    };
    if (l->is_waiting)
        return;
    l->asked_ms = clock_mono_ms();
    l->is_waiting =
        redis_commands_send(l->commands, args, sizeof(args) / sizeof(args[0]), on_answer, l);
    if (!l->is_waiting)
        start_timer(l, &l->next_ask, l->length_ms / 4);
}

void lease_start(struct lease *l)
{
    ask(l);
}

void lease_stop(struct lease *l)
{
    ev_timer_stop(l->loop, &l->next_ask);
    l->is_waiting = false;
}

static void on_release_answer(void *owner, const struct resp *reply)
{
    struct lease *l = owner;
    (void)reply;
    l->on_released(l->owner);
}

bool lease_release(struct lease *l, void (*on_released)(void *owner))
{
    char epoch[NUMBER_TEXT_MAX];
    lease_stop(l);
    if (l->epoch == 0)
        return false;
    (void)snprintf(epoch, sizeof(epoch), "%" PRIu64, l->epoch);
    const struct resp_arg args[] = {
        resp_text("FCALL"), resp_text("tidecast_release"), resp_text("1"),
        resp_text(l->key),  resp_text(l->holder),          resp_text(epoch),
    };
    log_info("lease_released epoch=%" PRIu64, l->epoch);
    l->epoch = 0;
    ev_timer_stop(l->loop, &l->expiry);
    l->on_released = on_released;
    return redis_commands_send(l->commands, args, sizeof(args) / sizeof(args[0]), on_release_answer,
                               l);
}

#include "gateway/worker.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"
#include "gateway/acceptor.h"
#include "gateway/door/door.h"
#include "gateway/hub/hub.h"
#include "gateway/loop_clock.h"
#include "gateway/loop_fd.h"
#include "gateway/transport/streams.h"
#include "gateway/wheel.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    TICK_MS = 100,
    GRACE_MS = 200,
    LOOP_WAIT_MS = 1000,
    FILES_RESERVED = 64,   /* of the limit, for everything that is no client */
    BODY_SLACK = 64 * 1024 /* above what may be published, so that our own 413 can be told */
};

/* An HTTP server of its own on the worker's loop. */
struct server {
    h2o_globalconf_t config;
    h2o_context_t context;
    struct acceptor *acceptor;
};

struct worker {
    const struct worker_settings *settings;
    const struct config *config;
    h2o_loop_t *loop;
    struct server clients, admin;
    struct hub *hub;
    struct backplane *backplane;
    struct wheel *wheel;
    struct streams *streams;
    struct door door;
    struct loop_flag hub_flag;
    struct loop_ticker ticker;
    struct loop_signal signal;
    uint64_t grace_ms; /* until then it goes on answering requests, though it ends */
    uint64_t end_ms;   /* when the worker ends whatever is left; 0: it runs */
};

static void raise_hub_flag(void *owner)
{
    struct worker *w = owner;
    loop_flag_raise(&w->hub_flag);
}

static void on_hub_flag(void *owner)
{
    struct worker *w = owner;
    if (!hub_run(w->hub))
        loop_flag_lower(&w->hub_flag);
}

static void on_tick(void *owner)
{
    struct worker *w = owner;
    uint64_t now_ms = clock_mono_ms();
    loop_clock_tick(w->loop);
    w->backplane->ops->tick(w->backplane, now_ms);
    wheel_advance(w->wheel, now_ms);
    hub_tick(w->hub, now_ms);
    streams_tick(w->streams, now_ms);
    acceptor_tick(w->clients.acceptor);
    stats_set(STAT_ready, w->end_ms == 0 && hub_is_ready(w->hub));
}

static void on_terminate(void *owner)
{
    struct worker *w = owner;
    if (w->end_ms != 0)
        return;
    w->grace_ms = clock_mono_ms() + GRACE_MS;
    w->end_ms = clock_mono_ms() + w->config->gateway_shutdown_timeout_ms;
    stats_set(STAT_ready, 0);
    acceptor_close(w->clients.acceptor);
    streams_shut_down(w->streams);
}

static void server_init(struct server *s, struct worker *w,
                        void (*register_door)(h2o_hostconf_t *, struct door *))
{
    h2o_config_init(&s->config);
    s->config.server_name = h2o_iovec_init(NULL, 0);
    s->config.http1.upgrade_to_http2 = 0; /* this h2o's HTTP/2 has faults that nobody mends */
    s->config.http1.req_timeout = w->config->gateway_request_timeout_ms;
    s->config.max_request_entity_size = config_max_publish(w->config) + BODY_SLACK;
    h2o_hostconf_t *host =
        h2o_config_register_host(&s->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    register_door(host, &w->door);
    h2o_context_init(&s->context, w->loop, &s->config);
}

static uint64_t max_sockets(const struct config *config)
{
    struct rlimit files;
    int failed = getrlimit(RLIMIT_NOFILE, &files);
    assert(!failed);
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == -1)
        log_errno("open_files_limit_not_raised");
    failed = getrlimit(RLIMIT_NOFILE, &files);
    assert(!failed);
    uint64_t most = files.rlim_cur > FILES_RESERVED ? files.rlim_cur - FILES_RESERVED : 1;
    uint64_t wanted = config->gateway_max_connections;
    if (wanted > most)
        log_warn("max_connections_lowered wanted=%" PRIu64 " open_files=%" PRIu64, wanted,
                 (uint64_t)files.rlim_cur);
    return wanted == 0 || wanted > most ? most : wanted;
}

static void init_backplane(struct worker *w)
{
    w->hub = hub_new(w->config, raise_hub_flag, w);
    w->backplane =
        w->config->gateway_backplane == BACKPLANE_MEMORY
            ? backplane_memory_new(w->config, &hub_events, w->hub)
            : backplane_redis_new(w->config, w->loop, w->settings->index, &hub_events, w->hub);
    hub_attach(w->hub, w->backplane);
}

static void init_servers(struct worker *w)
{
    uint64_t sockets = max_sockets(w->config);
    w->door =
        (struct door){.config = w->config, .streams = w->streams, .workers = w->settings->count};
    server_init(&w->clients, w, door_register_public);
    w->clients.acceptor = acceptor_open(&w->clients.context, w->settings->listen_fd, sockets);
    server_init(&w->admin, w, door_register_admin);
    if (w->settings->admin_fd != -1)
        w->admin.acceptor =
            acceptor_open(&w->admin.context, w->settings->admin_fd, FILES_RESERVED / 2);
}

static void init(struct worker *w)
{
    w->loop = h2o_evloop_create();
    w->wheel = wheel_new(clock_mono_ms());
    loop_flag_init(&w->hub_flag, w->loop, on_hub_flag, w);
    loop_ticker_init(&w->ticker, w->loop, TICK_MS, on_tick, w);
    loop_signal_init(&w->signal, w->loop, on_terminate, w);
    init_backplane(w);
    w->streams = streams_new(w->config, w->hub, w->wheel);
    init_servers(w);
}

/* Streams and publishes under way end first, and who was taken from the queue of the listener at
 * the last moment is answered. */
static bool is_over(const struct worker *w)
{
    uint64_t now_ms = clock_mono_ms();
    if (w->end_ms == 0)
        return false;
    bool is_idle = w->streams->rota.count == 0 && w->door.pending == 0 && now_ms >= w->grace_ms;
    return is_idle || now_ms >= w->end_ms;
}

int worker_run(const struct worker_settings *settings)
{
    struct worker *w = mem_zalloc(sizeof(*w));
    w->settings = settings;
    w->config = settings->config;
    stats_use(settings->index);
    init(w);
    while (!is_over(w)) {
        if (h2o_evloop_run(w->loop, LOOP_WAIT_MS) == -1 && errno != EINTR) {
            log_errno("loop_failed"); /* its list of sockets is broken now */
            return 1;
        }
        streams_reap(w->streams);
    }
    log_info("worker_ended streams_left=%" PRIu32, w->streams->rota.count);
    return 0; /* the loop can't be taken down in order; the process ends */
}

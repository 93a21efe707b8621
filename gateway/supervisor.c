#include "gateway/supervisor.h"

#include "common/backoff.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/stats.h"
#include "gateway/listener.h"
#include "gateway/worker.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKOFF_BASE_MS = 100, BACKOFF_MAX_MS = 5000, STEADY_MS = 10000, WAIT_MS = 100 };
enum { KILL_SLACK_MS = 2000, NAME_MAX_LEN = 24 };

struct child {
    pid_t pid; /* 0: not running */
    int listen_fd;
    uint64_t started_ms;
    uint64_t restart_ms; /* when it may start again */
    struct backoff backoff;
};

struct supervisor {
    const struct config *config;
    struct child *children;
    unsigned count;
    int admin_fd;
    uint64_t end_ms; /* when what is left is killed; 0: not ending */
    int exit_code;
};

static void run_child(struct supervisor *s, unsigned index, pid_t supervisor)
{
    static char name[NAME_MAX_LEN];
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != supervisor) /* which is process 1 itself in a container */
        _exit(0);                /* it died before that took effect */
    (void)snprintf(name, sizeof(name), "worker-%u", index);
    log_set_name(name);
    random_reseed();
    for (unsigned i = 0; i < s->count; i++) {
        if (i != index)
            (void)close(s->children[i].listen_fd);
    }
    const struct worker_settings settings = {s->config, index, s->count,
                                             s->children[index].listen_fd, s->admin_fd};
    _exit(worker_run(&settings));
}

static void start(struct supervisor *s, unsigned index)
{
    struct child *c = &s->children[index];
    pid_t supervisor = getpid();
    pid_t pid = fork();
    if (pid == 0)
        run_child(s, index, supervisor);
    if (pid == -1) {
        log_errno("fork_failed");
        c->restart_ms = clock_mono_ms() + backoff_next_ms(&c->backoff);
        return;
    }
    c->pid = pid;
    c->started_ms = clock_mono_ms();
    log_info("worker_started worker=%u pid=%d", index, (int)pid);
}

static void on_exit_of(struct supervisor *s, unsigned index, int status)
{
    struct child *c = &s->children[index];
    uint64_t now_ms = clock_mono_ms();
    c->pid = 0;
    stats_clear_gauges(index);
    if (s->end_ms != 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            s->exit_code = 1;
        return;
    }
    if (now_ms - c->started_ms > STEADY_MS)
        backoff_reset(&c->backoff);
    uint64_t wait_ms = backoff_next_ms(&c->backoff);
    c->restart_ms = now_ms + wait_ms;
    stats_use(s->count); /* the supervisor's own slot */
    stats_add(STAT_worker_restarts, 1);
    log_error("worker_died worker=%u signal=%d exit=%d restart_in_ms=%lu", index,
              WIFSIGNALED(status) ? WTERMSIG(status) : 0,
              WIFEXITED(status) ? WEXITSTATUS(status) : 0, wait_ms);
}

static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (unsigned i = 0; i < s->count; i++) {
            if (s->children[i].pid == pid)
                on_exit_of(s, i, status);
        }
    }
}

static void start_due(struct supervisor *s)
{
    uint64_t now_ms = clock_mono_ms();
    for (unsigned i = 0; i < s->count; i++) {
        if (s->children[i].pid == 0 && now_ms >= s->children[i].restart_ms)
            start(s, i);
    }
}

static unsigned signal_all(const struct supervisor *s, int number)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < s->count; i++) {
        if (s->children[i].pid == 0)
            continue;
        alive++;
        if (number != 0)
            (void)kill(s->children[i].pid, number);
    }
    return alive;
}

static void begin_end(struct supervisor *s)
{
    if (s->end_ms != 0)
        return;
    log_info("gateway_ending");
    s->end_ms = clock_mono_ms() + s->config->gateway_shutdown_timeout_ms + KILL_SLACK_MS;
    (void)signal_all(s, SIGTERM);
    for (unsigned i = 0; i < s->count; i++)
        (void)close(s->children[i].listen_fd); /* else the kernel would go on queueing clients */
}

static int open_listeners(struct supervisor *s)
{
    char text[LISTENER_ADDRESS_MAX];
    int *fds = mem_alloc(s->count * sizeof(*fds));
    int failed = listener_open(fds, s->count, s->config->gateway_listen, s->config, text);
    for (unsigned i = 0; failed == 0 && i < s->count; i++)
        s->children[i].listen_fd = fds[i];
    free(fds);
    if (failed != 0)
        return -1;
    log_info("listening address=%s workers=%u", text, s->count);
    if (s->config->admin_listen[0] == '\0')
        return 0;
    if (listener_open(&s->admin_fd, 1, s->config->admin_listen, s->config, text) == -1)
        return -1;
    log_info("admin_listening address=%s", text);
    return 0;
}

static void supervise(struct supervisor *s, const sigset_t *signals)
{
    const struct timespec wait = {0, WAIT_MS * 1000000L};
    while (s->end_ms == 0 || signal_all(s, 0) != 0) {
        if (s->end_ms == 0)
            start_due(s);
        int number = sigtimedwait(signals, NULL, &wait);
        if (number == SIGTERM || number == SIGINT)
            begin_end(s);
        reap(s);
        if (s->end_ms != 0 && clock_mono_ms() > s->end_ms)
            (void)signal_all(s, SIGKILL);
    }
}

static unsigned worker_count(const struct config *config)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (config->gateway_workers != 0)
        return (unsigned)config->gateway_workers;
    if (config->gateway_backplane == BACKPLANE_MEMORY)
        return 1;
    return cores < 1 ? 1 : (unsigned)cores;
}

int supervisor_run(const struct config *config)
{
    struct supervisor s = {.config = config, .count = worker_count(config), .admin_fd = -1};
    sigset_t signals;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    stats_init(s.count + 1);
    s.children = mem_zalloc(s.count * sizeof(*s.children));
    for (unsigned i = 0; i < s.count; i++)
        backoff_init(&s.children[i].backoff, BACKOFF_BASE_MS, BACKOFF_MAX_MS);
    if (open_listeners(&s) == -1)
        s.exit_code = 1;
    else
        supervise(&s, &signals);
    free(s.children);
    log_info("gateway_ended exit=%d", s.exit_code);
    return s.exit_code;
}

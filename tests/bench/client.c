/* A load client for the benchmarks. It takes one command a line on standard input and answers each
 * with one line of JSON on standard output; the end of input ends it.
 *
 *   open N    opens N more connections; answered when they are open or have failed
 *   restart   counts from now on; so do the answers
 *   report    what was counted, with the histogram of latencies */
#include "common/log.h"
#include "tests/bench/swarm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { COMMAND_MAX = 64, CONNECTING_MS = 1, IDLE_MS = 1000, SPARE_FILES = 16 };

/* What was read of a command that has not ended yet. */
struct console {
    char line[COMMAND_MAX];
    size_t len;
    bool opening; /* `open` is unanswered */
    bool ended;
};

static void print_report(const struct swarm_counts *c, const char *answer)
{
    const struct histogram *h = &c->latency_us;
    (void)printf("{\"answer\":\"%s\",\"wanted\":%zu,\"open\":%zu,\"failed\":%zu,\"dropped\":%zu,"
                 "\"ticks\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"doubled\":%" PRIu64
                 ",\"skipped\":%" PRIu64 ",\"last_t_ns\":%" PRIu64 ",\"p50_us\":%" PRIu64
                 ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64 ",\"latency_us\":",
                 answer, c->wanted, c->open, c->failed, c->dropped, c->ticks, c->bytes, c->doubled,
                 c->skipped, c->last_t_ns, histogram_quantile(h, 0.5), histogram_quantile(h, 0.99),
                 h->largest);
    histogram_print(h, stdout);
    (void)puts("}");
    (void)fflush(stdout);
}

static void obey(struct console *console, struct swarm *s, const char *line)
{
    if (strncmp(line, "open ", 5) == 0) {
        swarm_open(s, strtoul(line + 5, NULL, 10));
        console->opening = true;
    } else if (strcmp(line, "restart") == 0) {
        swarm_restart(s);
        print_report(swarm_counts(s), "restart");
    } else if (strcmp(line, "report") == 0) {
        print_report(swarm_counts(s), "report");
    } else {
        log_error("unknown_command");
        console->ended = true;
    }
}

static void on_input(struct console *console, struct swarm *s)
{
    ssize_t n = read(STDIN_FILENO, console->line + console->len, COMMAND_MAX - 1 - console->len);
    if (n <= 0) {
        console->ended = true;
        return;
    }
    console->len += (size_t)n;
    console->line[console->len] = '\0';
    char *start = console->line;
    for (char *end; (end = strchr(start, '\n')) != NULL; start = end + 1) {
        *end = '\0';
        obey(console, s, start);
    }
    console->len = strlen(start);
    memmove(console->line, start, console->len);
}

static void run(struct swarm *s)
{
    struct console console = {0};
    struct pollfd watched[] = {{.fd = swarm_fd(s), .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN}};
    while (!console.ended) {
        int wait_ms = swarm_is_settled(s) ? IDLE_MS : CONNECTING_MS;
        if (poll(watched, 2, wait_ms) == -1 && errno != EINTR)
            return;
        swarm_turn(s);
        if (console.opening && swarm_is_settled(s)) {
            console.opening = false;
            print_report(swarm_counts(s), "open");
        }
        if (watched[1].revents != 0)
            on_input(&console, s);
    }
}

/* As many connections as the hard limit on open files allows. */
static size_t connections_allowed(void)
{
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == -1)
        return 0;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == -1)
        return 0;
    return files.rlim_max > SPARE_FILES ? files.rlim_max - SPARE_FILES : 0;
}

static bool parse_address(struct sockaddr_in *address, const char *text)
{
    const char *colon = strchr(text, ':');
    char host[INET_ADDRSTRLEN] = {0};
    if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
        return false;
    memcpy(host, text, (size_t)(colon - text));
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

static bool parse_options(struct swarm_settings *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"server", required_argument, NULL, 's'},
        {"path", required_argument, NULL, 'p'},
        {"rate", required_argument, NULL, 'r'},
        {"websocket", no_argument, NULL, 'w'},
        {"channels", required_argument, NULL, 'n'},
        {"channel", required_argument, NULL, 'c'},
        {0},
    };
    bool has_server = false;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 's')
            has_server = parse_address(&o->server, optarg);
        else if (option == 'p')
            o->path = optarg;
        else if (option == 'r')
            o->rate = strtoul(optarg, NULL, 10);
        else if (option == 'w')
            o->websocket = true;
        else if (option == 'n')
            o->channels_each = strtoul(optarg, NULL, 10);
        else if (option == 'c')
            o->channel = optarg;
        else
            return false;
    }
    return has_server && o->rate != 0;
}

int main(int argc, char **argv)
{
    struct swarm_settings settings = {.path = "/", .rate = 5000, .channel = "bench"};
    log_set_name("bench-client");
    if (!parse_options(&settings, argc, argv)) {
        (void)fputs("usage: bench-client --server IP:PORT [--path PATH] [--rate N] [--websocket]\n"
                    "                    [--channels N [--channel PREFIX]]\n",
                    stderr);
        return 2;
    }
    settings.max_connections = connections_allowed();
    struct swarm *s = swarm_new(&settings);
    if (s == NULL) {
        log_errno("epoll_failed");
        return 1;
    }
    run(s);
    swarm_free(s);
    return 0;
}

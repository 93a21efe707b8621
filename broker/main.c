#include "broker/broker.h"
#include "common/log.h"
#include "common/program.h"

#include <ev.h>
#include <signal.h>
#include <stdlib.h>

static void on_stop_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop;
    (void)events;
    broker_stop(watcher->data);
}

static int run(const struct config *config)
{
    struct ev_loop *loop = ev_default_loop(EVFLAG_NOENV);
    if (loop == NULL) {
        log_error("loop_failed");
        return EXIT_FAILURE;
    }
    struct broker *broker = broker_new(loop, config);
    if (broker == NULL)
        return 2;

    ev_signal terminate, interrupt;
    ev_signal_init(&terminate, on_stop_signal, SIGTERM);
    ev_signal_init(&interrupt, on_stop_signal, SIGINT);
    terminate.data = broker;
    interrupt.data = broker;
    ev_signal_start(loop, &terminate);
    ev_signal_start(loop, &interrupt);
    ev_run(loop, 0);

    broker_free(broker);
    log_info("broker_stopped");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int status;
    (void)signal(SIGPIPE, SIG_IGN);
    struct config *config = program_config(argc, argv, &status);
    if (config == NULL)
        return status;
    log_set_name("broker");
    log_set_level(config->log_level);
    status = run(config);
    config_free(config);
    return status;
}

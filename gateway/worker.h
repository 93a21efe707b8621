/* worker: one process that holds connections: its loop, and everything that runs on it. */
#pragma once

#include "common/config.h"

struct worker_settings {
    const struct config *config;
    unsigned index; /* its slot in the counters, too */
    unsigned count; /* of workers in this gateway */
    int listen_fd;  /* taken over */
    int admin_fd;   /* taken over; -1: none */
};

/* Runs until SIGTERM or SIGINT, then ends its streams. Returns the exit code. */
int worker_run(const struct worker_settings *settings);

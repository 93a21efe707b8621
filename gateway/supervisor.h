/* supervisor: the parent process: opens the listeners, keeps the workers alive, ends them. */
#pragma once

#include "common/config.h"

/* Runs until SIGTERM or SIGINT. Returns the exit code. */
int supervisor_run(const struct config *config);

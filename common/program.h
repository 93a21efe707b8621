/* program: the command line that tidecast-gateway and tidecast-broker share. */
#pragma once

#include "common/config.h"

/* Handles --config FILE, --set KEY=VALUE, --print-config, --check-config, --version, --help, and
 * the environment. Returns the finished config, or NULL when the program has nothing more to do:
 * *status is then its exit code (0, or 2 after a config error was printed to standard error).
 * Without --config, TIDECAST_CONFIG names the file; without both the defaults stand. */
struct config *program_config(int argc, char **argv, int *status);

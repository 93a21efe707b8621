#include "common/program.h"

#include "common/mem.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_USAGE = 2 };

enum option_code { OPTION_SET = 256, OPTION_PRINT, OPTION_CHECK, OPTION_VERSION, OPTION_HELP };

enum command { COMMAND_RUN, COMMAND_PRINT, COMMAND_CHECK, COMMAND_VERSION, COMMAND_HELP };

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"set", required_argument, NULL, OPTION_SET},
    {"print-config", no_argument, NULL, OPTION_PRINT},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

struct command_line {
    enum command command;
    const char *file;
    const char **assignments; /* in the order given, borrowed */
    size_t assignment_count;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_usage(const char *name, FILE *out)
{
    (void)fprintf(out,
                  "Usage: %s [options]\n"
                  "  -c, --config FILE   read settings from FILE (or from $TIDECAST_CONFIG)\n"
                  "      --set KEY=VALUE change one setting, as in --set gateway.workers=4\n"
                  "      --print-config  print all settings as YAML and exit\n"
                  "      --check-config  check all settings and exit\n"
                  "      --version       print the version and exit\n"
                  "      --help          print this and exit\n"
                  "Later wins: defaults, file, environment (TIDECAST_GATEWAY_WORKERS=4), --set.\n",
                  name);
}

static int refuse(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(const char *name, const char *format, ...)
{
    va_list args;
    (void)fprintf(stderr, "%s: ", name);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputs("\n", stderr);
    print_usage(name, stderr);
    return -1;
}

/* Only up to the equals sign: what follows may be a password. */
static int refuse_option(const char *name, const char *option)
{
    return refuse(name, "unknown option %.*s", (int)strcspn(option, "="), option);
}

static void choose(struct command_line *line, enum command command)
{
    if (line->command == COMMAND_RUN)
        line->command = command;
}

static int take_option(struct command_line *line, int code, char **argv)
{
    const char *name = base_name(argv[0]);
    switch (code) {
    case 'c':
        line->file = optarg;
        return 0;
    case OPTION_SET:
        line->assignments[line->assignment_count++] = optarg;
        return 0;
    case OPTION_PRINT:
        choose(line, COMMAND_PRINT);
        return 0;
    case OPTION_CHECK:
        choose(line, COMMAND_CHECK);
        return 0;
    case OPTION_VERSION:
        choose(line, COMMAND_VERSION);
        return 0;
    case OPTION_HELP:
        choose(line, COMMAND_HELP);
        return 0;
    case ':':
        return refuse(name, "%s needs a value", argv[optind - 1]);
    default:
        return refuse_option(name, argv[optind - 1]);
    }
}

static int parse(struct command_line *line, int argc, char **argv)
{
    optind = 0; /* glibc: start over, permutation included */
    for (;;) {
        int code = getopt_long(argc, argv, ":c:", long_options, NULL);
        if (code == -1)
            break;
        if (take_option(line, code, argv) != 0)
            return -1;
    }
    if (optind < argc) /* not shown: it may be a password that lost its equals sign */
        return refuse(base_name(argv[0]), "unexpected argument after the options");
    return 0;
}

static int load(struct config *c, const struct command_line *line, struct config_error *error)
{
    const char *file = line->file != NULL ? line->file : getenv("TIDECAST_CONFIG");
    /* An empty variable is one that was not set; an empty --config is a mistake. */
    if (file != NULL && (line->file != NULL || file[0] != '\0') &&
        config_load_file(c, file, error) != 0)
        return -1;
    if (config_load_environment(c, environ, error) != 0)
        return -1;
    for (size_t i = 0; i < line->assignment_count; i++) {
        if (config_set(c, line->assignments[i], error) != 0)
            return -1;
    }
    return config_finish(c, error);
}

/* The config, if the command is to run; otherwise the command is done. */
static struct config *carry_out(const struct command_line *line, int *status)
{
    struct config_error error;
    struct config *c = config_new();
    if (load(c, line, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        *status = STATUS_USAGE;
    } else if (line->command == COMMAND_RUN) {
        return c;
    } else if (line->command == COMMAND_PRINT) {
        config_print(c, stdout);
    } else {
        (void)puts("config ok");
    }
    config_free(c);
    return NULL;
}

static void finish_output(const char *name, int *status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return;
    (void)fprintf(stderr, "%s: can't write to standard output\n", name);
    *status = STATUS_USAGE;
}

struct config *program_config(int argc, char **argv, int *status)
{
    struct command_line line = {.command = COMMAND_RUN};
    const char *name = base_name(argv[0]);
    struct config *c = NULL;
    line.assignments = mem_alloc((size_t)argc * sizeof(*line.assignments));
    *status = 0;
    if (parse(&line, argc, argv) != 0)
        *status = STATUS_USAGE;
    else if (line.command == COMMAND_HELP)
        print_usage(name, stdout);
    else if (line.command == COMMAND_VERSION)
        (void)printf("%s %s\n", name, TIDECAST_VERSION);
    else
        c = carry_out(&line, status);
    free(line.assignments);
    if (c == NULL)
        finish_output(name, status);
    return c;
}

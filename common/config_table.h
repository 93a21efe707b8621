/* config_table: every setting as a row: name, field, default, range, help. */
#pragma once

#include "common/config.h"

enum config_type {
    CONFIG_NUMBER,   /* uint64_t */
    CONFIG_SIZE,     /* uint64_t, bytes */
    CONFIG_DURATION, /* uint64_t, milliseconds */
    CONFIG_RATE,     /* double, Hz; the range is in thousandths */
    CONFIG_CHOICE,   /* an enum, valued by the order of its names */
    CONFIG_TEXT,     /* char * */
    CONFIG_SECRET,   /* char *, never shown */
    CONFIG_TICKS     /* the list of ticks */
};

struct config_choice {
    const char *name; /* NULL ends the list */
    bool is_refused;  /* known, but not available in this version */
};

struct config_rule {
    const char *allowed; /* in words */
    bool (*is_allowed)(const char *text);
};

struct config_key {
    const char *path;  /* within its table */
    const char *help;  /* the comment that stands above it */
    size_t offset;     /* in the table's struct */
    const char *value; /* the default, as one would write it; NULL: must be given */
    uint64_t min;
    uint64_t max;
    const struct config_choice *choices; /* CONFIG_CHOICE */
    const struct config_rule *rule;      /* CONFIG_TEXT, CONFIG_SECRET */
    enum config_type type;
};

struct config_table {
    const struct config_key *keys;
    size_t count;
};

extern const struct config_table config_settings;       /* struct config */
extern const struct config_table config_namespace_keys; /* struct namespace_config */
extern const struct config_table config_tick_keys;      /* struct tick_config */

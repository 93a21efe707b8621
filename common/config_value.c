#include "common/config_value.h"

#include "common/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Choices are stored through unsigned. */
_Static_assert(sizeof(enum publish_policy) == sizeof(unsigned), "enums are unsigned ints");

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: a value is printed in the first that divides it. */
static const struct unit size_units[] = {
    {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1024}, {"", 1}, {NULL, 0}};
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                             {"s", 1000},     {"ms", 1},      {NULL, 0}};

static void *field(const struct config_key *key, void *base)
{
    return (char *)base + key->offset;
}

static const void *field_const(const struct config_key *key, const void *base)
{
    return (const char *)base + key->offset;
}

static const struct unit *units_of(const struct config_key *key)
{
    return key->type == CONFIG_SIZE ? size_units : duration_units;
}

static int refuse(struct config_error *reason, const struct config_key *key, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct config_error *reason, const struct config_key *key, const char *format,
                  ...)
{
    struct buf allowed = {0};
    va_list args;
    va_start(args, format);
    int n = vsnprintf(reason->text, sizeof(reason->text), format, args);
    va_end(args);
    config_value_append_allowed(&allowed, key);
    if (n >= 0 && (size_t)n < sizeof(reason->text))
        (void)snprintf(reason->text + n, sizeof(reason->text) - (size_t)n, "; allowed: %.*s",
                       (int)allowed.len, allowed.bytes);
    buf_fini(&allowed);
    return -1;
}

/* Decimal without leading zeros, below 2^64. Returns what follows it, or NULL. */
static const char *parse_digits(const char *text, uint64_t *value)
{
    uint64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return NULL;
        n = n * 10 + digit;
    }
    if (p == text || (text[0] == '0' && p != text + 1))
        return NULL;
    *value = n;
    return p;
}

static int set_whole(const struct config_key *key, void *base, uint64_t value, const char *text,
                     struct config_error *reason)
{
    if (value < key->min || value > key->max)
        return refuse(reason, key, "\"%.60s\" is out of range", text);
    *(uint64_t *)field(key, base) = value;
    return 0;
}

static int set_number(const struct config_key *key, void *base, const char *text,
                      struct config_error *reason)
{
    uint64_t value = 0;
    const char *rest = parse_digits(text, &value);
    if (rest == NULL || *rest != '\0')
        return refuse(reason, key, "\"%.60s\" is not a whole number", text);
    return set_whole(key, base, value, text, reason);
}

/* A duration must name its unit, but for 0, which is the same in all of them. */
static int set_with_unit(const struct config_key *key, void *base, const char *text,
                         struct config_error *reason)
{
    const bool is_size = key->type == CONFIG_SIZE;
    uint64_t value = 0;
    const char *rest = parse_digits(text, &value);
    if (rest != NULL && *rest == '\0' && value == 0)
        return set_whole(key, base, 0, text, reason);
    if (rest != NULL && *rest == '\0' && !is_size)
        return refuse(reason, key, "\"%.60s\" has no unit, as 500ms, 15s, 10m, 2h or 1d", text);
    for (const struct unit *u = units_of(key); rest != NULL && u->name != NULL; u++) {
        if (strcmp(rest, u->name) != 0)
            continue;
        if (value > UINT64_MAX / u->factor)
            return refuse(reason, key, "\"%.60s\" is out of range", text);
        return set_whole(key, base, value * u->factor, text, reason);
    }
    return refuse(reason, key, "\"%.60s\" is not a %s", text,
                  is_size ? "size, as 265, 64KiB or 1MiB"
                          : "duration, as 500ms, 15s, 10m, 2h or 1d");
}

/* Digits with at most one point among them: strtod alone would take nan, 0x10 and 1e9. */
static int set_rate(const struct config_key *key, void *base, const char *text,
                    struct config_error *reason)
{
    enum { RATE_TEXT_MAX = 24 };
    size_t whole = strspn(text, "0123456789");
    size_t rest = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;
    if (whole == 0 || rest == 1 || text[whole + rest] != '\0' || whole + rest > RATE_TEXT_MAX)
        return refuse(reason, key, "\"%.60s\" is not a number", text);
    double value = strtod(text, NULL);
    if (value < (double)key->min / 1000 || value > (double)key->max / 1000)
        return refuse(reason, key, "\"%.60s\" is out of range", text);
    *(double *)field(key, base) = value;
    return 0;
}

static int set_choice(const struct config_key *key, void *base, const char *text,
                      struct config_error *reason)
{
    for (unsigned i = 0; key->choices[i].name != NULL; i++) {
        if (strcmp(text, key->choices[i].name) != 0)
            continue;
        if (key->choices[i].is_refused)
            return refuse(reason, key, "\"%s\" is not available in this version", text);
        *(unsigned *)field(key, base) = i;
        return 0;
    }
    return refuse(reason, key, "\"%.60s\" is not one of its values", text);
}

static int set_text(const struct config_key *key, void *base, const char *text,
                    struct config_error *reason)
{
    char **to = field(key, base);
    if (!key->rule->is_allowed(text)) {
        if (key->type == CONFIG_SECRET)
            return refuse(reason, key, "its value can't be used");
        return refuse(reason, key, "\"%.60s\" can't be used", text);
    }
    free(*to);
    *to = mem_strndup(text, strlen(text));
    return 0;
}

int config_value_set(const struct config_key *key, void *base, const char *text,
                     struct config_error *reason)
{
    switch (key->type) {
    case CONFIG_NUMBER:
        return set_number(key, base, text, reason);
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        return set_with_unit(key, base, text, reason);
    case CONFIG_RATE:
        return set_rate(key, base, text, reason);
    case CONFIG_CHOICE:
        return set_choice(key, base, text, reason);
    case CONFIG_TEXT:
    case CONFIG_SECRET:
        return set_text(key, base, text, reason);
    case CONFIG_TICKS:
        break;
    }
    assert(key->type != CONFIG_TICKS);
    return -1;
}

void config_value_set_defaults(const struct config_table *table, void *base)
{
    struct config_error reason;
    for (size_t i = 0; i < table->count; i++) {
        const struct config_key *key = &table->keys[i];
        if (key->type == CONFIG_TICKS || key->value == NULL)
            continue;
        int result = config_value_set(key, base, key->value, &reason);
        assert(result == 0);
    }
}

static bool is_text(const struct config_key *key)
{
    return key->type == CONFIG_TEXT || key->type == CONFIG_SECRET;
}

void config_value_copy(const struct config_key *key, void *to, const void *from)
{
    assert(!is_text(key) && key->type != CONFIG_TICKS);
    size_t len = key->type == CONFIG_CHOICE ? sizeof(unsigned) : sizeof(uint64_t);
    memcpy(field(key, to), field_const(key, from), len);
}

void config_value_free_all(const struct config_table *table, void *base)
{
    for (size_t i = 0; i < table->count; i++) {
        if (is_text(&table->keys[i]))
            free(*(char **)field(&table->keys[i], base));
    }
}

static void append_whole(struct buf *out, const struct config_key *key, uint64_t value)
{
    const struct unit *u = units_of(key);
    if (key->type == CONFIG_NUMBER || value == 0) {
        buf_printf(out, "%llu", (unsigned long long)value);
        return;
    }
    while (value % u->factor != 0)
        u++;
    buf_printf(out, "%llu%s", (unsigned long long)(value / u->factor), u->name);
}

/* The shortest form that is still this number. */
static void append_rate(struct buf *out, double value)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_append_text(out, text);
}

void config_value_append(struct buf *out, const struct config_key *key, const void *base)
{
    const void *from = field_const(key, base);
    switch (key->type) {
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        append_whole(out, key, *(const uint64_t *)from);
        return;
    case CONFIG_RATE:
        append_rate(out, *(const double *)from);
        return;
    case CONFIG_CHOICE:
        buf_append_text(out, key->choices[*(const unsigned *)from].name);
        return;
    case CONFIG_TEXT:
    case CONFIG_SECRET: {
        const char *text = *(char *const *)from;
        if (key->type == CONFIG_SECRET && text[0] != '\0')
            text = "***";
        buf_append_json_string(out, text, strlen(text));
        return;
    }
    case CONFIG_TICKS:
        break;
    }
    assert(key->type != CONFIG_TICKS);
}

static void append_choices(struct buf *out, const struct config_choice *choices)
{
    const char *separator = "";
    for (; choices->name != NULL; choices++) {
        if (choices->is_refused)
            continue;
        buf_append_text(out, separator);
        buf_append_text(out, choices->name);
        separator = ", ";
    }
}

static void append_range(struct buf *out, const struct config_key *key)
{
    append_whole(out, key, key->min);
    buf_append_text(out, " to ");
    append_whole(out, key, key->max);
}

void config_value_append_allowed(struct buf *out, const struct config_key *key)
{
    switch (key->type) {
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        append_range(out, key);
        return;
    case CONFIG_RATE:
        append_rate(out, (double)key->min / 1000);
        buf_append_text(out, " to ");
        append_rate(out, (double)key->max / 1000);
        return;
    case CONFIG_CHOICE:
        append_choices(out, key->choices);
        return;
    case CONFIG_TEXT:
    case CONFIG_SECRET:
        buf_append_text(out, key->rule->allowed);
        return;
    case CONFIG_TICKS:
        buf_append_text(out, "a list of {channel, rate, payload, content}");
        return;
    }
}

#include "common/config_table.h"
#include "common/config_value.h"

#include <string.h>

static void indent(struct buf *out, int depth)
{
    buf_printf(out, "%*s", depth * 2, "");
}

static void append_comment(struct buf *out, const struct config_key *key, int depth)
{
    indent(out, depth);
    buf_printf(out, "# %s (", key->help);
    config_value_append_allowed(out, key);
    buf_append_text(out, ")\n");
}

static void append_field(struct buf *out, const struct config_key *key, const void *base)
{
    buf_append_text(out, ": ");
    config_value_append(out, key, base);
    buf_append_text(out, "\n");
}

static void append_ticks(struct buf *out, const struct config *c, int depth)
{
    buf_append_text(out, c->tick_count == 0 ? ": []\n" : ":\n");
    for (size_t i = 0; i < c->tick_count; i++) {
        for (size_t k = 0; k < config_tick_keys.count; k++) {
            indent(out, depth + 1);
            buf_append_text(out, k == 0 ? "- " : "  ");
            buf_append_text(out, config_tick_keys.keys[k].path);
            append_field(out, &config_tick_keys.keys[k], &c->ticks[i]);
        }
    }
}

/* What was read from a file is the file's: both together would be refused when read back. */
static bool is_from_file(const struct config_key *key, const void *base)
{
    const struct config *c = base;
    return key->type == CONFIG_SECRET && c->redis_password_file[0] != '\0';
}

static void append_key(struct buf *out, const struct config_key *key, const char *name,
                       const void *base, int depth)
{
    indent(out, depth);
    buf_append_text(out, name);
    if (key->type == CONFIG_TICKS)
        append_ticks(out, base, depth);
    else if (is_from_file(key, base))
        buf_append_text(out, ": \"\"\n");
    else
        append_field(out, key, base);
}

/* A table in order; a new section begins where the part of the path before the dot changes. */
static void append_table(struct buf *out, const struct config_table *table, const void *base,
                         int depth, bool commented)
{
    const char *section = "";
    size_t section_len = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct config_key *key = &table->keys[i];
        const char *dot = strchr(key->path, '.');
        const char *name = dot != NULL ? dot + 1 : key->path;
        size_t len = dot != NULL ? (size_t)(dot - key->path) : 0;
        if (len != 0 && (len != section_len || strncmp(section, key->path, len) != 0)) {
            indent(out, depth);
            buf_printf(out, "%.*s:\n", (int)len, key->path);
        }
        section = key->path;
        section_len = len;
        if (commented)
            append_comment(out, key, depth + (dot != NULL));
        append_key(out, key, name, base, depth + (dot != NULL));
    }
}

/* A name that begins with a digit or a dash could be something else in YAML. */
static void append_section_name(struct buf *out, const char *name)
{
    const char *quote = name[0] >= 'a' && name[0] <= 'z' ? "" : "\"";
    buf_printf(out, "  %s%s%s:\n", quote, name, quote);
}

void config_print(const struct config *c, FILE *out)
{
    struct buf text = {0};
    append_table(&text, &config_settings, c, 0, true);
    buf_append_text(&text, "namespaces:\n");
    for (size_t i = 0; i < c->namespace_count; i++) {
        append_section_name(&text, c->namespaces[i].name);
        append_table(&text, &config_namespace_keys, &c->namespaces[i], 2, i == 0);
    }
    (void)fwrite(text.bytes, 1, text.len, out);
    buf_fini(&text);
}

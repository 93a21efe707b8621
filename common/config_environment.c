#include "common/buf.h"
#include "common/config_apply.h"
#include "common/config_table.h"
#include "common/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "TIDECAST_";
static const char namespaces_prefix[] = "NAMESPACES_";
/* The program reads it: it names the file. */
static const char file_name[] = "TIDECAST_CONFIG";

/* How a letter of a key is written in a variable's name. */
static char variable_char(char c)
{
    if (c == '.' || c == '-')
        return '_';
    return (char)toupper((unsigned char)c);
}

static bool is_spelled(const char *variable, size_t len, const char *key)
{
    if (strlen(key) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (variable[i] != variable_char(key[i]))
            return false;
    }
    return true;
}

static const char *find_key(const struct config_table *table, const char *variable, size_t len)
{
    for (size_t i = 0; i < table->count; i++) {
        if (is_spelled(variable, len, table->keys[i].path))
            return table->keys[i].path;
    }
    return NULL;
}

/* A variable can't hold a dash: a section that is there already is found by its spelling, any
 * other is named as it stands. */
static void spell_namespace(const struct config *c, const char *variable, size_t len,
                            char name[NAMESPACE_NAME_MAX + 1])
{
    for (size_t i = 0; i < c->namespace_count; i++) {
        if (is_spelled(variable, len, c->namespaces[i].name)) {
            memcpy(name, c->namespaces[i].name, len + 1);
            return;
        }
    }
    for (size_t i = 0; i < len; i++)
        name[i] = (char)tolower((unsigned char)variable[i]);
    name[len] = '\0';
}

/* `<NAME>_<KEY>`: both may hold underscores, so that only the key's spelling can tell them apart.
 */
static bool find_namespace_key(const struct config *c, const char *variable, size_t len,
                               struct buf *path)
{
    for (size_t i = 1; i + 1 < len && i <= NAMESPACE_NAME_MAX; i++) {
        if (variable[i] != '_')
            continue;
        const char *key = find_key(&config_namespace_keys, variable + i + 1, len - i - 1);
        if (key == NULL)
            continue;
        char name[NAMESPACE_NAME_MAX + 1];
        spell_namespace(c, variable, i, name);
        buf_printf(path, "namespaces.%s.%s", name, key);
        return true;
    }
    return false;
}

static bool find_path(const struct config *c, const char *variable, size_t len, struct buf *path)
{
    const size_t skip = sizeof(namespaces_prefix) - 1;
    const char *key = find_key(&config_settings, variable, len);
    if (key != NULL) {
        buf_append_text(path, key);
        return true;
    }
    if (len <= skip || memcmp(variable, namespaces_prefix, skip) != 0)
        return false;
    return find_namespace_key(c, variable + skip, len - skip, path);
}

static int load_variable(struct config *c, const char *name, const char *value,
                         struct config_error *error)
{
    const struct config_place place = {name, 0};
    const char *rest = name + sizeof(prefix) - 1;
    struct buf path = {0};
    if (!find_path(c, rest, strlen(rest), &path))
        return config_fault(error, place, "",
                            "unknown variable; allowed: %s, and keys spelled like "
                            "TIDECAST_GATEWAY_LISTEN or TIDECAST_NAMESPACES_CHAT_HISTORY_TTL",
                            file_name);
    buf_append(&path, "", 1);
    int result = config_apply_path(c, path.bytes, value, name, error);
    buf_fini(&path);
    return result;
}

int config_load_environment(struct config *c, char *const *environment, struct config_error *error)
{
    for (; *environment != NULL; environment++) {
        const char *variable = *environment;
        const char *equals = strchr(variable, '=');
        if (equals == NULL || strncmp(variable, prefix, sizeof(prefix) - 1) != 0)
            continue;
        char *name = mem_strndup(variable, (size_t)(equals - variable));
        int result = 0;
        if (strcmp(name, file_name) != 0)
            result = load_variable(c, name, equals + 1, error);
        free(name);
        if (result != 0)
            return -1;
    }
    return 0;
}

#include "common/config_apply.h"

#include "common/config_slot.h"
#include "common/config_value.h"
#include "common/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_LEN = 160 };

struct walk {
    struct config *c;
    const char *origin;
    struct config_error *error;
    char path[PATH_MAX_LEN]; /* of where the walk is */
};

static int fault(const struct walk *w, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fault(const struct walk *w, size_t line, const char *format, ...)
{
    struct config_error what;
    const struct config_place place = {w->origin, line};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what.text, sizeof(what.text), format, args);
    va_end(args);
    return config_fault(w->error, place, w->path, "%s", what.text);
}

/* Returns the length to go back to. */
static size_t enter(struct walk *w, const char *name)
{
    size_t len = strlen(w->path);
    (void)snprintf(w->path + len, sizeof(w->path) - len, "%s%.64s", len != 0 ? "." : "", name);
    return len;
}

static void leave(struct walk *w, size_t len)
{
    w->path[len] = '\0';
}

/* `what`, then the names that the section knows. */
static int fault_listing(const struct walk *w, const struct config_slot *section, size_t line,
                         const char *what)
{
    struct buf allowed = {0};
    config_slot_append_names(&allowed, section);
    int result = fault(w, line, "%s; allowed: %.*s", what, (int)allowed.len, allowed.bytes);
    buf_fini(&allowed);
    return result;
}

static const char *kind_name(const struct config_node *node)
{
    static const char *const names[] = {[CONFIG_NODE_TEXT] = "a single value",
                                        [CONFIG_NODE_MAP] = "a map",
                                        [CONFIG_NODE_LIST] = "a list"};
    return names[node->kind];
}

/* `key:` with nothing after it, as when all that stood below is commented out. */
static bool is_nothing(const struct config_node *node)
{
    return node->kind == CONFIG_NODE_TEXT && node->is_plain && node->text[0] == '\0';
}

/* What other readers of YAML take for "no value" must not become a user's or a password's name. */
static bool is_null(const struct config_node *node)
{
    static const char *const nulls[] = {"~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (node->is_plain && strcmp(node->text, nulls[i]) == 0)
            return true;
    }
    return false;
}

static int fault_kind(const struct walk *w, const struct config_key *key,
                      const struct config_node *node, const char *wanted)
{
    struct buf allowed = {0};
    config_value_append_allowed(&allowed, key);
    int result = fault(w, node->line, "is %s, not %s; allowed: %.*s", kind_name(node), wanted,
                       (int)allowed.len, allowed.bytes);
    buf_fini(&allowed);
    return result;
}

static int apply_value(struct walk *w, const struct config_slot *slot,
                       const struct config_node *node)
{
    struct config_error reason;
    if (node->kind != CONFIG_NODE_TEXT)
        return fault_kind(w, slot->key, node, "a single value");
    if (is_null(node))
        return fault(w, node->line, "null is not a value; write \"\" for empty text");
    if (config_value_set(slot->key, slot->base, node->text, &reason) != 0)
        return fault(w, node->line, "%s", reason.text);
    config_slot_mark(slot);
    return 0;
}

static int apply_slot(struct walk *w, const struct config_slot *slot,
                      const struct config_node *node);

static int find_twin(const struct walk *w, const struct config_node *first,
                     const struct config_node *node)
{
    for (; first != node; first = first->next) {
        if (strcmp(first->key, node->key) == 0)
            return fault(w, node->line, "given twice; it stands in line %zu already", first->line);
    }
    return 0;
}

/* Keys of namespaces that are decided on and not built: told so, instead of called unknown. */
static bool is_planned(const char *name)
{
    static const char *const planned[] = {"wait_replicas", "buffer_messages", "buffer_bytes",
                                          "send_timeout",  "max_lag",         "max_rate",
                                          "max_keys"};
    for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
        if (strcmp(name, planned[i]) == 0)
            return true;
    }
    return false;
}

static int fault_unknown(const struct walk *w, const struct config_slot *section, size_t line,
                         const char *name)
{
    if (is_planned(name))
        return fault(w, line, "is not available in this version");
    return fault_listing(w, section, line, "unknown key");
}

static int apply_child(struct walk *w, const struct config_slot *section,
                       const struct config_node *siblings, const struct config_node *node)
{
    struct config_slot slot;
    switch (config_slot_find(w->c, section, node->key, &slot)) {
    case CONFIG_SLOT_FOUND:
        break;
    case CONFIG_SLOT_UNKNOWN:
        return fault_unknown(w, section, node->line, node->key);
    case CONFIG_SLOT_NO_ROOM:
        return fault(w, node->line, "one namespace too many; allowed: %d", CONFIG_NAMESPACES_MAX);
    }
    if (find_twin(w, siblings, node) != 0)
        return -1;
    return apply_slot(w, &slot, node);
}

static int apply_section(struct walk *w, const struct config_slot *section,
                         const struct config_node *node)
{
    if (is_nothing(node))
        return 0;
    if (node->kind != CONFIG_NODE_MAP) {
        char what[48];
        (void)snprintf(what, sizeof(what), "is %s, not a map of keys", kind_name(node));
        return fault_listing(w, section, node->line, what);
    }
    for (const struct config_node *n = node->children; n != NULL; n = n->next) {
        size_t len = enter(w, n->key);
        if (apply_child(w, section, node->children, n) != 0)
            return -1;
        leave(w, len);
    }
    return 0;
}

static bool has_child(const struct config_node *node, const char *key)
{
    for (const struct config_node *n = node->children; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0)
            return true;
    }
    return false;
}

static int apply_tick(struct walk *w, struct tick_config *tick, const struct config_node *node)
{
    const struct config_slot slot = {.table = &config_tick_keys, .base = tick};
    config_value_set_defaults(&config_tick_keys, tick);
    if (apply_section(w, &slot, node) != 0)
        return -1;
    for (size_t i = 0; i < config_tick_keys.count; i++) {
        const struct config_key *key = &config_tick_keys.keys[i];
        if (key->value == NULL && !has_child(node, key->path))
            return fault(w, node->line, "%s is missing", key->path);
    }
    return 0;
}

/* A later source replaces the whole list. */
static int apply_ticks(struct walk *w, const struct config_key *key, const struct config_node *node)
{
    size_t capacity = 0;
    config_free_ticks(w->c);
    if (is_nothing(node))
        return 0;
    if (node->kind != CONFIG_NODE_LIST)
        return fault_kind(w, key, node, "a list");
    for (const struct config_node *n = node->children; n != NULL; n = n->next) {
        size_t i = w->c->tick_count;
        if (i == capacity) {
            capacity = capacity == 0 ? 8 : capacity * 2;
            w->c->ticks = mem_realloc(w->c->ticks, capacity * sizeof(*w->c->ticks));
        }
        w->c->ticks[i] = (struct tick_config){0};
        w->c->tick_count++;
        size_t len = strlen(w->path);
        (void)snprintf(w->path + len, sizeof(w->path) - len, "[%zu]", i);
        if (apply_tick(w, &w->c->ticks[i], n) != 0)
            return -1;
        leave(w, len);
    }
    return 0;
}

static int apply_slot(struct walk *w, const struct config_slot *slot,
                      const struct config_node *node)
{
    if (slot->key == NULL)
        return apply_section(w, slot, node);
    if (slot->key->type == CONFIG_TICKS)
        return apply_ticks(w, slot->key, node);
    return apply_value(w, slot, node);
}

void config_free_ticks(struct config *c)
{
    for (size_t i = 0; i < c->tick_count; i++)
        config_value_free_all(&config_tick_keys, &c->ticks[i]);
    free(c->ticks);
    c->ticks = NULL;
    c->tick_count = 0;
}

int config_apply_document(struct config *c, const struct config_node *root, const char *origin,
                          struct config_error *error)
{
    struct walk w = {.c = c, .origin = origin, .error = error};
    const struct config_slot slot = config_slot_root(c);
    return root != NULL ? apply_section(&w, &slot, root) : 0;
}

/* Follows the path's words; the last one's text becomes a node. */
static int find_path(struct walk *w, const char *path, struct config_slot *slot)
{
    *slot = config_slot_root(w->c);
    for (const char *word = path;; word++) {
        struct config_slot section = *slot;
        size_t len = strcspn(word, ".");
        char *name = mem_strndup(word, len);
        (void)enter(w, name);
        enum config_slot_result result = config_slot_find(w->c, &section, name, slot);
        int faulty = 0;
        if (result == CONFIG_SLOT_NO_ROOM)
            faulty = fault(w, 0, "one namespace too many; allowed: %d", CONFIG_NAMESPACES_MAX);
        else if (result != CONFIG_SLOT_FOUND)
            faulty = fault_unknown(w, &section, 0, name);
        free(name);
        if (faulty != 0)
            return faulty;
        word += len;
        if (*word == '\0')
            return 0;
    }
}

int config_apply_path(struct config *c, const char *path, const char *text, const char *origin,
                      struct config_error *error)
{
    struct walk w = {.c = c, .origin = origin, .error = error};
    struct config_slot slot;
    struct config_node *node = NULL;
    if (find_path(&w, path, &slot) != 0)
        return -1;
    if (slot.key != NULL && slot.key->type != CONFIG_TICKS)
        node = config_yaml_text(text, false);
    else if (config_yaml_parse(&node, text, strlen(text), origin, error) != 0)
        return -1;
    if (node == NULL)
        node = config_yaml_text("", true);
    int result = apply_slot(&w, &slot, node);
    config_yaml_free(node);
    return result;
}

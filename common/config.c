#include "common/config.h"

#include "common/config_apply.h"
#include "common/config_file.h"
#include "common/config_slot.h"
#include "common/config_value.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_LEN_MAX = 1024 * 1024 };

struct config *config_new(void)
{
    struct config *c = mem_zalloc(sizeof(*c));
    config_value_set_defaults(&config_settings, c);
    (void)config_slot_add_namespace(c, "default");
    return c;
}

void config_free(struct config *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->namespace_count; i++) {
        config_value_free_all(&config_namespace_keys, &c->namespaces[i]);
        free(c->namespaces[i].name);
    }
    free(c->namespaces);
    config_free_ticks(c);
    config_value_free_all(&config_settings, c);
    free(c);
}

int config_load_text(struct config *c, const char *text, size_t len, const char *origin,
                     struct config_error *error)
{
    const struct config_place place = {origin, 0};
    struct config_node *root = NULL;
    if (len > FILE_LEN_MAX)
        return config_fault(error, place, "", "too long; allowed: up to %d bytes", FILE_LEN_MAX);
    if (config_yaml_parse(&root, text, len, origin, error) != 0)
        return -1;
    int result = config_apply_document(c, root, origin, error);
    config_yaml_free(root);
    return result;
}

int config_load_file(struct config *c, const char *path, struct config_error *error)
{
    struct buf text = {0};
    int result = config_file_read(&text, path, FILE_LEN_MAX, "", error);
    if (result == 0)
        result = config_load_text(c, text.bytes, text.len, path, error);
    buf_fini(&text);
    return result;
}

int config_set(struct config *c, const char *assignment, struct config_error *error)
{
    static const struct config_place place = {"--set", 0};
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment)
        return config_fault(error, place, "", "needs a key and a value; allowed: key=value");
    char *path = mem_strndup(assignment, (size_t)(equals - assignment));
    int result = config_apply_path(c, path, equals + 1, place.origin, error);
    free(path);
    return result;
}

const struct namespace_config *config_namespace(const struct config *c, const char *channel,
                                                size_t len)
{
    size_t name_len = name_namespace_len(channel, len);
    for (size_t i = 1; i < c->namespace_count; i++) {
        const char *name = c->namespaces[i].name;
        if (strlen(name) == name_len && memcmp(name, channel, name_len) == 0)
            return &c->namespaces[i];
    }
    return &c->namespaces[0];
}

uint64_t config_max_publish(const struct config *c)
{
    uint64_t most = 0;
    for (size_t i = 0; i < c->namespace_count; i++) {
        const struct namespace_config *settings = &c->namespaces[i];
        if (settings->publish == PUBLISH_ANYONE && settings->max_payload > most)
            most = settings->max_payload;
    }
    return most;
}

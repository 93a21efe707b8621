/* config_yaml: a strict subset of YAML as a tree. The only module that knows libyaml.
 *
 * One document of maps, lists and text, nested at most 8 deep. Anchors, aliases, tags, merge keys
 * and NUL are refused. Nothing is typed here, and duplicate keys are the reader's to find. */
#pragma once

#include "common/config_error.h"

enum { CONFIG_DEPTH_MAX = 8 };

enum config_node_kind { CONFIG_NODE_TEXT, CONFIG_NODE_MAP, CONFIG_NODE_LIST };

struct config_node {
    enum config_node_kind kind;
    bool is_plain; /* text without quotes */
    size_t line;
    char *key;  /* when it stands in a map */
    char *text; /* CONFIG_NODE_TEXT */
    struct config_node *children;
    struct config_node *next;
};

/* Nothing but comments gives *root = NULL. -1: *error is filled, *root is NULL. */
int config_yaml_parse(struct config_node **root, const char *text, size_t len, const char *origin,
                      struct config_error *error);
/* Text that stands alone, line 0. */
struct config_node *config_yaml_text(const char *text, bool is_plain);
/* NULL is allowed. */
void config_yaml_free(struct config_node *node);

/* config_apply: puts what was written into the struct that the tables describe. */
#pragma once

#include "common/config_yaml.h"

void config_free_ticks(struct config *c);

/* A whole document. NULL changes nothing. */
int config_apply_document(struct config *c, const struct config_node *root, const char *origin,
                          struct config_error *error);
/* One key by its path. The text of a list or a section is YAML. */
int config_apply_path(struct config *c, const char *path, const char *text, const char *origin,
                      struct config_error *error);

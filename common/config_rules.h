/* config_rules: what the settings that are text may hold. */
#pragma once

#include "common/config_table.h"

extern const struct config_rule config_rule_listen;
extern const struct config_rule config_rule_optional_listen;
extern const struct config_rule config_rule_redis_address;
extern const struct config_rule config_rule_user;
extern const struct config_rule config_rule_secret;
extern const struct config_rule config_rule_path;
extern const struct config_rule config_rule_prefix;
extern const struct config_rule config_rule_broker_name;
extern const struct config_rule config_rule_channel;
extern const struct config_rule config_rule_content;

/* admission: whether what came from the backplane, or is to be published, may be delivered. */
#pragma once

#include "common/config.h"
#include "common/message.h"
#include "gateway/backplane/backplane.h"

/* Opens what arrived for a channel. A new message, or NULL: it is counted and logged by reason. */
struct message *admission_receive(const struct config *config, const char *channel,
                                  size_t channel_len, const char *bytes, size_t len);
/* NULL when it may be published, else the stable error code; *status is then HTTP's. The names in
 * the publication are checked elsewhere. */
const char *admission_check_payload(const struct namespace_config *settings, const char *payload,
                                    size_t len, int *status);

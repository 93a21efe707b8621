/* subscribe: requests that become streams. */
#pragma once

#include "gateway/door/request.h"

void subscribe_sse(const struct request *r);
void subscribe_websocket(const struct request *r);

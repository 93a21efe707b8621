/* publish: POST /publish/<channel>. */
#pragma once

#include "gateway/door/request.h"

/* Answers when the backplane did. */
void publish_request(const struct request *r);

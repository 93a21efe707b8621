/* health: what balancers and operators ask. */
#pragma once

#include "gateway/door/request.h"

/* 200 as long as the process answers. */
void health_live(const struct request *r);
/* The gateway as a whole, whichever worker answers: 503 while it starts, ends, or a worker could
 * not deliver what is published now. */
void health_ready(const struct request *r);
void health_metrics(const struct request *r);

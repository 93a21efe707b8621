/* reply: answers that are whole at once. */
#pragma once

#include "common/buf.h"
#include "common/stats.h"

#include <h2o.h>

/* A body of that type. HEAD gets the head alone. */
void reply_body(h2o_req_t *req, int status, const char *content_type, const char *bytes,
                size_t len);
void reply_json(h2o_req_t *req, int status, const struct buf *json);
/* {"error":code,"message":message}. 503 tells when to come again. */
void reply_error(h2o_req_t *req, int status, const char *code, const char *message);
/* The same, counted and logged as a refusal. */
void reply_refusal(h2o_req_t *req, int status, const char *code, const char *message,
                   enum counter counted_as);
/* 405, or 204 for OPTIONS: `allow` lists the methods. */
void reply_methods(h2o_req_t *req, const char *allow);

/* envelope: what a Redis Pub/Sub payload carries. No I/O.
 *
 *   plain      valid UTF-8 that does not begin with NUL
 *   enveloped  NUL, version '1', then ` name=value` fields, LF, payload
 *
 * Fields: id, prev, event, key, seq=1. Unknown fields are ignored. */
#pragma once

#include "common/message.h"

enum envelope_result {
    ENVELOPE_OK,
    ENVELOPE_UNKNOWN_VERSION, /* dropped and counted: a newer publisher */
    ENVELOPE_MALFORMED,       /* bad field syntax, bad name, no LF */
    ENVELOPE_NOT_UTF8,
    ENVELOPE_TOO_BIG /* payload above max_payload */
};

/* Fills *parts with pointers into bytes. An id must be there in an enveloped message. */
enum envelope_result envelope_open(struct message_parts *parts, const char *bytes, size_t len,
                                   size_t max_payload);
const char *envelope_result_name(enum envelope_result result);

/* query: the parameters of a request's target, percent-decoded. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct query_param {
    char *name; /* NUL-terminated; may also hold NULs, so look at the lengths */
    char *value;
    size_t name_len;
    size_t value_len;
};

/* The most channels that a request may ever be allowed, and some others. */
enum { QUERY_PARAMS_MAX = 1024 + 16 };

struct query {
    struct query_param *params; /* in their order */
    size_t count;
};

enum query_result { QUERY_OK, QUERY_BAD_ESCAPE, QUERY_TOO_MANY };

/* `text` is what follows the '?': application/x-www-form-urlencoded ('+' is a blank, '&' parts).
 * query_fini afterwards in either case. */
enum query_result query_parse(struct query *q, const char *text, size_t len);
void query_fini(struct query *q);
/* The first parameter of that name, or NULL. */
const struct query_param *query_find(const struct query *q, const char *name);
/* Percent-decodes a path segment ('+' stays). Returns a NUL-terminated heap string and its length,
 * or NULL for a bad escape. */
char *query_decode_segment(const char *text, size_t len, size_t *decoded_len);

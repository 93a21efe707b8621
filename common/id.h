/* id: a message's place in the order of one Redis; the only module that looks inside one.
 *
 * Written `<ms>-<seq>`, as Redis Streams write theirs; opaque to clients. Strictly rising across
 * all channels of one Redis. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id {
    uint64_t ms;
    uint64_t seq;
};

enum { ID_TEXT_MAX = 42 }; /* two numbers of 20 digits, the dash, the NUL */

/* Strict: two decimal numbers below 2^64 without leading zeros. False leaves *id alone. */
bool id_parse(struct id *id, const char *text, size_t len);
/* Writes NUL-terminated text; returns its length. */
size_t id_format(const struct id *id, char text[ID_TEXT_MAX]);
/* Less than, equal to or greater than zero, as a is before, at or after b. */
int id_compare(const struct id *a, const struct id *b);
/* Whether no position is known. */
bool id_is_zero(const struct id *id);

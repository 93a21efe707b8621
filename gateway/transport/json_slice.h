/* json_slice: places in JSON text, found without building its values. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct json_slice {
    const char *bytes;
    size_t len;
};

/* Whether arrays and objects nest deeper than max_depth. The text need not be JSON: to be asked
 * before a recursive parser sees it. */
bool json_slice_is_deeper(const char *text, size_t len, size_t max_depth);
/* The bytes of a member's value as they stand, without the blanks around it. `object` must hold one
 * object that a parser has taken; blanks around it are allowed. The name is ASCII; escapes in the
 * text's names are understood. False: no such member. */
bool json_slice_member(struct json_slice *value, const char *object, size_t len, const char *name);

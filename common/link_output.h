/* link_output: the bytes that a socket has not taken yet. */
#pragma once

#include "common/buf.h"

#include <stddef.h>

/* Starts as {0}. Append to `bytes`, never take from it. */
struct link_output {
    struct buf bytes;
    size_t sent_len; /* of bytes, from the front */
};

enum link_output_result { LINK_OUTPUT_EMPTY, LINK_OUTPUT_WAIT, LINK_OUTPUT_FAILED };
/* Writes what the socket takes; FAILED leaves the reason in errno. */
enum link_output_result link_output_write(struct link_output *o, int fd);
size_t link_output_unsent(const struct link_output *o);
void link_output_clear(struct link_output *o);
void link_output_fini(struct link_output *o);

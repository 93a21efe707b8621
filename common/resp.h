/* resp: Redis' wire protocol (RESP2), parsed by hiredis' reader and formatted by us. No I/O.
 *
 * The only header that hides hiredis' reader; nobody else includes it. */
#pragma once

#include "common/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resp_type { RESP_STRING, RESP_STATUS, RESP_ERROR, RESP_INTEGER, RESP_NIL, RESP_ARRAY };

/* One value; elements of an array are values too. Text is counted, NUL-terminated for printing. */
struct resp {
    enum resp_type type;
    int64_t integer;
    const char *text; /* RESP_STRING, RESP_STATUS, RESP_ERROR */
    size_t len;
    struct resp **elements; /* RESP_ARRAY */
    size_t count;
};

enum resp_result { RESP_OK, RESP_MORE, RESP_BAD };

struct resp_reader;

/* max_len bounds what may be buffered for one reply; beyond it the reader is RESP_BAD. */
struct resp_reader *resp_reader_new(size_t max_len);
void resp_reader_free(struct resp_reader *r);
/* Copies the bytes in. */
void resp_reader_feed(struct resp_reader *r, const char *bytes, size_t len);
/* RESP_OK: *value is the next reply, valid until the next call on this reader. RESP_MORE: feed it.
 * RESP_BAD: the reader is dead, resp_reader_error() says why. */
enum resp_result resp_reader_next(struct resp_reader *r, const struct resp **value);
const char *resp_reader_error(const struct resp_reader *r);

/* Appends one command. Binary safe. */
struct resp_arg {
    const char *bytes;
    size_t len;
};
void resp_append_command(struct buf *out, const struct resp_arg *args, size_t count);
struct resp_arg resp_text(const char *text);
bool resp_is(const struct resp *value, const char *text);

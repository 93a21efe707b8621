#include "common/resp.h"

#include <stdint.h>
#include <stdlib.h>

enum { MAX_LEN = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink; /* so that no read is left out */

/* Touches every byte that a value claims to have. */
static size_t weigh(const struct resp *value)
{
    size_t sum = 1;
    for (size_t i = 0; i < value->len; i++)
        sum += (unsigned char)value->text[i];
    if (value->len > 0 && value->text[value->len] != '\0')
        abort();
    for (size_t i = 0; i < value->count; i++)
        sum += weigh(value->elements[i]);
    return sum;
}

/* The first byte says in how large pieces the rest comes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct resp_reader *r = resp_reader_new(MAX_LEN);
    size_t piece = (size_t)data[0] + 1;
    enum resp_result result = RESP_MORE;
    for (size_t at = 1; at < size && result != RESP_BAD; at += piece) {
        const struct resp *value = NULL;
        resp_reader_feed(r, (const char *)data + at, size - at < piece ? size - at : piece);
        while ((result = resp_reader_next(r, &value)) == RESP_OK)
            sink = weigh(value);
    }
    if (result == RESP_BAD && resp_reader_error(r)[0] == '\0')
        abort();
    resp_reader_free(r);
    return 0;
}

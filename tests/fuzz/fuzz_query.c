#include "gateway/door/query.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct query q;
    enum query_result result = query_parse(&q, text, size);
    assert(q.count <= QUERY_PARAMS_MAX);
    for (size_t i = 0; i < q.count; i++) {
        assert(q.params[i].name[q.params[i].name_len] == '\0');
        assert(q.params[i].value[q.params[i].value_len] == '\0');
        assert(q.params[i].name_len + q.params[i].value_len <= size);
    }
    size_t len = 0;
    char *segment = query_decode_segment(text, size, &len);
    assert(segment == NULL || (len <= size && segment[len] == '\0'));
    assert(segment == NULL || result != QUERY_BAD_ESCAPE || memchr(text, '&', size) != NULL ||
           memchr(text, '=', size) != NULL);
    free(segment);
    query_fini(&q);
    return 0;
}

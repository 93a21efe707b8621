#include "gateway/transport/gap.h"

bool gap_is_there(const char *last_id, size_t len, const struct id *position, struct id *from)
{
    if (len == 0)
        return false;
    if (!id_parse(from, last_id, len))
        *from = (struct id){0};
    return id_compare(from, position) != 0;
}

void gap_append_json(struct buf *out, const struct id *from, const struct id *to)
{
    char from_text[ID_TEXT_MAX], to_text[ID_TEXT_MAX];
    (void)id_format(from, from_text);
    (void)id_format(to, to_text);
    buf_printf(out, "{\"from\":\"%s\",\"to\":\"%s\",\"reason\":\"resume_unavailable\"}", from_text,
               to_text);
}

#include "common/link_output.h"

#include <errno.h>
#include <sys/socket.h>

/* What went out is removed only once it is the larger half: moving the rest costs no more than
 * writing it did. */
static void compact(struct link_output *o)
{
    if (o->sent_len <= o->bytes.len / 2)
        return;
    buf_consume(&o->bytes, o->sent_len);
    o->sent_len = 0;
}

enum link_output_result link_output_write(struct link_output *o, int fd)
{
    while (o->sent_len < o->bytes.len) {
        ssize_t n =
            send(fd, o->bytes.bytes + o->sent_len, o->bytes.len - o->sent_len, MSG_NOSIGNAL);
        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1) {
            enum link_output_result result =
                errno == EAGAIN ? LINK_OUTPUT_WAIT : LINK_OUTPUT_FAILED;
            compact(o);
            return result;
        }
        o->sent_len += (size_t)n;
    }
    compact(o);
    return LINK_OUTPUT_EMPTY;
}

size_t link_output_unsent(const struct link_output *o)
{
    return o->bytes.len - o->sent_len;
}

void link_output_clear(struct link_output *o)
{
    o->bytes.len = 0;
    o->sent_len = 0;
}

void link_output_fini(struct link_output *o)
{
    buf_fini(&o->bytes);
    o->sent_len = 0;
}

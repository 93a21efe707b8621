/* batch: the next messages of a stream, in the order in which it must get them. */
#pragma once

#include "gateway/transport/stream.h"

#include <sys/uio.h>

enum { BATCH_FRAMES = 16, BATCH_BYTES = 64 * 1024 };

struct batch {
    int count;
    size_t len; /* bytes in all */
    struct iovec iov[BATCH_FRAMES];
    struct message *messages[BATCH_FRAMES];
    struct subscription *subs[BATCH_FRAMES];
};

/* Takes messages until the batch is full or nothing is left, and moves the cursors past them. A
 * stream whose channels have one position (SSE) takes them in the order of their arrival, and
 * nothing while one of its channels holds it. */
void batch_gather(struct batch *b, struct stream *s, struct subscription *woken);
/* The socket took so many bytes: moves the cursors of the messages that were not begun back; the
 * one that was begun becomes *partial (with a reference), `*offset` bytes of it being out. Returns
 * how many messages were begun. */
int batch_settle(struct batch *b, size_t taken, struct message **partial, uint32_t *offset);

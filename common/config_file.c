#include "common/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Reads one byte past max at most, so that /dev/zero ends too. Returns errno, or 0. */
static int read_all(int fd, struct buf *out, size_t max)
{
    enum { CHUNK = 16 * 1024 };
    while (out->len <= max) {
        size_t room = max + 1 - out->len;
        size_t len = room < CHUNK ? room : CHUNK;
        ssize_t n = read(fd, buf_reserve(out, len), len);
        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1)
            return errno;
        if (n == 0)
            return 0;
        out->len += (size_t)n;
    }
    return 0;
}

int config_file_read(struct buf *out, const char *path, size_t max, const char *key,
                     struct config_error *error)
{
    const struct config_place place = {path, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result = fd == -1 ? errno : read_all(fd, out, max);
    if (fd != -1)
        (void)close(fd);
    if (result != 0)
        return config_fault(error, place, key, "can't be read: %s", strerror(result));
    if (out->len > max)
        return config_fault(error, place, key, "too long; allowed: up to %zu bytes", max);
    return 0;
}

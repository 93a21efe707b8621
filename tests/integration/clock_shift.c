/* clock_shift: preloaded into a program, shifts its wall clock by the seconds that a file holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shift;

__attribute__((constructor)) static void open_shift(void)
{
    static const long none;
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *map = fd == -1 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    shift = map == MAP_FAILED ? &none : map;
    if (fd != -1)
        (void)close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, id, t);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) && shift != NULL)
        t->tv_sec += *shift;
    return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (out != NULL)
        *out = t.tv_sec;
    return t.tv_sec;
}

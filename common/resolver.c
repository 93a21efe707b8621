#include "common/resolver.h"

#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A thread that waits for a dead name server can't be ended, only forgotten: so their number is
 * bounded. */
enum { MAX_ADDRESSES = 32, MAX_THREADS = 16, STACK_LEN = 256 * 1024 };

struct question {
    int answer_fd;
    char *host;
    char *port;
};

union any_address {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The answer travels by value through a pipe, in one atomic write: the two threads share no
 * memory, and a question that was forgotten leaves nothing behind. */
struct answer {
    int error;
    unsigned count;
    struct {
        int family;
        socklen_t len;
        union any_address address;
    } found[MAX_ADDRESSES];
};
_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is one atomic write");

struct resolution_block {
    struct resolution resolution;
    struct addrinfo info[MAX_ADDRESSES];
    union any_address address[MAX_ADDRESSES];
};

static atomic_int running;

static void free_question(struct question *q)
{
    free(q->host);
    free(q->port);
    free(q);
}

static void collect(struct answer *a, const struct addrinfo *list)
{
    for (const struct addrinfo *i = list; i != NULL && a->count < MAX_ADDRESSES; i = i->ai_next) {
        if (i->ai_addrlen > sizeof(a->found[0].address))
            continue;
        a->found[a->count].family = i->ai_family;
        a->found[a->count].len = i->ai_addrlen;
        memcpy(&a->found[a->count].address, i->ai_addr, i->ai_addrlen);
        a->count++;
    }
    if (a->count == 0)
        a->error = EAI_NONAME;
}

static void *on_thread(void *arg)
{
    struct question *q = arg;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct answer a = {0};
    a.error = getaddrinfo(q->host, q->port, &hints, &list);
    if (a.error == 0) {
        collect(&a, list);
        freeaddrinfo(list);
    }
    ssize_t written = write(q->answer_fd, &a, sizeof(a));
    (void)written; /* nobody reads a question that was forgotten */
    (void)close(q->answer_fd);
    free_question(q);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* All signals stay blocked in the thread: they are the loop's, and a pipe without reader must not
 * kill the process. */
static int start_thread(struct question *q)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attr;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_LEN);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attr, on_thread, q);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return error;
}

int resolver_ask(const char *host, const char *port)
{
    int ends[2] = {-1, -1};
    int error = EAGAIN;
    if (atomic_fetch_add(&running, 1) >= MAX_THREADS)
        goto fail;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1) {
        error = errno;
        goto fail;
    }
    struct question *q = mem_alloc(sizeof(*q));
    *q = (struct question){.answer_fd = ends[1],
                           .host = mem_strndup(host, strlen(host)),
                           .port = mem_strndup(port, strlen(port))};
    error = start_thread(q);
    if (error == 0)
        return ends[0];
    free_question(q);
    (void)close(ends[0]);
    (void)close(ends[1]);
fail:
    atomic_fetch_sub(&running, 1);
    errno = error;
    return -1;
}

static struct resolution *unpack(const struct answer *a)
{
    struct resolution_block *block = mem_zalloc(sizeof(*block));
    block->resolution.error = a->error;
    for (unsigned i = 0; i < a->count; i++) {
        block->address[i] = a->found[i].address;
        block->info[i] = (struct addrinfo){
            .ai_family = a->found[i].family,
            .ai_socktype = SOCK_STREAM,
            .ai_addrlen = a->found[i].len,
            .ai_addr = (struct sockaddr *)&block->address[i],
            .ai_next = i + 1 < a->count ? &block->info[i + 1] : NULL,
        };
    }
    if (a->count > 0)
        block->resolution.addresses = block->info;
    return &block->resolution;
}

struct resolution *resolver_take(int fd)
{
    struct answer a;
    ssize_t n = read(fd, &a, sizeof(a));
    if (n == -1)
        return NULL;
    if (n != (ssize_t)sizeof(a))
        a = (struct answer){.error = EAI_FAIL};
    return unpack(&a);
}

void resolution_free(struct resolution *r)
{
    if (r != NULL)
        free(container_of(r, struct resolution_block, resolution));
}

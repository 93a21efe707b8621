#include "common/resp.h"

#include "common/mem.h"

#include <hiredis/read.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_COUNT = 8, KEPT_BUFFER_LEN = 64 * 1024 };

struct resp_reader {
    redisReader *hiredis;
    size_t max_len;
    uint64_t fed_len;   /* all bytes that ever came in */
    uint64_t taken_len; /* of them, what the replies handed out so far took */
    struct resp *last;  /* handed out, freed by the next call */
    bool is_dead;
    char error[128];
};

/* Announced lengths are not believed: the elements' table grows as elements come, and small
 * arrays (every push message) need no table of their own. */
struct array {
    struct resp value;
    size_t capacity;
    struct resp *room[ROOM_COUNT];
};

static void free_value(void *p)
{
    struct resp *value = p;
    if (value == NULL)
        return;
    for (size_t i = 0; i < value->count; i++)
        free_value(value->elements[i]);
    if (value->type == RESP_ARRAY && value->elements != ((struct array *)p)->room)
        free(value->elements);
    free(value);
}

static void add_element(struct array *a, struct resp *element)
{
    struct resp *value = &a->value;
    if (value->count == a->capacity) {
        a->capacity *= 2;
        struct resp **old = value->elements == a->room ? NULL : value->elements;
        value->elements = mem_realloc(old, a->capacity * sizeof(struct resp *));
        if (old == NULL)
            memcpy(value->elements, a->room, sizeof(a->room));
    }
    value->elements[value->count++] = element;
}

/* Values are given to their parent at once, so that the root owns all there is whenever the reader
 * dies; hiredis then frees the root. */
static void *adopt(const redisReadTask *task, struct resp *value)
{
    if (task->parent != NULL)
        add_element(task->parent->obj, value);
    return value;
}

static enum resp_type text_type(int hiredis_type)
{
    if (hiredis_type == REDIS_REPLY_ERROR)
        return RESP_ERROR;
    return hiredis_type == REDIS_REPLY_STATUS ? RESP_STATUS : RESP_STRING;
}

static void *on_string(const redisReadTask *task, char *bytes, size_t len)
{
    struct resp *value = mem_alloc(sizeof(*value) + len + 1);
    char *text = (char *)(value + 1);
    memcpy(text, bytes, len);
    text[len] = '\0';
    *value = (struct resp){.type = text_type(task->type), .text = text, .len = len};
    return adopt(task, value);
}

static void *on_array(const redisReadTask *task, int count)
{
    (void)count;
    struct array *a = mem_alloc(sizeof(*a));
    a->value = (struct resp){.type = RESP_ARRAY, .elements = a->room};
    a->capacity = ROOM_COUNT;
    return adopt(task, &a->value);
}

static void *on_integer(const redisReadTask *task, long long integer)
{
    struct resp *value = mem_alloc(sizeof(*value));
    *value = (struct resp){.type = RESP_INTEGER, .integer = integer};
    return adopt(task, value);
}

static void *on_nil(const redisReadTask *task)
{
    struct resp *value = mem_alloc(sizeof(*value));
    *value = (struct resp){.type = RESP_NIL};
    return adopt(task, value);
}

/* hiredis asks for a pointer to non-const. */
static redisReplyObjectFunctions builders = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
    .freeObject = free_value,
};

struct resp_reader *resp_reader_new(size_t max_len)
{
    struct resp_reader *r = mem_zalloc(sizeof(*r));
    r->max_len = max_len;
    r->hiredis = redisReaderCreateWithFunctions(&builders);
    if (r->hiredis == NULL)
        abort();
    r->hiredis->maxbuf = KEPT_BUFFER_LEN;
    return r;
}

void resp_reader_free(struct resp_reader *r)
{
    if (r == NULL)
        return;
    free_value(r->last);
    redisReaderFree(r->hiredis);
    free(r);
}

static void release_last(struct resp_reader *r)
{
    free_value(r->last);
    r->last = NULL;
}

static enum resp_result die(struct resp_reader *r, const char *why)
{
    r->is_dead = true;
    (void)snprintf(r->error, sizeof(r->error), "%s", why);
    return RESP_BAD;
}

void resp_reader_feed(struct resp_reader *r, const char *bytes, size_t len)
{
    release_last(r);
    if (r->is_dead || len == 0)
        return;
    if (redisReaderFeed(r->hiredis, bytes, len) != REDIS_OK) {
        (void)die(r, r->hiredis->errstr);
        return;
    }
    r->fed_len += len;
}

/* hiredis takes the elements of an unfinished array out of its buffer, so what one reply takes is
 * counted here and not read off that buffer. */
enum resp_result resp_reader_next(struct resp_reader *r, const struct resp **value)
{
    void *reply = NULL;
    release_last(r);
    if (r->is_dead)
        return RESP_BAD;
    if (redisReaderGetReply(r->hiredis, &reply) != REDIS_OK)
        return die(r, r->hiredis->errstr);
    r->last = reply;
    uint64_t end = r->fed_len;
    if (reply != NULL)
        end -= r->hiredis->len - r->hiredis->pos;
    if (end - r->taken_len > r->max_len) {
        release_last(r);
        return die(r, "reply too long");
    }
    if (reply == NULL)
        return RESP_MORE;
    r->taken_len = end;
    *value = reply;
    return RESP_OK;
}

const char *resp_reader_error(const struct resp_reader *r)
{
    return r->error;
}

void resp_append_command(struct buf *out, const struct resp_arg *args, size_t count)
{
    buf_printf(out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "$%zu\r\n", args[i].len);
        buf_append(out, args[i].bytes, args[i].len);
        buf_append(out, "\r\n", 2);
    }
}

struct resp_arg resp_text(const char *text)
{
    return (struct resp_arg){text, strlen(text)};
}

bool resp_is(const struct resp *value, const char *text)
{
    if (value->type != RESP_STRING && value->type != RESP_STATUS && value->type != RESP_ERROR)
        return false;
    return value->len == strlen(text) && memcmp(value->text, text, value->len) == 0;
}

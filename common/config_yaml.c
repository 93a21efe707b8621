#include "common/config_yaml.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    const char *text;
    size_t len;
    const char *origin;
    struct config_error *error;
};

static int fault(const struct reader *r, size_t line, const char *what)
{
    const struct config_place place = {r->origin, line};
    return config_fault(r->error, place, "", "%s", what);
}

static size_t line_of(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

/* The reader of bytes below the scanner knows only an offset. */
static size_t line_at(const struct reader *r, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < r->len; i++)
        line += r->text[i] == '\n';
    return line;
}

static int syntax_fault(const struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem != NULL ? p->problem : "not YAML";
    if (p->error == YAML_READER_ERROR)
        return fault(r, line_at(r, p->problem_offset), problem);
    return fault(r, p->problem_mark.line + 1, problem);
}

static const char *anchor_of(const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL;
    if (event->type == YAML_SCALAR_EVENT)
        anchor = event->data.scalar.anchor;
    else if (event->type == YAML_MAPPING_START_EVENT)
        anchor = event->data.mapping_start.anchor;
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        anchor = event->data.sequence_start.anchor;
    return (const char *)anchor;
}

static const char *tag_of(const yaml_event_t *event)
{
    const yaml_char_t *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT)
        tag = event->data.scalar.tag;
    else if (event->type == YAML_MAPPING_START_EVENT)
        tag = event->data.mapping_start.tag;
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        tag = event->data.sequence_start.tag;
    return (const char *)tag;
}

static bool has_nul(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.length != 0 &&
           memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL;
}

/* The next event that is allowed; on success the caller deletes it. */
static int next_event(struct reader *r, yaml_event_t *event)
{
    const char *what = NULL;
    if (!yaml_parser_parse(&r->parser, event))
        return syntax_fault(r);
    if (event->type == YAML_ALIAS_EVENT || anchor_of(event) != NULL)
        what = "anchors and aliases are not allowed; write the value out";
    else if (tag_of(event) != NULL)
        what = "tags are not allowed; write the value alone";
    else if (has_nul(event))
        what = "a NUL character is not allowed";
    if (what == NULL)
        return 0;
    size_t line = line_of(event);
    yaml_event_delete(event);
    return fault(r, line, what);
}

static bool is_end(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
}

static struct config_node *node_new(const yaml_event_t *event)
{
    struct config_node *node = mem_zalloc(sizeof(*node));
    node->line = line_of(event);
    if (event->type == YAML_MAPPING_START_EVENT) {
        node->kind = CONFIG_NODE_MAP;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = CONFIG_NODE_LIST;
    } else {
        node->kind = CONFIG_NODE_TEXT;
        node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->text = mem_strndup((const char *)event->data.scalar.value, event->data.scalar.length);
    }
    return node;
}

/* Takes the key out of the event and goes on to the event of its value. */
static int take_key(struct reader *r, yaml_event_t *event, char **key)
{
    size_t line = line_of(event);
    if (event->type != YAML_SCALAR_EVENT) {
        yaml_event_delete(event);
        return fault(r, line, "a key must be a single word");
    }
    *key = mem_strndup((const char *)event->data.scalar.value, event->data.scalar.length);
    yaml_event_delete(event);
    if (strcmp(*key, "<<") == 0)
        return fault(r, line, "merge keys (<<) are not allowed; write the values out");
    return next_event(r, event);
}

static int read_children(struct reader *r, struct config_node *parent, int depth);

/* Deletes the event. What was read is linked into the tree at once, so that freeing the root frees
 * it whatever happens. */
static int read_node(struct reader *r, yaml_event_t *event, struct config_node **link, int depth)
{
    struct config_node *node = node_new(event);
    yaml_event_delete(event);
    *link = node;
    if (node->kind == CONFIG_NODE_TEXT)
        return 0;
    if (depth >= CONFIG_DEPTH_MAX)
        return fault(r, node->line, "nested deeper than 8");
    return read_children(r, node, depth + 1);
}

static int read_children(struct reader *r, struct config_node *parent, int depth)
{
    struct config_node **link = &parent->children;
    for (;;) {
        yaml_event_t event;
        char *key = NULL;
        if (next_event(r, &event) != 0)
            return -1;
        if (is_end(&event)) {
            yaml_event_delete(&event);
            return 0;
        }
        size_t line = line_of(&event); /* of the key, where there is one: a map begins below it */
        if (parent->kind == CONFIG_NODE_MAP && take_key(r, &event, &key) != 0) {
            free(key);
            return -1;
        }
        int result = read_node(r, &event, link, depth);
        (*link)->key = key;
        (*link)->line = line;
        if (result != 0)
            return -1;
        link = &(*link)->next;
    }
}

static int skip_event(struct reader *r)
{
    yaml_event_t event;
    if (next_event(r, &event) != 0)
        return -1;
    yaml_event_delete(&event);
    return 0;
}

/* Whether the stream ends here; where it does not, *line is where it goes on. -1: a fault. */
static int reached_end(struct reader *r, size_t *line)
{
    yaml_event_t event;
    if (next_event(r, &event) != 0)
        return -1;
    int is_end_of_stream = event.type == YAML_STREAM_END_EVENT;
    *line = line_of(&event);
    yaml_event_delete(&event);
    return is_end_of_stream;
}

/* The stream starts, a document starts, its only node, it ends, the stream ends. */
static int read_stream(struct reader *r, struct config_node **root)
{
    yaml_event_t event;
    size_t line = 0;
    int ended = skip_event(r) == 0 ? reached_end(r, &line) : -1;
    if (ended != 0)
        return ended == 1 ? 0 : -1;
    if (next_event(r, &event) != 0 || read_node(r, &event, root, 0) != 0 || skip_event(r) != 0)
        return -1;
    ended = reached_end(r, &line);
    if (ended == 0)
        return fault(r, line, "a second document is not allowed");
    return ended == 1 ? 0 : -1;
}

int config_yaml_parse(struct config_node **root, const char *text, size_t len, const char *origin,
                      struct config_error *error)
{
    static const char bom[] = "\xef\xbb\xbf";
    /* The scanner would count it as a column, and the first key would stand deeper than the next.
     */
    if (len >= sizeof(bom) - 1 && memcmp(text, bom, sizeof(bom) - 1) == 0) {
        text += sizeof(bom) - 1;
        len -= sizeof(bom) - 1;
    }
    struct reader r = {.text = text, .len = len, .origin = origin, .error = error};
    *root = NULL;
    if (!yaml_parser_initialize(&r.parser))
        return fault(&r, 0, "out of memory");
    /* Never guessed: a stray byte at the start must not make it UTF-16. */
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int result = read_stream(&r, root);
    yaml_parser_delete(&r.parser);
    if (result != 0) {
        config_yaml_free(*root);
        *root = NULL;
    }
    return result;
}

struct config_node *config_yaml_text(const char *text, bool is_plain)
{
    struct config_node *node = mem_zalloc(sizeof(*node));
    node->kind = CONFIG_NODE_TEXT;
    node->is_plain = is_plain;
    node->text = mem_strndup(text, strlen(text));
    return node;
}

void config_yaml_free(struct config_node *node)
{
    while (node != NULL) {
        struct config_node *next = node->next;
        config_yaml_free(node->children);
        free(node->key);
        free(node->text);
        free(node);
        node = next;
    }
}

/* Any bytes as a file, or as an assignment when they begin with "--set ". What is taken must print
 * to YAML that is taken and prints the same. */
#include "common/config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int feed(struct config *c, const char *bytes, size_t len, struct config_error *error)
{
    static const char set[] = "--set ";
    const size_t skip = sizeof(set) - 1;
    if (len < skip || memcmp(bytes, set, skip) != 0)
        return config_load_text(c, bytes, len, "fuzz", error);
    char *assignment = strndup(bytes + skip, len - skip);
    int result = config_set(c, assignment, error);
    free(assignment);
    return result;
}

static char *print(const struct config *c, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    assert(out != NULL);
    config_print(c, out);
    (void)fclose(out);
    return text;
}

/* No file that the input names may be opened. */
static int finish(struct config *c, struct config_error *error)
{
    if (config_set(c, "redis.password_file=", error) != 0)
        return -1;
    return config_finish(c, error);
}

static void check_round_trip(const struct config *c)
{
    struct config_error error;
    size_t len = 0;
    size_t again_len = 0;
    struct config *again = config_new();
    char *text = print(c, &len);
    int result = config_load_text(again, text, len, "printed", &error);
    assert(result == 0);
    result = config_finish(again, &error);
    assert(result == 0);
    char *again_text = print(again, &again_len);
    assert(len == again_len && memcmp(text, again_text, len) == 0);
    free(text);
    free(again_text);
    config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct config_error error = {{0}};
    struct config *c = config_new();
    if (feed(c, (const char *)data, len, &error) == 0 && finish(c, &error) == 0)
        check_round_trip(c);
    else
        assert(error.text[0] != '\0' && memchr(error.text, '\0', sizeof(error.text)) != NULL);
    config_free(c);
    return 0;
}

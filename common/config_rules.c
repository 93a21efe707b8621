#include "common/config_rules.h"

#include "common/names.h"
#include "common/redis_address.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

enum {
    HOST_MAX = 253,
    PORT_DIGITS_MAX = 5,
    PORT_MAX = 65535,
    USER_MAX = 128,
    SECRET_MAX = 512,
    BROKER_NAME_MAX = 64,
    CONTENT_MAX = 64 * 1024
};

#define DIGITS "0123456789"
#define LETTERS                                                                                    \
    "abcdefghijklmnopqrstuvwxyz"                                                                   \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_made_of(const char *text, size_t len, const char *alphabet)
{
    return strspn(text, alphabet) >= len;
}

static bool is_port(const char *text)
{
    size_t len = strlen(text);
    unsigned port = 0;
    if (len == 0 || len > PORT_DIGITS_MAX || !is_made_of(text, len, DIGITS))
        return false;
    for (size_t i = 0; i < len; i++)
        port = port * 10 + (unsigned)(text[i] - '0');
    return port <= PORT_MAX;
}

static bool is_host(const char *text, size_t len)
{
    char host[HOST_MAX + 1];
    struct in_addr address;
    if (len == 0 || len > HOST_MAX || !is_made_of(text, len, LETTERS DIGITS ".-_"))
        return false;
    if (!is_made_of(text, len, DIGITS "."))
        return true;
    memcpy(host, text, len);
    host[len] = '\0';
    return inet_pton(AF_INET, host, &address) == 1;
}

static bool is_bracketed(const char *text, size_t len)
{
    char host[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']' || len - 2 >= sizeof(host))
        return false;
    memcpy(host, text + 1, len - 2);
    host[len - 2] = '\0';
    return inet_pton(AF_INET6, host, &address) == 1;
}

static bool is_listen(const char *text)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !is_port(colon + 1))
        return false;
    size_t len = (size_t)(colon - text);
    return text[0] == '[' ? is_bracketed(text, len) : is_host(text, len);
}

static bool is_optional_listen(const char *text)
{
    return text[0] == '\0' || is_listen(text);
}

/* Control characters, and what YAML takes for a line break or refuses to read: none of them is
 * ever meant, and a value without them can be printed and read back. */
static bool has_control(const char *text)
{
    static const char *const others[] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf",
                                         "\xef\xbf\xbe", "\xef\xbf\xbf"};
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)p[0];
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)p[1] < 0xa0))
            return true;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strstr(text, others[i]) != NULL)
            return true;
    }
    return false;
}

static bool is_text(const char *text, size_t max)
{
    size_t len = strlen(text);
    return len <= max && text_is_utf8(text, len) && !has_control(text);
}

static bool is_redis_address(const char *text)
{
    struct redis_address address;
    bool has_space = strchr(text, ' ') != NULL && strncmp(text, "unix:", 5) != 0;
    return is_text(text, PATH_MAX) && !has_space && redis_address_parse(&address, text);
}

static bool is_user(const char *text)
{
    return is_text(text, USER_MAX) && strchr(text, ' ') == NULL;
}

/* Not is_text: Redis takes any bytes, and what is never shown need not be showable. */
static bool is_secret(const char *text)
{
    size_t len = strlen(text);
    return len <= SECRET_MAX && strcspn(text, "\r\n") == len;
}

static bool is_path(const char *text)
{
    return is_text(text, PATH_MAX - 1);
}

static bool is_prefix(const char *text)
{
    return name_is_prefix(text, strlen(text));
}

static bool is_broker_name(const char *text)
{
    size_t len = strlen(text);
    return len <= BROKER_NAME_MAX && is_made_of(text, len, LETTERS DIGITS "._-");
}

static bool is_channel(const char *text)
{
    return name_is_channel(text, strlen(text));
}

static bool is_content(const char *text)
{
    return text[0] != '\0' && is_text(text, CONTENT_MAX);
}

const struct config_rule config_rule_listen = {"host:port or [v6]:port", is_listen};
const struct config_rule config_rule_optional_listen = {"host:port, [v6]:port or empty",
                                                        is_optional_listen};
const struct config_rule config_rule_redis_address = {
    "host:port, [v6]:port or unix:/path of at most 107 bytes", is_redis_address};
const struct config_rule config_rule_user = {"up to 128 bytes of text without spaces", is_user};
const struct config_rule config_rule_secret = {"one line of up to 512 bytes", is_secret};
const struct config_rule config_rule_path = {"a path", is_path};
const struct config_rule config_rule_prefix = {
    "1 to 32 of A-Z a-z 0-9 _ - and one colon at the end", is_prefix};
const struct config_rule config_rule_broker_name = {"up to 64 of A-Z a-z 0-9 . _ -",
                                                    is_broker_name};
const struct config_rule config_rule_channel = {"1 to 200 of A-Z a-z 0-9 . _ : / @ -", is_channel};
const struct config_rule config_rule_content = {"1 byte to 64KiB of text on one line", is_content};

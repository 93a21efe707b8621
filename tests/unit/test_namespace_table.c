#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "broker/namespace_table.h"

static char name_default[] = "default";
static char name_chat[] = "chat";

static void make(struct namespace_table *t, struct namespace_config *namespaces, size_t count)
{
    const struct config config = {.namespaces = namespaces, .namespace_count = count};
    namespace_table_init(t, &config);
}

static const struct namespace_config first = {.name = name_default,
                                              .content = CONTENT_AUTO,
                                              .max_payload = 65536,
                                              .history_messages = 1000,
                                              .history_ttl_ms = 600000};
static const struct namespace_config second = {
    .name = name_chat, .content = CONTENT_JSON, .max_payload = 10, .history_ttl_ms = 1000};

static void writes_a_row_a_namespace(void **state)
{
    (void)state;
    struct namespace_config namespaces[] = {first, second};
    struct namespace_table t;
    make(&t, namespaces, 2);
    assert_int_equal(t.count, 2);
    assert_string_equal(t.names[0], "ns:default");
    assert_string_equal(t.rows[0], "messages=1000 ttl_ms=600000 max_payload=65536 content=auto");
    assert_string_equal(t.names[1], "ns:chat");
    assert_string_equal(t.rows[1], "messages=0 ttl_ms=1000 max_payload=10 content=json");
    assert_int_equal(strlen(t.hash), 16);
    namespace_table_fini(&t);
}

static void hashes_what_is_said_and_not_in_which_order(void **state)
{
    (void)state;
    struct namespace_config forth[] = {first, second};
    struct namespace_config back[] = {second, first};
    struct namespace_config other[] = {first, second};
    other[1].history_ttl_ms++;
    struct namespace_table a, b, c;
    make(&a, forth, 2);
    make(&b, back, 2);
    make(&c, other, 2);
    assert_string_equal(a.hash, b.hash);
    assert_string_not_equal(a.hash, c.hash);
    namespace_table_fini(&a);
    namespace_table_fini(&b);
    namespace_table_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_row_a_namespace),
        cmocka_unit_test(hashes_what_is_said_and_not_in_which_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/console/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct asset *find(const char *path)
{
    return asset_find(path, strlen(path));
}

/* ctest runs the tests in the source tree's root. */
static void assert_same_as_file(const struct asset *a, const char *file)
{
    FILE *in = fopen(file, "rb");
    assert_non_null(in);
    unsigned char *bytes = malloc(a->len + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, a->len + 1, in), a->len);
    assert_int_equal(memcmp(bytes, a->bytes, a->len), 0);
    free(bytes);
    (void)fclose(in);
}

static void serves_the_files_byte_for_byte(void **state)
{
    (void)state;
    assert_same_as_file(find("/"), "gateway/console/index.html");
    assert_same_as_file(find("/tidecast.js"), "gateway/console/tidecast.js");
}

static void names_the_type_of_each(void **state)
{
    (void)state;
    assert_string_equal(find("/")->content_type, "text/html; charset=utf-8");
    assert_string_equal(find("/tidecast.js")->content_type, "text/javascript; charset=utf-8");
}

static void gives_each_a_quoted_etag_of_its_own(void **state)
{
    (void)state;
    const char *page = find("/")->etag;
    const char *script = find("/tidecast.js")->etag;
    assert_int_equal(strlen(page), 18);
    assert_int_equal(page[0], '"');
    assert_int_equal(page[17], '"');
    assert_string_not_equal(page, script);
}

static void knows_no_other_path(void **state)
{
    (void)state;
    static const char *const others[] = {"",   "/tidecast",   "/tidecast.js/", "/tidecast.jsx",
                                         "//", "/index.html", "/TIDECAST.JS"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_null(find(others[i]));
    assert_null(asset_find("/\0", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_the_files_byte_for_byte),
        cmocka_unit_test(names_the_type_of_each),
        cmocka_unit_test(gives_each_a_quoted_etag_of_its_own),
        cmocka_unit_test(knows_no_other_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/id.h"
#include "tests/unit/exact.h"

#include <stdlib.h>

static bool parses(const char *text, size_t len, struct id *id)
{
    char *copy = exact(text, len);
    bool ok = id_parse(id, copy, len);
    free(copy);
    return ok;
}

static void reads_and_writes_the_same_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"0-0", "1-0", "0-1", "1700000000000-12",
                                        "18446744073709551615-18446744073709551615"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct id id;
        char written[ID_TEXT_MAX];
        assert_true(parses(texts[i], strlen(texts[i]), &id));
        assert_int_equal(id_format(&id, written), strlen(texts[i]));
        assert_string_equal(written, texts[i]);
    }
}

static void refuses_every_other_spelling_and_leaves_the_id_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "-",
                                        "1",
                                        "1-",
                                        "-1",
                                        "01-0",
                                        "0-01",
                                        "00-0",
                                        "+1-0",
                                        "1-+0",
                                        " 1-0",
                                        "1-0 ",
                                        "1 -0",
                                        "1-0-0",
                                        "--",
                                        "0x1-0",
                                        "1-a",
                                        "1.0-0",
                                        "18446744073709551616-0",
                                        "0-18446744073709551616",
                                        "99999999999999999999-0",
                                        "100000000000000000000-0",
                                        "0-340282366920938463463374607431768211456"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct id id = {.ms = 7, .seq = 8};
        assert_false(parses(texts[i], strlen(texts[i]), &id));
        assert_int_equal(id.ms, 7);
        assert_int_equal(id.seq, 8);
    }
    struct id id;
    assert_false(parses("1-0\0", 4, &id));
    assert_false(id_parse(&id, NULL, 0));
}

static void orders_by_time_and_then_by_sequence(void **state)
{
    (void)state;
    const struct id rising[] = {{0, 0}, {0, 1}, {0, UINT64_MAX}, {1, 0}, {1, 1}, {UINT64_MAX, 0}};
    const int count = sizeof(rising) / sizeof(rising[0]);
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < count; b++) {
            int order = id_compare(&rising[a], &rising[b]);
            assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
        }
        assert_int_equal(id_is_zero(&rising[a]), a == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes_the_same_text),
        cmocka_unit_test(refuses_every_other_spelling_and_leaves_the_id_alone),
        cmocka_unit_test(orders_by_time_and_then_by_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

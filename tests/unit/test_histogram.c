#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bench/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 20000 };

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void agrees_with_an_exact_sort_to_a_thousandth(void **state)
{
    (void)state;
    static const double quantiles[] = {0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 0.99999, 1.0};
    struct histogram *h = calloc(1, sizeof(*h));
    uint64_t *values = calloc(VALUES, sizeof(*values));
    uint64_t seed = 88172645463325252u;
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = next_random(&seed) >> (38 + next_random(&seed) % 24);
        histogram_record(h, values[i]);
    }
    qsort(values, VALUES, sizeof(*values), by_value);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        size_t rank = (size_t)ceil(quantiles[i] * VALUES);
        uint64_t exact = values[rank == 0 ? 0 : rank - 1];
        uint64_t told = histogram_quantile(h, quantiles[i]);
        assert_in_range(told, exact, exact + exact / HISTOGRAM_STEPS);
    }
    assert_int_equal(h->count, VALUES);
    assert_int_equal(histogram_quantile(h, 1.0), values[VALUES - 1]);
    free(values);
    free(h);
}

static void every_border_of_a_bucket_is_in_order(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (unsigned bit = 0; bit < 27; bit++) {
        for (uint64_t value = ((uint64_t)1 << bit) - 1; value <= ((uint64_t)1 << bit) + 1;
             value++) {
            struct histogram *h = calloc(1, sizeof(*h));
            histogram_record(h, value);
            histogram_record(h, UINT32_MAX);
            uint64_t told = histogram_quantile(h, 0.5);
            assert_in_range(told, value, value + value / HISTOGRAM_STEPS);
            assert_true(told >= before || value < 3);
            before = told;
            free(h);
        }
    }
}

static void what_is_too_large_for_its_buckets_is_still_told_exactly_as_the_largest(void **state)
{
    (void)state;
    struct histogram *h = calloc(1, sizeof(*h));
    histogram_record(h, 5);
    histogram_record(h, UINT64_MAX);
    assert_int_equal(histogram_quantile(h, 0.5), 5);
    assert_true(histogram_quantile(h, 1.0) == UINT64_MAX);
    free(h);
}

static void an_empty_one_says_zero(void **state)
{
    (void)state;
    struct histogram *h = calloc(1, sizeof(*h));
    assert_int_equal(histogram_quantile(h, 0.99), 0);
    free(h);
}

static void prints_the_buckets_in_use(void **state)
{
    (void)state;
    struct histogram *h = calloc(1, sizeof(*h));
    histogram_record(h, 7);
    histogram_record(h, 7);
    histogram_record(h, 2048);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    histogram_print(h, out);
    (void)fclose(out);
    assert_string_equal(text, "[[7,2],[2049,1]]");
    free(text);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_exact_sort_to_a_thousandth),
        cmocka_unit_test(every_border_of_a_bucket_is_in_order),
        cmocka_unit_test(what_is_too_large_for_its_buckets_is_still_told_exactly_as_the_largest),
        cmocka_unit_test(an_empty_one_says_zero),
        cmocka_unit_test(prints_the_buckets_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

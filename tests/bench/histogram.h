/* histogram: how often each value was seen, to three significant digits. No I/O but the printing.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* Values below 2 * HISTOGRAM_STEPS have a bucket each; above, every power of two is divided into
 * HISTOGRAM_STEPS buckets. What is larger than the last bucket counts in the last bucket. */
enum {
    HISTOGRAM_STEP_BITS = 10,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
    HISTOGRAM_OCTAVES = 18
};
enum { HISTOGRAM_BUCKETS = HISTOGRAM_STEPS * HISTOGRAM_OCTAVES };

/* Starts as {0}. */
struct histogram {
    uint64_t count;
    uint64_t largest; /* exact */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_record(struct histogram *h, uint64_t value);
/* The upper bound of the bucket that holds the value at `quantile` (0 to 1) of all values in order,
 * but never more than the largest value seen; 0 when there is none. */
uint64_t histogram_quantile(const struct histogram *h, double quantile);
/* `[[upper bound, count],...]`, buckets in use only, so that several can be added up elsewhere. */
void histogram_print(const struct histogram *h, FILE *out);

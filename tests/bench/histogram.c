#include "tests/bench/histogram.h"

#include <inttypes.h>
#include <math.h>

static unsigned bucket_of(uint64_t value)
{
    if (value < UINT64_C(2) * HISTOGRAM_STEPS)
        return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    if (shift > HISTOGRAM_OCTAVES - 2)
        return HISTOGRAM_BUCKETS - 1;
    return shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

static uint64_t upper_bound(unsigned bucket)
{
    if (bucket < 2 * HISTOGRAM_STEPS)
        return bucket;
    unsigned shift = bucket / HISTOGRAM_STEPS - 1;
    uint64_t first = (uint64_t)(bucket - shift * HISTOGRAM_STEPS) << shift;
    return first + ((uint64_t)1 << shift) - 1;
}

void histogram_record(struct histogram *h, uint64_t value)
{
    h->buckets[bucket_of(value)]++;
    h->count++;
    if (value > h->largest)
        h->largest = value;
}

uint64_t histogram_quantile(const struct histogram *h, double quantile)
{
    uint64_t rank = (uint64_t)ceil(quantile * (double)h->count);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        seen += h->buckets[i];
        if (seen != 0 && seen >= rank)
            return upper_bound(i) < h->largest ? upper_bound(i) : h->largest;
    }
    return h->largest;
}

void histogram_print(const struct histogram *h, FILE *out)
{
    const char *separator = "";
    (void)fputc('[', out);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (h->buckets[i] == 0)
            continue;
        uint64_t bound = i == HISTOGRAM_BUCKETS - 1 ? h->largest : upper_bound(i);
        (void)fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", separator, bound, h->buckets[i]);
        separator = ",";
    }
    (void)fputc(']', out);
}

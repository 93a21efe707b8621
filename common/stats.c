#include "common/stats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum kind { GAUGE, COUNTER };

static const struct row {
    enum kind kind;
    const char *metric;
    const char *labels;
    const char *help;
} rows[STAT_COUNT] = {
#define X(kind, field, metric, labels, help) {kind, metric, labels, help},
    STATS_TABLE(X)
#undef X
};

/* A slot fills whole cache lines, so that workers never share one. */
struct slot {
    _Alignas(64) _Atomic uint64_t values[STAT_COUNT];
};

/* Until stats_init, for programs that share nothing. */
static struct slot private_slot;
static struct slot *slots = &private_slot;
static struct slot *mine = &private_slot;
static unsigned slot_count = 1;

void stats_init(unsigned count)
{
    void *memory = mmap(NULL, count * sizeof(struct slot), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        abort();
    }
    slots = memory;
    slot_count = count;
    mine = &slots[0];
}

void stats_use(unsigned slot)
{
    assert(slot < slot_count);
    mine = &slots[slot];
}

/* One writer a slot: a plain load and store, atomic only so that readers see whole values. */
void stats_set(enum counter stat, uint64_t value)
{
    atomic_store_explicit(&mine->values[stat], value, memory_order_relaxed);
}

static uint64_t current(enum counter stat)
{
    return atomic_load_explicit(&mine->values[stat], memory_order_relaxed);
}

void stats_add(enum counter stat, uint64_t n)
{
    stats_set(stat, current(stat) + n);
}

void stats_sub(enum counter stat, uint64_t n)
{
    stats_set(stat, current(stat) - n);
}

const char *stats_labels(enum counter stat)
{
    return rows[stat].labels;
}

uint64_t stats_sum(enum counter stat)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < slot_count; i++)
        sum += atomic_load_explicit(&slots[i].values[stat], memory_order_relaxed);
    return sum;
}

void stats_clear_gauges(unsigned slot)
{
    assert(slot < slot_count);
    for (int stat = 0; stat < STAT_COUNT; stat++) {
        if (rows[stat].kind == GAUGE)
            atomic_store_explicit(&slots[slot].values[stat], 0, memory_order_relaxed);
    }
}

static void print_head(struct buf *out, const struct row *row)
{
    buf_printf(out, "# TYPE %s %s\n", row->metric, row->kind == COUNTER ? "counter" : "gauge");
    buf_printf(out, "# HELP %s %s\n", row->metric, row->help);
}

void stats_print(struct buf *out)
{
    const char *metric = "";
    for (int stat = 0; stat < STAT_COUNT; stat++) {
        const struct row *row = &rows[stat];
        if (strcmp(metric, row->metric) != 0)
            print_head(out, row);
        metric = row->metric;
        buf_append_text(out, row->metric);
        if (row->kind == COUNTER)
            buf_append_text(out, "_total");
        if (row->labels[0] != '\0')
            buf_printf(out, "{%s}", row->labels);
        buf_printf(out, " %" PRIu64 "\n", stats_sum((enum counter)stat));
    }
    buf_append_text(out, "# EOF\n");
}

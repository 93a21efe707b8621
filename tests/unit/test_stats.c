#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *print(void)
{
    struct buf out = {0};
    stats_print(&out);
    char *text = mem_strndup(out.bytes, out.len);
    buf_fini(&out);
    return text;
}

static void assert_printed(const char *line)
{
    char *text = print();
    char *at = strstr(text, line);
    assert_non_null(at);
    assert_true(at == text || at[-1] == '\n');
    free(text);
}

static void in_child(unsigned slot, void (*act)(void))
{
    int status;
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        stats_use(slot);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void counts_before_anything_is_shared(void **state)
{
    (void)state;
    stats_add(STAT_heartbeats, 2);
    assert_int_equal(stats_sum(STAT_heartbeats), 2);
    stats_set(STAT_heartbeats, 0);
}

static void work(void)
{
    stats_add(STAT_connections_sse, 10);
    stats_sub(STAT_connections_sse, 3);
    stats_add(STAT_opened_sse, 10);
    stats_set(STAT_ready, 1);
}

static void what_processes_count_is_summed_and_outlives_them(void **state)
{
    (void)state;
    stats_init(3);
    in_child(1, work);
    in_child(2, work);
    assert_int_equal(stats_sum(STAT_connections_sse), 14);
    assert_int_equal(stats_sum(STAT_opened_sse), 20);
    assert_int_equal(stats_sum(STAT_ready), 2);
    stats_add(STAT_opened_sse, 1); /* this process has the first slot */
    assert_int_equal(stats_sum(STAT_opened_sse), 21);
    assert_printed("tidecast_connections{transport=\"sse\"} 14\n");
    assert_printed("tidecast_streams_opened_total{transport=\"sse\"} 21\n");
}

static void the_dead_leave_no_gauges_and_keep_their_counters(void **state)
{
    (void)state;
    stats_init(3);
    in_child(1, work);
    in_child(2, work);
    stats_clear_gauges(1);
    assert_int_equal(stats_sum(STAT_connections_sse), 7);
    assert_int_equal(stats_sum(STAT_ready), 1);
    assert_int_equal(stats_sum(STAT_opened_sse), 20);
    stats_clear_gauges(2);
    assert_int_equal(stats_sum(STAT_connections_sse), 0);
    assert_int_equal(stats_sum(STAT_opened_sse), 20);
}

static void a_child_in_a_used_slot_counts_on(void **state)
{
    (void)state;
    stats_init(2);
    in_child(1, work);
    stats_clear_gauges(1);
    in_child(1, work);
    assert_int_equal(stats_sum(STAT_connections_sse), 7);
    assert_int_equal(stats_sum(STAT_opened_sse), 20);
}

/* OpenMetrics 1.0, as far as it concerns text like ours: each metric's TYPE and HELP once, before
 * its samples, which stand together; counters' samples end in _total; # EOF at the end. */
struct reader {
    char metric[100];
    char type[20];
    char seen[100][100];
    size_t metrics, samples;
};

static void read_type(struct reader *r, const char *line)
{
    assert_int_equal(sscanf(line, "# TYPE %99s %19s", r->metric, r->type), 2);
    assert_true(strcmp(r->type, "counter") == 0 || strcmp(r->type, "gauge") == 0);
    for (size_t i = 0; i < r->metrics; i++)
        assert_string_not_equal(r->seen[i], r->metric);
    memcpy(r->seen[r->metrics++], r->metric, sizeof(r->metric));
}

static void read_sample(struct reader *r, const char *line)
{
    char expected[120];
    unsigned long long value;
    int end = 0;
    int len = snprintf(expected, sizeof(expected), "%s%s", r->metric,
                       strcmp(r->type, "counter") == 0 ? "_total" : "");
    assert_int_equal(strncmp(line, expected, (size_t)len), 0);
    const char *at = line + len;
    if (*at == '{') {
        const char *closing = strchr(at, '}');
        assert_non_null(closing);
        assert_int_equal(closing[-1], '"');
        at = closing + 1;
    }
    assert_int_equal(sscanf(at, " %llu%n", &value, &end), 1);
    assert_int_equal(at[end], '\0');
    r->samples++;
}

static void read_line(struct reader *r, const char *line)
{
    if (strncmp(line, "# TYPE ", 7) == 0) {
        read_type(r, line);
    } else if (strncmp(line, "# HELP ", 7) == 0) {
        size_t len = strlen(r->metric);
        assert_int_equal(strncmp(line + 7, r->metric, len), 0);
        assert_true(line[7 + len] == ' ' && line[8 + len] != '\0');
    } else {
        read_sample(r, line);
    }
}

static void the_text_is_openmetrics(void **state)
{
    static struct reader r;
    char *rest;
    (void)state;
    char *text = print();
    size_t len = strlen(text);
    assert_string_equal(text + len - 6, "# EOF\n");
    text[len - 6] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        read_line(&r, line);
    assert_int_equal(r.samples, STAT_COUNT);
    assert_true(r.metrics > 10 && r.metrics < STAT_COUNT);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_before_anything_is_shared),
        cmocka_unit_test(what_processes_count_is_summed_and_outlives_them),
        cmocka_unit_test(the_dead_leave_no_gauges_and_keep_their_counters),
        cmocka_unit_test(a_child_in_a_used_slot_counts_on),
        cmocka_unit_test(the_text_is_openmetrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/stats.h"
#include "gateway/backplane/admission.h"
#include "tests/unit/exact.h"

#include <stdlib.h>
#include <string.h>

enum { MAX = 20 };

static struct namespace_config namespaces[] = {
    {.name = (char *)"default", .content = CONTENT_AUTO, .max_payload = MAX},
    {.name = (char *)"api", .content = CONTENT_JSON, .max_payload = MAX / 2},
};
static const struct config config = {.namespaces = namespaces, .namespace_count = 2};

static struct message *receive(const char *channel, const char *bytes, size_t len)
{
    char *copy = exact(bytes, len);
    struct message *m = admission_receive(&config, channel, strlen(channel), copy, len);
    free(copy);
    return m;
}

static void assert_taken(const char *channel, const char *bytes, size_t len, const char *payload)
{
    uint64_t plain = stats_sum(STAT_received_plain);
    uint64_t enveloped = stats_sum(STAT_received_enveloped);
    struct message *m = receive(channel, bytes, len);
    assert_non_null(m);
    assert_int_equal(m->payload_len, strlen(payload));
    assert_memory_equal(m->payload, payload, m->payload_len);
    assert_int_equal(stats_sum(STAT_received_plain), plain + !m->has_id);
    assert_int_equal(stats_sum(STAT_received_enveloped), enveloped + m->has_id);
    message_unref(m);
}

static void assert_dropped(const char *channel, const char *bytes, size_t len, enum counter stat)
{
    uint64_t before = stats_sum(stat);
    uint64_t received = stats_sum(STAT_received_plain) + stats_sum(STAT_received_enveloped);
    assert_null(receive(channel, bytes, len));
    assert_int_equal(stats_sum(stat), before + 1);
    assert_int_equal(stats_sum(STAT_received_plain) + stats_sum(STAT_received_enveloped), received);
}

static const char envelope[] = "\0"
                               "1 id=5-6 event=e key=k\n{}";
enum { ENVELOPE_LEN = sizeof(envelope) - 1 };

static void opens_what_is_well_formed(void **state)
{
    (void)state;
    assert_taken("a", "", 0, "");
    assert_taken("a", "hello", 5, "hello");
    assert_taken("a", envelope, ENVELOPE_LEN, "{}");
    struct message *m = receive("a", envelope, ENVELOPE_LEN);
    assert_int_equal(m->id.ms, 5);
    assert_int_equal(m->id.seq, 6);
    assert_memory_equal(m->event, "e", m->event_len);
    assert_memory_equal(m->key, "k", m->key_len);
    message_unref(m);
}

static void drops_every_beginning_of_an_envelope_and_counts_it(void **state)
{
    (void)state;
    for (size_t len = 1; len <= ENVELOPE_LEN - 3; len++) /* without its LF and payload */
        assert_dropped("a", envelope, len, STAT_dropped_malformed);
}

static void counts_what_it_drops_by_reason(void **state)
{
    static const char long_text[] = "123456789012345678901";
    (void)state;
    assert_dropped("a", "\0", 1, STAT_dropped_malformed);
    assert_dropped("a",
                   "\0"
                   "9 id=1-1\nx",
                   11, STAT_dropped_version);
    assert_dropped("a", "\xff", 1, STAT_dropped_utf8);
    assert_taken("a", long_text, MAX, "12345678901234567890");
    assert_dropped("a", long_text, MAX + 1, STAT_dropped_too_big);
    assert_dropped("api:x", "{", 1, STAT_dropped_json);
    assert_dropped("api:x", "hello", 5, STAT_dropped_json);
    assert_dropped("api:x", "", 0, STAT_dropped_json);
    assert_taken("api:x", "[1]", 3, "[1]");
    assert_taken("api:x", envelope, ENVELOPE_LEN, "{}");
    assert_dropped("api:x", "[123456789]", 11, STAT_dropped_too_big);
    assert_taken("api", "hello", 5, "hello"); /* its namespace is `default` */
}

static void assert_checked(const struct namespace_config *settings, const char *payload, size_t len,
                           const char *code, int status)
{
    int told = 0;
    char *copy = exact(payload, len);
    const char *answer = admission_check_payload(settings, copy, len, &told);
    free(copy);
    if (code == NULL) {
        assert_null(answer);
        return;
    }
    assert_string_equal(answer, code);
    assert_int_equal(told, status);
}

static void says_why_a_payload_may_not_be_published(void **state)
{
    static const char long_text[MAX + 1] = "[1,2,3,4,5,6,7,8,91] ";
    (void)state;
    assert_checked(&namespaces[0], "", 0, NULL, 0);
    assert_checked(&namespaces[0], "hello", 5, NULL, 0);
    assert_checked(&namespaces[0], "a\0b", 3, NULL, 0);
    assert_checked(&namespaces[0], long_text, MAX, NULL, 0);
    assert_checked(&namespaces[0], long_text, MAX + 1, "payload_too_big", 413);
    assert_checked(&namespaces[0], "\0", 1, "payload_enveloped", 400);
    assert_checked(&namespaces[0], "\xc3", 1, "payload_not_utf8", 400);
    assert_checked(&namespaces[1], "{\"a\":1}", 7, NULL, 0);
    assert_checked(&namespaces[1], "{\"a\":1", 6, "payload_not_json", 400);
    assert_checked(&namespaces[1], "", 0, "payload_not_json", 400);
    assert_checked(&namespaces[1], long_text, MAX / 2 + 1, "payload_too_big", 413);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_what_is_well_formed),
        cmocka_unit_test(drops_every_beginning_of_an_envelope_and_counts_it),
        cmocka_unit_test(counts_what_it_drops_by_reason),
        cmocka_unit_test(says_why_a_payload_may_not_be_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/redis_rig.h"

#include "common/resolver.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>

/* The resolver's stand-in: answers with what the test put here. */
static struct {
    struct sockaddr_storage address[3];
    unsigned count;
    bool is_silent;
    unsigned asked_count;
    int kept_fd;
} dns = {.kept_fd = -1};

struct fake_resolution {
    struct resolution resolution;
    struct addrinfo info[3];
};

int resolver_ask(const char *host, const char *port)
{
    int ends[2];
    assert_string_equal(host, "redis.test");
    assert_string_equal(port, "6379");
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    dns.asked_count++;
    if (!dns.is_silent)
        assert_int_equal(write(ends[1], "!", 1), 1);
    if (dns.kept_fd != -1)
        (void)close(dns.kept_fd);
    dns.kept_fd = ends[1];
    return ends[0];
}

struct resolution *resolver_take(int fd)
{
    char byte = 0;
    if (read(fd, &byte, 1) != 1)
        return NULL;
    struct fake_resolution *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->resolution.error = dns.count == 0 ? EAI_NONAME : 0;
    for (unsigned i = 0; i < dns.count; i++)
        f->info[i] = (struct addrinfo){.ai_family = dns.address[i].ss_family,
                                       .ai_addr = (struct sockaddr *)&dns.address[i],
                                       .ai_addrlen = sizeof(dns.address[i]),
                                       .ai_next = i + 1 < dns.count ? &f->info[i + 1] : NULL};
    f->resolution.addresses = dns.count == 0 ? NULL : f->info;
    return &f->resolution;
}

void resolution_free(struct resolution *r)
{
    free(r); /* its first member */
}

static struct sockaddr_storage address_of(int listener)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
    return sa;
}

/* A port where nobody listens. */
static struct sockaddr_storage nobody(void)
{
    uint16_t port = 0;
    int fd = rig_listen(&port);
    struct sockaddr_storage sa = address_of(fd);
    (void)close(fd);
    return sa;
}

static int setup_with_dns(void **state)
{
    int result = rig_setup(state);
    struct rig *rig = *state;
    dns.count = 0;
    dns.is_silent = false;
    dns.asked_count = 0;
    rig->settings.address = "redis.test:6379";
    rig_make_link(rig);
    return result;
}

static int teardown_with_dns(void **state)
{
    (void)close(dns.kept_fd);
    dns.kept_fd = -1;
    return rig_teardown(state);
}

static void use_password(struct rig *rig, const char *user, const char *password)
{
    rig->settings.user = user;
    rig->settings.password = password;
    rig_make_link(rig);
}

static void says_nothing_before_auth_was_answered_well(void **state)
{
    struct rig *rig = *state;
    use_password(rig, "gw", "secret");
    rig_connect(rig);
    rig_expect(rig, "*3\r\n$4\r\nAUTH\r\n$2\r\ngw\r\n$6\r\nsecret\r\n");
    assert_false(rig_send(rig, "PING"));
    rig_tick(rig, 1);
    rig_expect_nothing(rig);
    rig_say(rig, "+OK\r\n");
    rig_turn(rig);
    rig_expect(rig, RIG_SETNAME);
    assert_int_equal(rig->ready_count, 0);
    rig_say(rig, "+OK\r\n");
    rig_turn_until(rig, LINK_READY);
    assert_int_equal(rig->ready_count, 1);
    assert_int_equal(rig_logged(rig, "redis_link_ready link=command address=127.0.0.1:"), 1);
    assert_int_equal(rig_logged(rig, "secret"), 0);
}

static void sends_a_password_without_user(void **state)
{
    struct rig *rig = *state;
    use_password(rig, "", "secret");
    rig_connect(rig);
    rig_expect(rig, "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
}

static void never_goes_on_as_the_default_user_after_a_refused_auth(void **state)
{
    static const char *const refusals[] = {
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        "-ERR AUTH <password> called without any password configured for the default user.\r\n",
        "-NOPERM this user has no permissions\r\n",
        "$2\r\nOK\r\n",
        ":1\r\n",
        "*0\r\n"};
    struct rig *rig = *state;
    use_password(rig, "gw", "secret");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        rig_connect(rig);
        rig_expect(rig, "*3\r\n$4\r\nAUTH\r\n$2\r\ngw\r\n$6\r\nsecret\r\n");
        rig_say(rig, refusals[i]);
        rig_turn_until(rig, LINK_DOWN);
        char byte = 0;
        assert_int_equal(recv(rig->peer, &byte, 1, 0), 0); /* closed, with nothing said */
    }
    assert_int_equal(rig->ready_count, 0);
    assert_int_equal(rig->down_count, 0);
    assert_true(rig_is_down_for(rig, "auth"));
    assert_int_equal(rig_logged(rig, "secret"), 0);
}

static void a_refused_auth_waits_at_the_slow_end(void **state)
{
    struct rig *rig = *state;
    use_password(rig, "", "secret");
    rig_connect(rig);
    rig_say(rig, "-WRONGPASS no\r\n");
    rig_turn_until(rig, LINK_DOWN);
    rig_tick(rig, RIG_BACKOFF_MAX_MS / 2 - 1);
    assert_int_equal(redis_link_state(rig->link), LINK_DOWN);
    rig_tick(rig, RIG_BACKOFF_MAX_MS / 2 + 1);
    assert_int_equal(redis_link_state(rig->link), LINK_CONNECTING);
}

static void a_server_that_wants_a_password_is_an_auth_fault(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_expect(rig, RIG_SETNAME);
    rig_say(rig, "-NOAUTH Authentication required.\r\n");
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "auth"));
}

static void a_refused_name_is_no_fault(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_say(rig, "-NOPERM this user has no permissions to run the 'client' command\r\n");
    rig_turn_until(rig, LINK_READY);
    assert_int_equal(rig->ready_count, 1);
    assert_int_equal(rig_logged(rig, " warn "), 0);
}

static void loading_is_told_apart(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_say(rig, "-LOADING Redis is loading the dataset in memory\r\n");
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "loading"));
}

/* Redis says it unasked and closes; our first words then meet a reset. */
static void too_many_clients_are_told_apart_from_a_closed_connection(void **state)
{
    struct rig *rig = *state;
    use_password(rig, "", "secret");
    rig_tick(rig, 1);
    rig_accept(rig);
    rig_say(rig, "-ERR max number of clients reached\r\n");
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "maxclients"));
}

static void too_many_clients_are_told_apart_when_the_greeting_was_reset(void **state)
{
    struct rig *rig = *state;
    use_password(rig, "", "secret");
    rig_connect(rig); /* AUTH was sent, and is never read */
    rig_say(rig, "-ERR max number of clients reached\r\n");
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "maxclients"));
}

/* Over a unix socket our first words fail at once: Redis' last ones must still be read. */
static void too_many_clients_are_told_apart_when_the_greeting_cannot_be_written(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char address[sizeof(un.sun_path) + 8];
    struct rig *rig = *state;
    (void)snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/redis_link_%d.sock", (int)getpid());
    (void)snprintf(address, sizeof(address), "unix:%s", un.sun_path);
    (void)close(rig->listener);
    rig->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(rig->listener, (struct sockaddr *)&un, sizeof(un)), 0);
    assert_int_equal(listen(rig->listener, 8), 0);
    rig->settings.address = address;
    rig_make_link(rig);
    rig_tick(rig, 1);
    (void)unlink(un.sun_path);
    rig_accept(rig);
    rig_say(rig, "-ERR max number of clients reached\r\n");
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "maxclients"));
    redis_link_free(rig->link); /* before its address */
    rig->link = NULL;
}

static void gives_up_a_server_that_accepts_and_stays_silent(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_tick(rig, 0);
    rig_tick(rig, RIG_TIMEOUT_MS - 1);
    assert_int_equal(redis_link_state(rig->link), LINK_GREETING);
    rig_tick(rig, 1);
    assert_true(rig_is_down_for(rig, "connect"));
    assert_int_equal(rig_logged(rig, "still greeting after 1000 ms"), 1);
    rig_make_ready(rig);
}

static void a_loop_that_was_held_up_ends_no_attempt_too_early(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_tick(rig, 100000);
    assert_int_equal(redis_link_state(rig->link), LINK_GREETING);
}

static void takes_the_second_address_when_the_first_refuses(void **state)
{
    struct rig *rig = *state;
    dns.address[0] = nobody();
    dns.address[1] = address_of(rig->listener);
    dns.count = 2;
    rig_tick(rig, 1);
    assert_int_equal(redis_link_state(rig->link), LINK_RESOLVING);
    rig_turn_until(rig, LINK_GREETING);
    rig_accept(rig);
    rig_say(rig, "+OK\r\n");
    rig_turn_until(rig, LINK_READY);
    assert_int_equal(rig_logged(rig, " warn "), 0);
}

static void finds_a_server_on_one_family_only(void **state)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct rig *rig = *state;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || bind(fd, (struct sockaddr *)&v6, sizeof(v6)) == -1) {
        (void)close(fd);
        skip();
    }
    assert_int_equal(listen(fd, 8), 0);
    dns.address[0] = nobody();
    dns.address[1] = address_of(fd);
    dns.count = 2;
    (void)close(rig->listener);
    rig->listener = fd;
    rig_tick(rig, 1);
    rig_turn_until(rig, LINK_GREETING);
    rig_accept(rig);
    rig_say(rig, "+OK\r\n");
    rig_turn_until(rig, LINK_READY);
    assert_int_equal(rig_logged(rig, " at=[::1]:"), 1);
}

static void takes_the_second_address_when_the_first_is_silent(void **state)
{
    struct rig *rig = *state;
    uint16_t port = 0;
    int silent = rig_listen(&port);
    dns.address[0] = address_of(silent);
    dns.address[1] = address_of(rig->listener);
    dns.count = 2;
    rig_tick(rig, 1);
    rig_turn_until(rig, LINK_GREETING);
    rig_tick(rig, 1);
    rig_tick(rig, RIG_TIMEOUT_MS);
    assert_int_equal(redis_link_state(rig->link), LINK_CONNECTING);
    rig_accept(rig);
    rig_turn_until(rig, LINK_GREETING);
    rig_tick(rig, 1); /* each address has the whole time */
    rig_tick(rig, RIG_TIMEOUT_MS - 1);
    rig_say(rig, "+OK\r\n");
    rig_turn_until(rig, LINK_READY);
    (void)close(silent);
}

static void asks_no_second_address_after_a_refused_auth(void **state)
{
    struct rig *rig = *state;
    dns.address[0] = address_of(rig->listener);
    dns.address[1] = address_of(rig->listener);
    dns.count = 2;
    use_password(rig, "", "secret");
    rig_tick(rig, 1);
    rig_turn_until(rig, LINK_GREETING);
    rig_accept(rig);
    rig_say(rig, "-WRONGPASS no\r\n");
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "auth"));
}

static void resolves_anew_for_each_attempt(void **state)
{
    struct rig *rig = *state;
    dns.address[0] = nobody();
    dns.address[1] = nobody();
    dns.count = 2;
    rig_tick(rig, 1);
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "connect"));
    assert_int_equal(rig_logged(rig, "Connection refused"), 1);
    dns.address[0] = address_of(rig->listener);
    dns.count = 1;
    rig_tick(rig, RIG_BACKOFF_MAX_MS);
    rig_turn_until(rig, LINK_GREETING);
    assert_int_equal(dns.asked_count, 2);
}

static void a_name_without_address_is_a_fault_of_its_own(void **state)
{
    struct rig *rig = *state;
    rig_tick(rig, 1);
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "resolve"));
}

static void forgets_a_resolver_that_never_answers(void **state)
{
    struct rig *rig = *state;
    dns.is_silent = true;
    rig_tick(rig, 1);
    rig_tick(rig, 1);
    rig_tick(rig, RIG_TIMEOUT_MS);
    assert_true(rig_is_down_for(rig, "resolve"));
    rig_tick(rig, RIG_BACKOFF_MAX_MS);
    assert_int_equal(redis_link_state(rig->link), LINK_RESOLVING);
}

static void hands_out_replies_that_come_byte_by_byte(void **state)
{
    static const char bytes[] = "$5\r\nhello\r\n";
    struct rig *rig = *state;
    rig_make_ready(rig);
    for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
        assert_int_equal(rig->reply_count, 0);
        rig_say_bytes(rig, bytes + i, 1);
        rig_turn(rig);
    }
    assert_int_equal(rig->reply_count, 1);
    assert_string_equal(rig->last, "hello");
}

static void notices_an_end_in_mid_bulk(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig_say(rig, "*3\r\n$7\r\nmessage\r\n$4\r\nne");
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_int_equal(rig->down_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_CLOSED);
    assert_int_equal(rig->reply_count, 0);
}

static void what_came_before_the_end_is_handed_out(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig_say(rig, "+one\r\n+two\r\n");
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    assert_int_equal(rig->reply_count, 2);
    assert_int_equal(rig->down_count, 1);
}

static void errors_are_the_owners_once_it_is_ready(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig_say(rig, "-NOPERM no access to this channel\r\n");
    rig_turn(rig);
    assert_int_equal(redis_link_state(rig->link), LINK_READY);
    assert_int_equal(rig->reply_count, 1);
}

static void drops_a_server_that_does_not_speak_resp(void **state)
{
    struct rig *rig = *state;
    rig_connect(rig);
    rig_say(rig, "HTTP/1.1 400 Bad Request\r\n\r\n");
    rig_turn_until(rig, LINK_DOWN);
    assert_true(rig_is_down_for(rig, "protocol"));
    rig_make_ready(rig);
    rig_say(rig, "+fine\r\n?\"\n");
    rig_turn_until(rig, LINK_DOWN);
    assert_int_equal(rig->reply_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_PROTOCOL);
}

static void drops_a_reply_above_its_bound(void **state)
{
    char body[5000];
    struct rig *rig = *state;
    memset(body, 'x', sizeof(body));
    rig_make_ready(rig);
    rig_say(rig, "$999999999\r\n");
    rig_say_bytes(rig, body, sizeof(body));
    rig_turn_until(rig, LINK_DOWN);
    assert_int_equal(rig->fault, LINK_FAULT_PROTOCOL);
    assert_int_equal(rig_logged(rig, "reply\\x20too\\x20long"), 1);
}

static void fill_output(struct rig *rig)
{
    char big[8192];
    memset(big, 'x', sizeof(big));
    const struct resp_arg args[] = {{big, sizeof(big)}};
    for (int i = 0; i < 10000; i++)
        if (!redis_link_send(rig->link, args, 1))
            return;
    fail_msg("the output has no bound");
}

static void a_server_that_does_not_read_is_dropped_at_the_next_tick(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    fill_output(rig);
    assert_int_equal(redis_link_state(rig->link), LINK_READY);
    assert_int_equal(rig->down_count, 0);
    assert_false(redis_link_is_ready(rig->link));
    assert_false(rig_send(rig, "PING"));
    rig_tick(rig, 1);
    assert_int_equal(rig->down_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_OVERFLOW);
    assert_int_equal(redis_link_unsent(rig->link), 0);
}

static void writes_the_rest_when_the_server_reads_again(void **state)
{
    static char heard[1 << 16];
    const struct resp_arg args[] = {{heard, sizeof(heard)}};
    struct rig *rig = *state;
    rig->settings.max_output_len = 1 << 26;
    rig_make_link(rig);
    rig_make_ready(rig);
    const size_t expected = 400 * (strlen("*1\r\n$65536\r\n") + sizeof(heard) + 2);
    for (int i = 0; i < 400; i++)
        assert_true(redis_link_send(rig->link, args, 1));
    assert_true(redis_link_unsent(rig->link) > 0);
    size_t len = 0;
    while (len < expected) {
        ssize_t n = recv(rig->peer, heard, sizeof(heard), MSG_DONTWAIT);
        if (n == -1)
            (void)rig_turn_within(rig, 100);
        else
            len += (size_t)n;
    }
    assert_int_equal(len, expected);
    assert_int_equal(redis_link_unsent(rig->link), 0);
    rig_expect_nothing(rig);
}

static void drop_it(struct rig *rig, const struct resp *reply)
{
    redis_link_drop(rig->link, LINK_FAULT_ACL);
    assert_int_equal(redis_link_state(rig->link), LINK_READY);
    assert_int_equal(reply->text[0], 'o'); /* still there */
    assert_false(rig_send(rig, "PING"));
}

static void an_owner_may_drop_the_link_within_a_reply(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig->on_reply = drop_it;
    rig_say(rig, "+one\r\n+other\r\n");
    rig_turn(rig);
    assert_int_equal(rig->reply_count, 1);
    assert_int_equal(rig->down_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_ACL);
}

static void answer_it(struct rig *rig, const struct resp *reply)
{
    (void)reply;
    assert_true(rig_send(rig, "PING"));
}

static void an_owner_may_send_within_a_reply(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig->on_reply = answer_it;
    rig_say(rig, "+one\r\n");
    rig_turn(rig);
    rig_expect(rig, "*1\r\n$4\r\nPING\r\n");
}

static void meddle(struct rig *rig)
{
    assert_false(rig_send(rig, "PING"));
    redis_link_drop(rig->link, LINK_FAULT_SILENT);
}

static void pause_now(struct rig *rig, const struct resp *reply)
{
    (void)reply;
    redis_link_pause(rig->link, true);
}

static void a_paused_link_hands_out_nothing_and_then_everything_in_order(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig->on_reply = pause_now;
    rig_say(rig, "+1\r\n+2\r\n");
    rig_turn(rig);
    assert_int_equal(rig->reply_count, 1);
    rig_say(rig, "+3\r\n");
    redis_link_on_readable(rig->link);
    assert_int_equal(rig->reply_count, 1);
    redis_link_pause(rig->link, false); /* hands out the next one, which pauses it again */
    assert_int_equal(rig->reply_count, 2);
    assert_string_equal(rig->last, "2");
    rig->on_reply = NULL;
    redis_link_pause(rig->link, false);
    rig_turn(rig);
    assert_int_equal(rig->reply_count, 3);
    assert_string_equal(rig->last, "3");
}

static void a_link_that_ends_while_paused_comes_back_unpaused(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    redis_link_pause(rig->link, true);
    redis_link_drop(rig->link, LINK_FAULT_SILENT);
    redis_link_pause(rig->link, false); /* of nothing */
    assert_int_equal(rig->down_count, 1);
}

static void nothing_can_be_sent_or_dropped_once_it_is_down(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig->on_down = meddle;
    redis_link_drop(rig->link, LINK_FAULT_SILENT);
    assert_int_equal(rig->down_count, 1);
    assert_int_equal(rig->fault, LINK_FAULT_SILENT);
    redis_link_drop(rig->link, LINK_FAULT_SILENT);
    assert_int_equal(rig->down_count, 1);
    rig_make_ready(rig);
    assert_int_equal(rig->ready_count, 2);
}

static void a_missing_unix_socket_is_tried_again(void **state)
{
    struct rig *rig = *state;
    rig->settings.address = "unix:/nonexistent/redis.sock";
    rig_make_link(rig);
    rig_tick(rig, 1);
    assert_true(rig_is_down_for(rig, "connect"));
    assert_int_equal(rig_logged(rig, "/nonexistent/redis.sock: No such file or directory"), 1);
    rig_tick(rig, RIG_BACKOFF_MAX_MS);
    assert_int_equal(redis_link_state(rig->link), LINK_DOWN);
}

static void a_unix_path_that_is_too_long_opens_nothing(void **state)
{
    char address[200] = "unix:/";
    struct rig *rig = *state;
    memset(address + 6, 'x', 120);
    rig->settings.address = address;
    rig_make_link(rig);
    rig_tick(rig, 1);
    assert_true(rig_is_down_for(rig, "connect"));
    assert_int_equal(rig->opened_count, 0);
    redis_link_free(rig->link); /* before its address */
    rig->link = NULL;
}

static void a_fault_is_logged_once_then_each_minute_then_when_it_ends(void **state)
{
    struct rig *rig = *state;
    rig->settings.address = "unix:/nonexistent/redis.sock";
    rig->settings.backoff_max_ms = 1000;
    rig_make_link(rig);
    for (int i = 0; i < 59; i++)
        rig_tick(rig, 1000);
    assert_int_equal(rig_logged(rig, "redis_link_down"), 1);
    for (int i = 0; i < 59; i++)
        rig_tick(rig, 1000);
    assert_int_equal(rig_logged(rig, "redis_link_down"), 2);
    assert_int_equal(rig_logged(rig, "repeats=59"), 1);
}

static void ready_says_how_long_it_was_down(void **state)
{
    struct rig *rig = *state;
    rig_make_ready(rig);
    rig_hang_up(rig);
    rig_turn_until(rig, LINK_DOWN);
    rig_make_ready(rig);
    assert_int_equal(rig_logged(rig, "after_ms=0\n"), 1);
    assert_int_equal(rig_logged(rig, "after_ms=30000\n"), 1);
}

/* With a far bound, an attempt within 100 ms means that the backoff began anew. */
static void only_a_steady_link_resets_the_backoff(void **state)
{
    const uint64_t far_ms = UINT64_C(1) << 40;
    struct rig *rig = *state;
    rig->settings.backoff_max_ms = far_ms;
    rig_make_link(rig);
    for (int i = 0; i < 20; i++) {
        rig->now_ms += far_ms;
        rig_make_ready(rig);
        rig_tick(rig, 1);
        rig_tick(rig, 4999);
        redis_link_drop(rig->link, LINK_FAULT_SILENT);
    }
    rig_tick(rig, 100);
    assert_int_equal(redis_link_state(rig->link), LINK_DOWN);
    rig->now_ms += far_ms;
    rig_make_ready(rig);
    rig_tick(rig, 1);
    rig_tick(rig, 5000);
    redis_link_drop(rig->link, LINK_FAULT_SILENT);
    rig_tick(rig, 100);
    assert_int_equal(redis_link_state(rig->link), LINK_CONNECTING);
}

static void can_be_freed_in_every_state(void **state)
{
    struct rig *rig = *state;
    rig_tick(rig, 1);
    rig_make_link(rig);
    rig_accept(rig);
    rig_connect(rig);
    rig_make_link(rig);
    rig_make_ready(rig);
    rig_make_link(rig);
    assert_int_equal(rig->down_count, 0);
}

static void errors_are_classified(void **state)
{
    static const struct {
        const char *text;
        enum link_fault fault;
    } rows[] = {
        {"WRONGPASS invalid", LINK_FAULT_AUTH},
        {"NOAUTH Authentication required.", LINK_FAULT_AUTH},
        {"DENIED Redis is running in protected mode", LINK_FAULT_AUTH},
        {"NOPERM this", LINK_FAULT_ACL},
        {"LOADING Redis", LINK_FAULT_LOADING},
        {"BUSY Redis is busy", LINK_FAULT_LOADING},
        {"BUSYKEY Target key name already exists.", LINK_FAULT_NONE},
        {"MASTERDOWN Link", LINK_FAULT_LOADING},
        {"READONLY You can't", LINK_FAULT_LOADING},
        {"ERR max number of clients reached", LINK_FAULT_MAXCLIENTS},
        {"ERR unknown command", LINK_FAULT_NONE},
        {"", LINK_FAULT_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct resp v = {.type = RESP_ERROR, .text = rows[i].text, .len = strlen(rows[i].text)};
        assert_int_equal(link_fault_of_error(&v), rows[i].fault);
        v.type = RESP_STRING;
        assert_int_equal(link_fault_of_error(&v), LINK_FAULT_NONE);
    }
    for (int fault = LINK_FAULT_NONE; fault <= LINK_FAULT_OVERFLOW; fault++)
        assert_non_null(link_fault_name((enum link_fault)fault));
}

static pid_t start_redis(const char *socket_path)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, STDOUT_FILENO);
    (void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket_path,
                 "--save", "", "--appendonly", "no", "--requirepass", "secret", (char *)NULL);
    _exit(127);
}

static void try_real_redis(struct rig *rig)
{
    for (int i = 0; i < 500 && redis_link_state(rig->link) != LINK_READY; i++) {
        rig_tick(rig, RIG_BACKOFF_MAX_MS);
        rig_tick(rig, 1);
        while (rig_turn_within(rig, 10))
            continue;
        if (rig_logged(rig, "fault=auth") > 0)
            return;
        (void)poll(NULL, 0, 10); /* until it has made its socket */
    }
}

static void greets_a_real_redis(void **state)
{
    char dir[] = "/tmp/redis_link_XXXXXX";
    char address[64];
    struct rig *rig = *state;
    if (system("command -v redis-server >/dev/null") != 0)
        skip();
    assert_non_null(mkdtemp(dir));
    (void)snprintf(address, sizeof(address), "unix:%s/redis.sock", dir);
    pid_t pid = start_redis(address + 5);
    rig->settings.address = address;
    use_password(rig, "default", "secret");
    try_real_redis(rig);
    bool is_ready = redis_link_state(rig->link) == LINK_READY && rig_send(rig, "PING");
    while (is_ready && rig->reply_count == 0 && rig_turn_within(rig, RIG_PATIENCE_MS))
        continue;
    bool was_told = strcmp(rig->last, "PONG") == 0;
    use_password(rig, "default", "wrong");
    try_real_redis(rig);
    bool was_refused = rig_is_down_for(rig, "auth");
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)unlink(address + 5);
    (void)rmdir(dir);
    redis_link_free(rig->link); /* before its address */
    rig->link = NULL;
    assert_true(is_ready);
    assert_true(was_told);
    assert_true(was_refused);
}

#define TEST(name)     cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define DNS_TEST(name) cmocka_unit_test_setup_teardown(name, setup_with_dns, teardown_with_dns)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(says_nothing_before_auth_was_answered_well),
        TEST(sends_a_password_without_user),
        TEST(never_goes_on_as_the_default_user_after_a_refused_auth),
        TEST(a_refused_auth_waits_at_the_slow_end),
        TEST(a_server_that_wants_a_password_is_an_auth_fault),
        TEST(a_refused_name_is_no_fault),
        TEST(loading_is_told_apart),
        TEST(too_many_clients_are_told_apart_from_a_closed_connection),
        TEST(too_many_clients_are_told_apart_when_the_greeting_was_reset),
        TEST(too_many_clients_are_told_apart_when_the_greeting_cannot_be_written),
        TEST(gives_up_a_server_that_accepts_and_stays_silent),
        TEST(a_loop_that_was_held_up_ends_no_attempt_too_early),
        DNS_TEST(takes_the_second_address_when_the_first_refuses),
        DNS_TEST(finds_a_server_on_one_family_only),
        DNS_TEST(takes_the_second_address_when_the_first_is_silent),
        DNS_TEST(asks_no_second_address_after_a_refused_auth),
        DNS_TEST(resolves_anew_for_each_attempt),
        DNS_TEST(a_name_without_address_is_a_fault_of_its_own),
        DNS_TEST(forgets_a_resolver_that_never_answers),
        TEST(hands_out_replies_that_come_byte_by_byte),
        TEST(notices_an_end_in_mid_bulk),
        TEST(what_came_before_the_end_is_handed_out),
        TEST(errors_are_the_owners_once_it_is_ready),
        TEST(drops_a_server_that_does_not_speak_resp),
        TEST(drops_a_reply_above_its_bound),
        TEST(a_server_that_does_not_read_is_dropped_at_the_next_tick),
        TEST(writes_the_rest_when_the_server_reads_again),
        TEST(an_owner_may_drop_the_link_within_a_reply),
        TEST(an_owner_may_send_within_a_reply),
        TEST(a_paused_link_hands_out_nothing_and_then_everything_in_order),
        TEST(a_link_that_ends_while_paused_comes_back_unpaused),
        TEST(nothing_can_be_sent_or_dropped_once_it_is_down),
        TEST(a_missing_unix_socket_is_tried_again),
        TEST(a_unix_path_that_is_too_long_opens_nothing),
        TEST(a_fault_is_logged_once_then_each_minute_then_when_it_ends),
        TEST(ready_says_how_long_it_was_down),
        TEST(only_a_steady_link_resets_the_backoff),
        TEST(can_be_freed_in_every_state),
        TEST(errors_are_classified),
        TEST(greets_a_real_redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

"""Redis that does not let us in, or not everywhere: wrong passwords, missing rights, no hot loop."""

import contextlib
import os
import time

import pytest

from cluster import Gateway, wait_until
from processes import CpuMeter, command_lines, rss_bytes
from redis_fakes import FakeRedis
from redis_server import RedisServer

PASSWORD = "right-and-secret"
WRONG = "wrong-and-secret"
USER_RIGHTS = "~tide:* &tide:* +@all"


@pytest.fixture
def start(tmp_path):
    """start(redis_config, settings): a gateway on a Redis of that configuration."""
    with contextlib.ExitStack() as stack:
        def begin(redis_config, settings=None, **options):
            server = stack.enter_context(RedisServer(redis_config))
            gateway = Gateway(tmp_path, server, settings, **options)
            stack.callback(gateway.close)
            return server, gateway
        yield begin


def admin(server, **options):
    return server.connect(**options)


def connections(client):
    return client.info("stats")["total_connections_received"]


def lines(gateway, pattern):
    return [line for line in gateway.log.splitlines() if pattern in line]


def assert_calm(gateway, client, seconds=1.0, most=8):
    """Neither CPU nor Redis is worn out by retrying, and the log says it once a link."""
    before, began = connections(client), time.monotonic()
    meter = CpuMeter(gateway.worker_pids())
    time.sleep(seconds)
    rate = (connections(client) - before) / (time.monotonic() - began)
    assert rate * seconds <= most, f"{rate:.1f} connections a second"
    assert meter.share() < 0.3


@pytest.mark.parametrize("settings,redis_config", [
    ({"redis.password": WRONG}, [f"requirepass {PASSWORD}"]),
    ({"redis.user": "gateway", "redis.password": WRONG}, [f"user gateway on >{PASSWORD} {USER_RIGHTS}",
                                                         f"user default on >{PASSWORD} ~* &* +@all"]),
], ids=["default-user", "named-user"])
def test_a_wrong_password_is_said_once_and_tried_slowly(start, settings, redis_config):
    server, gateway = start(redis_config, {**settings, "redis.backoff_max": "1s"})
    gateway.start(ready=False)
    gateway.wait_log("fault=auth")
    with admin(server, password=PASSWORD) as client:
        assert_calm(gateway, client)
        assert len(lines(gateway, "fault=auth")) == 2, "once a link"
        assert "WRONGPASS" in gateway.log
        assert gateway.request("GET", "/readyz").status == 503
        assert gateway.sse("news").status == 200, "clients are accepted meanwhile"
    assert PASSWORD not in gateway.log and WRONG not in gateway.log


def test_no_password_where_one_is_needed(start):
    server, gateway = start([f"requirepass {PASSWORD}"], {"redis.backoff_max": "1s"})
    gateway.start(ready=False)
    gateway.wait_log("NOAUTH")
    with admin(server, password=PASSWORD) as client:
        assert_calm(gateway, client)
    assert 2 <= len(lines(gateway, "redis_link_down")) <= 4


def test_a_wrong_password_never_falls_through_to_an_open_default_user(start):
    """Redis goes on serving a connection whose AUTH failed, as the default user."""
    server, gateway = start([f"user gateway on >{PASSWORD} {USER_RIGHTS}"],
                            {"redis.user": "gateway", "redis.password": WRONG})
    gateway.start(ready=False)
    gateway.wait_log("fault=auth")
    gateway.sse("news")
    with admin(server) as client:
        time.sleep(1)
        stats = client.info("commandstats")
        assert "cmdstat_subscribe" not in stats and "cmdstat_fcall" not in stats
        assert client.pubsub_channels() == []


def test_a_password_that_the_default_user_does_not_need_is_no_reason_to_go_on(start):
    """AUTH without a password configured is an error that begins with ERR, not WRONGPASS."""
    server, gateway = start([], {"redis.password": WRONG})
    gateway.start(ready=False)
    gateway.wait_log("fault=auth")
    with admin(server) as client:
        assert client.pubsub_channels() == []


def test_the_right_password_put_in_place_ends_it(start):
    server, gateway = start([f"user gateway on >other {USER_RIGHTS}"],
                            {"redis.user": "gateway", "redis.password": PASSWORD})
    gateway.start(ready=False)
    gateway.wait_log("fault=auth")
    client = gateway.sse("news")
    with admin(server) as redis:
        redis.execute_command("ACL", "SETUSER", "gateway", f">{PASSWORD}")
        gateway.wait_ready()
        wait_until(lambda: redis.pubsub_numsub("tide:news")[0][1] == 1)
        redis.publish("tide:news", "hello")
        assert client.next_event().data == "hello"
        assert len(lines(gateway, "redis_link_ready")) == 2


def test_rights_that_are_taken_away_close_the_link_and_nothing_else(start):
    server, gateway = start([f"user gateway on >{PASSWORD} {USER_RIGHTS}"],
                            {"redis.user": "gateway", "redis.password": PASSWORD})
    gateway.start()
    client = gateway.sse("news")
    with admin(server) as redis:
        redis.execute_command("ACL", "DELUSER", "gateway")
        gateway.wait_log("fault=auth")
        redis.execute_command("ACL", "SETUSER", "gateway", "on", f">{PASSWORD}",
                              *USER_RIGHTS.split())
        gateway.wait_ready()
        wait_until(lambda: redis.pubsub_numsub("tide:news")[0][1] == 1)
        redis.publish("tide:news", "hello")
        assert client.next_event().data == "hello"


def test_one_forbidden_channel_does_not_cost_the_others(start):
    server, gateway = start(
        [f"user gateway on >{PASSWORD} ~tide:* resetchannels &tide:open:* &tide:$probe:* +@all"],
        {"redis.user": "gateway", "redis.password": PASSWORD})
    gateway.start()
    forbidden = gateway.sse("secret")
    names = [f"open:{number}" for number in range(20)]
    clients = {name: gateway.sse(name) for name in names[:10]}
    both = gateway.sse("secret:2", *names[10:])
    with admin(server) as redis:
        wait_until(lambda: len(redis.pubsub_channels("tide:open:*")) == 20)
        for name in names:
            redis.publish("tide:" + name, name)
        redis.publish("tide:secret", "not for us")
        for name, client in clients.items():
            assert client.next_event().data == name
        assert sorted(event.data for event in both.take(10)) == sorted(names[10:])
        assert forbidden.events == [] and gateway.request("GET", "/readyz").status == 200
        assert lines(gateway, "subscribe_denied channel=secret")
        assert not lines(gateway, "redis_link_down"), "the whole link was given up"
        before = redis.info("commandstats")["cmdstat_subscribe"]["calls"]
        time.sleep(1)
        assert redis.info("commandstats")["cmdstat_subscribe"]["calls"] - before <= 4, "a hot loop"


@pytest.mark.parametrize("names", [["secret"], ["secret", "open:1"], ["open:1", "secret"]],
                         ids=["alone", "first", "last"])
def test_a_forbidden_channel_does_not_keep_a_gateway_from_being_ready(start, names):
    """After a reconnect every channel is asked for again; a refusal is an answer too."""
    server, gateway = start(
        [f"user gateway on >{PASSWORD} ~tide:* resetchannels &tide:open:* &tide:$probe:* +@all"],
        {"redis.user": "gateway", "redis.password": PASSWORD})
    gateway.start()
    for name in names:
        gateway.sse(name)
    gateway.wait_log("subscribe_denied")
    with admin(server) as redis:
        for _ in range(2):
            redis.client_kill_filter(_type="pubsub")
            gateway.wait_metric("tidecast_workers_ready", 0)
            gateway.wait_ready(4)


def test_a_forbidden_channel_that_is_allowed_later_is_subscribed(start):
    server, gateway = start(
        [f"user gateway on >{PASSWORD} ~tide:* resetchannels &tide:$probe:* +@all"],
        {"redis.user": "gateway", "redis.password": PASSWORD})
    gateway.start()
    client = gateway.sse("news")
    gateway.wait_log("subscribe_denied")
    with admin(server) as redis:
        redis.execute_command("ACL", "SETUSER", "gateway", "&tide:news")
        wait_until(lambda: redis.pubsub_numsub("tide:news")[0][1] == 1, 8)
        redis.publish("tide:news", "hello")
        assert client.next_event().data == "hello"


def test_a_forbidden_probe_is_a_fault_of_the_link(start):
    server, gateway = start([f"user gateway on >{PASSWORD} ~* resetchannels &other:* +@all"],
                            {"redis.user": "gateway", "redis.password": PASSWORD,
                             "redis.backoff_max": "1s"})
    gateway.start(ready=False)
    gateway.wait_log("link=subscriber fault=acl")
    with admin(server) as redis:
        assert_calm(gateway, redis)
    assert len(lines(gateway, "fault=acl")) <= 6
    assert "NOPERM" in gateway.log, "nobody can tell which right is missing"


def test_too_many_clients_is_told_apart_and_tried_slowly(start):
    server, gateway = start(["maxclients 2"], {"redis.backoff_max": "1s"})
    with admin(server) as one, admin(server) as two:
        one.ping(), two.ping()
        gateway.start(ready=False)
        gateway.wait_log("fault=maxclients")
        before = one.info("stats")["rejected_connections"]
        time.sleep(1)
        assert one.info("stats")["rejected_connections"] - before <= 8
        assert len(lines(gateway, "fault=maxclients")) == 2, "once a link"
        one.config_set("maxclients", 100)
        gateway.wait_ready()


@pytest.mark.parametrize("reply,fault", [
    (b"-LOADING Redis is loading the dataset in memory\r\n", "loading"),
    (b"-MASTERDOWN Link with MASTER is down\r\n", "loading"),
    (b"-BUSY Redis is busy running a script.\r\n", "loading"),
    (b"-DENIED Redis is running in protected mode\r\n", "auth"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"),
    (b"$999999999\r\n", "connect"),  # announced, never sent
    (b"*1000000000\r\n", "connect"),
    (None, "connect"),
], ids=["loading", "masterdown", "busy", "protected", "http", "huge-bulk", "huge-array",
        "silence"])
def test_what_a_server_says_instead_is_told_apart(tmp_path, reply, fault):
    with FakeRedis(lambda words: reply) as fake:
        gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis", "redis.backoff_max": "1s",
                                              "redis.address": fake.address,
                                              "redis.connect_timeout": "500ms"})
        try:
            gateway.start(ready=False)
            gateway.wait_log(f"fault={fault}")
            before = fake.connections
            time.sleep(1)
            assert fake.connections - before <= 14, "a hot loop"
            assert len(lines(gateway, f"fault={fault}")) <= 2, "said again and again"
            assert gateway.sse("news").status == 200
        finally:
            gateway.close()


def test_a_reply_without_an_end_does_not_fill_memory(tmp_path):
    flood = b"*3\r\n$7\r\nmessage\r\n$9\r\ntide:news\r\n$900000000\r\n" + b"x" * 150_000_000

    def answer(words):
        if words[0] == "SUBSCRIBE":
            name = words[1].encode()
            return b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(name), name) + flood
        return b"+OK\r\n"
    with FakeRedis(answer) as fake:
        gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis", "redis.backoff_max": "1s",
                                              "redis.address": fake.address})
        try:
            gateway.start(ready=False)
            before = rss_bytes(gateway.worker_pids()[0])
            gateway.wait_log("link=subscriber fault=protocol")
            assert rss_bytes(gateway.worker_pids()[0]) - before < 80_000_000
        finally:
            gateway.close()


def test_the_password_of_a_running_gateway_is_nowhere_to_be_seen(start, tmp_path):
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    os.chmod(file, 0o600)
    for number, (settings, environment) in enumerate([
            ({"redis.password_file": str(file)}, {}), ({}, {"TIDECAST_REDIS_PASSWORD": PASSWORD})]):
        server, gateway = start([f"requirepass {PASSWORD}"], {**settings, "log.level": "debug"},
                                environment=environment)
        gateway.start()
        with admin(server, password=PASSWORD) as redis:
            redis.client_kill_filter(_type="pubsub")
            gateway.wait_metric("tidecast_workers_ready", 0)
            gateway.wait_ready()
        metrics = gateway.request("GET", "/metrics", address=gateway.admin_address).body
        assert not any(PASSWORD.encode() in line for line in command_lines(gateway.pid)), number
        assert PASSWORD not in gateway.log and PASSWORD.encode() not in metrics

"""tidecast-broker, the built program, against real redis-servers."""

import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time

import pytest
import redis
import yaml

from redis_server import LIBRARY, RedisServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("BIN_DIR", ROOT / "build" / "release" / "bin")) / "tidecast-broker"
LEASE_SECONDS = 0.5
SOON = 10


class Broker:
    """A broker process; its log lines are taken in order by wait_for."""

    def __init__(self, directory, server, ticks=(), namespaces=None, arguments=(), **redis_settings):
        self.config = directory / f"broker-{os.urandom(4).hex()}.yaml"
        settings = {
            "redis": {"address": server.unix_address, "backoff_max": "200ms", "probe_timeout": "1s",
                      **redis_settings},
            "broker": {"lease": f"{int(LEASE_SECONDS * 1000)}ms", "ticks": list(ticks)},
            "namespaces": namespaces or {"default": {}},
        }
        self.config.write_text(yaml.safe_dump(settings))
        self.process = subprocess.Popen(
            [str(BINARY), "--config", str(self.config), *arguments],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )
        self.lines = []
        self.queue = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            self.queue.put(line)
        self.queue.put(None)

    def wait_for(self, pattern, seconds=SOON):
        """The match of the next line that has it."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.queue.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"no {pattern!r} in\n{''.join(self.lines)}"
            found = re.search(pattern, line)
            if found:
                return found

    def has_logged(self, pattern):
        return [line for line in self.lines if re.search(pattern, line)]

    def signal(self, number):
        os.kill(self.process.pid, number)

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=SOON)

    def close(self):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(timeout=SOON)
        self.reader.join(timeout=SOON)
        self.process.stderr.close()
        log = "".join(self.lines)
        assert "Sanitizer" not in log and "runtime error" not in log, log


@pytest.fixture
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture
def start(tmp_path, server):
    brokers = []

    def begin(*args, on=server, **options):
        brokers.append(Broker(tmp_path, on, *args, **options))
        return brokers[-1]

    yield begin
    for broker in brokers:
        broker.close()


class Listener:
    """Takes the ticks of one channel as (seq, t, envelope)."""

    def __init__(self, server, channel):
        self.client = server.connect()
        self.pubsub = self.client.pubsub()
        self.pubsub.subscribe("tide:" + channel)
        assert self.pubsub.get_message(timeout=SOON)["type"] == "subscribe"

    def take(self, timeout=SOON):
        message = self.pubsub.get_message(timeout=timeout)
        if message is None:
            return None
        head, _, payload = message["data"].partition(b"\n")
        tick = json.loads(payload)
        return tick["seq"], tick["t"], head.decode(), payload

    def take_many(self, count):
        found = []
        while len(found) < count:
            tick = self.take()
            assert tick, f"only {len(found)} ticks"
            found.append(tick)
        return found

    def take_until_quiet(self, seconds):
        found = []
        while True:
            tick = self.take(timeout=seconds)
            if tick is None:
                return found
            found.append(tick)

    def close(self):
        self.pubsub.close()
        self.client.close()


@pytest.fixture
def listen(server):
    listeners = []

    def begin(channel, on=server):
        listeners.append(Listener(on, channel))
        return listeners[-1]

    yield begin
    for listener in listeners:
        listener.close()


def tick_on(channel, rate, **more):
    return {"channel": channel, "rate": rate, **more}


def assert_no_slot_twice(ticks):
    slots = [tick[0] for tick in ticks]
    assert slots == sorted(set(slots))


def test_installs_library_and_table_and_gets_ready(start, server):
    broker = start(namespaces={"default": {}, "chat": {"max_payload": 10}})
    broker.wait_for("library_installed version=1")
    broker.wait_for("lease_acquired epoch=")
    broker.wait_for("broker_ready")
    with server.connect() as client:
        assert client.execute_command("FCALL", "tidecast_publish", 1, "tide:news", "hello")
        with pytest.raises(redis.ResponseError, match="payload_too_big"):
            client.execute_command("FCALL", "tidecast_publish", 1, "tide:chat:a", "x" * 11)
        assert client.hget("tide:$config", "ns:chat").startswith(b"messages=1000 ttl_ms=600000 ")
    assert broker.stop() == 0
    with server.connect() as client:
        assert not client.exists("tide:$lease")


def test_ticks_lie_at_their_slots_and_miss_none(start, listen):
    ears = listen("demo:clock")
    broker = start([tick_on("demo:clock", 50)])
    ticks = ears.take_many(60)
    slots = [seq for seq, *_ in ticks]
    assert slots == list(range(slots[0], slots[0] + 60))
    for seq, at, head, _ in ticks:
        assert at == seq * 20_000_000
        assert re.fullmatch(r"\x001 id=\d+-\d+ prev=\d+-\d+", head)
    assert abs(ticks[-1][1] / 1e9 - time.time()) < 2
    assert not broker.has_logged("ticker_behind")


def test_a_fractional_rate(start, listen):
    ears = listen("slow")
    start([tick_on("slow", 2.5)])
    ticks = ears.take_many(3)
    assert [at - ticks[0][1] for _, at, *_ in ticks] == [0, 400_000_000, 800_000_000]


def test_payloads_have_exactly_the_size_asked_for(start, listen):
    ears = listen("padded")
    own = listen("own")
    start([tick_on("padded", 20, payload=265),
           tick_on("own", 20, payload=300, content='{"seq":{seq},"p":"{pad}","t":{t},"x":"{y}"}')])
    for *_, payload in ears.take_many(3):
        assert len(payload) == 265
        assert json.loads(payload)["channel"] == "padded"
    for *_, payload in own.take_many(3):
        assert len(payload) == 300
        assert json.loads(payload)["x"] == "{y}"


def test_twenty_thousand_ticks_a_second(start, listen):
    ears = listen("fast")
    broker = start([tick_on("fast", 20000)], namespaces={"default": {"history": {"messages": 0}}})
    ticks = ears.take_many(20000)
    assert_no_slot_twice(ticks)
    span = ticks[-1][0] - ticks[0][0] + 1
    told = sum(int(re.search(r"skipped=(\d+)", line)[1])
               for line in broker.has_logged("ticker_behind"))
    assert span == 20000 or told >= span - 20000, "a hole is told"


@pytest.mark.parametrize(
    ("tick", "reason"),
    [
        (tick_on("a", 1, payload=20), "longer than the payload size"),
        (tick_on("a", 1, payload=100, content="{seq}"), r"needs a \{pad\}"),
        (tick_on("a", 1, payload=100, content="{pad}{pad}"), r"more than one \{pad\}"),
        (tick_on("a", 1, payload=100000), "above max_payload"),
    ],
)
def test_bad_content_ends_the_start_with_a_reason(start, tick, reason):
    broker = start([tick])
    assert broker.process.wait(timeout=SOON) == 2
    broker.wait_for(reason)


def test_two_brokers_never_tick_twice_and_one_takes_over(start, listen):
    ears = listen("t")
    first = start([tick_on("t", 100)])
    first.wait_for("ticker_started channel=t")
    second = start([tick_on("t", 100)])
    second.wait_for("broker_ready")
    ticks = ears.take_many(50)
    assert not second.has_logged("lease_acquired")
    assert first.stop() == 0
    second.wait_for("ticker_started")
    ticks += ears.take_many(100)
    assert_no_slot_twice(ticks)


def test_two_brokers_of_one_name_are_still_two(start, listen):
    ears = listen("t")
    same = ["--set", "broker.name=same"]
    first = start([tick_on("t", 100)], arguments=same)
    first.wait_for("ticker_started channel=t")
    second = start([tick_on("t", 100)], arguments=same)
    second.wait_for("broker_ready")
    assert_no_slot_twice(ears.take_many(100))
    assert not second.has_logged("lease_acquired")


def test_a_killed_broker_is_replaced_within_its_lease(start, listen):
    ears = listen("t")
    first = start([tick_on("t", 100)])
    first.wait_for("ticker_started")
    second = start([tick_on("t", 100)])
    second.wait_for("broker_ready")
    ticks = ears.take_many(20)
    first.signal(signal.SIGKILL)
    second.wait_for("lease_acquired", seconds=LEASE_SECONDS + 1)
    ticks += ears.take_many(100)
    assert_no_slot_twice(ticks)


def test_a_broker_that_was_stopped_past_its_lease_does_not_tick(start, listen):
    ears = listen("t")
    first = start([tick_on("t", 1000)])
    first.wait_for("ticker_started")
    second = start([tick_on("t", 1000)])
    second.wait_for("broker_ready")
    ticks = ears.take_many(100)
    first.signal(signal.SIGSTOP)
    second.wait_for("ticker_started")
    ticks += ears.take_many(500)
    first.signal(signal.SIGCONT)
    first.wait_for("lease_lost epoch=\\d+ reason=(expired|stale_epoch|taken)")
    ticks += ears.take_many(500)
    assert_no_slot_twice(ticks)
    assert len(first.has_logged("lease_acquired")) == 1


def test_redis_restarted_empty(start, server, listen):
    broker = start([tick_on("t", 50)])
    broker.wait_for("ticker_started")
    server.kill()
    server.start()
    broker.wait_for("library_installed")
    broker.wait_for("ticker_started")
    assert_no_slot_twice(listen("t").take_many(20))
    assert broker.stop() == 0


def test_redis_paused_past_the_lease(start, server, listen):
    ears = listen("t")
    first = start([tick_on("t", 100)])
    first.wait_for("ticker_started")
    second = start([tick_on("t", 100)])
    second.wait_for("broker_ready")
    server.pause()
    first.wait_for("lease_lost")
    server.resume()
    deadline = time.monotonic() + 3
    ticks = []
    while time.monotonic() < deadline:
        tick = ears.take(timeout=0.1)
        if tick:
            ticks.append(tick)
    assert len(ticks) > 50
    assert_no_slot_twice(ticks)


def test_a_flushed_function_is_back_within_two_seconds(start, server):
    broker = start([tick_on("t", 10)])
    broker.wait_for("broker_ready")
    broker.wait_for("ticker_started")
    with server.connect() as client:
        client.execute_command("FUNCTION", "FLUSH")
        broker.wait_for("library_installed", seconds=2)


def test_a_flushed_table_is_back_within_two_seconds(start, server, listen):
    broker = start([tick_on("t", 10)])
    broker.wait_for("ticker_started")
    with server.connect() as client:
        client.flushall()
        broker.wait_for("namespaces_configured", seconds=2)
        assert client.hget("tide:$config", "ns:default")
    assert_no_slot_twice(listen("t").take_many(10))


def numbered(version):
    return LIBRARY.read_text().replace("local VERSION = 1\n", f"local VERSION = {version}\n")


def library_version(client):
    return client.execute_command("FCALL_RO", "tidecast_version", 0)


def test_an_older_library_is_replaced_and_a_newer_one_is_not(start, server):
    with server.connect() as client:
        client.execute_command("FUNCTION", "LOAD", numbered(0))
        older = start()
        older.wait_for("library_outdated version=0")
        older.wait_for("library_installed version=1")
        older.wait_for("broker_ready")
        assert library_version(client) == 1
        older.stop()
        client.execute_command("FUNCTION", "LOAD", "REPLACE", numbered(9))
        newer = start()
        newer.wait_for("library_newer version=9")
        newer.wait_for("broker_ready")
        assert library_version(client) == 9


def test_an_older_library_that_came_later_is_noticed(start, server):
    broker = start()
    broker.wait_for("broker_ready")
    with server.connect() as client:
        client.execute_command("FUNCTION", "LOAD", "REPLACE", numbered(0))
        broker.wait_for("library_installed version=1", seconds=2)


def test_a_newer_table_is_left_alone(start, server):
    with server.connect() as client:
        server.load_library()
        client.hset("tide:$config", mapping={"schema": "2", "hash": "newer", "ns:default": "?"})
        broker = start()
        broker.wait_for("library_refused step=configure .*config_unsupported")
        assert client.hget("tide:$config", "schema") == b"2"


def test_the_holders_table_is_in_force(start, server):
    first = start(namespaces={"default": {"max_payload": 100}})
    first.wait_for("broker_ready")
    second = start(namespaces={"default": {"max_payload": 200}})
    second.wait_for("broker_ready")
    with server.connect() as client:
        assert b"max_payload=100 " in client.hget("tide:$config", "ns:default")
        first.stop()
        second.wait_for("namespaces_configured")
        assert b"max_payload=200 " in client.hget("tide:$config", "ns:default")


def poor_user(client, *rights):
    client.execute_command(
        "ACL", "SETUSER", "poor", "reset", "on", ">secret-word", "~tide:*", "&tide:*", "+@all", *rights)


def test_names_each_missing_right(start, server):
    with server.connect() as client:
        poor_user(client, "-xadd", "-pexpire")
        broker = start(user="poor", password="secret-word")
        broker.wait_for("acl_missing command=xadd")
        broker.wait_for("acl_missing command=pexpire")
        broker.wait_for("broker_ready")
    assert not broker.has_logged("secret-word")


def test_goes_on_without_the_right_to_load_if_a_library_is_there(start, server):
    with server.connect() as client:
        poor_user(client, "-function")
        lonely = start(user="poor", password="secret-word")
        lonely.wait_for("library_refused step=load .*NOPERM")
        client.execute_command("FUNCTION", "LOAD", numbered(0))
        lonely.wait_for("library_refused step=upgrade .*NOPERM")
        lonely.wait_for("broker_ready")
        assert library_version(client) == 0


def test_the_shipped_users_file_suffices(start, listen, tmp_path):
    acl = tmp_path / "users.acl"
    acl.write_text((ROOT / "deploy" / "redis-users.acl").read_text())
    with RedisServer([f"aclfile {acl}"]) as guarded:
        broker = start([tick_on("t", 20)], on=guarded, user="broker", password="BROKER_PASSWORD")
        broker.wait_for("ticker_started")
        ears = listen("t", on=guarded)
        ears.take_many(5)
        assert not broker.has_logged("acl_missing|refused")
        assert broker.stop() == 0


def test_a_full_redis_is_told_and_ticks_come_back(start, server, listen):
    ears = listen("t")
    broker = start([tick_on("t", 50)])
    broker.wait_for("ticker_started")
    with server.connect() as client:
        client.config_set("maxmemory", 1)
        broker.wait_for("tick_refused channel=t .*OOM")
        ears.take_until_quiet(0.2)
        client.config_set("maxmemory", 0)
    ears.take_many(5)
    assert not broker.has_logged("lease_lost")


def test_a_stall_is_caught_up_for_a_second_and_the_rest_told(start, listen):
    ears = listen("t")
    broker = start([tick_on("t", 100)], arguments=["--set", "broker.lease=10s"])
    broker.wait_for("ticker_started")
    ears.take_many(5)
    broker.signal(signal.SIGSTOP)
    ears.take_until_quiet(2)
    broker.signal(signal.SIGCONT)
    told = broker.wait_for(r"ticker_behind channel=t skipped=(\d+) late_ms=(\d+)")
    assert 60 <= int(told[1]) <= 400
    assert int(told[2]) >= 1900
    ticks = ears.take_many(120)
    assert_no_slot_twice(ticks)


def test_ticks_that_redis_does_not_answer_are_bounded_and_told(start, server, listen):
    ears = listen("t")
    broker = start([tick_on("t", 20000)], namespaces={"default": {"history": {"messages": 0}}},
                   arguments=["--set", "broker.lease=30s"], probe_timeout="10s")
    broker.wait_for("ticker_started")
    ears.take_many(100)
    server.pause()
    broker.wait_for(r"ticker_behind channel=t skipped=\d{4}")
    server.resume()
    assert_no_slot_twice(ears.take_many(15000))
    assert not broker.has_logged("lease_lost|overflow")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("state", ["busy", "redis paused", "redis gone"])
def test_ends_cleanly_within_two_seconds(start, server, number, state):
    broker = start([tick_on("t", 2000)], probe_timeout="10s")
    broker.wait_for("ticker_started")
    if state == "redis paused":
        server.pause()
    if state == "redis gone":
        server.kill()
        broker.wait_for("redis_link_down|link")
    began = time.monotonic()
    broker.signal(number)
    assert broker.process.wait(timeout=SOON) == 0
    assert time.monotonic() - began < 2


def test_waits_for_a_redis_that_comes_later(start, server):
    server.kill()
    broker = start([tick_on("t", 10)])
    broker.wait_for("redis")
    server.start()
    broker.wait_for("ticker_started")
    assert broker.process.poll() is None

"""The host's clock steps by an hour, either way: nothing of ours may hang on it."""

import pathlib
import struct
import subprocess
import time

import pytest

from cluster import BIN, wait_until
from processes import is_sanitized

HOUR = 3600
HEARTBEATS = "tidecast_heartbeats_total"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("clock") / "clock_shift.so"
    source = pathlib.Path(__file__).with_name("clock_shift.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, source], check=True)
    return path


class Clock:
    def __init__(self, path):
        self.path = path
        self.step(0)

    def step(self, seconds):
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("l", seconds))


@pytest.fixture
def stepped(make_cluster, library, tmp_path):
    """A cluster whose gateway has a clock of its own."""
    clock = Clock(tmp_path / "shift")
    cluster = make_cluster(gateways=0, namespaces={"default": {"publish": "anyone"}})
    preload = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                             check=True).stdout.strip()
    libraries = f"{preload} {library}" if is_sanitized(BIN / "tidecast-gateway") else str(library)
    gateway = cluster.add_gateway(
        {"gateway.heartbeat": "1s", "gateway.request_timeout": "2s"},
        wrapper=["env", f"LD_PRELOAD={libraries}", f"CLOCK_SHIFT_FILE={clock.path}"])
    return cluster, gateway, clock


def hour_of(gateway):
    """What the gateway takes for the time, by its answers' Date."""
    date = gateway.request("GET", "/healthz").headers["date"]
    return time.mktime(time.strptime(date, "%a, %d %b %Y %H:%M:%S GMT")) - time.timezone


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_step_neither_fires_the_heartbeats_nor_stops_them(stepped, step):
    cluster, gateway, clock = stepped
    streams = [gateway.sse("news") for _ in range(20)]
    socket = gateway.ws("news")
    cluster.wait_subscribed("news")
    gateway.wait_metric(HEARTBEATS, lambda n: n >= 21)
    clock.step(step)
    before, began = gateway.metrics()[HEARTBEATS], time.monotonic()
    wait_until(lambda: abs(hour_of(gateway) - time.time() - step) < 5, what="the step")
    time.sleep(3)
    seconds = time.monotonic() - began
    beats = gateway.metrics()[HEARTBEATS] - before
    assert 21 * (seconds - 1.5) <= beats <= 21 * (seconds * 4 / 3 + 1.5), f"{beats} in {seconds} s"
    for client in streams:
        client.wait_for(lambda c: len(c.positions) >= 3)
    cluster.publish("news", "plain")
    for client in streams:
        assert client.next_event().data == "plain"
    assert socket.next_json()["data"] == "plain"
    answer = gateway.post("news", b"with an id")
    assert answer.status == 200, answer.body
    for client in streams:
        event = client.next_event()
        assert (event.data, event.id) == ("with an id", answer.json["id"])
    assert gateway.sse("other").status == 200 and gateway.ws("other").status == 101
    assert gateway.request("GET", "/readyz").status == 200
    assert "redis_link_down" not in gateway.log
    gateway.stop()


def test_a_step_ends_no_link_to_redis_and_no_message_is_taken_for_forged(stepped):
    cluster, gateway, clock = stepped
    client = gateway.sse("news")
    cluster.wait_subscribed("news")
    for number, step in enumerate((HOUR, -HOUR, 24 * HOUR, 0)):
        clock.step(step)
        time.sleep(0.3)
        cluster.fcall("news", f"message {number}")
        assert client.next_event().data == f"message {number}"
    metrics = gateway.metrics()
    assert metrics['tidecast_messages_dropped_total{reason="future_id"}'] == 0
    assert metrics['tidecast_messages_dropped_total{reason="stale_id"}'] == 0
    assert metrics['tidecast_redis_link_losses_total{link="subscriber"}'] == 0


def test_requests_are_answered_and_slow_ones_ended_after_a_step_back(stepped):
    """The web server's own timeouts run on the wall clock; what hangs on them must not last."""
    _, gateway, clock = stepped
    early = gateway.connect()
    early.sendall(b"GET /sse/news HTTP/1.1\r\n")
    gateway.request("GET", "/healthz")
    clock.step(-HOUR)
    for _ in range(20):
        assert gateway.request("GET", "/healthz").status == 200
    late = gateway.connect()
    late.sendall(b"GET /sse/news HTTP/1.1\r\n")
    for slow in (late, early):
        slow.settimeout(6)
        assert slow.recv(100) == b"", "a slow request is held for as long as the step"

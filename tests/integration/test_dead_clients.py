"""Clients that leave, in every way there is; none may stay in our books."""

import socket
import struct
import subprocess
import time
import uuid

import pytest

from cluster import wait_until
from processes import established, open_files

SSE = 'tidecast_connections{transport="sse"}'
WS = 'tidecast_connections{transport="websocket"}'
LEFT = 'tidecast_disconnects_total{reason="client"}'
ERRORS = 'tidecast_disconnects_total{reason="socket_error"}'


def leave(client, manner):
    if manner == "half-close":
        client.socket.shutdown(socket.SHUT_WR)
        return
    if manner == "rst":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("manner", ["fin", "rst", "half-close"])
@pytest.mark.parametrize("kind", ["sse", "ws"])
def test_a_client_that_leaves_an_idle_stream_is_noticed_at_once(make_cluster, manner, kind):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    gateway.metrics()
    before = open_files(worker)
    clients = [getattr(gateway, kind)("news") for _ in range(50)]
    gauge = SSE if kind == "sse" else WS
    gateway.wait_metric(gauge, 50)
    began = time.monotonic()
    for client in clients:
        leave(client, manner)
    gateway.wait_metric(gauge, 0)
    assert time.monotonic() - began < 2
    assert gateway.metrics()[LEFT] == 50
    assert gateway.metrics()["tidecast_subscriptions"] == 0
    if manner == "half-close":
        for client in clients:
            client.wait_end()
    wait_until(lambda: open_files(worker) <= before, what="the end of its descriptors")
    assert established(gateway.address[1]) == 0


def test_a_client_that_leaves_within_its_request_is_forgotten(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    for request in (b"", b"G", b"GET /sse/news HTTP/1.1\r\n", b"GET /sse/news HTTP/1.1\r\nHost: a\r\n\r\n"):
        for manner in ("fin", "rst"):
            with socket.create_connection(gateway.address) as client:
                if manner == "rst":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(request)
    gateway.wait_metric(SSE, 0)
    gateway.wait_metric("tidecast_sockets", 1)


def test_many_who_leave_in_the_middle_of_a_sweep(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    for number in range(10):
        leaving = [gateway.sse("news") for _ in range(60)]
        staying = [gateway.sse("news") for _ in range(5)]
        cluster.wait_subscribed("news")
        for client in leaving:
            leave(client, ("rst", "fin")[number % 2])
            cluster.publish("news", "x")
        cluster.publish("news", "the end")
        for client in staying:
            client.wait_for(lambda c: c.events and c.events[-1].data == "the end")
            assert len(client.events) == 61
            client.close()
        gateway.wait_metric(SSE, 0)


class Namespace:
    """A network of its own, tied to ours by a pair of virtual interfaces."""

    def __init__(self):
        tag = uuid.uuid4().hex[:6]
        self.name, self.here, self.there = f"tc-{tag}", f"tch{tag}", f"tct{tag}"
        number = int(tag[:4], 16) % 250
        self.address, self.peer = f"198.18.{number}.1", f"198.18.{number}.2"

    def run(self, *command):
        done = subprocess.run(["ip", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"ip {' '.join(command)}: {done.stderr.strip()}")

    def make(self):
        self.run("netns", "add", self.name)
        self.run("link", "add", self.here, "type", "veth", "peer", "name", self.there, "netns",
                 self.name)
        self.run("addr", "add", f"{self.address}/24", "dev", self.here)
        self.run("link", "set", self.here, "up")
        self.run("-n", self.name, "addr", "add", f"{self.peer}/24", "dev", self.there)
        self.run("-n", self.name, "link", "set", self.there, "up")

    def vanish(self):
        """No packet of theirs comes any more, and none of ours arrives."""
        self.run("-n", self.name, "link", "set", self.there, "down")

    def remove(self):
        for command in (["netns", "del", self.name], ["link", "del", self.here]):
            subprocess.run(["ip", *command], capture_output=True, check=False)


@pytest.fixture
def elsewhere():
    namespace = Namespace()
    try:
        namespace.make()
    except OSError as error:
        namespace.remove()
        pytest.skip(f"no network namespaces here: {error}")
    yield namespace
    namespace.remove()


REMOTE_CLIENT = """
import socket, sys
host, port, request = sys.argv[1], int(sys.argv[2]), sys.argv[3].replace("|", "\\r\\n").encode()
clients = []
for _ in range(5):
    client = socket.create_connection((host, port), 10)
    client.sendall(request)
    assert client.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 101")
    clients.append(client)
print("connected", flush=True)
sys.stdin.read()
"""
REQUESTS = {
    "sse": "GET /sse/news HTTP/1.1|Host: a||",
    "ws": "GET /ws?channel=news HTTP/1.1|Host: a|Upgrade: websocket|Connection: Upgrade|"
          "Sec-WebSocket-Version: 13|Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==||",
}


@pytest.mark.parametrize("kind", ["sse", "ws"])
def test_a_client_that_vanishes_without_a_word_is_gone_soon(make_cluster, elsewhere, kind):
    """user_timeout is 30 s by default; what was sent and never acknowledged counts from then."""
    cluster = make_cluster(broker=False, settings={
        "gateway.listen": f"{elsewhere.address}:0", "gateway.user_timeout": "2s",
        "gateway.heartbeat": "1s"})
    gateway = cluster.gateway
    gauge = SSE if kind == "sse" else WS
    remote = subprocess.Popen(
        ["ip", "netns", "exec", elsewhere.name, "/usr/bin/python3", "-c", REMOTE_CLIENT,
         elsewhere.address, str(gateway.address[1]), REQUESTS[kind]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert remote.stdout.readline() == "connected\n"
        local = gateway.sse("news") if kind == "sse" else gateway.ws("news")
        gateway.wait_metric(gauge, 6)
        elsewhere.vanish()
        began = time.monotonic()
        gateway.wait_metric(gauge, 1, seconds=20)
        assert time.monotonic() - began < 10
        metrics = gateway.metrics()
        assert metrics[ERRORS] == 5 and metrics[LEFT] == 0
        cluster.publish("news", "still here")
        received = local.next_event().data if kind == "sse" else local.next_json()["data"]
        assert received == "still here"
    finally:
        remote.kill()
        remote.communicate()


def test_the_kernel_watches_every_client_for_us(make_cluster):
    """Keepalive, user timeout and send buffer, as `ss` shows them for a stream."""
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    gateway.sse("news")
    shown = subprocess.run(["ss", "-tonem", "state", "established", "sport", "=",
                            f":{gateway.address[1]}"], capture_output=True, text=True,
                           check=True).stdout
    assert "timer:(keepalive," in shown
    seconds = shown.partition("keepalive,")[2].partition("sec")[0]
    assert 25 <= float(seconds) <= 30, shown
    assert "tb32768" in shown, "SO_SNDBUF of 16 KiB, which the kernel doubles"

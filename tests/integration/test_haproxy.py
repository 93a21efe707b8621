"""deploy/haproxy.cfg, the very file, in front of two stand-in gateways."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import websockets

from standin_gateway import StandinGateway

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "deploy/haproxy.cfg"


class Proxy:
    """HAProxy on a port of the kernel's choice; ended by close()."""

    def __init__(self, gateways):
        self.clients = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        os.set_inheritable(self.listener.fileno(), True)
        environment = dict(os.environ, TIDECAST_BIND=f"fd@{self.listener.fileno()}")
        for number, gateway in enumerate(gateways, 1):
            environment[f"TIDECAST_GATEWAY_{number}"] = f"127.0.0.1:{gateway.port}"
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen(
            [program, "-db", "-q", "-f", CONFIG, "-f", ROOT / "deploy/haproxy-local.cfg"],
            env=environment, close_fds=False, stderr=subprocess.DEVNULL)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.listener.close()
        for client in self.clients:
            client.close()

    def open(self, request, timeout=10):
        """Sends a request; its socket, with nothing read yet."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout)
        self.clients.append(client)
        client.sendall(request)
        return client

    def ask(self, request):
        """The whole answer to a request that closes its connection."""
        with self.open(request) as client, client.makefile("rb") as reader:
            return reader.read()


def get(path, *headers):
    lines = [f"GET {path} HTTP/1.1", "Host: tidecast", *headers, "", ""]
    return "\r\n".join(lines).encode()


def read_until(client, text):
    data = b""
    while text not in data:
        piece = client.recv(4096)
        assert piece, f"ended before {text}: {data}"
        data += piece
    return data


def status(answer):
    return int(answer.split(b" ", 2)[1])


@pytest.fixture
def gateways():
    pair = [StandinGateway("one"), StandinGateway("two")]
    yield pair
    for gateway in pair:
        try:
            gateway.stop()
        except OSError:
            pass


@pytest.fixture
def proxy(gateways):
    haproxy = Proxy(gateways)
    yield haproxy
    haproxy.close()


def wait_until_seen(gateways):
    """Until HAProxy has checked each of them twice from now on."""
    for gateway in gateways:
        seen = gateway.checks
        deadline = time.monotonic() + 10
        # Two backends check, and it takes `fall` = 2 checks of each: six are enough for any order.
        while gateway.checks < seen + 6:
            assert time.monotonic() < deadline, "no health checks"
            time.sleep(0.02)


def test_every_idle_timeout_outlives_three_heartbeats():
    heartbeat = re.search(r"^\s*heartbeat:\s*(\d+)s\b", (ROOT / "config.yaml").read_text(), re.M)
    text = CONFIG.read_text()
    for name in ("client", "server", "tunnel"):
        found = re.findall(rf"^\s*timeout {name} (\d+)s$", text, re.M)
        assert len(found) == 1, f"timeout {name} must be there once, in seconds"
        assert int(found[0]) > 3 * int(heartbeat[1]), f"timeout {name} cuts idle streams"


def test_never_cuts_sessions_of_a_server_that_is_marked_down():
    rules = [line for line in CONFIG.read_text().splitlines() if not line.strip().startswith("#")]
    assert not any("on-marked-down" in line or "compression" in line for line in rules)


def test_first_bytes_come_at_once_though_the_client_takes_gzip(proxy):
    proxy.ask(get("/healthz", "Connection: close"))
    begin = time.monotonic()
    with proxy.open(get("/sse/news", "Accept-Encoding: gzip, br")) as client:
        answer = read_until(client, b"data: ")
    assert time.monotonic() - begin < 0.1
    head = answer.lower()
    assert b"content-encoding" not in head and b"cache-control: no-cache, no-transform" in head
    assert b"upgrade" not in head


@pytest.mark.parametrize("manner", ["fin", "rst", "half-close"])
def test_a_client_that_leaves_an_idle_stream_is_told_to_the_gateway(proxy, gateways, manner):
    with proxy.open(get("/sse/news")) as client:
        read_until(client, b"data: ")
        gateway = max(gateways, key=lambda g: len(g.requests))
        assert gateway.wait(lambda: gateway.streams)
        begin = time.monotonic()
        if manner == "half-close":
            client.shutdown(socket.SHUT_WR)
        elif manner == "rst":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        else:
            client.close()
        assert gateway.wait(lambda: gateway.left), "the gateway was not told"
        assert gateway.left[0] - begin < 0.2


def test_websocket_goes_through_and_is_closed_through(proxy, gateways):
    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{proxy.port}/ws", close_timeout=0.1) as client:
            return await client.recv()
    assert asyncio.run(talk()) in ("one", "two")
    assert any(gateway.wait(lambda g=gateway: g.left, 1) for gateway in gateways)


def test_streams_spread_over_both_gateways(proxy, gateways):
    clients = [proxy.open(get("/sse/news")) for _ in range(10)]
    for client in clients:
        read_until(client, b"data: ")
    assert all(gateway.wait(lambda g=gateway: len(g.streams) == 5) for gateway in gateways)


def test_a_redis_blip_answers_no_503_and_cuts_no_stream(proxy, gateways):
    clients = [proxy.open(get("/sse/news")) for _ in range(10)]
    for client in clients:
        read_until(client, b"data: ")
    for gateway in gateways:
        gateway.is_ready = False
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        client = proxy.open(get("/sse/news"))
        assert status(read_until(client, b"data: ")) == 200
        clients.append(client)
        time.sleep(0.05)
    for gateway in gateways:
        gateway.is_ready = True
    wait_until_seen(gateways)
    assert not any(gateway.left for gateway in gateways)
    for gateway in gateways:
        gateway.send(b"data: after\n\n")
    for client in clients:
        read_until(client, b"data: after")


def test_new_clients_prefer_a_ready_gateway(proxy, gateways):
    gateways[0].is_ready = False
    wait_until_seen(gateways)
    for _ in range(6):
        read_until(proxy.open(get("/sse/news")), b"data: two")
    assert not gateways[0].streams


def test_a_killed_gateway_costs_no_error(proxy, gateways):
    proxy.ask(get("/healthz", "Connection: close"))
    gateways[0].stop()
    begin = time.monotonic()
    for _ in range(20):
        answer = read_until(proxy.open(get("/sse/news")), b"data: ")
        assert status(answer) == 200
    assert time.monotonic() - begin < 4


def test_a_stream_is_asked_for_again_elsewhere_when_a_gateway_hangs_up(proxy, gateways):
    gateways[0].is_mute = True
    for _ in range(6):
        read_until(proxy.open(get("/sse/news")), b"data: two")
    assert gateways[0].requests, "the mute gateway was never tried"


def test_a_publish_is_never_sent_twice(proxy, gateways):
    for gateway in gateways:
        gateway.is_mute = True
    answer = proxy.ask(b"POST /publish/news HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n"
                       b"Connection: close\r\n\r\nhi")
    assert status(answer) == 502
    assert sum(len(gateway.requests) for gateway in gateways) == 1


def test_a_publish_is_tried_elsewhere_when_the_connection_fails(proxy, gateways):
    proxy.ask(get("/healthz", "Connection: close"))
    gateways[0].stop()
    for _ in range(4):
        answer = proxy.ask(b"POST /publish/news HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n"
                           b"Connection: close\r\n\r\nhi")
        assert status(answer) == 200
    assert gateways[1].bodies == [b"hi"] * 4


def test_an_event_source_gets_an_empty_stream_when_no_gateway_is_there(proxy, gateways):
    for gateway in gateways:
        gateway.stop()
    for path, expected in (("/sse/news", 200), ("/sse?channel=a", 200), ("/ws", 503)):
        answer = proxy.ask(get(path, "Connection: close"))
        assert status(answer) == expected, path
        is_stream = b"content-type: text/event-stream" in answer.lower()
        assert is_stream == (expected == 200), answer


def test_what_a_gateway_refuses_stays_refused(proxy, gateways):
    for gateway in gateways:
        gateway.refusal = b"503 Service Unavailable"
    answer = proxy.ask(get("/sse/news", "Connection: close"))
    assert status(answer) == 503


def test_a_gateway_that_comes_back_is_used_again(proxy, gateways):
    for gateway in gateways:
        gateway.stop()
    deadline = time.monotonic() + 10
    while status(proxy.ask(get("/ws", "Connection: close"))) != 503:
        assert time.monotonic() < deadline
    gateways[0].start()
    wait_until_seen(gateways[:1])
    read_until(proxy.open(get("/sse/news")), b"data: one")


@pytest.mark.parametrize("request_bytes", [
    b"GET /sse/a HTTP/1.1\r\n\r\n",
    b"GET /sse/a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /publish/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /publish/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
    b"GET /sse/a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /sse/a HTTP/1.1\nHost : a\n\n",
], ids=["no-host", "two-hosts", "two-lengths", "unknown-coding", "sse-body",
        "websocket-body", "blank-before-colon"])
def test_malformed_framing_never_reaches_a_gateway(proxy, gateways, request_bytes):
    answer = proxy.ask(request_bytes)
    assert status(answer) in (400, 422, 501)
    assert not any(gateway.requests for gateway in gateways)


def test_two_framings_of_one_request_reach_a_gateway_as_one(proxy, gateways):
    answer = proxy.ask(b"POST /publish/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET /sse/x HTTP/1.1\r\n\r\n")
    assert answer.count(b"HTTP/1.1") == 1, "the connection must end there"
    heads = [head for gateway in gateways for head in gateway.requests]
    assert len(heads) == 1 and b"content-length" not in heads[0].lower()


def test_clients_cannot_forge_their_address(proxy, gateways):
    read_until(proxy.open(get("/sse/news", "X-Forwarded-For: 6.6.6.6")), b"data: ")
    head = next(gateway.requests[0] for gateway in gateways if gateway.requests).lower()
    assert b"x-forwarded-for: 127.0.0.1" in head and b"6.6.6.6" not in head

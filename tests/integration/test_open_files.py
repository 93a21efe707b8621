"""Too many clients, and no descriptors left: refused with a reason, never a hang, never a spin."""

import contextlib
import resource
import socket
import time

import pytest

from cluster import wait_until
from processes import CpuMeter, open_files

REFUSED_FILES = 'tidecast_refusals_total{reason="open_files"}'
REFUSED_CONNECTIONS = 'tidecast_refusals_total{reason="max_connections"}'
SSE = 'tidecast_connections{transport="sse"}'


def try_stream(gateway):
    """A socket and the first bytes that come on it."""
    client = gateway.keep(socket.create_connection(gateway.address, 5))
    with contextlib.suppress(OSError):
        client.sendall(b"GET /sse/news HTTP/1.1\r\nHost: a\r\n\r\n")
    try:
        return client, client.recv(4096)
    except ConnectionResetError:
        return client, b""


def limit_files(pid, soft):
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_out_of_descriptors_is_told_without_spinning_and_passes(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    neighbours = [gateway.sse("news") for _ in range(10)]
    cluster.wait_subscribed("news")
    limit_files(worker, open_files(worker))
    answers = [try_stream(gateway)[1] for _ in range(30)]
    told = [answer for answer in answers if answer]
    assert len(told) >= 25, "most were closed without a word"
    for answer in told:
        assert answer.startswith(b"HTTP/1.1 503 ") and b"open_files" in answer
        assert b"Retry-After: " in answer and b"Connection: close" in answer
    meter = CpuMeter([worker])
    idle = [gateway.connect() for _ in range(20)]
    time.sleep(1)
    assert meter.share() < 0.2, "it spins"
    cluster.publish("news", "hello")
    for client in neighbours:
        assert client.next_event().data == "hello"
    for client in neighbours[5:]:
        client.close()
    wait_until(lambda: b"HTTP/1.1 200 " in try_stream(gateway)[1], what="service being back")
    limit_files(worker, 4096)
    gateway.wait_metric(REFUSED_FILES, lambda n: n >= 30)
    assert len(idle) == 20
    assert 1 <= gateway.log.count("reason=open_files") <= 5, "a log line each"


def test_nothing_left_even_for_the_reserve(make_cluster):
    """Accepting stops then, and begins again by itself."""
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    stream = gateway.sse("news")
    cluster.wait_subscribed("news")
    limit_files(worker, 5)
    waiting = [gateway.connect() for _ in range(10)]
    meter = CpuMeter([worker])
    time.sleep(1)
    assert meter.share() < 0.2, "it spins"
    cluster.publish("news", "hello")
    assert stream.next_event().data == "hello"
    limit_files(worker, 4096)
    wait_until(lambda: b"HTTP/1.1 200 " in try_stream(gateway)[1], what="service being back")
    assert len(waiting) == 10


@pytest.mark.parametrize("settings,wrapper,most", [
    ({"gateway.max_connections": 10}, [], 10),
    ({}, ["prlimit", "--nofile=84:84"], 20),
    ({"gateway.max_connections": 1000}, ["prlimit", "--nofile=84:84"], 20),
], ids=["max_connections", "open-files-limit", "max_connections-above-it"])
def test_the_most_connections_and_not_one_more(make_cluster, settings, wrapper, most):
    cluster = make_cluster(gateways=0, broker=False)
    gateway = cluster.add_gateway(settings, wrapper=wrapper)
    wait_until(lambda: gateway.metrics()["tidecast_sockets"] == 1)
    streams = [gateway.sse("news") for _ in range(most - 1)]  # /metrics needs one, too
    gateway.wait_metric(SSE, most - 1)
    last, answer = try_stream(gateway)
    assert answer.startswith(b"HTTP/1.1 200 ")
    for _ in range(3):
        _, answer = try_stream(gateway)
        assert answer.startswith(b"HTTP/1.1 503 ") and b'"error":"max_connections"' in answer
    assert gateway.metrics()[REFUSED_CONNECTIONS] == 3, "the admin listener has places of its own"
    last.close()
    streams.pop().close()
    wait_until(lambda: b"HTTP/1.1 200 " in try_stream(gateway)[1], what="a free place")
    cluster.wait_subscribed("news")
    cluster.publish("news", "hello")
    for client in streams:
        assert client.next_event().data == "hello"
    if settings and wrapper:
        assert "max_connections_lowered wanted=1000 open_files=84" in gateway.log


def test_a_thousand_connections_at_once_are_all_served(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    clients = [gateway.connect() for _ in range(1000)]
    for client in clients:
        client.sendall(b"GET /sse/news HTTP/1.1\r\nHost: a\r\n\r\n")
    for client in clients:
        assert client.recv(12) == b"HTTP/1.1 200"
    gateway.wait_metric(SSE, 1000)
    before = open_files(gateway.worker_pids()[0])
    gateway.close_clients()
    gateway.wait_metric(SSE, 0)
    assert before - open_files(gateway.worker_pids()[0]) >= 999

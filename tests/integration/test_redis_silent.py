"""Redis that says nothing more and closes nothing: found by our own probes, within seconds."""

import socket
import subprocess
import time

import pytest

from cluster import Gateway, wait_until
from redis_fakes import SwallowingProxy

DEAF = 4.5  # probe_timeout of 3 s, a probe's interval, and the reconnect
LOSSES = 'tidecast_redis_link_losses_total{link="subscriber"}'


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(gateways=0, broker=False)


@pytest.fixture
def proxy(cluster):
    with SwallowingProxy(cluster.redis.socket) as running:
        yield running


@pytest.fixture
def gateway(cluster, proxy):
    return cluster.add_gateway({"redis.address": proxy.address})


def assert_delivers(cluster, client, text):
    cluster.wait_subscribed("news")
    cluster.publish("news", text)
    assert client.next_event().data == text


def test_links_whose_packets_are_lost_are_made_anew(cluster, proxy, gateway):
    """Both at once, as when Redis' host vanishes: none of them waits for the other's timeout."""
    client = gateway.sse("news")
    assert_delivers(cluster, client, "before")
    proxy.swallow()
    began = time.monotonic()
    gateway.wait_log("link=subscriber fault=silent")
    wait_until(lambda: cluster.publish("news", "after") and client.read_some(0.1))
    assert time.monotonic() - began < DEAF
    assert client.next_event().data == "after"
    gateway.wait_metric("tidecast_workers_ready", 1)
    assert time.monotonic() - began < DEAF + 1.5
    assert gateway.metrics()[LOSSES] == 1 and not client.ended


def test_silence_of_the_command_link_alone_is_found_too(cluster, proxy, gateway):
    """Without probes nobody could tell a healthy subscriber from a deaf one."""
    client = gateway.sse("news")
    assert_delivers(cluster, client, "before")
    proxy.swallow(lambda client: client in proxy.said(b"tidecast-command"))
    gateway.wait_log("link=command fault=silent")
    gateway.wait_metric("tidecast_workers_ready", 1)
    wait_until(lambda: cluster.publish("news", "after") and client.read_some(0.1))
    assert client.next_event().data == "after"


def test_an_answer_to_a_probe_that_comes_late_is_no_silence(make_cluster):
    """Redis was busy for longer than a publish waits, and for less than a silent link is allowed."""
    cluster = make_cluster(settings={"gateway.publish_timeout": "1s"})
    gateway = cluster.gateway
    heard = gateway.metrics()["tidecast_redis_probes_heard_total"]
    gateway.wait_metric("tidecast_redis_probes_heard_total", lambda count: count > heard)
    time.sleep(0.85)
    cluster.redis_client.execute_command("CLIENT", "PAUSE", "1600", "ALL")
    time.sleep(1.6 + DEAF)
    metrics = gateway.metrics()
    assert metrics['tidecast_redis_link_losses_total{link="command"}'] == 0
    assert metrics[LOSSES] == 0 and metrics["tidecast_workers_ready"] == 1


def test_while_nothing_answers_attempts_end_in_time_and_are_repeated(cluster, proxy, gateway):
    proxy.swallows_new = True
    proxy.swallow()
    gateway.wait_log(r"fault=connect .*still greeting after", 12)
    assert gateway.request("GET", "/readyz").status == 503
    assert gateway.sse("news").status == 200
    proxy.swallows_new = False
    gateway.wait_ready(12)


def test_a_frozen_redis_is_left_within_seconds(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client, "before")
    began = time.monotonic()
    cluster.redis.pause()
    gateway.wait_log("link=subscriber fault=silent")
    assert time.monotonic() - began < DEAF
    gateway.wait_metric("tidecast_workers_ready", 0)
    cluster.redis.resume()
    gateway.wait_ready()
    assert_delivers(cluster, client, "after")


def test_a_quiet_redis_is_no_silent_one(cluster, proxy, gateway):
    gateway.sse("news")
    time.sleep(4)
    assert gateway.metrics()[LOSSES] == 0
    assert proxy.connections == 2


def redis_on(hosts, port, directory):
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", *hosts, "--save", "", "--dir", str(directory)],
        stdout=subprocess.DEVNULL)
    wait_until(lambda: _connects(hosts[0], port))
    return process


def _connects(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return probe.connect_ex((host, port)) == 0


def local_addresses():
    return {entry[4][0] for entry in socket.getaddrinfo("localhost", 1)}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
@pytest.mark.parametrize("spelling", ["localhost", "literal"])
def test_redis_on_one_family_only(tmp_path, host, spelling):
    """All addresses of a name are tried, whichever comes first."""
    if spelling == "localhost" and host not in local_addresses():
        pytest.skip(f"localhost is not {host} here")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as probe:
        port = probe.getsockname()[1]
    literal = f"[{host}]" if ":" in host else host
    address = f"{'localhost' if spelling == 'localhost' else literal}:{port}"
    server = redis_on([host], port, tmp_path)
    gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis", "redis.address": address})
    try:
        gateway.start()
        assert f"at={literal}:{port}" in gateway.log
    finally:
        gateway.close()
        server.kill()
        server.wait()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_a_gateway_that_listens_on_ipv6(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.listen": "[::1]:0",
                                                   "admin.listen": "[::1]:0"})
    gateway = cluster.gateway
    assert gateway.request("GET", "/healthz").status == 200
    assert f"listening address=[::1]:{gateway.address[1]}" in gateway.log
    with socket.create_connection(("::1", gateway.address[1]), 5) as client:
        client.sendall(b"GET /sse/news HTTP/1.1\r\nHost: [::1]\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        cluster.wait_subscribed("news")


def test_a_name_that_nobody_knows_is_told_and_does_not_hold_up_clients(tmp_path):
    gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis",
                                          "redis.address": "no-such-host.invalid:6379"})
    try:
        gateway.start(ready=False)
        gateway.wait_log("fault=resolve")
        client = gateway.sse("news")
        assert client.status == 200 and client.head_seconds < 0.5
    finally:
        gateway.close()


def test_a_path_that_is_no_socket_is_told(tmp_path):
    plain = tmp_path / "no-socket"
    plain.write_text("")
    gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis",
                                          "redis.address": f"unix:{plain}"})
    try:
        gateway.start(ready=False)
        gateway.wait_log("fault=connect .*Connection refused")
    finally:
        gateway.close()

"""Redis that restarts, is killed, paused, emptied, filled up or turned into a replica."""

import os
import select
import threading
import time

import pytest

from cluster import Gateway, wait_until
from processes import CpuMeter, stopped
from redis_server import RedisServer

NAMESPACES = {"default": {"publish": "anyone"}}
SUBSCRIBER_LOSSES = 'tidecast_redis_link_losses_total{link="subscriber"}'


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(namespaces=NAMESPACES)


def assert_delivers(cluster, client, channel="news", text="again"):
    cluster.wait_subscribed(channel)
    cluster.publish(channel, text)
    client.wait_for(lambda c: any(event.data == text for event in c.events), what=text)
    client.events.clear()


class ReadinessWatch(threading.Thread):
    """Asks /readyz all the time; `seen` is every status once."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.seen = set()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.01):
            self.seen.add(self.gateway.request("GET", "/readyz").status)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


@pytest.mark.parametrize("manner", ["stop", "kill"])
def test_clients_stay_and_are_served_again_after_a_restart(cluster, manner):
    gateway = cluster.gateway
    sse, ws = gateway.sse("news"), gateway.ws("news")
    cluster.wait_subscribed("news")
    getattr(cluster.redis, manner)()
    gateway.wait_metric("tidecast_workers_ready", 0)
    assert gateway.request("GET", "/readyz").status == 503
    assert gateway.request("GET", "/healthz").status == 200
    answer = gateway.post("news", b"lost")
    assert answer.status == 503 and answer.json["error"] == "redis_unavailable"
    assert answer.headers["retry-after"]
    late = gateway.sse("news")
    assert late.status == 200 and b"retry: " in late.body
    cluster.redis.start()
    gateway.wait_ready()
    cluster.wait_subscribed("news")
    cluster.publish("news", "again")
    for client in (sse, late):
        assert client.next_event().data == "again"
    assert ws.next_json()["data"] == "again"
    wait_until(lambda: gateway.post("news", b"with an id").status == 200,
               what="the broker's functions being back")
    assert sse.next_event().data == "with an id"
    assert gateway.metrics()[SUBSCRIBER_LOSSES] == 1


def test_the_subscriber_is_killed_again_and_again_under_load(cluster):
    """Every time: not ready, all channels subscribed again, and then messages arrive."""
    gateway = cluster.gateway
    names = [f"load:{number}" for number in range(40)]
    clients = {name: gateway.sse(name) for name in names}
    is_over = threading.Event()

    def publish():
        with cluster.redis.connect() as client:
            while not is_over.wait(0.001):
                for name in names:
                    client.publish("tide:" + name, "load")
    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        with ReadinessWatch(gateway) as watch:
            for number in range(6):
                cluster.wait_subscribed(names[-1])
                cluster.redis_client.client_kill_filter(_type="pubsub")
                gateway.wait_metric(SUBSCRIBER_LOSSES, lambda n, least=number: n > least)
                time.sleep(0.3)
            gateway.wait_metric("tidecast_workers_ready", 0)
            gateway.wait_ready()
        assert watch.seen == {200, 503}, "it never said that it was deaf"
    finally:
        is_over.set()
        thread.join()
    for name, client in clients.items():
        cluster.wait_subscribed(name)
        cluster.publish(name, "the end")
        client.wait_for(lambda c: any(event.data == "the end" for event in c.events))
        assert not client.ended
    assert gateway.metrics()["tidecast_subscriptions"] == len(names)


@pytest.mark.parametrize("seconds", [2, 5])
def test_a_pause_of_redis(cluster, seconds):
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    cluster.redis.pause()
    began = time.monotonic()
    late = gateway.sse("news", "other")
    assert late.status == 200 and late.head_seconds < 1
    meter = CpuMeter(gateway.worker_pids())
    time.sleep(seconds)
    assert meter.share() < 0.2
    cluster.redis.resume()
    gateway.wait_ready()
    cluster.wait_subscribed("other")
    assert_delivers(cluster, client)
    assert_delivers(cluster, late, "other")
    assert time.monotonic() - began < seconds + 5


def test_a_publish_that_redis_leaves_unanswered_fails_in_time(make_cluster):
    cluster = make_cluster(namespaces=NAMESPACES, settings={"gateway.publish_timeout": "500ms"})
    cluster.redis.pause()
    began = time.monotonic()
    answer = cluster.gateway.post("news", b"perhaps")
    assert answer.status == 503 and answer.json["error"] == "publish_unknown"
    assert 0.4 < time.monotonic() - began < 2
    cluster.redis.resume()
    wait_until(lambda: cluster.gateway.post("news", b"surely").status == 200)


def test_publishes_beyond_the_bound_are_refused_at_once(make_cluster):
    cluster = make_cluster(namespaces=NAMESPACES,
                           settings={"gateway.max_pending_publishes": 4})
    gateway = cluster.gateway
    cluster.redis.pause()
    waiting = [gateway.connect() for _ in range(12)]
    for client in waiting:
        client.sendall(b"POST /publish/news HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
    gateway.wait_metric('tidecast_publishes_total{result="unavailable"}', 8, seconds=2)
    refused, _, _ = select.select(waiting, [], [], 0)
    assert len(refused) == 8
    assert all(b"publish_queue_full" in client.recv(4096) for client in refused)
    cluster.redis.resume()
    wait_until(lambda: gateway.post("news", b"again").status == 200)


def test_flushall_takes_history_and_nothing_else(cluster):
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    first = gateway.post("news", b"one").json["id"]
    client.next_event()
    cluster.redis_client.flushall()
    assert_delivers(cluster, client)
    second = wait_until(lambda: (answer := gateway.post("news", b"two")).status == 200 and answer,
                        what="the broker's table being back").json["id"]
    assert client.next_event().id == second
    assert [int(part) for part in second.split("-")] > [int(part) for part in first.split("-")]


def test_functions_that_are_flushed_come_back(cluster):
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    cluster.broker.pause()
    cluster.redis_client.function_flush()
    answer = gateway.post("news", b"one")
    assert answer.status == 503 and answer.json["error"] == "function_missing"
    assert_delivers(cluster, client, text="plain ones still come")
    gateway.wait_ready()
    cluster.broker.resume()
    wait_until(lambda: gateway.post("news", b"two").status == 200)


def test_a_full_redis_refuses_to_publish_and_still_delivers(cluster):
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    cluster.redis_client.config_set("maxmemory", 1)
    answer = gateway.post("news", b"one")
    assert answer.status == 503 and answer.json["error"] == "redis_full"
    assert_delivers(cluster, client)
    assert gateway.request("GET", "/readyz").status == 200
    cluster.redis_client.config_set("maxmemory", 0)
    assert gateway.post("news", b"two").status == 200
    assert "redis_link_down" not in gateway.log


def test_a_replica_refuses_to_publish_and_the_link_stays(cluster):
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    cluster.redis_client.replicaof("127.0.0.1", "1")
    answer = gateway.post("news", b"one")
    assert answer.status == 503 and answer.json["error"] == "redis_unavailable"
    cluster.redis_client.replicaof("NO", "ONE")
    wait_until(lambda: gateway.post("news", b"two").status == 200)
    client.wait_for(lambda c: any(event.data == "two" for event in c.events))
    assert not client.ended


def test_a_redis_that_loads_its_data_is_waited_for(tmp_path):
    """Pub/Sub works meanwhile, functions do not."""
    options = ["rdbcompression no", "key-load-delay 4000", "loading-process-events-interval-bytes 1024"]
    with RedisServer(options) as server:
        with server.connect() as client:
            for number in range(500):
                client.set(f"key:{number}", "x" * 400)
            client.save()
        gateway = Gateway(tmp_path, server, namespaces=NAMESPACES)
        try:
            gateway.start()
            stream = gateway.sse("news")
            server.kill()
            starting = threading.Thread(target=server.start)
            starting.start()

            def answer():
                return gateway.post("news", b"one").json["error"]
            wait_until(lambda: "Loading" in (server.log.read_text() if server.log.exists() else ""))
            seen = set()
            while starting.is_alive():
                seen.add(answer())
                assert gateway.sse("other").status == 200
            starting.join()
            assert seen <= {"redis_unavailable", "function_missing", "publish_unknown"}, seen
            gateway.wait_ready()
            with server.connect() as client:
                wait_until(lambda: client.publish("tide:news", "hello") == 1)
            stream.wait_for(lambda c: c.events)
        finally:
            gateway.close()


def test_a_subscriber_that_redis_cuts_off_for_reading_too_slowly_comes_back(make_cluster):
    """The output-buffer limit ends the connection, perhaps in the middle of a message."""
    cluster = make_cluster(
        broker=False, redis_config=["client-output-buffer-limit pubsub 256kb 128kb 1"])
    gateway = cluster.gateway
    client = gateway.sse("news")
    assert_delivers(cluster, client)
    with stopped(*gateway.worker_pids()):
        for _ in range(200):
            cluster.publish("news", "x" * 20000)
        wait_until(lambda: cluster.redis_client.pubsub_numsub("tide:news")[0][1] == 0,
                   what="the cut")
    gateway.wait_metric(SUBSCRIBER_LOSSES, 1)
    gateway.wait_ready()
    again = gateway.sse("news")
    assert_delivers(cluster, again)
    metrics = gateway.metrics()
    assert metrics['tidecast_messages_dropped_total{reason="malformed"}'] == 0
    assert "fault=protocol" not in gateway.log and gateway.worker_pids()


def test_a_gateway_that_starts_before_redis_serves_when_it_is_there(tmp_path):
    server = RedisServer()
    gateway = Gateway(tmp_path, server)
    try:
        gateway.start(ready=False)
        client = gateway.sse("news")
        assert client.status == 200
        gateway.wait_log("fault=connect")
        server.start()
        gateway.wait_ready()
        with server.connect() as redis:
            wait_until(lambda: redis.publish("tide:news", "hello") == 1)
        assert client.next_event().data == "hello"
        assert gateway.log.count("fault=connect") == 2, "once a link"
    finally:
        gateway.close()
        server.close()


def test_a_gateway_that_never_finds_redis_ends_in_order(tmp_path):
    gateway = Gateway(tmp_path, settings={"gateway.backplane": "redis",
                                          "redis.address": f"unix:{tmp_path}/none.sock"})
    gateway.start(ready=False)
    gateway.wait_log("No such file or directory")
    began = time.monotonic()
    gateway.close()
    assert time.monotonic() - began < 3 and os.path.exists(tmp_path)

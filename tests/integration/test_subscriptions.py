"""Subscriptions in Redis against what clients want: joins, leaves, batches, and what is left over."""

import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from cluster import BIN, wait_until
from processes import is_sanitized, rss_bytes
from redis_fakes import SwallowingProxy

RESET = struct.pack("ii", 1, 0)


def channels_in_redis(cluster):
    """What gateways hear, probes and the broker's own aside."""
    return [name for name in cluster.redis_client.pubsub_channels("tide:*")
            if not name.startswith(b"tide:$")]


def reset_by(address, request):
    """Connects, asks and is gone with a RST before any answer can come."""
    with socket.create_connection(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.sendall(request)


def sse_request(channel):
    return f"GET /sse/{channel} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


class Publisher(threading.Thread):
    """PUBLISHes 0, 1, 2 … on channels without a pause, by a connection of its own."""

    def __init__(self, cluster, *channels, pause=0.002):
        super().__init__(daemon=True)
        self.client = cluster.redis.connect()
        self.channels = ["tide:" + channel for channel in channels]
        self.pause = pause
        self.count = 0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(self.pause):
            with self.client.pipeline(transaction=False) as batch:
                for channel in self.channels:
                    batch.publish(channel, str(self.count))
                batch.execute()
            self.count += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()
        self.client.close()


def assert_no_gap(events):
    numbers = [int(event.data) for event in events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers


@pytest.mark.parametrize("kind", ["sse", "ws"])
def test_two_thousand_clients_that_vanish_while_redis_is_paused_leave_nothing(make_cluster, kind):
    cluster = make_cluster(broker=False, settings={"gateway.unsubscribe_linger": "100ms"})
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    request = sse_request if kind == "sse" else lambda channel: (
        f"GET /ws?channel={channel} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode()

    def storm(count):
        cluster.redis_client.execute_command("CLIENT", "PAUSE", "1500", "ALL")
        for number in range(count):
            reset_by(gateway.address, request(f"gone:{number}"))
        gateway.wait_metric("tidecast_sockets", 1)  # the one that asks
        wait_until(lambda: channels_in_redis(cluster) == [], what="UNSUBSCRIBE of all")
        gateway.wait_metric("tidecast_channels", 0)
        return rss_bytes(worker)

    storm(200)
    before = storm(2000)
    after = storm(2000)
    most = 30_000_000 if is_sanitized(BIN / "tidecast-gateway") else 1_000_000  # freed is kept a while
    assert after - before < most, f"grew by {after - before} bytes"
    client = gateway.sse("news")
    cluster.wait_subscribed("news")
    cluster.publish("news", "alive")
    assert client.next_event().data == "alive"


def test_who_joins_while_the_last_leaves_gets_a_run_without_gaps(make_cluster):
    """Without a linger each leave sends UNSUBSCRIBE, and the next client meets it on its way: a
    thousand times, on fifty channels at once."""
    cluster = make_cluster(broker=False, settings={"gateway.unsubscribe_linger": "0ms"})
    names = [f"busy:{number}" for number in range(50)]
    joined = []
    with Publisher(cluster, *names) as publisher:
        clients = {name: cluster.gateway.sse(name) for name in names}
        for _ in range(20):
            for name in names:
                clients[name].close()
                time.sleep(0.002)
            for name in names:
                clients[name] = cluster.gateway.sse(name)
                time.sleep(0.001)
            for name in names:
                joined.append(clients[name].take(5))
        for name in names:
            joined.append(clients[name].take(50))
    assert len(joined) == 1050 and publisher.count > 100
    for events in joined:
        assert_no_gap(events)
    unsubscribed = cluster.redis_client.info("commandstats")["cmdstat_unsubscribe"]
    assert unsubscribed["calls"] > 20, "the race was never met"


def raw_publish(cluster, channel, text):
    """A connection on which a PUBLISH waits for Redis."""
    sender = socket.socket(socket.AF_UNIX)
    sender.connect(str(cluster.redis.socket))
    sender.sendall(f"PUBLISH tide:{channel} {text}\r\n".encode())
    return sender


def test_what_was_on_its_way_before_unsubscribe_is_not_for_those_who_join_after_it(make_cluster):
    """They would get that message, and then miss those that Redis sends nobody."""
    cluster = make_cluster(gateways=0, broker=False)
    with SwallowingProxy(cluster.redis.socket) as proxy:
        gateway = cluster.add_gateway({"redis.address": proxy.address,
                                       "gateway.unsubscribe_linger": "0ms"})
        for _ in range(5):
            client = gateway.sse("news")
            cluster.wait_subscribed("news")
            cluster.publish("news", "0")
            client.next_event()  # the gateway has Redis' answer, too
            cluster.redis.pause()
            senders = [raw_publish(cluster, "news", "1")]
            sent = proxy.heard.count(b"UNSUBSCRIBE")
            client.close()
            wait_until(lambda before=sent: proxy.heard.count(b"UNSUBSCRIBE") > before)
            late = gateway.sse("news")
            senders.append(raw_publish(cluster, "news", "2"))
            cluster.redis.resume()
            for sender in senders:
                assert sender.recv(100).startswith(b":")
                sender.close()
            cluster.wait_subscribed("news")
            cluster.publish("news", "3")
            assert late.next_event().data == "3"
            late.close()
            wait_until(lambda: channels_in_redis(cluster) == [])
        gateway.close()
        cluster.gateways.remove(gateway)


def test_a_channel_lingers_for_those_who_come_back(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.unsubscribe_linger": "1s"})
    gateway = cluster.gateway
    for _ in range(5):
        client = gateway.sse("news")
        cluster.wait_subscribed("news")
        client.close()
        gateway.wait_metric("tidecast_subscriptions", 0)
    assert cluster.redis_client.info("commandstats")["cmdstat_subscribe"]["calls"] == 2  # and probe
    wait_until(lambda: channels_in_redis(cluster) == [])


def test_ten_thousand_channels_go_out_in_batches_of_at_most_512(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.channels_per_connection": 10000,
                                                   "gateway.channels_per_request": 1000,
                                                   "gateway.unsubscribe_linger": "0ms"})
    gateway = cluster.gateway
    monitor = subprocess.Popen(["redis-cli", "-s", str(cluster.redis.socket), "MONITOR"],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert monitor.stdout.readline() == "OK\n"
        client = gateway.ws()
        names = [f"many:{number}" for number in range(10000)]
        # 4 KiB is the most that a client that may not publish can say at once
        for at in range(0, 10000, 250):
            client.command(subscribe=names[at:at + 250])
        wait_until(lambda: len(channels_in_redis(cluster)) == 10000, 20, "10,000 channels")
        began = time.monotonic()
        cluster.redis_client.client_kill_filter(_type="pubsub")
        wait_until(lambda: len(channels_in_redis(cluster)) == 10000, 20, "10,000 channels again")
        assert time.monotonic() - began < 5
        client.close()
        wait_until(lambda: channels_in_redis(cluster) == [], 20, "the end of all")
        cluster.redis_client.echo("the end")
        sizes = {"SUBSCRIBE": [], "UNSUBSCRIBE": []}
        for line in monitor.stdout:
            if '"the end"' in line:
                break
            verb = re.search(r'\] "(SUBSCRIBE|UNSUBSCRIBE)"', line)
            if verb:
                sizes[verb[1]].append(line.count('"tide:many:'))
    finally:
        monitor.kill()
        monitor.wait()
        monitor.stdout.close()
    assert sum(sizes["SUBSCRIBE"]) == 20000 and sum(sizes["UNSUBSCRIBE"]) == 10000
    assert max(sizes["SUBSCRIBE"] + sizes["UNSUBSCRIBE"]) == 512
    assert len(sizes["UNSUBSCRIBE"]) <= 40, "sent name by name"


def test_one_subscribe_however_many_clients(make_cluster):
    cluster = make_cluster(broker=False)
    for _ in range(50):
        cluster.gateway.sse("news")
    cluster.wait_subscribed("news")
    assert cluster.redis_client.pubsub_numsub("tide:news")[0][1] == 1
    assert cluster.redis_client.pubsub_numpat() == 0, "a pattern would hear everything"


def test_a_message_published_right_after_the_head_is_seen_arrives(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.unsubscribe_linger": "0ms"})
    for number in range(200):
        client = cluster.gateway.sse(f"news:{number}")
        assert cluster.publish(f"news:{number}", "hello") == 1
        assert client.next_event().data == "hello"
        client.close()


def test_a_worker_that_is_killed_leaves_no_subscription(make_cluster):
    cluster = make_cluster(broker=False)
    gateway = cluster.gateway
    gateway.sse("news")
    cluster.wait_subscribed("news")
    gateway.expect_deaths()
    os.kill(gateway.worker_pids()[0], signal.SIGKILL)
    wait_until(lambda: channels_in_redis(cluster) == [])
    gateway.wait_ready()

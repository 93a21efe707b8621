"""Clients that do not read: closed with a reason when they fall off the ring, and no one else."""

import time

import pytest

from cluster import wait_until
from processes import CpuMeter, rss_bytes

SLOW = 'tidecast_disconnects_total{reason="slow"}'
BLOCKED = "tidecast_streams_blocked"
RING = {"default": {"ring.messages": 64}}
TEXT = "x" * 1000


def overflow(cluster, gateway, count=400):
    """Publishes until the slow one is closed; what was sent, in order."""
    sent = []
    for number in range(count):
        sent.append(f"{number}:{TEXT}")
        cluster.publish("news", sent[-1])
        if number % 8 == 7:
            time.sleep(0.002)  # those who read keep up
    return sent


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(broker=False, namespaces=RING)


def drain(client):
    while client.read_some(0.05):
        pass


def test_an_sse_client_that_falls_off_its_ring_is_closed_and_its_neighbour_is_not(cluster):
    gateway = cluster.gateway
    slow, neighbour = gateway.sse("news", receive_buffer=4096), gateway.sse("news")
    other = gateway.ws("news")
    cluster.wait_subscribed("news")
    sent = []
    for number in range(400):
        sent.append(f"{number}:{TEXT}")
        cluster.publish("news", sent[-1])
        assert neighbour.next_event().data == sent[-1]
        assert other.next_json()["data"] == sent[-1]
    gateway.wait_metric(SLOW, 1)
    slow.wait_end()
    assert [event.data for event in slow.events] == sent[:len(slow.events)], "doubled or left out"
    metrics = gateway.metrics()
    assert metrics[BLOCKED] == 0 and metrics["tidecast_subscriptions"] == 2
    assert not neighbour.ended and not other.ended


def test_a_websocket_that_falls_off_its_ring_is_told_1013(cluster):
    gateway = cluster.gateway
    slow, neighbour = gateway.ws("news", receive_buffer=4096), gateway.sse("news")
    cluster.wait_subscribed("news")
    for number in range(400):
        cluster.publish("news", f"{number}:{TEXT}")
        assert neighbour.next_event().data == f"{number}:{TEXT}"
    gateway.wait_metric(BLOCKED, 1)
    numbers = []
    while (frame := slow.next_frame()).opcode != 8:
        numbers.append(int(frame.json["data"].partition(":")[0]))
    assert numbers == list(range(len(numbers))), "a frame was cut or left out"
    assert (frame.close_code, frame.reason) == (1013, "slow consumer")
    slow.send(frame.payload, 8)
    slow.wait_end()
    assert gateway.metrics()[SLOW] == 1 and not slow.was_reset
    assert not neighbour.ended


def test_a_websocket_that_never_reads_its_close_is_ended_anyway(cluster):
    gateway = cluster.gateway
    gateway.ws("news", receive_buffer=4096)
    gateway.sse("other")
    cluster.wait_subscribed("news")
    overflow(cluster, gateway)
    gateway.wait_metric('tidecast_connections{transport="websocket"}', 0, 8)
    assert gateway.metrics()[SLOW] == 1


def test_a_client_that_only_lags_gets_everything(cluster):
    """Less than a ring behind: nothing is lost, nothing is closed."""
    gateway = cluster.gateway
    slow = gateway.sse("news", receive_buffer=4096)
    cluster.wait_subscribed("news")
    number = 0
    while gateway.metrics()[BLOCKED] == 0:
        cluster.publish("news", f"{number}:{TEXT}")
        number += 1
        assert number < 400
    for _ in range(30):
        cluster.publish("news", f"{number}:{TEXT}")
        number += 1
    assert [event.data for event in slow.take(number)] == [f"{n}:{TEXT}" for n in range(number)]
    metrics = gateway.metrics()
    assert metrics[SLOW] == 0 and metrics[BLOCKED] == 0


def test_fifty_clients_that_read_nothing_cost_no_memory_and_no_time(cluster):
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    overflow(cluster, gateway, 100)
    neighbour = gateway.sse("news")
    cluster.wait_subscribed("news")
    before = rss_bytes(worker)
    for _ in range(50):
        gateway.sse("news", receive_buffer=4096)
    delays = []
    for number in range(300):
        began = time.monotonic()
        cluster.publish("news", f"{number}:{TEXT}")
        neighbour.next_event()
        delays.append(time.monotonic() - began)
    gateway.wait_metric(SLOW, 50)
    assert sorted(delays)[len(delays) * 9 // 10] < 0.05
    assert rss_bytes(worker) - before < 12_000_000
    meter = CpuMeter([worker])
    time.sleep(0.5)
    assert meter.share() < 0.3


def test_a_slow_client_on_one_channel_does_not_hold_up_another(cluster):
    gateway = cluster.gateway
    gateway.sse("news", receive_buffer=4096)
    other = gateway.sse("calm")
    cluster.wait_subscribed("news")
    cluster.wait_subscribed("calm")
    overflow(cluster, gateway)
    cluster.publish("calm", "hello")
    assert other.next_event().data == "hello"


def test_large_messages_go_out_in_parts_and_whole(make_cluster):
    cluster = make_cluster(broker=False, namespaces={"default": {"ring.bytes": "4MiB"}})
    gateway = cluster.gateway
    clients = [gateway.sse("news", receive_buffer=4096), gateway.sse("news")]
    socket = gateway.ws("news", receive_buffer=4096)
    cluster.wait_subscribed("news")
    payloads = [str(number) * 60000 for number in range(8)]
    for payload in payloads:
        cluster.publish("news", payload)
    for client in clients:
        assert [event.data for event in client.take(8)] == payloads
    assert [socket.next_text().json["data"] for _ in payloads] == payloads
    wait_until(lambda: gateway.metrics()[BLOCKED] == 0)


def test_pings_that_nobody_reads_the_answers_of_do_not_pile_up(cluster):
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    client = gateway.ws("news", receive_buffer=4096)
    before = rss_bytes(worker)
    client.socket.settimeout(0.5)
    ping = b"\x89\xfd\0\0\0\0" + b"p" * 125
    try:
        for _ in range(200):
            client.socket.sendall(ping * 200)
    except TimeoutError:
        pass
    assert rss_bytes(worker) - before < 6_000_000
    assert gateway.sse("news").status == 200


def test_a_websocket_that_lagged_on_two_channels_gets_the_rest_of_both(cluster):
    """More than it is sent at once, and then silence: nothing but its own end wakes it."""
    gateway = cluster.gateway
    slow = gateway.ws("filler", "one", "two", receive_buffer=4096)
    for name in ("filler", "one", "two"):
        cluster.wait_subscribed(name)
    fillers = 0
    while gateway.metrics()[BLOCKED] == 0:
        cluster.publish("filler", TEXT)
        fillers += 1
        assert fillers < 64
    for number in range(60):
        for name in ("one", "two"):
            cluster.publish(name, str(number))
    wait_until(lambda: sum(gateway.metrics()[f'tidecast_messages_received_total{{form="{form}"}}']
                           for form in ("plain", "enveloped")) == fillers + 120)
    came = [slow.next_json() for _ in range(fillers + 120)]
    for name in ("one", "two"):
        assert [m["data"] for m in came if m["channel"] == name] == [str(n) for n in range(60)]

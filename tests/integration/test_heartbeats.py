"""What keeps a quiet stream alive, and tells it where it stands."""

import re
import selectors
import time

import pytest

from cluster import Cluster
from ws_client import PING

HEARTBEATS = "tidecast_heartbeats_total"


@pytest.fixture(scope="module")
def beating():
    with Cluster(settings={"gateway.heartbeat": "1s"}, namespaces={"default": {"publish": "anyone"}}) as one:
        yield one


def arrivals(clients, seconds):
    """[(client, when, bytes)] of all that comes in that time."""
    found = []
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.socket.setblocking(False)
            selector.register(client.socket, selectors.EVENT_READ, client)
        while (now := time.monotonic() - started) < seconds:
            for key, _ in selector.select(seconds - now):
                found.append((key.data, time.monotonic() - started, key.fileobj.recv(65536)))
    return found


def test_no_silence_is_longer_than_the_heartbeat_and_not_all_beat_at_once(beating):
    streams = [beating.gateway.sse("quiet") for _ in range(40)]
    for stream in streams:
        stream.wait_for(lambda s: s.last_event_id)
    found = arrivals(streams, 2.4)
    for stream in streams:
        times = [0, *(when for client, when, _ in found if client is stream)]
        assert len(times) >= 3
        assert all(later - earlier < 1.35 for earlier, later in zip(times, times[1:], strict=False))
    first = [min(when for client, when, _ in found if client is stream) for stream in streams]
    assert max(first) - min(first) > 0.15, "spread over the interval"
    for _, _, data in found:
        assert re.fullmatch(rb"(id: \d+-\d+\n\n)+", data)


def test_a_heartbeat_moves_the_position_of_a_quiet_stream(beating):
    stream = beating.gateway.sse("still")
    stream.wait_for(lambda s: len(set(s.positions)) == 3)
    numbers = [tuple(map(int, position.split("-"))) for position in stream.positions]
    assert numbers == sorted(numbers) and not stream.events
    assert stream.last_event_id == stream.positions[-1]


def test_an_idle_websocket_is_pinged(beating):
    socket = beating.gateway.ws("quiet")
    frames = [socket.next_frame() for _ in range(2)]
    assert all((frame.opcode, frame.payload) == (PING, b"") for frame in frames)


def test_a_busy_stream_needs_no_heartbeat(beating):
    beating.gateway.close_clients()
    beating.gateway.wait_metric('tidecast_connections{transport="sse"}', 0)
    beating.gateway.wait_metric('tidecast_connections{transport="websocket"}', 0)
    stream, socket = beating.gateway.sse("busy"), beating.gateway.ws("busy")
    before = beating.gateway.metrics()[HEARTBEATS]
    for number in range(20):
        beating.publish("busy", str(number))
        assert stream.next_event().data == str(number)
        assert socket.next_text().json["data"] == str(number)
        assert not stream.read_some(0.1), "nothing but the events"
    assert beating.gateway.metrics()[HEARTBEATS] == before
    assert len(stream.positions) <= 1


def test_without_a_position_the_heartbeat_is_a_comment(make_cluster):
    one = make_cluster(broker=False, settings={"gateway.heartbeat": "1s"})
    stream = one.gateway.sse("a")
    stream.wait_for(lambda s: s.comments)
    assert re.fullmatch(rb"retry: \d+\n\n(:\n\n)+", stream.body)
    one.publish("a", "plain")
    assert stream.next_event().data == "plain"

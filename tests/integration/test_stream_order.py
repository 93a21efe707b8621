"""One stream on several channels has one position: what it got is always the begin of what came."""

import random

import pytest

from cluster import Cluster
from sse_client import SseClient

RING = {"publish": "anyone", "ring.messages": 1000, "ring.bytes": "16MiB"}


@pytest.fixture(scope="module")
def wide():
    """A gateway whose rings hold all that is published here, and whose sockets hold little."""
    with Cluster(settings={"gateway.send_buffer": "4KiB"}, namespaces={"default": RING}) as one:
        yield one


def publish_in_turn(one, channels, count, size):
    """Ids in order, as Redis gave them."""
    pipe = one.redis_client.pipeline(transaction=False)
    for number in range(count):
        payload = f"{number}:".ljust(size, "x")
        pipe.execute_command("FCALL", "tidecast_publish", 1, "tide:" + channels[number % len(channels)],
                             payload)
    return [given.decode() for given in pipe.execute()]


def test_a_client_cut_anywhere_has_got_a_prefix_of_both_channels(wide):
    target = "/sse?channel=cut:a&channel=cut:b"
    crowd = [wide.gateway.sse("cut:a") for _ in range(50)]
    clients = [wide.gateway.keep(SseClient(wide.gateway.address, target, receive_buffer=2048))
               for _ in range(12)]
    slow = wide.gateway.sse("cut:a", "cut:b", receive_buffer=2048)
    ids = publish_in_turn(wide, ["cut:a", "cut:b"], 400, 700)
    cuts = random.Random(7).sample(range(1000, 280_000), len(clients))
    for client, cut in zip(clients, cuts, strict=True):
        client.wait_for(lambda c, cut=cut: len(c.body) >= cut)
        client.close()
        got = [event.id for event in client.events]
        assert got == ids[:len(got)]
        assert client.last_event_id in (ids[len(got) - 1] if got else "", client.positions[-1])
    assert [event.id for event in slow.take(400)] == ids
    assert [event.id for event in crowd[-1].take(200)] == ids[::2]


def test_a_busy_channel_does_not_run_ahead_of_a_quiet_one(wide):
    both = [wide.gateway.sse("busy:a", "busy:b", receive_buffer=2048) for _ in range(5)]
    crowd = [wide.gateway.sse("busy:a") for _ in range(200)]
    ids = publish_in_turn(wide, ["busy:a"] * 19 + ["busy:b"], 300, 300)
    for stream in both:
        assert [event.id for event in stream.take(300)] == ids
    assert len(crowd[0].take(285)) == 285


def test_a_websocket_gets_each_channel_in_order(wide):
    socket = wide.gateway.ws("ws:a", "ws:b", receive_buffer=2048)
    ids = publish_in_turn(wide, ["ws:a", "ws:b"], 200, 500)
    messages = [socket.next_json() for _ in range(200)]
    for name, first in (("ws:a", 0), ("ws:b", 1)):
        assert [m["id"] for m in messages if m["channel"] == name] == ids[first::2]


def test_a_stream_that_waits_for_a_channel_is_told_no_position_meanwhile(make_cluster):
    one = make_cluster(settings={"gateway.heartbeat": "1s"})
    one.redis_client.execute_command("ACL", "SETUSER", "default", "resetchannels", "&tide:$*", "&tide:a")
    stream = one.gateway.sse("a", "forbidden")
    one.wait_subscribed("a")
    given = one.fcall("a", "x")
    stream.wait_for(lambda s: s.comments, what="a heartbeat")
    assert not stream.events and len(stream.positions) == 1
    assert stream.next_event().id == given, "after three seconds it goes on without the other"


def number_of(given):
    return tuple(map(int, given.split("-")))


def test_the_position_told_while_connected_never_runs_ahead_of_the_events(make_cluster):
    """Heartbeats tell a position; a client that resumes from it must not miss what came before."""
    one = make_cluster(settings={"gateway.heartbeat": "1s", "gateway.send_buffer": "4KiB"},
                       namespaces={"default": RING})
    streams = [one.gateway.sse("a", "b", receive_buffer=2048) for _ in range(3)]
    ids = publish_in_turn(one, ["a", "b"], 300, 500)
    for stream in streams:
        stream.wait_for(lambda s: len(s.events) == 300 and len(s.positions) > 1)
        text = stream.body.decode()
        at = {given: text.index(f"id: {given}\ndata") for given in ids}
        for position in stream.positions[1:]:
            told = text.index(f"id: {position}\n\n")
            assert all(at[given] < told for given in ids if number_of(given) <= number_of(position))

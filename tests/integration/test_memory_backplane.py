"""A gateway without Redis: what is POSTed comes out."""

import pytest

from cluster import Cluster

NAMESPACES = {
    "default": {"publish": "anyone"},
    "json": {"content": "json"},
    "tiny": {"ring.messages": 4, "ring.bytes": "1MiB"},
    "closed": {"publish": "off"},
}


@pytest.fixture(scope="module")
def memory():
    settings = {"gateway.send_buffer": "4KiB", "gateway.unsubscribe_linger": "0"}
    with Cluster(redis=False, settings=settings, namespaces=NAMESPACES) as one:
        yield one.gateway


def test_it_has_one_worker_and_is_ready_at_once(memory):
    assert len(memory.worker_pids()) == 1
    assert memory.request("GET", "/readyz").json == {"status": "ready"}


def test_what_is_posted_comes_out_with_its_id_on_both_transports(memory):
    stream, socket = memory.sse("a"), memory.ws("a")
    given = memory.post("a", "x", "?event=e").json["id"]
    event = stream.next_event()
    assert (event.type, event.data, event.id) == ("e", "x", given)
    assert socket.next_json() == {"channel": "a", "id": given, "event": "e", "data": "x"}
    answer = socket.ask(publish={"channel": "a", "data": [1]})
    assert stream.next_event().id == answer["published"]["id"]


def test_ids_rise_over_all_channels(memory):
    stream = memory.sse("a", "b")
    ids = [memory.post(name, "x").json["id"] for _ in range(50) for name in ("a", "b")]
    assert [event.id for event in stream.take(100)] == ids
    assert ids == sorted(set(ids), key=lambda given: tuple(map(int, given.split("-"))))


def test_the_rules_of_the_namespaces_hold(memory):
    for name, payload, status, error in (
            ("json:a", "no", 400, "payload_not_json"), ("a", b"\xff", 400, "payload_not_utf8"),
            ("a", b"\0", 400, "payload_enveloped"), ("a", "x" * 65537, 413, "payload_too_big"),
            ("closed:a", "x", 403, "publish_forbidden"), ("$", "x", 400, "bad_channel")):
        answer = memory.post(name, payload)
        assert (answer.status, answer.json["error"]) == (status, error)


def test_a_reader_that_pauses_gets_the_rest_from_the_ring(memory):
    stream = memory.sse("a", receive_buffer=2048)
    ids = [memory.post("a", "x" * 1000).json["id"] for _ in range(200)]
    memory.wait_metric("tidecast_streams_blocked", 1)
    assert [event.id for event in stream.take(200)] == ids


@pytest.mark.parametrize("transport", ["sse", "ws"])
def test_a_reader_that_falls_off_the_ring_is_closed_and_its_neighbour_is_not(memory, transport):
    slow_closes = 'tidecast_disconnects_total{reason="slow"}'
    before = memory.metrics()[slow_closes]
    slow = getattr(memory, transport)("tiny:a", receive_buffer=2048)
    neighbour = memory.sse("tiny:a")
    for number in range(30):
        assert memory.post("tiny:a", f"{number}:".ljust(10_000, "x")).status == 200
        assert neighbour.next_event().data.startswith(f"{number}:")
    if transport == "sse":
        slow.wait_end()
        heads = [event.data.split(":")[0] for event in slow.events]
        assert heads == [str(number) for number in range(len(heads))] and len(heads) < 30
    else:
        slow.expect_close(1013)
    memory.wait_metric(slow_closes, before + 1)
    memory.post("tiny:a", "marker")
    assert neighbour.next_event().data == "marker"


def test_rings_of_channels_that_nobody_hears_are_given_back(memory):
    memory.close_clients()
    for number in range(100):
        stream = memory.sse(f"gone:{number}")
        memory.post(f"gone:{number}", "x" * 1000)
        stream.next_event()
        stream.close()
    memory.wait_metric("tidecast_channels", 0)
    memory.wait_metric("tidecast_ring_bytes", 0)

"""The bytes of an event stream, against what publishers put into them."""

import re
from urllib.parse import quote

import pytest
import redis

from sse_client import Event, SseParser

ID = r"[0-9]+-[0-9]+"
INJECTIONS = {
    "lone_cr": b"x\rid: 999\revent: admin\rdata: forged\r\r",
    "crlf": b"x\r\nid: 999\r\nevent: admin\r\ndata: forged\r\n\r\n",
    "lf": b"x\nid: 999\nevent: admin\ndata: forged\n\n",
    "mixed": b"x\n\rid: 999\r\r\n\ndata: forged\r\n\r",
    "retry": b"\nretry: 1\n\n:comment\n",
}


def as_lines(payload):
    return payload.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode()


def parse(pieces):
    parser = SseParser()
    for piece in pieces:
        parser.feed(piece)
    return parser


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("step", [1, 2, 3, 1000])
def test_our_own_client_takes_every_line_end_cut_anywhere(end, step):
    lines = [b"\xef\xbb\xbfretry: 30", b":c", b"id: 1", b"data: A", b"data:  B", b"", b"id: 2",
             b"id: b\0d", b"retry: 1x", b"event: e", b"data", b"", b"id", b"", b"event: lost", b""]
    text = end.join(lines) + end
    found = parse(text[i:i + step] for i in range(0, len(text), step))
    assert found.events == [Event("message", "A\n B", "1"), Event("e", "", "2")]
    assert (found.retry, found.last_event_id, found.comments) == (30, "", ["c"])
    assert found.positions == [""]


def test_our_own_client_takes_crlf_cut_in_the_middle_as_one_line_end():
    found = parse([b"data: A\r", b"\ndata: B\r\n\r\n"])
    assert found.events == [Event("message", "A\nB", "")]


def test_an_event_is_line_feeds_only_and_ends_with_an_empty_line(cluster, gateway, channel):
    stream = gateway.sse(channel)
    first = cluster.fcall(channel, "hello")
    second = cluster.fcall(channel, "two\r\nlines", "event", "greeting")
    stream.take(2)
    assert stream.body.endswith(
        f"id: {first}\ndata: hello\n\n"
        f"id: {second}\nevent: greeting\ndata: two\ndata: lines\n\n".encode())
    assert b"\r" not in stream.body


def test_the_three_line_ends_of_a_payload_come_out_as_the_same_bytes(cluster, gateway, channel):
    stream = gateway.sse(channel)
    for end in ("\n", "\r", "\r\n"):
        cluster.publish(channel, end.join(["", "a", "b", "", "c", ""]))
    assert [event.data for event in stream.take(3)] == ["\na\nb\n\nc\n"] * 3
    one = b"data: \ndata: a\ndata: b\ndata: \ndata: c\ndata: \n\n"
    assert stream.body.endswith(one * 3)


@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.parametrize("way", ["post", "publish", "fcall"])
def test_a_payload_cannot_forge_fields(cluster, gateway, channel, name, way):
    stream = gateway.sse(channel)
    retry, payload = stream.retry, INJECTIONS[name]
    if way == "post":
        assert gateway.post(channel, payload).status == 200
    else:
        getattr(cluster, way)(channel, payload)
    last = cluster.fcall(channel, "marker")
    forged, marker = stream.take(2)
    assert (forged.type, forged.data) == ("message", as_lines(payload))
    assert forged.id != "999" and marker == Event("message", "marker", last)
    assert stream.retry == retry


@pytest.mark.parametrize("event", ["a\ndata: p", "a\rdata: p", "a\0b", "a b", "tidecast.gap",
                                   "x" * 101])
def test_an_event_name_that_could_forge_is_refused_by_everybody(cluster, gateway, channel, event):
    answer = gateway.post(channel, "x", "?event=" + quote(event))
    assert (answer.status, answer.json["error"]) == (400, "bad_event")
    with pytest.raises(redis.ResponseError, match="bad_event"):
        cluster.fcall(channel, "x", "event", event)
    if "\n" in event:
        return  # there it ends the envelope's header
    stream = gateway.sse(channel)
    cluster.publish(channel, f"\x001 id=1-1 event={event}\nforged")
    cluster.publish(channel, "marker")
    assert stream.next_event().data == "marker"


def test_every_event_with_an_id_has_one_of_our_alphabet_and_plain_ones_have_none(cluster, gateway,
                                                                                 channel):
    stream = gateway.sse(channel)
    given = cluster.fcall(channel, "with")
    cluster.publish(channel, "plain")
    with_id, plain = stream.take(2)
    assert re.fullmatch(ID, given) and with_id.id == given
    assert plain.id == given, "an event without an id keeps the last one"
    assert stream.body.endswith(b"data: with\n\ndata: plain\n\n")


def test_ids_rise_over_all_channels(cluster, gateway, channel):
    other = channel + "b"
    ids = [cluster.fcall(c, "x") for _ in range(20) for c in (channel, other)]
    assert ids == sorted(set(ids), key=lambda i: tuple(map(int, i.split("-"))))


@pytest.mark.parametrize("payload", ["\ufeffbom first", "a\0b", " leading", "trailing ", "", ":",
                                     "ünïcødé 🌊", "data: x", "\u2028\u2029\x85"])
def test_odd_payloads_arrive_whole(cluster, gateway, channel, payload):
    stream, socket = gateway.sse(channel), gateway.ws(channel)
    cluster.fcall(channel, payload)
    cluster.publish(channel, payload)
    assert [event.data for event in stream.take(2)] == [payload] * 2
    assert [socket.next_json()["data"] for _ in range(2)] == [payload] * 2


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"ok\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80",
                                     b"cut \xe2\x82", b"\x80"])
def test_a_payload_that_is_not_utf8_reaches_nobody(cluster, gateway, channel, payload):
    dropped = 'tidecast_messages_dropped_total{reason="not_utf8"}'
    before = gateway.metrics()[dropped]
    stream = gateway.sse(channel)
    assert cluster.publish(channel, payload) == 1
    cluster.publish(channel, "marker")
    assert stream.next_event().data == "marker"
    gateway.wait_metric(dropped, before + 1)
    answer = gateway.post(channel, payload)
    assert (answer.status, answer.json["error"]) == (400, "payload_not_utf8")
    with pytest.raises(redis.ResponseError, match="payload_not_utf8"):
        cluster.fcall(channel, payload)


def test_retry_is_digits_jittered_and_within_its_bounds(gateway, channel):
    retries = []
    for _ in range(20):
        stream = gateway.sse(channel)
        stream.wait_for(lambda s: s.retry is not None)
        assert re.match(rb"retry: [0-9]+\n\n", stream.body)
        retries.append(stream.retry)
    assert all(1000 <= retry <= 10000 for retry in retries)
    assert len(set(retries)) > 10

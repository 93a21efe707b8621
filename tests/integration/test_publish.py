"""Publishing: over HTTP, by PUBLISH, by FCALL; what is too big, forged, refused."""

import json
import re
import socket
import struct
import time

import pytest
import redis

KIB = 1024
DROPPED = 'tidecast_messages_dropped_total{reason="%s"}'


def test_a_post_comes_out_with_its_id_on_both_transports(gateway, channel):
    stream, ws = gateway.sse(channel), gateway.ws(channel)
    answer = gateway.post(channel, "hello", "?event=greeting&key=k")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    given = answer.json["id"]
    assert re.fullmatch(r"\d+-\d+", given)
    event = stream.next_event()
    assert (event.type, event.data, event.id) == ("greeting", "hello", given)
    assert ws.next_json() == {"channel": channel, "id": given, "event": "greeting", "data": "hello"}


def test_it_reaches_the_clients_of_every_gateway(make_cluster):
    one = make_cluster(gateways=2, namespaces={"default": {"publish": "anyone"}})
    streams = [gateway.sse("a") for gateway in one.gateways]
    given = one.gateways[0].post("a", "x").json["id"]
    assert [stream.next_event().id for stream in streams] == [given, given]


@pytest.mark.parametrize("payload", [b"", b"\r", b"\r\n", b"$3\r\nfoo\r\n*1\r\n", b"a\0b", b"\n\n",
                                     "ü".encode(), b"0", b"%s%n", b"-ERR no\r\n"])
def test_a_payload_arrives_byte_for_byte(cluster, gateway, channel, payload):
    raw = gateway.ws(channel, headers=["Sec-WebSocket-Protocol: tidecast.raw"])
    assert gateway.post(channel, payload).status == 200
    cluster.publish(channel, payload)
    cluster.fcall(channel, payload)
    assert [raw.next_text().payload for _ in range(3)] == [payload] * 3


@pytest.mark.parametrize(("namespace", "limit"), [("open", 64 * KIB), ("short", 16)])
def test_a_payload_at_its_limit_passes_and_one_past_it_is_413(cluster, gateway, channel, namespace, limit):
    name = namespace + channel[4:]
    before = gateway.metrics()[DROPPED % "too_big"]
    stream = gateway.sse(name)
    assert gateway.post(name, "x" * limit).status == 200
    cluster.publish(name, "y" * limit)
    cluster.fcall(name, "z" * limit)
    answer = gateway.post(name, "x" * (limit + 1))
    assert (answer.status, answer.json["error"]) == (413, "payload_too_big")
    cluster.publish(name, "y" * (limit + 1))
    with pytest.raises(redis.ResponseError, match="payload_too_big"):
        cluster.fcall(name, "z" * (limit + 1))
    cluster.publish(name, "marker")
    assert [event.data for event in stream.take(4)] == ["x" * limit, "y" * limit, "z" * limit, "marker"]
    assert gateway.metrics()[DROPPED % "too_big"] == before + 1


def test_a_body_of_three_megabytes_is_413(gateway, channel):
    sock = gateway.connect()
    try:
        sock.sendall(f"POST /publish/{channel} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n".encode())
        answer = sock.recv(65536)
    except ConnectionError:
        answer = b""
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_taken_whole(gateway, channel):
    stream = gateway.sse(channel)
    sock = gateway.connect()
    sock.sendall(f"POST /publish/{channel} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n".encode())
    assert b"200 OK" in sock.recv(65536)
    assert stream.next_event().data == "abcdefg"


def test_a_client_that_waits_for_100_continue_is_served(gateway, channel):
    sock = gateway.connect()
    sock.sendall(f"POST /publish/{channel} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                 "Content-Length: 2\r\n\r\n".encode())
    assert sock.recv(65536).startswith(b"HTTP/1.1 100 ")
    sock.sendall(b"hi")
    assert b"200 OK" in sock.recv(65536)


def test_two_posts_in_one_segment_are_answered_in_order(gateway, channel):
    stream = gateway.sse(channel)
    sock = gateway.connect()
    post = f"POST /publish/{channel} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
    sock.sendall((post + "a" + post + "b").encode())
    data = b""
    while data.count(b'{"id"') < 2:
        data += sock.recv(65536)
    ids = re.findall(rb'"id":"(\d+-\d+)"', data)
    events = stream.take(2)
    assert [event.data for event in events] == ["a", "b"]
    assert [event.id.encode() for event in events] == ids


def test_where_publishing_is_off_it_is_403(gateway):
    before = gateway.metrics()['tidecast_refusals_total{reason="publish_forbidden"}']
    for name in ("news", "unknown:a"):
        answer = gateway.post(name, "x")
        assert (answer.status, answer.json["error"]) == (403, "publish_forbidden")
    assert gateway.metrics()['tidecast_refusals_total{reason="publish_forbidden"}'] == before + 2


@pytest.mark.parametrize(("query", "headers", "error"), [
    ("?event=", {}, "bad_event"), ("?event=a%00", {}, "bad_event"), ("?event=" + "e" * 101, {}, "bad_event"),
    ("?event=tidecast.x", {}, "bad_event"), ("?key=", {}, "bad_key"), ("?key=a+b", {}, "bad_key"),
    ("?key=" + "k" * 201, {}, "bad_key"), ("", {"Idempotency-Key": "a b"}, "bad_idempotency_key"),
    ("", {"Idempotency-Key": "k" * 129}, "bad_idempotency_key"), ("?%zz", {}, "bad_query")])
def test_bad_names_are_400(gateway, channel, query, headers, error):
    answer = gateway.post(channel, "x", query, headers)
    assert (answer.status, answer.json["error"]) == (400, error)


def test_the_same_idempotency_key_publishes_once(cluster, gateway, channel):
    stream = gateway.sse(channel)
    key = {"Idempotency-Key": "k" * 128}
    first, again = (gateway.post(channel, "x", headers=key) for _ in range(2))
    assert first.status == again.status == 200 and first.json == again.json
    other = gateway.post(channel, "y", headers=key)
    assert (other.status, other.json["error"]) == (409, "idempotency_conflict")
    assert gateway.post(channel + "b", "y", headers=key).status == 200, "keys are a channel's own"
    cluster.publish(channel, "marker")
    assert [event.data for event in stream.take(2)] == ["x", "marker"]


def test_a_namespace_without_history_has_ids_and_no_stream(cluster, gateway, channel):
    name = "plain" + channel[4:]
    stream = gateway.sse(name)
    given = gateway.post(name, "x").json["id"]
    assert stream.next_event().id == given
    assert not cluster.redis_client.exists("tide:$log:{" + name + "}")
    gateway.post(channel, "x")
    assert cluster.redis_client.exists("tide:$log:{" + channel + "}")


def test_publishers_that_leave_before_the_answer_hurt_nobody(cluster, gateway, channel):
    stream = gateway.sse(channel)
    request = f"POST /publish/{channel} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx".encode()
    for _ in range(100):
        sock = socket.create_connection(gateway.address)
        sock.sendall(request)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    marker = gateway.post(channel, "marker").json["id"]
    while stream.next_event().id != marker:
        pass


# forged envelopes

@pytest.mark.parametrize(("envelope", "reason"), [
    (b"\0", "malformed"), (b"\0" + b"1", "malformed"), (b"\0001\nx", "malformed"),
    (b"\0001 prev=1-1\nx", "malformed"), (b"\0001 id=\nx", "malformed"), (b"\0001 id=1\nx", "malformed"),
    (b"\0001 id=a-b\nx", "malformed"), (b"\0001 id=1-1 id=2-2\nx", "malformed"),
    (b"\0001 id=01-1\nx", "malformed"), (b"\0001 id=1-99999999999999999999\nx", "malformed"),
    (b"\0001  id=1-1\nx", "malformed"), (b"\0001 id=1-1 event=a\rb\nx", "malformed"),
    (b"\0001 id=1-1 event=\nx", "malformed"), (b"\0001 id=1-1 event=tidecast.gap\nx", "malformed"),
    (b"\0001 id=1-1 key=\0\nx", "malformed"), (b"\0001 id=1-1 prev=x\nx", "malformed"),
    (b"\0001 id=1-1 seq=2\nx", "malformed"), (b"\0001 id=1-1 " + b"x=" + b"y" * 2000 + b"\nx", "malformed"),
    (b"\0001 id=1-1", "malformed"), (b"\0002 id=1-1\nx", "unknown_version"), (b"\0\xff", "unknown_version"),
    (b"\0\n", "unknown_version"), (b"\0001 id=1-1\n\xff", "not_utf8"),
    (b"\0001 id=1-1\n" + b"x" * (64 * KIB + 1), "too_big"),
])
def test_a_forged_envelope_reaches_nobody_and_is_counted(cluster, gateway, channel, envelope, reason):
    before = gateway.metrics()[DROPPED % reason]
    stream, ws = gateway.sse(channel), gateway.ws(channel)
    cluster.wait_subscribed(channel)
    heard = cluster.publish(channel, envelope)
    given = cluster.fcall(channel, "marker")
    assert stream.next_event().id == given
    assert ws.next_json()["data"] == "marker"
    assert gateway.metrics()[DROPPED % reason] == before + heard
    answer = gateway.post(channel, envelope)
    assert answer.status in (400, 413) and answer.json["error"] in ("payload_enveloped", "payload_too_big")


def test_an_id_of_the_past_is_dropped_and_moves_nothing(cluster, gateway, channel):
    stream = gateway.sse(channel)
    first = cluster.fcall(channel, "first")
    assert stream.next_event().id == first
    before = gateway.metrics()[DROPPED % "stale_id"]
    cluster.publish(channel, b"\0001 id=1-1\nold")
    cluster.publish(channel, f"\x001 id={first}\nagain")
    last = cluster.fcall(channel, "last")
    assert stream.next_event().id == last
    assert gateway.metrics()[DROPPED % "stale_id"] == before + 2


@pytest.mark.parametrize("ahead", [60_000, 10**15, 2**64 - 1])
def test_an_id_of_the_future_is_dropped_and_poisons_nothing(cluster, gateway, channel, ahead):
    stream = gateway.sse(channel)
    before = gateway.metrics()[DROPPED % "future_id"]
    forged = min(int(time.time() * 1000) + ahead, 2**64 - 1)
    cluster.publish(channel, f"\x001 id={forged}-1\nforged")
    last = cluster.fcall(channel, "last")
    assert stream.next_event().id == last
    assert gateway.metrics()[DROPPED % "future_id"] == before + 1
    late = gateway.sse(channel)
    late.wait_for(lambda s: s.last_event_id)
    assert int(late.last_event_id.split("-")[0]) < forged


def test_unknown_fields_of_an_envelope_are_ignored(cluster, gateway, channel):
    stream = gateway.sse(channel)
    first = cluster.fcall(channel, "first")
    ms, seq = map(int, first.split("-"))
    cluster.publish(channel, f"\x001 id={ms}-{seq + 1} color=blue event=e seq=1 x9_=\nsecond")
    events = stream.take(2)
    assert (events[1].id, events[1].type, events[1].data) == (f"{ms}-{seq + 1}", "e", "second")


def test_json_answers_are_not_cached_and_name_their_error(gateway):
    answer = gateway.post("news", "x")
    assert answer.headers["cache-control"] == "no-store"
    assert set(json.loads(answer.body)) == {"error", "message"}

"""HTTP around an event stream: heads, methods, versions, what clients send too much or too slowly."""

import json
import re
import socket
import struct
import time

import pytest

from cluster import Cluster, wait_until

OPEN_SSE = 'tidecast_connections{transport="sse"}'
OPENED_SSE = 'tidecast_streams_opened_total{transport="sse"}'


def exchange(gateway, request, end_writing=False):
    """All that is answered until the server closes."""
    sock = gateway.connect()
    sock.sendall(request)
    if end_writing:
        sock.shutdown(socket.SHUT_WR)
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def head(method, target, *lines, version="1.1"):
    return "\r\n".join([f"{method} {target} HTTP/{version}", "Host: x", *lines, "", ""]).encode()


def status_of(answer):
    return int(answer.split(b" ")[1])


def body_of(answer):
    return answer.partition(b"\r\n\r\n")[2]


def read_until(sock, text):
    data = b""
    while text not in data:
        piece = sock.recv(65536)
        assert piece, f"ended before {text}: {data}"
        data += piece
    return data


# the head

def test_the_head_says_that_nothing_may_be_held_back(gateway, channel):
    stream = gateway.sse(channel, headers=["Accept-Encoding: gzip, br"])
    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["cache-control"] == "no-cache, no-transform"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "close" in stream.headers["connection"]
    for name in ("content-encoding", "content-length", "transfer-encoding", "server"):
        assert name not in stream.headers


def test_onopen_comes_on_an_idle_channel_at_once(gateway, channel):
    stream = gateway.sse(channel, headers=["Accept-Encoding: gzip"])
    started = time.monotonic()
    stream.wait_for(lambda s: s.retry is not None)
    assert stream.head_seconds + time.monotonic() - started < 0.1


def test_the_first_bytes_are_in_the_same_segment_as_the_head(gateway, channel):
    sock = gateway.connect()
    sock.sendall(head("GET", f"/sse/{channel}"))
    assert re.search(rb"\r\n\r\nretry: \d+\n\nid: \d+-\d+\n\n$", sock.recv(65536))


def test_a_client_that_got_nothing_knows_its_position(cluster, gateway, channel):
    stream = gateway.sse(channel)
    stream.wait_for(lambda s: s.last_event_id)
    assert not stream.events and len(stream.positions) == 1
    last = cluster.fcall(channel, "x")
    assert stream.next_event().id == last


def test_what_is_published_when_the_head_is_seen_arrives(cluster, gateway, channel):
    for number in range(50):
        name = f"{channel}.{number}"
        stream = gateway.sse(name)
        cluster.publish(name, "now")
        assert stream.next_event().data == "now"
        stream.close()


# resuming

def gap_of(stream):
    event = stream.next_event()
    assert event.type == "tidecast.gap"
    return json.loads(event.data)


@pytest.mark.parametrize("given", ["1-1", "9999999999999-0", "garbage", "-1", "0", "00001-1", "1-",
                                   "18446744073709551616-0", "8" * 8192, "ünï", "1-1; drop"])
def test_an_id_that_cannot_be_resumed_gets_200_and_a_gap(gateway, channel, given):
    encoded = given.encode("latin-1", "replace").decode("latin-1")
    stream = gateway.sse(channel, headers=[f"Last-Event-ID: {encoded}"])
    assert stream.status == 200
    gap = gap_of(stream)
    assert gap["to"] == stream.last_event_id and gap["reason"]


@pytest.mark.parametrize("name", ["lastEventId", "lastEventID"])
def test_the_id_may_stand_in_the_query_and_the_header_wins(gateway, channel, name):
    by_query = gateway.sse(target=f"/sse/{channel}?{name}=7-7")
    assert gap_of(by_query)["from"] == "7-7"
    both = gateway.sse(target=f"/sse/{channel}?{name}=7-7", headers=["Last-Event-ID: 8-8"])
    assert gap_of(both)["from"] == "8-8"


def test_an_empty_id_is_no_id(cluster, gateway, channel):
    for headers in (["Last-Event-ID:"], ["Last-Event-ID:  "], []):
        stream = gateway.sse(target=f"/sse/{channel}?lastEventId=", headers=headers)
        cluster.publish(channel, "x")
        assert stream.next_event().type == "message"


def test_a_client_that_is_up_to_date_gets_no_gap(make_cluster):
    one = make_cluster()
    last = one.fcall("a", "x")

    def is_current():
        stream = one.gateway.sse("a")
        stream.wait_for(lambda s: s.last_event_id)
        position = stream.last_event_id
        again = one.gateway.sse("a", headers=[f"Last-Event-ID: {position}  "])
        again.wait_for(lambda s: s.last_event_id)
        if again.positions[0] != position:
            return False  # the probe moved it in between
        one.publish("a", "marker")
        assert again.next_event().type == "message"
        return position >= last

    wait_until(is_current)


# methods, versions, pipelining

def test_head_gets_the_head_alone_and_no_subscription(cluster, gateway, channel):
    opened = gateway.metrics()[OPENED_SSE]
    answer = exchange(gateway, head("HEAD", f"/sse/{channel}"))
    assert status_of(answer) == 200 and body_of(answer) == b""
    assert b"content-type: text/event-stream" in answer
    assert cluster.redis_client.pubsub_numsub("tide:" + channel)[0][1] == 0
    assert gateway.metrics()[OPENED_SSE] == opened
    assert status_of(exchange(gateway, head("HEAD", "/sse/$", "Connection: close"))) == 400


@pytest.mark.parametrize("target", ["/healthz", "/readyz", "/", "/tidecast.js", "/nowhere", "/sse"])
def test_head_has_no_body_and_the_connection_stays_in_step(gateway, target):
    answer = exchange(gateway, head("HEAD", target) + head("HEAD", "/healthz", "Connection: close"))
    first, second, rest = answer.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 ") and second.startswith(b"HTTP/1.1 200 ") and rest == b""


@pytest.mark.parametrize(("target", "allow"), [
    ("/sse/a", "GET, HEAD"), ("/sse?channel=a", "GET, HEAD"), ("/ws", "GET"), ("/publish/open:a", "POST"),
    ("/healthz", "GET, HEAD"), ("/readyz", "GET, HEAD"), ("/", "GET, HEAD")])
def test_options_and_wrong_methods_are_told_what_is_allowed(gateway, target, allow):
    answer = gateway.request("OPTIONS", target)
    assert (answer.status, answer.headers["allow"], answer.body) == (204, allow, b"")
    assert "content-length" not in answer.headers and "transfer-encoding" not in answer.headers
    wrong = [m for m in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "get") if m not in allow]
    for method in wrong + ["GET"] * ("GET" not in allow):
        answer = gateway.request(method, target)
        assert (answer.status, answer.headers["allow"]) == (405, allow)
        assert answer.json["error"] == "method_not_allowed"


def test_unknown_paths_get_404(gateway):
    for target in ("/ssexyz", "/ws/a", "/a/%2e%2e/sse", "/publish", "/metrics", "/$log", "//sse/a"):
        answer = gateway.request("GET", target)
        assert (answer.status, answer.json["error"]) == (404, "not_found"), target
    assert status_of(exchange(gateway, head("OPTIONS", "*", "Connection: close"))) in (400, 404)


@pytest.mark.parametrize("lines", [[], ["Connection: keep-alive"]])
def test_http_1_0_gets_a_stream_that_only_ends_by_closing(cluster, gateway, channel, lines):
    stream = gateway.sse(channel, headers=lines, version="1.0")
    assert stream.status == 200
    assert b"keep-alive" not in stream.head.lower()
    assert "transfer-encoding" not in stream.headers
    cluster.publish(channel, "x")
    assert stream.next_event().data == "x"


@pytest.mark.parametrize("lines", [[], ["Connection: keep-alive"]])
def test_http_1_0_gets_a_whole_answer_and_a_close(gateway, lines):
    answer = exchange(gateway, head("GET", "/healthz", *lines, version="1.0"))
    assert status_of(answer) == 200 and json.loads(body_of(answer)) == {"status": "ok"}
    assert b"keep-alive" not in answer.lower()


def test_a_request_behind_a_stream_is_never_answered(cluster, gateway, channel):
    sock = gateway.connect()
    sock.sendall(head("GET", f"/sse/{channel}") + head("GET", "/healthz"))
    data = read_until(sock, b"\n\nid: ")
    cluster.publish(channel, "marker")
    data += read_until(sock, b"data: marker\n\n")
    assert data.count(b"HTTP/1.1") == 1


def test_a_stream_behind_another_request_is_opened(cluster, gateway, channel):
    sock = gateway.connect()
    sock.sendall(head("GET", "/healthz") + head("GET", f"/sse/{channel}"))
    data = read_until(sock, b"retry: ")
    assert data.count(b"HTTP/1.1 200") == 2
    cluster.publish(channel, "marker")
    read_until(sock, b"data: marker\n\n")


# bodies and framing

@pytest.mark.parametrize("body", [("Content-Length: 5", b"hello"),
                                  ("Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n")])
@pytest.mark.parametrize("target", ["/sse/a", "/ws", "/healthz"])
def test_a_body_on_a_get_is_refused(gateway, body, target):
    line, data = body
    answer = exchange(gateway, head("GET", target, line, "Connection: close") + data)
    assert status_of(answer) == 400
    assert json.loads(body_of(answer))["error"] == "unexpected_body"


def test_an_empty_body_on_a_get_is_no_body(cluster, gateway, channel):
    stream = gateway.sse(channel, headers=["Content-Length: 0"])
    assert stream.status == 200
    cluster.publish(channel, "x")
    assert stream.next_event().data == "x"


def test_a_body_that_looks_like_a_request_is_never_answered(gateway, channel):
    hidden = head("GET", "/tidecast.js")
    request = head("GET", f"/sse/{channel}", f"Content-Length: {len(hidden)}") + hidden
    answer = exchange(gateway, request + head("GET", "/healthz", "Connection: close"))
    assert status_of(answer) == 400 and b"javascript" not in answer


@pytest.mark.parametrize("lines", [
    ["Content-Length: 3", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 300"],
])
def test_two_lengths_never_open_a_stream(gateway, channel, lines):
    opened = gateway.metrics()[OPENED_SSE]
    data = b"5\r\nhello\r\n0\r\n\r\n" + head("GET", "/healthz", "Connection: close")
    answer = exchange(gateway, head("GET", f"/sse/{channel}", *lines) + data)
    assert status_of(answer) == 400
    assert gateway.metrics()[OPENED_SSE] == opened


@pytest.mark.parametrize("garbage", [b"\r\n\r\n\r\n", b"\0" * 100, b"\x16\x03\x01\x02\x00\x01\x00",
                                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                                     b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"A" * 9000 + b"\r\n\r\n"])
def test_what_is_no_request_is_refused_and_closed(gateway, garbage):
    answer = exchange(gateway, garbage, end_writing=True)
    assert answer == b"" or status_of(answer) == 400
    assert gateway.request("GET", "/healthz").status == 200


# too much, too slow

def test_a_hundred_headers_are_taken_and_101_are_not(gateway, channel):
    lines = [f"X-{number}: y" for number in range(101)]
    request = head("GET", "/healthz", "Connection: close", *lines[:90])
    assert status_of(exchange(gateway, request)) == 200
    assert status_of(exchange(gateway, head("GET", f"/sse/{channel}", *lines))) == 400


@pytest.mark.parametrize("size", [17_000, 400_000])
def test_a_head_over_16_kib_is_refused(gateway, channel, size):
    request = head("GET", f"/sse/{channel}", "Connection: close", "Cookie: " + "c" * size)
    answer = exchange(gateway, request)
    assert status_of(answer) == 431
    assert b'"error":"head_too_large"' in answer


def test_a_head_beyond_what_is_buffered_is_refused_and_forgotten(gateway, channel):
    sock = gateway.connect()
    try:
        sock.sendall(head("GET", f"/sse/{channel}", "Cookie: " + "c" * 500_000))
        answer = sock.recv(65536)
    except ConnectionError:
        answer = b""  # refused before all of it was read
    assert answer == b"" or status_of(answer) == 400
    sock.close()
    assert gateway.request("GET", "/healthz").status == 200


@pytest.fixture(scope="module")
def hasty():
    """A gateway that waits one second for a request."""
    settings = {"gateway.request_timeout": "1s"}
    with Cluster(redis=False, settings=settings, namespaces={"default": {"publish": "anyone"}}) as one:
        yield one.gateway


@pytest.mark.parametrize("request_text", [
    b"GET /sse/a HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100,
    b"POST /publish/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"y" * 100,
    b"POST /publish/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n" + b"y" * 100,
])
def test_a_byte_per_half_second_does_not_hold_a_socket(hasty, request_text):
    sock = hasty.connect()
    sock.settimeout(0.5)
    sent = len(request_text) - 60
    sock.sendall(request_text[:sent])
    started = time.monotonic()
    while time.monotonic() < started + 10:
        try:
            if not sock.recv(65536):
                break
        except TimeoutError:
            pass
        except ConnectionError:
            break
        try:
            sock.sendall(request_text[sent:sent + 1])
            sent += 1
        except ConnectionError:
            break
    assert 0.5 < time.monotonic() - started < 4


def test_a_client_that_says_nothing_does_not_hold_a_socket(hasty):
    sock = hasty.connect()
    started = time.monotonic()
    assert sock.recv(1) == b""
    assert time.monotonic() - started < 4


def test_a_slow_request_does_not_end_with_the_stream_it_became(hasty):
    stream = hasty.sse("a")
    hasty.keep(sock := socket.create_connection(hasty.address, 10))
    assert sock.recv(1) == b"", "one request timeout has gone by"
    hasty.post("a", "still here")
    assert stream.next_event().data == "still here"


def test_a_little_junk_after_the_request_is_forgiven(cluster, gateway, channel):
    stream = gateway.sse(channel)
    stream.socket.sendall(b"j" * 4096)
    cluster.publish(channel, "x")
    assert stream.next_event().data == "x"


def test_a_client_that_goes_on_sending_is_closed(gateway, channel):
    closed = 'tidecast_disconnects_total{reason="policy"}'
    before = gateway.metrics()[closed]
    stream = gateway.sse(channel)
    try:
        for _ in range(1000):
            stream.socket.sendall(b"j" * 1000)
    except ConnectionError:
        pass
    stream.wait_end()
    gateway.wait_metric(closed, before + 1)


@pytest.mark.parametrize("way", ["close", "half_close", "reset"])
def test_a_client_that_leaves_is_gone_at_once(idle_gateway, channel, way):
    gateway = idle_gateway
    left = 'tidecast_disconnects_total{reason="client"}'
    before = gateway.metrics()
    stream = gateway.sse(channel)
    gateway.wait_metric(OPEN_SSE, before[OPEN_SSE] + 1)
    if way == "half_close":
        stream.socket.shutdown(socket.SHUT_WR)
    else:
        if way == "reset":
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.close()
    gateway.wait_metric(OPEN_SSE, before[OPEN_SSE], seconds=2)
    assert gateway.metrics()[left] == before[left] + 1


def test_clients_that_vanish_before_the_answer_leave_nothing(idle_gateway, channel):
    gateway = idle_gateway
    before = gateway.metrics()
    for number in range(200):
        sock = socket.create_connection(gateway.address)
        sock.sendall(head("GET", f"/sse/{channel}.{number}"))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    gateway.wait_metric(OPEN_SSE, before[OPEN_SSE])
    gateway.wait_metric("tidecast_subscriptions", before["tidecast_subscriptions"])
    gateway.wait_metric("tidecast_sockets", lambda number: number <= before["tidecast_sockets"])

"""Names of channels, good and bad, by every way in."""

import json
import string
from urllib.parse import quote

import pytest

ALPHABET = string.ascii_letters + string.digits + "._:/@-"
REFUSED = 'tidecast_refusals_total{reason="bad_channel"}'
BAD = {
    "too_long": "a" * 201,
    "space": "a b",
    "cr": "a\rb",
    "lf": "a\nb",
    "nul": "a\0b",
    "leading_nul": "\0",
    "dollar": "$log",
    "inner_dollar": "a$b",
    "utf8": "kanäle",
    "invalid_utf8": b"a\xff",
    "percent": "a%b",
    "plus": "a+b",
    "braces": "{a}",
    "backslash": "a\\b",
}
GOOD = {
    "one_byte": "a",
    "longest": "n" * 200,
    "whole_alphabet": "x" + ALPHABET,
    "slashes": "a/b/c",
    "dots_in_a_name": "a..b",
    "only_namespace": "chat:",
    "many_colons": "open:a:b:c",
}


def one_target(gateway, target, method="GET"):
    """The answer to a target of bytes that http.client would not send."""
    if isinstance(target, str):
        target = target.encode()
    sock = gateway.connect()
    length = b"Content-Length: 0\r\n" if method == "POST" else b""
    sock.sendall(method.encode() + b" " + target +
                 b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + length + b"\r\n")
    data = b""
    while piece := sock.recv(65536):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def assert_bad_channel(status, body):
    assert (status, json.loads(body)["error"]) == (400, "bad_channel")


@pytest.mark.parametrize("name", BAD)
def test_a_bad_name_gets_400_and_is_counted(gateway, name):
    before = gateway.metrics()[REFUSED]
    encoded = quote(BAD[name], safe="")
    assert_bad_channel(*one_target(gateway, f"/sse/{encoded}"))
    assert_bad_channel(*one_target(gateway, f"/sse?channel={encoded}"))
    assert_bad_channel(*one_target(gateway, f"/sse?channel=good&channel={encoded}"))
    assert_bad_channel(*one_target(gateway, f"/publish/{encoded}", "POST"))
    socket = gateway.ws(target=f"/ws?channel={encoded}")
    assert_bad_channel(socket.status, socket.body)
    assert gateway.metrics()[REFUSED] == before + 5


@pytest.mark.parametrize("name", [name for name in BAD if name != "invalid_utf8"])
def test_a_bad_name_in_a_command_gets_an_error(gateway, name):
    socket = gateway.ws(target="/ws")
    for verb in ("subscribe", "unsubscribe"):
        socket.command(**{verb: [BAD[name]]})
        assert socket.next_json()["error"] == ("not_json" if "nul" in name else "bad_channel")
    assert socket.ask(ping=1)["pong"] == 1


@pytest.mark.parametrize("target", ["/sse/", "/sse?channel=", "/sse?channel", "/sse?channel=&channel=a",
                                    "/publish/"])
def test_an_empty_name_gets_400(gateway, target):
    method = "POST" if "publish" in target else "GET"
    status, body = one_target(gateway, target, method)
    assert (status in (400, 404)) and json.loads(body)["error"] in ("bad_channel", "not_found")


def test_no_name_at_all_gets_400(gateway):
    status, body = one_target(gateway, "/sse")
    assert (status, json.loads(body)["error"]) == (400, "no_channel")


@pytest.mark.parametrize("path", ["..", ".", "a/../b", "a/./b", "%2e%2e", "a%2f%2e%2e%2fb", "../healthz",
                                  "..%2f..%2fhealthz"])
def test_a_path_that_a_proxy_would_take_for_another_is_refused(gateway, path):
    assert_bad_channel(*one_target(gateway, f"/sse/{path}"))
    assert_bad_channel(*one_target(gateway, f"/publish/{path}", "POST"))


@pytest.mark.parametrize("target", ["/sse/%", "/sse/%4", "/sse/%zz", "/sse?channel=%", "/sse?channel=%4",
                                    "/sse?a=%zz&channel=b"])
def test_a_broken_escape_gets_400(gateway, target):
    status, body = one_target(gateway, target)
    assert status == 400 and json.loads(body)["error"] in ("bad_channel", "bad_query")


@pytest.mark.parametrize("raw", [b"/sse/a b", b"/sse/a\rb", b"/sse/a\nb", b"/sse/a\0b", b"/sse/\xff",
                                 b"/sse/kan\xc3\xa4le"])
def test_raw_bytes_in_the_request_line_never_name_a_channel(gateway, raw):
    status, _ = one_target(gateway, raw)
    assert status == 400


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_works_by_path_and_query_and_command(cluster, gateway, name):
    good = GOOD[name]
    streams = [gateway.sse(target=f"/sse/{quote(good, safe='')}"), gateway.sse(target=f"/sse/{good}"),
               gateway.sse(quote(good, safe=""))]
    socket = gateway.ws(target="/ws")
    assert socket.ask(subscribe=[good])["subscribed"] == [good]
    cluster.wait_subscribed(good)
    given = cluster.fcall(good, "x")
    for stream in streams:
        assert stream.next_event().id == given
    assert socket.next_json() == {"channel": good, "id": given, "data": "x"}


def test_plus_is_a_blank_in_a_query_and_a_plus_in_a_path(gateway):
    assert_bad_channel(*one_target(gateway, "/sse?channel=a+b"))
    assert_bad_channel(*one_target(gateway, "/sse/a+b"))


def test_sixty_five_channels_are_one_too_many(gateway, channel):
    names = [f"{channel}.{i}" for i in range(65)]
    target = "/sse?" + "&".join(f"channel={name}" for name in names)
    status, body = one_target(gateway, target)
    assert (status, json.loads(body)["error"]) == (400, "too_many_channels")
    socket = gateway.ws(*names)
    assert (socket.status, json.loads(socket.body)["error"]) == (400, "too_many_channels")
    assert gateway.sse(*names[:64]).status == 200
    assert gateway.ws(*names[:64]).status == 101


def test_a_channel_named_twice_is_one(cluster, gateway, channel):
    stream = gateway.sse(*[channel] * 70)
    assert stream.status == 200
    cluster.publish(channel, "once")
    cluster.publish(channel, "marker")
    assert [event.data for event in stream.take(2)] == ["once", "marker"]


def test_no_request_names_more_channels_than_a_connection_may_have(make_cluster):
    gateway = make_cluster(redis=False, settings={"gateway.channels_per_connection": 2}).gateway
    assert gateway.sse("a", "b", "b").status == 200
    assert gateway.ws("a", "b", "b").status == 101
    assert gateway.sse("a", "b", "c").status == 400
    assert gateway.ws("a", "b", "c").status == 400


def test_as_many_channels_as_can_be_allowed_fit_into_a_request(make_cluster):
    gateway = make_cluster(redis=False, settings={"gateway.channels_per_connection": 1024,
                                                  "gateway.channels_per_request": 1024}).gateway
    names = [f"{number}" for number in range(1024)]
    assert gateway.sse(*names).status == 200
    status, body = one_target(gateway, "/sse?" + "&".join(f"channel={n}" for n in [*names, "x"]))
    assert (status, json.loads(body)["error"]) == (400, "too_many_channels")


def test_too_many_parameters_are_refused(gateway):
    status, body = one_target(gateway, "/sse?" + "&".join(["a=b"] * 1041))
    assert (status, json.loads(body)["error"]) == (400, "bad_query")

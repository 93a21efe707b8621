"""The WebSocket handshake: what is missing, wrong, or comes too early."""

import json
import time

import pytest

from ws_client import PONG, TEXT, PING, build

OPEN_WS = 'tidecast_connections{transport="websocket"}'
REFUSED = 'tidecast_refusals_total{reason="bad_handshake"}'


def test_the_accept_of_the_rfc(gateway):
    socket = gateway.ws(target="/ws", key="dGhlIHNhbXBsZSBub25jZQ==")
    assert socket.status == 101
    assert socket.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert socket.headers["upgrade"].lower() == "websocket"
    assert socket.headers["connection"].lower() == "upgrade"


@pytest.mark.parametrize("version", ["8", "25", "13, 8", "013", "", None])
def test_another_version_gets_426_and_is_told_ours(gateway, version):
    before = gateway.metrics()[REFUSED]
    socket = gateway.ws(target="/ws", replace={"Sec-WebSocket-Version": version})
    assert socket.status == 426
    assert socket.headers["sec-websocket-version"] == "13"
    assert socket.headers["upgrade"].lower() == "websocket"
    assert "upgrade" in socket.headers["connection"].lower()
    assert json.loads(socket.body)["error"] == "upgrade_required"
    assert gateway.metrics()[REFUSED] == before + 1


@pytest.mark.parametrize("replace", [
    {"Upgrade": None}, {"Connection": None}, {"Connection": "keep-alive"}, {"Upgrade": "h2c"},
    {"Upgrade": None, "Connection": None, "Sec-WebSocket-Key": None, "Sec-WebSocket-Version": None}])
def test_a_plain_get_is_told_to_upgrade(gateway, replace):
    socket = gateway.ws(target="/ws", replace=replace)
    assert socket.status == 426
    assert socket.headers["sec-websocket-version"] == "13"
    assert socket.headers["upgrade"].lower() == "websocket"


@pytest.mark.parametrize("key", [None, "", "c2hvcnQ=", "dGhlIHNhbXBsZSBub25jZQ", "a" * 24, "a" * 4000,
                                 "dGhlIHNhbXBsZSBub25jZQ==x", "dGhlIHNhbXBsZSBub25jZ!=="])
def test_a_key_that_is_not_16_bytes_gets_400(gateway, key):
    socket = gateway.ws(target="/ws", replace={"Sec-WebSocket-Key": key})
    assert (socket.status, json.loads(socket.body)["error"]) == (400, "bad_handshake")


def test_http_1_0_gets_400(gateway):
    assert gateway.ws(target="/ws", version="1.0").status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD"])
def test_another_method_gets_405(gateway, method):
    socket = gateway.ws(target="/ws", method=method)
    assert (socket.status, socket.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("replace", [{"Connection": "keep-alive, Upgrade"}, {"Upgrade": "WebSocket"},
                                     {"Connection": "UPGRADE"}])
def test_spellings_that_browsers_use_are_taken(gateway, replace):
    socket = gateway.ws(target="/ws", replace=replace)
    assert socket.status == 101 and socket.accept_is_right


@pytest.mark.parametrize(("offered", "chosen"), [
    (["Sec-WebSocket-Protocol: tidecast.raw"], "tidecast.raw"),
    (["Sec-WebSocket-Protocol: chat,  tidecast.raw ,x"], "tidecast.raw"),
    (["Sec-WebSocket-Protocol: chat, superchat"], None),
    (["Sec-WebSocket-Protocol: tidecast.rawx"], None),
    ([], None),
])
def test_only_a_subprotocol_that_was_offered_is_chosen(gateway, offered, chosen):
    socket = gateway.ws(target="/ws", headers=offered)
    assert socket.status == 101
    assert socket.headers.get("sec-websocket-protocol") == chosen


@pytest.mark.parametrize("extension", ["permessage-deflate; client_max_window_bits", "constructor",
                                       "x-webkit-deflate-frame"])
def test_no_extension_is_agreed_to(gateway, extension):
    socket = gateway.ws(target="/ws", headers=[f"Sec-WebSocket-Extensions: {extension}"])
    assert socket.status == 101
    assert "sec-websocket-extensions" not in socket.headers
    socket.send("{}", rsv=4)
    socket.expect_close(1002)


@pytest.mark.parametrize(("blanks", "status"), [(12_000, 101), (60_000, 431)])
def test_kilobytes_of_blanks_cost_no_time(gateway, blanks, status):
    started = time.monotonic()
    socket = gateway.ws(target="/ws", headers=[f"Sec-WebSocket-Protocol: b{' ' * blanks}x"])
    assert socket.status == status
    assert time.monotonic() - started < 1


def test_frames_in_the_segment_of_the_handshake_are_answered(gateway):
    early = build(TEXT, '{"ping":1,"req":1}') + build(PING, b"p") + build(TEXT, '{"ping":1,"req":2}')
    socket = gateway.ws(target="/ws", extra=early)
    assert socket.status == 101
    frames = [socket.next_frame() for _ in range(3)]
    assert sorted(frame.json["req"] for frame in frames if frame.opcode == TEXT) == [1, 2]
    assert [frame.payload for frame in frames if frame.opcode == PONG] == [b"p"]


def test_a_frame_that_begins_in_the_segment_of_the_handshake_is_finished(gateway):
    frame = build(TEXT, '{"ping":1,"req":7}')
    for cut in range(len(frame) + 1):
        socket = gateway.ws(target="/ws", extra=frame[:cut])
        socket.send_raw(frame[cut:])
        assert socket.next_json()["req"] == 7
        socket.close()


def test_a_bad_frame_in_the_segment_of_the_handshake_is_closed_in_order(gateway):
    socket = gateway.ws(target="/ws", extra=build(TEXT, "{}", masked=False))
    assert socket.status == 101
    socket.expect_close(1002)


def test_a_handshake_with_an_empty_body_keeps_its_frames(gateway):
    socket = gateway.ws(target="/ws", headers=["Content-Length: 0"],
                        extra=build(TEXT, '{"ping":1,"req":7}'))
    assert socket.status == 101
    assert socket.next_json()["req"] == 7


def test_clients_that_vanish_within_the_handshake_leave_nothing(idle_gateway, channel):
    before = idle_gateway.metrics()
    for _ in range(100):
        idle_gateway.ws(channel, extra=build(TEXT, '{"ping":1}')).close()
    idle_gateway.wait_metric(OPEN_WS, 0)
    idle_gateway.wait_metric("tidecast_subscriptions", before["tidecast_subscriptions"])

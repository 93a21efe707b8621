"""WebSocket frames: malformed, oversized, fragmented, and the exact codes that they are closed with."""

import json
import struct
import time

import pytest

from cluster import wait_until
from ws_client import (BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, build, close_payload, header)

OPEN_WS = 'tidecast_connections{transport="websocket"}'
PROTOCOL_ERRORS = 'tidecast_disconnects_total{reason="protocol_error"}'
RAW = ["Sec-WebSocket-Protocol: tidecast.raw"]
PING_COMMAND = b'{"ping":1,"req":1}'
BAD = {
    "unmasked": (1002, build(TEXT, PING_COMMAND, masked=False)),
    "rsv1": (1002, build(TEXT, PING_COMMAND, rsv=4)),
    "rsv2": (1002, build(TEXT, PING_COMMAND, rsv=2)),
    "rsv3": (1002, build(TEXT, PING_COMMAND, rsv=1)),
    "rsv_on_ping": (1002, build(PING, b"", rsv=4)),
    "opcode_3": (1002, build(3, b"x")),
    "opcode_7": (1002, build(7, b"x")),
    "opcode_11": (1002, build(11, b"x")),
    "opcode_15": (1002, build(15, b"x")),
    "fragmented_ping": (1002, build(PING, b"x", fin=False)),
    "fragmented_close": (1002, build(CLOSE, close_payload(1000), fin=False)),
    "long_ping": (1002, build(PING, b"x" * 126)),
    "long_pong": (1002, build(PONG, b"x" * 126)),
    "long_close": (1002, build(CLOSE, close_payload(1000, b"x" * 124))),
    "length_16_of_5": (1002, build(TEXT, b"xxxxx", length_form=2)),
    "length_16_of_125": (1002, build(TEXT, b"x" * 125, length_form=2)),
    "length_64_of_100": (1002, build(TEXT, b"x" * 100, length_form=8)),
    "length_64_of_65535": (1002, build(TEXT, b"x" * 65535, length_form=8)),
    "length_2_to_the_63": (1002, header(TEXT, 1 << 63, length_form=8) + b"mask"),
    "orphan_continuation": (1002, build(CONTINUATION, b"x")),
    "message_in_a_message": (1002, build(TEXT, b"x", fin=False) + build(TEXT, b"x")),
    "binary": (1003, build(BINARY, b"x")),
    "binary_fragment": (1003, build(BINARY, b"x", fin=False)),
    "not_utf8": (1007, build(TEXT, b"\xff")),
    "surrogate": (1007, build(TEXT, b"\xed\xa0\x80")),
    "cut_character": (1007, build(TEXT, b"\xe2\x82")),
    "not_utf8_over_fragments": (1007, build(TEXT, b"\xe2\x82", fin=False) + build(CONTINUATION, b"x")),
    "announced_1_gib": (1009, header(TEXT, 1 << 30) + b"mask"),
    "announced_just_too_big": (1009, header(TEXT, 65536 + 1025) + b"mask"),
    "fragments_too_big": (1009, build(TEXT, b"x" * 66000, fin=False) +
                          build(CONTINUATION, b"x" * 600)),
    "65_fragments": (1008, build(TEXT, b"", fin=False) + build(CONTINUATION, b"", fin=False) * 64),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_frame_is_closed_with_its_code(gateway, name):
    code, data = BAD[name]
    socket = gateway.ws(target="/ws")
    socket.send_raw(data)
    close = socket.next_close() if "announced" in name else socket.expect_close(code)
    assert close.close_code == code
    assert len(close.payload) <= 125 and close.reason


@pytest.mark.parametrize("name", ["unmasked", "length_64_of_100", "long_ping", "not_utf8", "65_fragments"])
def test_a_bad_frame_that_comes_byte_by_byte_is_closed_with_the_same_code(gateway, name):
    code, data = BAD[name]
    socket = gateway.ws(target="/ws")
    for at in range(len(data)):
        try:
            socket.send_raw(data[at:at + 1])
        except ConnectionError:
            break
    assert socket.next_close().close_code == code


def test_a_bad_frame_is_counted_and_the_neighbour_lives(idle_gateway):
    before = idle_gateway.metrics()[PROTOCOL_ERRORS]
    neighbour, socket = (idle_gateway.ws(target="/ws") for _ in range(2))
    socket.send_raw(BAD["unmasked"][1])
    socket.expect_close(1002)
    idle_gateway.wait_metric(OPEN_WS, 1)
    assert idle_gateway.metrics()[PROTOCOL_ERRORS] == before + 1
    assert neighbour.ask(ping=1)["pong"] == 1


def test_an_announced_gigabyte_allocates_nothing(cluster, gateway):
    def resident():
        total = 0
        for pid in gateway.worker_pids():
            with open(f"/proc/{pid}/statm") as statm:
                total += int(statm.read().split()[1]) * 4096
        return total

    before = resident()
    for _ in range(20):
        socket = gateway.ws(target="/ws")
        socket.send_raw(header(TEXT, 1 << 30) + b"mask" + b"x" * 60000)
        assert socket.next_close().close_code == 1009
        socket.close()
    assert resident() - before < 64 << 20


@pytest.mark.parametrize("form", ["frame", "unmasked", "fragments"])
def test_the_close_of_a_message_too_big_is_not_overtaken_by_a_reset(gateway, form):
    """A client sends all of a big message before it reads."""
    socket = gateway.ws(target="/ws")
    if form == "fragments":
        socket.send_raw(build(TEXT, b"x" * 60000, fin=False) + build(CONTINUATION, b"x" * 60000))
    else:
        socket.send(b"x" * 500_000, masked=form == "frame")
    wait_until(lambda: unread_by_gateway(gateway, socket) == 0, what="reading of all that was sent")
    close = socket.next_close()
    assert close.close_code == (1002 if form == "unmasked" else 1009)
    socket.send(close.payload, CLOSE)
    socket.wait_end(8 if form == "unmasked" else 2)
    assert not socket.was_reset


def test_the_payload_of_a_refused_frame_is_not_taken_for_frames(gateway):
    """It reads as the begin of long frames, which would swallow the client's Close."""
    socket = gateway.ws(target="/ws")
    socket.send_raw(header(TEXT, 500_000) + b"mask" + b"\x81\xfe" * 250_000)
    wait_until(lambda: unread_by_gateway(gateway, socket) == 0, what="reading of all that was sent")
    socket.expect_close(1009, timeout=2)


def unread_by_gateway(gateway, socket):
    """Bytes that lie in the kernel on either side of the connection."""
    ports = {socket.socket.getsockname()[1], gateway.address[1]}
    unread = 0
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            local, remote, _, queues = line.split()[1:5]
            if {int(end.split(":")[1], 16) for end in (local, remote)} == ports:
                out, into = (int(count, 16) for count in queues.split(":"))
                unread += out + (into if int(local.split(":")[1], 16) == gateway.address[1] else 0)
    return unread


# fragments and control frames

def test_a_ping_between_fragments_is_answered_and_the_message_is_whole(gateway):
    socket = gateway.ws(target="/ws")
    socket.send_raw(build(TEXT, PING_COMMAND[:7], fin=False) + build(PING, b"") +
                    build(CONTINUATION, b"", fin=False) + build(PONG, b"unasked") +
                    build(CONTINUATION, PING_COMMAND[7:]))
    frames = [socket.next_frame(), socket.next_frame()]
    assert [frame.payload for frame in frames if frame.opcode == PONG] == [b""]
    assert [frame.json for frame in frames if frame.opcode == TEXT] == [{"req": 1, "pong": 1}]


def test_sixty_four_fragments_are_taken_cut_within_characters(gateway):
    text = json.dumps({"ping": "ü" * 30, "req": 1}, ensure_ascii=False).encode()
    socket = gateway.ws(target="/ws")
    socket.send_raw(build(TEXT, text[:1], fin=False))
    for at in range(1, 63):
        socket.send_raw(build(CONTINUATION, text[at:at + 1], fin=False))
    socket.send_raw(build(CONTINUATION, text[63:]))
    assert socket.next_json() == {"req": 1, "pong": 1}


def test_a_frame_byte_by_byte_is_a_frame(gateway):
    socket = gateway.ws(target="/ws")
    for byte in build(TEXT, PING_COMMAND) + build(PING, b"p"):
        socket.send_raw(bytes([byte]))
    assert socket.next_json()["pong"] == 1
    assert socket.next_frame().payload == b"p"


@pytest.mark.parametrize("length", [0, 1, 124, 125])
def test_a_pong_carries_the_bytes_of_its_ping(gateway, length):
    socket = gateway.ws(target="/ws")
    payload = bytes(range(length))
    socket.send(payload, PING)
    frame = socket.next_frame()
    assert (frame.opcode, frame.payload) == (PONG, payload)


def test_of_ten_thousand_pings_the_latest_is_answered(gateway):
    socket = gateway.ws(target="/ws", receive_buffer=4096)
    for first in range(0, 10000, 500):
        socket.send_raw(b"".join(build(PING, f"{number:0>125}") for number in range(first, first + 500)))
    frame = socket.next_frame()
    while frame.payload != f"{9999:0>125}".encode():
        assert frame.opcode == PONG
        frame = socket.next_frame()
    assert socket.ask(ping=1)["pong"] == 1


def test_a_pong_out_of_nowhere_is_ignored(gateway):
    socket = gateway.ws(target="/ws")
    socket.send(b"x", PONG)
    assert socket.ask(ping=1)["pong"] == 1


# lengths

@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65535, 65536])
def test_what_is_sent_has_its_length_in_the_shortest_form(cluster, gateway, channel, length):
    socket = gateway.ws(channel, headers=RAW)
    cluster.publish(channel, "x" * length)
    frame = socket.next_text()
    assert len(frame.payload) == length
    assert frame.length_form == (0 if length < 126 else 2 if length < 65536 else 8)
    assert frame.fin and frame.rsv == 0


@pytest.mark.parametrize("length", [125, 126, 127, 65535, 65536, 65536 + 1024])
def test_what_is_received_may_have_any_length_up_to_the_limit(gateway, length):
    socket = gateway.ws(target="/ws")
    command = PING_COMMAND[:-1] + b" " * (length - len(PING_COMMAND)) + b"}"
    socket.send(command)
    assert socket.next_json()["pong"] == 1


def test_where_nobody_may_publish_4_kib_are_the_limit(make_cluster):
    gateway = make_cluster(redis=False).gateway
    for length, is_taken in ((4096, True), (4097, False)):
        socket = gateway.ws(target="/ws")
        socket.send(PING_COMMAND[:-1] + b" " * (length - len(PING_COMMAND)) + b"}")
        if is_taken:
            assert socket.next_json()["pong"] == 1
        else:
            socket.expect_close(1009)


def test_a_message_leaves_in_one_piece(cluster, gateway, channel):
    socket = gateway.ws(channel, headers=RAW)
    for number in range(20):
        cluster.publish(channel, f"{number:0>500}")
        assert len(socket.socket.recv(65536)) == 504


# the end

@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
                                  3000, 3999, 4000, 4999])
def test_a_close_with_a_code_that_may_be_sent_is_echoed(gateway, code):
    socket = gateway.ws(target="/ws")
    socket.send(close_payload(code, "gründe".encode()), CLOSE)
    assert socket.next_close().close_code == code
    socket.wait_end(2)
    assert not socket.was_reset


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535])
def test_a_close_with_a_code_that_may_not_be_sent_is_a_protocol_error(gateway, code):
    socket = gateway.ws(target="/ws")
    socket.send(close_payload(code), CLOSE)
    assert socket.next_close().close_code == 1002
    socket.wait_end(2)


@pytest.mark.parametrize(("payload", "answer"), [
    (b"", b""), (b"\x03", struct.pack("!H", 1002)), (close_payload(1000, b"\xff"), struct.pack("!H", 1007)),
    (close_payload(1000, b"x" * 123), struct.pack("!H", 1000))])
def test_odd_closes_are_answered(gateway, payload, answer):
    socket = gateway.ws(target="/ws")
    socket.send(payload, CLOSE)
    assert socket.next_close().payload[:2] == answer
    socket.wait_end(2)


def test_nothing_after_a_close_is_carried_out(cluster, gateway, channel):
    stream = gateway.sse(channel)
    socket = gateway.ws(channel)
    publish = json.dumps({"publish": {"channel": channel, "data": "too late"}})
    socket.send_raw(build(CLOSE, close_payload(1000)) + build(TEXT, publish) + build(PING, b"p"))
    assert socket.next_frame().opcode == CLOSE
    socket.wait_end(2)
    cluster.publish(channel, "marker")
    assert stream.next_event().data == "marker"


def test_nothing_after_a_bad_frame_is_carried_out(cluster, gateway, channel):
    stream = gateway.sse(channel)
    socket = gateway.ws(channel)
    publish = build(TEXT, json.dumps({"publish": {"channel": channel, "data": "too late"}}))
    socket.send_raw(BAD["opcode_3"][1] + publish)
    assert socket.next_frame().close_code == 1002
    socket.send_raw(publish)
    socket.send(close_payload(1002), CLOSE)
    socket.wait_end(2)
    cluster.publish(channel, "marker")
    assert stream.next_event().data == "marker"


def test_no_message_follows_a_close(cluster, gateway, channel):
    socket = gateway.ws(channel)
    socket.send_raw(BAD["unmasked"][1])
    assert socket.next_frame().opcode == CLOSE
    cluster.publish(channel, "x")
    assert socket.is_quiet()


def test_a_client_that_never_answers_a_close_is_gone_in_five_seconds(idle_gateway):
    socket = idle_gateway.ws(target="/ws")
    socket.send_raw(BAD["unmasked"][1])
    assert socket.next_frame().opcode == CLOSE
    started = time.monotonic()
    socket.wait_end(8)
    assert 4 < time.monotonic() - started < 7
    idle_gateway.wait_metric(OPEN_WS, 0)


def test_a_raw_client_that_commands_is_told_so(gateway, channel):
    socket = gateway.ws(channel, headers=RAW)
    socket.send(PING_COMMAND)
    socket.expect_close(1003)


def test_messages_pings_pongs_and_answers_never_mix(cluster, gateway, channel):
    socket = gateway.ws(channel, receive_buffer=4096)
    payload = "m" * 3000
    for number in range(60):
        cluster.publish(channel, payload)
        socket.send_raw(build(PING, f"{number}") + build(TEXT, json.dumps({"ping": 1, "req": number})))
    answers = messages = 0
    while answers < 60 or messages < 60:
        frame = socket.next_frame()
        if frame.opcode == TEXT:
            message = frame.json
            answers += "pong" in message
            messages += message.get("data") == payload
        else:
            assert frame.opcode == PONG and int(frame.payload) < 60

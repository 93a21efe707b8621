"""ws_client: WebSocket by the frame, right and wrong ones alike, over a raw socket."""

import base64
import hashlib
import json
import os
import socket
import struct
import time
from dataclasses import dataclass

PATIENCE = 10
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass
class Frame:
    fin: bool
    rsv: int
    opcode: int
    payload: bytes
    length_form: int  # bytes of the extended length: 0, 2 or 8

    @property
    def text(self):
        return self.payload.decode()

    @property
    def json(self):
        return json.loads(self.payload)

    @property
    def close_code(self):
        return struct.unpack("!H", self.payload[:2])[0] if self.payload else None

    @property
    def reason(self):
        return self.payload[2:].decode()


def build(opcode, payload=b"", fin=True, rsv=0, masked=True, length_form=None, mask=None):
    """A frame's bytes. `length_form` forces 0, 2 or 8 bytes of extended length."""
    if isinstance(payload, str):
        payload = payload.encode()
    return header(opcode, len(payload), fin, rsv, masked, length_form) + (
        _masked(payload, mask or os.urandom(4)) if masked else payload)


def header(opcode, length, fin=True, rsv=0, masked=True, length_form=None):
    """The bytes before the mask, whatever length they announce."""
    if length_form is None:
        length_form = 0 if length < 126 else 2 if length < 65536 else 8
    first = fin << 7 | rsv << 4 | opcode
    short = {0: length, 2: 126, 8: 127}[length_form]
    extended = length.to_bytes(length_form, "big") if length_form else b""
    return bytes([first, masked << 7 | short]) + extended


def _masked(payload, mask):
    wide = (mask * (len(payload) // 4 + 1))[:len(payload)]
    number = int.from_bytes(payload, "big") ^ int.from_bytes(wide, "big")
    return mask + number.to_bytes(len(payload), "big")


def close_payload(code, reason=b""):
    return struct.pack("!H", code) + reason


class WsClient:
    """Shakes hands when made. `status` and `headers` (lower case) are the answer's; what follows an
    answer other than 101 is in `body` when the server closes."""

    def __init__(self, address, target="/ws", headers=(), version="1.1", method="GET",
                 key=None, replace=None, extra=b"", receive_buffer=None):
        """`replace` maps a header's name to another value, or to None to leave it out. `extra` is
        sent with the request, in the same segment."""
        self.key = key or base64.b64encode(os.urandom(16)).decode()
        fields = {"Host": f"{address[0]}:{address[1]}", "Upgrade": "websocket",
                  "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": self.key, **(replace or {})}
        lines = [f"{method} {target} HTTP/{version}",
                 *(f"{name}: {value}" for name, value in fields.items() if value is not None),
                 *headers, "", ""]
        self.pending = b""
        self.ended = False
        self.was_reset = False
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall("\r\n".join(lines).encode("latin-1") + extra)
        self._read_head()

    def _read_head(self):
        while b"\r\n\r\n" not in self.pending:
            assert self._read_some(PATIENCE), f"ended within the head: {self.pending!r}"
        head, _, self.pending = self.pending.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split(" ")[1])
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    def _read_some(self, timeout):
        self.socket.settimeout(max(timeout, 0.001))
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return False
        except ConnectionResetError:
            self.was_reset = True
            data = b""
        self.ended = not data
        self.pending += data
        return bool(data)

    @property
    def accept_is_right(self):
        digest = hashlib.sha1(self.key.encode() + GUID).digest()
        return self.headers.get("sec-websocket-accept") == base64.b64encode(digest).decode()

    @property
    def body(self):
        length = int(self.headers.get("content-length", 0))
        self._fill(length)
        return self.pending[:length]

    def send_raw(self, data):
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(data)

    def send(self, payload, opcode=TEXT, **options):
        self.send_raw(build(opcode, payload, **options))

    def command(self, **members):
        self.send(json.dumps(members))

    def ask(self, **members):
        """Sends a command and returns its answer; messages that come before it are lost."""
        members.setdefault("req", 1)
        self.command(**members)
        return self.next_json(lambda m: m.get("req") == members["req"])

    def _fill(self, length, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while len(self.pending) < length:
            left = deadline - time.monotonic()
            if left <= 0 or (not self._read_some(left) and self.ended):
                return False
        return True

    def _need(self, length, timeout):
        assert self._fill(length, timeout), (
            f"no frame within {timeout} s; ended={self.ended} pending={self.pending[:200]!r}")

    def next_frame(self, timeout=PATIENCE):
        """The next frame, of any kind."""
        self._need(2, timeout)
        first, second = self.pending[:2]
        assert second & 0x80 == 0, "a server must not mask"
        form = {126: 2, 127: 8}.get(second, 0)
        self._need(2 + form, timeout)
        length = int.from_bytes(self.pending[2:2 + form], "big") if form else second
        self._need(2 + form + length, timeout)
        payload = self.pending[2 + form:2 + form + length]
        self.pending = self.pending[2 + form + length:]
        return Frame(bool(first & 0x80), first >> 4 & 7, first & 15, payload, form)

    def next_text(self, timeout=PATIENCE):
        """The next text frame; pings and pongs before it are passed over."""
        while True:
            frame = self.next_frame(timeout)
            if frame.opcode not in (PING, PONG):
                assert frame.opcode == TEXT, f"not text but {frame}"
                return frame

    def next_json(self, is_it=lambda message: True, timeout=PATIENCE):
        while not is_it(message := self.next_text(timeout).json):
            pass
        return message

    def next_close(self, timeout=PATIENCE):
        """The Close frame, whatever comes before it."""
        while (frame := self.next_frame(timeout)).opcode != CLOSE:
            pass
        return frame

    def is_quiet(self, seconds=0.1):
        """Whether no byte comes for so long."""
        return not self.pending and not self._read_some(seconds) and not self.ended

    def expect_close(self, code, timeout=PATIENCE):
        """The Close with that code, our echo, and then the end without a reset."""
        frame = self.next_close(timeout)
        assert frame.close_code == code, f"closed with {frame}"
        self.send(frame.payload, CLOSE)
        self.wait_end(timeout)
        assert not self.was_reset
        return frame

    def wait_end(self, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while not self.ended:
            left = deadline - time.monotonic()
            assert left > 0, f"not closed within {timeout} s"
            self._read_some(left)

    def close(self):
        self.socket.close()

"""sse_client: an EventSource as the HTML standard has it, over a raw socket."""

import re
import socket
import time
from dataclasses import dataclass, field

PATIENCE = 10
LINE = re.compile(rb"\r\n|\n|\r")


@dataclass
class Event:
    type: str
    data: str
    id: str


@dataclass
class SseParser:
    """Bytes in, cut anywhere; events out. Lines end with LF, CR or CRLF, in any mix."""

    events: list = field(default_factory=list)
    comments: list = field(default_factory=list)
    positions: list = field(default_factory=list)  # ids that came without an event
    retry: int | None = None
    last_event_id: str = ""
    _pending: bytes = b""
    _at_start: bool = True
    _skips_lf: bool = False
    _id: str = ""
    _type: str = ""
    _data: list = field(default_factory=list)
    _has_id: bool = False

    def feed(self, data):
        self._pending += data
        if self._at_start:
            if len(self._pending) < 3 and b"\xef\xbb\xbf".startswith(self._pending):
                return
            self._pending = self._pending.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        self._take_lines()

    def _take_lines(self):
        if self._skips_lf and self._pending:
            self._pending = self._pending.removeprefix(b"\n")
            self._skips_lf = False
        while found := LINE.search(self._pending):
            line = self._pending[:found.start()]
            self._pending = self._pending[found.end():]
            self._skips_lf = found.group() == b"\r" and not self._pending
            self._line(line.decode("utf-8", "replace"))

    def _line(self, line):
        if line == "":
            self._dispatch()
        elif line.startswith(":"):
            self.comments.append(line[1:])
        else:
            name, _, value = line.partition(":")
            self._field(name, value.removeprefix(" "))

    def _field(self, name, value):
        if name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
            self._has_id = True
        elif name == "retry" and re.fullmatch("[0-9]+", value):
            self.retry = int(value)

    def _dispatch(self):
        self.last_event_id = self._id
        if self._data:
            data = "\n".join(self._data)
            self.events.append(Event(self._type or "message", data, self._id))
        elif self._has_id:
            self.positions.append(self._id)
        self._type, self._data, self._has_id = "", [], False


class SseClient(SseParser):
    """GETs a target and keeps what comes: `status`, `headers` (lower case), `body` (raw bytes).

    The head is read when the client is made; events by next_event(). `head_seconds` is how long
    that took.
    """

    def __init__(self, address, target, headers=(), version="1.1", receive_buffer=None):
        super().__init__()
        self.body = b""
        self.ended = False
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address)
        lines = [f"GET {target} HTTP/{version}", f"Host: {address[0]}:{address[1]}",
                 "Accept: text/event-stream", *headers, "", ""]
        started = time.monotonic()
        self.socket.sendall("\r\n".join(lines).encode("latin-1"))
        self._read_head()
        self.head_seconds = time.monotonic() - started

    def _read_head(self):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError(f"ended within the head: {data!r}")
            data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        self.head = head
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split(" ")[1])
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self._take(rest)

    def _take(self, data):
        self.body += data
        self.feed(data)

    def read_some(self, timeout=PATIENCE):
        """One recv. False when nothing came in time or the stream has ended."""
        if self.ended:
            return False
        self.socket.settimeout(max(timeout, 0.001))
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return False
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self._take(data)
        return bool(data)

    def wait_for(self, is_there, timeout=PATIENCE, what="what was awaited"):
        """Reads until is_there(self) is true, and returns that."""
        deadline = time.monotonic() + timeout
        while not (found := is_there(self)):
            left = deadline - time.monotonic()
            assert left > 0, f"{what} did not come within {timeout} s; body {self.body[-500:]!r}"
            assert self.read_some(left) or not self.ended, \
                f"ended before {what}; body {self.body[-500:]!r}"
        return found

    def next_event(self, timeout=PATIENCE):
        """The next event, in order; each is returned once."""
        self.wait_for(lambda c: c.events, timeout, "an event")
        return self.events.pop(0)

    def take(self, count, timeout=PATIENCE):
        return [self.next_event(timeout) for _ in range(count)]

    def wait_end(self, timeout=PATIENCE):
        """Reads until the server closes."""
        deadline = time.monotonic() + timeout
        while not self.ended:
            left = deadline - time.monotonic()
            assert left > 0, f"not closed within {timeout} s; body {self.body[-500:]!r}"
            self.read_some(left)

    def close(self):
        self.socket.close()

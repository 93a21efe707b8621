"""A gateway as HAProxy sees one: the same answers on the wire, and a memory of what came in."""

import base64
import hashlib
import socket
import threading
import time

SSE_HEAD = (b"HTTP/1.1 200 OK\r\nConnection: upgrade\r\nContent-Type: text/event-stream\r\n"
            b"Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"
            b"Connection: close\r\n\r\n")
WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class StandinGateway:
    """Serves /sse/, /ws, POST /publish/, /healthz and /readyz until stop()."""

    def __init__(self, name):
        self.name = name
        self.is_ready = True
        self.is_mute = False      # takes a request and hangs up without an answer
        self.refusal = None       # a status line that every stream gets
        self.requests = []        # heads, health checks left out
        self.bodies = []
        self.clients = []         # sockets of all connections
        self.streams = []         # those of open streams
        self.left = []            # when a client's end of a stream was seen
        self.checks = 0
        self.changed = threading.Condition()
        self.listener = None
        self.port = 0
        self.start()

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """As a killed process would: the port refuses, every connection ends."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for client in list(self.clients):
            close(client)

    def send(self, data):
        for stream in list(self.streams):
            stream.sendall(data)

    def wait(self, predicate, timeout=5):
        with self.changed:
            return self.changed.wait_for(predicate, timeout)

    def _note(self, collection, item):
        with self.changed:
            collection.append(item)
            self.changed.notify_all()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        self.clients.append(client)
        try:
            with client, client.makefile("rb") as reader:
                while self._answer(client, reader):
                    pass
        except OSError:
            pass
        self.clients.remove(client)

    def _answer(self, client, reader):
        head = read_head(reader)
        if not head:
            return False
        path = head.split(b" ", 2)[1]
        if path in (b"/healthz", b"/readyz"):
            return self._answer_check(client, path)
        body = read_body(head, reader)
        self._note(self.requests, head)
        if self.is_mute:
            return False
        if path.startswith(b"/publish/"):
            self._note(self.bodies, body)
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"id":"1-1"}')
            return True
        if self.refusal:
            client.sendall(b"HTTP/1.1 " + self.refusal + b"\r\nContent-Length: 0\r\n\r\n")
            return True
        client.sendall(self._stream_head(head))
        return self._hold_stream(client, reader)

    def _answer_check(self, client, path):
        self.checks += 1
        is_good = self.is_ready or path == b"/healthz"
        status = b"200 OK" if is_good else b"503 Service Unavailable"
        client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
        return True

    def _stream_head(self, head):
        name = self.name.encode()
        key = header(head, b"sec-websocket-key")
        if key is None:
            return SSE_HEAD + b"retry: 100\nid: 1-1\n\ndata: " + name + b"\n\n"
        accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_GUID).digest())
        return (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n\x81" + bytes([len(name)]) + name)

    def _hold_stream(self, client, reader):
        self._note(self.streams, client)
        try:
            while reader.read1(4096):
                pass
        except OSError:
            pass
        self.streams.remove(client)
        self._note(self.left, time.monotonic())
        return False


def read_head(reader):
    lines = []
    while True:
        line = reader.readline()
        if line in (b"", b"\r\n"):
            return b"".join(lines)
        lines.append(line)


def header(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None


def read_body(head, reader):
    if header(head, b"transfer-encoding") is None:
        return reader.read(int(header(head, b"content-length") or 0))
    body = b""
    while True:
        size = int(reader.readline(), 16)
        body += reader.read(size)
        reader.readline()
        if size == 0:
            return body


def close(client):
    try:
        client.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass

"""redis_fakes: what may stand where Redis should: a path that swallows bytes, a server that refuses."""

import contextlib
import selectors
import socket
import threading


class Loop(threading.Thread):
    """A TCP listener on a free port of 127.0.0.1, and its connections, in a thread."""

    def __init__(self, family=socket.AF_INET, host="127.0.0.1"):
        super().__init__(daemon=True)
        self.listener = socket.create_server((host, 0), family=family, backlog=64)
        host, port = self.listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.port = port
        self.connections = 0
        self.is_over = threading.Event()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)

    def run(self):
        while not self.is_over.is_set():
            for key, _ in self.selector.select(0.02):
                if key.fileobj is not self.listener:
                    if key.fileobj in self.selector.get_map():
                        self.on_readable(key.fileobj)
                    continue
                client, _ = self.listener.accept()
                self.connections += 1
                self.on_connection(client)

    def watch(self, end):
        self.selector.register(end, selectors.EVENT_READ)

    def drop(self, end):
        with contextlib.suppress(KeyError):
            self.selector.unregister(end)
        end.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def receive(end):
    try:
        return end.recv(65536)
    except OSError:
        return b""


class SwallowingProxy(Loop):
    """To a unix socket. After swallow() nothing passes on what is connected, and nothing closes: as
    on a path that loses every packet. What connects later passes, unless `swallows_new`."""

    def __init__(self, target):
        super().__init__()
        self.target = str(target)
        self.swallows_new = False
        self.other = {}
        self.first_words = {}
        self.heard = bytearray()  # everything that passed, both ways
        self.swallowed = set()

    def on_connection(self, client):
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.target)
        for end, other in ((client, server), (server, client)):
            self.other[end] = other
            self.watch(end)
            if self.swallows_new:
                self.swallowed.add(end)

    def on_readable(self, end):
        data = receive(end)
        if end in self.swallowed and data:
            return
        if not data:
            for each in (end, self.other.pop(end)):
                self.other.pop(each, None)
                self.drop(each)
            return
        self.first_words.setdefault(end, data)
        self.heard += data
        with contextlib.suppress(OSError):
            self.other[end].sendall(data)

    def said(self, text):
        """The ends that began with that."""
        return {end for end, words in list(self.first_words.items()) if text in words}

    def swallow(self, is_wanted=lambda client: True):
        self.swallowed.update(end for end in list(self.other) if is_wanted(end))


class FakeRedis(Loop):
    """Answers every command with what `answer(words)` returns, None being silence. `greeting` is
    sent unasked, and then the connection is closed."""

    def __init__(self, answer=None, greeting=None, **options):
        super().__init__(**options)
        self.answer = answer
        self.greeting = greeting
        self.commands = []
        self.pending = {}

    def on_connection(self, client):
        if self.greeting is not None:
            client.sendall(self.greeting)
            client.close()
            return
        self.pending[client] = b""
        self.watch(client)

    def on_readable(self, end):
        data = receive(end)
        if not data:
            self.drop(end)
            return
        self.pending[end] += data
        while (command := self._take(end)) is not None:
            self.commands.append(command)
            reply = self.answer(command)
            if reply is not None:
                with contextlib.suppress(OSError):
                    end.sendall(reply)

    def _take(self, end):
        """The next whole command: an array of bulk strings."""
        lines = self.pending[end].split(b"\r\n")
        count = int(lines[0][1:]) if lines[0] and len(lines) > 1 else 0
        if count == 0 or len(lines) <= 2 * count + 1:
            return None
        self.pending[end] = b"\r\n".join(lines[2 * count + 1:])
        return [lines[2 * number + 2].decode() for number in range(count)]

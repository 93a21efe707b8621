"""A proxy with bad days: forwards bytes, answers 503, goes silent, or closes WebSockets by code."""

import asyncio
import base64
import hashlib
import threading

BLANK = b"<!doctype html><title>blank</title><script src=/tidecast.js></script>"
MODULE = (b"<!doctype html><title>module</title>"
          b"<script type=module>import '/tidecast.js'; window.imported = typeof Tidecast;</script>")


def answer(status, body, content_type="text/html"):
    return (f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


class Proxy:
    """Serves /blank and /module itself, for pages on the gateway's origin that only have the
    client. Everything runs in one loop on a thread of its own."""

    def __init__(self, port):
        self.upstream = port
        self.mode = "forward"
        self.close_code = None
        self.requests = []  # (target, status we gave or None)
        self.open = set()
        self.stream_count = 0  # SSE and WebSocket, open now
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = self.call(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def forward(self):
        self.mode = "forward"

    def refuse(self):
        """503 to every request; what was open is cut."""
        self.mode = "refuse"
        self.call(self.cut())

    def silence(self):
        """Connections stay open and nothing passes any more, not even later."""
        self.mode = "silent"

    def close_sockets(self, code):
        """Every WebSocket is accepted and closed with that code at once."""
        self.mode, self.close_code = "close", code
        self.call(self.cut())

    def stop(self):
        self.server.close()
        self.call(self.end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def targets(self, path):
        return [target for target, _ in self.requests if target.startswith(path)]

    async def cut(self):
        for writer in list(self.open):
            writer.transport.abort()

    async def end(self):
        await self.cut()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def serve(self, reader, writer):
        self.open.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self.handle(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def handle(self, head, reader, writer):
        target = head.split(b" ", 2)[1].decode()
        own = {"/blank": BLANK, "/module": MODULE}.get(target)
        self.requests.append((target, 503 if self.mode == "refuse" else None))
        if own:
            writer.write(answer("200 OK", own))
        elif self.mode == "refuse":
            writer.write(answer("503 Service Unavailable", b'{"error":"draining"}'))
        elif self.mode == "close" and b"upgrade: websocket" in head.lower():
            writer.write(self.handshake(head) + b"\x88\x02" + self.close_code.to_bytes(2, "big"))
            await reader.read(1000)
        else:
            is_stream = target.startswith(("/sse", "/ws"))
            self.stream_count += is_stream
            try:
                await self.pipe_both(head, reader, writer)
            finally:
                self.stream_count -= is_stream

    def handshake(self, head):
        key = next(line.split(b":", 1)[1].strip() for line in head.split(b"\r\n")
                   if line.lower().startswith(b"sec-websocket-key:"))
        digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        return (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n")

    async def pipe_both(self, head, reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            up_writer.write(head)
            ways = [asyncio.ensure_future(self.pipe(reader, up_writer)),
                    asyncio.ensure_future(self.pipe(up_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        finally:
            up_writer.close()

    async def pipe(self, reader, writer):
        stuck = False
        while True:
            data = await reader.read(65536)
            if not data:
                return
            stuck = stuck or self.mode == "silent"
            if not stuck:
                writer.write(data)
                await writer.drain()

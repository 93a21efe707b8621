"""A crowd of SSE and WebSocket clients that come back whenever they are cut off."""

import asyncio
import json
import threading

import websockets

RETRY_SECONDS = 0.2


class Client:
    def __init__(self, kind):
        self.kind = kind
        self.connects = 0
        self.is_open = False
        self.received = []


class Crowd:
    """Runs on a thread of its own; `with` it."""

    def __init__(self, port, channel, of_each_kind):
        self.port = port
        self.channel = channel
        self.clients = [Client(kind) for kind in ("sse", "websocket") for _ in range(of_each_kind)]
        self.changed = threading.Condition()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.stopped = asyncio.Event()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join()

    def wait_until(self, predicate, seconds=30):
        """True once it holds for every client."""
        with self.changed:
            return self.changed.wait_for(lambda: all(map(predicate, self.clients)), seconds)

    def _run(self):
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self):
        tasks = []
        for client in self.clients:
            tasks.append(asyncio.create_task(self._live(client)))
            # One after the other, so that leastconn deals each kind out evenly.
            while not client.is_open and not self.stopped.is_set():
                await asyncio.sleep(0.01)
        await self.stopped.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self, client):
        read = self._read_sse if client.kind == "sse" else self._read_websocket
        while True:
            try:
                await read(client)
            except (OSError, asyncio.IncompleteReadError, websockets.WebSocketException):
                pass
            self._set(client, is_open=False)
            await asyncio.sleep(RETRY_SECONDS)

    def _set(self, client, is_open, message=None):
        with self.changed:
            client.connects += is_open and not client.is_open
            client.is_open = is_open
            if message is not None:
                client.received.append(message)
            self.changed.notify_all()

    async def _read_sse(self, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET /sse/{self.channel} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            async for line in reader:
                if line.startswith(b"retry:"):
                    self._set(client, is_open=True)
                elif line.startswith(b"data:"):
                    self._set(client, True, line[len(b"data:"):].strip().decode())
        finally:
            writer.close()

    async def _read_websocket(self, client):
        url = f"ws://127.0.0.1:{self.port}/ws?channel={self.channel}"
        async with websockets.connect(url, close_timeout=1) as socket:
            self._set(client, is_open=True)
            async for text in socket:
                message = json.loads(text)
                if "data" in message:
                    self._set(client, True, message["data"])

"""Looks whether what is published arrives: over both transports, through both gateways."""

import asyncio
import json
import re
import urllib.request

import websockets

SECONDS = 10
CHANNEL = "check"
# One kind after the other: leastconn then deals each kind out to both gateways.
STREAMS_OF_A_KIND = 4


def check_delivery(system):
    """The faults found; none when all is well."""
    try:
        return asyncio.run(asyncio.wait_for(Check(system).run(), 2 * SECONDS))
    except asyncio.TimeoutError:
        return [f"delivery: nothing more came within {2 * SECONDS} s\n{system.last_words()}"]


class Check:
    def __init__(self, system):
        self.system = system
        self.port = system.port
        self.redis_channel = system.prefix + CHANNEL
        self.streams = {}  # name: queue of what it received
        self.tasks = []

    async def run(self):
        try:
            for kind, reader in (("SSE stream", self.read_sse), ("WebSocket", self.read_websocket)):
                for number in range(1, STREAMS_OF_A_KIND + 1):
                    await self.open(f"{kind} {number}", reader)
            faults = await asyncio.to_thread(self.missing_gateways)
            faults += await self.wait_for_subscriptions()
            if not faults:
                faults += await self.publish("plain hello", "PUBLISH", self.redis_channel)
                faults += await self.publish("kept hello", "FCALL", "tidecast_publish", "1",
                                             self.redis_channel)
            return faults
        finally:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)

    async def open(self, name, reader):
        """Returns once the server has answered the stream's request."""
        opened = asyncio.get_running_loop().create_future()
        self.streams[name] = asyncio.Queue()
        self.tasks.append(asyncio.create_task(reader(self.streams[name], opened)))
        await asyncio.wait({opened, self.tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise ConnectionError(f"{name}: {self.tasks[-1].exception()}")

    async def read_sse(self, received, opened):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET /sse/{CHANNEL} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = await reader.readline()
            if b" 200 " not in status:
                raise ConnectionError(f"answered {status!r}")
            async for line in reader:
                if line.startswith((b"retry:", b"id:")) and not opened.done():
                    opened.set_result(None)
                if line.startswith(b"data:"):
                    received.put_nowait(line[len(b"data:"):].strip().decode())
        finally:
            writer.close()

    async def read_websocket(self, received, opened):
        url = f"ws://127.0.0.1:{self.port}/ws?channel={CHANNEL}"
        async with websockets.connect(url, close_timeout=1) as client:
            opened.set_result(None)
            async for text in client:
                message = json.loads(text)
                if "data" in message:
                    received.put_nowait(message["data"])

    def missing_gateways(self):
        faults = []
        for gateway, admin in zip(self.system.gateways, self.system.admins):
            with urllib.request.urlopen(f"http://{admin}/metrics", timeout=5) as answer:
                text = answer.read().decode()
            for transport in ("sse", "websocket"):
                pattern = rf'^tidecast_connections{{[^}}]*transport="{transport}"[^}}]*}} (\d+)'
                if not any(int(count) for count in re.findall(pattern, text, re.M)):
                    faults.append(f"gateway {gateway} serves no {transport} stream")
        return faults

    async def wait_for_subscriptions(self):
        """A stream is open before Redis has confirmed its channel: messages until each gets one."""
        missing = []
        for _ in range(SECONDS * 4):
            await self.redis_cli("PUBLISH", self.redis_channel, "anybody there?")
            missing = await self.missing("anybody there?", 0.25)
            if not missing:
                return []
        return [f"{name} never got a message" for name in missing]

    async def publish(self, text, *words):
        answer = await self.redis_cli(*words, text)
        return [f"{name} did not get the message of {words[0]}, which answered: {answer}"
                for name in await self.missing(text, SECONDS)]

    async def redis_cli(self, *words):
        return await asyncio.to_thread(self.system.redis_cli, *words)

    async def missing(self, text, seconds):
        """The streams that did not get this text in time."""
        async def arrival(queue):
            while await queue.get() != text:
                pass

        waits = {name: asyncio.create_task(arrival(queue)) for name, queue in self.streams.items()}
        await asyncio.wait(waits.values(), timeout=seconds)
        missing = [name for name, wait in waits.items() if not wait.done()]
        for wait in waits.values():
            wait.cancel()
        return missing

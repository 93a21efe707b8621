"""Clients that others wrote: curl, Python's websockets, Node's eventsource and ws."""

import asyncio
import json
import pathlib
import queue
import shutil
import subprocess
import threading

import pytest
import websockets

NODE = pathlib.Path(__file__).parent / "node"
PATIENCE = 15


def url(gateway, scheme, target):
    return "{}://{}:{}{}".format(scheme, *gateway.address, target)


@pytest.fixture(scope="session")
def node_directory(tmp_path_factory):
    """The packages of node/package.json, installed outside the source tree."""
    directory = tmp_path_factory.mktemp("node")
    for name in ("package.json", "client.js"):
        shutil.copy(NODE / name, directory)
    done = subprocess.run(
        ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


class NodeClient:
    """One client.js; what it says is taken in order by next()."""

    def __init__(self, directory, *arguments):
        self.process = subprocess.Popen(["node", "client.js", *arguments], cwd=directory, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))

    def next(self, *kinds):
        """The next thing of these kinds; others are passed over."""
        while True:
            what = self.said.get(timeout=PATIENCE)
            if what[0] in kinds:
                return what

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def node(node_directory):
    clients = []

    def start(*arguments):
        clients.append(NodeClient(node_directory, *arguments))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def restless(make_cluster):
    """A gateway to restart: no Redis, clients come back at once."""
    return make_cluster(redis=False, namespaces={"default": {"publish": "anyone"}},
                        settings={"gateway.retry_min": "100ms", "gateway.retry_max": "200ms",
                                  "gateway.heartbeat": "1s"}).gateway


# curl

def test_curl_shows_events_as_they_come(cluster, gateway, channel):
    curl = subprocess.Popen(["curl", "-sN", "--max-time", "10", url(gateway, "http", f"/sse/{channel}")],
                            stdout=subprocess.PIPE)
    try:
        assert curl.stdout.readline().startswith(b"retry: ")
        given = cluster.fcall(channel, "hello")
        lines = [curl.stdout.readline() for _ in range(6)]
        assert lines[-3:] == [f"id: {given}\n".encode(), b"data: hello\n", b"\n"]
    finally:
        curl.kill()
        curl.wait()
        curl.stdout.close()


def test_curl_publishes_and_asks_for_heads(gateway, channel):
    stream = gateway.sse(channel)
    done = subprocess.run(["curl", "-s", "--data-binary", "@-", url(gateway, "http", f"/publish/{channel}")],
                          input=b"a\nb\0c", capture_output=True, timeout=PATIENCE, check=True)
    assert json.loads(done.stdout)["id"] == stream.next_event().id
    done = subprocess.run(["curl", "-sI", url(gateway, "http", f"/sse/{channel}")], capture_output=True,
                          timeout=PATIENCE, check=True)
    assert done.stdout.startswith(b"HTTP/1.1 200 ")


# Python's websockets

def talk(gateway, channel, conversation, **options):
    async def run():
        async with websockets.connect(url(gateway, "ws", f"/ws?channel={channel}"), **options) as socket:
            await asyncio.wait_for(conversation(socket), PATIENCE)
    asyncio.run(run())


def test_python_subscribes_publishes_pings_and_leaves(gateway, channel):
    async def conversation(socket):
        assert not socket.extensions, "it offered permessage-deflate"
        await socket.send(json.dumps({"publish": {"channel": channel, "data": {"n": 1}}, "req": 1}))
        got = [json.loads(await socket.recv()) for _ in range(2)]
        assert {"req", "published"} in [set(message) for message in got]
        assert {"n": 1} in [message.get("data") for message in got]
        await (await socket.ping(b"are you there"))
        await socket.close(4000, "done")
        assert socket.close_code == 4000
    talk(gateway, channel, conversation)


def test_python_gets_the_codes_of_its_faults(gateway, channel):
    async def send_binary(socket):
        await socket.send(b"binary")
        with pytest.raises(websockets.ConnectionClosedError):
            await socket.recv()
        assert socket.close_code == 1003

    async def send_too_much(socket):
        await socket.send("x" * 300_000)
        with pytest.raises(websockets.ConnectionClosedError):
            await socket.recv()
        assert socket.close_code == 1009

    talk(gateway, channel, send_binary)
    talk(gateway, channel, send_too_much)


def test_python_sends_fragments_that_are_put_together(gateway, channel):
    async def conversation(socket):
        await socket.send(["{", '"pi', 'ng":1', ',"req":1}'])
        assert json.loads(await socket.recv()) == {"req": 1, "pong": 1}
    talk(gateway, channel, conversation)


def test_python_gets_a_quarter_of_a_megabyte_in_order(cluster, gateway, channel):
    async def conversation(socket):
        for number in range(100):
            cluster.publish(channel, f"{number:0>2500}")
        for number in range(100):
            assert json.loads(await socket.recv())["data"] == f"{number:0>2500}"
    talk(gateway, channel, conversation)


# Node's eventsource and ws

def test_nodes_eventsource_opens_on_an_idle_channel_and_gets_events(cluster, gateway, channel, node):
    source = node("eventsource", url(gateway, "http", f"/sse/{channel}"))
    source.next("open")
    first = cluster.fcall(channel, "a\r\nb\rc\n")
    assert source.next("message") == ["message", "a\nb\nc\n", first]
    second = cluster.fcall(channel, "hi", "event", "greeting")
    assert source.next("greeting") == ["greeting", "hi", second]
    cluster.publish(channel, "plain")
    assert source.next("message") == ["message", "plain", second]


def test_nodes_eventsource_comes_back_after_a_restart_with_its_id(restless, node):
    source = node("eventsource", url(restless, "http", "/sse/a"))
    source.next("open")
    given = restless.post("a", "before").json["id"]
    assert source.next("message") == ["message", "before", given]
    restless.restart()
    assert source.next("error")[2] == 0, "it is connecting, not closed"
    source.next("open")
    gap = source.next("tidecast.gap")
    assert json.loads(gap[1])["from"] >= given
    assert restless.post("a", "after").status == 200
    assert source.next("message")[1] == "after"


def test_nodes_ws_gets_messages_and_pings_and_a_going_away(restless, node):
    socket = node("ws", url(restless, "ws", "/ws?channel=a"))
    assert socket.next("open") == ["open", "", ""], "it offered permessage-deflate"
    socket.send('{"subscribe":["b"],"req":1}')
    assert json.loads(socket.next("message")[1])["subscribed"] == ["b"]
    given = restless.post("b", '{"x":[1]}').json["id"]
    assert json.loads(socket.next("message")[1]) == {"channel": "b", "id": given, "data": {"x": [1]}}
    socket.next("ping")
    restless.stop()
    assert socket.next("close")[1] == 1001


def test_nodes_ws_takes_the_raw_subprotocol(gateway, channel, node):
    socket = node("ws", url(gateway, "ws", f"/ws?channel={channel}"), "tidecast.raw")
    assert socket.next("open")[1] == "tidecast.raw"
    gateway.post(channel, "bare")
    assert socket.next("message") == ["message", "bare", False]
    socket.send("close")
    assert socket.next("close")[1] == 4000


def test_nodes_ws_is_told_that_its_message_is_too_big(gateway, node):
    socket = node("ws", url(gateway, "ws", "/ws"))
    socket.next("open")
    socket.send("x" * 300_000)
    assert socket.next("close")[1] == 1009

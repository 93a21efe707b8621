"""Redis is gone for a while, behind HAProxy, with EventSources as browsers have them: a hundred that
were open, a hundred that open meanwhile. None may end CLOSED, all must deliver again.

LONG_TESTS=1 makes the outage 30 seconds long.
"""

import os
import selectors
import socket
import time

import pytest

from sse_client import SseParser

OUTAGE = 30 if os.environ.get("LONG_TESTS") == "1" else 6
CONNECTING, OPEN, CLOSED = 0, 1, 2


class EventSource:
    """The standard's states: another answer than a 200 of the right type is CLOSED for good, a
    connection that breaks or ends is made again after `retry`."""

    def __init__(self, crowd, target):
        self.crowd = crowd
        self.target = target
        self.state = CONNECTING
        self.why = None
        self.last_event_id = ""
        self.retry = 3.0
        self.received = []
        self.attempts = 0
        self.connect()

    def connect(self):
        self.attempts += 1
        self.state = CONNECTING
        self.due = None
        self.head = b""
        self.parser = SseParser()
        self.socket = socket.create_connection(self.crowd.address, 10)
        lines = [f"GET {self.target} HTTP/1.1", "Host: tidecast", "Accept: text/event-stream"]
        if self.last_event_id:
            lines.append(f"Last-Event-ID: {self.last_event_id}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.socket.setblocking(False)
        self.crowd.selector.register(self.socket, selectors.EVENT_READ, self)

    def on_readable(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.end()
        elif self.state == OPEN:
            self.take(data)
        else:
            self.head += data
            if b"\r\n\r\n" in self.head:
                self.open()

    def open(self):
        head, _, rest = self.head.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 ") or b"text/event-stream" not in head:
            self.end(head)
            return
        self.state = OPEN
        self.take(rest)

    def take(self, data):
        self.parser.feed(data)
        self.last_event_id = self.parser.last_event_id or self.last_event_id
        if self.parser.retry is not None:
            self.retry = self.parser.retry / 1000
        self.received += [event.data for event in self.parser.events if event.type == "message"]
        self.parser.events.clear()

    def end(self, refusal=None):
        self.crowd.selector.unregister(self.socket)
        self.socket.close()
        self.state = CLOSED if refusal else CONNECTING
        self.why = refusal
        self.due = None if refusal else time.monotonic() + self.retry


class Crowd:
    def __init__(self, address):
        self.address = address
        self.selector = selectors.DefaultSelector()
        self.sources = []

    def add(self, target):
        self.sources.append(EventSource(self, target))

    def run(self, seconds=0.0, until=lambda: False):
        """Lets them live for a while; whether `until` came true."""
        deadline = time.monotonic() + seconds
        while True:
            for key, _ in self.selector.select(0.02):
                key.data.on_readable()
            now = time.monotonic()
            for source in self.sources:
                if source.due is not None and now >= source.due:
                    source.connect()
            if until():
                return True
            if now >= deadline:
                return False

    def states(self):
        return [source.state for source in self.sources]

    def close(self):
        for source in self.sources:
            source.socket.close()
        self.selector.close()


@pytest.mark.parametrize("manner", ["stop", "pause"])
def test_no_event_source_is_lost_while_redis_is_gone(make_cluster, manner):
    cluster = make_cluster(gateways=2, settings={"gateway.retry_min": "500ms",
                                                 "gateway.retry_max": "2s"})
    proxy = cluster.add_haproxy()
    crowd = Crowd(proxy.address)
    try:
        assert crowd.run(10, lambda: cluster.gateway.request("GET", "/readyz").status == 200)
        for _ in range(100):
            crowd.add("/sse/news")
        assert crowd.run(20, lambda: crowd.states() == [OPEN] * 100), crowd.states()
        cluster.wait_subscribed("news", 2)
        cluster.publish("news", "before")
        assert crowd.run(10, lambda: all(s.received == ["before"] for s in crowd.sources))
        before = [source.attempts for source in crowd.sources]
        getattr(cluster.redis, manner)()
        for _ in range(100):
            crowd.add("/sse/news")
            crowd.run(OUTAGE / 100)
        for gateway in cluster.gateways:
            assert gateway.request("GET", "/readyz").status == 503
        assert CLOSED not in crowd.states(), next(s.why for s in crowd.sources if s.why)
        assert crowd.states().count(OPEN) >= 195, "clients are accepted while Redis is gone"
        {"stop": cluster.redis.start, "pause": cluster.redis.resume}[manner]()
        for gateway in cluster.gateways:
            gateway.wait_ready()
        cluster.wait_subscribed("news", 2)
        assert crowd.run(20, lambda: crowd.states() == [OPEN] * 200), crowd.states()
        cluster.publish("news", "after")
        assert crowd.run(10, lambda: all(s.received[-1:] == ["after"] for s in crowd.sources))
        assert [source.attempts for source in crowd.sources[:100]] == before, "streams were cut"
        assert sum(g.metrics()['tidecast_connections{transport="sse"}']
                   for g in cluster.gateways) == 200
    finally:
        crowd.close()


def test_one_gateway_restarts_and_its_event_sources_go_to_the_other(make_cluster):
    cluster = make_cluster(gateways=2, broker=False, settings={"gateway.retry_min": "100ms",
                                                               "gateway.retry_max": "1s"})
    crowd = Crowd(cluster.add_haproxy().address)
    try:
        for _ in range(60):
            crowd.add("/sse/news")
            crowd.run(0.01)
        assert crowd.run(20, lambda: crowd.states() == [OPEN] * 60)
        cluster.gateways[0].stop()
        crowd.run(2)
        cluster.gateways[0].start()
        assert crowd.run(20, lambda: crowd.states() == [OPEN] * 60), \
            [s.why for s in crowd.sources if s.why]
        cluster.publish("news", "after")
        assert crowd.run(10, lambda: all(s.received == ["after"] for s in crowd.sources))
    finally:
        crowd.close()

"""A burst that Redis hands over faster than the sweeps can pass it on."""

import pytest

COUNT = 3000


@pytest.fixture
def burst(cluster):
    """Publishes plain messages in one write."""
    def publish(channel, count, size=0):
        pipe = cluster.redis_client.pipeline(transaction=False)
        for number in range(count):
            pipe.publish("tide:" + channel, f"{number} ".ljust(size, "x"))
        pipe.execute()
    return publish


def numbers(events):
    return [int(event.data.split()[0]) for event in events]


def test_a_burst_of_many_times_the_ring_reaches_a_reader_that_keeps_up(cluster, gateway, channel, burst):
    stream = gateway.sse(channel)
    cluster.wait_subscribed(channel)
    pauses = gateway.metrics()["tidecast_backplane_pauses_total"]
    burst(channel, COUNT)
    assert numbers(stream.take(COUNT)) == list(range(COUNT))
    assert gateway.metrics()["tidecast_backplane_pauses_total"] > pauses


def test_a_burst_reaches_a_crowd(cluster, gateway, channel, burst):
    streams = [gateway.sse(channel) for _ in range(300)]
    cluster.wait_subscribed(channel)
    burst(channel, 200)
    for stream in streams:
        assert numbers(stream.take(200)) == list(range(200))


def test_a_burst_over_a_websocket_and_beside_another_channel(cluster, gateway, channel, burst):
    socket = gateway.ws(channel)
    other = gateway.sse(channel + ".other")
    cluster.wait_subscribed(channel)
    cluster.wait_subscribed(channel + ".other")
    burst(channel, 1000)
    cluster.publish(channel + ".other", "here")
    assert [int(socket.next_json()["data"].split()[0]) for _ in range(1000)] == list(range(1000))
    assert other.next_event().data == "here"

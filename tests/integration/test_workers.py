"""Workers that are killed, frozen and signalled, and the end of all of them."""

import http.client
import os
import pathlib
import signal
import time
from contextlib import closing

import pytest

from cluster import BIN, PATIENCE, Program, wait_until
from processes import CpuMeter, is_alive, open_files, open_targets
from ws_client import CLOSE

SSE = 'tidecast_connections{transport="sse"}'
WS = 'tidecast_connections{transport="websocket"}'


@pytest.fixture
def two_workers(make_cluster):
    return make_cluster(settings={"gateway.workers": 2}, broker=False)


def worker_of(gateway, client):
    """The worker that holds a client: the one that has its peer's port among its sockets."""
    port = client.socket.getsockname()[1]
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()]
    inode = next(f[9] for f in lines if f[2].endswith(f":{port:04X}") and f[3] == "01")
    return next(pid for pid in gateway.worker_pids() if f"socket:[{inode}]" in open_targets(pid))


def streams_of_both_workers(gateway, channel, count=24):
    """{pid: clients}; the kernel spreads connections by a hash."""
    found = {pid: [] for pid in gateway.worker_pids()}
    for _ in range(count):
        client = gateway.sse(channel)
        found[worker_of(gateway, client)].append(client)
    assert all(found.values()), "every client is at one worker"
    return found


def test_a_killed_worker_is_replaced_and_the_others_feel_nothing(two_workers):
    gateway = two_workers.gateway
    victim, survivor = gateway.worker_pids()
    clients = streams_of_both_workers(gateway, "news")
    two_workers.wait_subscribed("news", 2)
    two_workers.publish("news", "before")
    for client in sum(clients.values(), []):
        assert client.next_event().data == "before"
    gateway.wait_metric('tidecast_messages_delivered_total{transport="sse"}', 24)
    gateway.expect_deaths()
    os.kill(victim, signal.SIGKILL)
    for client in clients[victim]:
        client.wait_end()
    wait_until(lambda: len(gateway.worker_pids()) == 2 and victim not in gateway.worker_pids())
    assert survivor in gateway.worker_pids()
    metrics = gateway.metrics()
    assert metrics[SSE] == len(clients[survivor]), "the dead worker's gauge stays"
    assert metrics["tidecast_subscriptions"] == len(clients[survivor])
    assert metrics['tidecast_messages_delivered_total{transport="sse"}'] == 24, "a counter went back"
    assert metrics["tidecast_worker_restarts_total"] == 1
    gateway.wait_ready()
    again = [gateway.sse("news") for _ in range(8)]
    two_workers.wait_subscribed("news", 2)
    two_workers.publish("news", "after")
    for client in clients[survivor] + again:
        assert client.next_event().data == "after"
    assert "worker_died worker=0 signal=9" in gateway.log or "worker=1 signal=9" in gateway.log


def test_a_worker_that_dies_again_and_again_comes_back_ever_later(two_workers):
    gateway = two_workers.gateway
    steady = gateway.worker_pids()[0]
    gateway.expect_deaths(6)
    for _ in range(6):
        victim = wait_until(lambda: [p for p in gateway.worker_pids() if p != steady], 8)[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda victim=victim: victim not in gateway.worker_pids())
    waits = [int(line.rpartition("restart_in_ms=")[2]) for line in gateway.log.splitlines()
             if "worker_died" in line]
    assert len(waits) == 6 and max(waits[3:]) > 100, waits
    assert all(wait <= 100 * 2 ** number for number, wait in enumerate(waits)), waits
    gateway.wait_ready()
    assert steady in gateway.worker_pids()


def test_not_ready_until_every_worker_is_back(two_workers):
    gateway = two_workers.gateway
    gateway.expect_deaths()
    held = gateway.worker_pids()[0]
    os.kill(held, signal.SIGKILL)
    wait_until(lambda: gateway.request("GET", "/readyz", address=gateway.admin_address).status == 503
               or "worker_started worker=0" in gateway.log.partition("worker_died")[2])
    gateway.wait_ready()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_in_order_with_two_hundred_streams_open(two_workers, number):
    gateway = two_workers.gateway
    streams = [gateway.sse("news") for _ in range(100)]
    sockets = [gateway.ws("news") for _ in range(100)]
    gateway.wait_metric(SSE, 100)
    gateway.wait_metric(WS, 100)
    workers = gateway.worker_pids()
    began = time.monotonic()
    gateway.signal(number)
    for client in streams:
        client.wait_end()
    for client in sockets:
        frame = client.next_close()
        assert (frame.close_code, frame.reason) == (1001, "shutting down")
        client.send(frame.payload, CLOSE)
    for client in sockets:
        client.wait_end()
        assert not client.was_reset
    assert gateway.process.wait(PATIENCE) == 0
    assert time.monotonic() - began < 5
    assert not any(map(is_alive, workers))
    gateway.process = None


def test_ends_in_time_though_clients_never_answer_the_close(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.shutdown_timeout": "500ms"})
    sockets = [cluster.gateway.ws("news") for _ in range(20)]
    began = time.monotonic()
    cluster.gateway.stop()  # asserts exit 0
    assert time.monotonic() - began < 3
    assert sockets[0].next_close().close_code == 1001


def test_a_frozen_worker_does_not_keep_the_gateway_from_ending(make_cluster):
    cluster = make_cluster(broker=False, settings={"gateway.shutdown_timeout": "500ms"})
    gateway = cluster.gateway
    worker = gateway.worker_pids()[0]
    os.kill(worker, signal.SIGSTOP)
    gateway.signal(signal.SIGTERM)
    assert gateway.process.wait(PATIENCE) == 1, "a worker that had to be killed is no clean end"
    assert not is_alive(worker)
    gateway.process = None


def test_nobody_is_refused_into_the_void_while_it_ends(two_workers):
    """Those whose connection was accepted by the kernel get an answer or a clean end, no hang."""
    gateway = two_workers.gateway
    waiting = [gateway.connect() for _ in range(50)]
    gateway.signal(signal.SIGTERM)
    for client in waiting:
        try:
            client.sendall(b"GET /sse/news HTTP/1.1\r\nHost: a\r\n\r\n")
            while client.recv(4096):
                pass
        except OSError:
            pass  # a reset is an answer too
    assert gateway.process.wait(PATIENCE) == 0
    gateway.process = None


def test_a_publish_under_way_is_answered_before_the_end(make_cluster):
    one = make_cluster(namespaces={"default": {"publish": "anyone"}})
    gateway = one.gateway
    one.redis_client.execute_command("CLIENT", "PAUSE", 600, "WRITE")
    with closing(http.client.HTTPConnection(*gateway.address, timeout=PATIENCE)) as connection:
        connection.request("POST", "/publish/a", b"x")
        gateway.signal(signal.SIGTERM)
        assert connection.getresponse().status == 200
    assert gateway.process.wait(PATIENCE) == 0


def test_workers_end_when_the_supervisor_is_killed(two_workers):
    gateway = two_workers.gateway
    workers = gateway.worker_pids()
    client = gateway.sse("news")
    gateway.kill()
    client.wait_end()
    wait_until(lambda: not any(map(is_alive, workers)), 8, "the end of the workers")


def test_runs_as_process_1_of_a_container(tmp_path):
    """Where the supervisor's own id is 1, its children must not think that it died."""
    config = tmp_path / "gateway.yaml"
    config.write_text("gateway: {listen: '127.0.0.1:0', backplane: memory}\nadmin: {listen: ''}\n")
    program = Program(tmp_path, "contained", ["unshare", "--pid", "--fork", "--kill-child",
                                              BIN / "tidecast-gateway", "--config", config])
    program.launch()
    try:
        program.wait_log(r" listening address=")
        program.wait_log(r"worker_started")
        host, port = program.wait_log(r" listening address=(\S+):(\d+)").groups()
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status in (200, 503)
        connection.close()
        assert "worker_died" not in program.log
    finally:
        program.kill()
        program.close()


def test_a_storm_of_signals_changes_nothing(two_workers):
    """SIGCONT, SIGWINCH and stops interrupt system calls; nothing may take that for an error."""
    gateway = two_workers.gateway
    client = gateway.sse("news")
    two_workers.wait_subscribed("news")
    pids = [gateway.pid, *gateway.worker_pids()]
    for number in range(300):
        for pid in pids:
            os.kill(pid, (signal.SIGWINCH, signal.SIGCONT, signal.SIGURG)[number % 3])
        if number % 20 == 0:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
                os.kill(pid, signal.SIGCONT)
        two_workers.publish("news", str(number))
    assert [event.data for event in client.take(300)] == [str(number) for number in range(300)]
    assert gateway.worker_pids() == pids[1:]


def test_sigpipe_is_no_end(two_workers):
    """Writing to clients that are gone."""
    gateway = two_workers.gateway
    pids = gateway.worker_pids()
    clients = [gateway.sse("news") for _ in range(40)]
    two_workers.wait_subscribed("news", 1)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for client in clients:
        client.close()
    for _ in range(20):
        two_workers.publish("news", "x" * 1000)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGPIPE)
    gateway.wait_metric(SSE, 0)
    assert gateway.worker_pids() == pids


def test_a_frozen_and_thawed_worker_keeps_its_streams(two_workers):
    gateway = two_workers.gateway
    client = gateway.sse("news")
    two_workers.wait_subscribed("news")
    for pid in gateway.worker_pids():
        os.kill(pid, signal.SIGSTOP)
    for number in range(100):
        two_workers.publish("news", str(number))
    time.sleep(1.2)  # longer than what a loop takes for being held up
    for pid in gateway.worker_pids():
        os.kill(pid, signal.SIGCONT)
    assert [event.data for event in client.take(100)] == [str(number) for number in range(100)]
    assert 'link=subscriber fault=' not in gateway.log


def test_an_idle_gateway_sleeps(two_workers):
    gateway = two_workers.gateway
    for _ in range(20):
        gateway.sse("news")
    meter = CpuMeter([gateway.pid, *gateway.worker_pids()])
    time.sleep(1)
    assert meter.share() < 0.1


def test_descriptors_do_not_leak_over_restarts_of_workers(two_workers):
    gateway = two_workers.gateway
    before = open_files(gateway.pid)
    gateway.expect_deaths(4)
    for _ in range(2):
        for pid in gateway.worker_pids():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(gateway.worker_pids()) == 2, 8)
    gateway.wait_ready()
    assert open_files(gateway.pid) == before

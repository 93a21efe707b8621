"""docker-compose up --scale gateway=3, for real: images, network, name service, signals."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from crowd import Crowd
from stack import Stack

ENGINE = Path(__file__).with_name("docker-engine")
GATEWAYS = 3
OF_EACH_KIND = 6
BUILD_SECONDS = 300
GRACE_SECONDS = 30


@pytest.fixture(scope="module")
def docker_host():
    try:
        started = subprocess.run([ENGINE, "start"], stdout=subprocess.PIPE, text=True, check=True)
        yield started.stdout.strip()
    finally:
        subprocess.run([ENGINE, "stop"], check=True)


@pytest.fixture(scope="module")
def project(docker_host):
    stack = Stack(docker_host)
    try:
        stack.compose("build", timeout=BUILD_SECONDS)
        yield stack
    finally:
        stack.down()


@pytest.fixture
def stack(project):
    project.up(gateways=GATEWAYS)
    return project


@pytest.fixture
def crowd(stack):
    with Crowd(stack.port, "news", OF_EACH_KIND) as clients:
        assert clients.wait_until(lambda client: client.is_open), stack.logs()
        wait_until_subscribed(stack, clients)
        yield clients


def wait_until_subscribed(stack, crowd):
    """A stream is open before Redis has confirmed its channel: publishes until each heard one."""
    before = {client: len(client.received) for client in crowd.clients}
    for _ in range(60):
        stack.redis_cli("PUBLISH", "tide:news", "anybody there?")
        if crowd.wait_until(lambda client: len(client.received) > before[client], 0.5):
            return
    deaf = [client.kind for client in crowd.clients if len(client.received) == before[client]]
    pytest.fail(f"{deaf} hear nothing\n{stack.logs()}")


def publish_and_receive(stack, crowd, text):
    stack.redis_cli("PUBLISH", "tide:news", f"plain {text}")
    stack.redis_cli("FCALL", "tidecast_publish", "1", "tide:news", f"kept {text}")
    for message in (f"plain {text}", f"kept {text}"):
        assert crowd.wait_until(lambda client: message in client.received, 10), (
            message, [(client.kind, client.received[-3:]) for client in crowd.clients])


def test_redis_cli_reaches_both_kinds_of_clients_of_every_gateway(stack, crowd):
    held = [stack.streams(container) for container in stack.gateways()]
    assert len(held) == GATEWAYS
    assert all(streams["sse"] > 0 and streams["websocket"] > 0 for streams in held), held
    publish_and_receive(stack, crowd, "to all")
    assert all(client.received.count("kept to all") == 1 for client in crowd.clients)


def test_clients_of_a_killed_gateway_come_back_and_receive(stack, crowd):
    victim = stack.gateways()[0]
    cut = sum(stack.streams(victim).values())
    assert cut > 0
    connects = sum(client.connects for client in crowd.clients)
    stack.run("docker", "kill", victim)
    assert crowd.wait_until(lambda client: client.is_open and sum(
        c.connects for c in crowd.clients) >= connects + cut)
    wait_until_subscribed(stack, crowd)
    publish_and_receive(stack, crowd, "after a kill")


def test_a_stopped_gateway_ends_in_order_and_its_clients_move(stack, crowd):
    leaving = stack.gateways()[0]
    begin = time.monotonic()
    stack.run("docker", "stop", "--time", str(GRACE_SECONDS), leaving)
    assert time.monotonic() - begin < GRACE_SECONDS - 5, "it had to be killed"
    state = json.loads(stack.run("docker", "inspect", leaving))[0]["State"]
    assert state["ExitCode"] == 0, state
    assert crowd.wait_until(lambda client: client.is_open)
    wait_until_subscribed(stack, crowd)
    publish_and_receive(stack, crowd, "after a stop")

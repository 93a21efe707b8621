"""Fixtures: a cluster that tests share, and clusters of a test's own."""

import itertools

import pytest

import cluster as programs

NAMESPACES = {
    "default": {"publish": "off"},
    "open": {"publish": "anyone"},
    "json": {"publish": "anyone", "content": "json"},
    "text": {"publish": "anyone", "content": "text"},
    "short": {"publish": "anyone", "max_payload": 16},
    "plain": {"publish": "anyone", "history.messages": 0},
}
channel_numbers = itertools.count()


@pytest.fixture(scope="session")
def cluster():
    """Redis, broker, one gateway of two workers. Nothing may be stopped or reconfigured in it."""
    with programs.Cluster(settings={"gateway.workers": 2}, namespaces=NAMESPACES) as shared:
        yield shared


@pytest.fixture(scope="session")
def gateway(cluster):
    return cluster.gateway


@pytest.fixture
def idle_gateway(gateway):
    """The shared gateway, when it has noticed that earlier tests' clients are gone."""
    for transport in ("sse", "websocket"):
        gateway.wait_metric(f'tidecast_connections{{transport="{transport}"}}', 0)
    gateway.wait_metric("tidecast_sockets", 1)  # that of the question itself
    return gateway


@pytest.fixture
def make_cluster():
    """Clusters of the test's own: make_cluster(gateways=2, settings={…}, namespaces={…})."""
    made = []

    def make(*args, **options):
        made.append(programs.Cluster(*args, **options))
        return made[-1]

    yield make
    faults = []
    for one in made:
        try:
            one.close()
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)


@pytest.fixture
def channel():
    """A channel that no other test uses, in a namespace where anyone may publish."""
    return f"open:{next(channel_numbers)}"


@pytest.fixture(autouse=True)
def no_program_reports_a_fault():
    yield
    for program in list(programs.running):
        program.close_clients()
        program.check()

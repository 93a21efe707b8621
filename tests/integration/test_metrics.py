"""/metrics: OpenMetrics to the letter, summed over workers, and equal to what clients really got."""

import re
import shutil
import subprocess

import pytest

from cluster import wait_until

NAMESPACES = {"default": {"publish": "anyone"}}
FAMILY = re.compile(r"# (TYPE|HELP|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\d+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parse(text):
    """{family: (type, {sample: value})}; fails on whatever the standard does not allow."""
    assert text.endswith("# EOF\n"), "no # EOF at the end"
    families, at, heads = {}, None, set()
    for line in text[:-len("# EOF\n")].splitlines():
        head = FAMILY.fullmatch(line)
        if head:
            keyword, name, rest = head.groups()
            if name != at:
                assert name not in families, f"{name} is not in one piece"
                families[name], at, heads = (None, {}), name, set()
            assert keyword not in heads, f"two # {keyword} {name}"
            assert not families[name][1], f"# {keyword} {name} stands after its samples"
            heads.add(keyword)
            if keyword == "TYPE":
                assert rest in ("counter", "gauge", "histogram", "info", "unknown")
                families[name] = (rest, {})
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, f"not a sample: {line!r}"
        name, labels, value = sample.groups()
        kind, samples = families[at]
        assert name == at + ("_total" if kind == "counter" else ""), f"{name} in family {at}"
        if labels is not None:
            assert "".join(found.group() for found in LABEL.finditer(labels)) == labels
        assert line.rpartition(" ")[0] not in samples, f"twice: {line}"
        samples[line.rpartition(" ")[0]] = int(value)
    assert all(kind and samples for kind, samples in families.values())
    return families


def scrape(gateway):
    return gateway.request("GET", "/metrics", address=gateway.admin_address)


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(settings={"gateway.workers": 3}, namespaces=NAMESPACES)


def test_the_text_is_openmetrics(cluster):
    answer = scrape(cluster.gateway)
    assert answer.headers["content-type"] == \
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = parse(answer.body.decode())
    assert families["tidecast_connections"][0] == "gauge"
    assert families["tidecast_messages_delivered"][0] == "counter"
    assert all(name.startswith("tidecast_") for name in families)
    assert not any(name.endswith("_total") for name in families)


@pytest.mark.parametrize("text", [
    "a 1\n# EOF\n", "# TYPE a counter\na 1\n# EOF\n", "# TYPE a gauge\na 1\n",
    "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na{x=\"y\"} 1\n# EOF\n",
    "# TYPE a gauge\na 1\n# HELP a b\n# EOF\n", "# TYPE a gauge\na 1\na 2\n# EOF\n",
    "# TYPE a gauge\na{x=y} 1\n# EOF\n", "# TYPE a gauge\n# EOF\n"])
def test_the_parser_of_this_test_is_strict(text):
    with pytest.raises((AssertionError, KeyError)):
        parse(text)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_agrees(cluster):
    text = scrape(cluster.gateway).body
    subprocess.run(["promtool", "check", "metrics"], input=text, check=True)


def test_every_family_says_what_it_is(cluster):
    text = scrape(cluster.gateway).body.decode()
    for name in parse(text):
        assert re.search(rf"^# HELP {name} \S.*\.$", text, re.M), name


def test_sums_over_workers_equal_what_clients_got(cluster):
    gateway = cluster.gateway
    streams = [gateway.sse("news") for _ in range(20)]
    sockets = [gateway.ws("news", "other") for _ in range(15)]
    gateway.wait_metric('tidecast_connections{transport="sse"}', 20)
    gateway.wait_metric('tidecast_connections{transport="websocket"}', 15)
    wait_until(lambda: cluster.redis_client.pubsub_numsub("tide:news")[0][1] == 3,
               what="each worker having a client")
    before = gateway.metrics()
    for number in range(40):
        cluster.publish("news", f"plain {number}")
    for number in range(10):
        assert gateway.post("news", f"with id {number}".encode()).status == 200
    gateway.post("$", b"refused")
    for client in streams:
        assert len(client.take(50)) == 50
    for client in sockets:
        for _ in range(50):
            client.next_json()
    after = gateway.metrics()
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    for name in ("tidecast_probes_heard_total", "tidecast_delivered_bytes_total",
                 "tidecast_ring_bytes", "tidecast_heartbeats_total", "tidecast_sockets"):
        grown.pop(name, None)
    assert grown == {
        'tidecast_messages_received_total{form="plain"}': 40 * 3,
        'tidecast_messages_received_total{form="enveloped"}': 10 * 3,
        'tidecast_messages_delivered_total{transport="sse"}': 50 * 20,
        'tidecast_messages_delivered_total{transport="websocket"}': 50 * 15,
        'tidecast_publishes_total{result="ok"}': 10,
        'tidecast_refusals_total{reason="bad_channel"}': 1,
    }
    assert after["tidecast_subscriptions"] == 20 + 15 * 2


def test_bytes_are_those_on_the_wire(cluster):
    gateway = cluster.gateway
    client = gateway.sse("news")
    cluster.wait_subscribed("news")
    before, had = gateway.metrics()["tidecast_delivered_bytes_total"], len(client.body)
    for number in range(10):
        cluster.publish("news", "x" * number)
    client.take(10)
    assert gateway.metrics()["tidecast_delivered_bytes_total"] - before == len(client.body) - had


def test_books_are_balanced_when_all_have_left(cluster):
    gateway = cluster.gateway
    for _ in range(10):
        gateway.sse("news")
        gateway.ws("news")
    gateway.wait_metric('tidecast_connections{transport="websocket"}', 10)
    gateway.close_clients()
    gateway.wait_metric('tidecast_connections{transport="sse"}', 0)
    gateway.wait_metric('tidecast_connections{transport="websocket"}', 0)
    metrics = gateway.metrics()
    opened = sum(value for name, value in metrics.items() if "streams_opened" in name)
    closed = sum(value for name, value in metrics.items() if "disconnects" in name)
    assert opened == closed == 20
    assert metrics["tidecast_subscriptions"] == metrics["tidecast_streams_blocked"] == 0


def test_metrics_are_not_shown_to_clients(cluster):
    assert cluster.gateway.request("GET", "/metrics").status == 404

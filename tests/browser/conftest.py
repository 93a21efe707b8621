"""Fixtures: one Redis, broker, gateway and browser for all tests of this folder."""

import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from browser_proxy import Proxy
from browser_setup import BIN, Gateway, Page, Process, Redis, eventually

CHROMIUM_FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --disable-dev-shm-usage""".split()


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="session")
def redis(directory):
    server = Redis(directory)
    yield server
    server.process.end()


@pytest.fixture(scope="session")
def broker(directory, redis):
    process = Process(directory / "broker.log", BIN / "tidecast-broker",
                      "--set", f"redis.address=unix:{redis.socket}")
    eventually(lambda: "tidecast_publish" in json.dumps(redis.client.execute_command(
        "FUNCTION", "LIST")), what="the broker installing its functions")
    yield process
    process.end()


@pytest.fixture(scope="session")
def gateway(directory, redis, broker):
    started = Gateway(directory, redis, "namespaces.default.publish=anyone")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def closed_gateway(directory, redis, broker):
    """One where nobody may publish."""
    started = Gateway(directory, redis)
    yield started
    started.stop()


@pytest.fixture
def proxy(gateway):
    started = Proxy(gateway.port)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def driver(directory):
    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in CHROMIUM_FLAGS + [f"--user-data-dir={directory / 'profile'}"]:
        options.add_argument(flag)
    chromium = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    chromium.set_script_timeout(20)
    yield chromium
    chromium.quit()


@pytest.fixture
def page(driver):
    yield Page(driver)
    driver.get("about:blank")


@pytest.fixture
def channel(request):
    """A channel of the test's own, since a gateway stays subscribed for a while."""
    return request.node.name.replace("[", ".").replace("]", "")[:100]

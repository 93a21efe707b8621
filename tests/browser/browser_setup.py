"""What the browser tests run against: redis-server, gateways, and a page in Chromium."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import redis as redis_client

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("BIN_DIR", ROOT / "build/release/bin")).resolve()
ARTIFACTS = ROOT / "tests/artifacts"


def eventually(question, seconds=15, what="it"):
    """The first true answer; asks again until then."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


class Process:
    def __init__(self, log, *command):
        self.log = open(log, "ab")
        self.child = subprocess.Popen(list(map(str, command)), stdout=self.log, stderr=self.log)

    def end(self, kill=False):
        if self.child.poll() is None:
            self.child.kill() if kill else self.child.terminate()
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.log.close()


class Redis:
    def __init__(self, directory):
        self.socket = directory / "redis.sock"
        self.process = Process(directory / "redis.log", "redis-server", "--port", 0, "--save", "",
                               "--appendonly", "no", "--unixsocket", self.socket,
                               "--dir", directory)
        self.client = redis_client.Redis(unix_socket_path=str(self.socket), decode_responses=True)
        eventually(self.answers, what="redis-server answering")

    def answers(self):
        try:
            return self.socket.exists() and self.client.ping()
        except redis_client.ConnectionError:
            return False

    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], check=True,
                              capture_output=True, text=True, timeout=10)
        return done.stdout.strip()

    def publish(self, channel, payload):
        """Types the line that the page shows, once a gateway listens."""
        name = f"tide:{channel}"
        eventually(lambda: self.client.pubsub_numsub(name)[0][1] > 0, what=f"SUBSCRIBE {name}")
        self.cli("PUBLISH", name, payload)


class Gateway:
    """One worker: then a channel that Redis knows to be subscribed is so for every client."""

    def __init__(self, directory, redis, *settings):
        self.directory, self.redis, self.settings = directory, redis, settings
        # Bound but not listening: keeps the port ours while the gateway is down.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        settings = (f"gateway.listen=127.0.0.1:{self.port}", "admin.listen=127.0.0.1:0",
                    "gateway.workers=1", f"redis.address=unix:{self.redis.socket}",
                    *self.settings)
        words = [word for setting in settings for word in ("--set", setting)]
        self.process = Process(self.directory / f"gateway-{self.port}.log",
                               BIN / "tidecast-gateway", *words)
        eventually(self.is_ready, what=f"{self.url}/readyz answering 200")

    def is_ready(self):
        assert self.process.child.poll() is None, \
            Path(self.process.log.name).read_text()[-2000:]
        return status_of(f"{self.url}/readyz") == 200

    def kill(self):
        """The supervisor's workers end with it; the port is free when none is left."""
        self.process.end(kill=True)
        eventually(lambda: status_of(f"{self.url}/healthz") is None, what="the gateway's death")

    def stop(self):
        self.process.end()
        self.reserved.close()


class Page:
    """The browser with the few questions that these tests ask it."""

    def __init__(self, driver):
        self.driver = driver
        self.js = driver.execute_script

    def open(self, url, width=1280, height=800, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(url)

    def run(self, body, *arguments):
        """Runs the body of an async function; what it throws comes as {"thrown": {...}}."""
        return self.driver.execute_async_script(
            "const [done, ...args] = [arguments[arguments.length - 1], ...arguments];"
            f"(async () => {{ {body} }})().then(done, e => "
            "done({thrown: {name: e.name, code: e.code, message: e.message, status: e.status}}));",
            *arguments)

    def wait(self, expression, seconds=15):
        return eventually(lambda: self.js(f"return {expression}"), seconds, expression)

    def screenshot(self, name):
        ARTIFACTS.mkdir(exist_ok=True)
        self.driver.save_screenshot(str(ARTIFACTS / f"{name}.png"))

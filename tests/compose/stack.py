"""The Compose project under test, brought up for real under a name and port of its own."""

import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 60
METRICS = (r"exec 3<>/dev/tcp/127.0.0.1/9000 && "
           r"printf 'GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3 && timeout 5 cat <&3")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def compose_words():
    return ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


class Stack:
    def __init__(self, docker_host):
        self.port = free_port()
        self.environment = dict(
            os.environ, DOCKER_HOST=docker_host, TIDECAST_PORT=str(self.port),
            COMPOSE_PROJECT_NAME=f"tidecast-test-{os.getpid()}", TIDECAST_IMAGE="tidecast-test")

    def run(self, *words, timeout=60, check=True):
        done = subprocess.run(words, cwd=ROOT, env=self.environment, timeout=timeout, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0 or not check, f"{' '.join(words)}:\n{done.stdout[-3000:]}"
        return done.stdout

    def compose(self, *words, **options):
        return self.run(*compose_words(), *words, **options)

    def up(self, gateways):
        self.compose("up", "-d", "--no-recreate", "--scale", f"gateway={gateways}")
        self.wait_for(f"{gateways} gateways", lambda: len(self.gateways()) == gateways)
        self.wait_for("every gateway ready", self.all_ready)
        self.wait_for("haproxy", self.haproxy_is_ready)
        self.wait_for("the broker's functions", lambda: "tidecast_publish" in
                      self.redis_cli("FUNCTION", "LIST"))

    def down(self):
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "2", "--rmi", "all",
                     timeout=120, check=False)

    def wait_for(self, what, predicate):
        deadline = time.monotonic() + READY_SECONDS
        while not predicate():
            assert time.monotonic() < deadline, f"{what}: not in time\n{self.logs()}"
            time.sleep(0.2)

    def logs(self):
        return self.compose("logs", "--no-color", "--tail", "20", check=False)

    def gateways(self):
        """The ids of the gateways' containers that run."""
        listing = self.compose("ps", "-q", "gateway").split()
        running = self.run("docker", "ps", "-q", "--no-trunc").split()
        return [container for container in listing if container in running]

    def streams(self, container):
        """How many streams a gateway holds, by transport; None while it doesn't answer."""
        text = self.run("docker", "exec", container, "bash", "-c", METRICS, check=False)
        found = dict(re.findall(r'^tidecast_connections\{transport="(\w+)"\} (\d+)', text, re.M))
        return {name: int(count) for name, count in found.items()} or None

    def all_ready(self):
        question = METRICS.replace("9000", "8000").replace("/metrics", "/readyz")
        return all(" 200 " in self.run("docker", "exec", container, "bash", "-c", question,
                                       check=False) for container in self.gateways())

    def haproxy_is_ready(self):
        try:
            url = f"http://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def redis_cli(self, *words):
        return self.compose("exec", "-T", "redis", "redis-cli", *words).strip()

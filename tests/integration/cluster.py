"""cluster: the real programs of a test: Redis, broker, gateways, HAProxy; each one's log is kept.

Programs come from $BIN_DIR (build/release/bin where that is not set). A program that reports a
fault (a sanitizer, an assertion, a worker that died unasked) fails the test that runs.
"""

import http.client
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass

import yaml

from redis_server import RedisServer
from sse_client import SseClient
from ws_client import WsClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BIN_DIR", ROOT / "build" / "release" / "bin")).resolve()
PATIENCE = 10
START_SECONDS = 30
STOP_SECONDS = 20
FAULT = re.compile(
    r"ERROR: AddressSanitizer|runtime error:|LeakSanitizer|Assertion `|assertion failed"
    r"|AddressSanitizer:DEADLYSIGNAL|worker_died")

running = []  # every program that was started and not closed
numbers = itertools.count()


def wait_until(check, seconds=PATIENCE, what="it"):
    """Polls until check() is true, and returns that."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.01)
    return found


def settings_tree(settings):
    """{'gateway.workers': 2} as {'gateway': {'workers': 2}}."""
    tree = {}
    for key, value in settings.items():
        at = tree
        *parents, last = key.split(".")
        for name in parents:
            at = at.setdefault(name, {})
        at[last] = value
    return tree


class Program:
    """A process with its log in a file; `log` is all it said, over every start."""

    def __init__(self, directory, name, command, environment=None):
        self.name = f"{name}-{next(numbers)}"
        self.directory = pathlib.Path(directory)
        self.log_path = self.directory / f"{self.name}.log"
        self.log_path.touch()
        self.command = [str(word) for word in command]
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith("TIDECAST_")}
        self.environment = dict(inherited, **(environment or {}))
        self.process = None
        self.clients = []
        self.deaths_expected = 0
        self.reported = 0  # faults in the log before it have failed a test already
        running.append(self)

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def launch(self, **options):
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=self.environment,
                                            **options)

    def wait_log(self, pattern, seconds=START_SECONDS, after=0):
        """The first match in what was logged after that offset."""
        def found():
            match = re.search(pattern, self.log[after:])
            assert match or self.process.poll() is None, f"{self.name} ended:\n{self.log[-4000:]}"
            return match
        return wait_until(found, seconds, f"{pattern!r} in the log of {self.name}")

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def stop(self):
        """SIGTERM; it must end in order and in time."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.terminate()
        try:
            status = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{self.name} did not end:\n{self.log[-4000:]}") from None
        self.check()
        assert status == 0, f"{self.name} ended with {status}:\n{self.log[-4000:]}"

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def expect_deaths(self, count=1):
        """So many workers may die from now on."""
        self.deaths_expected += count

    def check(self):
        """Fails if it reported a fault, or ended unasked."""
        log = self.log
        deaths = self.deaths_expected
        for fault in FAULT.finditer(log, self.reported):
            if fault.group() == "worker_died" and deaths > 0:
                deaths -= 1
                continue
            at = log.rfind("\n", 0, fault.start()) + 1
            self.reported, self.deaths_expected = len(log), 0
            raise AssertionError(f"{self.name} reported a fault:\n{log[at:at + 6000]}")
        if self.process is not None:
            assert self.process.poll() is None, f"{self.name} ended:\n{log[-4000:]}"

    def close_clients(self):
        while self.clients:
            self.clients.pop().close()

    def close(self):
        self.close_clients()
        if self in running:
            running.remove(self)
        try:
            if self.process is not None and self.process.poll() is None:
                self.resume()
                self.stop()
        finally:
            self.kill()
        self.check()


@dataclass
class Response:
    status: int
    headers: dict  # names in lower case
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Daemon(Program):
    """One of ours: its settings go into a file; `arguments` follow it on the command line."""

    def __init__(self, directory, name, settings, namespaces=None, arguments=(), environment=None,
                 wrapper=()):
        self.settings = dict(settings)
        self.namespaces = namespaces or {"default": {}}
        self.config_path = pathlib.Path(directory) / f"{name}-{next(numbers)}.yaml"
        super().__init__(directory, name,
                         [*wrapper, BIN / f"tidecast-{name}", "--config", self.config_path,
                          *arguments], environment)

    def write_config(self):
        tree = settings_tree(self.settings)
        tree["namespaces"] = {name: settings_tree(section)
                              for name, section in self.namespaces.items()}
        self.config_path.write_text(yaml.safe_dump(tree))


class Broker(Daemon):
    def __init__(self, directory, redis, settings=None, namespaces=None, **options):
        defaults = {"redis.address": redis.unix_address, "redis.backoff_max": "200ms",
                    "broker.lease": "1s"}
        super().__init__(directory, "broker", {**defaults, **(settings or {})}, namespaces,
                         **options)

    def start(self, ready=True):
        self.write_config()
        seen = len(self.log)
        self.launch()
        if ready:
            self.wait_log("broker_ready", after=seen)
        return self


class Gateway(Daemon):
    """A gateway on a free port, which it keeps over stop() and start().

    `redis` None: the memory backplane. `wrapper` stands before the command, such as
    ["prlimit", "--nofile=64"].
    """

    def __init__(self, directory, redis=None, settings=None, namespaces=None, **options):
        defaults = {"gateway.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0",
                    "gateway.workers": 1, "redis.backoff_max": "200ms"}
        if redis is None:
            defaults["gateway.backplane"] = "memory"
        else:
            defaults["redis.address"] = redis.unix_address
        super().__init__(directory, "gateway", {**defaults, **(settings or {})}, namespaces,
                         **options)
        self.address = None
        self.admin_address = None

    def start(self, ready=True):
        """`ready` False: returns when it listens and has a worker, whatever Redis says."""
        self.write_config()
        seen = len(self.log)
        self.launch()
        self.address = self._address(r" listening address=(\S+)", "gateway.listen", seen)
        if self.settings["admin.listen"]:
            self.admin_address = self._address(r"admin_listening address=(\S+)", "admin.listen",
                                               seen)
        if ready:
            self.wait_ready()
        else:
            self.wait_log(r"worker_started", after=seen)
        return self

    def _address(self, pattern, setting, seen):
        text = self.wait_log(pattern, after=seen)[1]
        self.settings[setting] = text
        host, _, port = text.rpartition(":")
        return host.strip("[]"), int(port)

    def wait_ready(self, seconds=START_SECONDS):
        def is_ready():
            assert self.process.poll() is None, f"{self.name} ended:\n{self.log[-4000:]}"
            try:
                return self.request("GET", "/readyz").status == 200
            except OSError:
                return False
        wait_until(is_ready, seconds, f"{self.name} getting ready")
        return self

    def restart(self, ready=True):
        """Ends in order and starts on the same port."""
        self.stop()
        return self.start(ready)

    def worker_pids(self):
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    # what a client does

    def request(self, method, target, body=None, headers=None, address=None, timeout=PATIENCE):
        connection = http.client.HTTPConnection(*(address or self.address), timeout=timeout)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, fields, answer.read())
        finally:
            connection.close()

    def post(self, channel, payload, query="", headers=None):
        return self.request("POST", f"/publish/{channel}{query}", payload, headers)

    def metrics(self):
        """{'tidecast_connections{transport="sse"}': 3, …} over all workers."""
        text = self.request("GET", "/metrics", address=self.admin_address).body.decode()
        return {name: int(value) for name, value in
                (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}

    def wait_metric(self, name, value, seconds=PATIENCE):
        """Until it is that value, or what value(number) says."""
        check = value if callable(value) else lambda number: number == value
        return wait_until(lambda: check(self.metrics()[name]), seconds, f"{name} being right")

    def keep(self, client):
        """Closes it when the test ends."""
        self.clients.append(client)
        return client

    def sse(self, *channels, target=None, headers=(), **options):
        """A stream on these channels, or on any target."""
        if target is None:
            target = "/sse?" + "&".join(f"channel={channel}" for channel in channels)
        return self.keep(SseClient(self.address, target, headers, **options))

    def ws(self, *channels, target=None, **options):
        if target is None:
            target = "/ws?" + "&".join(f"channel={channel}" for channel in channels)
        return self.keep(WsClient(self.address, target, **options))

    def connect(self):
        """A bare socket."""
        return self.keep(socket.create_connection(self.address, PATIENCE))


class HAProxy(Program):
    """deploy/haproxy.cfg in front of one or two gateways."""

    def __init__(self, directory, gateways):
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        deploy = ROOT / "deploy"
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.set_inheritable(True)
        self.address = self.listener.getsockname()
        environment = {"TIDECAST_BIND": f"fd@{self.listener.fileno()}"}
        for number, gateway in enumerate([gateways[0], gateways[-1]], 1):
            environment[f"TIDECAST_GATEWAY_{number}"] = "{}:{}".format(*gateway.address)
        super().__init__(directory, "haproxy",
                         [program, "-db", "-q", "-f", deploy / "haproxy.cfg", "-f",
                          deploy / "haproxy-local.cfg"], environment)

    def start(self):
        self.launch(close_fds=False)
        return self

    def sse(self, *channels, target=None, headers=(), **options):
        if target is None:
            target = "/sse?" + "&".join(f"channel={channel}" for channel in channels)
        client = SseClient(self.address, target, headers, **options)
        self.clients.append(client)
        return client

    def stop(self):
        self.kill()

    def close(self):
        super().close()
        self.listener.close()


class Cluster:
    """Redis, a broker and gateways of one configuration. Leave it by close() or `with`."""

    def __init__(self, gateways=1, settings=None, namespaces=None, redis_config=(), broker=True,
                 broker_settings=None, redis=True):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="cluster-"))
        self.settings = settings or {}
        self.namespaces = namespaces
        self.redis = RedisServer(redis_config).start() if redis else None
        self.gateways = []
        self.broker = None
        self.haproxy = None
        self._redis_client = None
        try:
            if redis and broker:
                self.broker = Broker(self.directory, self.redis, broker_settings,
                                     namespaces).start()
            for _ in range(gateways):
                self.add_gateway()
        except BaseException:
            self._abandon()
            raise

    def add_gateway(self, settings=None, ready=True, **options):
        gateway = Gateway(self.directory, self.redis, {**self.settings, **(settings or {})},
                          self.namespaces, **options)
        self.gateways.append(gateway)
        return gateway.start(ready)

    def add_haproxy(self):
        self.haproxy = HAProxy(self.directory, self.gateways).start()
        return self.haproxy

    @property
    def gateway(self):
        return self.gateways[0]

    @property
    def redis_client(self):
        if self._redis_client is None:
            self._redis_client = self.redis.connect()
        return self._redis_client

    def publish(self, channel, payload):
        """Plain, as redis-cli PUBLISH does. How many gateway workers heard it."""
        return self.redis_client.publish("tide:" + channel, payload)

    def fcall(self, channel, payload, *options):
        """With an id, through the Function; returns the id."""
        return self.redis_client.execute_command(
            "FCALL", "tidecast_publish", 1, "tide:" + channel, payload, *options).decode()

    def wait_subscribed(self, channel, workers=1):
        """Until so many workers hear the channel."""
        name = "tide:" + channel
        wait_until(lambda: self.redis_client.pubsub_numsub(name)[0][1] >= workers,
                   what=f"SUBSCRIBE of {channel}")

    @property
    def programs(self):
        return [p for p in (self.haproxy, *self.gateways, self.broker) if p is not None]

    def _abandon(self):
        for program in self.programs:
            program.kill()
            if program in running:
                running.remove(program)
        self._close_redis()

    def _close_redis(self):
        if self._redis_client is not None:
            self._redis_client.close()
            self._redis_client = None
        if self.redis is not None:
            self.redis.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def close(self):
        faults = []
        for program in self.programs:
            try:
                program.close()
            except AssertionError as fault:
                faults.append(str(fault))
        self._close_redis()
        assert not faults, "\n".join(faults)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

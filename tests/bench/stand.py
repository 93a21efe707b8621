"""The test stand: a Redis, a broker, servers and load clients of its own, all on loopback.

Everything it starts is a process group of its own and ends with it, whatever happens."""

import ctypes
import fcntl
import http.client
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

START_SECONDS = 10
STOP_SECONDS = 5
CLIENT_FILES_SPARE = 100
CLONE_NEWNET, CLONE_NEWUSER, PR_SET_PDEATHSIG = 0x40000000, 0x10000000, 1
SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x1 | 0x40

_libc = ctypes.CDLL(None, use_errno=True)


class StandError(Exception):
    """Something did not come up, or did not do what was asked."""


def enter_own_network():
    """A network of our own has no address translation rules. Where there are any, the kernel tracks
    every connection, loopback too, and a message costs twice as much. False: not allowed here."""
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if _libc.unshare(flags) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))
    return True


def wait_until(holds, seconds, what):
    """The first true answer of holds()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = holds()
        if answer:
            return answer
        time.sleep(0.01)
    raise StandError(f"{what}: not within {seconds:g} s")


class Redis:
    """Just enough of a client."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(START_SECONDS)
        self._socket.connect(path)
        self._file = self._socket.makefile("rb")

    def call(self, *commands):
        """Sends all commands at once; their answers, in order."""
        self._socket.sendall(b"".join(self._encode(command) for command in commands))
        return [self._answer() for _ in commands]

    @staticmethod
    def _encode(command):
        parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
        bulks = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        return b"*%d\r\n%s" % (len(parts), bulks)

    def _answer(self):
        line = self._file.readline()
        if not line:
            raise StandError("redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        if kind == b"$":
            return self._file.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"-":
            raise StandError(f"redis: {rest.decode()}")
        return int(rest) if kind == b":" else rest

    def next_message(self, channel):
        """The payload of the next message on a channel. This connection is of no other use then."""
        self.call(("SUBSCRIBE", channel))
        return self._answer()[2]

    def subscribed_channels(self):
        info = self.call(("INFO", "stats"))[0].decode()
        return int(re.search(r"pubsub_channels:(\d+)", info).group(1))

    def close(self):
        self._file.close()
        self._socket.close()


class Process:
    """One program in a process group of its own, which dies with us; its words go to a file."""

    def __init__(self, directory, name, arguments, **options):
        self.name = name
        self.log_path = os.path.join(directory, f"{name}.log")
        with open(self.log_path, "wb") as log:
            self.popen = subprocess.Popen(
                arguments, stderr=log, start_new_session=True,
                preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), **options)

    @property
    def pid(self):
        return self.popen.pid

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def must_live(self):
        if self.popen.poll() is not None:
            raise StandError(f"{self.name} ended with {self.popen.returncode}: {self.log()[-600:]}")

    def find_in_log(self, pattern):
        self.must_live()
        return re.search(pattern, self.log())

    def stop(self):
        self.popen.terminate()
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.pid, signal.SIGKILL)  # whoever is left of the group
        except ProcessLookupError:
            pass
        self.popen.wait()


class Server:
    """A gateway or the floor: something that can be asked for ticks."""

    def __init__(self, process, address, worker):
        self.process, self.address, self.worker = process, address, worker
        self.pids = {process.pid, worker}

    def is_ready(self):
        host, port = self.address.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=START_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


class Clients:
    """As many load clients as the limit on open files makes necessary, spoken to as one."""

    def __init__(self, stand, count, options):
        each = stand.files_limit - CLIENT_FILES_SPARE
        self._shares = [min(each, count - start) for start in range(0, count, each)]
        self._processes = [
            stand.start("client", [stand.program("bench-client"), *options],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in self._shares]

    def stop(self, stand):
        for process in self._processes:
            stand.stop(process)

    def _ask(self, commands, seconds):
        for process, command in zip(self._processes, commands):
            process.must_live()
            process.popen.stdin.write(command.encode() + b"\n")
            process.popen.stdin.flush()
        return [self._answer(process, seconds) for process in self._processes]

    @staticmethod
    def _answer(process, seconds):
        if not select.select([process.popen.stdout], [], [], seconds)[0]:
            raise StandError(f"client gave no answer within {seconds:g} s")
        line = process.popen.stdout.readline()
        if not line:
            raise StandError(f"client ended: {process.log()[-600:]}")
        return json.loads(line)

    def open(self, count, seconds):
        """Opens more connections, each process its part."""
        opened, shares = 0, []
        total = sum(self._shares)
        for share in self._shares[:-1]:
            shares.append(count * share // total)
            opened += shares[-1]
        return merged(self._ask([f"open {n}" for n in [*shares, count - opened]], seconds))

    def restart(self):
        self._ask(["restart"] * len(self._processes), START_SECONDS)

    def report(self):
        return merged(self._ask(["report"] * len(self._processes), START_SECONDS))


def merged(reports):
    """Several clients' reports as one; percentiles are bucket upper bounds of all together."""
    sums = ("wanted", "open", "failed", "dropped", "ticks", "bytes", "doubled", "skipped")
    whole = {name: sum(report[name] for report in reports) for name in sums}
    whole["last_t_ns"] = max(report["last_t_ns"] for report in reports)
    whole["max_ms"] = max(report["max_us"] for report in reports) / 1000
    buckets = sorted(bucket for report in reports for bucket in report["latency_us"])
    for name, share in (("p50_ms", 0.50), ("p99_ms", 0.99)):
        whole[name] = min(_quantile(buckets, share, whole["ticks"]) / 1000, whole["max_ms"])
    return whole


def _quantile(buckets, share, count):
    seen = 0
    for bound, number in buckets:
        seen += number
        if seen >= share * count:
            return bound
    return 0


class Stand:
    """Holds a Redis; starts and stops everything else."""

    def __init__(self, programs, files_limit):
        self.files_limit = files_limit
        self._programs = programs
        self._directory = tempfile.TemporaryDirectory(prefix="tidecast-bench-")
        self.directory = self._directory.name
        self._running = []
        self.redis_path = os.path.join(self.directory, "redis.sock")
        self.redis = None

    def __enter__(self):
        try:
            self._start_redis()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(list(self._running)):
            self.stop(process)
        if self.redis is not None:
            self.redis.close()
        self._directory.cleanup()

    def program(self, name):
        path = os.path.join(self._programs, name)
        if not os.access(path, os.X_OK):
            raise StandError(f"{path} is missing: build it first, or name another --bin")
        return path

    def pids(self):
        return [os.getpid(), *(process.pid for process in self._running)]

    def start(self, name, arguments, **options):
        process = Process(self.directory, name, arguments, **options)
        self._running.append(process)
        return process

    def stop(self, process):
        process.stop()
        self._running.remove(process)

    def connect_redis(self):
        return Redis(self.redis_path)

    def _start_redis(self):
        process = self.start(
            "redis", ["redis-server", "--port", "0", "--unixsocket", self.redis_path, "--save", "",
                      "--appendonly", "no", "--dir", self.directory],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        def answers():
            process.must_live()
            try:
                return self.connect_redis()
            except OSError:
                return None

        self.redis = wait_until(answers, START_SECONDS, "redis")

    def _config(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"redis:\n  address: unix:{self.redis_path}\n{text}")
        return path

    def start_broker(self, ticks):
        config = self._config("broker.yaml", ticks)
        return self.start("broker", [self.program("tidecast-broker"), "--config", config],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def start_floor(self, channel):
        process = self.start("floor", [self.program("bench-floor"), self.redis_path, channel])
        found = wait_until(lambda: process.find_in_log(r"listening address=(\S+)"), START_SECONDS,
                           "floor")
        return Server(process, found.group(1), process.pid)

    def start_gateway(self, settings=""):
        config = self._config("gateway.yaml", settings)
        process = self.start(
            "gateway", [self.program("tidecast-gateway"), "--config", config,
                        "--set", "gateway.listen=127.0.0.1:0", "--set", "gateway.workers=1",
                        "--set", "admin.listen=127.0.0.1:0"])
        found = wait_until(lambda: process.find_in_log(r"gateway listening address=(\S+)"),
                           START_SECONDS, "gateway")
        workers = wait_until(lambda: children(process.pid), START_SECONDS, "the gateway's worker")
        server = Server(process, found.group(1), workers[0])
        wait_until(server.is_ready, START_SECONDS, "the gateway's /readyz")
        return server


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]

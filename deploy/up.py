"""Runs Tidecast on this machine: Redis, a broker, two gateways, HAProxy. Called by deploy/up."""

import argparse
import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent
START_SECONDS = 15
STOP_SECONDS = 10
PR_SET_PDEATHSIG = 1
# For this script alone: a gateway refuses variables that it doesn't know.
OWN_VARIABLES = ("TIDECAST_PORT", "TIDECAST_BIND", "TIDECAST_GATEWAY_1", "TIDECAST_GATEWAY_2")
USUAL_REDIS_PORT = 6379
DEMO_TICKS = "[{channel: ticks, rate: 1}]"


class Failure(Exception):
    """What went wrong, ready to be printed."""


def note(text):
    print(text, file=sys.stderr, flush=True)


def program(name):
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Failure(f"{name} is missing: deploy/install-deps --up")
    return path


class Child:
    """One process that was started here, and what it has logged."""

    def __init__(self, name, command, log, **options):
        self.name = name
        self.log = log
        with open(log, "wb") as out:
            # In a session of its own: Ctrl-C reaches this script alone, which stops all in order.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=die_with_parent, **options)

    def is_alive(self):
        return self.process.poll() is None

    def logged(self, pattern):
        found = re.search(pattern, self.log.read_text(errors="replace"))
        return found and found[1]

    def obituary(self):
        status = self.process.returncode
        how = f"exit code {status}" if status >= 0 else f"signal {-status}"
        lines = self.log.read_text(errors="replace").splitlines()[-10:]
        return "\n".join([f"{self.name} ended ({how}). Its last words:", *lines])

    def stop(self):
        if not self.is_alive():
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            note(f"{self.name} did not stop within {STOP_SECONDS} s; killed")
            self.process.kill()
            self.process.wait()


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class System:
    """Everything that runs, in the order in which it was started."""

    def __init__(self, bin_dir, directory):
        self.bin = Path(bin_dir).resolve()
        self.directory = Path(directory)
        self.children = []
        self.redis = os.environ.get("TIDECAST_REDIS_ADDRESS", "")
        self.prefix = os.environ.get("TIDECAST_REDIS_PREFIX", "tide:")
        self.gateways = []  # addresses
        self.admins = []
        self.port = 0

    def spawn(self, name, command, **options):
        child = Child(name, [str(word) for word in command], self.directory / f"{name}.log",
                      **options)
        self.children.append(child)
        return child

    def assert_alive(self):
        for child in self.children:
            if not child.is_alive():
                raise Failure(child.obituary())

    def wait_for(self, what, predicate):
        """The first true answer; every process must stay alive meanwhile."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            answer = predicate()
            if answer:
                return answer
            self.assert_alive()
            if time.monotonic() > deadline:
                raise Failure(f"{what}: not within {START_SECONDS} s\n{self.last_words()}")
            time.sleep(0.02)

    def last_words(self):
        lines = []
        for child in self.children:
            text = child.log.read_text(errors="replace")
            lines += [f"{child.name}: {line}" for line in text.splitlines()[-3:]]
        return "\n".join(lines)

    def stop(self):
        for child in reversed(self.children):
            child.stop()

    # What is started, in order.

    def start_redis(self, port):
        """Port 0 is none; the socket is always there."""
        path = self.directory / "redis.sock"
        self.spawn("redis", [
            program("redis-server"), DEPLOY / "redis.conf", "--dir", self.directory,
            "--port", port, "--bind", "127.0.0.1", "--protected-mode", "yes",
            "--unixsocket", path, "--daemonize", "no"])
        self.redis = f"127.0.0.1:{port}" if port else f"unix:{path}"
        self.wait_for("redis", lambda: self.redis_cli("PING") == "PONG")

    def redis_cli_words(self):
        """redis-cli and what it takes to reach this Redis."""
        if self.redis.startswith("unix:"):
            return ["redis-cli", "-s", self.redis[len("unix:"):]]
        host, _, port = self.redis.rpartition(":")
        words = ["redis-cli"]
        if host.strip("[]") not in ("127.0.0.1", "localhost"):
            words += ["-h", host.strip("[]")]
        return words if port == "6379" else words + ["-p", port]

    def redis_cli(self, *words):
        environment = dict(os.environ)
        if os.environ.get("TIDECAST_REDIS_PASSWORD"):
            environment["REDISCLI_AUTH"] = os.environ["TIDECAST_REDIS_PASSWORD"]
        command = self.redis_cli_words()
        if os.environ.get("TIDECAST_REDIS_USER"):
            command += ["--user", os.environ["TIDECAST_REDIS_USER"]]
        done = subprocess.run(command + list(words), env=environment, text=True, timeout=10,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.stdout.strip()

    def tidecast(self, name, binary, *settings):
        environment = {key: value for key, value in os.environ.items()
                       if key not in OWN_VARIABLES}
        settings = (f"redis.address={self.redis}", *settings)
        command = [self.bin / binary]
        for setting in settings:
            command += ["--set", setting]
        return self.spawn(name, command, env=environment)

    def start_broker(self):
        self.tidecast("broker", "tidecast-broker", f"broker.ticks={DEMO_TICKS}")

    def start_gateway(self, number):
        child = self.tidecast(f"gateway{number}", "tidecast-gateway",
                              "gateway.listen=127.0.0.1:0", "admin.listen=127.0.0.1:0",
                              "namespaces.default.publish=anyone")
        for event, addresses in (("listening", self.gateways), ("admin_listening", self.admins)):
            addresses.append(self.wait_for(
                child.name, lambda e=event: child.logged(rf" {e} address=(\S+)")))

    def start_haproxy(self, listener):
        self.port = listener.getsockname()[1]
        os.set_inheritable(listener.fileno(), True)
        environment = dict(os.environ, TIDECAST_BIND=f"fd@{listener.fileno()}")
        for number, address in enumerate(self.gateways, 1):
            environment[f"TIDECAST_GATEWAY_{number}"] = address
        self.spawn("haproxy", [program("haproxy"), "-db", "-f", DEPLOY / "haproxy.cfg",
                               "-f", DEPLOY / "haproxy-local.cfg"],
                   env=environment, close_fds=False)

    # What is waited for.

    def wait_for_gateways(self):
        for address in self.gateways:
            url = f"http://{address}/readyz"
            self.wait_for(url, lambda u=url: is_good(u))

    def wait_for_haproxy(self):
        self.wait_for("haproxy", lambda: is_good(f"http://127.0.0.1:{self.port}/readyz"))

    def wait_for_functions(self):
        self.wait_for("the broker's functions",
                      lambda: "tidecast_publish" in self.redis_cli("FUNCTION", "LIST"))


def is_good(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def listen(port):
    try:
        return socket.create_server(("127.0.0.1", port), backlog=4096)
    except OSError as error:
        raise Failure(f"127.0.0.1:{port}: {os.strerror(error.errno)} (TIDECAST_PORT chooses another)")


def free_redis_port():
    """Redis' usual port if nobody has it, so that plain redis-cli finds it; else any."""
    for port in (USUAL_REDIS_PORT, 0):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)) as probe:
            return probe.getsockname()[1]
    raise Failure("no free port on 127.0.0.1")


def start_all(system, port, redis_port):
    listener = listen(port)
    if not system.redis:
        system.start_redis(redis_port() if redis_port else 0)
    system.start_broker()
    for number in (1, 2):
        system.start_gateway(number)
    # Before HAProxy asks them: one that says no at its first check is left out for a second.
    system.wait_for_gateways()
    system.start_haproxy(listener)
    listener.close()
    system.wait_for_haproxy()
    system.wait_for_functions()


def print_greeting(system):
    at = f"127.0.0.1:{system.port}"
    redis_cli = " ".join(system.redis_cli_words())
    print(f"""
Tidecast is up: two gateways behind HAProxy.

  open     http://{at}/
  or       curl -N http://{at}/sse/news
  type     {redis_cli} PUBLISH {system.prefix}news hello
  kept     {redis_cli} FCALL tidecast_publish 1 {system.prefix}news hello
  or       curl -d hello http://{at}/publish/news
  ticks    curl -N http://{at}/sse/ticks

Ctrl-C stops all of it. Logs: {system.directory}
""", flush=True)


def serve(system):
    start_all(system, int(os.environ.get("TIDECAST_PORT", "8080")), free_redis_port)
    print_greeting(system)
    while True:
        system.assert_alive()
        time.sleep(0.2)


def check(system):
    from up_check import check_delivery

    begin = time.monotonic()
    start_all(system, 0, None)
    faults = check_delivery(system)
    if faults:
        raise Failure("\n".join(faults))
    system.assert_alive()
    print(f"deploy/up --check: passed in {time.monotonic() - begin:.1f} s")


class Stopped(Exception):
    """SIGTERM or Ctrl-C."""


def on_signal(number, frame):
    # Once is enough; a second one must not break off the stopping.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    raise Stopped


def main():
    parser = argparse.ArgumentParser(prog="deploy/up")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, on_signal)
    with tempfile.TemporaryDirectory(prefix="tidecast-") as directory:
        system = System(options.bin, directory)
        try:
            (check if options.check else serve)(system)
        except Stopped:
            note("stopping")
        except (Failure, OSError) as error:
            note(f"deploy/up: {error}")
            return 1
        finally:
            system.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

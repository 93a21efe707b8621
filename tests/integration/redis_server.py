"""redis_server: a real redis-server of a test's own, in a directory of its own."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import redis

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "broker" / "functions.lua"
START_SECONDS = 10


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    """Listens on a unix socket and on a free TCP port of 127.0.0.1.

    `config` holds further lines of redis.conf. stop() and start() keep port, socket and directory,
    so that a restart is seen as one by everybody connected.
    """

    def __init__(self, config=()):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="redis-"))
        self.socket = self.directory / "redis.sock"
        self.log = self.directory / "redis.log"
        self.port = free_port()
        self.config = list(config)
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def unix_address(self):
        return f"unix:{self.socket}"

    def start(self):
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"unixsocket {self.socket}",
            f"dir {self.directory}",
            f"logfile {self.log}",
            'save ""',
            "appendonly no",
            *self.config,
        ]
        conf = self.directory / "redis.conf"
        conf.write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(["redis-server", str(conf)], stdout=subprocess.DEVNULL)
        self._wait()
        return self

    def _wait(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if self._accepts():
                    with self.connect() as client:
                        client.ping()
                    return
            except redis.AuthenticationError:
                return
            except redis.ResponseError as error:
                if "NOPERM" in str(error) or "NOAUTH" in str(error):
                    return
            except (redis.ConnectionError, OSError):
                pass
            time.sleep(0.01)
        log = self.log.read_text() if self.log.exists() else "no log"
        raise RuntimeError(f"redis-server did not start:\n{log}")

    def _accepts(self):
        """Asked by hand: a client that fails to connect leaves its socket open."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def connect(self, **options):
        """A client; bytes are left as they are."""
        return redis.Redis(unix_socket_path=str(self.socket), **options)

    def load_library(self):
        with self.connect() as client:
            client.execute_command("FUNCTION", "LOAD", "REPLACE", LIBRARY.read_bytes())

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, signum):
        if self.process is None:
            return
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            os.kill(self.process.pid, signum)
        self.process.wait(timeout=START_SECONDS)
        self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

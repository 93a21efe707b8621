"""processes: what the kernel tells about a process: its memory, its CPU time, its sockets."""

import contextlib
import os
import pathlib
import signal
import time


def children(pid):
    return [int(child) for child in
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    """Zombies are not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmRSS of {pid}")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_targets(pid):
    """What its descriptors are: paths, `socket:[<inode>]` and the like."""
    targets = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return targets


def established(port, path="/proc/net/tcp"):
    """How many connections a port of 127.0.0.1 has, as the kernel sees the port's side."""
    count = 0
    for line in pathlib.Path(path).read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        count += int(local.rpartition(":")[2], 16) == port and state == "01"
    return count


def command_lines(pid):
    """Of the process and its children, as anybody can read them."""
    return [pathlib.Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, *children(pid))]


@contextlib.contextmanager
def stopped(*pids):
    """Frozen for the time of the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            if is_alive(pid):
                os.kill(pid, signal.SIGCONT)


def is_sanitized(program):
    """Whether it was built with AddressSanitizer, which keeps freed memory for a while."""
    return b"__asan_init" in pathlib.Path(program).read_bytes()


class CpuMeter:
    """CPU seconds that processes use for each second that passes."""

    def __init__(self, pids):
        self.pids = pids
        self.cpu = sum(map(cpu_seconds, pids))
        self.began = time.monotonic()

    def share(self):
        return (sum(map(cpu_seconds, self.pids)) - self.cpu) / (time.monotonic() - self.began)

"""What a run is measured with: memory and processor time of processes, and what disturbs them."""

import os
import re


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rss_bytes(pid):
    """Resident memory, counted page by page: the kernel's quick figures lag behind."""
    match = re.search(r"^Rss:\s+(\d+) kB", _read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)
    return int(match.group(1)) * 1024


def cpu_seconds(pids):
    """User and system time of the processes, all threads. The scheduler's own count where it is
    kept (ns), else that of /proc/<pid>/stat (10 ms)."""
    return sum(_scheduler_seconds(pid) or _stat_seconds(pid) for pid in pids)


def _scheduler_seconds(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return sum(int(_read(f"/proc/{pid}/task/{t}/schedstat").split()[0]) for t in threads) / 1e9
    except FileNotFoundError:
        return 0


def _stat_seconds(pid):
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Disturbance:
    """What else went on since it was made, as shares of the machine's time: `steal` is what the
    hypervisor gave to other machines, `others` what processes other than `pids` used here."""

    def __init__(self, pids):
        self._pids = pids
        self._start = self._now()

    def _now(self):
        user, nice, system, idle, iowait, irq, softirq, steal = [
            int(field) / os.sysconf("SC_CLK_TCK")
            for field in _read("/proc/stat").split("\n", 1)[0].split()[1:9]]
        busy = user + nice + system + irq + softirq
        return busy + idle + iowait + steal, steal, busy - cpu_seconds(self._pids)

    def shares(self):
        total, steal, others = (now - start for now, start in zip(self._now(), self._start))
        return {"steal": steal / total, "others": max(0, others / total)}


def machine():
    model = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return {
        "cpu": model.group(1) if model else os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory.group(1)) / 1024 / 1024, 1),
        "kernel": os.uname().release,
        "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control").strip(),
    }

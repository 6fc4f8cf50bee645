"""What machine this is, for the document; its memory, made ready for a load."""

import mmap
import os
import platform
import subprocess
import time


def first(path, key):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


WARM_BYTES = 3 << 30  # more than any load writes into the page cache


def warm_memory():
    """Every page is there before it is measured. A virtual machine gives memory that lay free back to its host, and the
    first write to such a page costs five times as much as any other: whoever writes files would pay, the floor, which
    writes the same files again and again, would not."""
    available = int(first("/proc/meminfo", "MemAvailable").split()[0]) << 10
    with mmap.mmap(-1, min(WARM_BYTES, available // 3),
                   flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass


def describe(root, directory):
    return {"cpu": first("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "kernel": platform.release(),
            "file_system": (output("df", "--output=fstype", directory).split() or ["unknown"])[-1],
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "commit": output("git", "-C", root, "rev-parse", "--short", "HEAD") or "unknown",
            "load_before": os.getloadavg()[0]}

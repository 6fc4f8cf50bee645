"""Processes that are started, watched and ended; nothing else is touched."""

import ctypes
import os
import random
import re
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1


class Fault(Exception):
    """Something could not be started or did not answer; the text says what."""


def free_port(offsets=(0,)):
    """A port such that all of port + offsets are free; outside the range of outgoing connections."""
    while True:
        port = random.randrange(12000, 31000)
        if all(is_free(port + offset) for offset in offsets):
            return port


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def die_with_parent():
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    def __init__(self, command, log, env=None):
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                          env=env, preexec_fn=die_with_parent)
        self.pid = self.popen.pid

    def tail(self):
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-8:])

    def tree(self):
        """This process and what it started."""
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                for task in os.listdir("/proc/%d/task" % pid):
                    with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                        waiting += [int(child) for child in file.read().split()]
            except OSError:
                pass
        return found

    def signal(self, number):
        for pid in reversed(self.tree()):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def end(self, seconds=10):
        self.popen.terminate()
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()


def wait_until(what, seconds, ready, processes=()):
    """Until ready() is true; Fault when it takes too long or one of the processes ends."""
    end = time.monotonic() + seconds
    while not ready():
        for process in processes:
            if process.popen.poll() is not None:
                raise Fault("%s: a process ended with %d:\n%s" % (what, process.popen.returncode, process.tail()))
        if time.monotonic() > end:
            raise Fault("%s: not within %d s%s" % (what, seconds, "".join("\n" + p.tail() for p in processes)))
        time.sleep(0.2)


def memory_mib(pids, key="RssAnon"):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/status" % pid) as file:
                found = re.search(key + r":\s+(\d+)", file.read())
                total += int(found[1]) if found else 0
        except OSError:
            pass
    return total / 1024


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
                total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")

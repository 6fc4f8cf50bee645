"""Prints a free port, and one with free ports two below and one above it."""

import random
import socket


def free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def find(offsets):
    while True:
        port = random.randrange(20000, 30000)
        if all(free(port + offset) for offset in offsets):
            return port


print(find([0]), find([-2, 0, 1]))

#!/usr/bin/env python3
"""Stands between RocketMQ clients and the original servers, and keeps the first frames of each kind.

  proxy.py LISTEN_PORT NAMESRV_PORT BROKER_PORT OUTPUT

Clients are given 127.0.0.1:LISTEN_PORT as their name server. The broker listens on 127.0.0.2:BROKER_PORT and says that it
is 127.0.0.1:BROKER_PORT, which is here: what goes to the address in a message id passes too. OUTPUT gets a line "direction code name hex" per kept frame, where
direction is request, answer (with the request's code), push (a request of the broker's) or push-answer. Ends with SIGTERM.
"""

import os
import signal
import socket
import struct
import sys
import threading

KEEP = int(os.environ.get("TRIAD_GOLDEN_KEEP", "2"))  # of each kind
LIMIT = 6000  # bytes of a frame that is kept
BATCH = 320  # a request of that code may be longer, and one is enough
BATCH_LIMIT = 20000

lock = threading.Lock()
kept = {}
lines = []


def code_and_opaque(frame):
    """(code, opaque, flag) of a whole frame, header in JSON or binary."""
    import json
    kind_and_length = struct.unpack(">I", frame[4:8])[0]
    header = frame[8:8 + (kind_and_length & 0xFFFFFF)]
    if kind_and_length >> 24 == 1:
        code, _, _, opaque, flag = struct.unpack(">hBhii", header[:13])
        return code, opaque, flag
    fields = json.loads(header)
    return fields["code"], fields["opaque"], fields["flag"]


def keep(direction, code, frame, answer=0):
    """A kind is a direction, a code, for answers their own code, and whether it is about delays or broadcasting."""
    kind = (direction, code, answer, b"DELAY" in frame, b"BROADCASTING" in frame or b'"messageModel":0' in frame)
    with lock:
        count = kept.get(kind, 0)
        is_batch = direction == "request" and code == BATCH
        if count < (1 if is_batch else KEEP) and len(frame) <= (BATCH_LIMIT if is_batch else LIMIT):
            kept[kind] = count + 1
            lines.append(f"{direction} {code} {frame.hex()}")


class Pair:
    """One client connection and its server connection."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.asked = {}  # opaque of a request -> its code
        self.pushed = {}

    def start(self):
        for source, target, handle in ((self.client, self.server, self.from_client), (self.server, self.client, self.from_server)):
            threading.Thread(target=self.pump, args=(source, target, handle), daemon=True).start()

    def pump(self, source, target, handle):
        data = b""
        try:
            while True:
                while len(data) >= 4 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
                    size = 4 + struct.unpack(">I", data[:4])[0]
                    target.sendall(handle(data[:size]))
                    data = data[size:]
                more = source.recv(65536)
                if not more:
                    break
                data += more
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def from_client(self, frame):
        code, opaque, flag = code_and_opaque(frame)
        with lock:
            pushed = self.pushed.pop(opaque, None) if flag & 1 else None
        if flag & 1:
            if pushed is not None:
                keep("push-answer", pushed, frame)
        else:
            keep("request", code, frame)
            with lock:
                self.asked[opaque] = code
        return frame

    def from_server(self, frame):
        code, opaque, flag = code_and_opaque(frame)
        if flag & 1:
            with lock:
                asked = self.asked.pop(opaque, None)
            if asked is not None:
                keep("answer", asked, frame, code)
        else:
            keep("push", code, frame)
            with lock:
                self.pushed[opaque] = code
        return frame


def serve(port, target):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)

    def accept():
        while True:
            client, _ = listener.accept()
            Pair(client, socket.create_connection(target)).start()

    threading.Thread(target=accept, daemon=True).start()


def main():
    listen, namesrv, broker = (int(word) for word in sys.argv[1:4])
    serve(listen, ("127.0.0.1", namesrv))
    serve(broker, ("127.0.0.2", broker))
    print("listening", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    with lock, open(sys.argv[4], "w", encoding="ascii") as file:
        file.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()

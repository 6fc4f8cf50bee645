"""One request to a NATS server, for making streams; loads go through triad-peerbench."""

import json
import re
import socket

INBOX = "_INBOX.compare"


def request(port, subject, body, seconds=5):
    """The answer as JSON; None when the server does not answer."""
    data = body.encode()
    try:
        with socket.create_connection(("127.0.0.1", port), seconds) as connection:
            connection.settimeout(seconds)
            connection.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB %s 1\r\nPUB %s %s %d\r\n%s\r\n'
                               % (INBOX.encode(), subject.encode(), INBOX.encode(), len(data), data))
            return answer(connection)
    except (OSError, ValueError):
        return None


def answer(connection):
    got = b""
    while True:
        found = re.search(rb"MSG \S+ \S+ (?:\S+ )?(\d+)\r\n", got)
        if found and len(got) >= found.end() + int(found[1]):
            return json.loads(got[found.end():found.end() + int(found[1])])
        more = connection.recv(65536)
        if not more:
            return None
        if b"PING\r\n" in more:
            connection.sendall(b"PONG\r\n")
        got += more

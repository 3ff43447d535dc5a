"""A viewer of /live: server-sent events as they come."""

import json
import socket

from lib import HOST, LIMIT, Reader, wait_for


class Viewer:
    def __init__(self, router, headers=(), receive_buffer=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(LIMIT)
        self.sock.connect((HOST, router.admin_port))
        lines = ["GET /live HTTP/1.1", "Host: %s:%d" % (HOST, router.admin_port)]
        lines += ["%s: %s" % h for h in headers]
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.text = b""
        self.last = {}

    def begin(self):
        """The head of the answer."""
        self.reader = Reader(self.sock)
        self.head = self.reader.until(b"\r\n\r\n").decode()
        self.status = int(self.head.split()[1])
        return self

    def next(self, *names):
        """(name, data) of the next event that has one of these names."""
        while True:
            event = self.reader.until(b"\n\n")
            name, data = event.strip(b"\n").split(b"\n", 1)
            assert name.startswith(b"event: ") and data.startswith(b"data: "), event
            assert b"\n" not in data
            self.text += event
            name = name[7:].decode()
            self.last[name] = json.loads(data[6:])
            if not names or name in names:
                return name, self.last[name]

    def wait(self, name, condition, what):
        """The data of the first event of that name for which condition(data) holds."""
        found, seen = [], []

        def look():
            seen[:] = [self.next(name)[1]]
            if condition(seen[0]):
                found.append(seen[0])
            return found
        try:
            wait_for(look, what, step=0)
        except AssertionError as e:
            raise AssertionError("%s; the last %s: %s" % (e, name, json.dumps(seen))) from None
        return found[0]

    def close(self):
        self.sock.close()

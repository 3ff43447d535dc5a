"""HTTP as bytes: a raw client, and messages as on the wire."""

import http.client
import json
import os
import re
import select
import socket
import struct

# The factor on all times compared with an idle machine: SLOW=3 for a busy or an emulated one, and
# under sanitizers (tests/run.sh). Limits grow with it, and settings of routers that mean "too long".
SLOW = float(os.environ.get("SLOW", "1"))
LIMIT = 20.0 * SLOW
HOST = "127.0.0.1"


def slow_ms(ms):
    """A setting's value: this number of milliseconds on an idle machine, more on a slow one."""
    return "%dms" % (ms * SLOW)


def reset(sock):
    """Closes with RST instead of FIN."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    sock.close()


class Cut(Exception):
    """The connection ended where a message should go on."""


class Reader:
    """Reads exactly from a socket. `log` is the end of what was read so far, for messages."""

    def __init__(self, sock):
        self.sock = sock
        self.rest = bytearray()
        self.log = b""

    def fill(self):
        data = self.sock.recv(262144)
        if not data:
            raise Cut("end of connection after %r" % (self.log + self.rest)[-200:])
        self.rest += data

    def take(self, n):
        while len(self.rest) < n:
            self.fill()
        out = bytes(self.rest[:n])
        del self.rest[:n]
        self.log = (self.log + out[-4096:])[-4096:]
        return out

    def until(self, mark):
        start = 0
        while True:
            at = self.rest.find(mark, start)
            if at >= 0:
                return self.take(at + len(mark))
            start = max(0, len(self.rest) - len(mark) + 1)
            self.fill()

    def to_end(self):
        while True:
            try:
                self.fill()
            except Cut:
                return self.take(len(self.rest))

    def chunked(self, on_chunk=None):
        """Body and trailer lines; strict, so that a wrong chunk of ours is found."""
        parts = []
        while True:
            line = self.until(b"\r\n")[:-2]
            if not re.fullmatch(rb"[0-9a-fA-F]+", line):
                raise AssertionError("bad chunk size %r" % line)
            size = int(line, 16)
            if size == 0:
                break
            data = self.take(size)
            if self.take(2) != b"\r\n":
                raise AssertionError("no CRLF after a chunk")
            parts.append(data)
            if on_chunk:
                on_chunk(data)
        trailers = []
        while True:
            line = self.until(b"\r\n")[:-2]
            if not line:
                return b"".join(parts), trailers, parts
            trailers.append(line)


class Head:
    def __init__(self, raw):
        self.raw = raw
        lines = raw[:-4].split(b"\r\n")
        self.start = lines[0].decode("latin-1")
        self.headers = []
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            self.headers.append((name.decode("latin-1").lower(), value.strip().decode("latin-1")))

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        return values[0] if values else default

    def names(self):
        return [n for n, _ in self.headers]


class Response(Head):
    def __init__(self, raw):
        super().__init__(raw)
        m = re.fullmatch(r"HTTP/1\.1 (\d\d\d) (.*)", self.start)
        if not m:
            raise AssertionError("bad status line %r" % self.start)
        self.status = int(m.group(1))
        self.body = b""
        self.trailers = []
        self.chunks = []

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%s %r>" % (self.start, self.body[:300])


class Client:
    """One raw connection to the router."""

    def __init__(self, port, receive_buffer=None, host=HOST, source=None, family=socket.AF_INET):
        self.sock = socket.socket(family)
        if source:
            self.sock.bind(source)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(LIMIT)
        try:
            self.sock.connect((host, port))
        except OSError:
            self.sock.close()
            raise
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = Reader(self.sock)

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)
        return self

    def head(self):
        """The next response head; 100 Continue is returned like any other."""
        return Response(self.reader.until(b"\r\n\r\n"))

    def read(self, method="GET", on_chunk=None):
        r = self.head()
        if method == "HEAD" or r.status in (204, 304) or r.status < 200:
            return r
        coding = r.all("transfer-encoding")
        length = r.all("content-length")
        if coding:
            if coding != ["chunked"] or length:
                raise AssertionError("framing of %r" % r.raw)
            r.body, r.trailers, r.chunks = self.reader.chunked(on_chunk)
        elif length:
            if len(length) != 1:
                raise AssertionError("framing of %r" % r.raw)
            r.body = self.reader.take(int(length[0]))
        else:
            r.body = self.reader.to_end()
        return r

    def ask(self, method, path, body=None, headers=(), version="1.1"):
        self.send(request(method, path, body, headers, version))
        return self.read(method)

    def post(self, path, value, headers=()):
        return self.ask("POST", path, json.dumps(value).encode(),
                        [("Content-Type", "application/json")] + list(headers))

    def rest(self):
        """All that still comes, until the router closes. A reset counts as the end."""
        try:
            return self.reader.to_end()
        except ConnectionResetError:
            return b""

    def is_closed(self):
        """The router closed, without another byte."""
        try:
            data = self.reader.rest or self.sock.recv(4096)
        except ConnectionResetError:
            return True
        if data:
            raise AssertionError("not closed, but more bytes: %r" % data[:300])
        return True

    def is_open(self):
        """True if no byte came and the connection is open (at this instant)."""
        if self.reader.rest:
            return True
        ready, _, _ = select.select([self.sock], [], [], 0.05)
        return not ready

    def close(self):
        self.sock.close()

    def reset(self):
        reset(self.sock)


def request(method, path, body=None, headers=(), version="1.1"):
    lines = ["%s %s HTTP/%s" % (method, path, version)]
    names = [n.lower() for n, _ in headers]
    if "host" not in names:
        lines.append("Host: router.test")
    lines += ["%s: %s" % h for h in headers]
    if body is not None and "transfer-encoding" not in names and "content-length" not in names:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def chunked(data, size=None):
    out = []
    step = size or max(1, len(data))
    for i in range(0, len(data), step):
        part = data[i:i + step]
        out.append(b"%x\r\n%s\r\n" % (len(part), part))
    return b"".join(out) + b"0\r\n\r\n"


def answer(status=200, body=b"", headers=(), reason="OK"):
    lines = ["HTTP/1.1 %d %s" % (status, reason)] + ["%s: %s" % h for h in headers]
    lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def answer_json(value, status=200, headers=()):
    return answer(status, json.dumps(value).encode(),
                  [("Content-Type", "application/json")] + list(headers))


SSE_HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)

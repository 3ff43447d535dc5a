"""A client that sends one request and records exactly the bytes that came: no retry, no redirect, no repair.

    answer = ask(host, "10.0.0.1", 8080, "POST", "/v1/completions", {"x-jepsen-op": "7"}, body, timeout=30)

An answer is *framed* when its framing ended (the last chunk, the length, or the end of the connection if nothing
else ends it). It is *finished* when it is framed and, if it is a stream of events, the last event of its API came;
if the connection breaks behind that event, the stream has lost nothing and is finished too."""

import contextlib
import re
import socket
import struct
import time

from lab import api

HEAD_MAX, PIECE = 1 << 20, 1 << 16
SLEEPER_BYTES = 4096


class Malformed(Exception):
    """It is no HTTP/1.1."""


class Gone(Exception):
    """The connection ended, or the time did; the word says how."""


class Answer:
    """`error`: None, or what ended it early: refused, unreachable, reset, closed, timeout, malformed; left, if the
    client itself did. `sent`: whether any byte of the request left. Times are seconds since the client began."""

    def __init__(self):
        self.status, self.headers, self.body = 0, {}, b""
        self.events = []       # (seconds, data) of a stream of events
        self.framed = self.last = False
        self.error, self.text = None, ""
        self.sent = self.reused = False
        self.first_s = self.token_s = self.end_s = None
        self.extra = b""       # unrequested bytes behind its end
        self.tokens = 0        # events that carry some
        self.told_error = False

    @property
    def streamed(self):
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def finished(self):
        return self.last or (self.framed and not self.streamed)

    @property
    def failed(self):
        """True if the answer itself reports a failure, in an event or in its body."""
        return self.told_error if self.streamed else self.body[:1] == b"{" and api.is_error(api.parse(self.body))


class Connection:
    """One to an address. It may be asked on again as long as `open`."""

    def __init__(self, host, address, port):
        self.host, self.address, self.port = host, address, port
        self.sock, self.rest, self.used = None, b"", False

    @property
    def open(self):
        return self.sock is not None

    def close(self, reset=False):
        if self.sock is None:
            return
        if reset:
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        self.sock = None

    def ask(self, method, path, headers=(), body=None, timeout=60, leave_s=None, leave_events=None, leave_by="fin",
            sleep_s=0, behind=None, sent=False):
        """`leave_s`, `leave_events`: the client leaves after this many seconds or events, by FIN or by `reset`.
        `sleep_s`: for this time it reads nothing after the first event; the kernel of a new connection takes little for
        it. `behind`: method and path of a request that is sent at once after this one; with `sent` its answer is read."""
        exchange = _Exchange(self, timeout, leave_s, leave_events, leave_by, sleep_s)
        return exchange.run(method, path, dict(headers), body, behind, sent)


def ask(host, address, port, method, path, headers=(), body=None, timeout=60, **leave):
    connection = Connection(host, address, port)
    try:
        return connection.ask(method, path, headers, body, timeout, **leave)
    finally:
        connection.close()


def request_bytes(address, port, method, path, headers, body):
    fields = {"host": "%s:%d" % (address, port)}
    if body is not None:
        fields.update({"content-type": "application/json", "content-length": str(len(body))})
    fields.update({name.lower(): value for name, value in headers.items()})
    head = "%s %s HTTP/1.1\r\n" % (method, path) + "".join("%s: %s\r\n" % f for f in fields.items())
    return (head + "\r\n").encode("latin-1") + (body or b"")


def parse_head(raw):
    """(status, version, headers); of a repeated field the values are joined."""
    lines = raw.decode("latin-1").split("\r\n")
    m = re.fullmatch(r"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?", lines[0])
    if not m:
        raise Malformed("status line %r" % lines[0][:80])
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise Malformed("field %r" % line[:80])
        name, value = name.lower(), value.strip(" \t")
        headers[name] = headers[name] + ", " + value if name in headers else value
    return int(m.group(2)), int(m.group(1)), headers


class _Exchange:
    def __init__(self, connection, timeout, leave_s, leave_events, leave_by, sleep_s):
        self.c, self.answer = connection, Answer()
        self.began = time.monotonic()
        self.until = self.began + timeout
        self.leave_at = self.began + leave_s if leave_s is not None else None
        self.leave_events, self.leave_by, self.sleep_s = leave_events, leave_by, sleep_s
        self.half = ""  # of an event

    def now(self):
        return time.monotonic() - self.began

    def run(self, method, path, headers, body, behind, sent):
        a, c = self.answer, self.c
        a.reused = c.used
        keep = False
        try:
            if sent:
                a.sent = True
                if not c.open:
                    raise Gone("closed")
            else:
                if not c.open:
                    self.connect()
                more = request_bytes(c.address, c.port, *behind, {}, None) if behind else b""
                self.send(request_bytes(c.address, c.port, method, path, headers, body) + more)
            c.used = True
            keep = self.read(method)
            if not behind:
                self.look_behind()
        except Gone as e:
            a.error = str(e)
        except Malformed as e:
            a.error, a.text = "malformed", str(e)
        a.end_s = self.now()
        if not keep or a.error or a.extra:
            c.close(reset=a.error == "left" and self.leave_by == "reset")
        return a

    def left_s(self):
        """Until the client leaves or gives up."""
        end = self.until if self.leave_at is None else min(self.until, self.leave_at)
        left = end - time.monotonic()
        if left <= 0:
            raise Gone("left" if self.leave_at is not None and self.leave_at <= self.until else "timeout")
        return left

    def guarded(self, call, *args):
        try:
            self.c.sock.settimeout(self.left_s())
            return call(*args)
        except TimeoutError as e:
            if e.errno is not None:  # the kernel's, which gave up before us
                raise Gone("unreachable") from e
            self.left_s()
            raise Gone("timeout") from e
        except ConnectionRefusedError as e:
            raise Gone("refused") from e
        except ConnectionError as e:
            raise Gone("reset") from e
        except OSError as e:
            self.answer.text = str(e)
            raise Gone("unreachable") from e

    def connect(self):
        c = self.c
        with c.host.inside() if c.host is not None else contextlib.nullcontext():
            c.sock = socket.socket(socket.AF_INET6 if ":" in c.address else socket.AF_INET, socket.SOCK_STREAM)
        c.used, c.rest = False, b""
        c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.sleep_s:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLEEPER_BYTES)
        self.guarded(c.sock.connect, (c.address, c.port))

    def send(self, data):
        view = memoryview(data)
        try:
            while view:
                n = self.guarded(self.c.sock.send, view)
                self.answer.sent = True
                view = view[n:]
        except Gone as e:
            # A server may answer before it has read the whole request, and close.
            if str(e) != "reset" or self.answer.reused:
                raise

    def fill(self):
        data = self.guarded(self.c.sock.recv, PIECE)
        if not data:
            raise Gone("closed")
        if self.answer.first_s is None:
            self.answer.first_s = self.now()
        self.c.rest += data

    def line(self, end):
        while (at := self.c.rest.find(end)) < 0:
            if len(self.c.rest) > HEAD_MAX:
                raise Malformed("no end of %r" % self.c.rest[:80])
            self.fill()
        line, self.c.rest = self.c.rest[:at], self.c.rest[at + len(end):]
        return line

    def read(self, method):
        """True if the connection may be used again."""
        a = self.answer
        while True:
            a.status, minor, a.headers = parse_head(self.line(b"\r\n\r\n"))
            if a.status >= 200:
                break
        keep = minor == 1 and "close" not in a.headers.get("connection", "").lower()
        if method == "HEAD" or a.status in (204, 304):
            pass
        elif "transfer-encoding" in a.headers:
            if a.headers["transfer-encoding"].lower() != "chunked" or "content-length" in a.headers:
                raise Malformed("two framings")
            self.chunks()
        elif "content-length" in a.headers:
            if not a.headers["content-length"].isdigit():
                raise Malformed("length %r" % a.headers["content-length"])
            self.counted(int(a.headers["content-length"]))
        else:
            keep = False
            self.to_end()
        a.framed = True
        return keep

    def counted(self, left):
        while left > 0:
            if not self.c.rest:
                self.fill()
            data, self.c.rest = self.c.rest[:left], self.c.rest[left:]
            left -= len(data)
            self.take(data)

    def chunks(self):
        while True:
            size = self.line(b"\r\n").split(b";")[0]
            if not re.fullmatch(rb"[0-9a-fA-F]{1,15}", size):
                raise Malformed("chunk size %r" % size[:40])
            if int(size, 16) == 0:
                break
            self.counted(int(size, 16))
            if self.line(b"\r\n"):
                raise Malformed("no end of a chunk")
        while self.line(b"\r\n"):
            pass

    def to_end(self):
        while True:
            data, self.c.rest = self.c.rest, b""
            self.take(data)
            try:
                self.fill()
            except Gone as e:
                if str(e) != "closed":
                    raise
                return

    def take(self, data):
        a = self.answer
        a.body += data
        if not a.streamed:
            return
        *whole, self.half = (self.half + data.decode("latin-1")).replace("\r\n", "\n").split("\n\n")
        for event in whole:
            lines = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
            if lines:
                self.event("\n".join(lines).encode("latin-1").decode("utf-8", "replace"))

    def event(self, data):
        a = self.answer
        a.events.append((round(self.now(), 6), data))
        if self.sleep_s and len(a.events) == 1:
            time.sleep(self.sleep_s)
        value = api.parse(data)
        a.last |= data == "[DONE]" or api.is_last(value)
        a.told_error |= api.is_error(value)
        if api.has_token(value):
            a.tokens += 1
            if a.token_s is None:
                a.token_s = self.now()
        if self.leave_events is not None and len(a.events) >= self.leave_events:
            raise Gone("left")

    def look_behind(self):
        """Finds bytes that nobody asked for."""
        self.answer.extra, self.c.rest = self.c.rest, b""
        self.c.sock.setblocking(False)
        try:
            data = self.c.sock.recv(PIECE)
            self.answer.extra += data
            if not data:
                self.c.close()
        except BlockingIOError:
            pass
        except OSError:
            self.c.close()

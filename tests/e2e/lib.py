"""The base of the end-to-end tests: processes on free ports, a scriptable engine, a raw client.

Nothing here sleeps for a guessed time: everything waits for a condition, with a limit (lib_wait). The limit
is generous (LIMIT seconds), because only failing tests reach it.

A test case gets its parts from Case: self.engine(), self.router(...), self.sim(...),
self.client(router). They are stopped after the test (or after the class, if made in setUpClass with
cls.shared()), and a router that left anything like a sanitizer report, a CHECK, or a line that is
no log line fails the test.
"""

import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

# Test files take these from here, too.
from lib_http import (HOST, LIMIT, SLOW, SSE_HEAD, Client, Cut, Head, Reader, Response, answer, answer_json,
                      chunk, chunked, request, reset, slow_ms)
from lib_wait import pace, quiet_for, rate_of, stopped, wait_for, work_for

# A shell has what it runs in the background ignore SIGINT, and the programs of the tests would, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = os.environ.get("BUILD", "build")
BAD_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error", "CHECK(", "Sanitizer")


def binary(name):
    path = os.path.join(BUILD, name)
    if not os.access(path, os.X_OK):
        raise AssertionError("%s is not built" % path)
    return path


def compile_c(out, *args):
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-I.", "-D_GNU_SOURCE", "-o", out,
                    *args], check=True)
    return out


def each_once(pairs):
    """A JSON object of the log; a key that comes twice is a mistake of the router's."""
    if len(dict(pairs)) < len(pairs):
        raise AssertionError("a key comes twice: %s" % pairs)
    return dict(pairs)


claims = []


def closed_port():
    """A port without a listener, for a test to listen on. It is below the ephemeral ports: the system may give one of
    those to another test's engine before this test's router listens there. The port stays reserved for this process
    until it exits: test processes claim ports under names that only one process can have."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        given_out = int(f.read().split()[0])
    while True:
        port = random.randrange(10000, max(given_out, 20000))  # some machines have more ephemeral ports
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                claim.bind("\0grapevine tests port %d" % port)
                tcp.bind((HOST, port))
                udp.bind((HOST, port))
            except OSError:
                claim.close()
                continue
            claims.append(claim)
            return port


# --- the scriptable engine -----------------------------------------------------------------------


class Asked(Head):
    """One request as the engine sees it. Handlers answer through it."""

    def __init__(self, raw, connection, index):
        super().__init__(raw)
        self.connection = connection  # number of the connection at this engine
        self.index = index            # number of the request on that connection
        self.method, self.target, self.version = self.start.split(" ")
        self.path = self.target.partition("?")[0]
        self.body = None
        self.reader = None
        self.sock = None
        self.keep = True
        self.gone = threading.Event()  # set when the router closed while the handler watched

    def read_body(self):
        if self.body is not None:
            return self.body
        if self.get("transfer-encoding"):
            self.body = self.reader.chunked()[0]
        else:
            self.body = self.reader.take(int(self.get("content-length", "0")))
        return self.body

    @property
    def json(self):
        return json.loads(self.read_body())

    def send(self, data):
        self.sock.sendall(data)

    def close(self):
        self.keep = False
        self.sock.close()

    def reset(self):
        self.keep = False
        reset(self.sock)

    def wait_gone(self, limit=LIMIT):
        """Waits until the router closes this connection."""
        self.keep = False
        self.sock.settimeout(limit)
        try:
            while self.sock.recv(65536):
                pass
        except socket.timeout:
            return False
        except OSError:
            pass
        self.gone.set()
        return True


class Engine:
    """A server whose every answer is a function: engine.handler(asked), called in a thread of its
    connection. The engine answers the router's probes without the handler, and does not record them."""

    def __init__(self, models=("m",), port=0, receive_buffer=None, host=HOST):
        self.models = list(models)
        self.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))
        self.probes = {}      # path -> function(asked), instead of the usual answer
        self.requests = []    # Asked, in order of their heads
        self.connections = 0  # accepted, probes included
        self.work_connections = set()
        self.idle_closed = []  # (connection, seconds idle) of kept-alive ones that the router closed
        self.lock = threading.Lock()
        self.socks = set()
        self.errors = []
        self.listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind((host, port))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.name = ("[%s]:%d" if ":" in host else "%s:%d") % (host, self.port)
        self.url = "http://" + self.name
        self.stopping = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
                self.socks.add(sock)
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = Reader(sock)
        index = 0
        try:
            while True:
                waiting = time.monotonic()
                try:
                    raw = reader.until(b"\r\n\r\n")
                except (Cut, OSError):
                    if index:
                        self.idle_closed.append((number, time.monotonic() - waiting))
                    return
                asked = Asked(raw, number, index)
                asked.reader, asked.sock = reader, sock
                index += 1
                probe = asked.method == "GET" and asked.get("user-agent") == "grapevine"
                if probe:
                    self._probe(asked)
                else:
                    with self.lock:
                        self.requests.append(asked)
                        self.work_connections.add(number)
                    self.handler(asked)
                    if asked.keep and asked.body is None:
                        asked.read_body()
                if not asked.keep:
                    return
        except (OSError, Cut):
            pass
        except Exception as error:  # stop() reports this: a handler must not fail in silence
            self.errors.append(error)
        finally:
            with self.lock:
                self.socks.discard(sock)
            sock.close()

    def _probe(self, asked):
        if asked.path in self.probes:
            self.probes[asked.path](asked)
        elif asked.path == "/health":
            asked.send(answer(200, b""))
        elif asked.path == "/v1/models":
            asked.send(answer_json({"object": "list", "data": [
                {"id": m, "object": "model", "created": 1, "owned_by": "vllm",
                 "max_model_len": 4096} for m in self.models]}))
        else:
            asked.send(answer_json({"detail": "Not Found"}, 404))

    def replies(self, data):
        """Every request gets these bytes."""
        def handler(asked):
            asked.read_body()
            asked.send(data)
        self.handler = handler
        return self

    def closes(self, data):
        """Every request gets these bytes, then the end of the connection."""
        def handler(asked):
            asked.read_body()
            asked.send(data)
            asked.close()
        self.handler = handler
        return self

    def wait_request(self, n=1):
        """The n-th request, as soon as its head is there."""
        wait_for(lambda: len(self.requests) >= n, "request %d at the engine" % n)
        return self.requests[n - 1]

    def clear(self):
        with self.lock:
            self.requests = []

    def refuse(self):
        """Stops listening; open connections are reset."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            socks = list(self.socks)
        for s in socks:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.refuse()
        if self.errors:
            raise AssertionError("a handler of the engine failed: %r" % self.errors[0])


# --- processes -----------------------------------------------------------------------------------


class Process:
    def __init__(self, args, env=None):
        full = {k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")}
        full.update(env or {})
        self.args = args
        self.lines = []
        self.popen = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=full)
        self.out = b""
        self.threads = [threading.Thread(target=self._read_err, daemon=True),
                        threading.Thread(target=self._read_out, daemon=True)]
        for t in self.threads:
            t.start()

    def _read_err(self):
        for line in self.popen.stderr:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def _read_out(self):
        for line in self.popen.stdout:
            self.out += line

    @property
    def pid(self):
        return self.popen.pid

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, limit=LIMIT):
        try:
            status = self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s did not end in %g s" % (self.args[0], limit))
        for t in self.threads:
            t.join(LIMIT)
        self.popen.stdout.close()
        self.popen.stderr.close()
        return status

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        return self.wait()

    def running(self):
        return self.popen.poll() is None


class Router(Process):
    """A grapevine of this build, or another `program`. stop() checks the exit status against `expected`; `wrap` is a
    command that execs the one behind it."""

    def __init__(self, replicas, *args, env=None, wait_up=True, defaults=True, wrap=(), program=None):
        self.parsed, self.parsing = [], threading.Lock()  # an event for each line; None: it is none
        command = list(wrap) + [program or binary("grapevine")]
        if defaults:
            command += ["--listen", HOST + ":0", "--admin-listen", HOST + ":0",
                        "--index-bytes", "32MiB", "--health-interval", "200ms",
                        "--drain-timeout", "5s", "--drain-delay", "0"]
        for r in replicas:
            command += ["--replica", r if isinstance(r, str) else r.url]
        super().__init__(command + list(args), env)
        self.replicas = replicas
        self.expected = 0
        self.stopped = False
        gossip = any(a.startswith(("--gossip-listen", "--join")) for a in command + list(args))
        wanted = {"clients", "admin"} | ({"gossip"} if gossip else set())
        ports = {}

        def listening():
            ports.update({e["port_of"]: e["port"] for e in self.events_yet("listening")})
            return wanted <= set(ports) or not self.running()
        wait_for(listening, "the ports")
        if not wanted <= set(ports):
            self.wait()  # so that all it said is read
            raise AssertionError("no start: %s" % self.lines)
        self.port, self.admin_port = ports["clients"], ports["admin"]
        self.gossip_port = ports.get("gossip")
        if wait_up:
            try:
                self.wait_up(len([r for r in replicas if not isinstance(r, str)]))
            except BaseException:
                self.stop()  # unknown to other threads yet
                raise

    def events(self, name=None):
        quiet_for(0.02, "the router's log has a thread, and so has its reader here: lines come a moment later")
        return self.events_yet(name)

    def events_yet(self, name=None):  # for what waits: lines that are on their way are there next time
        with self.parsing:
            for line in self.lines[len(self.parsed):]:
                try:
                    self.parsed.append(json.loads(line, object_pairs_hook=each_once))
                except ValueError:
                    self.parsed.append(None)
            return [e for e in self.parsed if e is not None and name in (None, e.get("event"))]

    def wait_event(self, name, n=1):
        return wait_for(lambda: self.events_yet(name)[n - 1:n], "log event %s" % name)[0]

    def wait_logged(self, path):
        """The access log's first line for that path. (wait_up() causes lines too: it requests models.)"""
        return wait_for(lambda: next((e for e in self.events_yet("request") if e["path"] == path), None),
                        "a request for %s in the log" % path)

    def wait_up(self, n):
        """Waits until n replicas are up and have listed their models."""
        wait_for(lambda: len({e["replica"] for e in self.events_yet("replica_up")}) >= n,
                 "%d replicas up" % n)
        wanted = {m for r in self.replicas if isinstance(r, Engine) for m in r.models}
        wait_for(lambda: wanted <= self.models_told(), "models of the replicas")
        since = time.monotonic()
        wait_for(lambda: not self.lists_awaited() or time.monotonic() > since + 1, "their lists")

    def wait_listed(self, n):
        """Waits until n replicas are up and have listed their models: before that a replica may get no request that
        names a model."""
        wait_for(lambda: sum(r["health"] == "up" and bool(r["models"]["names"]) for r in self.replicas_told()) == n,
                 "%d replicas and their models" % n)

    def replicas_told(self):
        """The admin port's replicas; empty if the port is elsewhere, speaks TLS or requires a token."""
        try:
            told = self.admin("GET", "/replicas")
            return told.json if told.status == 200 else []
        except (OSError, Cut, AssertionError):
            return []

    def models_told(self):
        """Read from the admin port if possible: a client's request changes counters, and fails if it comes too soon."""
        told = self.replicas_told()
        return {m for r in told for m in r["models"]["names"]} if told else {
            m["id"] for m in self.get("/v1/models").json.get("data", [])}

    def lists_awaited(self):
        return [r for r in self.replicas_told() if r["health"] == "up" and not r["models"]["names"] and
                r["models"]["list_status"] is None]

    def get(self, path, port=None):
        c = Client(port or self.port)
        try:
            return c.ask("GET", path)
        finally:
            c.close()

    def admin(self, method, path, body=None, headers=()):
        c = Client(self.admin_port)
        try:
            named = "host" in [n.lower() for n, _ in headers]
            return c.ask(method, path, body, list(headers) + ([] if named else [("Host", HOST)]))
        finally:
            c.close()

    def metrics(self):
        """{"name{labels}": value}"""
        out = {}
        for line in self.admin("GET", "/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                out[name] = float(value)
        return out

    def metric(self, name):
        """Its value, or the sum over all its labels."""
        all_of_them = self.metrics()
        if "{" in name:
            return all_of_them["grapevine_" + name]
        found = [v for k, v in all_of_them.items() if k.split("{")[0] == "grapevine_" + name]
        assert found, "there is no metric " + name
        return sum(found)

    def quiet(self):
        """Nothing is under way and nothing is booked, but for the scrape itself."""
        left = {}

        def check():
            m = self.metrics()
            left.clear()
            left.update({k: v for k, v in m.items() if v and re.match(
                r"grapevine_(replica_(requests|prefill_tokens|context_tokens)\{|body_bytes_held|"
                r"requests_open)", k)})
            return left.pop("grapevine_requests_open") == 1 and \
                left.pop("grapevine_body_bytes_held", 0) <= 4096 and not left
        try:
            wait_for(check, "no open requests and no bookings", step=0.02)
        except AssertionError as e:
            raise AssertionError("%s; there are %r" % (e, self.metrics()))

    def rss(self):
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) * 1024

    def delays_its_end(self):
        """The router goes on serving for a time (drain-delay) after its signal, as set by a test."""
        draining = wait_for(lambda: self.events_yet("draining") or not self.running(), "that it drains")
        return self.running() and draining[0]["delay_ms"] > 0

    def stop(self):
        """Ends the process and checks its exit and output."""
        if self.stopped:
            return
        self.stopped = True
        if self.running():
            self.signal(signal.SIGTERM)
            if self.delays_its_end():
                self.signal(signal.SIGTERM)
        status = self.wait()  # drain-timeout cuts the rest, with another status
        text = "\n".join(self.lines)
        if any(word in text for word in BAD_WORDS) or status < 0 or status > 2:
            raise AssertionError("grapevine ended with %d:\n%s" % (status, text[-8000:]))
        for line in self.lines:
            try:
                json.loads(line)
            except ValueError:
                raise AssertionError("not a log line: %r" % line)
        if self.expected is not None and status != self.expected:
            raise AssertionError("exit status %d, not %d:\n%s" % (status, self.expected, text))


class Sim(Process):
    """An engine-sim of this build."""

    def __init__(self, *args, port=0, host=HOST):
        super().__init__([binary("tests/engine-sim"), "--listen", "%s:%d" % (host, port),
                          "--control"] + list(args))
        def bound():
            found = re.search(re.escape(host) + r":(\d+)", self.out.decode() + " ".join(self.lines))
            return found or not self.running()
        found = wait_for(bound, "address of the engine-sim")
        if found is True:
            raise AssertionError("engine-sim did not start: %s" % self.lines)
        self.host, self.port = host, int(found.group(1))
        self.name = "%s:%d" % (host, self.port)
        self.url = "http://" + self.name

    def call(self, method, path, value=None):
        c = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        try:
            c.request(method, path, None if value is None else json.dumps(value))
            r = c.getresponse()
            body = r.read()
            return json.loads(body) if body else None
        finally:
            c.close()

    def stop(self):
        self.kill()


# --- test cases ----------------------------------------------------------------------------------


class Case(unittest.TestCase):
    """Makes parts and stops them: first clients, then routers, then engines."""

    _class_parts = []

    @classmethod
    def setUpClass(cls):
        cls._class_parts = []
        cls.set_up()

    @classmethod
    def set_up(cls):
        """Makes what all tests of the class share, with cls.shared()."""

    @classmethod
    def tearDownClass(cls):
        stop_all(cls._class_parts)

    @classmethod
    def shared(cls, part):
        cls._class_parts.append(part)
        return part

    def setUp(self):
        self._parts = []

    def tearDown(self):
        stop_all(self._parts)
        # If a shared router died, the test that killed it fails.
        for part in self._class_parts:
            if isinstance(part, Router) and not part.stopped and not part.running():
                part.stop()

    def keep(self, part):
        self._parts.append(part)
        return part

    def engine(self, **how):
        return self.keep(Engine(**how))

    def router(self, replicas, *args, **how):
        return self.keep(Router(replicas, *args, **how))

    def sim(self, *args, **how):
        return self.keep(Sim(*args, **how))

    def client(self, router, **how):
        return self.keep(Client(router if isinstance(router, int) else router.port, **how))


def stop_all(parts):
    error = None
    for kind in (Client, Router, Engine, Sim):
        for part in parts:
            if isinstance(part, kind):
                try:
                    part.close() if kind is Client else part.stop()
                except AssertionError as e:
                    error = error or e
    del parts[:]
    if error is not None:
        raise error

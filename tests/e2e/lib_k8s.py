"""A small Kubernetes API server: EndpointSlices, listed in pages and watched, over TLS with a CA of
its own, for holders of a token; and the folder that Kubernetes mounts into a pod.

    pod = Account(folder)                        # token, ca.crt, namespace
    api = Api(pod)
    api.put("vllm-a", [("127.0.0.1", READY)], port=8000)
    router = ...Router([], "--replica-kubernetes", "ns/vllm", env=api.env, ...)

It can imitate failures of real clusters: watches that are reset, versions that are too old, an API server
that is away, hangs, forbids, or sends byte by byte.
"""

import http.server
import json
import os
import queue
import socket
import ssl
import struct
import subprocess
import threading
import time
from urllib.parse import parse_qs, urlsplit

from lib_wait import work_for

HOST = "127.0.0.1"
NAMESPACE = "inference"
SERVICE_LABEL = "kubernetes.io/service-name"

READY = {"ready": True, "serving": True, "terminating": False}
STARTING = {"ready": False, "serving": False, "terminating": False}
TERMINATING = {"ready": False, "serving": True, "terminating": True}


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def write(path, text):
    """In one step, as a volume of Kubernetes is swapped."""
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


class Account:
    """The folder of a service account, and a CA that signs the API server."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "account")
        self.secret = os.path.join(folder, "ca")
        os.makedirs(self.folder)
        os.makedirs(self.secret)
        self.token = "token-0"
        self.path = lambda name: os.path.join(self.folder, name)
        self.ca()
        write(self.path("token"), self.token)
        write(self.path("namespace"), NAMESPACE)

    def ca(self):
        """A CA, and a certificate of the API server by it."""
        at = lambda name: os.path.join(self.secret, name)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", at("ca.key"), "-out", at("ca.crt"), "-days", "2", "-subj", "/CN=ca")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", at("api.key"), "-out", at("api.csr"), "-subj", "/CN=kube-apiserver")
        with open(at("ext"), "w") as f:
            f.write("subjectAltName=IP:127.0.0.1,IP:192.0.2.1,IP:10.0.0.1,DNS:kubernetes.default\n")
        openssl("x509", "-req", "-in", at("api.csr"), "-CA", at("ca.crt"), "-CAkey", at("ca.key"),
                "-CAcreateserial", "-days", "2", "-extfile", at("ext"), "-out", at("api.crt"))
        with open(at("ca.crt")) as f:
            write(self.path("ca.crt"), f.read())

    def rotate(self, token):
        """Replaces the token in the file; the API server accepts the tokens in api.tokens."""
        self.token = token
        write(self.path("token"), token)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        # Here, in a thread of the connection: a client that stops delays no other.
        self.request.settimeout(30)
        self.request = self.server.api.tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self.server.api.opened(self.request)

    def finish(self):
        self.server.api.closed(self.request)
        try:
            super().finish()
        finally:
            self.request.close()

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.api.answer(self)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.api.create(self, json.loads(body))

    def send_json(self, code, value, headers=()):
        body = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.send_pieces(body)

    def send_status(self, code, reason, message, headers=()):
        self.send_json(code, status(code, reason, message), headers)

    def send_pieces(self, data):
        piece = self.server.api.piece
        for at in range(0, len(data), piece or len(data) or 1):
            self.wfile.write(data[at:at + piece] if piece else data)
            self.wfile.flush()

    def send_chunk(self, data):
        self.send_pieces(b"%x\r\n%s\r\n" % (len(data), data))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False

    def handle_error(self, request, client_address):
        pass  # clients that go, handshakes that fail: the tests look at the router


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code}


class Api:
    def __init__(self, account, page=2):
        self.account = account
        self.page = page          # slices per page, whatever number the client asks for
        self.piece = 0            # bytes of a write; 0: all at once
        self.tokens = {account.token}
        self.forbidden = False
        self.hangs = False        # requests are taken and never answered
        self.gone_as = "event"    # or "status": how a version that is too old is answered
        self.busy = 0             # this number of requests gets a 429
        self.lock = threading.RLock()
        self.version = 100
        self.oldest = 0           # versions before it are forgotten
        self.slices = {}
        self.secrets = {}         # name -> object, as it came
        self.history = []         # (version, type, slice)
        self.watches = []
        self.sockets = set()
        self.lists, self.watched = [], []  # queries that came, as dictionaries
        self.refused = 0
        self.server = None
        self.port = 0
        self.start()

    # --- start and stop

    @property
    def env(self):
        return {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(self.port)}

    def start(self):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(os.path.join(self.account.secret, "api.crt"),
                                 os.path.join(self.account.secret, "api.key"))
        self.server = Server((HOST, self.port), Handler)
        self.server.api = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        """Stops listening, and resets connections."""
        if self.server is None:
            return
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        self.cut()

    def cut(self):
        """Resets every connection, watches too."""
        with self.lock:
            sockets, self.watches = list(self.sockets), []
        for s in sockets:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def opened(self, sock):
        with self.lock:
            self.sockets.add(sock)

    def closed(self, sock):
        with self.lock:
            self.sockets.discard(sock)

    # --- slices

    def put(self, name, endpoints, port=8000, service="vllm", port_name="http", family="IPv4"):
        """endpoints: [(ip, conditions)]; None as conditions: nothing is said."""
        with self.lock:
            self.version += 1
            kind = "MODIFIED" if name in self.slices else "ADDED"
            value = {
                "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
                "metadata": {"name": name, "generateName": service + "-", "namespace": NAMESPACE,
                             "uid": "u-" + name, "resourceVersion": str(self.version),
                             "labels": {SERVICE_LABEL: service},
                             "managedFields": [{"manager": "kube-controller-manager",
                                                "fieldsV1": {"f:endpoints": {}, "f:ports": {}}}]},
                "addressType": family,
                "endpoints": [dict({"addresses": [ip], "targetRef": {"kind": "Pod", "name": "p"}},
                                   **({} if c is None else {"conditions": c}))
                              for ip, c in endpoints],
                "ports": [{"name": port_name, "protocol": "TCP", "port": port}],
            }
            self.slices[name] = value
            self._publish(kind, value)

    def delete(self, name):
        with self.lock:
            self.version += 1
            value = json.loads(json.dumps(self.slices.pop(name)))
            value["metadata"]["resourceVersion"] = str(self.version)
            self._publish("DELETED", value)

    def _publish(self, kind, value):
        self.history.append((self.version, kind, value))
        for service, events in self.watches:
            if value["metadata"]["labels"][SERVICE_LABEL] == service:
                events.put({"type": kind, "object": value})

    def bookmark(self):
        with self.lock:
            for _, events in self.watches:
                events.put(self._bookmark())

    def _bookmark(self):
        return {"type": "BOOKMARK", "object": {
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
            "metadata": {"resourceVersion": str(self.version), "creationTimestamp": None},
            "addressType": "", "endpoints": None, "ports": None}}

    def forget(self):
        """Compaction: earlier versions are gone."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            self.history = []

    def expire(self):
        """Open watches are ended with an event that says 410."""
        with self.lock:
            for _, events in self.watches:
                events.put({"type": "ERROR", "object": status(410, "Expired", "too old")})
                events.put(None)

    # --- answers

    def answer(self, h):
        url = urlsplit(h.path)
        query = {k: v[0] for k, v in parse_qs(url.query, strict_parsing=True).items()}
        if self.hangs:
            work_for(30)
            return
        if h.headers.get("Authorization", "").partition(" ")[2] not in self.tokens:
            self.refused += 1
            h.send_status(401, "Unauthorized", "Unauthorized")
            return
        want = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices" % NAMESPACE
        if self.forbidden or url.path != want:
            self.refused += 1
            h.send_status(403, "Forbidden", "endpointslices.discovery.k8s.io is forbidden: User "
                          "\"system:serviceaccount:%s:default\" cannot list resource "
                          "\"endpointslices\"" % NAMESPACE)
            return
        if self.busy > 0:
            self.busy -= 1
            h.send_status(429, "TooManyRequests", "later", [("Retry-After", "1")])
            return
        label, _, service = query["labelSelector"].partition("=")
        if label != SERVICE_LABEL:
            h.send_status(400, "BadRequest", "a selector that is not expected")
            return
        (self._watch if query.get("watch") else self._list)(h, query, service)

    def create(self, h, value):
        """A Secret, made by a holder of a token."""
        if h.headers.get("Authorization", "").partition(" ")[2] not in self.tokens:
            h.send_status(401, "Unauthorized", "Unauthorized")
        elif self.forbidden or h.path != "/api/v1/namespaces/%s/secrets" % NAMESPACE:
            h.send_status(403, "Forbidden", "secrets is forbidden")
        elif value["metadata"]["name"] in self.secrets:
            h.send_status(409, "AlreadyExists", "secrets already exists")
        else:
            self.secrets[value["metadata"]["name"]] = value
            h.send_json(201, value)

    def _list(self, h, query, service):
        with self.lock:
            self.lists.append(query)
            names = sorted(n for n, s in self.slices.items()
                           if s["metadata"]["labels"][SERVICE_LABEL] == service)
            at, version = 0, str(self.version)
            if "continue" in query:
                version, at = query["continue"].split("+/=")
                at = int(at)
                if int(version) < self.oldest:
                    h.send_status(410, "Expired", "The provided continue parameter is too old")
                    return
            n = min(self.page, int(query["limit"]))
            meta = {"resourceVersion": version}
            if len(names) > at + n:
                meta["continue"] = "%s+/=%d" % (version, at + n)
                meta["remainingItemCount"] = len(names) - at - n
            items = [self.slices[name] for name in names[at:at + n]]
            value = json.loads(json.dumps(items))
        h.send_json(200, {"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
                          "metadata": meta, "items": value})

    def _watch(self, h, query, service):
        since = int(query["resourceVersion"])
        events = queue.Queue()
        with self.lock:
            self.watched.append(query)
            if since < self.oldest:
                if self.gone_as == "status":
                    h.send_status(410, "Expired", "too old resource version")
                    return
                events.put({"type": "ERROR", "object": status(410, "Expired", "too old")})
                events.put(None)
            for version, kind, value in self.history:
                if version > since and value["metadata"]["labels"][SERVICE_LABEL] == service:
                    events.put({"type": kind, "object": value})
            self.watches.append((service, events))
        h.send_response(200)
        h.send_header("Content-Type", "application/json")
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        end = time.monotonic() + int(query["timeoutSeconds"])
        try:
            while time.monotonic() < end:
                try:
                    event = events.get(timeout=0.2)
                except queue.Empty:
                    if (service, events) not in self.watches:
                        raise OSError("cut")
                    continue
                if event is None:
                    break
                h.send_chunk(json.dumps(event, separators=(",", ":")).encode() + b"\n")
            h.send_chunk(b"")
        except OSError:
            h.close_connection = True
        finally:
            with self.lock:
                if (service, events) in self.watches:
                    self.watches.remove((service, events))

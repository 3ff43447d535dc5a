"""TLS for the tests: a CA of their own, clients and engines that speak it, and a tap that sees the records."""

import os
import socket
import ssl
import subprocess
import tempfile
import threading

from lib import Case, Engine, Router
from lib_http import HOST, LIMIT, Client


def openssl(*args, text=""):
    done = subprocess.run(["openssl", *args], input=text.encode(), capture_output=True, timeout=LIMIT)
    if done.returncode != 0:
        raise AssertionError("openssl %s: %s" % (" ".join(args), done.stderr.decode()))
    return done.stdout.decode()


class Pair:
    """The files of a certificate and its key."""

    def __init__(self, folder, name):
        self.cert, self.key = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")

    def flags(self, kind="tls"):
        return ["--%s-cert" % kind, self.cert, "--%s-key" % kind, self.key]

    def takes(self, other, key=True):
        """Takes over the other pair's certificate and, with `key`, its key."""
        for to, by in [(self.cert, other.cert)] + ([(self.key, other.key)] if key else []):
            with open(by, "rb") as f:
                data = f.read()
            with open(to + ".new", "wb") as f:
                f.write(data)
            os.rename(to + ".new", to)


class Authority(Pair):
    """A CA, and what it signs, in a folder."""

    def __init__(self, folder, name="ca"):
        super().__init__(folder, name)
        self.folder = folder
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", self.key, "-out", self.cert, "-days", "30", "-subj", "/CN=" + name)

    def pair(self, name, *names, days=10, rsa=False):
        """`names` as in subjectAltName: DNS:localhost, IP:127.0.0.1"""
        pair = Pair(self.folder, name)
        kind = ["rsa:2048"] if rsa else ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        asked = openssl("req", "-new", "-newkey", *kind, "-nodes", "-keyout", pair.key,
                        "-subj", "/CN=" + name)
        extensions = os.path.join(self.folder, name + ".ext")
        with open(extensions, "w") as f:
            f.write("subjectAltName=%s\n" % ",".join(names or ["DNS:localhost", "IP:" + HOST]))
        openssl("x509", "-req", "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", str(days),
                "-extfile", extensions, "-out", pair.cert, text=asked)
        os.chmod(pair.key, 0o600)
        return pair

    def context(self, version=None, alpn=("http/1.1",)):
        """The context of a client that trusts the CA; `version`: only that one."""
        context = ssl.create_default_context(cafile=self.cert)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context


class TlsClient(Client):
    """A client on a TLS connection. `plain` goes before it (a PROXY header)."""

    def __init__(self, port, context, name="localhost", session=None, plain=b"", receive_buffer=None):
        super().__init__(port, receive_buffer=receive_buffer)
        try:
            self.sock.sendall(plain)
            self.sock = context.wrap_socket(self.sock, server_hostname=name, session=session,
                                            suppress_ragged_eofs=False)
        except BaseException:
            self.sock.close()
            raise
        self.reader.sock = self.sock

    def names(self):
        """Names in the presented certificate."""
        return [value for _, value in self.sock.getpeercert()["subjectAltName"]]


class TlsRouter(Router):
    """A router whose client port speaks TLS."""

    def __init__(self, replicas, *args, context=None, **how):
        self.context = context
        super().__init__(replicas, *args, **how)

    def get(self, path, port=None):
        c = TlsClient(port or self.port, self.context)
        try:
            return c.ask("GET", path)
        finally:
            c.close()


class TlsEngine(Engine):
    """An engine that speaks TLS with the pair and, with `asks`, requires a certificate of that CA."""

    def __init__(self, pair, asks=None, **how):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pair.cert, pair.key)
        if asks is not None:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(asks.cert)
        self.asked_names = []
        self.handshakes = []  # True for each that was resumed
        self.context.sni_callback = lambda sock, name, context: self.asked_names.append(name)
        super().__init__(**how)
        self.url = "https://localhost:%d" % self.port
        self.name = self.url

    def _serve(self, sock, number):
        sock.settimeout(LIMIT)
        try:
            sealed = self.context.wrap_socket(sock, server_side=True)
        except (OSError, ValueError):
            sock.close()
            return
        sealed.settimeout(None)
        self.handshakes.append(sealed.session_reused)
        with self.lock:
            self.socks.discard(sock)
            self.socks.add(sealed)
        super()._serve(sealed, number)


class Tap:
    """Sits before a port and passes bytes on, until asked to stop or to cut."""

    def __init__(self, port):
        self.to = port
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.socks = []
        self.seen = bytearray()  # the server's bytes
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                a, _ = self.listener.accept()
                b = socket.create_connection((HOST, self.to))
            except OSError:
                return
            self.socks += [a, b]
            for x, y, seen in ((a, b, None), (b, a, self.seen)):
                threading.Thread(target=self._pass, args=(x, y, seen), daemon=True).start()

    def _pass(self, x, y, seen):
        try:
            while data := x.recv(65536):
                if seen is not None:
                    seen += data
                y.sendall(data)
            y.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        """Sends FIN both ways on the open connections."""
        for s in self.socks:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.cut()
        self.listener.close()
        for s in self.socks:
            s.close()


class TlsCase(Case):
    """With a CA and a certificate of its own, made once a class."""

    @classmethod
    def set_up(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.ca = Authority(cls.folder)
        cls.pair = cls.ca.pair("router")
        cls.context = cls.ca.context()

    def tls_router(self, replicas, *args, **how):
        return self.keep(TlsRouter(replicas, *self.pair.flags(), *args, context=self.context, **how))

    def tls_client(self, router, context=None, **how):
        port = router if isinstance(router, int) else router.port
        return self.keep(TlsClient(port, context or self.context, **how))

    def count(self, router, name, **labels):
        wanted = "".join(',%s="%s"' % pair for pair in labels.items())[1:]
        return router.metrics()["grapevine_tls_%s{%s}" % (name, wanted)]

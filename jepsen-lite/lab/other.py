"""Another proxy in Grapevine's place, started by `--command`. It listens and passes requests to engines."""

import os
import shlex
import signal
import socket

from .parts import CLIENT_PORT, loopback
from .process import ENDS, Process

# Faults of parts that only Grapevine has: its keys, its admin port, its clock, its ways to find engines.
OWN = ("clock-", "disk-", "dns-", "gossip-", "member-", "move-router", "renew-engine", "rotate-keys", "upgrade")


def own(nemesis):
    return nemesis.name.startswith(OWN)


def words(command, port, name, folder, engines):
    """The command, with {port}, {name} and {folder} filled in; {engines} alone is a word for each, host:port."""
    out = []
    for word in shlex.split(command):
        if word == "{engines}":
            out += engines
        else:
            out.append(word.format(port=port, name=name, folder=folder, engines=",".join(engines)))
    return out


class Other(Process):
    """A process group: a proxy may be a parent and its workers, which die and stop together."""

    port = admin_port = CLIENT_PORT

    def command(self, build):
        s = self.service
        folder = os.path.join(s.folder, "proxies", self.name)
        os.makedirs(folder, exist_ok=True)
        engines = ["%s:%d" % (e.address, e.port) for e in s.engines]
        return words(s.options.command, self.port, self.name, folder, engines)

    def about(self):
        return dict(super().about(), build=self.service.options.command)

    def signal(self, number):
        stop = self.service.options.stop_signal
        with self.lock:
            if not self.alive:
                return False
            if number in ENDS:
                self.asked = signal.Signals(number).name
            if number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
                os.killpg(self.popen.pid, number)
            else:
                self.popen.send_signal(stop if number == signal.SIGTERM else number)
            return True

    def admin(self, method, path, body=None, timeout=5):
        """Without an admin port: the proxy is ready once it listens."""
        if path != "/readyz":
            raise OSError("%s has no %s" % (self.name, path))
        with self.host.inside():
            socket.create_connection(("127.0.0.1", self.port), timeout).close()
        return 200, ""

    def holds(self):
        """A proxy may open as many files as it likes."""
        return {}

    def why_not_calm(self):
        """None if the proxy answers from every engine, as far as this shows from outside."""
        for _ in range(2 * len(self.service.engines)):
            try:
                status, _ = loopback(self.host, self.port, "GET", "/v1/models", timeout=3)
            except OSError as e:
                return "%s does not answer: %s" % (self.name, e)
            if status != 200:
                return "%s answers with %s" % (self.name, status)
        return None

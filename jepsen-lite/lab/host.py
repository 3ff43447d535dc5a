"""A machine: a network namespace with an address on the wire. A thread may step inside it, as its sockets are then."""

import contextlib
import ctypes
import os
import subprocess
import threading

CLONE_NEWNET = 0x40000000
PREFIX = 16
MTU = 1500

libc = ctypes.CDLL(None, use_errno=True)
where = threading.local()  # .host: the machine that the calling thread is inside


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def own_namespace():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


HOME = own_namespace()  # of callers inside no machine


class Host:
    def __init__(self, name, address, wire):
        self.name, self.address, self.wire = name, address, wire
        checked(libc.unshare(CLONE_NEWNET))
        try:
            self.namespace = own_namespace()
        finally:
            checked(libc.setns(HOME, CLONE_NEWNET))
        self.processes = []
        wire.machine(name, "/proc/%d/fd/%d" % (os.getpid(), self.namespace), address)
        with self.inside():
            with contextlib.suppress(OSError), open("/proc/sys/net/ipv6/conf/all/disable_ipv6", "w") as f:
                f.write("1")
            self.ip("link set lo up", "link set eth0 mtu %d txqueuelen 2000 up" % MTU,
                    "addr add %s/%d dev eth0" % (address, PREFIX))

    @contextlib.contextmanager
    def inside(self):
        """Sockets that the calling thread makes, and processes that it starts, are on this machine."""
        before = getattr(where, "host", None)
        if before is self:
            yield
            return
        checked(libc.setns(self.namespace, CLONE_NEWNET))
        where.host = self
        try:
            yield
        finally:
            checked(libc.setns(before.namespace if before else HOME, CLONE_NEWNET))
            where.host = before

    def ip(self, *lines):
        self.run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")

    def nft(self, text):
        self.run("nft", "-f", "-", stdin=text)

    def run(self, *argv, stdin=None):
        """Returns what it wrote. A command that fails is an error that says why."""
        with self.inside():
            done = subprocess.run(argv, input=stdin, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise OSError("%s on %s: %s" % (" ".join(argv), self.name, done.stderr.strip()))
        return done.stdout

    def spawn(self, argv, log, env=None):
        """A process on this machine that writes to the end of the file `log`."""
        with self.inside(), open(log, "ab") as out:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                    env=dict(os.environ, **(env or {})))

    def move(self, address):
        """It has this address from now on, and no other; connections to the old one are lost."""
        self.ip("addr flush dev eth0", "addr add %s/%d dev eth0" % (address, PREFIX))
        self.wire.address(self.name, address)
        self.address = address

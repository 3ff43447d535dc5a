"""Hosts on one machine: a network and a mount namespace each, cabled to a bridge. Addresses are those of the examples
in deploy/: 10.0.0.0/24.

A test file runs itself again within a namespace of its own (`Story`); there `Hub` makes hosts:

    hub = Hub()                      # the bridge, 10.0.0.1: engines listen there
    a = hub.host("a", "10.0.0.11")
    a.run("ip", "addr")              # as root on that host
    p = a.start("grapevine", ...)    # stopped with the hub

Needs root, and ip, nft, nsenter and unshare; `missing()` names the missing ones.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import lib_wait
from lib_http import LIMIT

wait_for = functools.partial(lib_wait.wait_for, limit=3 * LIMIT, step=0.05)
BRIDGE = "10.0.0.1"


def missing():
    lacks = [c for c in ("ip", "nft", "nsenter", "unshare", "curl") if shutil.which(c) is None]
    if os.geteuid() != 0:
        lacks.append("root")
    elif subprocess.run(["unshare", "-n", "ip", "link", "add", "x", "type", "bridge"], capture_output=True).returncode:
        lacks.append("permission to make network namespaces and bridges")
    elif subprocess.run(["unshare", "-n", "nft", "add", "table", "ip", "x"], capture_output=True).returncode:
        lacks.append("a kernel with nftables")
    return lacks


def skip_unless_hosts():
    """In a setUpClass."""
    lacks = missing()
    if lacks:
        raise unittest.SkipTest("skipped, needs %s" % ", ".join(lacks))


class Story:
    """`file --story NAME FOLDER`, in namespaces of its own. Stories mostly wait: several may run at once."""

    def __init__(self, file, name):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["unshare", "-n", "-m", sys.executable, os.path.abspath(file), "--story", name, self.folder.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self, case, limit=250):
        """Waits until the story succeeds; returns its output."""
        out = self.process.communicate(timeout=limit)[0]
        case.assertEqual(self.process.returncode, 0, out)
        return out

    def stop(self):
        self.process.terminate()  # its `finally` stops its hosts
        self.process.communicate()
        self.folder.cleanup()


class Host:
    def __init__(self, hub, name, address):
        self.hub, self.name, self.address = hub, name, address
        self.init = subprocess.Popen(["unshare", "-n", "-m", "-u", "sleep", "100000"], stdin=subprocess.DEVNULL)
        here = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink("/proc/%d/ns/net" % self.init.pid) != here and not
                 os.readlink("/proc/%d/exe" % self.init.pid).endswith("unshare"), "a namespace of its own", step=0.002)
        self.inside = ["nsenter", "-t", str(self.init.pid), "-n", "-m", "-u"]
        cable = "v%d" % len(hub.hosts)
        call("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.init.pid))
        call("ip", "link", "set", cable, "master", "br0", "up")
        self.run("ip", "-batch", "-", stdin="link set lo up\nlink set eth0 up\naddr add %s/24 dev eth0\n" % address)
        self.run("hostname", name)

    def run(self, *command, stdin="", ok=True, **how):
        p = subprocess.run([*self.inside, *command], input=stdin, capture_output=True, text=True, **how)
        if ok and p.returncode != 0:
            raise SystemExit("%s: %s: %s%s" % (self.name, command, p.stdout, p.stderr))
        return p.stdout if ok else p

    def start(self, *command, log=None, **how):
        with open(log or os.devnull, "a") as out:
            p = subprocess.Popen([*self.inside, *command], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, **how)
        self.hub.processes.append(p)
        return p


def call(*command, stdin=None):
    subprocess.run(command, check=True, input=stdin, stdout=subprocess.DEVNULL)


class Hub:
    def __init__(self):
        self.hosts, self.processes = [], []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        call("mount", "--make-rprivate", "/")
        call("ip", "-batch", "-", stdin=("link set lo up\nlink add br0 type bridge\nlink set br0 up\n"
                                         "addr add %s/24 dev br0\n" % BRIDGE).encode())

    def host(self, name, address):
        self.hosts.append(Host(self, name, address))
        return self.hosts[-1]

    def start(self, *command):
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(p)
        return p

    def end(self):
        for p in self.processes + [h.init for h in self.hosts]:
            p.kill()
            p.wait()

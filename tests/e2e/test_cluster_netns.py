"""Routers on machines of their own: network namespaces, default addresses, one name for all.

Each router has a namespace, an address and a route; a bridge joins them, and no router advertises
anything. `--join` names one of them, or an address behind which all of them are: drawn for each port
as a cluster manager's service does (the kernel remembers it), or for each packet.

Needs root, and ip and nft (Debian: iproute2, nftables); else it says so and is skipped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import LIMIT, binary, wait_for  # noqa: E402

NET = "10.77.%d.%d"
VIRTUAL = "10.96.0.1"
PINNED = """table ip nat {
  chain output { type nat hook output priority -100; policy accept;
    ip daddr %s udp dport 7490 dnat to numgen random mod %d map { %s }
  }
}
"""
EACH = """table ip raw {
  chain output { type route hook output priority -300; policy accept;
    ip daddr %s udp dport 7490 notrack ip daddr set numgen random mod %d map { %s }
  }
}
"""

FILTERED = """table inet f {
  chain in { type filter hook input priority 0; policy accept; tcp dport 7490 drop; }
}
"""


def address(i):
    return NET % (i // 250, i % 250 + 1)


def run(*command, stdin=None):
    subprocess.run(command, check=True, input=stdin, stdout=subprocess.DEVNULL)


class Router:
    """A process in its own namespace, cabled to the bridge before it begins. Its host name, by which others find its
    admin port, is its address."""

    def __init__(self, i, folder, join, rules):
        self.name, self.address = "r%d" % i, address(i)
        self.log = os.path.join(folder, self.name + ".log")
        ready, go = os.pipe()
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["unshare", "-nu", "sh", "-c", "read go <&%d; hostname %s; exec \"$@\"" % (ready, self.address), "sh",
                 binary("grapevine"), "--join", join, "--node-name", self.name,
                 "--cluster-key-file", os.path.join(folder, "key"), "--log-format", "json",
                 "--listen", "0.0.0.0:8000", "--admin-listen", "0.0.0.0:9090",
                 "--replica", "http://127.0.0.1:9#weight=3"],
                pass_fds=[ready], stderr=log, stdout=subprocess.DEVNULL)
        os.close(ready)
        self.go = go
        here = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink("/proc/%d/ns/net" % self.process.pid) != here, "a namespace of its own", step=0.001)
        self.inside = inside = ["nsenter", "-t", str(self.process.pid), "-n"]
        cable = "v%d" % i
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns",
            str(self.process.pid))
        run("ip", "link", "set", cable, "master", "br0", "up")
        run(*inside, "ip", "-batch", "-", stdin=(
            "link set lo up\nlink set eth0 up\naddr add %s/16 dev eth0\n"
            "route add default via 10.77.255.254\n" % self.address).encode())
        if rules:
            run(*inside, "nft", "-f", "-", stdin=rules.encode())

    def members(self):
        try:
            with urllib.request.urlopen("http://%s:9090/members" % self.address, timeout=5) as f:
                return json.load(f)
        except OSError:
            return {"members": []}

    def met(self):
        return sorted(m["name"] for m in self.members()["members"]
                      if m["state"] == "alive" and (m["self"] or m["session"]))

    def replicas(self):
        with urllib.request.urlopen("http://%s:9090/replicas" % self.address, timeout=5) as f:
            return {r["name"]: (r["health"], r["only_at"], r["weight"]) for r in json.load(f)}

    def events(self, name):
        with open(self.log) as f:
            rows = [json.loads(line) for line in f if line.startswith("{")]
        return [r for r in rows if r.get("event") == name]


def wait_met(routers):
    names = sorted(r.name for r in routers)
    until("all listen", lambda: all(r.events("listening") for r in routers))
    began = time.monotonic()
    for r in routers:
        until("%s has met all" % r.name, lambda: r.met() == names)
    return time.monotonic() - began


def hub():
    run("ip", "-batch", "-", stdin=b"link set lo up\nlink add br0 type bridge\nlink set br0 up\n"
        b"addr add 10.77.255.254/16 dev br0\n")


def until(what, done):
    wait_for(done, what, limit=3 * LIMIT, step=0.02)


def filtered(folder):
    """The gossip port is open for UDP only. A replica on a router's loopback belongs to that router, also at the
    first router, which learns only then that there are other machines."""
    hub()
    routers = []
    try:
        for i in range(2):
            routers.append(Router(i, folder, "127.0.0.1" if i == 0 else address(0), FILTERED))
            os.write(routers[i].go, b"\n")
            until("%s is ready" % routers[i].name, lambda: routers[i].events("cluster_ready"))
        wait_met(routers)
        joiner = routers[1]
        why, told = joiner.events("cluster_ready")[0]["why"], joiner.events("gossip_tcp_filtered")
        if "TCP" not in why or [(e["member"], e["at"]) for e in told] != [("r0", address(0) + ":7490")]:
            raise SystemExit("told otherwise: %s, %s" % (why, told))
        if len(joiner.events("snapshot_failed")) > 1:
            raise SystemExit("told too often: %s" % joiner.events("snapshot_failed"))
        status = subprocess.run([binary("gvctl"), "--admin", "%s:9090" % joiner.address, "status"],
                                capture_output=True).stdout.decode()
        if "TCP to r0 at %s:7490 is filtered" % address(0) not in status:
            raise SystemExit("gvctl status does not say it: %s" % status)
        status = subprocess.run([binary("gvctl"), "--admin", "%s:9090" % routers[0].address, "status"],
                                capture_output=True).stdout.decode()
        if "network      TCP " not in status:
            raise SystemExit("gvctl status of the one that is called does not say it: %s" % status)
        with urllib.request.urlopen("http://%s:9090/metrics" % joiner.address, timeout=5) as f:
            if b"grapevine_cluster_members_tcp_filtered 1\n" not in f.read():
                raise SystemExit("no metric says it")
        # Everything that fits into datagrams goes both ways.
        want = {"127.0.0.1:9@r0", "127.0.0.1:9@r1"}
        until("both list both", lambda: all(set(r.replicas()) == want for r in routers))
        for r, other in (routers, reversed(routers)):
            rows = r.replicas()
            own, foreign = rows["127.0.0.1:9@" + r.name], rows["127.0.0.1:9@" + other.name]
            if own[0] == "elsewhere" or own[1:] != ("", 3) or foreign[:2] != ("elsewhere", other.name):
                raise SystemExit("%s holds %s" % (r.name, rows))
        # A reset names the replicas that it left out, and accepts the plain name as drain does.
        def reset(*names):
            done = subprocess.run([*joiner.inside, binary("gvctl"), "reset-cache", *names], capture_output=True)
            return done.returncode, (done.stdout + done.stderr).decode()
        refused = "0 of 1 replica emptied its cache\n"
        own = "127.0.0.1:9@r1: 502, its port refuses connections\n"
        foreign = "only router r0 can reach it: send this call to that router"
        for names, text in (((), refused + "127.0.0.1:9@r0: not asked, %s\n" % foreign + own), (("127.0.0.1:9",), refused + own),
                            (("127.0.0.1:9@r1",), refused + own),
                            (("127.0.0.1:9@r0",), "gvctl: Nothing was sent to `127.0.0.1:9@r0`: %s. (404)\n" % foreign)):
            if reset(*names) != (1, text):
                raise SystemExit("reset-cache %s says %s" % (names, reset(*names)))
        # A listed replica can be drained and removed, and by the plain name at its own router.
        for command, name in (("drain", "127.0.0.1:9@r0"), ("remove", "127.0.0.1:9@r0"), ("drain", "127.0.0.1:9"), ("remove", "127.0.0.1:9")):
            run(*joiner.inside, binary("gvctl"), command, name)
        until("both are gone", lambda: all(r.replicas() == {} for r in routers))
        print("filtered: ready all the same")
    finally:
        for r in routers:
            r.process.kill()
            r.process.wait()


def story(join, count, folder):
    """In a namespace that is the hub. Prints how long the mesh took; exit status 1 with why not."""
    hub()
    rules = {"pinned": PINNED, "each": EACH}.get(join, "")
    if rules:
        rules %= (VIRTUAL, count, ", ".join("%d: %s" % (i, address(i)) for i in range(count)))
    routers = []
    try:
        for i in range(count):
            routers.append(Router(i, folder, VIRTUAL if rules else address(0), rules))
        for r in routers:
            os.write(r.go, b"\n")
        print("%s: %d routers met within %.2f s" % (join, count, wait_met(routers)))
        first = routers.pop(0)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        until("r0 is dead for all", lambda: all(r.events("member_dead") for r in routers))
        wait_met(routers)
        for r in routers:
            dead = [e["member"] for e in r.events("member_dead")]
            if dead != ["r0"]:
                raise SystemExit("%s holds %s for dead" % (r.name, dead))
            for m in r.members()["members"]:
                if not rules and m["self"] and m["address"] != r.address + ":7490":
                    raise SystemExit("%s takes itself for %s" % (r.name, m["address"]))
    finally:
        for r in routers:
            r.process.kill()
            r.process.wait()


class Mesh(unittest.TestCase):
    def setUp(self):
        missing = [c for c in ("ip", "nft", "nsenter", "unshare") if shutil.which(c) is None]
        if os.geteuid() != 0:
            missing.append("root")
        elif subprocess.run(["unshare", "-n", "ip", "link", "add", "x", "type", "bridge"],
                            capture_output=True).returncode != 0:
            missing.append("permission to make network namespaces and bridges")
        elif subprocess.run(["unshare", "-n", "nft", "add", "table", "ip", "x"],
                            capture_output=True).returncode != 0:
            missing.append("a kernel with nftables")
        if missing:
            self.skipTest("skipped, needs %s" % ", ".join(missing))

    def story(self, join, count):
        with tempfile.TemporaryDirectory() as folder:
            run(binary("gvctl"), "keygen", "--out", os.path.join(folder, "key"))
            p = subprocess.run(["unshare", "-n", sys.executable, os.path.abspath(__file__),
                                "--story", join, str(count), folder], capture_output=True)
            self.assertEqual(p.returncode, 0, (p.stdout + p.stderr).decode())
            print(p.stdout.decode(), end="", file=sys.stderr)

    def test_routers_with_one_seed_form_a_mesh(self):
        self.story("seed", 3)

    def test_sixteen_routers_with_one_seed_form_a_mesh(self):
        self.story("seed", 16)

    def test_a_virtual_address_that_picks_a_router_per_port(self):
        self.story("pinned", 3)

    def test_a_virtual_address_that_picks_one_of_sixteen_routers_per_port(self):
        self.story("pinned", 16)

    def test_a_gossip_port_that_is_open_for_udp_only(self):
        self.story("filtered", 2)

    def test_a_virtual_address_that_picks_a_router_per_packet(self):
        self.story("each", 3)


if __name__ == "__main__":
    if sys.argv[1:3] == ["--story", "filtered"]:
        filtered(sys.argv[4])
    elif sys.argv[1:2] == ["--story"]:
        story(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        unittest.main()

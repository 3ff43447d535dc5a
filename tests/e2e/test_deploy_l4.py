"""The examples of deploy/l4 as written, each on its own machines (network namespaces): requests reach all three
routers, none fails while a router is stopped as an operator would, and a dead one gets no more requests."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Case, Process, answer, binary  # noqa: E402
from lib_deploy import path, text  # noqa: E402
from lib_dns import Dns  # noqa: E402
from lib_tls import Authority  # noqa: E402
from lib_hosts import BRIDGE, Hub, Story, skip_unless_hosts, wait_for  # noqa: E402

HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
BODY = json.dumps({"model": "sim", "max_tokens": 2, "messages": [{"role": "user", "content": "hello"}]})


class World:
    """Three routers at 10.0.0.11 to 13, an engine, a client's machine."""
    ready, scheme, shown = "http://127.0.0.1:8080/health", "http", ()

    def __init__(self, hub, folder, *args):
        self.hub, self.folder = hub, folder
        self.settings()
        hub.start(binary("tests/engine-sim"), "--listen", BRIDGE + ":8001", "--speed-up", "50")
        self.routers, self.args = [], args
        for n in (1, 2, 3):
            host = hub.host("r%d" % n, "10.0.0.%d" % (10 + n))
            host.log = os.path.join(folder, host.name + ".log")
            self.start(host)
            self.routers.append(host)
        self.client = hub.host("client", "10.0.0.100")
        for r in self.routers:
            wait_for(lambda: self.health(r) == "200", "%s ready" % r.name)

    def settings(self):
        self.own = ("--replica", "http://%s:8001" % BRIDGE, "--listen", "0.0.0.0:8080", "--admin-listen", "127.0.0.1:9090",
                    "--drain-delay", "8s")  # twice what the checks take on a busy machine

    def start(self, host):
        host.router = host.start(binary("grapevine"), *self.own, "--access-log", "all", "--log-format", "json",
                                 # The first packets of a connection may be lost here, and come again after 1 and 3 s.
                                 "--upstream-connect-timeout", "10s", *self.args, log=host.log)

    def health(self, host):
        return host.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", self.ready, ok=False).stdout

    def ask(self, where, *args):
        """None if the request was answered, else curl's message."""
        p = self.client.run("curl", "-sS", "--fail-with-body", "--max-time", "20", *self.shown, *args, "-H",
                            "content-type: application/json", "-d", BODY,
                            "%s://%s/v1/chat/completions" % (self.scheme, where), ok=False)
        return None if p.returncode == 0 else p.stderr + p.stdout

    def troubles(self):
        """Warnings of routers, and failed requests."""
        lines = []
        for host in self.routers:
            with open(host.log) as f:
                rows = [json.loads(line) for line in f if line.startswith("{")]
            lines += [(host.name, r) for r in rows if r["level"] in ("warn", "error") or r.get("status", 200) >= 400]
        return lines[-6:]

    def balancer_said(self):
        name = os.path.join(self.folder, "slots.log")
        with open(name if os.path.exists(name) else os.devnull) as f:
            return f.read()

    def asked(self, host):
        """The clients whose requests the router got."""
        with open(host.log) as f:
            rows = [json.loads(line) for line in f if line.startswith("{")]
        return [r["client"] for r in rows if r.get("event") == "request" and r["path"] == "/v1/chat/completions"]


class Secure(World):
    """With deploy/hosts/secure.yaml, each router for itself."""
    ready, scheme = "http://127.0.0.1:9091/readyz", "https"

    def settings(self):
        at = lambda name: os.path.join(self.folder, name)
        ca = Authority(self.folder)
        pair = ca.pair("tls", "IP:10.0.0.10")
        for name, content in (("admin.token", "a\n"), ("read.token", "r\n"), ("client.keys", ""),
                              ("replicas", "http://%s:8001\n" % BRIDGE)):
            with open(at(name), "w") as f:
                f.write(content)
        key = subprocess.run([binary("gvctl"), "key", "new", "alice", "--file", at("client.keys")], check=True,
                             capture_output=True, text=True).stdout.split()[0]
        config = text("deploy", "hosts", "secure.yaml").replace("/etc/grapevine", self.folder)
        with open(at("grapevine.yaml"), "w") as f:
            f.write(re.sub(r"(?m)^(cluster-key-file|gossip-listen|join):.*\n", "", config))
        self.own = ("--config", at("grapevine.yaml"), "--drain-delay", "8s")  # as above
        self.shown = ("--cacert", ca.cert, "-H", "authorization: Bearer " + key)
        if pair.cert != at("tls.crt"):
            raise SystemExit(pair.cert)


class Load(threading.Thread):
    def __init__(self, ask):
        super().__init__()
        self.ask, self.failed, self.count, self.ended = ask, [], 0, False
        self.start()

    def run(self):
        while not self.ended:
            asked, why = time.time(), self.ask()
            self.count += 1
            if why is not None:
                self.failed.append((asked, why))

    def end(self):
        self.ended = True
        self.join()
        return self.failed


def balanced(world, where):
    """All routers get requests; stopping a router loses no request; a dead router gets no more."""
    wait_for(lambda: world.ask(where) is None and all(world.asked(r) for r in world.routers), "each is asked")
    load = Load(lambda: world.ask(where))
    first = world.routers[0]
    stopped = time.time()
    first.router.send_signal(signal.SIGTERM)
    first.router.wait()
    gone = time.time()
    if load.end():
        raise SystemExit("%d of %d failed while one was stopped: %s; it was gone after %.1f s, %s, %s" % (
            len(load.failed), load.count, ["%.1f s: %s" % (t - stopped, why) for t, why in load.failed[:3]], gone - stopped,
            world.balancer_said(), world.troubles()))
    second = world.routers[1]
    second.router.kill()
    count = [0]

    def goes_well():
        count[0] = count[0] + 1 if world.ask(where) is None else 0
        return count[0] == 12
    wait_for(goes_well, "the dead one is asked no more")
    world.start(first)
    before = len(world.asked(first))
    wait_for(lambda: world.ask(where) is None and len(world.asked(first)) > before, "the first is back")
    print("%d requests, 0 failed while a router was stopped" % load.count)


def haproxy(world, name, port=8080):
    balancer = world.hub.host("balancer", "10.0.0.10")
    balancer.start(HAPROXY, "-db", "-f", path("deploy", "l4", name))
    balanced(world, "10.0.0.10:%d" % port)
    return {c for r in world.routers for c in world.asked(r)}


def story_haproxy(hub, folder):
    seen = haproxy(World(hub, folder), "haproxy.cfg")
    if any(not c.startswith("10.0.0.10") or c.startswith("10.0.0.100") for c in seen):
        raise SystemExit("clients: %s" % seen)


def story_proxy_protocol(hub, folder):
    need = dict(re.findall(r"^#   (proxy-protocol\S*): (\S+)", text("deploy", "l4", "haproxy-proxy-protocol.cfg"), re.M))
    seen = haproxy(World(hub, folder, *[a for k, v in need.items() for a in ("--" + k, v)]), "haproxy-proxy-protocol.cfg")
    if any(not c.startswith("10.0.0.100") for c in seen):
        raise SystemExit("clients: %s" % seen)


def nftables(world, rules, port, **how):
    balancer = world.hub.host("balancer", "10.0.0.10")
    balancer.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    balancer.run("nft", "-f", rules)
    balancer.start(path("deploy", "l4", "slots.sh"), *[r.address for r in world.routers],
                   log=os.path.join(world.folder, "slots.log"), start_new_session=True, **how)
    balanced(world, "10.0.0.10:%d" % port)


def story_nftables(hub, folder):
    nftables(World(hub, folder), path("deploy", "l4", "nftables.conf"), 8080)


def story_haproxy_secure(hub, folder):
    haproxy(Secure(hub, folder), "haproxy-secure.cfg", 8443)


def story_nftables_secure(hub, folder):
    """The port and the check are those of the file."""
    said = text("deploy", "l4", "nftables.conf")
    rules = os.path.join(folder, "nftables.conf")
    with open(rules, "w") as f:
        f.write(said.replace("define port = 8080", "define port = 8443"))
    check = re.search(r"(?m)^#   CHECK=(\S+) deploy/l4/slots.sh", said)[1]
    nftables(Secure(hub, folder), rules, 8443, env={**os.environ, "CHECK": check})


def story_dns(hub, folder):
    """A client that knows all addresses of the name tries the next one if one refuses."""
    world = World(hub, folder)
    zone = text("deploy", "l4", "dns.zone")
    records = re.findall(r"^llm\s+IN\s+A\s+(\S+)", zone, re.M)
    if records != [r.address for r in world.routers]:
        raise SystemExit("the zone has %s" % records)
    name = "llm." + re.search(r"^\$ORIGIN (\S+)\.$", zone, re.M)[1]
    dns = Dns({name: {"A": records}}, host=BRIDGE, port=53)
    conf = os.path.join(folder, "resolv.conf")
    with open(conf, "w") as f:
        f.write("nameserver %s\noptions timeout:1\n" % BRIDGE)
    world.client.run("mount", "--bind", conf, os.path.realpath("/etc/resolv.conf"))
    for r in world.routers:  # as a router is removed: its record, after the record's TTL the router
        if world.ask(name + ":8080") is not None:
            raise SystemExit(world.ask(name + ":8080"))
        if r is not world.routers[-1]:
            r.router.kill()
            r.router.wait()
    wait_for(lambda: world.asked(world.routers[-1]), "the last one is asked")  # its log says so a moment later
    if not dns.asked:
        raise SystemExit("the name was not asked for")
    dns.records[name]["A"] = [world.routers[-1].address]
    if world.ask(name + ":8080") is not None:
        raise SystemExit("the record that is left")


class Slots(Case):
    """slots.sh alone, with a `nft` that keeps what it is given."""

    def test_one_503_takes_a_router_out_and_one_missing_answer_does_not(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        nft = os.path.join(folder.name, "nft")
        with open(nft, "w") as f:
            f.write("#!/bin/sh\ncat >>%s/rules\n" % folder.name)
        os.chmod(nft, 0o755)
        ready = self.engine(host="127.0.0.2")
        drains = self.engine(host="127.0.0.3", port=ready.port)
        silent = "127.0.0.4"
        for e in (ready, drains):
            e.replies(answer(200))
        p = Process(["env", "PATH=%s:%s" % (folder.name, os.environ["PATH"]), "INTERVAL=0.1", "FAILS=100000",
                     "SLOTS=6", "CHECK=http://@:%d/health" % ready.port, path("deploy", "l4", "slots.sh"),
                     "127.0.0.2", "127.0.0.3", silent])
        self.addCleanup(p.wait)
        self.addCleanup(p.popen.terminate)
        slots = lambda: [line.split("slots: ")[1].split() for line in p.out.decode().splitlines() if "slots: " in line]
        wait_for(lambda: slots() == [["127.0.0.2", "127.0.0.3", silent]], "all are in")
        drains.replies(answer(503))
        wait_for(lambda: slots()[1:] == [["127.0.0.2", silent]], "the one that drains is out")
        drains.replies(answer(200))
        wait_for(lambda: slots()[2:] == [["127.0.0.2", "127.0.0.3", silent]], "it is back")
        with open(os.path.join(folder.name, "rules")) as f:
            self.assertIn("add element ip grapevine slots { 0 : 127.0.0.2, 1 : %s, 2 : 127.0.0.2," % silent, f.read())


class Layer4(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        skip_unless_hosts()
        cls.stories = {}
        for name in ("haproxy", "proxy_protocol", "nftables", "dns", "haproxy_secure", "nftables_secure"):
            cls.stories[name] = Story(__file__, name)
            cls.addClassCleanup(cls.stories[name].stop)

    def story(self, name):
        print(self.stories[name].end(self), end="", file=sys.stderr)

    def test_haproxy(self):
        self.story("haproxy")

    def test_haproxy_with_the_proxy_protocol(self):
        self.story("proxy_protocol")

    def test_nftables(self):
        self.story("nftables")

    def test_haproxy_in_front_of_secure_routers(self):
        self.story("haproxy_secure")

    def test_nftables_in_front_of_secure_routers(self):
        self.story("nftables_secure")

    def test_dns(self):
        self.story("dns")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--story"]:
        hub = Hub()
        try:
            globals()["story_" + sys.argv[2]](hub, sys.argv[3])
        finally:
            hub.end()
    else:
        unittest.main()

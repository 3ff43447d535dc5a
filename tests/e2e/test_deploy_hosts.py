"""deploy/hosts/rollout.sh makes a cluster of three hosts, changes it one host after the other, and stops where something
is wrong. Hosts are namespaces with an /etc/grapevine of their own; ssh is nsenter, systemctl a script that starts and
stops the router; the package is installed elsewhere (tests of the package).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import binary  # noqa: E402
from lib_deploy import commands, path  # noqa: E402
from lib_hosts import BRIDGE, Hub, Story, skip_unless_hosts, wait_for  # noqa: E402

SYSTEMCTL = """#!/bin/sh
# The part of systemctl that host.sh uses: one service, whose process id is in a file.
pid=/etc/grapevine/pid
echo "$*" >>/etc/grapevine/asked
live() { [ -e $pid ] && kill -0 "$(cat $pid)" 2>/dev/null; }
start() {
    setsid grapevine --config /etc/grapevine/grapevine.yaml --log-format json >>/etc/grapevine/log 2>&1 </dev/null &
    echo $! >$pid
}
case $1 in
enable) ;;
is-active) live ;;
start) start ;;
restart)
    kill "$(cat $pid)"
    while live; do sleep 0.05; done
    start
    ;;
*) exit 1 ;;
esac
"""
SSH = """#!/bin/sh
# ssh HOST COMMAND: as root there.
pid=$(cat %s/hosts/"${1#*@}") || { echo "ssh: connect to host $1: Connection refused" >&2; exit 255; }
shift
exec nsenter -t "$pid" -n -m -u sh -c "$*"
"""


def write(name, text, mode=0o644):
    with open(name, "w") as f:
        f.write(text)
    os.chmod(name, mode)


class Fleet:
    def __init__(self, hub, folder):
        self.hub, self.folder = hub, folder
        self.at = lambda *names: os.path.join(folder, *names)
        for name in ("bin", "hosts", "tmp"):
            os.mkdir(self.at(name))
        for name in ("grapevine", "gvctl"):
            shutil.copy(binary(name), self.at("bin", name))
        write(self.at("bin", "systemctl"), SYSTEMCTL, 0o755)
        write(self.at("ssh"), SSH % folder, 0o755)
        for name, line in (("group", "grapevine:x:64000:"), ("passwd", "grapevine:x:64000:64000::/:/usr/sbin/nologin")):
            with open("/etc/" + name) as f:
                write(self.at(name), re.sub(r"(?m)^grapevine:.*\n", "", f.read()) + line + "\n")
        os.chmod(folder, 0o755)  # that user finds the program
        subprocess.run([binary("gvctl"), "keygen", "--out", self.at("cluster.key")], check=True, stdout=subprocess.DEVNULL)
        write(self.at("replicas"), "http://%s:8001\n" % BRIDGE)
        with open(path("deploy", "hosts", "grapevine.yaml")) as f:
            self.config = f.read().replace("drain-delay: 5s", "drain-delay: 1s")
        write(self.at("config"), self.config)
        hub.start(binary("tests/engine-sim"), "--listen", BRIDGE + ":8001")
        self.hosts = {}
        for n in (1, 2, 3):
            host = hub.host("r%d" % n, "10.0.0.%d" % (10 + n))
            self.hosts[host.address] = host
            host.run("mkdir", "-p", "/etc/grapevine")
            host.run("mount", "-t", "tmpfs", "tmpfs", "/etc/grapevine")
            for name in ("group", "passwd"):
                host.run("mount", "--bind", self.at(name), "/etc/" + name)
            write(self.at("hosts", host.address), "%d\n" % host.init.pid)
        self.env = {**os.environ, "SSH": self.at("ssh"), "TMPDIR": self.at("tmp"),
                    "PATH": self.at("bin") + ":" + os.environ["PATH"]}

    def rollout(self, *args, config="config", wait="60"):
        p = subprocess.run([path("deploy", "hosts", "rollout.sh"), "--key", self.at("cluster.key"), "--replicas",
                            self.at("replicas"), "--config", self.at(config), "--wait", wait, *args], env=self.env,
                           capture_output=True, text=True)
        return p.returncode, p.stdout, p.stderr

    def asked(self, address):
        """Requests to systemctl, except for is-active."""
        text = self.hosts[address].run("cat", "/etc/grapevine/asked", ok=False).stdout
        return [line for line in text.splitlines() if not line.startswith(("is-active", "enable", "show"))]

    def events(self, address, name):
        text = self.hosts[address].run("cat", "/etc/grapevine/log")
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [r for r in rows if r.get("event") == name]

    def stop(self):
        for host in self.hosts.values():
            host.run("sh", "-c", "kill -9 $(cat /etc/grapevine/pid)", ok=False)


def expect(got, want, what):
    if got != want:
        raise SystemExit("%s: %r, not %r" % (what, got, want))


def story_rollout(fleet):
    all_hosts = list(fleet.hosts)
    first, others = all_hosts[0], all_hosts[1:]
    # An engine that is not there: the first router does not get ready, and no other host is touched.
    with open(fleet.at("replicas")) as f:
        engines = f.read()
    write(fleet.at("replicas"), "http://%s:9\n" % BRIDGE)
    status, out, err = fleet.rollout(*all_hosts, wait="2")
    if status != 1 or "r1: not ready in time: " not in err or "failed at " + first not in err:
        raise SystemExit("a router that is not ready: %s%s" % (out, err))
    expect([fleet.asked(a) for a in all_hosts], [["start grapevine"], [], []], "only the first was started")
    write(fleet.at("replicas"), engines)
    # A file that cannot be copied to the host stops the rollout, too.
    fleet.hosts[first].run("mkdir", "-p", "/etc/grapevine/replicas.new/replicas")
    status, out, err = fleet.rollout(*all_hosts)
    if status != 1 or "cannot write /etc/grapevine/replicas" not in err or "failed at " + first not in err:
        raise SystemExit("a file that cannot be written: %s%s" % (out, err))
    fleet.hosts[first].run("rm", "-r", "/etc/grapevine/replicas.new")
    # All three.
    status, out, err = fleet.rollout("root@" + first, *others)
    if status != 0 or "All 3 living routers hold the same state" not in out:
        raise SystemExit("the first rollout: %s%s" % (out, err))
    expect([fleet.asked(a) for a in all_hosts], [["start grapevine"]] * 3, "each was started once")
    mode = fleet.hosts[first].run("stat", "-c", "%a %U %G", "/etc/grapevine/cluster.key").strip()
    expect(mode, "640 root grapevine", "the key")
    expect(os.listdir(fleet.at("tmp")), [], "left in /tmp")
    # Again: nothing.
    status, out, err = fleet.rollout(*all_hosts)
    expect((status, out.count("nothing to do"), out.count(": ready")), (0, 3, 3), "the second: " + out + err)
    # Other engines and another key: no restart, and the routers have them.
    write(fleet.at("replicas"), "http://%s:8001\nhttp://%s:8002\n" % (BRIDGE, BRIDGE))
    subprocess.run([binary("gvctl"), "keygen", "--next", fleet.at("cluster.key")], check=True, stdout=subprocess.DEVNULL)
    status, out, err = fleet.rollout(*all_hosts)
    expect(status, 0, out + err)
    expect([fleet.asked(a) for a in all_hosts], [["start grapevine"]] * 3, "nobody was restarted")
    for a in all_hosts:
        wait_for(lambda: fleet.events(a, "cluster_key_read"), "%s reads the key" % a)
        wait_for(lambda: any(e["entries"] == 2 for e in fleet.events(a, "discovered")), "%s reads the engines" % a)
    # Other settings: one after the other, and the two others were members all the time.
    write(fleet.at("config"), fleet.config + "access-log: all\n")
    status, out, err = fleet.rollout(*all_hosts)
    expect(status, 0, out + err)
    expect([fleet.asked(a) for a in all_hosts], [["start grapevine", "restart grapevine"]] * 3, "each was restarted")
    times = re.findall(r"(r\d): (restarting|ready)", out)
    expect(times, [(r, what) for r in ("r1", "r2", "r3") for what in ("restarting", "ready")], "one after the other")
    # An impossible change stops at the first host, before anything is changed.
    write(fleet.at("bad"), fleet.config + "polcy: cache_aware\n")
    status, out, err = fleet.rollout(*all_hosts, config="bad")
    expect(status, 1, out)
    for word in ("polcy", "did you mean", "failed at " + first):
        if word not in err:
            raise SystemExit("a wrong setting: %s%s" % (out, err))
    expect([len(fleet.asked(a)) for a in all_hosts], [2, 2, 2], "restarts after a wrong setting")
    # A key that root alone may read: the router would not start again, so nothing is restarted.
    fleet.hosts[first].run("sh", "-c", "umask 077; echo t >/etc/grapevine/mine.token")
    write(fleet.at("mine"), fleet.config + "admin-token-file: /etc/grapevine/mine.token\n")
    status, out, err = fleet.rollout(*all_hosts, config="mine")
    if status != 1 or "mine.token" not in err or "failed at " + first not in err:
        raise SystemExit("a key that the service cannot read: %s%s" % (out, err))
    expect([len(fleet.asked(a)) for a in all_hosts], [2, 2, 2], "restarts after a key that cannot be read")
    left = fleet.hosts[first].run("sh", "-c", "ls /etc/grapevine; grep -c mine.token /etc/grapevine/grapevine.yaml", ok=False).stdout
    if "grapevine.yaml.new" in left or not left.endswith("\n0\n"):
        raise SystemExit("settings that were refused are there: " + left)
    # A host that is away is noticed before anything is changed.
    status, out, err = fleet.rollout("10.0.0.77", first)
    expect((status, "cannot reach 10.0.0.77; no host was changed" in err), (1, True), "a host that is away: " + err)


def story_secure(fleet):
    """TLS and tokens on the admin port, TLS and keys for clients, a port for probes: as in docs/how-to/secure.md."""
    hosts = list(fleet.hosts)
    at = lambda *names: fleet.at("files", *names)
    os.symlink(path("deploy"), fleet.at("deploy"))
    # Without its files a host gets no such settings.
    status, out, err = fleet.rollout(*hosts, config="deploy/hosts/secure.yaml")
    expect((status, 'admin.token": No such file' in err), (1, True), "no files: " + out + err)
    expect(fleet.asked(hosts[0]), [], "nothing was started")
    p = subprocess.run(["bash", "-euc", commands("Make the files") + commands("Bare hosts") + 'echo "key: $KEY"'],
                       cwd=fleet.folder, env=fleet.env, capture_output=True, text=True)
    for what in ("All 3 living routers hold the same state", '"id":"', "ready\n", "3 alive; ", "key: gv-"):
        if p.returncode != 0 or what not in p.stdout:
            raise SystemExit("as the page says, %s: %s%s" % (what, p.stdout, p.stderr))
    key, files = re.search(r"key: (\S+)", p.stdout)[1], at()
    for a in hosts:
        modes = fleet.hosts[a].run("sh", "-c", "stat -c '%a %U %G %n' /etc/grapevine/*.token /etc/grapevine/tls.* "
                                   "/etc/grapevine/client.keys").splitlines()
        expect({m.rsplit(" ", 1)[0] for m in modes}, {"640 root grapevine"}, "the files")
        expect(len(modes), 5, "the files")

    def curl(url, *more):
        p = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--cacert", fleet.at("ca.crt"), *more, url],
                           capture_output=True, text=True)
        return p.stdout

    def gvctl(a, *args, token=None):
        how = ["--token-file", at(token + ".token")] if token else []
        return subprocess.run([binary("gvctl"), "--admin", "https://%s:9090" % a, "--ca-file", fleet.at("ca.crt"), *how, *args],
                              capture_output=True, text=True, env=fleet.env).returncode

    for a in hosts:
        expect(curl("https://%s:8443/v1/models" % a), "401", "a client without a key")
        expect(curl("https://%s:8443/v1/models" % a, "-H", "Authorization: Bearer " + key), "200", "a client")
        expect([curl("http://%s:9091%s" % (a, p)) for p in ("/readyz", "/metrics", "/replicas")], ["200", "200", "404"],
               "probes")
        expect([gvctl(a, "replicas"), gvctl(a, "replicas", token="read"), gvctl(a, "replicas", token="admin")],
               [1, 0, 0], "who reads")
    engine = BRIDGE + ":8001"
    expect([gvctl(hosts[1], "undrain", engine, token=t) for t in (None, "read", "admin")], [1, 1, 0], "who changes")
    # On a host gvctl needs the settings and no more.
    inside = fleet.hosts[hosts[2]].run(fleet.at("bin", "gvctl"), "--config", "/etc/grapevine/grapevine.yaml", "undrain", engine)
    expect(inside.count("\n") > 0, True, inside)
    # Other tokens and another certificate: no restart.
    write(at("admin.token"), "admin-2\n", 0o600)
    status, out, err = fleet.rollout("--files", files, *hosts, config="deploy/hosts/secure.yaml")
    expect((status, out.count("updated /etc/grapevine/admin.token")), (0, 3), "another token: " + out + err)
    expect([fleet.asked(a) for a in hosts], [["start grapevine"]] * 3, "nobody was restarted")
    for a in hosts:
        wait_for(lambda: gvctl(a, "undrain", engine, token="admin") == 0, "%s has the new token" % a)
    status, out, err = fleet.rollout("--files", files, *hosts, config="deploy/hosts/secure.yaml")
    expect((status, out.count("nothing to do")), (0, 3), "once more: " + out + err)


STORIES = {"rollout": story_rollout, "secure": story_secure}


class Rollout(unittest.TestCase):
    def test_rollout_to_three_hosts(self):
        skip_unless_hosts()
        stories = [Story(__file__, name) for name in STORIES]
        for story in stories:
            self.addCleanup(story.stop)
        for story in stories:
            story.end(self)

    def test_wrong_arguments_are_refused(self):
        for args in ((), ("--key",), ("--nonsense", "x", "host")):
            p = subprocess.run([path("deploy", "hosts", "rollout.sh"), *args], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout), (2, ""))
            self.assertIn("rollout.sh [--deb FILE]", p.stderr)
        p = subprocess.run([path("deploy", "hosts", "rollout.sh"), "--key", "/nowhere", "host"], capture_output=True,
                           text=True)
        self.assertEqual((p.returncode, p.stderr), (1, "rollout: cannot read /nowhere\n"))
        p = subprocess.run([path("deploy", "hosts", "rollout.sh"), "--files", "/nowhere", "host"], capture_output=True,
                           text=True)
        self.assertEqual((p.returncode, p.stderr), (1, "rollout: /nowhere is not a folder\n"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--story"]:
        hub = Hub()
        fleet = None
        try:
            fleet = Fleet(hub, sys.argv[3])
            STORIES[sys.argv[2]](fleet)
        finally:
            if fleet is not None:
                fleet.stop()
            hub.end()
    else:
        unittest.main()

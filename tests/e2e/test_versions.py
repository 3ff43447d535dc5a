"""Routers of several versions in one cluster: this one, the commit before, one that a later version
might be (build/lab with FUTURE=1, base/future.h), and one that shares no version with the others.
What is compared is counted in tokens and not in time."""

import io
import os
import re
import subprocess
import tarfile
import tempfile
import threading
import unittest

import lib
from lib import SLOW, Client, Cut, binary, wait_for
from lib_cluster import Clustered, Talk, gvctl
from test_engines import CHAT, FAST, chat, message, words

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LATER = os.path.join(TOP, "build", "lab", "grapevine")  # with FUTURE=1
BEFORE = os.environ.get("BEFORE", "HEAD~1")
TALKS, TURNS = 6, 8


def sources_of(commit, folder):
    """Unpacks a commit. None: there is no such commit here, or no git."""
    try:
        got = subprocess.run(["git", "-C", TOP, "archive", commit], capture_output=True, timeout=60)
    except OSError:
        return None
    if got.returncode != 0:
        return None
    with tarfile.open(fileobj=io.BytesIO(got.stdout)) as tar:
        tar.extractall(folder)
    return folder


def versions_of(tree):
    """(least, greatest) version that the sources speak; (0, 0) if they have no versions yet."""
    try:
        with open(os.path.join(tree, "gossip", "version.h")) as f:
            text = f.read()
    except FileNotFoundError:
        return 0, 0
    return tuple(int(re.search(r"GOSSIP_VERSION_%s = (\d+)" % w, text).group(1))
                 for w in ("LEAST", "GREATEST"))


class Load:
    """A client behind a load balancer: a router that accepts no connection is skipped; a router that accepted one
    must answer. `nodes` may change meanwhile."""

    def __init__(self, nodes):
        self.nodes, self.done, self.failed, self.ending = nodes, 0, [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        turn = 0
        while not self.ending.wait(0.02):
            turn += 1
            try:
                c = Client(self.nodes[turn % len(self.nodes)].port)
            except OSError:
                continue
            try:
                got = c.post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [
                    message("user", words("load", 60) + str(turn))]})
                if got.status != 200:
                    self.failed.append(got)
            except (OSError, Cut) as e:
                self.failed.append(e)
            finally:
                c.close()
            self.done += 1

    def stop(self):
        self.ending.set()
        self.thread.join()


class Mixed(Clustered):
    def build(self, name, engines, program, join=None, env=None, ready=True):
        env = dict(env or {}, FUTURE="1") if program == LATER else env
        return self.node(name, engines, join=join, program=program, env=env, ready=ready)

    def others_load(self, r, engine):
        rows = r.admin("GET", "/replicas").json
        return [x for x in rows if x["name"] == engine.name][0]["load"]["requests_of_others"]

    def stats(self, r):
        return r.admin("GET", "/members").json["stats"]

    def quarantines(self, r):
        return self.stats(r)["gossip"]["quarantines"]

    def long_request(self, r):
        c = self.client(r)
        c.send(chat({"model": "sim", "max_tokens": 2000, "stream": True,
                     "messages": [message("user", "go on")]}))
        c.head()
        return c

    def upgrade(self, old, new, mixed):
        """Three routers under load, one after the other replaced by one of another build while
        conversations go on at all of them. `mixed(nodes, number)` looks at the cluster after each
        replacement and says whether old and new share what they know: then each router knows of each
        conversation what its last turn taught. What is served from cache follows from that, and from
        how busy the machine is."""
        sims = [self.sim(*FAST) for _ in range(3)]
        nodes = [self.build("r1", sims, old)]
        nodes += [self.build("r%d" % i, sims, old, join=nodes[0]) for i in (2, 3)]
        for r in nodes:
            self.wait_alive(r, ["r1", "r2", "r3"])
            r.wait_up(3)
        talks = [Talk(self, seed) for seed in range(TALKS)]
        load = Load(nodes)
        number, shared = 0, True
        for turn in range(TURNS):
            for i, talk in enumerate(talks):
                talk.ask(nodes[(turn + i) % 3])
            if shared:
                self.all_know(nodes, talks)
            if turn % 2 == 1 and number < 3:
                gone = nodes[number]
                fresh = self.build("r%d" % (number + 4), sims, new, join=nodes[(number + 1) % 3])
                fresh.wait_up(3)
                nodes[number] = fresh
                gone.stop()
                number += 1
                shared = mixed(nodes, number)
                if shared:
                    self.all_know(nodes, talks)
        load.stop()
        self.assertEqual(load.failed, [])
        self.assertGreater(load.done, 10)
        for r in nodes:
            self.assertEqual(r.admin("GET", "/readyz").status, 200)
            self.assertEqual(self.quarantines(r), 0)
        self.converge(nodes[0], 3)
        self.all_know(nodes, talks)

    def all_know(self, nodes, talks):
        for talk in talks:
            for r in nodes:
                wait_for(lambda: talk.believed(r).get(talk.where[-1], 0) > 0.7 * talk.prompt[-1],
                         "the last turn is known", step=0.05)


class Later(Mixed):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.path.abspath(lib.BUILD) != os.path.join(TOP, "build") or not os.path.exists(LATER):
            raise unittest.SkipTest("skipped: build/lab is not built for this variant")

    def test_an_upgrade_to_a_later_version_and_back(self):
        def equal(nodes, number):
            self.converge(nodes[0], 3)
            return True

        for old, new in ((None, LATER), (LATER, None)):
            self.upgrade(old, new, equal)

    def test_unknown_fields_are_skipped_and_counted(self):
        sim = self.sim("--decode-base-ms", "50")
        later = self.build("r2", [sim], LATER)
        now = self.build("r1", [sim], None, join=later)
        self.wait_alive(now, ["r1", "r2"])
        for r in (now, later):
            r.wait_up(1)
        self.client(later).post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [
            message("user", words("skip", 300))]})
        c = self.long_request(later)
        wait_for(lambda: self.others_load(now, sim) == 1, "the load of the later one counts")
        for what in ("frame", "record", "section", "part"):
            wait_for(lambda: now.metric('cluster_skipped_total{what="%s"}' % what) > 0, what)
            self.assertEqual(later.metric('cluster_skipped_total{what="%s"}' % what), 0)
        c.close()
        self.assertEqual(self.members(now)["r2"]["speaks"], [1, 2])
        self.assertEqual(self.members(later)["r1"]["speaks"], [1, 1])
        self.assertEqual(now.metric("cluster_members_not_understood"), 0)
        # Fields that r1 does not know pass through it to r3: all three hold the same bytes.
        third = self.build("r3", [sim], LATER, join=now)
        self.wait_alive(third, ["r1", "r2", "r3"])
        self.converge(now, 3)
        for r in (now, later, third):
            self.assertEqual(self.stats(r)["gossip"]["refused_malformed"], 0)

    def test_a_router_that_speaks_another_version_is_set_aside(self):
        """The log names the foreign router, its load does not count, and it disturbs no other router."""
        sim = self.sim("--decode-base-ms", "50")
        one = self.build("r1", [sim], None)
        two = self.build("r2", [sim], None, join=one)
        foreign = self.build("r3", [sim], LATER, join=one, env={"FUTURE_SPEAKS": "3-3"})
        for r in (one, two, foreign):
            self.wait_alive(r, ["r1", "r2", "r3"])
            r.wait_up(1)
        ready = foreign.wait_event("cluster_ready")
        self.assertNotIn("from", ready)
        self.assertFalse(ready["alone"])
        self.assertEqual(ready["why"], "members that are not understood: 2")
        c = self.long_request(foreign)
        mine = self.long_request(two)
        wait_for(lambda: self.others_load(one, sim) == 1, "the load of r2")
        # A joiner whose only seed is the foreign one finds the others through it.
        late = self.build("r4", [sim], None, join=foreign)
        self.assertFalse(late.wait_event("cluster_ready")["alone"])
        self.converge(one, 3)
        self.assertEqual([self.others_load(r, sim) for r in (one, two, foreign)], [1, 0, 0])
        for r in (one, two, late):
            said = r.wait_event("member_not_understood")
            self.assertEqual(said["member"], "r3")
            self.assertEqual(said["why"], "it speaks 3, this router 1: upgrade release by release, "
                             "all routers each time")
            self.assertEqual(len(r.events("member_not_understood")), 1)
            self.assertEqual(r.metric("cluster_members_not_understood"), 1)
            self.assertEqual(self.quarantines(r), 0)
            got = {}

            def equal():  # requests are under way: what was just said of them may be on its way
                got.update(r.admin("GET", "/convergence").json)
                return got["equal"]
            wait_for(equal, "all that are understood hold the same")
            self.assertEqual((sorted(got["nodes"]), got["not_asked"]),
                             (["r1", "r2", "r4"], {"r3": "not understood"}))
        status, out, err = gvctl("members", admin=one.admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"r3 +not understood ")
        self.assertIn("r3 is not understood: it speaks 3, this router 1", out)
        self.assertIn("Not asked: r3 (not understood)", self.converge(one, 3))
        c.close()
        mine.close()

    def test_a_router_alone_among_other_versions_serves(self):
        sim = self.sim(*FAST)
        foreign = self.build("r1", [sim], LATER, env={"FUTURE_SPEAKS": "3-3"})
        r = self.build("r2", [sim], None, join=foreign)
        ready = r.wait_event("cluster_ready")
        self.assertNotIn("from", ready)
        self.assertFalse(ready["alone"])
        self.assertEqual(ready["why"], "members that are not understood: 1")
        r.wait_up(1)
        self.assertEqual(self.client(r).post(CHAT, {"model": "sim", "max_tokens": 1, "messages": [
            message("user", "hello")]}).status, 200)


class Builds(Mixed):
    def labelled(self, folder, version):
        """This build's program, as one of another commit would be."""
        text, program = os.path.join(folder, "text"), os.path.join(folder, version)
        with open(text, "wb") as f:
            f.write(version.encode().ljust(32, b"\0"))
        subprocess.run(["objcopy", "--update-section", ".grapevine.version=" + text, binary("grapevine"), program], check=True)
        return program

    def test_builds_of_several_commits_are_distinguished(self):
        """All said 0.1.0, so nobody saw which routers an upgrade had reached. Builds before that, and releases, have no
        commit; a text longer than one router reads is no version."""
        sim, longest = self.sim(*FAST), "0.1.0+" + 25 * "f"
        own = subprocess.run([binary("grapevine"), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        self.assertRegex(own, r"^\d+\.\d+\.\d+(\+[0-9a-f]{8})?$")
        with tempfile.TemporaryDirectory() as folder:
            says = {"r1": own, "r2": "0.1.0", "r3": longest}
            one = self.build("r1", [sim], None)
            for name in ("r2", "r3"):
                self.build(name, [sim], self.labelled(folder, says[name]), join=one)
            self.wait_alive(one, list(says))
            self.assertEqual({name: m["version"] for name, m in self.members(one).items()}, says)
            self.assertEqual(one.wait_event("start")["version"], own)
            self.assertIn('grapevine_build_info{version="%s"' % own, one.admin("GET", "/metrics").body.decode())
            out = gvctl("members", admin=one.admin_port)[1]
            for version in set(says.values()):
                self.assertRegex(out, r"\nversion: .*%s \(\d\)" % re.escape(version))


class Before(Mixed):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.path.abspath(lib.BUILD) != os.path.join(TOP, "build"):
            raise unittest.SkipTest("skipped: only with the ordinary build")
        cls.folder_before = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder_before.cleanup)
        tree = sources_of(BEFORE, cls.folder_before.name)
        if tree is None:
            raise unittest.SkipTest("skipped: there is no commit %s here" % BEFORE)
        cls.spoke, cls.speaks = versions_of(tree), versions_of(TOP)
        if cls.spoke[1] == 0:
            raise unittest.SkipTest("skipped: %s is from before there were versions: an upgrade "
                                    "from it is two clusters (docs/replication.md)" % BEFORE)
        # The speed does not matter here: -O1 takes a third of the time.
        made = subprocess.run(["make", "-j2", "-s", "build/grapevine", "OPT_release=-O1", "WHOLE_release=", "WARN=-w"],
                              cwd=tree, timeout=240 * SLOW, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            raise unittest.SkipTest("skipped: %s does not build here: %s"
                                    % (BEFORE, made.stdout[-200:]))
        cls.before = os.path.join(tree, "build", "grapevine")

    def test_an_upgrade_from_the_commit_before(self):
        understood = max(self.spoke[0], self.speaks[0]) <= min(self.spoke[1], self.speaks[1])

        def look(nodes, number):
            fresh, old = nodes[number - 1], nodes[number % 3]
            self.assertEqual(self.quarantines(fresh), 0)
            if understood:
                self.converge(fresh, 3)
                self.converge(old, 3)
            elif number < 3:
                said = [m for m in self.members(fresh).values()
                        if m["address"].endswith(":%d" % old.gossip_port)]
                self.assertIn("not_understood", said[0], said)
            return understood or number == 3

        self.upgrade(self.before, None, look)


if __name__ == "__main__":
    unittest.main()

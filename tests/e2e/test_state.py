"""State of routers on disk: all restart at once and keep their knowledge; and an invalid file."""

import itertools
import json
import os
import random
import re
import shutil
import stat
import unittest

from lib import HOST, closed_port, wait_for
from lib_cluster import Clustered, Talk, run_grapevine
from test_engines import CHAT, message
from test_kv_events import SPEED, of

WRITTEN = 60  # a file is written every 10 s
CACHE = 65536  # tokens: enough for all conversations, also with a busy machine's extra turns


class Kept(Clustered):
    def place(self, name):
        return os.path.join(self.folder.name, name)

    def state(self, name):
        return ("--state-dir", self.place(name))

    def file(self, name):
        return os.path.join(self.place(name), "state")

    def publisher(self, *args):
        return self.sim(*SPEED, "--kv-events", "vllm-0.25", "--cache-tokens", str(CACHE), "--block-tokens", "16", *args)

    def end(self, routers, how):
        for r in routers:
            r.kill() if how == "kill" else r.stop()
            r.stopped = True

    def wait_written(self, routers):
        """Waits for a state file that was begun after this call."""
        before = [r.metric("state_files_total") + 1 for r in routers]
        wait_for(lambda: all(r.metric("state_files_total") > n for r, n in zip(routers, before)), "files of state", WRITTEN)


class Alone(Kept):
    def life(self, sims, *args):
        r = self.router([s.url for s in sims], "--scrape-interval", "200ms", *args)
        self.wait_began(r, sims)
        return r

    def wait_began(self, r, sims):
        """Beliefs about a cache are stored with its engine's start time, so this must be known first."""
        age = 'grapevine_replica_scrape_age_seconds{replica="%s"}'
        wait_for(lambda: all(r.metrics().get(age % s.name, -1) >= 0 for s in sims), "readings")

    def restart(self, how, args):
        sims = [self.sim(*SPEED) for _ in range(3)]
        r = self.life(sims, *args)
        talks = [Talk(self, n) for n in range(4)]
        for talk in talks:
            talk.ask(r)
            talk.ask(r)
        self.counted = [talk.counted(r) for talk in talks]
        if how == "kill" and args:
            self.wait_written([r])
        self.end([r], how)
        return self.life(sims, *args), talks

    def test_learned_state_survives_a_restart(self):
        r, talks = self.restart("end", self.state("a"))
        said = r.wait_event("state_read")
        self.assertGreater(said["bytes"], 1000)
        self.assertEqual([talk.counted(r) for talk in talks], self.counted)  # as before, by the answers' reports
        for talk in talks:
            held = talk.believed(r)
            self.assertGreater(held[talk.where[-1]], talk.prompt[-1] / 2, held)
            talk.ask(r)
            self.assertEqual(talk.where[-1], talk.where[-2])
            self.assertGreater(talk.cached[-1], talk.prompt[-2] / 2)

    def test_without_a_state_folder_nothing_is_kept(self):
        r, talks = self.restart("end", ())
        self.assertEqual([sum(talk.believed(r).values()) for talk in talks], [0] * 4)
        self.assertEqual((r.events("state_read"), r.metric("state_files_total"), r.metric("state_bytes")), ([], 0, 0))

    def test_an_engine_that_restarted_meanwhile_is_believed_empty(self):
        port = closed_port()
        sim = self.sim(*SPEED, port=port)
        r = self.life([sim], *self.state("a"))
        talk = Talk(self, 1)
        talk.ask(r)
        self.end([r], "end")
        sim.kill()
        sim = self.sim(*SPEED, port=port)
        r = self.life([sim], *self.state("a"))
        wait_for(lambda: sum(talk.believed(r).values()) == 0, "nothing is believed")

    def test_operators_changes_survive_a_restart(self):
        sims = [self.sim(*SPEED) for _ in range(2)]
        r = self.life(sims, *self.state("a"))
        self.assertEqual(r.admin("POST", "/drain?replica=" + sims[0].name).status, 200)
        self.end([r], "end")
        r = self.life(sims, *self.state("a"))
        self.assertEqual({x["name"]: x["health"] for x in r.admin("GET", "/replicas").json},
                         {sims[0].name: "draining", sims[1].name: "up"})

    def test_the_state_file_is_private(self):
        r = self.life([self.sim(*SPEED)], *self.state("a"))
        self.end([r], "end")
        self.assertEqual([stat.S_IMODE(os.stat(p).st_mode) for p in (self.place("a"), self.file("a"))], [0o700, 0o600])
        self.assertEqual(os.listdir(self.place("a")), ["state"])

    def test_an_invalid_state_file_is_refused(self):
        sim = self.sim(*SPEED)
        r = self.life([sim], *self.state("a"))
        Talk(self, 1).ask(r)
        self.end([r], "end")
        with open(self.file("a"), "rb") as f:
            good = f.read()
        cut, flipped = good[:-1], bytearray(good)
        flipped[len(good) // 2] ^= 1
        wrong = [(cut, 0o600, "is damaged, or was cut"), (bytes(flipped), 0o600, "is damaged, or was cut"),
                 (b"", 0o600, "is no state of grapevine"), (good, 0o640, "this user's alone")]
        for text, mode, why in wrong:
            with open(self.file("a"), "wb") as f:
                f.write(text)
            os.chmod(self.file("a"), mode)
            r = self.life([sim], *self.state("a"))
            said = r.wait_event("state_refused")
            self.assertIn(why, said["why"])
            self.assertEqual((said["aside"], r.events("state_read")), ("state.refused", []))
            with open(os.path.join(self.place("a"), said["aside"]), "rb") as f:
                self.assertEqual(f.read(), text)
            self.end([r], "end")
            self.assertEqual(stat.S_IMODE(os.stat(self.file("a")).st_mode), 0o600)
        os.remove(self.file("a"))
        os.mkdir(self.file("a"))
        r = self.life([sim], *self.state("a"))
        self.assertIn("is no regular file", r.wait_event("state_refused")["why"])

    def test_a_state_file_of_another_cluster_is_refused(self):
        sim = self.sim(*SPEED)
        r = self.life([sim], *self.state("a"))
        self.end([r], "end")
        node = self.node("r1", [sim], *self.state("a"))
        self.assertIn("another cluster", node.wait_event("state_refused")["why"])

    def test_a_deleted_state_folder_is_reported(self):
        """Nothing can be written there any more: the router serves on, and says so once."""
        r = self.life([self.sim(*SPEED)], *self.state("a"))
        shutil.rmtree(self.place("a"))
        said = wait_for(lambda: r.events_yet("state_not_written"), "it is said", WRITTEN)[0]
        self.assertEqual(said["error"], "No such file or directory")
        Talk(self, 1).ask(r)
        self.assertGreater(r.metric("state_failures_total"), 0)

    def test_an_unusable_state_folder_stops_the_start(self):
        os.mkdir(self.place("open"))
        os.chmod(self.place("open"), 0o777)
        with open(self.place("file"), "w"):
            pass
        wrong = [("open", "others may write there: chmod 700"), ("file", "is no folder"), ("no/where", "cannot be made")]
        if os.geteuid() == 0:
            os.mkdir(self.place("theirs"))
            os.chown(self.place("theirs"), 1234, -1)
            wrong.append(("theirs", "belongs to user 1234"))
        for name, why in wrong:
            status, err = run_grapevine("--replica", "http://127.0.0.1:1", *self.state(name))
            self.assertEqual(status, 2, err)
            self.assertRegex(err, "state-dir \"%s\": .*%s" % (re.escape(self.place(name)), why))
        status, err = run_grapevine("--replica", "http://127.0.0.1:1", "--check-config", *self.state("open"))
        self.assertEqual((status, "chmod 700" in err), (2, True))
        self.life([self.sim(*SPEED)], *self.state("a"))
        status, err = run_grapevine("--replica", "http://127.0.0.1:1", *self.state("a"))
        self.assertEqual((status, "another process uses it" in err), (2, True))


    def test_a_folder_in_a_volume_of_a_pod(self):
        """An emptyDir belongs to root, and with an fsGroup all may write there: the router makes its own folder in
        it."""
        os.mkdir(self.place("volume"))
        os.chmod(self.place("volume"), 0o2777)
        r, _ = self.restart("kill", self.state("volume/state"))
        self.assertGreater(r.wait_event("state_read")["bytes"], 1000)
        self.assertEqual(stat.S_IMODE(os.stat(self.place("volume/state")).st_mode) & 0o777, 0o700)
        status, err = run_grapevine("--replica", "http://127.0.0.1:1", "--check-config", *self.state("volume"))
        self.assertEqual((status, "others may write there" in err), (2, True))


class Together(Kept):
    """Three routers, two engines that publish what they cache."""

    def nodes_of(self, sims, ports, *args, keeps=True):
        nodes = []
        for i, port in enumerate(ports):
            name = "r%d" % (i + 1)
            more = self.state(name) if keeps else ()
            nodes.append(self.node(name, sims, *args, *more, listen="%s:%d" % (HOST, port), ready=False,
                                   join="%s:%d" % (HOST, ports[0])))
        for r in nodes:
            wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")
            self.wait_alive(r, ["r1", "r2", "r3"])
        return nodes

    def all_restart(self, how, replay, keeps=True, meanwhile=lambda sims: None):
        sims = [self.publisher(*(("--kv-replay-port", "0") if replay else ())) for _ in range(2)]
        ports = [closed_port() for _ in range(3)]
        nodes = self.nodes_of(sims, ports, keeps=keeps)
        clients = [self.client(s) for s in sims]

        def are_live():
            """Without a replay endpoint a router knows that events come only after a message."""
            for client in clients:
                text = "first %d " % random.randrange(10 ** 6) * 60
                client.post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [message("user", text)]})
            return all(of(r, "live", s.name) for r in nodes for s in sims)
        wait_for(are_live, "events are live")
        wait_for(lambda: all(sum(of(r, "read", s.name) for r in nodes) == 2 for s in sims) and
                 sum(r.metric("events_feeds") for r in nodes) == 4, "two routers read each")
        talks = [Talk(self, n) for n in range(6)]
        turns = itertools.count()

        def are_tied():
            """Timing decides which answers are tied: on a busy machine it takes more of them."""
            turn = next(turns)
            for i, talk in enumerate(talks):
                talk.ask(nodes[(turn + i) % 3])
            return turn > 1 and sum(of(r, "tied_total", s.name) for r in nodes for s in sims) >= 12
        wait_for(are_tied, "it is known where prompts stand", step=0.5)
        held = [talk.believed(nodes[0]) for talk in talks]
        if how == "kill" and keeps:
            self.wait_written(nodes)
        self.end(nodes, how)
        meanwhile(sims)
        return self.nodes_of(sims, ports, keeps=keeps), talks, held, sims

    def near(self, got, held):
        """Exact values come from the last answers, which are not kept."""
        return all(abs(g[name] - h[name]) <= 0.1 * h[name] for g, h in zip(got, held) for name in h)

    def crowd(self, sims):
        """Prompts that bypass the routers and fill the caches."""
        for s in sims:
            tokens = 0
            for n in itertools.count():
                text = " ".join("crowd %d has word %d." % (n, i) for i in range(1600))
                got = self.client(s).post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [message("user", text)]})
                self.assertEqual(got.status, 200)
                tokens += got.json["usage"]["prompt_tokens"]
                if tokens > CACHE:
                    break

    def go_on(self, nodes, talks):
        """The number of talks whose place a router knows, and where it finds the expected cache. Load decides the
        places."""
        known = 0
        for i, talk in enumerate(talks):
            believed = talk.believed(nodes[i % 3])
            talk.ask(nodes[i % 3])
            known += (believed[talk.where[-2]] > talk.prompt[-2] * 0.9 and
                      abs(talk.cached[-1] - believed[talk.where[-1]]) < talk.prompt[-1] * 0.1)
        return known

    def test_with_a_replay_beliefs_are_exact_again(self):
        nodes, talks, held, sims = self.all_restart("kill", True)
        for r in nodes:
            self.assertGreater(r.wait_event("state_read")["bytes"], 1000)
        for s in sims:
            wait_for(lambda: sum(of(r, "whole", s.name) for r in nodes) == 2, "two have read it")
            wait_for(lambda: all(of(r, "live", s.name) for r in nodes), "events are live")
            self.assertGreater(sum(of(r, "blocks", s.name) for r in nodes), 0)
            self.assertEqual(sum(of(r, "missed_total", s.name) for r in nodes), 0)
        for r in nodes:
            wait_for(lambda: self.near([talk.believed(r) for talk in talks], held), "what was held")
        self.assertEqual(self.go_on(nodes, talks), len(talks))

    def test_blocks_evicted_meanwhile_are_forgotten(self):
        nodes, talks, held, sims = self.all_restart("end", True, meanwhile=self.crowd)
        for r in nodes:
            wait_for(lambda: sum(sum(talk.believed(r).values()) for talk in talks) == 0, "all is gone")
        self.assertEqual(sum(of(r, "missed_total", s.name) for r in nodes for s in sims), 0)

    def test_without_a_replay_beliefs_are_estimates(self):
        nodes, talks, held, sims = self.all_restart("end", False)
        for s in sims:
            self.assertEqual(sum(of(r, "whole", s.name) for r in nodes), 0)
        self.assertEqual(self.go_on(nodes, talks), len(talks))
        for s in sims:
            self.assertEqual(sum(of(r, "whole", s.name) for r in nodes), 0)

    def test_a_silent_replay_endpoint_leaves_beliefs_as_estimates(self):
        def be_silent(sims):
            for s in sims:
                s.call("POST", "/sim/kv", {"replay": False})
        nodes, talks, held, sims = self.all_restart("end", True, meanwhile=be_silent)
        for s in sims:
            wait_for(lambda: sum(of(r, "missed_total", s.name) for r in nodes) > 0
                     and sum(of(r, "whole", s.name) for r in nodes) == 0, "its readers are in doubt")
        self.assertEqual(self.go_on(nodes, talks), len(talks))

    def test_without_state_files_nothing_is_known(self):
        nodes, talks, held, sims = self.all_restart("end", True, keeps=False)
        self.assertEqual([sum(talk.believed(nodes[0]).values()) for talk in talks], [0] * len(talks))


if __name__ == "__main__":
    unittest.main()

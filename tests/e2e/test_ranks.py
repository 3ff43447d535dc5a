"""Data-parallel ranks of one engine: replicas of their own that share a process."""

import collections
import json
import subprocess
import unittest

from lib import LIMIT, Case, binary, wait_for
from lib_cluster import Clustered
from test_engines import CHAT, FAST, message, words
from test_watchdog import Load

RANKS = 3
# A router measures the speed of each rank, so the time that a busy machine adds to an answer must be small compared
# with prefill. With
# times compressed 50 times, as elsewhere (FAST), conversations left ranks that seemed slow.
PACE = ("--speed-up", "5", "--prefill-rate", "1000", "--output-tokens", "5")
# Turns 2 to 4 of 4 could have 60 % from cache, and by chance a third of that. On a busy machine a rank may seem slow, and
# some of them go elsewhere.
FOUND = 0.35


def body(session, turns=1, **more):
    """A conversation that grows: each turn begins with the one before."""
    text = " ".join(words(session * 100 + i, 300) for i in range(turns))
    return {"model": "sim", "max_tokens": 2, "messages": [message("user", text)], **more}


class RanksCase(Case):
    def engine(self, *args, ranks=RANKS):
        return self.sim(*PACE, "--data-parallel", str(ranks), *args)

    def rows(self, router):
        return {r["name"]: r for r in router.admin("GET", "/replicas").json}

    def ready(self, router, engine, ranks=RANKS):
        names = ["%s@%d" % (engine.name, i) for i in range(ranks)]
        wait_for(lambda: [n for n in self.rows(router) if n.startswith(engine.name + "@")] == names,
                 "the ranks")

    def by_rank(self, engine):
        return [r["requests"] for r in engine.call("GET", "/sim/stats")["ranks"]]

    def cached_share(self, engine):
        ranks = engine.call("GET", "/sim/stats")["ranks"]
        return sum(r["cached_tokens"] for r in ranks) / sum(r["prompt_tokens"] for r in ranks)

    def talk(self, routers, sessions=9, turns=4):
        """All sessions in turn, each turn at the next router, once all know of the one before. How many requests each
        rank served, by the routers' word."""
        clients = [self.client(r) for r in routers]
        served = collections.Counter()
        for turn in range(1, turns + 1):
            if len(routers) > 1:
                self.converge(routers[0], len(routers))
            for s in range(sessions):
                got = clients[(s + turn) % len(clients)].post(CHAT, body(s, turn))
                self.assertEqual(got.status, 200, got)
                served[got.get("x-grapevine-replica")] += 1
        for c in clients:
            c.close()
        return served


class Ranks(RanksCase):
    def test_metrics_reveal_ranks_and_prompts_find_their_rank(self):
        one = self.engine()
        r = self.router([one.url])
        self.ready(r, one)
        served = self.talk([r])
        self.assertEqual(self.by_rank(one), [served["%s@%d" % (one.name, i)] for i in range(RANKS)])
        self.assertGreater(self.cached_share(one), FOUND)
        row = self.rows(r)["%s@1" % one.name]
        self.assertEqual((row["health"], row["rank"]), ("up", 1))
        self.assertGreater(row["learned"]["prefill_tokens_per_s"], 0)
        self.assertEqual(self.rows(r)[one.name]["chosen"], 0)

    def test_without_pins_the_rank_is_random(self):
        """The control group: without pinning, the engine's choice is random."""
        one = self.engine("--engine", "sglang")
        r = self.router([one.url + "#ranks=1"])
        self.talk([r], sessions=10)
        self.assertEqual(list(self.rows(r)), [one.name])
        self.assertLess(self.cached_share(one), 0.4)

    def test_prompts_find_their_rank_in_sglang(self):
        one = self.engine("--engine", "sglang")
        r = self.router([one.url])
        self.ready(r, one)
        self.talk([r], sessions=10)
        self.assertGreater(self.cached_share(one), FOUND)

    def test_a_stored_response_is_continued_at_its_rank(self):
        """Of SGLang. vLLM chooses the rank of each request by itself, behind one address."""
        for engine, at in (("sglang", "@"), ("vllm", ":")):
            with self.subTest(engine):
                one, other = (self.engine("--engine", engine) for _ in range(2))
                r = self.router([one.url, other.url])
                self.ready(r, one)
                self.ready(r, other)
                c = self.client(r)
                for s in range(6):
                    first = c.post("/v1/responses", {"model": "sim", "input": words(s, 300)})
                    then = c.post("/v1/responses", {"model": "sim", "input": "and then?",
                                                    "previous_response_id": first.json["id"]})
                    where = then.get("x-grapevine-replica")
                    self.assertEqual((then.status, first.get("x-grapevine-replica")), (200, where))
                    self.assertIn(at, where)
                if engine == "sglang":
                    stats = one.call("GET", "/sim/stats"), other.call("GET", "/sim/stats")
                    shares = [x["cached_tokens"] / x["prompt_tokens"] for e in stats
                              for x in e["ranks"] if x["prompt_tokens"] > 0]
                    self.assertGreater(min(shares), 0.4)

    def test_hybrid_numbers_are_global_and_pins_local(self):
        one = self.engine("--data-parallel-start", "5")
        r = self.router([one.url])
        self.ready(r, one)
        self.talk([r])
        self.assertGreater(self.cached_share(one), FOUND)

    def test_settings_give_the_ranks_if_metrics_do_not(self):
        one = self.engine("--metrics", "off")
        r = self.router([one.url + "#ranks=%d" % RANKS])
        self.ready(r, one)
        self.talk([r])
        self.assertGreater(self.cached_share(one), FOUND)

    def test_a_clients_rank_header_does_not_override_the_router(self):
        one = self.engine()
        r = self.router([one.url])
        self.ready(r, one)
        c = self.client(r)
        first = c.post(CHAT, body(1), [("X-Data-Parallel-Rank", "77")])
        self.assertEqual(first.status, 200, first)

    def test_an_engine_restarted_with_fewer_ranks(self):
        one = self.engine()
        r = self.router([one.url])
        self.ready(r, one)
        self.talk([r], turns=1)
        port = one.port
        one.stop()
        two = self.sim(*FAST, "--data-parallel", "2", port=port)
        c = self.client(r)
        wait_for(lambda: r.get("/health").status == 200, "the engine")
        for s in range(12):
            got = c.post(CHAT, body(s, stream=s % 2 == 1))
            self.assertEqual(got.status, 200, got)
            self.assertNotIn(b"out of range", got.body)
        self.ready(r, two, ranks=2)

    def again(self, engine, *args):
        """Another engine at its address."""
        port = engine.port
        engine.stop()
        return self.sim(*FAST, *args, port=port)

    def test_an_address_restarted_as_another_engine_kind(self):
        one = self.engine(ranks=2)
        r = self.router([one.url])
        self.ready(r, one, ranks=2)
        two = self.again(one, "--data-parallel", "3", "--engine", "sglang")
        self.ready(r, two)
        wait_for(lambda: {row["engine"] for row in self.rows(r).values()} == {"sglang"},
                 "the other kind")
        c = self.client(r)
        for _ in range(4):  # which only SGLang lets pin
            got = c.post("/v1/responses", {"model": "sim", "input": words(1, 99),
                                           "max_output_tokens": 2})
            self.assertIn("@", got.get("x-grapevine-replica"))

    def test_the_engine_kind_in_settings_takes_precedence(self):
        one = self.engine("--engine", "sglang")
        r = self.router([one.url + "#engine=vllm"])
        self.ready(r, one)
        self.assertEqual({row["engine"] for row in self.rows(r).values()}, {"vllm"})

    def test_fewer_ranks_without_metrics(self):
        """Only /server_info says how many there are, which is asked for once a minute, when the
        engine is back, and when it refuses a pin."""
        sglang = ("--engine", "sglang", "--metrics", "off")
        one = self.engine(*sglang)
        r = self.router([one.url], "--policy", "round_robin")
        self.ready(r, one)
        two = self.again(one, *sglang, "--data-parallel", "2")
        self.talk([r], turns=1)
        self.ready(r, two, ranks=2)
        two.stop()
        wait_for(lambda: self.rows(r)[one.name]["health"] == "down", "its end to be known")
        self.ready(r, self.sim(*FAST, *sglang, port=two.port), ranks=0)
        self.talk([r], turns=1)

    def test_a_label_with_too_many_ranks_is_reported(self):
        """The missing ranks are tried for ever, each time in vain: the label's author must learn of them."""
        one = self.engine()
        r = self.router([one.url + "#ranks=5"], "--scrape-interval", "1s")
        said = r.wait_event("replica_ranks_differ")
        self.assertEqual((said["replica"], said["label"], said["metrics"]), (one.name, 5, RANKS))
        age = 'replica_scrape_age_seconds{replica="%s"}' % one.name
        wait_for(lambda: r.metric(age) > 0.5, "the next reading to be near")
        wait_for(lambda: r.metric(age) < 0.5, "the next reading")
        self.assertEqual(len(r.events("replica_ranks_differ")), 1)

    def test_an_engine_dies_with_all_its_ranks(self):
        one, other = self.engine(), self.sim(*FAST)
        r = self.router([one.url, other.url])
        self.ready(r, one)
        self.talk([r], turns=1)
        one.stop()
        self.talk([r], turns=1)
        wait_for(lambda: all(row["health"] == "down" for name, row in self.rows(r).items()
                             if name.startswith(one.name)), "its end to be known")

    def test_only_the_hung_rank_is_avoided(self):
        """The other ranks of its process move, and go on being used."""
        for engine in ("sglang", "vllm"):
            with self.subTest(engine):
                one = self.sim("--data-parallel", "3", "--engine", engine)
                r = self.router([one.url], "--policy", "round_robin")
                self.ready(r, one)
                load = Load(r, 20)
                wait_for(lambda: min(self.by_rank(one)) > 5, "work at each rank")
                one.call("POST", "/sim/fail", {"mode": "stuck", "rank": 1})
                stalled = r.wait_event("replica_stalled")
                self.assertEqual(stalled["replica"], "%s@1" % one.name)
                row = self.rows(r)["%s@1" % one.name]
                self.assertEqual((row["why"], row["avoided"]), ("stalled", True))
                self.assertEqual(self.rows(r)["%s@0" % one.name]["why"], "")
                before = self.by_rank(one)[0]
                wait_for(lambda: self.by_rank(one)[0] > before + 5, "work at another rank")
                one.call("POST", "/sim/fail", {"mode": "none"})
                results = load.stop()
                self.assertEqual([x for x in results if x[0] != 200], [])
                self.assertLess(max(x[1] for x in results), LIMIT)
                self.assertEqual(r.metric('replica_stalls_total{replica="%s"}' % one.name), 0)
                r.wait_event("replica_stall_over")

    def test_drain_one_rank_or_all(self):
        one, other = self.engine(), self.sim(*FAST)
        r = self.router([one.url, other.url], "--policy", "round_robin")  # else by chance
        self.ready(r, one)
        gvctl = [binary("gvctl"), "--admin", "http://127.0.0.1:%d" % r.admin_port]
        subprocess.run(gvctl + ["drain", one.name + "@1"], check=True, capture_output=True)
        self.talk([r], turns=1)
        self.assertEqual(self.by_rank(one)[1], 0)
        self.assertGreater(self.by_rank(one)[0], 0)
        self.assertEqual(self.rows(r)[one.name + "@1"]["health"], "draining")
        shown = subprocess.run(gvctl + ["replicas"], capture_output=True, text=True, check=True)
        self.assertIn("ranks:3", shown.stdout)
        subprocess.run(gvctl + ["drain", one.name], check=True, capture_output=True)
        before = sum(self.by_rank(one))
        self.talk([r], turns=1)
        self.assertEqual(sum(self.by_rank(one)), before)
        for rank in ("64", "01"):
            said = subprocess.run(gvctl + ["drain", "%s@%s" % (one.name, rank)],
                                  capture_output=True, text=True)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("want a rank from 0 to 63", said.stderr)
        for verb in ("add", "remove"):
            said = subprocess.run(gvctl + [verb, one.name + "@1"], capture_output=True, text=True)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("ranks are added and removed with their replica", said.stderr + said.stdout)


class RanksOfACluster(RanksCase, Clustered):
    def test_drain_a_rank_on_the_routers_own_loopback(self):
        """The rank's name includes the router's name if the settings say that there are other machines."""
        one = self.engine(ranks=2)
        r = self.node("A", [one.url], "--gossip-advertise", "192.0.2.1:7490", "--policy", "round_robin")
        rank = one.name + "@A@%d"
        wait_for(lambda: {rank % 0, rank % 1} <= set(self.rows(r)), "the ranks")
        gvctl = [binary("gvctl"), "--admin", "http://127.0.0.1:%d" % r.admin_port]
        subprocess.run(gvctl + ["drain", rank % 1], check=True, capture_output=True)
        self.assertEqual(self.rows(r)[rank % 1]["health"], "draining")
        self.talk([r], turns=1)
        self.assertEqual(self.by_rank(one)[1], 0)
        subprocess.run(gvctl + ["undrain", rank % 1], check=True, capture_output=True)
        self.assertEqual(self.rows(r)[rank % 1]["health"], "up")

    def test_explain_scores_ranks(self):
        """As for a request that can be pinned, at the called router and at the others."""
        one = self.engine()
        routers = self.cluster(2, [one.url])
        for r in routers:
            self.ready(r, one)
        ranks = ["%s@%d" % (one.name, i) for i in range(RANKS)]
        asked = json.dumps(body(1)).encode()
        alone = routers[0].admin("POST", "/explain", asked).json
        every = routers[0].admin("POST", "/explain?all=1", asked).json["nodes"]
        self.assertEqual(len(every), 2)
        for got in [alone] + list(every.values()):
            self.assertEqual([c["replica"] for c in got["replicas"]], ranks, got)
            self.assertEqual(got["left_out"], [])

    def test_several_routers_know_the_same_ranks(self):
        one = self.engine()
        routers = self.cluster(3, [one.url])
        for r in routers:
            self.ready(r, one)
        # The load decides about a conversation's first rank, so drains decide it here: three at each.
        first, client = routers[0], self.client(routers[0])
        for s in range(9):
            others = ["%s@%d" % (one.name, i) for i in range(RANKS) if i != s % RANKS]
            for name in others:
                self.assertEqual(first.admin("POST", "/drain?replica=" + name).status, 200)
            got = client.post(CHAT, body(s))
            self.assertEqual(got.get("x-grapevine-replica"), "%s@%d" % (one.name, s % RANKS))
            for name in others:
                self.assertEqual(first.admin("POST", "/undrain?replica=" + name).status, 200)
        wait_for(lambda: all(row["health"] == "up" for r in routers for row in self.rows(r).values()),
                 "the last drain to be over everywhere")
        client.close()
        self.assertEqual(self.by_rank(one), [3] * RANKS)
        self.talk(routers)  # its first turns are those above
        self.assertGreater(self.cached_share(one), FOUND)  # of 64 %, and 21 % by chance


if __name__ == "__main__":
    unittest.main()

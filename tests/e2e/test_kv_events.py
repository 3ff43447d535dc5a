"""KV-cache events: a router finds an engine's feed by itself and reads it, and another router takes over."""

import itertools
import json
import os
import re
import unittest

from lib import HOST, closed_port, wait_for
from lib_cluster import Clustered, Talk
from lib_wait import quiet_for, stopped

SPEED = ("--speed-up", "5")


def of(router, name, replica):
    return router.metrics().get('grapevine_replica_events_%s{replica="%s"}' % (name, replica), 0)


class Events(Clustered):
    def publisher(self, *args, form="vllm-0.25", port=0):
        return self.sim(*SPEED, "--kv-events", form, "--kv-replay-port", "0", *args, port=port)

    def wait_read(self, router, replica):
        """Waits until blocks are known and the last message is read."""
        wait_for(lambda: of(router, "read", replica) == 1 and of(router, "blocks", replica) > 0,
                 "blocks of " + replica)

    def test_a_router_finds_the_feed(self):
        sim, other = self.publisher(), self.sim(*SPEED)
        talk = Talk(self, 1)
        r = self.router([sim.url, other.url])
        wait_for(lambda: of(r, "read", sim.name) == 1, "the feed")
        while sim.name not in talk.where:
            talk = Talk(self, talk.seed + 1)
            talk.ask(r)
        self.wait_read(r, sim.name)
        self.assertEqual((of(r, "speaks", sim.name), r.metric("events_feeds")), (1, 1))
        self.assertEqual(of(r, "read", other.name), 0)
        self.assertEqual(r.wait_event("kv_events_live")["replica"], sim.name)
        self.assertEqual(of(r, "whole", sim.name), 1)
        before = of(r, "messages_total", sim.name)
        sim.call("POST", "/sim/kv", {"drop": 2})
        for _ in range(6):  # lost and found again
            talk.ask(r)
        wait_for(lambda: of(r, "messages_total", sim.name) > before and of(r, "read", sim.name) == 1 and
                 of(r, "gaps_total", sim.name) > 0, "what was missing")
        self.assertEqual(of(r, "missed_total", sim.name), 0)

    def test_the_feed_of_a_restarted_engine_is_read_on(self):
        port, events, again = (closed_port() for _ in range(3))
        ports = ("--kv-events-port", str(events), "--kv-replay-port", str(again))
        sim = self.publisher(*ports, port=port)
        r = self.router([sim.url], "--health-interval", "100ms", "--scrape-interval", "100ms")
        Talk(self, 3).ask(r)
        self.wait_read(r, sim.name)
        r.wait_event("kv_events_live")
        sim.kill()
        r.wait_event("kv_events_lost")
        sim = self.publisher(*ports, port=port)
        wait_for(lambda: of(r, "read", sim.name) == 1, "the feed again")
        self.assertEqual(of(r, "blocks", sim.name), 0)
        Talk(self, 3).ask(r)
        self.wait_read(r, sim.name)

    def blocks_of_another_size(self, *args):
        """An engine that is restarted with other blocks in the same place, and what its router says of the next ones."""
        port, events, again = (closed_port() for _ in range(3))
        ports = ("--kv-events-port", str(events), "--kv-replay-port", str(again))
        sim = self.publisher(*ports, "--block-tokens", "64", port=port)
        how = ("--health-interval", "100ms", "--scrape-interval", "100ms", *args)
        r = self.router([sim.url], *how)
        talk = Talk(self, 8)

        def tied():
            talk.ask(r)
            return of(r, "tied_total", sim.name)
        wait_for(tied, "prompts of blocks of 64 are known")
        sim.kill()
        r.wait_event("kv_events_lost")
        sim = self.publisher(*ports, "--block-tokens", "16", port=port)
        wait_for(lambda: of(r, "read", sim.name) == 1, "the feed again")
        return r, sim, talk, how

    def assert_size_is_taken(self, r, sim, talk):
        before = of(r, "tied_total", sim.name)

        def tied():
            talk.ask(r)
            return of(r, "tied_total", sim.name) > before
        wait_for(tied, "prompts of blocks of 16 are known")
        row = r.admin("GET", "/replicas").json[0]
        self.assertEqual((row["cache"]["from"], row["events"]["state"], row["events"]["speaks"], row["events"]["block_tokens"]),
                         ("events", "live", True, 16))
        self.assertEqual(r.metric("events_foreign_blocks_total"), 0)

    def test_an_engine_restarts_with_blocks_of_another_size(self):
        state = ("--state-dir", os.path.join(self.folder.name, "state"))
        r, sim, talk, how = self.blocks_of_another_size(*state)
        self.assert_size_is_taken(r, sim, talk)
        r.stop()
        r.stopped = True
        r = self.router([sim.url], *how)
        wait_for(lambda: of(r, "read", sim.name) == 1, "the feed in the next life")
        self.assert_size_is_taken(r, sim, talk)

    def test_two_engines_with_blocks_of_different_sizes(self):
        sim, other = self.publisher("--block-tokens", "64"), self.publisher("--block-tokens", "16")
        r = self.router([sim.url, other.url])
        seeds = itertools.count(20)

        def both_tied():
            Talk(self, next(seeds)).ask(r)
            rows = {row["name"]: row["events"] or {} for row in r.admin("GET", "/replicas").json}
            return all(rows[e.name].get("tied", 0) > 0 for e in (sim, other)) and rows
        rows = wait_for(both_tied, "answers of both are found in their events")
        self.assertEqual([rows[e.name]["block_tokens"] for e in (sim, other)], [64, 16])
        for e in (sim, other):
            self.assertEqual((rows[e.name]["state"], rows[e.name]["speaks"]), ("live", True))
            wait_for(lambda: of(r, "speaks", e.name) == 1, "it speaks")
        self.assertEqual(r.metric("events_foreign_blocks_total"), 0)

    def test_sglang_and_ranks(self):
        sim = self.publisher("--engine", "sglang", "--data-parallel", "2", form="sglang-0.5.15")
        ranks = [sim.name + "@0", sim.name + "@1"]
        r = self.router([sim.url], wait_up=False)
        wait_for(lambda: all(of(r, "read", rank) == 1 for rank in ranks), "both ranks")
        self.assertEqual(of(r, "read", sim.name), 0)
        talk = Talk(self, 4)
        talk.ask(r)
        self.wait_read(r, talk.where[0])

    def test_a_label_names_a_feed_that_the_engine_does_not(self):
        events = closed_port()
        quiet = self.publisher("--kv-events-port", str(events), "--kv-topic", "kv@x")
        label = "#kv-events=tcp://%s:%d?topic=kv@" % (HOST, events)
        r = self.router([self.sim(*SPEED).url + label], "--log-level", "debug")
        own = r.events("replica_up")[0]["replica"]
        wait_for(lambda: of(r, "connects_total", own) > 0, "a subscription")
        Talk(self, 5).ask(self.router([quiet.url]))
        wait_for(lambda: of(r, "messages_total", own) > 0, "messages of the other host")
        off = self.router([quiet.url], "--kv-events", "off")
        Talk(self, 6).ask(off)
        self.assertEqual(off.metric("events_feeds"), 0)
        threads = [len(os.listdir("/proc/%d/task" % router.pid)) for router in (off, r)]
        self.assertLess(*threads)  # libzmq starts its threads with the first feed

    def test_another_router_takes_over_reading(self):
        sim = self.publisher()
        nodes = self.cluster(3, [sim])
        def roles():
            return sorted((of(r, "speaks", sim.name), of(r, "read", sim.name), r.metric("events_feeds")) for r in nodes)
        def heard():
            return all(of(r, "live", sim.name) == 1 for r in nodes)
        wait_for(lambda: roles() == [(0, 0, 0), (0, 1, 1), (1, 1, 1)], "one speaks, one stands by")
        wait_for(heard, "all know it")

        def settled():
            before = [(r.pid, of(r, "speaks", sim.name), of(r, "read", sim.name)) for r in nodes]
            quiet_for(3, "the last router to start may go first, and says only within two seconds that it reads")
            return before == [(r.pid, of(r, "speaks", sim.name), of(r, "read", sim.name)) for r in nodes]
        wait_for(settled, "an order")
        Talk(self, 7).ask(nodes[0])
        for r in nodes:
            if of(r, "read", sim.name):
                self.wait_read(r, sim.name)
        first = next(r for r in nodes if of(r, "speaks", sim.name))
        second = next(r for r in nodes if of(r, "read", sim.name) and r is not first)
        known = of(second, "messages_total", sim.name)
        first.stopped = True
        first.kill()
        nodes.remove(first)
        wait_for(lambda: roles() == [(0, 1, 1), (1, 1, 1)] and of(second, "speaks", sim.name) == 1, "the next ones move up")
        wait_for(heard, "both know it")
        self.assertEqual(of(second, "connects_total", sim.name), 1)  # continued from its state as standby
        self.assertGreaterEqual(of(second, "messages_total", sim.name), known)

    def test_the_router_that_knows_more_keeps_reading(self):
        """Without a replay a restarted router knows nothing of the contents. The router remains standby, even if its
        hash puts it first."""
        sim = self.sim(*SPEED, "--kv-events", "vllm-0.25", "--block-tokens", "16")
        nodes = self.cluster(2, [sim])

        def ask(n):
            self.assertEqual(self.client(nodes[0]).post("/v1/chat/completions", self.prompt(n)).status, 200)

        def roles():
            return [(of(r, "speaks", sim.name), r.metric("events_feeds")) for r in nodes]

        def settled():
            sim.call("POST", "/sim/kv", {"forget": True, "number": 0})  # both hear of it, if they are connected
            ask(1)
            before = roles()
            quiet_for(3, "the last router to start may go first, and says only within two seconds that it reads")
            return before == roles() and sorted(before) == [(0, 1), (1, 1)]
        wait_for(settled, "one speaks, one stands by")
        at = roles().index((1, 1))
        first, port = nodes[at], nodes[at].gossip_port
        first.stopped = True
        first.kill()
        nodes[at] = self.node("r%d" % (at + 1), [sim], join=nodes[1 - at], listen="%s:%d" % (HOST, port))
        wait_for(lambda: roles()[1 - at] == (1, 1) and roles()[at] == (0, 1), "the other one reads on")
        quiet_for(5, "by its hash it would take over within two seconds")
        ask(2)
        self.assertEqual((roles()[1 - at], roles()[at]), ((1, 1), (0, 1)))

    def prompt(self, n):
        return {"model": "sim", "max_tokens": 4, "messages": [
            {"role": "user", "content": " ".join("prompt %d has word %d." % (n, i) for i in range(150))}]}

    def held(self, r, n):
        """Tokens of that prompt which the router believes cached."""
        got = r.admin("POST", "/explain", json.dumps(self.prompt(n)).encode()).json
        return got["replicas"][0]["cached_tokens"]

    def tie(self, nodes, sim, readers):
        """Repeats a cached prompt until this number of readers knows its blocks. On a busy machine it takes more
        prompts."""
        tried = itertools.count(1)

        def tied():
            n, before = next(tried), [of(r, "tied_total", sim.name) for r in nodes]
            self.assertEqual(self.client(nodes[0]).post("/v1/chat/completions", self.prompt(n)).status, 200)
            quiet_for(1, "one that has heard nothing may hear it yet, or never")
            rose = sum(of(r, "tied_total", sim.name) > b for r, b in zip(nodes, before))
            return n if rose >= readers and all(self.held(r, n) > 500 for r in nodes) else 0
        return wait_for(tied, "readers know where a prompt stands")

    def test_a_stalled_reader_is_replaced(self):
        """The standby router announces what was evicted meanwhile, also before any router noticed the silent reader."""
        sim = self.publisher("--cache-tokens", "4096", "--block-tokens", "16")
        nodes = self.cluster(3, [sim])

        def speakers(routers):
            return [r for r in routers if of(r, "speaks", sim.name)]
        wait_for(lambda: len(speakers(nodes)) == 1 and sum(of(r, "read", sim.name) for r in nodes) == 2 and
                 all(of(r, "live", sim.name) == 1 for r in nodes), "one speaks, one stands by")

        n = self.tie(nodes, sim, 2)
        first = speakers(nodes)[0]
        rest = [r for r in nodes if r is not first]
        with stopped(first):
            for other in range(100, 106):
                self.assertEqual(self.client(sim).post("/v1/chat/completions", self.prompt(other)).status, 200)
            wait_for(lambda: len(speakers(rest)) == 1, "the next one speaks")
            for r in rest:
                wait_for(lambda: self.held(r, n) == 0, "it is gone")  # noqa: B023
        wait_for(lambda: len(speakers(nodes)) == 1, "one speaks again")
        for r in nodes:
            wait_for(lambda: self.held(r, n) == 0, "it is gone for all")  # noqa: B023

    def test_a_restart_that_only_the_feed_shows_is_noticed(self):
        sim = self.publisher("--metrics", "off", "--block-tokens", "16")
        r = self.router([sim.url])
        wait_for(lambda: of(r, "live", sim.name) == 1, "events are live")
        n = self.tie([r], sim, 1)
        sim.call("POST", "/sim/kv", {"forget": True, "number": 0})
        self.assertEqual(self.client(sim).post("/v1/chat/completions", self.prompt(100)).status, 200)
        wait_for(lambda: self.held(r, n) == 0, "it is gone")
        self.assertEqual(r.admin("GET", "/replicas").json[0]["cache"]["from"], "events")
        self.assertEqual(r.wait_event("replica_restarted")["replica"], sim.name)

    def test_a_router_with_kv_events_off_does_not_read(self):
        sim = self.publisher()
        one = self.node("r1", [sim], "--kv-events", "off")
        two = self.node("r2", [sim], "--kv-events", "off", join=one)
        three = self.node("r3", [sim], join=one)
        wait_for(lambda: of(three, "speaks", sim.name) == 1, "the only one that reads speaks")
        wait_for(lambda: all(of(r, "live", sim.name) == 1 for r in (one, two)), "all know it")
        self.assertEqual([r.metric("events_feeds") for r in (one, two, three)], [0, 0, 1])
        self.assertIsNone(one.admin("GET", "/replicas").json[0]["events"])

    def test_events_of_another_engine_are_not_believed(self):
        events, again = closed_port(), closed_port()
        other = self.publisher("--kv-events-port", str(events), "--kv-replay-port", str(again))
        sim = self.sim(*SPEED)
        r = self.router([sim.url + "#kv-events=tcp://%s:%d?replay=%d" % (HOST, events, again)])
        r.wait_event("kv_events_live")
        wait_for(lambda: of(r, "live", sim.name) == 1, "they are live")

        def ask(client, n):
            text = " ".join("word %d of text %d." % (i, n % 3) for i in range(60 + 10 * (n // 3)))
            client.post("/v1/chat/completions", {"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": text}]})
        beside, client, n = self.client(other), self.client(r), 0
        for n in range(300):
            ask(beside, n * 7 % 100)
            ask(client, n)
            if r.events("kv_events_disbelieved"):
                break
        said = r.wait_event("kv_events_disbelieved")
        self.assertEqual((said["replica"], said["level"], said["minutes"]), (sim.name, "warn", 5))
        self.assertGreater(said["unmatched"], said["tied"])
        row = r.admin("GET", "/replicas").json[0]
        self.assertEqual((row["events"]["state"], row["events"]["speaks"]), ("contradicts", False))
        self.assertNotEqual(row["cache"]["from"], "events")
        self.assertEqual(row["events"]["from"], "tcp://%s:%d" % (HOST, events))
        self.assertEqual(of(r, "disbelieved_total", sim.name), 1)
        texts = [e["text"] for e in r.admin("GET", "/events").json["events"]]
        self.assertTrue(any("contradict its KV-cache events from tcp://" in t for t in texts), texts)

    def test_evictions_by_requests_that_bypass_routers_are_seen(self):
        """Requests that bypass the routers evict a prompt: every router learns this from the router that reads the
        events."""
        sim = self.publisher("--cache-tokens", "4096", "--block-tokens", "16")
        nodes = self.cluster(2, [sim])
        wait_for(lambda: all(of(r, "live", sim.name) == 1 for r in nodes), "events are live")
        n = self.tie(nodes, sim, 2)  # the one that speaks has to know it
        for other in range(100, 106):
            self.assertEqual(self.client(sim).post("/v1/chat/completions", self.prompt(other)).status, 200)
        for r in nodes:
            wait_for(lambda: self.held(r, n) == 0, "it is gone")
            self.assertEqual(r.admin("GET", "/replicas").json[0]["cache"]["from"], "events")

    def test_requested_tokens_tie_prompts_to_blocks(self):
        """The engine is asked for the tokens of prompts: clients see nothing of it, and the reader, another router, finds their blocks.

        Answers of one token: the pieces of longer ones depend on time."""
        sim = self.publisher("--cache-tokens", "65536", "--block-tokens", "16")
        nodes = self.cluster(3, [sim], "--kv-ask", "100")
        wait_for(lambda: all(of(r, "live", sim.name) == 1 for r in nodes), "events are live")
        wait_for(lambda: sum(of(r, "read", sim.name) for r in nodes) == sum(r.metric("events_feeds") for r in nodes) == 2,
                 "two routers read")
        other = next(r for r in nodes if not of(r, "read", sim.name))

        def body(n, **more):
            return {"model": "sim", "max_tokens": 1, **more, "messages": [
                {"role": "user", "content": " ".join("prompt %d has word %d." % (n, i) for i in range(150))}]}
        wait_for(lambda: self.client(other).post("/v1/chat/completions", body(0)).status == 200 and
                 other.metric("events_asked_total") > 0, "a question")
        forms = [("/v1/chat/completions", body(1)), ("/v1/chat/completions", body(1, stream=True)),
                 ("/v1/completions", {"model": "sim", "max_tokens": 1, "prompt": "prompt 2 has words, " * 300}),
                 ("/v1/completions", {"model": "sim", "max_tokens": 1, "stream": True, "prompt": "prompt 2 has words, " * 300})]

        def ties():  # each reading router finds them, the standby too
            return [of(r, "asked_total", sim.name) for r in nodes]

        def tied(path, request):
            """Asked, and tied. On a busy machine another router may begin to read meanwhile: then neither is sure."""
            before, asked = ties(), other.metric("events_asked_total")
            name = [("X-Request-Id", "one")]
            got = self.client(other).post(path, request, headers=name)
            plain = self.client(sim).post(path, request, headers=name)
            self.assertEqual(self.steady(got.body), self.steady(plain.body))
            self.assertNotIn(b"token_ids\":[", got.body)
            if other.metric("events_asked_total") == asked:
                return False
            try:
                return wait_for(lambda: any(now > then for now, then in zip(ties(), before)), "a tie", limit=3)
            except AssertionError:
                return False
        for form in forms:
            wait_for(lambda: tied(*form), "a tie of " + form[0])
        self.assertEqual(sum(of(r, "asked_wrong_total", sim.name) for r in nodes), 0)
        theirs = self.client(other).post("/v1/chat/completions", body(1, return_token_ids=True)).json
        self.assertEqual(len(theirs["prompt_token_ids"]), theirs["usage"]["prompt_tokens"])

    def test_a_system_text_cached_before_the_router_started(self):
        """Without a replay no event shows the text's place or the blocks behind it; an answer with requested tokens
        does."""
        sim = self.sim(*SPEED, "--kv-events", "vllm-0.24", "--cache-tokens", "65536", "--block-tokens", "16")
        numbers = itertools.count()

        def talk():
            t = Talk(self, 1)
            t.seed = next(numbers)
            return t
        self.assertEqual(self.client(sim).post("/v1/chat/completions", talk().body()).status, 200)
        r = self.router([sim.url], "--kv-ask", "100")
        wait_for(lambda: r.metric("events_feeds") == 1, "the feed")
        wait_for(lambda: talk().ask(r) or of(r, "asked_total", sim.name) > 0, "a place")
        before, t = of(r, "tied_total", sim.name), talk()
        for _ in range(3):
            t.ask(r)
        wait_for(lambda: of(r, "tied_total", sim.name) >= before + 3, "ties")
        self.assertEqual(of(r, "disbelieved_total", sim.name), 0)

    @staticmethod
    def steady(answer):
        """The answer without the fields in which two answers of one engine differ."""
        answer = re.sub(rb'"created":\d+', b"", answer)
        return re.sub(rb'"(created_cache_tokens|cached_tokens)":\d+', b"", answer)


if __name__ == "__main__":
    unittest.main()

"""Simulated engines with real prefix caches: routing works, and every booking is released, in any case."""

import json
import random
import re
import threading
import time
import unittest

from lib import Case, Client, Cut, pace, request, wait_for

CHAT = "/v1/chat/completions"
FAST = ("--speed-up", "50", "--output-tokens", "5")
# Slow engines: a cached prompt saves more time than a busy machine's noise, so conversations stay at their engine.
UNHURRIED = ("--speed-up", "2", "--output-tokens", "5")


def words(seed, n):
    rng = random.Random(seed)
    return " ".join("".join(rng.choice("abcdefghij") for _ in range(6)) for _ in range(n))


def message(role, text):
    return {"role": role, "content": text}


def chat(body):
    """A raw request; real engines require the type."""
    return request("POST", CHAT, json.dumps(body).encode(), [("Content-Type", "application/json")])


class Conversation:
    """Turns of one session; each question is sent with all that was said before."""

    def __init__(self, case, router, seed, path=CHAT, stream=False):
        self.client = case.client(router)
        self.messages = [message("system", words("system", 300))]
        self.seed, self.turn, self.stream = seed, 0, stream
        self.where, self.cached, self.prompt = [], [], []

    def ask(self):
        self.turn += 1
        self.messages.append(message("user", words((self.seed, self.turn).__repr__(), 300)))
        body = {"model": "sim", "messages": self.messages, "max_tokens": 8}
        if self.stream:
            body.update(stream=True, stream_options={"include_usage": True})
        got = self.client.post(CHAT, body)
        if got.status != 200:
            raise AssertionError(got)
        if self.stream:
            events = [e[6:] for e in got.body.decode().split("\n\n") if e.startswith("data: {")]
            events = [json.loads(e) for e in events]
            text = "".join(c["delta"].get("content") or ""
                           for e in events for c in e.get("choices", []))
            usage = [e["usage"] for e in events if e.get("usage")][-1]
        else:
            text = got.json["choices"][0]["message"]["content"]
            usage = got.json["usage"]
        self.messages.append(message("assistant", text))
        self.where.append(got.get("x-grapevine-replica"))
        self.cached.append((usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
        self.prompt.append(usage["prompt_tokens"])


class Caches(Case):
    def four(self, *args):
        return [self.sim(*(args or FAST)) for _ in range(4)]

    def ready(self, sims, *args):
        r = self.router([s.url for s in sims], *args)
        r.wait_up(len(sims))
        return r

    def test_turns_of_a_conversation_find_their_cache(self):
        r = self.ready(self.four(*UNHURRIED))
        talks = [Conversation(self, r, seed, stream=bool(seed % 2)) for seed in range(6)]
        for _ in range(4):
            for talk in talks:
                talk.ask()
        for talk in talks:
            self.assertEqual(len(set(talk.where)), 1, "it moved: %s" % talk.where)
            for turn in (1, 2, 3):
                self.assertGreater(talk.cached[turn], talk.prompt[turn - 1] * 0.7)
        r.quiet()

    def test_predicted_tokens_are_compared_with_the_engines_counts(self):
        r = self.ready(self.four())
        talk = Conversation(self, r, 1)
        for _ in range(4):
            talk.ask()
        m = r.metrics()
        def total(kind):
            return sum(v for k, v in m.items() if k.startswith(
                "grapevine_prediction_cached_tokens_total{") and 'source="usage"' in k and
                'kind="%s"' % kind in k)
        self.assertEqual(total("actual"), sum(talk.cached))
        self.assertGreater(total("predicted"), 0.5 * total("actual"))
        self.assertLess(total("predicted"), 2 * total("actual") + 1)

    def test_round_robin_spreads_evenly(self):
        sims = self.four()
        r = self.ready(sims, "--policy", "round_robin")
        talk = Conversation(self, r, 1)
        for _ in range(8):
            talk.ask()
        self.assertEqual([talk.where.count(s.name) for s in sims], [2, 2, 2, 2])

    def test_many_copies_of_a_prompt_use_more_than_one_replica(self):
        """A cached prompt is worth some waiting, but not any queue."""
        sims = self.four("--prefill-rate", "2000", "--decode-base-ms", "20")
        r = self.ready(sims)
        body = {"model": "sim", "max_tokens": 20,
                "messages": [message("user", words("x", 800))]}
        clients = [self.client(r) for _ in range(24)]
        for c in clients:
            c.send(chat(body))
        got = [c.read() for c in clients]
        self.assertEqual({g.status for g in got}, {200})
        self.assertGreater(len({g.get("x-grapevine-replica") for g in got}), 1)
        r.quiet()

    def test_a_restarted_engine_is_forgotten(self):
        sims = self.four()
        r = self.ready(sims, "--scrape-interval", "100ms")
        talk = Conversation(self, r, 1)
        talk.ask()
        talk.ask()
        sim = [s for s in sims if s.name == talk.where[-1]][0]

        def believed():
            body = json.dumps({"model": "sim", "messages": talk.messages}).encode()
            rows = r.admin("POST", "/explain", body).json["replicas"]
            mine = [x for x in rows if x.get("replica", x.get("name")) == sim.name]
            return mine[0]["cached_tokens"] if mine else None
        self.assertGreater(believed(), 100)
        shown = self.client(sim).ask("GET", "/metrics").body.decode()
        started = float(re.search(r"^process_start_time_seconds (\S+)", shown, re.M).group(1))
        # Start times by the clock of another machine may be off by two seconds.
        wait_for(lambda: time.time() > started + 2.1, "a start time that is surely a later one")
        sim.call("POST", "/sim/restart", {})
        r.wait_event("replica_restarted")
        wait_for(lambda: believed() is not None, "it has listed its models again")
        self.assertEqual(believed(), 0)
        talk.ask()
        self.assertEqual(r.metrics()['grapevine_replica_restarts_total{replica="%s"}' % sim.name],
                         1)

    def test_responses_of_a_real_store_are_found_again(self):
        r = self.ready(self.four(), "--policy", "round_robin")
        c = self.client(r)
        previous, where = None, None
        for _ in range(4):
            body = {"model": "sim", "input": words("q", 50), "max_output_tokens": 5}
            if previous:
                body["previous_response_id"] = previous
            got = c.post("/v1/responses", body)
            self.assertEqual(got.status, 200, got)
            self.assertIn(where, (None, got.get("x-grapevine-replica")))
            previous, where = got.json["id"], got.get("x-grapevine-replica")
            again = c.ask("GET", "/v1/responses/" + previous)
            self.assertEqual((again.status, again.get("x-grapevine-replica")), (200, where))
        self.assertEqual(r.metric("retries_total"), 0)  # known: no engine was asked in turn

    def test_the_surfaces_of_both_engines_are_understood(self):
        for kind in ("vllm", "sglang"):
            r = self.ready([self.sim("--engine", kind, *FAST)], "--scrape-interval", "100ms")
            self.assertEqual(r.wait_event("replica_engine")["engine"], kind)
            c = self.client(r)
            got = c.post(CHAT, {"model": "sim", "max_tokens": 3,
                                "messages": [message("user", "hello")]})
            self.assertEqual(got.status, 200)
            got = c.post("/v1/completions", {"model": "sim", "prompt": "hello", "max_tokens": 3})
            self.assertEqual(got.status, 200)
            self.assertFalse(r.events("replica_metrics_unknown"))
            r.quiet()

    def test_the_native_path_of_sglang_goes_to_sglang(self):
        """vLLM lacks this path: before, a mixed fleet answered 404 whenever the router chose a vLLM."""
        vllm = [self.sim(*FAST, "--model", "sim") for _ in range(2)]
        sglang = self.sim(*FAST, "--model", "sim", "--engine", "sglang")
        r = self.ready(vllm + [sglang], "--scrape-interval", "100ms")
        wait_for(lambda: sorted(x["engine"] for x in r.admin("GET", "/replicas").json) ==
                 ["sglang", "vllm", "vllm"], "kinds of engines")
        for i in range(8):
            body = {"text": "hello %d" % i, "sampling_params": {"max_new_tokens": 2}}
            got = self.client(r).post("/generate", body)
            self.assertEqual(got.status, 200, got)


class Trouble(Case):
    """Many clients, some of them rude, and engines that fail."""

    def talk(self, router, seed, results, rude=None, tokens=20):
        """One streamed request; `rude` ends it early. Appends "ok", "left" or what went wrong."""
        rng = random.Random(seed)
        try:
            c = Client(router.port)
        except OSError as e:
            results.append("connect %r" % e)
            return
        try:
            body = {"model": "sim", "stream": rng.random() < 0.8, "max_tokens": tokens,
                    "messages": [message("user", words(seed % 7, 200) + " %d" % seed)]}
            raw = chat(body)
            if rude == "half":
                c.send(raw[:rng.randrange(1, len(raw))])
            else:
                c.send(raw)
            if rude == "wait":
                pace(rng.random() * 0.05)
            elif rude == "middle":
                c.head()
            if rude:
                c.reset() if rng.random() < 0.5 else c.close()
                results.append("left")
                return
            got = c.read()
            ok = got.status == 200 and (
                got.body.endswith(b"data: [DONE]\n\n") if body["stream"] else got.json["usage"])
            results.append("ok" if ok else "answer %r" % got)
        except (OSError, Cut, AssertionError) as e:
            results.append("error %r" % e)
        finally:
            c.close()

    def run_all(self, router, jobs):
        """jobs: keyword arguments of talk(), each in its own thread."""
        results = []
        threads = [threading.Thread(target=self.talk, args=(router, i, results), kwargs=j)
                   for i, j in enumerate(jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        self.assertEqual(len(results), len(jobs))
        return results

    def sims(self, n, *args):
        sims = [self.sim("--speed-up", "20", *args) for _ in range(n)]
        return sims

    def ready(self, sims, *args):
        r = self.router([s.url for s in sims], *args)
        r.wait_up(len(sims))
        return r

    def test_two_hundred_streams_at_once(self):
        r = self.ready(self.sims(3))
        before = r.metric('responses_total{class="5xx"}')  # counted before the wait for models
        results = self.run_all(r, [dict(tokens=40)] * 200)
        self.assertEqual(set(results), {"ok"})
        self.assertEqual(r.metric('responses_total{class="5xx"}'), before)
        r.quiet()

    def test_a_low_soft_limit_on_files_is_raised(self):
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        sims = self.sims(1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        try:
            r = self.ready(sims)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with open("/proc/%d/limits" % r.pid) as f:
            line = [x for x in f if x.startswith("Max open files")][0].split()
        self.assertEqual(line[3], line[4])
        self.assertEqual(set(self.run_all(r, [{}] * 100)), {"ok"})
        r.quiet()

    def test_booked_work_is_released_after_any_mix_of_aborts(self):
        sims = self.sims(3)
        r = self.ready(sims)
        kinds = (None, "half", "wait", "middle", "wait", None)
        results = self.run_all(r, [dict(rude=kinds[i % 6], tokens=60) for i in range(150)])
        self.assertEqual(set(results), {"ok", "left"})
        r.quiet()
        wait_for(lambda: all(s.call("GET", "/sim/stats")["running"] == 0 for s in sims),
                 "engines to have dropped what was aborted")

    def test_failing_engines_and_rude_clients_leave_nothing_behind(self):
        sims = self.sims(3)
        r = self.ready(sims, "--upstream-idle-timeout", "500ms", "--upstream-first-token-timeout",
                       "1s")
        for mode in ("reset_mid_stream", "status_500", "status_503", "hang", "slow"):
            sims[0].call("POST", "/sim/fail", {"mode": mode, "after_chunks": 3, "count": 10,
                                               "delay_ms": 100})
            kinds = (None, "middle", "wait")
            self.run_all(r, [dict(rude=kinds[i % 3]) for i in range(24)])
            sims[0].call("POST", "/sim/fail", {"mode": "none"})
        r.quiet()
        wait_for(lambda: r.metrics()['grapevine_replica_up{replica="%s"}' % sims[0].name] == 1,
                 "the first replica to be well again")

    def test_a_busy_engine_costs_no_client_an_error(self):
        sims = [self.sim("--speed-up", "20", "--max-queued", "2"), self.sim("--speed-up", "20")]
        r = self.ready(sims, "--policy", "round_robin")
        results = self.run_all(r, [{}] * 40)
        self.assertEqual(set(results), {"ok"})
        self.assertGreater(sims[0].call("GET", "/sim/stats")["rejected"], 0)

    def test_an_engine_that_refuses_costs_no_client_an_error(self):
        sims = self.sims(3)
        r = self.ready(sims)
        sims[1].call("POST", "/sim/fail", {"mode": "refuse", "for_ms": 1500})
        for _ in range(3):
            results = self.run_all(r, [{}] * 20)
            self.assertEqual(set(results), {"ok"})
        wait_for(lambda: len(r.events("replica_up")) >= 3, "the replica to come back")
        r.quiet()

    def test_a_killed_engine_costs_no_client_an_error_afterwards(self):
        sims = self.sims(3)
        r = self.ready(sims)
        self.assertEqual(set(self.run_all(r, [{}] * 20)), {"ok"})
        sims[2].kill()
        results = self.run_all(r, [{}] * 40)
        self.assertEqual(set(results), {"ok"})
        self.assertEqual(set(self.run_all(r, [{}] * 20)), {"ok"})
        r.quiet()

    def test_a_killed_engine_cuts_only_its_own_streams(self):
        sims = [self.sim("--decode-base-ms", "50") for _ in range(2)]
        r = self.ready(sims, "--policy", "round_robin")
        clients = [self.client(r) for _ in range(10)]
        for i, c in enumerate(clients):
            c.send(chat({"model": "sim", "stream": True, "max_tokens": 20,
                         "messages": [message("user", "hello %d" % i)]}))
        heads = [c.head() for c in clients]
        sims[0].kill()
        ends = []
        for head, c in zip(heads, clients):
            try:
                body = c.reader.chunked()[0]
                ends.append((head.get("x-grapevine-replica") == sims[1].name,
                             body.endswith(b"[DONE]\n\n")))
            except (Cut, ConnectionResetError):
                ends.append((head.get("x-grapevine-replica") == sims[0].name, True))
        self.assertEqual(set(ends), {(True, True)})
        r.quiet()

    def test_memory_stays_flat_over_many_requests(self):
        r = self.ready(self.sims(2, "--output-tokens", "2"))
        c = self.client(r)

        def round_of(n):
            for i in range(n):
                c.send(chat({"model": "sim", "max_tokens": 1,
                             "messages": [message("user", "hi %d" % (i % 10))]}) * 5)
                for _ in range(5):
                    self.assertEqual(c.read().status, 200)
        round_of(60)
        before = r.rss()
        round_of(200)
        grown = r.rss() - before
        self.assertLess(grown, 6 << 20)
        r.quiet()


if __name__ == "__main__":
    unittest.main()

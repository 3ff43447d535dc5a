"""One definition of a failed request (docs/glossary.md): 5xx, queue_full, cut. /metrics, /figures, /live, /decisions,
gvctl and the page's figures report what a client saw."""

import json
import re
import signal
import unittest

from lib import SSE_HEAD, Case, Cut, answer_json, chunk, request, wait_for
from lib_cluster import Clustered, gvctl
from lib_live import Viewer

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error":{"message":"out of memory","type":"InternalServerError","code":500}}\n\n'
ORDERS = {"whole": TOKEN + DONE, "error event": TOKEN + ERROR + DONE, "cut": TOKEN}
REASONS = ("status_5xx", "queue_full", "cut")


def chat(what, **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": what}]}, **more)).encode()


def obey(asked):
    """An engine that does what its prompt says: "whole", "cut", "error event" (streams), a status, or "silence"."""
    what = asked.json["messages"][0]["content"]
    if what in ORDERS:
        asked.send(SSE_HEAD + chunk(ORDERS[what]) + (b"" if what == "cut" else b"0\r\n\r\n"))
        if what == "cut":
            asked.close()
    elif what == "silence":
        asked.send(SSE_HEAD + chunk(TOKEN))
        asked.wait_gone()
    else:
        asked.send(answer_json({"error": {"message": what}}, int(what)))


class FailedRequests(Case):
    def setUp(self):
        super().setUp()
        self.e = self.engine()
        self.e.handler = obey

    def do(self, r, what, times=1, path=CHAT):
        """Sends this number of requests, each to its end."""
        for _ in range(times):
            c = self.client(r)
            try:
                c.ask("POST", path, chat(what, stream=what in ORDERS, max_tokens=8))
            except (Cut, OSError, AssertionError):
                pass
            c.close()

    def counted(self, r):
        """{reason: number of failed requests}, with client errors and hidden failures, once all reports agree."""
        metrics = r.metrics()
        by_metrics = {n: metrics['grapevine_requests_failed_total{reason="%s"}' % n] for n in REASONS}
        by_metrics.update(client_errors=metrics["grapevine_requests_client_errors_total"],
                          hidden=metrics["grapevine_requests_hidden_total"])

        def summed(seconds):
            out = {n: sum(s["failed"][n] for s in seconds) for n in REASONS}
            out.update({n: sum(s[n] for s in seconds) for n in ("client_errors", "hidden")})
            return out

        def all_say_so():
            told = json.loads(gvctl("status", "-o", "json", admin=r.admin_port)[1])["last_minute"]
            v = Viewer(r).begin()
            history = v.next()[1]["history"]
            v.close()
            by = {"figures": summed(r.admin("GET", "/figures").json["figures"]), "live": summed(history),
                  "status": dict(told["failed_by_reason"], client_errors=told["client_errors"], hidden=told["hidden"]),
                  "total": summed([r.admin("GET", "/figures").json["total"]])}
            return all(x == by_metrics for x in by.values()) and told["failed"] == sum(by_metrics[n] for n in REASONS)
        wait_for(all_say_so, "the same everywhere: %r" % by_metrics, step=0.3)
        return {n: x for n, x in by_metrics.items() if x}

    def results(self, r, n):
        """Results of all decisions, in their order."""
        def all_ended():
            made = r.admin("GET", "/decisions?n=512").json["decisions"]
            return len(made) == n and all(d["outcome"] for d in made) and made
        return [d["outcome"]["result"] for d in wait_for(all_ended, "their ends")]

    def test_cut_answers_count_as_failed_despite_status_200(self):
        r = self.router([self.e])
        self.do(r, "whole", 3)
        self.assertEqual(self.counted(r), {})
        self.do(r, "cut", 3)
        self.do(r, "error event")  # and then [DONE], as vLLM 0.33 sends it: an error, and no end
        self.do(r, "cut", path=MESSAGES)
        self.assertEqual(self.counted(r), {"cut": 5})
        self.assertEqual(r.metric('responses_total{class="5xx"}'), 0)  # cut answers do not show there
        self.assertEqual(self.results(r, 8), ["ok"] * 3 + ["cut"] * 5)
        said = gvctl("status", admin=r.admin_port)[1]
        self.assertRegex(said, r"\nlast minute  \d+ requests, 5 failed \(5 cut\)\n")
        self.assertEqual(len(re.findall(r", cut\b", gvctl("decisions", admin=r.admin_port)[1])), 5)

    def test_client_errors_do_not_count_as_failed(self):
        r = self.router([self.e])
        self.do(r, "404", 2)
        self.do(r, "422")
        self.do(r, "429")  # the engine's: a 4xx, not the router's queue
        c = self.client(r)
        c.send(request("POST", CHAT, chat("silence", stream=True)))
        c.head()
        c.reader.until(TOKEN)
        c.close()  # a client that leaves
        wait_for(lambda: r.metric("client_gone_total") == 1, "it left")
        self.assertEqual(self.counted(r), {"client_errors": 4})
        self.assertEqual(self.results(r, 5)[-1], "client_gone")
        self.assertIn(" requests, 0 failed; 4 client errors, 1 abandoned by its client\n",
                      gvctl("status", admin=r.admin_port)[1])

    def test_a_5xx_counts_as_failed_unless_a_retry_succeeded(self):
        other = self.engine()
        other.handler = lambda asked: asked.send(answer_json({"choices": []}))
        r = self.router([self.e])
        self.do(r, "500", 2)
        self.do(r, "503")
        self.assertEqual(self.counted(r), {"status_5xx": 3})
        self.assertEqual(r.admin("POST", "/replicas?replica=" + other.name).status, 200)
        r.wait_up(2)
        hidden = 0
        while hidden == 0:  # until the bad one is chosen first
            self.do(r, "503")
            hidden = r.metric("requests_hidden_total")
        self.assertEqual(self.counted(r), {"status_5xx": 3, "hidden": hidden})
        made = r.admin("GET", "/decisions?n=512").json["decisions"]
        last = [d for d in made if d["attempt"] > 1][-1]
        both = [d["outcome"]["result"] for d in made if d["request"] == last["request"]]
        self.assertEqual(both, ["retried", "ok"])

    def test_the_totals_of_figures_equal_those_of_metrics(self):
        """gvctl status and top add them up over routers."""
        usage = {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 64}}
        other = self.engine()
        other.handler = lambda asked: asked.send(answer_json({"choices": [{"message": {"content": "a"}}], "usage": usage}))
        r = self.router([self.e])
        for what, times in (("whole", 3), ("500", 2), ("404", 1), ("cut", 1)):
            self.do(r, what, times)
        self.client(r).ask("GET", "/nowhere")  # its client's own mistake, and no refusal
        self.assertEqual(gvctl("drain", self.e.name, admin=r.admin_port)[0], 0)
        self.do(r, "whole", 2)
        self.assertEqual(gvctl("add", other.name, admin=r.admin_port)[0], 0)
        r.wait_up(1)
        self.do(r, "a" * 400)
        wait_for(lambda: r.metric("requests_in_flight") == 0, "their ends")
        m, told = r.metrics(), r.admin("GET", "/figures").json
        total, ttft = told["total"], "grapevine_time_to_first_token_seconds_"
        buckets = [v for n, v in m.items() if n.startswith(ttft + "bucket")]
        self.assertEqual(
            [total[n] for n in ("requests", "refused", "first_tokens", "ttft_sum_s", "connections_refused", "prompt_tokens",
                                "cached_tokens", "in_flight", "queued")],
            [m["grapevine_requests_total"], r.metric("requests_refused_total"), m[ttft + "count"], m[ttft + "sum"],
             m["grapevine_connections_refused_total"], 100, 64, 0, 0])
        self.assertEqual((total["refused"], total["first_tokens"]), (2, 3))
        self.assertEqual([sum(total["ttft_counts"][:i + 1]) for i in range(len(buckets))], buckets)
        self.assertEqual(total["by_replica"], {
            e.name: {"chosen": m['grapevine_replica_chosen_total{replica="%s"}' % e.name], "errors": errors,
                     "prompt_tokens": prompt, "cached_tokens": cached}
            for e, errors, prompt, cached in ((self.e, 3, 0, 0), (other, 0, 100, 64))})

    def test_a_full_queue_counts_as_failed_with_any_status(self):
        r = self.router([self.e], "--replica-requests-max", "1", "--queue-max", "1")
        held = [self.client(r) for _ in range(2)]
        for i, c in enumerate(held):
            c.send(request("POST", CHAT, chat("silence", stream=True)))
            wait_for(lambda: r.metric("queue_length") == i and r.metric("requests_in_flight") == 1, "it is there")
        self.do(r, "whole", 2)
        for c in held:
            c.close()
        self.assertEqual(self.counted(r), {"queue_full": 2})

    def test_a_probe_of_an_unready_router_does_not_count_as_failed(self):
        self.e.stop()
        r = self.router([self.e], wait_up=False)
        wait_for(lambda: self.client(r).ask("GET", "/health").status == 503, "not ready")
        self.assertEqual(self.counted(r), {})
        self.do(r, "whole")
        self.assertEqual(self.counted(r), {"status_5xx": 1})

    def test_impossible_usage_is_bounded(self):
        """Before, an engine's report of more cached tokens than the prompt has went into the metrics unchanged."""
        def nonsense(asked):
            asked.send(answer_json({"choices": [{"message": {"content": "a"}}], "usage": {
                "prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1000000}}}))
        self.e.handler = nonsense
        r = self.router([self.e])
        self.do(r, "x" * 400)
        label = '{replica="%s"}' % self.e.name
        self.assertEqual(r.metric("replica_usage_impossible_total" + label), 1)
        told = [v for n, v in r.metrics().items() if n.startswith("grapevine_prediction_cached_tokens_")]
        self.assertTrue(told and max(told) <= 100, told)
        self.assertEqual(sum(v for n, v in r.metrics().items() if n.startswith("grapevine_answered_cached_tokens_")), 100)
        self.assertEqual(r.admin("GET", "/decisions").json["decisions"][0]["outcome"]["cached_tokens"], 100)


class Cluster(Clustered):
    def test_totals_do_not_fall_when_a_router_dies(self):
        e = self.engine()
        e.handler = obey
        nodes = self.cluster(3, [e])
        for r in nodes:
            for _ in range(2):
                try:
                    self.client(r).ask("POST", CHAT, chat("cut", stream=True))
                except (Cut, OSError, AssertionError):
                    pass

        def status():
            return json.loads(gvctl("status", "-o", "json", admin=nodes[0].admin_port)[1])
        wait_for(lambda: status()["last_minute"]["failed_by_reason"]["cut"] == 6, "all of them", step=0.3)
        before = status()["since_start"]
        nodes[2].signal(signal.SIGKILL)
        nodes[2].stopped = True
        nodes[2].wait()
        wait_for(lambda: status()["routers"].get("dead") == 1, "it is dead", step=0.3)
        after = status()["since_start"]
        self.assertEqual(sorted(after), ["r1", "r2"])
        for name, counters in after.items():
            for what, value in counters.items():
                self.assertGreaterEqual(value, before[name][what])
        self.assertEqual(status()["last_minute"]["routers_counted"], 2)

    def test_the_held_column_and_explain_agree(self):
        """Before, HELD was counted when the router last scored a request."""
        sims = [self.sim("--output-tokens", "3")]
        nodes = self.cluster(3, sims)
        prompt = {"model": "sim", "messages": [{"role": "user", "content": "some words " * 2000}], "max_tokens": 3}
        self.assertEqual(self.client(nodes[0]).post(CHAT, prompt).status, 200)

        def same(r):
            replica = r.admin("GET", "/replicas").json[0]  # read first, because explain counts anew
            held = replica["cache"]["present_bytes"] / replica["learned"]["bytes_per_token"]
            told = r.admin("POST", "/explain", json.dumps(prompt).encode()).json
            cached = told["replicas"][0]["cached_tokens"]
            self.assertLessEqual(cached, told["prompt_tokens"])
            return cached > 1000 and abs(held - cached) < 0.15 * cached  # bytes per token are learned
        self.assertTrue(same(nodes[0]))  # at once
        for r in nodes[1:]:
            wait_for(lambda: same(r), "it heard of it, and some seconds later how many bytes a token has", limit=60)
        said = gvctl("explain", "--all", "-", stdin=json.dumps(prompt).encode(), admin=nodes[0].admin_port)[1]
        row = [line for line in said.splitlines() if line.startswith(sims[0].name)]
        tokens = [(int(a), int(b)) for a, b in re.findall(r"(\d+) of +(\d+)", row[0])]
        self.assertEqual(len(tokens), 3, said)
        for cached, prompt_tokens in tokens:
            self.assertTrue(1000 < cached <= prompt_tokens, said)


if __name__ == "__main__":
    unittest.main()

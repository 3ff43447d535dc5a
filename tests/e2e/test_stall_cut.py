"""Conditions under which an answer that has begun is cut: engines that are silent and work, that pause, that hang."""

import itertools
import json
import signal
import threading
import time
import unittest

from lib import SLOW, Client, Cut, answer, chunk, request, wait_for, work_for
from lib_cluster import Clustered

CHAT = "/v1/chat/completions"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = 2.0 * SLOW        # stall-cut, in seconds
SILENT = 3 * CUT        # for longer than that, and than one and a half times the watchdog
SETTINGS = ("--stall-cut", "%gs" % CUT, "--watchdog", "%gs" % (CUT / 4), "--scrape-interval", "200ms")


def token(text):
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
DONE = b"data: [DONE]\n\n"

# Each engine's metrics in the middle of an answer, by the number of computed steps.
VLLM = """vllm:num_requests_running{engine="0"} 1
vllm:num_requests_waiting{engine="0"} 0
vllm:prompt_tokens_total{engine="0"} 100
vllm:generation_tokens_total{engine="0"} %d
"""
SGLANG = """sglang:num_running_reqs{tp_rank="0"} 1
sglang:num_queue_reqs{tp_rank="0"} 0
sglang:token_usage{tp_rank="0"} 0.13
sglang:prompt_tokens_total{is_streaming="true"} 100
sglang:generation_tokens_total{is_streaming="true"} 77
sglang:realtime_tokens_total{mode="decode",tp_rank="0"} %d
"""
# Series that rise with each request, whatever the engine does.
SERVER = 'http_requests_total %d\nprocess_cpu_seconds_total %d\npython_gc_collections_total %d\n'


class Silent:
    """An engine of one answer: a first piece, silence, the rest. `works`: its counters rise meanwhile."""

    def __init__(self, case, metrics, works=True, first=ROLE + token("a"), silence=SILENT, ping=b""):
        self.engine = case.engine()
        self.works = works
        self.steps, self.asked = 1000, itertools.count()
        self.began = threading.Event()
        self.metrics = metrics
        self.first, self.silence, self.ping = first, silence, ping
        self.engine.handler = self.handle
        if metrics:
            self.engine.probes["/metrics"] = self.scraped

    def scraped(self, asked):
        if self.works:
            self.steps += 30
        n = next(self.asked)
        asked.send(answer(200, (self.metrics % self.steps + SERVER % (n, n, n)).encode()))

    def handle(self, asked):
        asked.read_body()
        asked.send(HEAD + (chunk(self.first) if self.first else b""))
        self.began.set()
        end = time.monotonic() + self.silence
        while time.monotonic() < end:
            work_for(0.2)
            if self.ping:
                asked.send(chunk(self.ping))
        asked.send(chunk(token("b") + DONE) + b"0\r\n\r\n")


class Stream(threading.Thread):
    """One client and its stream: all its bytes, and true if it ended correctly."""

    def __init__(self, router):
        super().__init__(daemon=True)
        self.router, self.parts, self.whole = router, [], False
        self.start()

    def run(self):
        c = Client(self.router.port)
        try:
            body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
            c.sock.settimeout(60 * SLOW)
            c.send(request("POST", CHAT, body.encode(), [("Content-Type", "application/json")]))
            c.read(on_chunk=self.parts.append)
            self.whole = True
        except (Cut, ConnectionResetError):
            pass
        finally:
            c.close()

    @property
    def text(self):
        return b"".join(self.parts).decode()

    def end(self):
        self.join(60 * SLOW)
        return self.text


class StallCut(Clustered):
    def judge_whole(self, streams):
        for name, stream in streams.items():
            text = stream.end()
            self.assertTrue(stream.whole and '"b"' in text and "[DONE]" in text, (name, text))
            self.assertEqual(stream.router.events("upstream_failed"), [], name)

    def judge_cut(self, stream):
        text = stream.end()
        self.assertFalse(stream.whole, text)
        self.assertIn("(stall-cut)", text)
        ended = stream.router.wait_logged(CHAT)
        self.assertEqual((ended["end"], ended["reason"], ended["limit"]),
                         ("engine_failed", "stalled", "stall-cut"))

    def test_a_silent_engine_that_works_is_not_cut(self):
        """A tool call that the parser holds back, hidden reasoning, a stream of pings: all at once."""
        engines = {
            "vLLM": Silent(self, VLLM),
            "SGLang": Silent(self, SGLANG),
            "pings": Silent(self, VLLM, works=False, ping=b": ping\n\n"),
            "health alone": Silent(self, None),
        }
        streams = {name: Stream(self.router([e.engine], *SETTINGS)) for name, e in engines.items()}
        pair = [Silent(self, SGLANG, first=ROLE) for _ in range(2)]  # streams without a token could move, and must not
        streams["SGLang reasons"] = Stream(self.router([e.engine for e in pair], *SETTINGS))
        self.judge_whole(streams)
        self.assertEqual(sum(len(e.engine.requests) for e in pair), 1)

    def test_a_hung_engine_is_cut(self):
        """The engine's counters stop, or it sends nothing at all; its HTTP server goes on counting."""
        still, mute = Silent(self, VLLM, works=False, silence=20 * CUT), Silent(self, None, silence=20 * CUT)
        streams = [Stream(self.router([e.engine], *SETTINGS)) for e in (still, mute)]
        mute.began.wait(20 * SLOW)
        for path in ("/health", "/metrics", "/v1/models"):
            mute.engine.probes[path] = lambda asked: asked.wait_gone(60 * SLOW)
        for stream in streams:
            self.judge_cut(stream)

    def test_routers_that_do_not_read_the_metrics_cut_no_stream(self):
        """Two of three routers read the engine's metrics. Each router has a silent stream there, and none cuts it."""
        e = Silent(self, SGLANG)
        nodes = self.cluster(3, [e.engine], *SETTINGS)
        for r in nodes:  # the routers that see it up determine the reader
            wait_for(lambda: [o["health"] for o in r.admin("GET", "/replicas").json[0]["other_routers"]] == ["up"] * 2,
                     "it knows that the others see it up")
        self.judge_whole({r.admin_port: Stream(r) for r in nodes})

    def test_tokens_at_another_router_show_that_an_engine_works(self):
        """The engine's metrics cannot be read, and its health checks hang, but it works: another router gets tokens."""
        e = Silent(self, None, silence=11 * SLOW)
        settings = ("--stall-cut", "%gs" % (5.5 * SLOW), *SETTINGS[2:])  # news of tokens take up to four seconds
        nodes = self.cluster(2, [e.engine], *settings)
        silent = Stream(nodes[0])
        self.assertTrue(e.began.wait(20 * SLOW))
        for path in ("/health", "/metrics", "/v1/models"):
            e.engine.probes[path] = lambda asked: asked.wait_gone(60 * SLOW)
        talks = threading.Event()

        def talk(asked):
            asked.read_body()
            asked.send(HEAD)
            while not talks.is_set():
                asked.send(chunk(token("x")))
                work_for(0.1)
            asked.send(chunk(DONE) + b"0\r\n\r\n")
        e.engine.handler = talk
        other = Stream(nodes[1])
        silent.end()
        talks.set()
        other.end()
        self.assertTrue(silent.whole and "[DONE]" in silent.text, silent.text)


class Pause(Clustered):
    def test_an_engine_paused_under_load_cuts_no_answer(self):
        """Answers that have begun go on; other requests are retried at other engines. With one router, and with three."""
        sims = [self.sim("--model", "sim") for _ in range(3)]
        urls = [s.url for s in sims]
        routers = [self.router(urls, "--policy", "round_robin")] + self.cluster(3, sims, "--policy", "round_robin")
        for r in routers:
            r.wait_listed(len(sims))
        results, stopping = [], threading.Event()

        def ask(i):
            c = Client(routers[i % len(routers)].port)
            c.sock.settimeout(30 * SLOW)
            try:
                got = c.post(CHAT, {"model": "sim", "stream": i % 3 > 0, "max_tokens": 30, "ignore_eos": True,
                                    "messages": [{"role": "user", "content": "question %d" % i}]})
                ended = i % 3 == 0 or (b"[DONE]" in got.body and b'"error"' not in got.body)
                results.append((got.status, ended))
            except Exception as error:
                results.append(repr(error))
            finally:
                c.close()

        threads = []

        def load():
            for i in itertools.count():
                if stopping.wait(0.03):
                    return
                threads.append(threading.Thread(target=ask, args=(i,), daemon=True))
                threads[-1].start()
        pacer = threading.Thread(target=load, daemon=True)
        pacer.start()
        wait_for(lambda: len(results) > 20, "answers")
        sims[0].signal(signal.SIGSTOP)
        try:
            for r in routers:
                r.wait_event("replica_stalled")
            before = len(results)
            wait_for(lambda: len(results) > before + 60, "answers of the others")
        finally:
            sims[0].signal(signal.SIGCONT)
        before = len(results)
        wait_for(lambda: len(results) > before + 20, "answers after it")
        stopping.set()
        pacer.join()
        for t in threads:
            t.join(30 * SLOW)
        self.assertGreater(len(results), 50)
        self.assertEqual([r for r in results if r != (200, True)], [])


if __name__ == "__main__":
    unittest.main()

"""A real SGLang's behaviour through Grapevine. Run by tests/real/run.sh."""
import os
import signal
import threading
import time

from lib import wait_for
from lib_real import HOME, Asked, Load, RealCase, SGLang, run


def chat(text, stream, tokens=8):
    return Asked("/v1/chat/completions", {"model": "tiny", "stream": stream, "max_tokens": tokens, "ignore_eos": True,
                                          "messages": [{"role": "user", "content": text}]})


class SGLangCase(RealCase):
    kind = SGLang


class Answers(SGLangCase):
    def test_the_engine_kind_is_detected(self):
        router = self.front(self.pair())
        for replica in wait_for(lambda: [r for r in router.admin("GET", "/replicas").json if r["engine_metrics"]],
                                "metrics"):
            self.assertEqual(replica["engine"], "sglang")
            self.assertEqual(replica["cache"]["tokens"], 65536)

    def test_whole_and_streamed_answers(self):
        router = self.front(self.pair())
        for stream in (False, True):
            asked = chat("hello " * 50, stream)
            run(router.port, asked)
            self.assertTrue(asked.whole, asked)

    def test_keys(self):
        """Everything but /health requires the key."""
        engines = [SGLang(key="sesame").start(), SGLang(key="sesame").start()]
        try:
            for engine in engines:
                engine.wait()
            key = os.path.join(HOME, "key")
            with open(key, "w") as file:
                file.write("sesame\n")
            os.chmod(key, 0o600)
            router = self.front(engines, "--replica-api-key-file", key)
            wait_for(lambda: [r["engine"] for r in router.admin("GET", "/replicas").json] == ["sglang"] * 2, "its kind")
            self.trouble(router, lambda: engines[0].process.send_signal(signal.SIGTERM), key="sesame")
        finally:
            for engine in engines:
                engine.stop()


class FullQueue(SGLangCase):
    def pair(self):
        """One of them takes two requests at a time and queues one; the other has room."""
        cls = type(self)
        if not cls.engines:
            cls.engines = [SGLang("--max-running-requests", "2", "--max-queued-requests", "1"), SGLang()]
            for engine in cls.engines:
                engine.start()
            for engine in cls.engines:
                engine.wait()
        return cls.engines

    def test_a_request_that_finds_a_full_queue_is_served_by_the_other(self):
        """Streamed it comes as 200 with an error event, not streamed as 503."""
        router = self.front(self.pair())
        load = Load(router.port, clients=24)
        time.sleep(10)
        done = load.stop()
        self.report(router, done)
        self.assertEqual([a for a in done if not a.whole], [])
        self.assertEqual([a for a in done if a.waited_s > 10], [])
        self.assertEqual(len({a.replica for a in done}), 2)


class Deaths(SGLangCase):
    def test_drain(self):
        """503 on /health, requests served, then resets."""
        a, b = self.pair()
        self.trouble(self.front([a, b]), lambda: a.process.send_signal(signal.SIGTERM))

    def test_drain_with_gaps(self):
        """One client alone: the engine is gone between two of its requests."""
        a, b = self.pair()
        self.trouble(self.front([a, b]), lambda: a.process.send_signal(signal.SIGTERM), clients=1)

    def test_scheduler_killed(self):
        a, b = self.pair()
        self.trouble(self.front([a, b]), lambda: os.kill(a.child("sglang::scheduler"), signal.SIGKILL), seconds=15)

    def rank_trouble(self, do, **how):
        """One server with two data-parallel ranks, and one without."""
        engines = [SGLang("--dp-size", "2").start(), SGLang().start()]
        try:
            for engine in engines:
                engine.wait()
            router = self.front(engines)
            wait_for(lambda: sum("@" in r["name"] for r in router.admin("GET", "/replicas").json) == 2, "ranks")
            rank = engines[0].child("sglang::scheduler_DP1")
            self.trouble(router, lambda: do(rank), **how)
            return router
        finally:
            for engine in engines:
                engine.signal_all(signal.SIGCONT)
                engine.stop()

    def test_rank_killed(self):
        """The server lives on and answers nothing any more: neither requests pinned to the other rank, nor unpinned
        ones."""
        self.rank_trouble(lambda rank: os.kill(rank, signal.SIGKILL), seconds=15)

    def test_rank_hangs(self):
        """The other rank goes on, and its tokens prove nothing of this one."""
        router = self.rank_trouble(lambda rank: os.kill(rank, signal.SIGSTOP), seconds=20)
        self.assertTrue(router.events("replica_stalled")[0]["replica"].endswith("@1"))

    def test_sigstop(self):
        a, b = self.pair()
        try:
            self.trouble(self.front([a, b]), lambda: a.signal_all(signal.SIGSTOP))
        finally:
            a.signal_all(signal.SIGCONT)

    def test_scheduler_hangs(self):
        """As a GPU that never answers: the server is fine, but for /health."""
        a, b = self.pair()
        scheduler = a.child("sglang::scheduler")
        try:
            self.trouble(self.front([a, b]), lambda: os.kill(scheduler, signal.SIGSTOP))
        finally:
            os.kill(scheduler, signal.SIGCONT)

    def test_poison(self):
        """A token that the model does not have ends one engine, and only one."""
        a, b = self.pair()
        router = self.front([a, b])
        poison = Asked("/v1/completions", {"model": "tiny", "max_tokens": 4, "prompt": [5000]})
        load = Load(router.port)
        try:
            load.wait_for(20)
            victim = threading.Thread(target=run, args=(router.port, poison))
            victim.start()
            victim.join(60)
            time.sleep(8)
        finally:
            done = load.stop()
        alive = sum(e.process.poll() is None and e.ask("GET", "/health")[0] == 200 for e in (a, b))
        if poison.status != 502 or alive != 1:
            print("\n".join(line for line in router.lines if '"event":"request"' not in line), flush=True)
            print([x for x in router.events("request") if x["path"] == "/v1/completions"], flush=True)
        self.assertEqual(poison.status, 502, poison)
        self.assertEqual(alive, 1)
        self.assertEqual([x for x in done if x.avoidable or x.waited_s > 10], [])
        again = Asked("/v1/completions", dict(poison.body))
        run(router.port, again)
        self.assertEqual(again.status, 502, again)
        self.assertEqual(sum(e.ask("GET", "/health")[0] == 200 for e in (a, b)), 1)

#!/usr/bin/env python3
"""The share of prompts from cache when all routers are killed at once and started again, with and without state on disk.

Three routers, four simulated engines that publish KV-cache events, and clients with conversations that go on over the
restart. The share is that of cached in prompt tokens, as engines report them, of requests that began within a span of time:
before the restart, and from when the last router is ready.

    tests/bench/warm.py                       all four ways, some five minutes
    tests/bench/warm.py --signal TERM --before 60
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from kv_events import HOST, Programs, ask, free_port, wait

WORDS = [a + b for a in "bar del fin gom hul kit lom nor pel rus".split() for b in "ade ibo une oka ely ist arm".split()]


class Routers:
    def __init__(self, o, engines, folder, keeps):
        self.o, self.engines, self.folder, self.keeps = o, engines, folder, keeps
        self.ports = [[free_port() for _ in range(3)] for _ in range(3)]
        self.running = []

    def start(self):
        for i, (front, admin, gossip) in enumerate(self.ports):
            more = ["--state-dir", os.path.join(self.folder, "r%d" % i)] if self.keeps else []
            args = [os.path.join(self.o.build, "grapevine"), "--listen", "%s:%d" % (HOST, front), "--admin-listen",
                    "%s:%d" % (HOST, admin), "--gossip-listen", "%s:%d" % (HOST, gossip), "--node-name", "r%d" % i,
                    "--insecure-gossip", "--join", "%s:%d" % (HOST, self.ports[0][2]), *more,
                    *(x for e in self.engines for x in ("--replica", "http://%s:%d" % (HOST, e)))]
            self.running.append(subprocess.Popen(args, stderr=subprocess.DEVNULL))
        wait("router ready", lambda: all(self.ready(admin) for _, admin, _ in self.ports), 30)

    def ready(self, admin):
        try:
            return ask(admin, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def end(self, how):
        for p in self.running:
            p.send_signal(how)
            if how == signal.SIGTERM:
                p.send_signal(how)
        for p in self.running:
            p.wait()
        self.running = []


class Clients:
    def __init__(self, o, fronts):
        self.o, self.fronts, self.rows, self.stop = o, fronts, [], False
        self.threads = [threading.Thread(target=self.client, args=(n,)) for n in range(o.clients)]
        for t in self.threads:
            t.start()

    def text(self, drawn, words):
        return " ".join(drawn.choice(WORDS) for _ in range(words))

    def client(self, number):
        drawn = random.Random(self.o.seed * 1000 + number)
        talks = []
        while not self.stop:
            if len(talks) < self.o.talks:
                talks.append([{"role": "system", "content": self.text(drawn, 200)}])
            talk = talks[drawn.randrange(len(talks))]
            talk.append({"role": "user", "content": self.text(drawn, drawn.randrange(40, 120))})
            began = time.monotonic()
            try:
                status, got = ask(drawn.choice(self.fronts), "POST", "/v1/chat/completions",
                                  {"model": "sim", "messages": talk, "max_tokens": 16})
            except (OSError, ValueError):
                status, got = 0, None
            if status != 200:
                talk.pop()
                time.sleep(0.1)
                continue
            usage = got["usage"]
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            self.rows.append((number, began, cached, usage["prompt_tokens"]))
            talk.append({"role": "assistant", "content": got["choices"][0]["message"]["content"] or ""})
            if len(talk) > 24:
                talks.remove(talk)
            time.sleep(drawn.random() * 2 * self.o.think)

    def wait_until(self, when):
        """Each of them has an answer to a request that began after that time."""
        left = max(0, when - time.monotonic())
        wait("answers", lambda: len({number for number, began, _, _ in list(self.rows) if began >= when}) == len(self.threads), left + 60)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()

    def share(self, since, until):
        rows = [(c, p) for _, began, c, p in self.rows if since <= began < until]
        return "%5.1f %% of %4d" % (100 * sum(c for c, _ in rows) / max(1, sum(p for _, p in rows)), len(rows))


def measure(o, keeps, replay):
    programs = Programs(o.build)
    routers = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            sims = ["--cache-tokens", str(o.cache_tokens), "--block-tokens", "16", "--speed-up", "4", "--kv-events", "vllm-0.25"]
            sims += ["--kv-replay-port", "0" if replay else "none"]
            engines = [int(programs.start("tests/engine-sim", "--listen", HOST + ":0", *sims, says="http://%s:" % HOST)) for _ in range(4)]
            routers = Routers(o, engines, folder, keeps)
            routers.start()
            clients = Clients(o, [front for front, _, _ in routers.ports])
            clients.wait_until(time.monotonic() + o.before)
            ended = time.monotonic()
            routers.end(getattr(signal, "SIG" + o.signal))
            routers.start()
            ready = time.monotonic()
            clients.wait_until(ready + 30)
            clients.end()
            print("state %-3s replay %-3s before %s, 0 to 10 s %s, 10 to 30 s %s; ready after %.1f s" % (
                "on" if keeps else "off", "yes" if replay else "no", clients.share(ended - 20, ended), clients.share(ended, ready + 10),
                clients.share(ready + 10, ready + 30), ready - ended), flush=True)
        finally:
            if routers:
                routers.end(signal.SIGKILL)
            programs.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--talks", type=int, default=8, help="conversations of a client at a time")
    p.add_argument("--think", type=float, default=0.2, help="seconds between two requests of a client, on average")
    p.add_argument("--before", type=float, default=50, help="seconds until the restart")
    p.add_argument("--signal", default="KILL", choices=("KILL", "TERM"))
    p.add_argument("--cache-tokens", type=int, default=64000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--build", default=os.environ.get("BUILD", "build"))
    o = p.parse_args()
    for keeps, replay in ((False, True), (True, True), (True, False), (False, False)):
        measure(o, keeps, replay)


if __name__ == "__main__":
    sys.exit(main())

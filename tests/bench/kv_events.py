#!/usr/bin/env python3
"""How well a router predicts what engines find in their caches, with and without KV-cache events.

Two simulated engines with small caches, or engines that run already, one router, and clients with conversations
that begin alike. Each decision's predicted cached tokens are compared with those that the answer reported.

    tests/bench/kv_events.py                         with and without events, all through the router
    tests/bench/kv_events.py --past 25               a quarter of the conversations past it
    tests/bench/kv_events.py --engines 18801,18802 --model tiny --scale 0.6 --requests 600 --clients 3
"""
import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

TEXT = "/usr/share/common-licenses/GPL-3"  # of every Debian
HOST = "127.0.0.1"


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.request(method, path, json.dumps(body) if body is not None else None, {"content-type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, json.loads(data) if data.startswith((b"{", b"[")) else data


def wait(what, condition, limit=20):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            sys.exit("no " + what)
        time.sleep(0.1)


class Programs:
    def __init__(self, build):
        self.build, self.running = build, []

    def start(self, name, *args, says):
        """Starts it, and returns the rest of the first line of its output that has `says`."""
        program = subprocess.Popen([os.path.join(self.build, name), *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.running.append(program)
        for line in program.stdout:
            if says in line:
                threading.Thread(target=program.stdout.read, daemon=True).start()
                return line.split(says, 1)[1].strip()
        sys.exit("%s ended" % name)

    def stop(self):
        for program in self.running:
            program.send_signal(signal.SIGKILL)
            program.wait()
        self.running = []


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


class Play:
    def __init__(self, o, front, engines):
        self.o, self.front, self.engines = o, front, engines
        self.left, self.lock = o.requests + o.warm, threading.Lock()
        with open(TEXT, encoding="utf-8") as f:
            self.words = [w for w in f.read().split() if w.isascii()]
        self.systems = [self.text(random.Random(1000 + i), (40 + 25 * i) * o.scale) for i in range(4)]

    def text(self, drawn, words):
        at = drawn.randrange(len(self.words) - int(words) - 1)
        return " ".join(self.words[at:at + int(words)])

    def client(self, number):
        drawn = random.Random(self.o.seed * 1000 + number)
        while True:
            past = drawn.randrange(100) < self.o.past
            messages = [{"role": "system", "content": drawn.choice(self.systems)}]
            for _ in range(drawn.randrange(1, 6)):
                with self.lock:
                    if self.left <= 0:
                        return
                    self.left -= 1
                messages.append({"role": "user", "content": self.text(drawn, drawn.randrange(10, 60) * self.o.scale)})
                status, got = ask(drawn.choice(self.engines) if past else self.front, "POST", "/v1/chat/completions",
                                  {"model": self.o.model, "messages": messages, "max_tokens": drawn.randrange(4, 40)})
                if status != 200:
                    break
                messages.append({"role": "assistant", "content": got["choices"][0]["message"]["content"] or ""})

    def run(self, admin):
        threads = [threading.Thread(target=self.client, args=(n,)) for n in range(self.o.clients)]
        rows, last = {}, 0
        for t in threads:
            t.start()
        while True:
            alive = any(t.is_alive() for t in threads)
            for row in ask(admin, "GET", "/decisions?n=512&ended=1")[1]["decisions"]:
                rows[row["id"]] = row
            if sys.stderr.isatty() and time.monotonic() - last > 2:
                last = time.monotonic()
                print("\r%d requests to go " % self.left, end="", file=sys.stderr, flush=True)
            if not alive:
                return [rows[i] for i in sorted(rows)]
            time.sleep(0.25)


def figures(rows, warm, all_requests):
    done = [(r["cached_tokens"], r["outcome"]["cached_tokens"], r["outcome"]["prompt_tokens"]) for r in rows
            if r["outcome"] and r["outcome"]["prompt_tokens"] and r["outcome"]["cached_tokens"] is not None]
    done = done[len(done) * warm // all_requests:]
    prompt = sum(p for _, _, p in done)
    return "%4d requests, prompts of %4d tokens: from cache %.1f %%, predicted %.1f %%, mean error %.2f %% of the prompt, exact %.1f %%" % (
        len(done), prompt / len(done), 100 * sum(c for _, c, _ in done) / prompt, 100 * sum(c for c, _, _ in done) / prompt,
        100 * sum(abs(a - b) / p for a, b, p in done) / len(done), 100 * sum(a == b for a, b, _ in done) / len(done))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--requests", type=int, default=1000)
    p.add_argument("--warm", type=int, default=300, help="requests before those that count")
    p.add_argument("--clients", type=int, default=6)
    p.add_argument("--past", type=int, default=0, help="%% of the conversations past the router")
    p.add_argument("--scale", type=float, default=4, help="length of all texts")
    p.add_argument("--cache-tokens", type=int, default=4992, help="of a simulated engine")
    p.add_argument("--form", default="vllm-0.24", help="of the simulated engines' events")
    p.add_argument("--engines", default="", help="ports of engines that run, with commas; empty: simulated ones")
    p.add_argument("--model", default="sim")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--build", default=os.environ.get("BUILD", "build"))
    o = p.parse_args()
    programs = Programs(o.build)
    try:
        for events in ("off", "auto"):
            engines = [int(e) for e in o.engines.split(",") if e]
            sims = ("--cache-tokens", str(o.cache_tokens), "--block-tokens", "32", "--speed-up", "4", "--kv-events", o.form)
            engines = engines or [int(programs.start("tests/engine-sim", "--listen", HOST + ":0", *sims, says="http://%s:" % HOST))
                                  for _ in range(2)]
            front, admin = free_port(), free_port()
            programs.start("grapevine", "--listen", "%s:%d" % (HOST, front), "--admin-listen", "%s:%d" % (HOST, admin),
                           "--kv-events", events, *(x for e in engines for x in ("--replica", "http://%s:%d" % (HOST, e))),
                           says="listening")
            wait("replica up", lambda: sum(r["health"] == "up" for r in ask(admin, "GET", "/replicas")[1]) == len(engines))
            if events != "off":
                wait("feed open", lambda: b"events_feeds %d\n" % len(engines) in ask(admin, "GET", "/metrics")[1])
            rows = Play(o, front, engines).run(admin)
            print("\revents %-4s %s" % (events, figures(rows, o.warm, o.requests + o.warm)), flush=True)
            programs.stop()
    finally:
        programs.stop()


if __name__ == "__main__":
    main()

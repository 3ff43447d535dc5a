#!/usr/bin/env python3
"""Accuracy of a router's predictions of engines' caches, with and without KV-cache events.

Two simulated engines with small caches, or engines that run already, one router, and clients with conversations
that begin alike. Each decision's predicted cached tokens are compared with those that the answer reported.

    tests/bench/kv_events.py                         with and without events, all through the router
    tests/bench/kv_events.py --past 25               a quarter of the conversations past it
    tests/bench/kv_events.py --engines 18801,18802 --model tiny --scale 0.6 --requests 600 --clients 3

With --ledger another reader gets the tokens of each prompt from the engine, and every block that the engine publishes:
the best possible prediction. Before each request this reader predicts both engines' cached tokens. At the end it counts
the router's right beliefs about checkpoints of the last prompts. Needs zmq and msgspec, which a vLLM's own Python has.
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

TEXT = "/usr/share/common-licenses/GPL-3"  # present on every Debian
HOST = "127.0.0.1"


def ask(port, method, path, body=None, header=None):
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.request(method, path, json.dumps(body) if body is not None else None, {"content-type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    data = json.loads(data) if data.startswith((b"{", b"[")) else data
    return (answer.status, data) if header is None else (answer.status, data, answer.getheader(header))


def wait(what, condition, limit=20):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            sys.exit("no " + what)
        time.sleep(0.1)


def settled(admin):
    """Waits until the router's read messages and tied answers no longer change. No figure shows that an answer still
    waits for its blocks, which lasts half a second (KV_TOLD_WAIT_MS). Reports of present blocks repeat, so they are
    ignored."""
    names = tuple(b"grapevine_replica_events_%s_total" % n for n in (b"messages", b"answers", b"tied", b"unmatched", b"unclear"))
    seen = {"figures": None, "since": 0}

    def still():
        figures = [line for line in ask(admin, "GET", "/metrics")[1].splitlines() if line.startswith(names)]
        if figures != seen["figures"]:
            seen.update(figures=figures, since=time.monotonic())
        return time.monotonic() - seen["since"] > 0.6

    wait("end of events", still)


class Programs:
    def __init__(self, build):
        self.build, self.running = build, []

    def start(self, name, *args, says):
        """Starts the program, and returns the rest of the first line of its output that has `says`."""
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


class Ledger:
    """Each engine's cache, by its events and nothing else: chains of blocks of tokens."""

    def __init__(self, ports, model):
        import msgspec
        import zmq
        self.read, self.ports = msgspec.msgpack.decode, ports
        self.lock, self.block, self.done = threading.Lock(), 0, []
        self.held, self.chains, self.windows = {p: {} for p in ports}, {p: {} for p in ports}, {}
        for port in ports:
            at = ask(port, "GET", "/kv_event_sources")[1]["0"]["endpoint"]
            feed = zmq.Context.instance().socket(zmq.SUB)
            feed.setsockopt(zmq.SUBSCRIBE, b"")
            feed.connect("tcp://%s:%s" % (HOST, at.rsplit(":", 1)[1]))
            threading.Thread(target=self.follow, args=(port, feed), daemon=True).start()
        for port in ports:
            wait("subscription", lambda port=port: self.heard(port, model))

    def heard(self, port, model):
        """The events of a new prompt's blocks arrive, once the subscription is open."""
        prompt = " ".join("%06d" % random.randrange(1000000) for _ in range(200))
        status, got = ask(port, "POST", "/v1/completions", {"model": model, "prompt": prompt, "max_tokens": 1})
        if status != 200:
            sys.exit("an engine answers %d: %s" % (status, got))
        with self.lock:
            return bool(self.held[port])

    def follow(self, port, feed):
        while True:
            events = self.read(feed.recv_multipart()[2])[1]
            with self.lock:
                for event in events:
                    self.apply(self.held[port], self.chains[port], event)

    def apply(self, held, chains, event):
        group = event.get("group_idx") or 0
        if event["type"] == "AllBlocksCleared":
            held.clear()
        elif event["type"] == "BlockStored":
            self.block = event["block_size"]
            if event.get("kv_cache_spec_kind", "full_attention") == "full_attention":
                chain = chains.get(event["parent_block_hash"], ())
                for i, block in enumerate(event["block_hashes"]):
                    chain = hash((chain, tuple(event["token_ids"][i * self.block:(i + 1) * self.block])))
                    chains[block] = chain
            else:
                self.windows[group] = -(-event["kv_cache_spec_sliding_window"] // self.block)
            for block in event["block_hashes"]:
                held[group, block] = held.get((group, block), 0) + 1
        elif event["type"] == "BlockRemoved":
            for block in event["block_hashes"]:
                held[group, block] = max(held.get((group, block), 0) - 1, 0)

    def of(self, body):
        """The tokens of a prompt, and {engine: how many of them it would find}."""
        tokens = ask(self.ports[0], "POST", "/tokenize", body)[1]["tokens"]
        with self.lock:
            return len(tokens), {port: self.walk(port, tokens) for port in self.ports}

    def walk(self, port, tokens):
        held, blocks, chain, found = {}, {c: b for b, c in self.chains[port].items()}, (), []
        for group, block in (at for at, copies in self.held[port].items() if copies > 0):
            held.setdefault(group, set()).add(block)
        full = next((g for g in held if g not in self.windows), 0)
        for at in range(0, len(tokens) - self.block, self.block) if self.block else ():  # the last token is always computed
            chain = hash((chain, tuple(tokens[at:at + self.block])))
            if blocks.get(chain) not in held.get(full, ()):
                break
            found.append(blocks[chain])
        while found and not all(set(found[-window:]) <= held.get(g, set()) for g, window in self.windows.items()):
            found.pop()
        return len(found) * self.block

    def beliefs(self, admin, bodies):
        """The number of right beliefs about checkpoints of these prompts, and the total."""
        right = all_ = 0
        for body in bodies:
            told = ask(admin, "POST", "/explain", body)[1]
            tokens, held = self.of(body)
            for row in told["replicas"]:
                points = told["checkpoints"]
                at = [tokens * (i + 1) // points // self.block * self.block for i in range(points)]
                at = [a for a in at if a < tokens]
                all_ += len(at)
                right += sum((a <= held[int(row["replica"].rsplit(":", 1)[1])]) == (a <= row["cached_tokens"]) for a in at)
        return right, all_


class Play:
    def __init__(self, o, front, engines, ledger):
        self.o, self.front, self.engines, self.ledger, self.bodies = o, front, engines, ledger, []
        self.left, self.lock = o.requests + o.warm, threading.Lock()
        with open(TEXT, encoding="utf-8") as f:
            self.words = [w for w in f.read().split() if w.isascii()]
        self.systems = [self.text(random.Random(1000 + i), (40 + 25 * i) * o.scale) for i in range(4)]
        self.answers = {"allowed_token_ids": self.whole_words()} if o.words else {}

    def whole_words(self):
        """Tokens that are a space and a word: text of these alone is read as the same tokens again."""
        body = {"model": self.o.model, "prompt": " " + " ".join(self.words), "add_special_tokens": False, "return_token_strs": True}
        got = ask(self.engines[0], "POST", "/tokenize", body)[1]
        return sorted({i for i, text in zip(got["tokens"], got["token_strs"]) if text[:1] == "\u0120" and text[1:].isalpha()})

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
                body = {"model": self.o.model, "messages": list(messages), "max_tokens": drawn.randrange(4, 40),
                        **self.answers}
                found = self.ledger.of(body)[1] if self.ledger else None
                status, got, at = ask(drawn.choice(self.engines) if past else self.front, "POST", "/v1/chat/completions",
                                      body, "x-grapevine-replica")
                if status != 200:
                    break
                if self.ledger and not past:
                    usage = got["usage"]
                    self.bodies.append(body)
                    self.ledger.done.append((found[int(at.rsplit(":", 1)[1])], usage["prompt_tokens_details"]["cached_tokens"],
                                             usage["prompt_tokens"]))
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


def outcomes(rows):
    return [(r["cached_tokens"], r["outcome"]["cached_tokens"], r["outcome"]["prompt_tokens"]) for r in rows
            if r["outcome"] and r["outcome"]["prompt_tokens"] and r["outcome"]["cached_tokens"] is not None]


def figures(done, warm, all_requests):
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
    p.add_argument("--words", action="store_true", help="answers of whole words, which the next prompt repeats with the same tokens; "
                   "else noise, which it does not (needs --engines)")
    p.add_argument("--ledger", action="store_true", help="beside it, one that knows tokens (needs --engines)")
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
                           says='"port_of":"admin"')
            wait("replica up", lambda: sum(r["health"] == "up" for r in ask(admin, "GET", "/replicas")[1]) == len(engines))
            if events != "off":
                wait("feed open", lambda: b"events_feeds %d\n" % len(engines) in ask(admin, "GET", "/metrics")[1])
            ledger = Ledger(engines, o.model) if o.ledger else None
            for engine in engines if o.engines else []:  # needs VLLM_SERVER_DEV_MODE=1
                if ask(engine, "POST", "/reset_prefix_cache")[0] != 200:
                    print("the cache of %d could not be reset: what it holds already is not known" % engine)
            play = Play(o, front, engines, ledger)
            rows = play.run(admin)
            print("\revents %-4s %s" % (events, figures(outcomes(rows), o.warm, o.requests + o.warm)), flush=True)
            if ledger:
                print("ledger      %s" % figures(ledger.done, o.warm, o.requests + o.warm))
                settled(admin)
                print("checkpoints believed right: %d of %d" % ledger.beliefs(admin, play.bodies[-200:]), flush=True)
            programs.stop()
    finally:
        programs.stop()


if __name__ == "__main__":
    main()

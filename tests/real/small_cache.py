"""Real engines with caches of about a thousand tokens, which turn over in less than a second: what is
predicted of each prompt against what the engine took from its cache, and the believed size."""
import json
import random
import re
import threading
import time

from lib import wait_for
from lib_real import Asked, run

WORDS = ("vine grows along the old wall and bears grapes in autumn when mist lies over hills of the river "
         "valley where people walk between rows with baskets knives ladders songs dogs carts").split()


def text_of(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


def chat(messages, stream, tokens):
    body = {"model": "tiny", "stream": stream, "max_tokens": tokens, "ignore_eos": True, "temperature": 0,
            "messages": messages}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return Asked("/v1/chat/completions", body)


class Traffic:
    """Conversations of one to four turns that share one of two system prompts, and prompts that are asked
    again as they were; one after the other at each of `clients`."""

    def __init__(self, router, clients, seed=7):
        self.router, self.clients, self.done, self.lock = router, clients, [], threading.Lock()
        rng = random.Random(seed)
        self.systems = [text_of(rng, 60), text_of(rng, 25)]
        self.rngs = [random.Random(seed * 100 + n) for n in range(clients)]

    def ask(self, messages, rng):
        asked = chat(messages, rng.random() < 0.5, rng.choice((4, 8, 16)))
        run(self.router.port, asked)
        with self.lock:
            self.done.append(asked)
        return asked

    def conversation(self, rng):
        messages = [{"role": "system", "content": rng.choice(self.systems)}] if rng.random() < 0.7 else []
        for _ in range(rng.randint(1, 4)):
            messages.append({"role": "user", "content": text_of(rng, rng.randint(15, 60))})
            asked = self.ask(messages, rng)
            if rng.random() < 0.2:
                self.ask(messages, rng)
            messages.append({"role": "assistant", "content": answer_of(asked)})

    def client(self, n, until):
        while time.monotonic() < until:
            self.conversation(self.rngs[n])

    def run(self, seconds):
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self.client, args=(n, until), daemon=True) for n in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def answer_of(asked):
    try:
        return json.loads(asked.text)["choices"][0]["message"]["content"] or "yes"
    except (ValueError, KeyError, IndexError):
        return "it grows"


def counters(engine, names):
    text = engine.ask("GET", "/metrics")[1].decode()
    return [sum(float(v) for v in re.findall(r"^%s\{[^}]*\} (\S+)$" % re.escape(name), text, re.M)) for name in names]


def settle(router, engines, names):
    """Until neither the log nor a counter has changed between two looks."""
    before = None

    def stand_still():
        nonlocal before
        was, before = before, (len(router.events("request")), [counters(e, names) for e in engines])
        return was == before
    wait_for(stand_still, "figures that stand still", 30, step=0.3)


def caches(router):
    """The replicas that have a cache of their own: each rank of an engine, where it has several."""
    rows = router.admin("GET", "/replicas").json
    ranked = {r["name"].split("@")[0] for r in rows if "@" in r["name"]}
    return [r for r in rows if r["name"] not in ranked]


def check(case, engines, tokens, told=True, names=None, clients=2, warm_s=15, seconds=25, ranks=1):
    """`names`: the engine's counters of prompt tokens and of those from its cache, where answers do not say.
    `ranks`: of each engine; `tokens` is the cache of one."""
    router = case.front(engines, "--log-level", "info")
    wait_for(lambda: len(caches(router)) == len(engines) * ranks
             and all(r["cache"]["told_by_engine"] for r in caches(router)), "sizes", 60)
    traffic = Traffic(router, clients)
    traffic.run(warm_s)
    settle(router, engines, names or [])
    before, counted = len(router.events("request")), [counters(e, names) for e in engines] if names else []
    traffic.run(seconds)
    settle(router, engines, names or [])
    rows = [r for r in router.events("request")[before:] if r["status"] == 200]
    case.assertEqual([a for a in traffic.done if not a.whole], [])
    prompt = sum(r["prompt_tokens"] for r in rows)
    predicted = sum(r["cached_predicted"] for r in rows)
    if told:
        cached = sum(r["cached_tokens"] for r in rows)
        off = sum(abs(r["cached_predicted"] - r["cached_tokens"]) for r in rows)
    else:
        now = [counters(e, names) for e in engines]
        queries = sum(n[0] - b[0] for n, b in zip(now, counted))
        cached = sum(n[1] - b[1] for n, b in zip(now, counted)) * prompt / queries
        off = 0
    sizes = [r["cache"]["tokens"] * r["cache"]["size_factor"] for r in caches(router)]
    print("\n%d requests of %d tokens: cached %.1f %%, predicted %.1f %%, each off by %.1f %%; sizes %s, in truth %d"
          % (len(rows), prompt / len(rows), 100 * cached / prompt, 100 * predicted / prompt, 100 * off / prompt,
             [round(s) for s in sizes], tokens), flush=True)
    case.assertLess(abs(predicted - cached), 0.05 * prompt)
    for size in sizes:
        case.assertLess(abs(size - tokens), 0.1 * tokens)
    case.assertEqual({r["replica"] for r in rows}, {r["name"] for r in caches(router)})
    return rows

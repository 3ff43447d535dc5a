#!/usr/bin/env python3
"""The parts of a router's memory, for docs/sizing.md: `make bench SECTION=sizing`.

Resident memory after the start by index-bytes; a prompt's addition to the index; the memory of idle connections, open
streams and replicas. Measures no time.
"""

import json
import os
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
os.environ.setdefault("BUILD", os.path.join(TOP, "build"))
from lib import HOST, SSE_HEAD, Client, Engine, Router, answer, chunk, request, wait_for  # noqa: E402

MIB = 1 << 20
CHAT = "/v1/chat/completions"
CONNECTIONS, STREAMS, REPLICAS = 1000, 500, 1000
REPLICA = "http://127.1.%d.%d:9"


def start(engine, *args):
    return Router([engine], "--listen", HOST + ":0", "--admin-listen", HOST + ":0", "--drain-delay", "0", *args,
                  defaults=False)


def body(kilobytes, n=0, stream=False):
    words = "".join("%06d word " % (i * 1000 + n) for i in range(kilobytes * 1024 // 12))
    return json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": words}]}).encode()


def settled(router):
    """Its memory, when it has not grown for a second."""
    last = router.rss()
    while True:
        time.sleep(1)
        now = router.rss()
        if now - last < MIB // 4:
            return now
        last = now


def by_index(engine):
    print("index-bytes   resident after the start   places in its table")
    for mib in (16, 64, 256, 1024):
        r = start(engine, "--index-bytes", "%dMiB" % mib)
        table = r.metric("index_bytes_max") * 54.5 / 67.1
        print("  %5d MiB   %8.1f MiB               %5.1f million" % (mib, settled(r) / MIB, table / 64 * 7 * 15 / 16 / 1e6))
        r.stop()


def by_prompt(engine):
    print("prompt        places of the index, one replica")
    for kilobytes in (1, 4, 32, 128, 400):
        r = start(engine)
        c = Client(r.port)
        before, many = r.metric("index_entries"), 4
        for n in range(many):
            assert c.ask("POST", CHAT, body(kilobytes, n + 1)).status == 200
        print("  %4d KB     %5.1f" % (kilobytes, (r.metric("index_entries") - before) / many))
        c.close()
        r.stop()


def by_connections(engine):
    r = start(engine)
    before = r.rss()
    clients = [Client(r.port) for _ in range(CONNECTIONS)]
    for c in clients:
        assert c.ask("GET", "/health").status == 200
    print("an idle connection       %6.1f KiB" % ((r.rss() - before) / CONNECTIONS / 1024))
    for c in clients:
        c.close()
    r.stop()

    def begins(asked):
        asked.read_body()
        asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'))
        asked.wait_gone()
    engine.handler = begins
    r = start(engine)
    before = r.rss()
    clients = [Client(r.port) for _ in range(STREAMS)]
    for n, c in enumerate(clients):
        c.send(request("POST", CHAT, body(4, n, stream=True)))
    wait_for(lambda: r.metric("requests_in_flight") >= STREAMS, "streams", limit=120, step=0.2)
    print("an open stream (4 KB)    %6.1f KiB" % ((r.rss() - before) / STREAMS / 1024))
    for c in clients:
        c.close()
    r.stop()


def by_replicas(engine):
    engine.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))
    r = start(engine)
    before = r.rss()
    r.stop()
    named = [a for i in range(REPLICAS - 1) for a in ("--replica", REPLICA % (i // 250, i % 250 + 1))]
    r = start(engine, *named)
    wait_for(lambda: r.metric("replica_names") >= REPLICAS, "all named", limit=120, step=0.2)
    print("a replica                %6.1f KiB" % ((r.rss() - before) / REPLICAS / 1024))
    r.stop()


def main():
    engine = Engine()
    try:
        by_index(engine)
        by_prompt(engine)
        by_connections(engine)
        by_replicas(engine)
    finally:
        engine.stop()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Maelstrom's broadcast workload on real processes of its node, in a network of this program.

    tests/maelstrom/bench.py [NODES [DELAY_MS [SECONDS [RATE]]]]       (25 100 20 100; after `make tools`)

Every link has the same delay; half of the operations are reads and half are broadcasts, at random
nodes. Counted as Maelstrom counts: all messages between nodes while the workload runs, over all
operations; the stable latency of an element is the time from its acknowledgement to the start of
the last read without it.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from test_maelstrom import Network  # noqa: E402


def main(nodes=25, delay_ms=100, seconds=20, rate=100):
    names = ["n%d" % i for i in range(nodes)]
    acked, missing = {}, {}
    with Network("broadcast", names, delay_s=delay_ms / 1000, constant=True) as net:
        for name in names:
            net.ask(name, {"type": "topology", "topology": {}})
        begin = time.monotonic()
        with net.lock:
            before = net.gossiped
        operations = int(seconds * rate)
        for k in range(operations):
            time.sleep(max(0, begin + k / rate - time.monotonic()))
            name = net.random.choice(names)
            if net.random.random() < 0.5:
                net.ask(name, {"type": "broadcast", "message": k})
                acked[k] = time.monotonic()
                continue
            asked = time.monotonic()
            held = set(net.ask(name, {"type": "read"})["messages"])
            for element, at in acked.items():
                if element not in held:
                    missing[element] = max(0.0, asked - at)
        with net.lock:
            sent = net.gossiped - before
        took = time.monotonic() - begin
        for name in names:
            net.until(lambda name=name: set(net.ask(name, {"type": "read"})["messages"]) == set(acked))
    stable = sorted(missing.get(element, 0.0) for element in acked)
    print("measured: N=%d links of %d ms: %.1f messages between nodes per operation (%d operations in "
          "%.1f s), stable latency p50 %.0f ms, p99 %.0f ms, max %.0f ms" % (
              nodes, delay_ms, sent / operations, operations, took, 1e3 * stable[len(stable) // 2],
              1e3 * stable[len(stable) * 99 // 100], 1e3 * stable[-1]))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))

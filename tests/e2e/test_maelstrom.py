"""The Maelstrom node (tests/maelstrom) in conversations of this test.

A small network in this file replaces Maelstrom: it carries JSON lines between three nodes with
delays, losses, duplicates and partitions, and sends the requests of Maelstrom's clients.
"""
import heapq
import itertools
import json
import os
import queue
import random
import subprocess
import threading
import time
import unittest

from lib_wait import wait_for

NODE = os.path.join(os.environ.get("BUILD", "build"), "tests", "maelstrom")
NAMES = ["n1", "n2", "n3"]


class Network:
    """Starts the nodes and carries their messages until it is closed."""

    def __init__(self, workload, names=NAMES, seed=1, loss=0.0, duplicate=0.0, delay_s=0.002,
                 constant=False):
        self.random = random.Random(seed)
        self.loss, self.duplicate = loss, duplicate
        self.delay = (lambda: delay_s) if constant else (
            lambda: self.random.expovariate(1 / delay_s))
        self.cut = set()  # pairs of names
        self.gossiped = 0
        self.ids = itertools.count(1)
        self.answers = {}
        self.inbox = queue.Queue()
        self.lock = threading.Condition()
        self.due = []
        self.order = itertools.count()
        self.closed = False
        self.nodes = {
            name: subprocess.Popen([NODE, workload], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for name in names
        }
        self.threads = [threading.Thread(target=self.listen, args=(n,)) for n in names]
        self.threads.append(threading.Thread(target=self.carry))
        for thread in self.threads:
            thread.start()
        for name in names:
            body = self.ask(name, {"type": "init", "node_id": name, "node_ids": list(names)})
            assert body["type"] == "init_ok", body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.lock:
            self.closed = True
            self.lock.notify()
        self.threads[-1].join()
        for node in self.nodes.values():
            node.stdin.close()
        for thread in self.threads[:-1]:
            thread.join()
        for node in self.nodes.values():
            node.stdout.close()
            if node.wait(10) != 0:
                raise AssertionError("a node ended with status %d" % node.returncode)

    def listen(self, name):
        for line in self.nodes[name].stdout:
            message = json.loads(line)
            assert message["src"] == name, message
            if message["dest"] in self.nodes:
                self.post(message)
            else:
                with self.lock:
                    self.answers[message["body"]["in_reply_to"]] = message["body"]
                    self.lock.notify_all()

    def post(self, message):
        with self.lock:
            self.gossiped += 1
            pair = frozenset((message["src"], message["dest"]))
            if pair in self.cut or self.random.random() < self.loss:
                return
            copies = 2 if self.random.random() < self.duplicate else 1
            for _ in range(copies):
                at = time.monotonic() + self.delay()
                heapq.heappush(self.due, (at, next(self.order), message))
            self.lock.notify_all()

    def carry(self):
        """The only thread that writes gossip to nodes; clients write under the same lock."""
        with self.lock:
            while not self.closed:
                now = time.monotonic()
                if self.due and self.due[0][0] <= now:
                    message = heapq.heappop(self.due)[2]
                    self.write(message)
                else:
                    self.lock.wait(self.due[0][0] - now if self.due else None)

    def write(self, message):
        node = self.nodes[message["dest"]]
        node.stdin.write(json.dumps(message).encode() + b"\n")
        node.stdin.flush()

    def ask(self, name, body, timeout_s=10):
        """One request of a client, which is never lost; its answer."""
        with self.lock:
            number = next(self.ids)
            self.write({"src": "c1", "dest": name, "body": dict(body, msg_id=number)})
            end = time.monotonic() + timeout_s
            while number not in self.answers:
                left = end - time.monotonic()
                assert left > 0, "%s did not answer %r" % (name, body)
                self.lock.wait(left)
            return self.answers.pop(number)


class Maelstrom(unittest.TestCase):
    def check(self, net, key, expected):
        for name in NAMES:
            def agrees(name=name):
                value = net.ask(name, {"type": "read"})[key]
                return (sorted(value) if isinstance(value, list) else value) == expected
            wait_for(agrees, "what %s has" % name, step=0.02)

    def test_broadcast(self):
        with Network("broadcast", loss=0.05, duplicate=0.1) as net:
            for name in NAMES:
                topology = {n: [] for n in NAMES}
                answer = net.ask(name, {"type": "topology", "topology": topology})
                self.assertEqual(answer["type"], "topology_ok")
            values = list(range(100))
            for value in values:
                answer = net.ask(net.random.choice(NAMES), {"type": "broadcast", "message": value})
                self.assertEqual(answer["type"], "broadcast_ok")
            self.check(net, "messages", values)
            self.assertGreater(net.gossiped, 0)

    def test_set_of_all_integers(self):
        values = [0, 1, -1, 2**47, 2**48 - 1, 2**48, -(2**48), 2**62, 2**63 - 1, -(2**63), 1000]
        with Network("g-set") as net:
            for i, value in enumerate(values):
                answer = net.ask(NAMES[i % 3], {"type": "add", "element": value})
                self.assertEqual(answer["type"], "add_ok")
            net.ask("n1", {"type": "add", "element": 1000})  # twice is once
            self.check(net, "value", sorted(values))

    def test_set_across_a_partition(self):
        with Network("g-set", seed=2) as net:
            net.ask("n2", {"type": "add", "element": 1000})
            self.check(net, "value", [1000])  # so they have met
            with net.lock:
                net.cut = {frozenset(("n1", "n2")), frozenset(("n1", "n3"))}
            values = list(range(60))
            for value in values:
                net.ask(NAMES[value % 3], {"type": "add", "element": value})
            wait_for(lambda: any(net.ask(n, {"type": "deaths"})["value"] for n in ("n2", "n3")), "n1 is held dead", step=0.02)
            held = net.ask("n1", {"type": "read"})["value"]
            self.assertEqual(sorted(held), values[::3] + [1000])
            with net.lock:
                net.cut = set()
            self.check(net, "value", values + [1000])

    def test_counter(self):
        with Network("pn-counter", loss=0.2, duplicate=0.2, delay_s=0.01) as net:
            total = 0
            for _ in range(100):
                delta = net.random.randint(-50, 50)
                total += delta
                answer = net.ask(net.random.choice(NAMES), {"type": "add", "delta": delta})
                self.assertEqual(answer["type"], "add_ok")
            self.check(net, "value", total)

    def test_malformed_messages_do_no_harm(self):
        with Network("g-set") as net:
            with net.lock:
                node = net.nodes["n1"]
                node.stdin.write(b'not json\n{"src": 1}\n\n')
                net.write({"src": "n2", "dest": "n1", "body": {"type": "gossip", "data": "%%%"}})
                net.write({"src": "n2", "dest": "n1", "body": {"type": "gossip", "data": "AAAA"}})
            self.assertEqual(net.ask("n1", {"type": "add", "element": "text"})["code"], 10)
            self.assertEqual(net.ask("n1", {"type": "cas"})["code"], 10)
            self.assertEqual(net.ask("n1", {"type": "add", "element": 7})["type"], "add_ok")
            self.check(net, "value", [7])


if __name__ == "__main__":
    unittest.main()

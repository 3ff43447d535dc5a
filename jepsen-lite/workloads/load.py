"""Requests of some seconds; the routers' gauges are read all along, by their admin ports. At rest some requests stay
open, so that the gauges are not zero."""

import contextlib
import itertools
import json
import random
import time

from lab import api, client as http
from workloads.asked import Asker, each

EVERY_S = 0.5            # a router is asked
PATIENCE = 20.0          # a client's
HELD_EACH = 2            # requests kept open at each router
BEGIN_S = 5.0            # until they have begun
QUIET_S = 1.1            # before and after the gauges are read: twice the checker's need, and a little
LONG = 100000            # tokens that no client waits for


def body_of(op, tokens, stream, model):
    return json.dumps({"model": model, "max_tokens": tokens, "stream": stream, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "load %s %s" % (op, "count " * 40)}]}).encode()


def gauges_of(rows):
    """Loads in GET /replicas, without those that are all zero."""
    out = {}
    for row in rows:
        load = row["load"]
        by = {r["router"]: r["requests"] for r in row.get("other_routers", []) if r.get("requests")}
        gauge = {"own": load["requests"], "others": load["requests_of_others"], "by": by,
                 "tokens": [load["prefill_tokens"], load["context_tokens"]]}
        if gauge["own"] or gauge["others"] or by or any(gauge["tokens"]):
            out[row["name"]] = gauge
    return out


class Held:
    """A stream that is open and of which nothing is read but its beginning."""

    def __init__(self, recorder, client, router, model):
        self.operation = recorder.invoke(client.name, "load.hold", {"router": router.name})
        op = str(self.operation.id)
        self.connection = http.Connection(client, router.address, router.port)
        with client.inside(), contextlib.suppress(OSError):
            self.sock = self.connection.sock = http.socket.create_connection((router.address, router.port), BEGIN_S)
            self.sock.sendall(http.request_bytes(router.address, router.port, "POST", api.CHAT, {"x-jepsen-op": op},
                                                 body_of(op, LONG, True, model)))

    def began(self, until):
        """True if the stream has a token by then."""
        seen = b""
        with contextlib.suppress(OSError):
            while self.connection.open and b"\ndata: " not in seen and time.monotonic() < until:
                self.sock.settimeout(max(until - time.monotonic(), 0.01))
                data = self.sock.recv(4096)
                seen += data
                if not data or not b"HTTP/1.1 200".startswith(seen[:12]):
                    break
        self.text = seen[:40].decode("latin-1")
        return b"\ndata: " in seen

    def leave(self, began):
        self.connection.close()
        (self.operation.ok if began else self.operation.info)({"began": began, "text": self.text})


class Workload:
    name = "load"
    clients = 3

    def __init__(self, service, recorder, rng):
        self.service, self.recorder = service, recorder
        self.model = getattr(service, "model", "sim")
        self.rounds = itertools.count(1)
        self.rng = random.Random(rng.random())
        for router in service.routers:
            Asker("load-" + router.name, lambda r=router: self.read(r, None), EVERY_S).start()

    def step(self, client, rng):
        name, address, port = self.service.anyone(rng) if rng.random() < 0.8 else self.service.by_balancer
        stream = rng.random() < 0.3
        tokens = rng.randint(20, 2000) if rng.random() < 0.9 else LONG
        leave = {"leave_s": round(rng.uniform(0.01, 3), 3)} if tokens == LONG or rng.random() < 0.2 else {}
        operation = self.recorder.invoke(client.name, "load.stream", dict({"router": name, "tokens": tokens}, **leave))
        op = str(operation.id)
        answer = http.ask(client, address, port, "POST", api.CHAT, {"x-jepsen-op": op},
                          body_of(op, tokens, stream, self.model), PATIENCE, **leave)
        value = {"status": answer.status, "error": answer.error}
        if answer.finished and answer.status == 200:
            operation.ok(value)
        else:
            (operation.info if answer.sent else operation.fail)(value)
        time.sleep(rng.uniform(0, 0.3))

    def read(self, router, round):
        if not router.alive:
            return
        operation = self.recorder.invoke("ask-" + router.name, "load.gauges", {"router": router.name, "round": round})
        try:
            status, rows = router.admin("GET", "/replicas", timeout=3)
        except Exception as e:
            operation.fail({"error": str(e)})
            return
        if status == 200 and isinstance(rows, list):
            operation.ok({"replicas": gauges_of(rows)})
        else:
            operation.fail({"status": status})

    def round(self):
        number = next(self.rounds)
        each(self.service.routers, lambda router: self.read(router, number))

    def rest(self):
        held = [Held(self.recorder, self.rng.choice(self.service.clients), router, self.model)
                for router in self.service.routers if router.alive for _ in range(HELD_EACH)]
        until = time.monotonic() + BEGIN_S
        began = [h.began(until) for h in held]
        time.sleep(QUIET_S)
        self.round()
        time.sleep(QUIET_S)
        for h, b in zip(held, began):
            h.leave(b)
        time.sleep(2 * QUIET_S)
        self.round()



"""Routers are asked who lives and which replicas there are; replicas of the workload's own are added, removed, drained
and undrained, by gvctl and by the admin port, at one router or another."""

import http.server
import itertools
import json
import os
import random
import threading
import time

from workloads.asked import Asker, each

EVERY_S = 1.0       # a router is asked
ANSWER_S = 3        # time for a router's answer
ROUNDS, GAP_S = 12, 0.5  # at rest, until all agree
NAMES = 3           # replicas that are changed, at a time
CHANGES = 12        # changes of one replica; then another takes its place
PORT = 9100

JOINS = "is joining the cluster"  # so the router refused it, and changed nothing
CALLS = {"add": ("POST", "/replicas"), "remove": ("DELETE", "/replicas"), "drain": ("POST", "/drain"),
         "undrain": ("POST", "/undrain")}


UNKNOWN = b'{"error":{"message":"The model does not exist.","type":"NotFoundError","param":"model","code":404}}'


def was_so(said):
    """True if the router had nothing to change: by its answer, or by the words of gvctl (node/gvctl/change.c)."""
    if isinstance(said, dict):
        return said.get("already") is True
    return str(said).endswith((" is among the replicas already", " was removed before"))


class Nobody(http.server.BaseHTTPRequestHandler):
    """The engine behind those replicas: healthy, with a model that no request names."""

    def do_GET(self):
        answers = {"/health": b"", "/v1/models": b'{"object":"list","data":[{"id":"nobody","object":"model"}]}'}
        body = answers.get(self.path)
        self.answer(404 if body is None else 200, body or b"")

    def do_POST(self):
        """A path that no API has may come to any replica: engines do not know it either. So may a request for a
        model, before the router has read which ones are here: it says so, as an engine does."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer(404, UNKNOWN if self.path.startswith("/v1/") else b'{"detail":"Not Found"}')

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


class Own:
    """A replica of the workload's own."""

    def __init__(self, name):
        self.name, self.there, self.drained, self.changes = name, False, False, 0

    def next(self, rng):
        if not self.there:
            return "add"
        if rng.random() < 0.3:
            return "remove"
        return "undrain" if self.drained else "drain"

    def took(self, what):
        self.there = what != "remove" if what in ("add", "remove") else self.there
        self.drained = what == "drain" if what != "remove" else self.drained
        self.changes += 1


class Workload:
    name = "membership"
    clients = 1

    def __init__(self, service, recorder, rng):
        self.service, self.recorder, self.rng = service, recorder, random.Random(rng.random())
        self.rounds, self.ports = itertools.count(1), itertools.count(PORT)
        self.gvctl = os.path.join(service.build, "gvctl")
        self.own = [self.another(service.clients[0]) for _ in range(NAMES)]
        for router in service.routers:
            Asker("membership-" + router.name, lambda r=router: self.look(r, None), EVERY_S).start()

    def another(self, host):
        port = next(self.ports)
        with host.inside():
            server = Server((host.address, port), Nobody)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Own("%s:%d" % (host.address, port))

    # --- changes

    def step(self, client, rng):
        at = rng.randrange(NAMES)
        own = self.own[at]
        router, what = rng.choice(self.service.routers), own.next(rng)
        by = rng.choice(("gvctl", "admin"))
        operation = self.recorder.invoke(client.name, "membership.change", {
            "router": router.name, "replica": own.name, "what": what, "by": by})
        taken, said = (self.by_gvctl if by == "gvctl" else self.by_admin)(router, what, own.name)
        if taken:
            own.took(what)
            operation.ok({"said": said, "already": was_so(said)})
        elif taken is False:
            operation.fail({"said": said})
        else:
            operation.info({"said": said})
        if taken is None or own.changes >= CHANGES and not own.there:
            self.own[at] = self.another(client)
        time.sleep(rng.uniform(0.2, 2))

    @staticmethod
    def by_admin(router, what, name):
        """(accepted or not; None: unknown, the answer)"""
        method, path = CALLS[what]
        try:
            status, said = router.admin(method, "%s?replica=%s" % (path, name), timeout=ANSWER_S)
        except ConnectionRefusedError as e:
            return False, str(e)
        except Exception as e:
            return None, str(e)
        if status == 200 and not (isinstance(said, dict) and said.get("waits")):
            return True, said
        return False if 400 <= status < 500 or JOINS in str(said) else None, said

    def by_gvctl(self, router, what, name):
        try:
            return True, router.host.run(self.gvctl, "--timeout", str(ANSWER_S), what, name).strip()
        except Exception as e:
            said = str(e)
            return False if any(why in said for why in ("refused", "no replica", JOINS)) else None, said

    # --- what routers say

    def look(self, router, round):
        if not router.alive:
            return None
        operation = self.recorder.invoke("ask-" + router.name, "membership.look",
                                         {"router": router.name, "round": round})
        try:
            paths = ("/members", "/replicas") + (("/convergence",) if round else ())
            members, rows, *more = [self.get(router, path) for path in paths]
        except Exception as e:
            operation.fail({"error": str(e)})
            return None
        value = {"members": {m["name"]: m["state"] for m in members["members"]},
                 "sessions": {m["name"]: m["session"] for m in members["members"] if not m["self"]},
                 "equal": None, "replicas": sorted(r["name"] for r in rows),
                 "drained": sorted(r["name"] for r in rows if r["health"] == "draining"),
                 "unsure": sorted(r["name"] for r in rows if r["health"] not in ("up", "draining"))}
        for said in more:
            value["equal"] = bool(said["equal"])
            if not said["equal"]:
                value["differ"] = json.dumps({k: said.get(k) for k in ("differ", "joining", "comparable", "not_asked")})
        operation.ok(value)
        return value

    @staticmethod
    def get(router, path):
        status, said = router.admin("GET", path, timeout=ANSWER_S)
        if status != 200:
            raise OSError("%s: %s" % (path, status))
        return said

    def rest(self):
        for _ in range(ROUNDS):
            number = next(self.rounds)
            said = each(self.service.routers, lambda router: self.look(router, number))
            if self.agreed([s for s in said if s is not None]):
                return
            time.sleep(GAP_S)

    def agreed(self, said):
        """True if no other round is worthwhile. The checker judges for itself."""
        living = {r.name for r in self.service.routers if r.alive}
        return len(said) == len(living) and all(
            s["equal"] and {n for n, state in s["members"].items() if state == "alive"} == living and
            all(s["sessions"].get(n, True) for n in living) and
            (s["replicas"], s["drained"]) == (said[0]["replicas"], said[0]["drained"]) for s in said)

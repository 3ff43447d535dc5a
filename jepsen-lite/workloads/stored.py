"""Answers that an engine keeps (/v1/responses): made at one router, continued, read and cancelled at any other. And
sessions: under a policy that goes by them, every router sends a session to the same replica."""

import hashlib
import json
import threading
import time

from lab import api, client as http
from workloads.service import end, seen, words

PATIENCE = 20.0
KEPT = 200      # ids that are asked for; an engine keeps 1,000
AT_REST = 12    # ids that every router is asked for at rest
SESSIONS = 12


def output_of(body):
    """The parts that stay the same however often it is read: the id, the text, and the end."""
    value = api.parse(body)
    if "output" not in value:
        return {}
    text = json.dumps(value["output"], sort_keys=True).encode()
    return {"id": value.get("id"), "state": value.get("status"), "output": hashlib.sha256(text).hexdigest()}


class Workload:
    name = "stored"
    clients = 2

    def __init__(self, service, recorder, rng):
        self.service, self.recorder = service, recorder
        self.model = getattr(service, "model", "sim")
        self.rng = rng
        self.kept = []  # (id, whether it runs in the background), oldest first
        self.lock = threading.Lock()

    def ask(self, client, target, f, what, method, path, body=None, headers=()):
        name, address, port = target
        operation = self.recorder.invoke(client.name, "stored." + f, dict(what, at=name, path=path))
        fields = {"x-jepsen-op": "stored-%d" % operation.id, **dict(headers)}
        answer = http.ask(client, address, port, method, path, fields,
                          None if body is None else json.dumps(body).encode(), PATIENCE)
        end(operation, dict(seen(path, answer), **output_of(answer.body)))
        return answer

    def pick(self, rng):
        with self.lock:
            return rng.choice(self.kept) if self.kept else None

    def step(self, client, rng):
        old = self.pick(rng)
        act = rng.choices(("make", "continue", "read", "cancel", "session"), (30, 25, 25, 5, 15))[0]
        target = self.service.anyone(rng)
        if act == "session":
            key = "session-%d" % rng.randrange(SESSIONS)
            ask = {"model": self.model, "prompt": words(rng, 20), "max_tokens": 2}
            self.ask(client, target, "session", {"key": key}, "POST", api.COMPLETIONS, ask, {"x-session-id": key})
        elif act == "read" and old:
            self.ask(client, target, "read", {"of": old[0]}, "GET", "/v1/responses/" + old[0])
        elif act == "cancel" and old:
            self.ask(client, target, "cancel", {"of": old[0]}, "POST", "/v1/responses/%s/cancel" % old[0])
        else:
            self.make(client, target, old if act == "continue" else None, rng)
        time.sleep(rng.uniform(0, 0.2))

    def make(self, client, target, old, rng):
        ask = {"model": self.model, "input": words(rng, rng.randint(5, 80)), "max_output_tokens": rng.randint(1, 12)}
        what = {}
        if old:
            ask["previous_response_id"] = what["of"] = old[0]
        elif rng.random() < 0.2:
            ask["background"] = what["background"] = True
        answer = self.ask(client, target, "continue" if old else "make", what, "POST", api.RESPONSES, ask)
        id = output_of(answer.body).get("id") if answer.finished and answer.status == 200 else None
        if id:
            with self.lock:
                self.kept = self.kept[-KEPT + 1:] + [(id, bool(what.get("background")))]

    def rest(self):
        """Asks every router for some answers, and for the replica that it would choose for each session."""
        client = self.service.clients[0]
        for id, _ in self.rng.sample(self.kept, min(AT_REST, len(self.kept))):
            for r in self.service.routers:
                target = r.name, r.address, r.port
                self.ask(client, target, "read", {"of": id, "rest": True}, "GET", "/v1/responses/" + id)
        by_session = True
        for i in range(SESSIONS):
            for r in self.service.routers:
                by_session = by_session and self.choose(r, "session-%d" % i)

    def choose(self, router, key):
        """Asks for its choice; whether its policy goes by sessions."""
        client = self.service.clients[0].name
        operation = self.recorder.invoke(client, "stored.choose", {"key": key, "at": router.name})
        ask = {"model": self.model, "user": key, "messages": [{"role": "user", "content": "Hello."}]}
        try:
            _, value = router.admin("POST", "/explain", ask)
            operation.ok({"policy": value.get("policy"), "replica": value.get("choice")})
            return value.get("policy") == "session"
        except (OSError, AttributeError) as e:
            operation.info({"error": str(e)})
            return True

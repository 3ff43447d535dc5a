"""Prompts of their own, and what routers believe of them: POST /explain on a router's admin port."""

import hashlib
import json

from lab import api, client as http

PATIENCE = 20.0  # seconds that a client waits for an answer
BLOCKS = 5       # blocks of 256 bytes: parts of a prompt with separate memory


def text_of(op):
    """No other prompt begins like this."""
    seed, out = op, []
    while len(out) * 11 < BLOCKS * 256:
        seed = hashlib.sha256(seed.encode()).hexdigest()
        out += [seed[i:i + 10] for i in range(0, 60, 10)]
    return " ".join(out)


def body_of(op, model):
    return json.dumps({"model": model, "max_tokens": 4, "stream": True,
                       "messages": [{"role": "user", "content": text_of(op)}]}).encode()


def model_of(service):
    return getattr(service, "model", "sim")


def teach(recorder, operation, client, target, body):
    """Sends it and ends the operation. The name of the replica that answered, or None."""
    _, address, port = target
    answer = http.ask(client, address, port, "POST", api.CHAT, {"x-jepsen-op": str(operation.id)}, body, PATIENCE)
    value = {"status": answer.status, "error": answer.error, "replica": answer.headers.get("x-grapevine-replica")}
    if answer.finished and answer.status == 200 and not answer.failed:
        operation.ok(value)
        return value["replica"]
    (operation.info if answer.sent else operation.fail)(value)
    return None


class Belief:
    """A router's answer: `held` {replica: tokens} above 0, `listed`: the replicas that it scored."""

    def __init__(self, value):
        rows = value.get("replicas", [])
        self.held = {r["replica"]: r["cached_tokens"] for r in rows if r["cached_tokens"] > 0}
        self.listed = sorted(r["replica"] for r in rows)
        self.choice = value.get("choice")

    def same(self, other):
        return other is not None and self.held.keys() == other.held.keys() and self.listed == other.listed


def explain(router, body, timeout=1.0):
    """None: no answer. A router that is paused, or gone, has none."""
    if not router.alive:
        return None
    try:
        status, value = router.admin("POST", "/explain", body, timeout=timeout)
    except Exception:  # whatever the state of the way: no answer
        return None
    return Belief(value) if status == 200 and isinstance(value, dict) else None

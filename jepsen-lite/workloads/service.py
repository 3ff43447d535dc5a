"""Requests of all kinds, as clients of an LLM service send them, to routers and through the balancer.

Nothing is Grapevine's own but the headers that are looked at; it runs against any proxy of the OpenAI API."""

import json
import threading
import time

from lab import api, client as http
from workloads.as_sent import as_sent, digest

PATIENCE = 20.0  # seconds that a client waits for the end of its answer
WORDS = ("the router holds a stream open while engines compute tokens and caches keep blocks of prompts that "
         "sessions share with each other over many turns").split()

LENGTHS = (1, 16), (40, 200), (300, 700)  # tokens: some answers are under way when a fault begins
LONG = 1000, 2000                         # with clients that leave: the engine would be busy for seconds
SLEPT_AT = 2000, 3000                     # tokens of theirs
SLEEP_S = 6.0                             # some clients read nothing for this time: more bytes come than sockets hold
EMBEDDINGS, MODELS, DEED = "/v1/embeddings", "/v1/models", "/sim/deed"
# (share, name, path, streamed)
MIX = [(26, "chat", api.CHAT, True), (14, "chat", api.CHAT, False),
       (12, "completions", api.COMPLETIONS, True), (8, "completions", api.COMPLETIONS, False),
       (8, "messages", api.MESSAGES, True), (5, "messages", api.MESSAGES, False),
       (6, "responses", api.RESPONSES, True), (4, "responses", api.RESPONSES, False),
       (5, "embeddings", EMBEDDINGS, False), (3, "models", MODELS, False), (9, "deed", DEED, False)]


def words(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def body_of(path, stream, usage, text, tokens, model):
    """`usage`: true if the client asks for usage, or None: unspecified, and a router may ask for itself."""
    if path == MODELS:
        return None
    if path == DEED:
        return {"why": text * 8}  # several packets
    ask = {"model": model}
    if path == EMBEDDINGS:
        return dict(ask, input=text)
    if stream:
        ask["stream"] = True
        if path in (api.CHAT, api.COMPLETIONS) and usage is not None:
            ask["stream_options"] = {"include_usage": usage}
    ask["max_output_tokens" if path == api.RESPONSES else "max_tokens"] = tokens
    if path in (api.CHAT, api.MESSAGES):
        ask["messages"] = [{"role": "user", "content": text}]
    else:
        ask["input" if path == api.RESPONSES else "prompt"] = text
    if path in (api.CHAT, api.COMPLETIONS):
        ask["ignore_eos"] = True
    return ask


def seen(path, answer):
    """The history's record of an answer."""
    out = {"status": answer.status, "finished": answer.finished, "framed": answer.framed, "last": answer.last,
           "streamed": answer.streamed, "failed": answer.failed, "tokens": answer.tokens, "sent": answer.sent,
           **digest(answer.body)}
    if answer.finished and (other := as_sent(path, answer.body)):
        out["also"] = other
    for key, name in (("replica", "x-grapevine-replica"), ("reason", "x-grapevine-reason"),
                      ("limit", "x-grapevine-limit")):
        if name in answer.headers:
            out[key] = answer.headers[name]
    for key in ("error", "text", "reused"):
        if getattr(answer, key):
            out[key] = getattr(answer, key)
    if answer.extra:
        out["extra"] = len(answer.extra)
    if answer.token_s is not None:
        out["token_s"] = round(answer.token_s, 4)
    if answer.failed or answer.status >= 400 or answer.extra:
        out["text"] = (answer.extra or answer.body[-300:]).decode("utf-8", "replace")
    return out


def end(operation, value):
    """ok: the whole answer came; fail: no engine can have seen the request; info: all else."""
    whole = value["finished"] and 200 <= value["status"] < 300 and not value["failed"]
    (operation.ok if whole else operation.info if value["sent"] else operation.fail)(value)


class Workload:
    name = "service"
    clients = 8
    any_proxy = True
    router_options = ["other-paths=pass"]  # deeds reach an engine
    engine_options = ["speed-up=4"]        # 4 ms a token: most of the time several answers are under way

    def __init__(self, service, recorder, rng):
        self.service, self.recorder = service, recorder
        self.model = getattr(service, "model", "sim")
        self.sessions = [words(rng, rng.randint(20, 400)) for _ in range(30)]
        self.kept = {}
        self.lock = threading.Lock()

    def target(self, rng):
        if rng.random() < 0.3 and getattr(self.service, "by_balancer", None):
            return self.service.by_balancer
        return self.service.anyone(rng)

    def connection(self, client, target, rng, new):
        """A new one, or the one that this client kept."""
        name, address, port = target
        kept = self.kept.pop(client.name, None)
        if kept is not None and kept[0] == name and kept[1].open and not new:
            return kept[1]
        if kept is not None:
            kept[1].close()
        return http.Connection(client, address, port)

    def leave(self, stream, rng):
        """One client in eight goes before its answer is there: after a time or in the midst of a stream."""
        if rng.random() > 0.12:
            return {}
        how = {"leave_by": rng.choice(("fin", "reset"))}
        if stream and rng.random() < 0.6:
            how["leave_events"] = rng.randint(1, 6)
        else:
            how["leave_s"] = round(rng.choice((0.002, 0.05, 0.3)) * rng.uniform(0.2, 2), 4)
        return how

    def step(self, client, rng):
        _, kind, path, stream = rng.choices(MIX, [m[0] for m in MIX])[0]
        target = self.target(rng)
        usage = rng.choice((True, False, None))
        text = "%s %s" % (rng.choice(self.sessions), words(rng, rng.randint(1, 60)))
        leave = self.leave(stream, rng)
        tokens = rng.randint(*LONG if leave else rng.choices(LENGTHS, (60, 28, 12))[0])
        if not leave and stream and path in (api.CHAT, api.COMPLETIONS) and rng.random() < 0.05:
            leave, tokens = {"sleep_s": SLEEP_S}, rng.randint(*SLEPT_AT)
        ask = {"path": path, "at": target[0], "stream": stream, "tokens": tokens, **leave}
        if stream and path in (api.CHAT, api.COMPLETIONS):
            ask["usage"] = usage
        body = body_of(path, stream, usage, text, tokens, self.model)
        connection = self.connection(client, target, rng, "sleep_s" in leave)
        behind = ("GET", MODELS) if not leave and not connection.open and rng.random() < 0.1 else None
        operation = self.recorder.invoke(client.name, "service." + kind, ask)
        answer = connection.ask("GET" if body is None else "POST", path, {"x-jepsen-op": "service-%d" % operation.id},
                                None if body is None else json.dumps(body).encode(), PATIENCE, behind=behind,
                                **leave)
        end(operation, seen(path, answer))
        if behind:
            self.second(client, target[0], connection)
        if connection.open and rng.random() < 0.4:
            self.kept[client.name] = target[0], connection
        else:
            connection.close()
        time.sleep(rng.uniform(0, 0.1))

    def second(self, client, name, connection):
        """The answer to what was sent at once behind another request: it is due from here on."""
        operation = self.recorder.invoke(client.name, "service.behind", {"path": MODELS, "at": name, "stream": False})
        end(operation, seen(MODELS, connection.ask("GET", MODELS, timeout=PATIENCE, sent=True)))

    def rest(self):
        """Nothing is under way. Kept connections are let go: a balancer may close them meanwhile."""
        with self.lock:
            while self.kept:
                self.kept.popitem()[1][1].close()

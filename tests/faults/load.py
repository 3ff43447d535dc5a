"""Clients that ask at a fixed rate and write down what became of each request.

They are patient (PATIENCE seconds of silence), open a connection per request, never ask twice, and check what
they get: a stream is whole when its API's last event came, and is of one engine when all events have one id.
"""

import asyncio
import json
import random
import time

PATIENCE = 20.0  # seconds of silence after which a client gives up
HANG = 5.0       # seconds beyond the expected after which a client has waited too long

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
RESPONSES, GENERATE = "/v1/responses", "/generate"

# (share, path, streamed)
MIX = [(60, CHAT, True), (20, CHAT, False), (6, COMPLETIONS, True), (4, COMPLETIONS, False),
       (5, MESSAGES, True), (3, MESSAGES, False), (2, RESPONSES, True)]

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

WORDS = ("the router holds a stream open while engines compute tokens and caches keep blocks of "
         "prompts that sessions share with each other over many turns").split()


def words(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


class Result:
    """One request. Times are seconds of the monotonic clock."""
    __slots__ = ("id", "path", "stream", "router", "tag", "at", "first", "last", "end", "status", "replica", "reason",
                 "tokens", "roles", "ids", "error", "terminal", "failure", "waited", "note")

    def __init__(self, path, stream, router, tag, name=""):
        self.id = name
        self.path, self.stream, self.router, self.tag = path, stream, router, tag
        self.at = self.last = time.monotonic()
        self.first = self.end = None  # when the first token came; when it was over
        self.status = 0
        self.replica = self.reason = self.note = ""
        self.tokens = self.roles = 0  # events with content; events that begin an answer
        self.ids = set()
        self.error = None             # the error event
        self.terminal = False
        self.failure = ""             # empty: a whole answer
        self.waited = 0.0             # the longest silence between two signs of progress

    def progress(self, now):
        self.waited = max(self.waited, now - self.last)
        self.last = now

    @property
    def good(self):
        return not self.failure

    @property
    def ttft(self):
        return None if self.first is None else self.first - self.at


def content_of(path, event):
    """The words of an event, wherever the API has them."""
    if path == MESSAGES:
        return event.get("delta", {}).get("text", "") if event.get("type") == "content_block_delta" else ""
    if path == RESPONSES:
        return event.get("delta", "") if event.get("type") == "response.output_text.delta" else ""
    if path == GENERATE:
        return event.get("text", "")
    for choice in event.get("choices", []):
        text = choice.get("text") or choice.get("delta", {}).get("content")
        if text:
            return text
    return ""


def error_of(event):
    """The error in an event, or None."""
    if event.get("error"):
        return event["error"]
    if event.get("type") in ("error", "response.failed"):
        return event
    finish = (event.get("meta_info") or {}).get("finish_reason") or {}
    return finish if isinstance(finish, dict) and finish.get("type") == "abort" else None


def take_event(r, block):
    """One event of a stream."""
    data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
    if not data:
        return
    if data == b"[DONE]":
        r.terminal = True
        return
    try:
        event = json.loads(data)
    except ValueError:
        r.note = "no JSON: %r" % data[:80]
        return
    kind = event.get("type")
    r.terminal |= kind in ("message_stop", "response.completed", "response.incomplete", "response.failed")
    error = error_of(event)
    if error is not None and r.error is None:
        r.error = error
    if r.path in (CHAT, COMPLETIONS) and "id" in event:
        r.ids.add(event["id"])
    if kind in ("message_start", "response.created") or \
            any(c.get("delta", {}).get("role") for c in event.get("choices", [])):
        r.roles += 1
    if content_of(r.path, event) and error is None:
        now = time.monotonic()
        r.progress(now)
        r.tokens += 1
        if r.first is None:
            r.first = now


async def chunks(reader):
    """The body of a chunked answer, piece by piece."""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        yield data[:-2]


async def read_stream(r, reader):
    rest = b""
    async for data in chunks(reader):
        rest = (rest + data).replace(b"\r\n", b"\n")
        *blocks, rest = rest.split(b"\n\n")
        for block in blocks:
            take_event(r, block)


async def read_answer(r, reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    r.status = int(head[0].split(" ")[1])
    fields = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    r.replica = fields.get("x-grapevine-replica", "")
    r.reason = fields.get("x-grapevine-reason", "")
    if fields.get("content-type", "").startswith("text/event-stream"):
        await read_stream(r, reader)
        return fields
    body = b""
    if "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    elif "transfer-encoding" in fields:
        async for data in chunks(reader):
            body += data
    else:
        body = await reader.read()
    if r.status == 200:
        answer = json.loads(body)
        r.first = time.monotonic()
        r.terminal = any(k in answer for k in ("choices", "content", "output", "text"))
        r.error = answer.get("error")
        r.tokens = 1
    else:
        r.note = body[:160].decode("utf-8", "replace")
    return fields


def judge(r):
    """The verdict on a complete answer."""
    if r.status != 200:
        return "status %d%s" % (r.status, " " + r.reason if r.reason else "")
    if r.error is not None:
        return "error event"
    if not r.terminal:
        return "no last event"
    if r.stream and r.tokens == 0:
        return "no token"
    if r.roles > 1 or len(r.ids) > 1:
        return "mixed"
    return r.note and "garbage"


def posted(path, body, name="q"):
    return (b"POST %s HTTP/1.1\r\nhost: faults.test\r\ncontent-type: application/json\r\n"
            b"x-request-id: %s\r\ncontent-length: %d\r\n\r\n%s" %
            (path.encode(), name.encode(), len(body), body))


class Connection:
    """One to the router, used again until either side closes it."""

    def __init__(self, address, source=None):
        self.address = address
        self.source = source  # (host, port) that it comes from; None: any
        self.reader = self.writer = None

    async def ask(self, r, body):
        if self.writer is not None and self.reader.at_eof():
            self.close()  # seen before anything was sent
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(*self.address, limit=1 << 20,
                                                                     local_addr=self.source)
        self.writer.write(posted(r.path, body, r.id))
        fields = await read_answer(r, self.reader)
        if fields.get("connection", "").lower() == "close":
            self.close()

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def ask(r, connection, body):
    """Sends one request and reads its answer into `r`."""
    task = asyncio.ensure_future(connection.ask(r, body))
    try:
        while True:
            left = r.last + PATIENCE - time.monotonic()
            if left <= 0:
                r.failure = "gave up"
                break
            done, _ = await asyncio.wait([task], timeout=left)
            if done:
                task.result()
                r.failure = judge(r)
                break
    except asyncio.IncompleteReadError:
        r.failure = "cut"
    except ConnectionRefusedError:
        r.failure = "refused"
    except OSError:
        r.failure = "reset"
    except ValueError as e:
        r.failure = "garbage"
        r.note = str(e)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if r.failure:
            connection.close()
        r.end = time.monotonic()
        r.progress(r.end)


class Load:
    """`rate` requests a second at `addresses` in turns, until run() ends.

    Sessions share prefixes, as conversations do. The results stand in `results` in order of arrival.
    """

    def __init__(self, addresses, rate=100, seed=1, mix=None, model="sim", sessions=40, prompt=(500, 150),
                 tokens=(12, 28), tools=0):
        self.addresses, self.rate, self.model = addresses, rate, model
        self.mix = mix or MIX
        self.rng = random.Random(seed)
        self.prompt, self.tokens = prompt, tokens
        self.tools = tools  # the share of chats that have them
        self.sessions = [words(self.rng, prompt[0]) for _ in range(sessions)]
        self.results = []
        self.tasks = set()
        self.next = 0
        self.sources = None  # ports that clients come from, one after the other; None: the system's choice

    def body(self, path, stream, tail=None):
        rng = self.rng
        text = "%s %d %s" % (rng.choice(self.sessions), self.next, tail or words(rng, self.prompt[1]))
        count = rng.randint(*self.tokens)
        if path == GENERATE:
            return {"text": text, "stream": stream, "sampling_params": {"max_new_tokens": count}}
        ask = {"model": self.model, "stream": stream}
        ask["max_output_tokens" if path == RESPONSES else "max_tokens"] = count
        if path in (CHAT, MESSAGES):
            ask["messages"] = [{"role": "user", "content": text}]
        else:
            ask["input" if path == RESPONSES else "prompt"] = text
        if path == CHAT and self.tools > 0 and rng.random() < self.tools:
            ask["tools"] = TOOLS
        if path in (CHAT, COMPLETIONS):
            ask["ignore_eos"] = True
        return ask

    def start(self, tag="", path=None, stream=None, value=None):
        """One more request, now."""
        if path is None:
            _, path, stream = self.rng.choices(self.mix, [m[0] for m in self.mix])[0]
        router = self.next % len(self.addresses)
        r = Result(path, stream, router, tag, "q%d" % self.next)
        body = json.dumps(value or self.body(path, stream)).encode()
        self.next += 1
        self.results.append(r)
        source = ("127.0.0.1", next(self.sources)) if self.sources else None
        self.spawn(self.alone(r, Connection(self.addresses[router], source), body))
        return r

    async def alone(self, r, connection, body):
        await ask(r, connection, body)
        connection.close()

    async def keep_asking(self, until, pause):
        """A client that keeps its connection and sends a request on it every `pause` seconds, until that time."""
        connection = Connection(self.addresses[self.next % len(self.addresses)])
        while time.monotonic() < until:
            _, path, stream = self.rng.choices(self.mix, [m[0] for m in self.mix])[0]
            self.next += 1
            r = Result(path, stream, self.addresses.index(connection.address), "kept", "q%d" % self.next)
            self.results.append(r)
            await ask(r, connection, json.dumps(self.body(path, stream)).encode())
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause)
        connection.close()

    def spawn(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def run(self, seconds):
        due = time.monotonic()
        end = due + seconds
        if self.rate == 0:
            await asyncio.sleep(seconds)
        while due < end and self.rate > 0:
            wait = due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            self.start()
            due += self.rng.uniform(0.5, 1.5) / self.rate

    async def finish(self):
        """Waits for what is open; the patient ones give up by themselves."""
        while self.tasks:
            await asyncio.wait(set(self.tasks))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None

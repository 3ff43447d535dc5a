#!/usr/bin/env python3
"""Writes the seeds of the fuzz target session_fuzz: scripts as its input, a few bytes a step.

    tests/fuzz/lib/session_seeds.py [FOLDER]        tests/fuzz/corpus/session without one

The numbers are those of step() and of the draws in tests/fuzz/session_fuzz.c and
tests/fuzz/lib/session_*.h. Run it again when those change: each seed says what it is for.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

# kinds of questions[], flags of a request and of an answer, framings
CHAT, COMPLETIONS, MESSAGES, RESPONSES, RESPONSES_NEXT, GENERATE, MODELS = 0, 1, 2, 3, 4, 5, 12
CHUNKED, GZIP, STREAM, HEADERS, FIELDS, LONG, MUTATED = 1, 2, 8, 16, 32, 64, 128
ERROR, REPLY_GZIP, REPLY_LONG, UNASKED = 1, 2, 8, 7 << 4
BY_LENGTH, BY_CHUNKS, UNTIL_CLOSE, WITH_MORE, SHORT = 0, 1, 2, 3, 4
SECOND = 128  # in a pick: a wire of the second router
CLUSTERED, KEYS, PROBES = 24, 18, 3


def begin(engines, flags=0, options=()):
    out = [engines - 1 + flags, len(options)]
    for row, value in options:
        out += [row, value]
    return out


def connect(router=0, address=0):
    return [0, router * 8 + address]


def ask(kind, flags=0, draws=(), pick=0):
    return [1, pick, kind, flags, *draws]


def accept(pick=0):
    return [7, pick]


def refuse(pick=0, closed=True):
    return [8, pick, 0 if closed else 1]


def reply(flags=0, framing=BY_LENGTH, draws=(), pick=0):
    return [9, pick, flags, framing, *draws]


def reply_kept(flags=0, framing=BY_LENGTH, draws=(), pick=0):
    """Made, and sent in pieces by send()."""
    return [10, pick, flags, framing, *draws]


def send(amount, pick=0):
    return [11, pick, amount]


def raw(text, pick=0, engine=False):
    return [12 if engine else 4, pick, len(text), *text]


def room(byte, pick=0, engine=False):
    return [13 if engine else 5, pick, byte]


def go(pick=0, breaks=False, engine=False):
    return [15 if engine else 6, pick, 0 if breaks else 1]


def wait(ms):
    return [16, ms // 5]


def join():
    return [19, 0]


def listed(engines, router=0):
    return [20, router * 128 + engines]


def admin(number, router=0):
    return [24, router * 128, number]


def change(row, value, router=0):
    return [21, router * 128, row, value]


def packet(what, number=0):
    return [26, what + 8 * number]


def call(what, number=0):
    return [27, what + 8 * number]


def flow(*draws):
    """`draws`: one for each stream, model list and page of metrics that is answered, in that order."""
    return [31, *draws]


SEEDS = {
    # One request of each API, well answered.
    "chat": [begin(2), flow(), connect(), ask(CHAT), accept(), reply(), ask(COMPLETIONS), flow(),
             ask(MESSAGES), flow(), ask(RESPONSES), flow(), ask(RESPONSES_NEXT), flow(), ask(GENERATE),
             flow(), ask(MODELS), flow(), go()],
    # Streams in chunks and until the close, in pieces, one without an end, one for a slow reader.
    "stream": [begin(2), flow(), connect(), ask(CHAT, STREAM), accept(),
               reply_kept(0, BY_CHUNKS, [0x13, 10]), send(40), send(80), wait(50), send(255),
               connect(address=1), ask(COMPLETIONS, STREAM | FIELDS, [0]), accept(),
               reply(0, UNTIL_CLOSE, [0x73]), go(engine=True), connect(address=2),
               ask(MESSAGES, STREAM), room(10), accept(), reply(REPLY_LONG, BY_LENGTH, [0x07, 200]),
               room(250), wait(600)],
    # A kept connection that ends as the next request comes; one says something unasked.
    "stale": [begin(1), flow(), connect(), ask(CHAT), accept(), reply(), go(engine=True), ask(CHAT),
              accept(), reply(), ask(CHAT, STREAM), go(engine=True, breaks=True), accept(),
              reply(0, BY_LENGTH, [3]), reply(UNASKED), connect(address=1), ask(CHAT), flow(),
              ask(CHAT, pick=1), reply(0, WITH_MORE), flow(), wait(500), ask(CHAT), flow()],
    # Refused, reset, errors: tried elsewhere; all say no.
    "retries": [begin(3), flow(), connect(), ask(CHAT), refuse(), accept(),
                go(engine=True, breaks=True), wait(150), flow(), wait(1000), flow(), connect(),
                ask(CHAT, STREAM), accept(), reply(ERROR, BY_LENGTH, [1]), wait(150), flow(7), wait(1000),
                connect(), ask(CHAT, STREAM), accept(), reply(0, BY_LENGTH, [0x64, 0]), wait(150), flow(3),
                wait(1000)],
    # More than may go on at once: they wait, one goes, one for too long.
    "queue": [begin(1, options=[(21, 0), (23, 3), (26, 2)]), flow(), connect(), ask(CHAT, STREAM),
              accept(), connect(address=1), ask(CHAT, LONG, [140]), connect(address=2), ask(CHAT),
              go(breaks=True), reply(0, BY_CHUNKS, [2, 60]), flow(), connect(address=3), ask(CHAT),
              wait(600), flow()],
    # One at a time: others wait for their turn, beyond a limit that is lowered, and the last of them
    # for an engine that says nothing.
    "waiting": [begin(1, options=[(22, 0), (23, 2)]), connect(), ask(CHAT), connect(), ask(CHAT),
                connect(), ask(CHAT), connect(), ask(CHAT), change(23, 0), flow()],
    # Clients that reset before and amid an answer, read no more, half-close, or send two requests.
    "clients": [begin(1), flow(), connect(), ask(CHAT), accept(), go(breaks=True), connect(),
                ask(CHAT, STREAM), accept(), reply_kept(0, BY_CHUNKS, [2, 60]), send(120),
                go(breaks=True), connect(), ask(CHAT, STREAM), room(0), accept(),
                reply(REPLY_LONG, BY_LENGTH, [3, 240]), wait(1000), connect(), ask(CHAT), ask(CHAT),
                ask(MODELS), go(), accept(), reply(), reply(), flow(0), connect(), ask(CHAT), accept(),
                raw(b"GET /v1/mod"), reply(), wait(1000)],
    # Codings, chunks, HTTP/1.0, Expect; a request and a half, and then nothing; what is no request.
    "framings": [begin(1), flow(), connect(), ask(CHAT, CHUNKED | GZIP, [70]), flow(),
                 ask(CHAT, HEADERS | STREAM, [2]), reply(REPLY_GZIP, BY_CHUNKS, [3, 50]), flow(),
                 ask(COMPLETIONS, HEADERS, [1]), flow(), ask(CHAT + 27 * 7), flow(), connect(),
                 raw(b"GET / HTTP/1.1\r\nHost: g\r\n\r\nGET /v1/mod"), flow(), wait(400), connect(),
                 raw(b"\x16\x03\x01"), flow()],
    # Keys, which have their limits.
    "keys": [begin(2, KEYS), flow(), connect(), ask(CHAT, HEADERS, [4]), flow(),
             ask(CHAT, HEADERS, [5]), flow(), ask(CHAT), flow(), ask(CHAT, HEADERS | LONG, [200, 4]),
             flow(), wait(1000)],
    # Health, metrics and model lists are asked for; an engine refuses, one fails.
    "probes": [begin(2, PROBES), flow(), flow(0, 0), connect(), ask(CHAT), flow(), wait(600),
               refuse(), refuse(), wait(600), flow(0, 1), wait(600), flow(), wait(600), flow(1, 0)],
    # Operators ask everything, add and remove.
    "operators": [begin(2), flow(), connect(), ask(CHAT), flow(), *[admin(i) for i in range(29)],
                  flow(), listed(5), ask(CHAT), flow(), listed(2), ask(CHAT, STREAM), flow(2), wait(1000)],
    # A second router joins; both serve; each learns of the other's.
    "join": [begin(2, CLUSTERED), flow(), connect(), ask(CHAT), flow(), join(), wait(1000), wait(1000),
             wait(1000), connect(1), ask(CHAT, pick=SECOND), flow(), admin(12, 1), admin(17, 1),
             wait(1000), admin(13), packet(5), wait(200), packet(0), packet(3, 1), packet(1),
             packet(5), wait(1000), ask(CHAT), flow()],
    # Traffic between them is delayed, lost, doubled and changed.
    "join_spoiled": [begin(1, CLUSTERED), flow(), connect(), ask(CHAT), flow(), packet(5), join(),
                     wait(200), packet(2), packet(0, 1), wait(200), packet(2, 0), packet(2, 1),
                     packet(7), wait(200), packet(7), wait(200), [*packet(4), 0, 0, 3, 1],
                     [*packet(6), 3, 1, 2, 3], packet(5), wait(1000), flow(), wait(1000)],
}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/fuzz/corpus/session"
    folder.mkdir(parents=True, exist_ok=True)
    for name, steps in SEEDS.items():
        (folder / name).write_bytes(bytes(number for step in steps for number in step))


if __name__ == "__main__":
    main()

"""Bodies that an engine may have sent, if a router may change an answer in a documented way. Pure.

A checker compares these with the journals of engines; bodies themselves are not in the history."""

import hashlib
import json
import re

from lab import api

PING = re.compile(rb"event: ping\ndata: [^\n]*\n\n")


def digest(body):
    return {"bytes": len(body), "hash": hashlib.sha256(body).hexdigest()}


ENDS, DATA = (b"\r\n\r\n", b"\n\n"), (b"data: ", b"data:")


def first_event(body):
    """(bytes before its JSON, its JSON, its end, the rest) in any framing; None: no event."""
    ends = [e for e in ENDS if e in body]
    end = min(ends, key=body.index, default=None)
    data = next((d for d in DATA if body.startswith(d + b"{")), None)
    if end is None or data is None:
        return None
    text, _, rest = body.partition(end)
    return data, text[len(data):], end, rest


def renamed(body):
    """Another engine may have taken over before the first token: the first event is the first engine's, without a token,
    and all others are the second's. The second's first event differs only in its id, time and framing. None: not so."""
    one = first_event(body)
    other = one and first_event(one[3])
    if not other:
        return None
    text = one[1]
    a, b = api.parse(text), api.parse(other[1])
    if api.has_token(a) or not a.get("id") or not b.get("id") or a["id"] == b["id"]:
        return None
    for key in ("id", "created"):
        mine, theirs = (b'"%s":%s' % (key.encode(), json.dumps(v.get(key)).encode()) for v in (a, b))
        text = text.replace(mine, theirs, 1)
    return other[0] + text + other[2] + one[3]


def as_sent(path, body):
    """Other bodies that would be as right as this one: [{bytes, hash, why}]."""
    out = []
    if path == api.MESSAGES and (ping := PING.match(body)):
        out.append(dict(digest(body[ping.end():]), why="a sign of life before it"))
    if path in (api.CHAT, api.COMPLETIONS) and (other := renamed(body)) is not None:
        out.append(dict(digest(other), why="another engine took over after a sign of life"))
    return out

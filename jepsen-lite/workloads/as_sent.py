"""What an engine may have sent where a router may change an answer in a way that its documentation names. Pure.

A checker compares these with the journals of engines; bodies themselves are not in the history."""

import hashlib
import json
import re

from lab import api

PING = re.compile(rb"event: ping\ndata: [^\n]*\n\n")


def digest(body):
    return {"bytes": len(body), "hash": hashlib.sha256(body).hexdigest()}


def renamed(body):
    """After a sign of life another engine may have taken over: the first event is the first engine's, without a
    token, and all others are the second's. Its own first event is the same but for its id and time. None: not so."""
    first, end, rest = body.partition(b"\n\n")
    second = rest.partition(b"\n\n")[0]
    if not end or not first.startswith(b"data: {") or not second.startswith(b"data: {"):
        return None
    a, b = api.parse(first[6:]), api.parse(second[6:])
    if api.has_token(a) or not a.get("id") or not b.get("id") or a["id"] == b["id"]:
        return None
    for key in ("id", "created"):
        one, other = (b'"%s":%s' % (key.encode(), json.dumps(v.get(key)).encode()) for v in (a, b))
        first = first.replace(one, other, 1)
    return first + end + rest


def as_sent(path, body):
    """Other bodies that would be as right as this one: [{bytes, hash, why}]."""
    out = []
    if path == api.MESSAGES and (ping := PING.match(body)):
        out.append(dict(digest(body[ping.end():]), why="a sign of life before it"))
    if path in (api.CHAT, api.COMPLETIONS) and (other := renamed(body)) is not None:
        out.append(dict(digest(other), why="another engine took over after a sign of life"))
    return out

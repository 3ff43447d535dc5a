"""A collector of OpenTelemetry traces: takes OTLP/HTTP with JSON, and checks each span that it gets."""

import json
import re

from lib import Engine, answer, wait_for

SERVER, CLIENT = 2, 3


class Span:
    def __init__(self, one, resource):
        self.resource = resource
        self.trace, self.id, self.parent = one["traceId"], one["spanId"], one.get("parentSpanId")
        self.name, self.kind = one["name"], one["kind"]
        self.begin, self.end = int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])
        self.attributes = values(one["attributes"])
        self.events = [(e["name"], int(e["timeUnixNano"]), values(e.get("attributes", [])))
                       for e in one.get("events", [])]
        self.failed = one.get("status", {}).get("code", 0) == 2

    def event_names(self):
        return [name for name, _, _ in self.events]

    def __getitem__(self, name):
        return self.attributes.get(name)


def values(attributes):
    """{key: value} of a list of KeyValue; a key that comes twice is a mistake."""
    found = {}
    for a in attributes:
        assert set(a) == {"key", "value"} and len(a["value"]) == 1, a
        assert a["key"] not in found, a
        (kind, value), = a["value"].items()
        assert kind in ("stringValue", "intValue", "boolValue"), a
        found[a["key"]] = int(value) if kind == "intValue" else value
    return found


def check(span):
    assert re.fullmatch("[0-9a-f]{32}", span.trace) and set(span.trace) != {"0"}, span.trace
    assert re.fullmatch("[0-9a-f]{16}", span.id) and set(span.id) != {"0"}, span.id
    assert span.parent is None or re.fullmatch("[0-9a-f]{16}", span.parent), span.parent
    assert span.kind in (SERVER, CLIENT), span.kind
    assert 1.5e18 < span.begin <= span.end, (span.begin, span.end)
    for _, at, _ in span.events:
        assert span.begin <= at <= span.end, (span.begin, at, span.end)
    assert span.resource["service.name"] == "grapevine" and span.resource["service.instance.id"], span.resource


class Collector(Engine):
    """`status` is answered, or `handler` answers; `spans` are those of POSTs that were answered 2xx."""

    def __init__(self, **how):
        super().__init__(**how)
        self.spans, self.posts, self.status = [], [], 200
        self.handler = self.take

    def take(self, asked):
        body = asked.json
        self.posts.append(body)
        assert asked.method == "POST" and asked.get("content-type") == "application/json"
        if self.status // 100 == 2:
            for r in body["resourceSpans"]:
                resource = values(r["resource"]["attributes"])
                self.spans += [Span(s, resource) for scope in r["scopeSpans"] for s in scope["spans"]]
        asked.send(answer(self.status, b"{}"))

    def wait(self, requests):
        """The spans of this number of requests: [(the request's span, its attempts' spans)], each checked."""
        wait_for(lambda: len([s for s in self.spans if s.kind == SERVER]) >= requests, "%d traces" % requests)
        found = []
        for s in list(self.spans):
            check(s)
            if s.kind == SERVER:
                children = [c for c in self.spans if c.parent == s.id and c.kind == CLIENT]
                assert all(c.trace == s.trace and s.begin <= c.begin and c.end <= s.end for c in children)
                found.append((s, sorted(children, key=lambda c: c["http.request.resend_count"] or 0)))
        assert len(found) == requests, found
        assert len({s.id for s in self.spans}) == len(self.spans)
        return found


def dump(posts, path):
    """Writes the posts to a file, to check them by hand against the real definitions."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump(posts, f)

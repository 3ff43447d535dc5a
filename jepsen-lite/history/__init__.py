"""The history of a run: what each process did, and when. The README of jepsen-lite has the format.

Recorder writes it, from many threads. History reads it; checkers see nothing else of a run."""

import gc
import json
import threading
import time


class Operation:
    """One that was invoked; exactly one of ok, fail and info ends it."""

    def __init__(self, recorder, id, process, f):
        self.recorder, self.id, self.process, self.f, self.ended = recorder, id, process, f, False

    def _end(self, type, value):
        if self.ended:
            raise ValueError("operation %d of %s has ended" % (self.id, self.process))
        self.ended = True
        self.recorder.write(type, self.process, self.f, value, self.id)

    def ok(self, value=None):
        self._end("ok", value)

    def fail(self, value=None):
        self._end("fail", value)

    def info(self, value=None):
        self._end("info", value)


class Recorder:
    def __init__(self, path, began=None):
        self.began = time.monotonic() if began is None else began
        self.lock = threading.Lock()
        self.last_id = 0
        self.file = open(path, "w", encoding="utf-8", buffering=1)

    def now(self):
        return time.monotonic() - self.began

    def write(self, type, process, f, value=None, id=None, t=None):
        with self.lock:
            row = {"t": round(self.now() if t is None else t, 6), "type": type, "process": process, "f": f}
            if id is not None:
                row["id"] = id
            if value is not None:
                row["value"] = value
            self.file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def invoke(self, process, f, value=None):
        with self.lock:
            self.last_id += 1
            id = self.last_id
        self.write("invoke", process, f, value, id)
        return Operation(self, id, process, f)

    def event(self, process, f, value=None, t=None):
        """`t`: the time by another clock, if known; otherwise now."""
        self.write("event", process, f, value, t=t)

    def close(self):
        self.file.close()


class Entry:
    """A line. `value` is always a dict or a list; `ended` is the line that ends an invoke, or None."""

    __slots__ = ("t", "type", "process", "f", "id", "value", "ended")

    def __init__(self, row):
        self.t, self.type, self.process, self.f = row["t"], row["type"], row["process"], row["f"]
        self.id, self.value, self.ended = row.get("id"), row.get("value", {}), None


class Anomaly:
    """A violation. `rule`: its name in docs/jepsen-lite.md; `ids`: the operations that show it. `checker`: the rule's
    checker, set by the caller of the checkers."""

    checker = ""

    def __init__(self, rule, text, ids=(), t=None):
        self.rule, self.text, self.ids, self.t = rule, text, list(ids), t

    def __repr__(self):
        return "%s: %s" % (self.rule, self.text)


class History:
    """Entries by time. Of equal times, in the order in which they were written."""

    def __init__(self, rows):
        self.entries = sorted((Entry(r) for r in rows), key=lambda e: e.t)
        self.by_id = {}
        for e in self.entries:
            if e.type == "invoke":
                self.by_id[e.id] = e
            elif e.id is not None:
                self.by_id[e.id].ended = e

    @classmethod
    def read(cls, *paths):
        rows = []
        collecting = gc.isenabled()
        gc.disable()  # there is no garbage in it, and looking for some again and again takes twice as long as reading
        try:
            for path in paths:
                with open(path, encoding="utf-8") as f:
                    rows += [json.loads(line) for line in f if line.endswith("\n")]
            return cls(rows)
        finally:
            if collecting:
                gc.enable()

    @property
    def meta(self):
        return next((e.value for e in self.entries if e.process == "lab" and e.f == "meta"), {})

    def events(self, process=None, f=None):
        return [e for e in self.entries if e.type == "event" and process in (None, e.process) and f in (None, e.f)]

    def operations(self, prefix=""):
        """Operations with an f that begins so, by the time of their invoke."""
        return [e for e in self.entries if e.type == "invoke" and e.f.startswith(prefix)]

    @property
    def end(self):
        return self.entries[-1].t if self.entries else 0

    def faults(self):
        """[(from, to, value)] of nemeses; `to` is the end of the history if it was never mended."""
        began, out = {}, []
        for e in self.events("nemesis"):
            if e.f == "start":
                began[e.value["id"]] = e
            else:
                s = began.pop(e.value["id"])
                out.append((s.t, e.t, s.value))
        return sorted(out + [(s.t, self.end, s.value) for s in began.values()], key=lambda f: f[0])

    def rests(self):
        """[(pause, begin, end, calm)] of those that came to their end."""
        out, at = [], {}
        for e in self.events("lab", "rest"):
            at[e.value["phase"]] = e
            if e.value["phase"] == "end" and len(at) == 3:
                out.append((at["pause"].t, at["begin"].t, e.t, at["begin"].value.get("calm", True)))
                at = {}
        return out

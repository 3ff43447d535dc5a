"""Small histories, made by hand: of two routers and two engines, unless a test says otherwise."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from history import History  # noqa: E402

PORT = ":8000"


class Story:
    def __init__(self, workload, routers=2, engines=2, options=(), **limits):
        self.workload, self.rows, self.last_id = workload, [], 0
        machines = [{"name": "r%d" % i, "address": "10.0.1.%d" % i} for i in range(1, routers + 1)]
        self.replicas = {"e%d" % i: "10.0.2.%d" % i for i in range(1, engines + 1)}
        self.event(0, "lab", "meta", routers=machines, limits=limits, options=dict(options),
                   engines=[{"name": n, "address": a} for n, a in self.replicas.items()])
        for engine in self.replicas:
            self.event(0.1, engine, "start", life=1)
            self.event(0.11, engine, "begin")
        for machine in machines:
            self.event(0.2, machine["name"], "start", life=1)

    def event(self, t, process, f, **value):
        self.rows.append({"t": t, "type": "event", "process": process, "f": f, "value": value})

    def operation(self, t, end, f, value, how="ok", result=None, id=None):
        """Its id. Without `how` it never ends."""
        self.last_id += 1
        id = id or self.last_id + 1000
        row = {"process": "c1", "f": self.workload + "." + f, "id": id}
        self.rows.append(dict(row, t=t, type="invoke", value=value))
        if how:
            self.rows.append(dict(row, t=end, type=how, value=result or {}))
        return id

    def replica(self, engine):
        return self.replicas[engine] + PORT

    # --- engines

    def arrives(self, t, op, engine, tokens=300):
        self.event(t, engine, "request", op=op, request=1)
        self.event(t + 0.02, engine, "first", op=op, request=1, prompt_tokens=tokens, cached_tokens=0)

    def restart(self, t, engine, down=0.5):
        """kill -9, and a start."""
        self.event(t, engine, "exit", status=-9)
        self.event(t + down, engine, "start", life=2)
        self.event(t + down, engine, "begin")

    # --- what clients do

    def chat(self, t, op, router="r1", engine="e1", how="ok", reached=True):
        """`op` is a number as text."""
        if reached:
            self.arrives(t + 0.01, op, engine)
        result = {"replica": self.replica(engine)} if how == "ok" else {}
        return self.operation(t, t + 0.1, "chat", {"router": router}, how, result, id=int(op))

    def fault(self, begin, end, fault, *hosts, **more):
        id = "n%d" % len(self.rows)
        self.event(begin, "nemesis", "start", id=id, fault=fault, hosts=list(hosts), text=fault, **more)
        if end is not None:
            self.event(end, "nemesis", "stop", id=id, fault=fault)

    def rest(self, t, seconds=2, calm=True):
        self.event(t - 1, "lab", "rest", phase="pause")
        self.event(t, "lab", "rest", phase="begin", calm=calm)
        self.event(t + seconds, "lab", "rest", phase="end")

    def history(self):
        return History(self.rows)


def rules(anomalies):
    return [a.rule for a in anomalies]

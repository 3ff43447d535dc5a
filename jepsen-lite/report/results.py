"""Results of several runs, as tables in Markdown: by workload, and by fault. jepsen-lite/results.md has such tables.

    jepsen-lite/run --results FOLDER...
"""

import json
import os

from history import History
from .facts import Facts, percentile
from .markup import count, seconds


class Row:
    """Operations and anomalies of a workload, or under a fault."""

    def __init__(self):
        self.times = self.ok = self.failed = self.own = self.anomalies = 0
        self.took = []

    def add(self, counts, took):
        self.ok += counts["ok"]
        self.failed += counts["fail"] + counts["info"]
        self.own += counts["own"]
        self.took += took

    def cells(self):
        took = sorted(self.took)
        return [count(self.ok), count(self.failed), count(self.own), seconds(percentile(took, 0.5)),
                seconds(percentile(took, 0.99)), count(self.anomalies)]


HEAD = ["ok", "failed or unknown", "left, or told off", "p50", "p99", "anomalies"]


def add(facts, anomalies, workloads, faults):
    """Adds a run. `anomalies`: of verdict.json."""
    for name, w in facts.workloads.items():
        workloads.setdefault(name, Row()).add(w.counts, w.took)
    for a in anomalies:
        workloads.setdefault(a["checker"], Row()).anomalies += 1
        for name in {f.name for f in facts.during(a["t"], a["t"])} or {""} if a["t"] is not None else ():
            faults.setdefault(name, Row()).anomalies += 1
    for f in facts.faults:
        faults.setdefault(f.name, Row()).times += 1
    for name, row in facts.by_fault.items():
        faults.setdefault(name, Row()).add(row, row["took"])


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return "\n".join("| %s |" % " | ".join(row) for row in lines)


def tell(workloads, faults):
    return "%s\n\n%s" % (
        table(["workload"] + HEAD, [[n] + r.cells() for n, r in sorted(workloads.items())]),
        table(["nemesis", "times"] + HEAD, [["`%s`" % n if n else "none", count(r.times) if n else "", *r.cells()]
                                            for n, r in sorted(faults.items())]))


def main(folders):
    workloads, faults = {}, {}
    for folder in folders:
        if not os.path.exists(os.path.join(folder, "verdict.json")):
            print("jepsen-lite: no verdict.json in %s" % folder)
            return 2
        with open(os.path.join(folder, "verdict.json"), encoding="utf-8") as f:
            anomalies = json.load(f)["anomalies"]
        add(Facts(History.read(os.path.join(folder, "history.jsonl"))), anomalies, workloads, faults)
    print(tell(workloads, faults))
    return 0

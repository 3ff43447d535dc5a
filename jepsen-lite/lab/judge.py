"""The verdict on a history: the checkers' anomalies and figures, and the page that shows them.

Old folders can be judged again, with the checkers as they are now."""

import json
import os
import traceback

import plan
import report
from history import History

from . import found

ALWAYS = ("logs", "processes", "ready", "resources", "rest")  # checkers that need no workload


class Judgement:
    """`anomalies`: each knows its `checker`. `errors`: errors of the checkers themselves."""

    def __init__(self, folder):
        self.folder = folder
        self.history = History.read(os.path.join(folder, "history.jsonl"))
        self.anomalies, self.errors, self.figures = [], [], {}
        names = list(self.history.meta.get("workloads", [])) + list(ALWAYS)
        for name, checker in sorted(found.checkers().items()):
            if name in names:
                self.ask(name, checker)

    def ask(self, name, checker):
        try:
            for a in checker.check(self.history):
                a.checker = name
                self.anomalies.append(a)
            if hasattr(checker, "figures"):
                self.figures[name] = checker.figures(self.history)
        except Exception:
            self.errors.append("checkers.%s: %s" % (name, traceback.format_exc()))

    def write(self, errors=()):
        """report.html and verdict.json; returns the path of the former."""
        path = os.path.join(self.folder, "report.html")
        report.write(self.history, self.anomalies, self.figures, path)
        with open(os.path.join(self.folder, "verdict.json"), "w") as f:
            json.dump({"anomalies": [vars(a) for a in self.anomalies], "errors": list(errors) + self.errors}, f,
                      indent=1)
        return path

    def say(self, errors=()):
        """The verdict, as lines."""
        errors = list(errors) + self.errors
        for e in errors:
            print("the harness failed: %s" % e)
        for a in self.anomalies[:50]:
            when = "" if a.t is None else " at %.2f s" % a.t
            print("anomaly of %s%s: %s: %s" % (a.checker, when, a.rule, a.text))
        if len(self.anomalies) > 50:
            print("... and %d more" % (len(self.anomalies) - 50))
        self.say_faults()
        operations, rests = self.history.operations(), self.history.rests()
        failed = sum(1 for op in operations if op.ended is None or op.ended.type != "ok")
        print("%s: %d operations (%d without an answer), %d faults, %d rests (%d calm), seed %s" % (
            "%d anomalies" % len(self.anomalies) if self.anomalies else "no anomaly" if not errors else "no verdict",
            len(operations), failed, len(self.history.faults()), len(rests), sum(1 for r in rests if r[3]),
            self.history.meta.get("seed")))


    def say_faults(self):
        """Prints which of the requested faults came, and which pairs of families overlapped."""
        names = self.history.meta.get("nemeses", [])
        came = [(b, e, v["fault"]) for b, e, v in self.history.faults() if v.get("fault") in names]
        families = {plan.family(n) for n in names}
        met = {frozenset((plan.family(one), plan.family(other))) for i, (_, end, one) in enumerate(came)
               for begin, _, other in came[i + 1:] if begin < end and plan.family(one) != plan.family(other)}
        never = sorted(set(names) - {n for _, _, n in came})
        print("%d of %d kinds of faults came, %d of %d pairs of families%s" % (
            len(names) - len(never), len(names), len(met), len(families) * (len(families) - 1) // 2,
            "; never %s" % ", ".join(never) if never and len(never) <= 12 else ""))


def again(folder):
    """The exit status."""
    if not os.path.exists(os.path.join(folder, "history.jsonl")):
        print("jepsen-lite: no history.jsonl in %s" % folder)
        return 2
    j = Judgement(folder)
    path = j.write()
    j.say()
    print(path)
    return 2 if j.errors else 1 if j.anomalies else 0

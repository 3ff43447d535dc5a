"""The page as a whole: the verdict first, then the picture, then everything else."""

import base64
import hashlib
import os
import shlex

from . import explain, latency, tables, timeline
from .markup import Markup, count, h, join, many, seconds, text

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return f.read()


def again(meta):
    """The command that repeats the run."""
    if isinstance(meta.get("command"), list):
        words = list(map(str, meta["command"]))
        while "--out" in words:
            at = words.index("--out")
            del words[at:at + 2]
        return shlex.join(words)
    argv = ["jepsen-lite/run"]
    for flag, key in (("--workload", "workloads"), ("--nemesis", "nemeses")):
        if isinstance(meta.get(key), list) and meta[key]:
            argv += [flag, ",".join(map(str, meta[key]))]
    for key in ("routers", "engines"):
        if isinstance(meta.get(key), list) and meta[key]:
            argv += ["--" + key, str(len(meta[key]))]
    for key in ("seconds", "seed", "bug"):
        if meta.get(key) is not None:
            value = meta[key]
            argv += ["--" + key, "%g" % value if isinstance(value, float) else str(value)]
    return shlex.join(argv)


def verdict(anomalies):
    if not anomalies:
        return "No anomaly"
    rules = {}
    for a in anomalies:
        named = explain.rule(a)
        rules[named] = rules.get(named, 0) + 1
    often = sorted(rules.items(), key=lambda x: -x[1])[:6]
    named = ", ".join(r if n == 1 else "%s × %s" % (r, count(n)) for r, n in often)
    return "%s: %s%s" % (many(len(anomalies), "anomaly"), named, ", …" if len(rules) > 6 else "")


def summary(facts):
    """One sentence that describes the service, its faults and its operations."""
    meta = facts.meta
    done = {k: sum(w.counts[k] for w in facts.workloads.values()) for k in ("fail", "info")}
    parts = [many(len(facts.names("routers")), "router") + ", " + many(len(facts.names("engines")), "engine"),
             seconds(facts.end), many(len(facts.faults), "fault"), many(len(facts.rests), "rest"),
             "%s: %s failed, %s unknown" % (many(facts.operations, "operation"),
                                            count(done["fail"]), count(done["info"]))]
    out = [h("p", " · ".join(parts), cls="facts")]
    if meta.get("proxy"):
        out.append(h("p", "In Grapevine's place: ", h("code", meta["proxy"])))
    if meta.get("bug"):
        out.append(h("p", "Built with the known bug ", h("code", meta["bug"]), ": an anomaly is what should be found."))
    missing = meta.get("missing")
    if isinstance(missing, list) and missing:
        said = list(map(str, missing))
        out.append(h("p", "Left out on this machine: " + "; ".join(said) + ".", cls="quiet"))
    return join(out)


def section(id, title, *content):
    return h("section", h("h2", title, id=id + "-title"), *content, id=id, aria_labelledby=id + "-title")


def build(facts, anomalies, figures):
    meta = facts.meta
    said = verdict(anomalies)
    failed, where = tables.failures(facts)
    latencies = latency.lanes(facts)
    script = read("page.js").strip()
    allowed = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'" % (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode())
    parts = [("time", "What happened", timeline.draw(facts, anomalies, where, latencies)),
             ("anomalies", "Anomalies", explain.tell(facts, anomalies)),
             ("workloads", "Workloads", tables.workloads(facts, anomalies, figures)),
             ("faults", "Faults", tables.faults(facts, anomalies)),
             ("rests", "Rests", tables.rests(facts)),
             ("failures", "Failures", h("p", "A failure is no anomaly by itself: where nobody could have answered, an "
                                        "honest failure is right. The checker of the workload judges."), failed),
             ("figures", "Figures of the checkers", tables.figures(figures)),
             ("setting", "The service", tables.setting(facts))]
    nav = h("nav", h("ul", *(h("li", h("a", p[1], href="#" + p[0])) for p in parts)),
            aria_label="Sections")
    command = again(meta)
    seed = meta.get("seed")
    head = h("header",
             h("p", "jepsen-lite", " · seed %s" % seed if seed is not None else None, cls="over"),
             h("h1", h("span", "✓" if not anomalies else "✗", aria_hidden="true", cls="mark"), " ", said),
             summary(facts),
             explain.brief(anomalies) if anomalies else None,
             h("p", h("span", "Again: ", cls="quiet"), h("code", command, id="again"), " ",
               h("button", "copy", type="button", id="copy", hidden=True), cls="again"),
             cls="good" if not anomalies else "found")
    title = "jepsen-lite%s: %s" % (", seed %s" % seed if seed is not None else "", said)
    body = h("body", h("a", "To the verdict", href="#main", cls="skip"), head, nav,
             h("main", *(section(p[0], p[1], *p[2:]) for p in parts), id="main", tabindex="-1"),
             h("footer", h("p", "Times are seconds of the machine's monotonic clock since the start of the run. "
                           "history.jsonl beside this page has every operation, log line and journal line.")),
             h("script", Markup(script)))
    return Markup("<!DOCTYPE html>\n") + h("html", h(
        "head", h("meta", charset="utf-8"), h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", http_equiv="Content-Security-Policy", content=allowed),
        h("meta", name="color-scheme", content="light dark"), h("title", text(title)),
        h("style", Markup(read("style.css")))), body, lang="en") + "\n"

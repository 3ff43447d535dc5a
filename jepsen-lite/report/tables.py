"""The tables of a report: workloads, faults, rests, failures, and the figures of checkers."""

import json

from .facts import KINDS, natural, percentile
from .markup import count, h, join, many, seconds, short, table
from .timeline import FAULTS, stamp

FAILURES = 500   # listed, at least one of each window while there is room
OWN = "left, or told off"  # facts.py: own
KINDS_MAX = 40   # kinds of failures


def workloads(facts, anomalies, figures):
    rows = []
    for name in sorted(set(facts.workloads) | set(figures), key=natural):
        w = facts.workloads.get(name)
        c = w.counts if w else {"ok": 0, "fail": 0, "info": 0, "own": 0}
        took = sorted(w.took) if w else []
        found = sum(1 for a in anomalies if a.checker == name)
        rows.append([name] + [count(c[k]) for k in KINDS]
                    + [seconds(percentile(took, p)) for p in (0.5, 0.99)] + [count(found) if found else "none"])
    return table(["workload", "ok", "failed", "unknown", OWN, "p50", "p99", "anomalies"], rows, None, "sums",
                 range(1, 8))


def faults(facts, anomalies):
    """Operations asked during a fault: by its name, and all faults one by one."""
    sums = {}
    for f in facts.faults:
        s = sums.setdefault(f.name, [0, 0.0])
        s[0] += 1
        s[1] += f.ended - f.began
    rows = []
    for name in list(sums) + [""]:
        row = facts.by_fault.get(name, {"ok": 0, "fail": 0, "info": 0, "own": 0, "took": []})
        took = sorted(row["took"])
        times, lasted = sums.get(name, (None, None))
        found = sum(1 for a in anomalies if a.t is not None and
                    (name in {f.name for f in facts.during(a.t, a.t)} if name else not facts.during(a.t, a.t)))
        rows.append([name or "no fault", count(times) if times else "–", seconds(lasted) if times else "–"]
                    + [count(row[k]) for k in KINDS]
                    + [seconds(percentile(took, p)) for p in (0.5, 0.99)] + [count(found) if found else "none"])
    out = [table(["fault", "times", "lasted", "ok", "failed", "unknown", OWN, "p50", "p99", "anomalies"], rows,
                 "Operations that began while it lasted (under two faults at once: in two rows)", "sums", range(1, 10))]
    if facts.faults:
        each = [h("tr", h("td", stamp(f.began), cls="n"), h("td", seconds(f.ended - f.began), cls="n"),
                  h("th", f.name, scope="row"), h("td", ", ".join(f.hosts)), h("td", short(f.text, 120)),
                  id="fault-%d" % f.number) for f in facts.faults[:FAULTS]]
        head = h("thead", h("tr", *(h("th", x, scope="col") for x in ("at", "lasted", "fault", "machines", "what"))))
        out.append(h("details", h("summary", "All faults, one by one"),
                     h("div", h("table", head, h("tbody", *each)), cls="wide tall", tabindex="0", role="region",
                       aria_label="All faults"),
                     open=len(facts.faults) <= 40))
        if len(facts.faults) > FAULTS:
            out.append(h("p", "%s more are in the history." % count(len(facts.faults) - FAULTS)))
    return h("div", *out)


def rests(facts):
    if not facts.rests:
        return h("p", "The run had no rest that came to its end: nothing was judged of a service at rest.")
    waits = sorted(begin - pause for pause, begin, _, _ in facts.rests)
    restless = sum(1 for r in facts.rests if not r[3])
    said = "%s; until all was calm: p50 %s, longest %s." % (many(len(waits), "rest"), seconds(percentile(waits, 0.5)),
                                                          seconds(waits[-1]))
    if restless:
        said += " %s not calm within the stated time." % ("One was" if restless == 1 else "%d were" % restless)
    rows = []
    for pause, begin, end, calm in facts.rests[:400]:
        past = [f for f in facts.faults if f.ended <= pause + 0.001]
        last = [f.text for f in past if past and max(p.ended for p in past[-8:]) - f.ended < 2][-3:]
        how = h("span", "yes", cls="kind ok") if calm else h("span", "no: " + facts.whys.get(begin, ""), cls="fail")
        rows.append([stamp(pause), seconds(begin - pause), how, seconds(end - begin),
                     short("; ".join(last) or "–", 200)])
    return h("div", h("p", said), h("details", h("summary", "All rests"),
             table(["clients stopped at", "calm after", "calm", "lasted", "after"], rows, None, None, (0, 1, 3)),
             open=len(rows) <= 30))


def reason(e):
    """Why an operation failed, in few words."""
    v = e.ended.value if e.ended is not None else None
    if e.ended is None:
        return "it had no end when the history ended"
    if isinstance(v, dict):
        said = [str(v[k]) for k in ("error", "why", "reason", "code") if v.get(k) not in (None, "", {}, [])]
        if v.get("status") not in (None, 200):
            said.insert(0, str(v["status"]))
        if said:
            return short(", ".join(said), 120)
    return short(v, 120) if v else "no reason given"


def failures(facts):
    """The section, and where it has those of (workload, bin)."""
    if not facts.failed:
        return h("p", "No operation failed, and none is unknown."), {}
    kinds, by_bin = {}, {}
    for e in facts.failed:
        type_ = e.ended.type if e.ended is not None else "info"
        said = reason(e)
        k = kinds.setdefault((e.f, type_, said), [0, e.t, e.t])
        k[0] += 1
        k[2] = e.t
        at = e.ended.t if e.ended is not None else facts.end
        by_bin.setdefault((e.f.partition(".")[0], facts.bin(at)), []).append((at, e, type_, said))
    rows = [[f, kind(type_), said, count(n), stamp(a), stamp(b)]
            for (f, type_, said), (n, a, b) in sorted(kinds.items(), key=lambda x: -x[1][0])[:KINDS_MAX]]
    out = [table(["operation", "end", "why", "times", "first", "last"], rows,
                 "By what clients were told (%d of %d kinds)" % (len(rows), len(kinds)) if len(kinds) > KINDS_MAX else
                 "By what clients were told",
                 None, (3, 4, 5))]
    each = max(1, FAILURES // len(by_bin))
    body, where, last = [], {}, {}
    for (name, number), group in sorted(by_bin.items(), key=lambda x: (x[0][1], x[0][0])):
        if len(body) < FAILURES:
            last[name] = "f-%s-%d" % (name_id(name), number)
        where[name, number] = last.get(name, "failures")
        if len(body) >= FAILURES:
            continue
        for i, (at, e, type_, said) in enumerate(group[:each]):
            more = len(group) - each if i == each - 1 and len(group) > each else 0
            body.append(h("tr", h("td", stamp(round(at, 3)), cls="n"), h("th", e.f, scope="row"), h("td", e.process),
                          h("td", kind(type_)),
                          h("td", said, h("small", " and %s more" % count(more)) if more else None, " ",
                            h("code", short(e.value, 120)) if e.value else None),
                          id=last[name] if i == 0 else None))
    columns = ("at", "operation", "by", "end", "why, and what for")
    head = h("thead", h("tr", *(h("th", x, scope="col") for x in columns)))
    said = "One by one, by time (%s of %s)" % (count(len(body)), count(len(facts.failed)))
    out.append(h("details", h("summary", said),
                 h("div", h("table", head, h("tbody", *body)), cls="wide tall", tabindex="0", role="region",
                   aria_label="Failures by time"), open=True))
    return h("div", *out), where


def name_id(name):
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def kind(type_):
    return h("span", {"fail": "failed", "info": "unknown"}.get(type_, type_), cls="kind " + type_)


def figures(all_of):
    """Each checker's figures: numbers in a table; tables of tables in tables of their own."""
    if not all_of:
        return h("p", "The checkers gave none.")
    return h("div", *(h("section", h("h3", name), shown(value)) for name, value in all_of.items()), cls="figures")


def plain(v):
    if isinstance(v, bool):
        return "yes" if v else "no"
    if isinstance(v, float):
        return "%.4g" % v
    if isinstance(v, int):
        return count(v)
    return short(v, 300) if v is not None else "–"


def shown(value, depth=0):
    if isinstance(value, dict) and value:
        values = list(value.values())
        if all(isinstance(v, dict) and v and not any(isinstance(x, (dict, list)) for x in v.values()) for v in values):
            columns = list(dict.fromkeys(k for v in values for k in v))[:12]
            return table([""] + columns, [[short(k, 80)] + [plain(v.get(c)) for c in columns]
                                          for k, v in list(value.items())[:100]], None, "sums", range(1, 13))
        flat = {k: v for k, v in value.items() if not (isinstance(v, dict) and v) and not rows_of(v)}
        deep = {k: v for k, v in value.items() if k not in flat}
        listed = h("dl", *(h("div", h("dt", short(k, 80)), h("dd", plain(v))) for k, v in list(flat.items())[:100]))
        return join([listed if flat else None] + [
            h("div", h("h4", short(k, 80)), shown(v, depth + 1) if depth < 4 else h("code", short(v, 300)))
            for k, v in list(deep.items())[:40]])
    if rows_of(value):
        columns = list(dict.fromkeys(k for v in value for k in v))[:12]
        return table(columns, [[plain(v.get(c)) for c in columns] for v in value[:100]])
    return h("p", plain(value))


def rows_of(v):
    return isinstance(v, list) and bool(v) and all(isinstance(x, dict) and x for x in v)


def setting(facts):
    """The setup of the service."""
    meta = facts.meta
    out = []
    for key in ("limits", "options", "machine"):
        v = meta.get(key)
        if isinstance(v, dict) and v:
            out.append(h("section", h("h3", key), h("dl", *(h("div", h("dt", short(k, 80)), h("dd", plain(x)))
                                                          for k, x in list(v.items())[:100]))))
        elif v:
            line = " ".join(map(str, v)) if isinstance(v, list) else json.dumps(v)
            out.append(h("section", h("h3", key), h("p", h("code", short(line, 2000)))))
    builds = sorted({str(e.value.get("build")) for e in facts.lines if e.f == "start" and isinstance(e.value, dict)
                     and e.value.get("build")})
    if builds:
        out.append(h("section", h("h3", "builds"), h("p", h("code", short(", ".join(builds), 400)))))
    return h("div", *out, cls="figures") if out else h("p", "The history says nothing of it.")

"""Anomalies one by one: what was broken, the operations that show it, and what machines wrote around them."""

import json
import re

from .markup import count, h, many, short, table, text
from .timeline import stamp

WHOLE = 30          # anomalies shown in full, shared out over rules
LISTED = 200        # and with one line each
AROUND = 3.0        # seconds before and after


def rule(anomaly):
    """With the name of its checker."""
    return "%s: %s" % (anomaly.checker, anomaly.rule) if anomaly.checker else anomaly.rule


class Room:
    """Limits of one anomaly's section: the more anomalies, the smaller."""

    def __init__(self, told):
        def of(total, least, most):
            return max(least, min(most, total // max(1, told)))
        self.operations, self.lines = of(240, 8, 30), of(1000, 20, 120)
        self.value, self.line = of(4000, 150, 1200), of(4000, 160, 400)
        self.words = of(20000, 400, 2000)


def window(facts, anomaly):
    """From and to, its operations, and its time."""
    ops = [facts.history.by_id[i] for i in anomaly.ids if i in facts.history.by_id]
    times = [e.t for e in ops] + [e.ended.t for e in ops if e.ended is not None]
    at = anomaly.t if anomaly.t is not None else max(times, default=None)
    if at is None:
        return None, None, ops, None
    times = [t for t in times if abs(t - at) < 60] + [at]
    return max(0, min(times) - AROUND), min(facts.end, max(times) + AROUND), ops, at


def chosen(anomalies):
    """Numbers of those shown in full: first one of each rule, then a second of each, and so on."""
    by_rule = {}
    for i, a in enumerate(anomalies):
        by_rule.setdefault(rule(a), []).append(i)
    out, turn = [], 0
    while len(out) < min(WHOLE, len(anomalies)):
        out += [numbers[turn] for numbers in by_rule.values() if turn < len(numbers)]
        turn += 1
    return sorted(out[:WHOLE])


def value(v, most):
    if v in ({}, None, []):
        return "–"
    line = json.dumps(v, ensure_ascii=False, separators=(", ", ": "))
    return h("code", short(line, most))


def operations(ops, room):
    rows = []
    for e in ops[:room.operations]:
        end = e.ended
        how, until, saw = (end.type, "%.3f" % end.t, end.value) if end is not None else ("no end", "–", None)
        how = h("span", how, cls="kind " + (end.type if end is not None else "info"))
        rows.append(["%d" % e.id, e.f, e.process, "%.3f" % e.t, until, how,
                     value(e.value, room.value), value(saw, room.value)])
    caption = "Its operations" + (" (the first %d of %d)" % (len(rows), len(ops)) if len(ops) > len(rows) else "")
    return table(["id", "operation", "by", "from, s", "to, s", "end", "asked", "saw"], rows, caption, "ops", (0, 3, 4))


def names_in(facts, ops, anomaly):
    """Machines that the anomaly speaks of."""
    said = json.dumps([[e.process, e.value, e.ended.value if e.ended is not None else None] for e in ops[:30]])
    words = set(re.findall(r"[A-Za-z0-9_.:-]+", said + " " + anomaly.text))
    known = set(facts.machines())
    addresses = {}
    for key in ("routers", "engines"):
        for x in facts.meta.get(key) or []:
            if isinstance(x, dict) and x.get("address"):
                addresses[str(x["address"])] = str(x.get("name"))
    found = words & known
    for word in words:
        name = addresses.get(word) or addresses.get(word.partition(":")[0])
        if name:
            found.add(name)
    return found


def near(facts, a, b, at, ops, machines, room):
    """Lines around it: first those that name an operation, then those of its machines, the nearest first."""
    lines = facts.lines_between(a, b)
    ids = {str(e.id) for e in ops}
    rows = []
    for e in lines:
        op = str(e.value.get("op")).rpartition("-")[2] if isinstance(e.value, dict) else None  # most are NAME-ID
        rows.append((0 if op in ids else 1 if e.process in machines else 2, abs(e.t - at), e))
    kept = sorted(rows, key=lambda r: r[:2])[:room.lines]
    return sorted(((rank, e) for rank, _, e in kept), key=lambda r: r[1].t), len(lines)


def log_lines(rows, total, at, a, b, room):
    if not rows:
        return h("p", "Neither a log nor a journal has a line from %s to %s." % (stamp(a), stamp(b)), cls="quiet")
    body = []
    for rank, e in rows:
        v = e.value
        name = log_name(v) if e.f == "log" else str(e.f)
        said = [h("b", short(name, 40)), " ", h("code", short(rest_of(v), room.line))]
        body.append(h("tr", h("td", "%+.3f" % (e.t - at), cls="n"), h("th", e.process, scope="row"), h("td", *said),
                      cls=("mine", "", "other")[rank] or None))
    caption = "%s of routers and engines, %s to %s%s; times are from the anomaly" % (
        many(len(rows), "line"), stamp(a), stamp(b), "" if total == len(rows) else " (of %s)" % count(total))
    return h("details", h("summary", caption),
             h("div", h("table", h("thead", h("tr", h("th", "s", scope="col", cls="n"), h("th", "machine", scope="col"),
                                              h("th", "line", scope="col"))), h("tbody", *body), cls="log"),
               cls="wide tall", tabindex="0", role="region", aria_label=caption), open=True)


def log_name(v):
    if isinstance(v, dict):
        for name in ("event", "msg", "message"):
            if v.get(name):
                return str(v[name])
    return "log"


def rest_of(v):
    if not isinstance(v, dict):
        return short(v, 400)
    skip = {"event", "msg", "message", "time", "ts"}
    return ", ".join("%s %s" % (k, x if isinstance(x, str) else json.dumps(x, ensure_ascii=False))
                     for k, x in v.items() if k not in skip)


def picture(facts, a, b, at, ops):
    """Faults and operations of the window, as bars."""
    rows = [("fault", f.began, f.ended, f.text) for f in facts.during(a, b)][:8]
    for e in ops[:12]:
        end = e.ended
        rows.append((end.type if end is not None else "info", e.t, end.t if end is not None else facts.end,
                     "%d %s by %s" % (e.id, e.f, e.process)))
    if not rows or b <= a:
        return None
    size = 22

    def x(t):
        return "%.2f%%" % (100 * (min(b, max(a, t)) - a) / (b - a))

    marks = [h("line", x1=x(at), x2=x(at), y1=0, y2="100%", cls="bad")]
    for i, (cls, began, ended, said) in enumerate(rows):
        wide = "%.2f%%" % max(0.4, 100 * (min(b, max(a, ended)) - min(b, max(a, began))) / (b - a))
        late = (began - a) / (b - a) > 0.6
        marks.append(h("rect", x=x(began), width=wide, y=i * size + 3, height=size - 6, rx="3", cls="bar " + cls))
        marks.append(h("text", short(said, 80), x=x(ended) if late else x(began), y=i * size + 15,
                       text_anchor="end" if late else None, dx="-6" if late else "6"))
    return h("figure", h("svg", *marks, width="100%", height=size * len(rows), role="img",
                         aria_label="Faults and operations around the anomaly"),
             h("figcaption", h("span", stamp(a)), h("span", stamp(b))), cls="around")


def article(facts, number, anomaly, room):
    a, b, ops, at = window(facts, anomaly)
    during = facts.during(at, at) if at is not None else []
    if at is None:
        when = "No time is given."
    else:
        resting = any(p <= at <= e for p, _, e, _ in facts.rests)
        when = "At %s, %s." % (stamp(at), "during: " + "; ".join(f.text for f in during) if during
                              else "in a rest" if resting else "while no fault lasted")
        if not during:
            past = [f for f in facts.faults if f.ended <= at]
            if past:
                last = max(past, key=lambda f: f.ended)
                when += " The last fault, %s, had ended %.1f s before." % (last.text, at - last.ended)
    parts = [h("h3", h("span", number, cls="no"), h("code", rule(anomaly)), " ", short(anomaly.text, room.words)),
             h("p", when, cls="when")]
    if at is not None:
        parts.append(picture(facts, a, b, at, ops))
    if ops:
        parts.append(operations(ops, room))
    if at is not None:
        rows, total = near(facts, a, b, at, ops, names_in(facts, ops, anomaly), room)
        parts.append(log_lines(rows, total, at, a, b, room))
    return h("article", *parts, id="anomaly-%d" % number, cls="anomaly")


def brief(anomalies):
    """The first one of each rule, for the top of the page."""
    first, times = {}, {}
    for i, a in enumerate(anomalies):
        first.setdefault(rule(a), i)
        times[rule(a)] = times.get(rule(a), 0) + 1
    told = set(chosen(anomalies))
    rows = []
    for name, i in list(first.items())[:6]:
        more = "" if times[name] == 1 else " × %s, at first" % count(times[name])
        where = "#anomaly-%d" % (i + 1) if i in told else "#anomalies"
        rows.append(h("li", h("a", h("code", name), href=where), more, ": ", short(anomalies[i].text, 220)))
    others = len(first) - len(rows)
    return h("ul", *rows, h("li", h("a", "%s more rules" % count(others), href="#anomalies")) if others else None,
             cls="brief")


def line(number, a):
    return [str(number), h("code", rule(a)), stamp(a.t) if a.t is not None else "–", short(a.text, 200)]


def tell(facts, anomalies):
    if not anomalies:
        return h("p", "None. Every rule of every checker held over the whole history.")
    whole = chosen(anomalies)
    room = Room(len(whole))
    parts = [article(facts, i + 1, anomalies[i], room) for i in whole]
    rest = [i for i in range(len(anomalies)) if i not in set(whole)]
    if rest:
        parts.append(table(["number", "rule", "at", "what"],
                           [line(i + 1, anomalies[i]) for i in rest[:LISTED]], "The others, a line each"))
    if len(rest) > LISTED:
        parts.append(h("p", text("%s more are not listed: call the checkers on the history to see them." %
                                 count(len(rest) - LISTED))))
    return h("div", *parts)

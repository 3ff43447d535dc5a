"""The time line: faults, machines and what clients saw, one lane above the other, all on one axis.

Positions across are shares of the width, so that one page serves a phone and a wall; heights are pixels."""

import math

from .facts import natural
from .markup import Markup, h, many, seconds, short

LANE = 60  # height of a lane of counts, the base line in its middle but for a third
BASE = 40
FAULTS = 1000  # in the table of all


def share(facts, t):
    return "%.5g%%" % (100 * min(1, max(0, t / facts.end)))


def ticks(end):
    """(seconds, rank): rank 0 is always shown, 1 and 2 when one looks closer."""
    steps = [s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600) if end / s <= 6] or [end / 5]
    big = steps[0]
    def rank(i):
        return 0 if i % 20 == 0 else 1 if i % 5 == 0 else 2
    return [(i * big / 20, rank(i)) for i in range(int(end / big * 20) + 1)]


def stamp(t):
    t = round(t, 2)
    return "%g s" % t if t < 120 else ("%d:%02d" % divmod(t, 60) if t == int(t) else "%d:%05.2f" % divmod(t, 60))


def axis(facts):
    return lane("", h("div", *(h("span", stamp(t), cls="tick t%d" % rank, style="left:" + share(facts, t))
                              for t, rank in ticks(facts.end)), cls="axis", aria_hidden="true"), cls="axisrow")


def lane(label, content, cls="", note=None, aside=None):
    notes = note if isinstance(note, list) else [note]
    return h("div", h("div", h("span", label), h("small", *notes) if note else None, aside, cls="label"),
             h("div", content, cls="strip"), cls=("lane " + cls).strip())


def behind(facts, anomalies):
    """Rests and anomalies, behind all lanes."""
    marks = []
    for pause, begin, end, calm in facts.rests:
        marks.append(h("rect", x=share(facts, pause), width=share(facts, end - pause), y="0", height="100%",
                       cls="rest" if calm else "rest restless"))
    for x in sorted({"%.1f%%" % (100 * min(1, max(0, a.t / facts.end))) for a in anomalies if a.t is not None}):
        marks.append(h("line", x1=x, x2=x, y1="0", y2="100%", cls="bad"))
    return h("svg", *marks, cls="behind", width="100%", height="100%", aria_hidden="true")


def packed(faults):
    """Lanes in which none overlaps the next, as few as there can be."""
    out = []
    for f in faults:
        free = next((row for row in out if row[-1].ended <= f.began), None)
        if free is None:
            out.append(free := [])
        free.append(f)
    return out


def fault_lanes(facts):
    """All faults, in as few lanes as they need; each leads to its row in the table."""
    out = []
    for row in packed(facts.faults):
        bars = []
        for f in row:
            said = short("%s: %s to %s, %s" % (f.name, stamp(f.began), stamp(f.ended), f.text), 120)
            place = "left:%s;width:%s" % (share(facts, f.began), share(facts, f.ended - f.began))
            bars.append(h("a", h("span", f.name, " ", h("small", short(", ".join(f.hosts), 60))), cls="fault",
                          style=place, title=said, href="#fault-%d" % f.number if f.number < FAULTS else "#faults",
                          data_from="%.3f" % f.began, data_to="%.3f" % f.ended))
        out.append(lane("", h("div", *bars, cls="bars")))
    return out


def touched(facts, faults):
    return [h("rect", h("title", "%s, %s to %s" % (f.name, stamp(f.began), stamp(f.ended))), x=share(facts, f.began),
              width=share(facts, f.ended - f.began), y="2", height="12", rx="3", cls="touched") for f in faults]


def nemesis_lanes(facts):
    """The same by name."""
    by_name, out = {}, []
    for f in facts.faults:
        by_name.setdefault(f.name, []).append(f)
    for name in sorted(by_name):
        faults = by_name[name]
        svg = h("svg", *touched(facts, faults), width="100%", height="16", role="img",
                aria_label="%s: %s" % (name, many(len(faults), "fault")))
        out.append(lane(name, svg, cls="thin"))
    return out


def machine_lanes(facts):
    out = []
    for name in facts.machines():
        up = facts.up(name)
        faults = [f for f in facts.faults if name in f.hosts]
        marks = touched(facts, faults)
        for a, b in up if up is not None else [(0, facts.end)]:
            marks.append(h("rect", x=share(facts, a), width=share(facts, b - a), y="7", height="2",
                           cls="up" if up is not None else "up unknown"))
        lives = 0 if up is None else len(up)
        said = "%s: %s, %s" % (name, many(len(faults), "fault"), "%d lives" % lives if lives != 1 else "1 life")
        out.append(lane(name, h("svg", *marks, width="100%", height="16", role="img", aria_label=said), cls="thin"))
    return out


def steps(bins, of, scale):
    """A path around columns: bin by bin, gaps where there is nothing."""
    parts, last = [], None
    for i in sorted(bins):
        n = of(bins[i])
        if not n:
            continue
        y = BASE - max(1, n * scale)
        if last is not None and last[0] == i - 1:
            parts.append("V%.1fH%d" % (y, i + 1))
        else:
            if last is not None:
                parts.append("V%dZ" % BASE)
            parts.append("M%d %dV%.1fH%d" % (i, BASE, y, i + 1))
        last = (i, y)
    return "".join(parts) + ("V%dZ" % BASE if parts else "")


def client_lanes(facts, failures):
    """`failures`: where the list of failures has those of (workload, bin)."""
    out = []
    for name in sorted(facts.workloads, key=natural):
        w = facts.workloads[name]
        most = max((b.ok for b in w.bins.values()), default=0)
        worst = max((b.fail + b.info for b in w.bins.values()), default=0)
        marks = [h("path", d=steps(w.bins, lambda b: b.ok, (BASE - 2) / max(1, most)), cls="ok"),
                 h("path", d="M0 %dH%d" % (BASE, facts.bins), cls="base")]
        for i in sorted(w.bins):
            b = w.bins[i]
            if not b.fail + b.info:
                continue
            depth = LANE - BASE - 2
            total = max(4.0, depth * math.sqrt((b.fail + b.info) / worst))
            fail = total * b.fail / (b.fail + b.info)
            said = "%s at %s: %d failed, %d unknown, %d ok" % (name, stamp(i * facts.width), b.fail, b.info, b.ok)
            shapes = [h("title", said)]
            for kind, y, height in (("fail", BASE + 1, fail), ("info", BASE + 1 + fail, total - fail)):
                if height > 0:
                    shapes.append(h("path", d="M%d %.1fh1v%.1fh-1Z" % (i, y, height), cls=kind))
            marks.append(h("a", *shapes, href="#" + failures.get((name, i), "failures")))
        c = w.counts
        said = "%s: %d ok, %d failed, %d unknown" % (name, c["ok"], c["fail"], c["info"])
        svg = h("svg", *marks, viewBox="0 0 %d %d" % (facts.bins, LANE), preserveAspectRatio="none", width="100%",
                height=LANE, role="group", aria_label=said)
        out.append(lane(name, svg, cls="counts", note="%s/s at most" % rate(most / facts.width)))
    return out


def rate(r):
    return "%.0f" % r if r >= 10 else "%.2g" % r


def zooms(facts):
    """Radio buttons that widen the picture: no script is needed."""
    most = max(1, facts.end / 20)
    choices = [z for z in (1, 2, 4, 8, 16, 32, 64) if z <= most * 2] if most > 1 else [1, 2, 4]
    buttons = []
    for z in choices[:6]:
        buttons.append(h("input", type="radio", name="zoom", id="zoom%d" % z, checked=z == 1))
        buttons.append(h("label", "whole" if z == 1 else "× %d" % z, for_="zoom%d" % z))
    return h("fieldset", h("legend", "Closer"), *buttons, cls="zooms") if len(choices) > 1 else Markup("")


def draw(facts, anomalies, failures, latencies):
    words = ("A column of clients is %s. Up: answered well. Down: failed, or nobody knows; "
             "choose one to see them. " % seconds(facts.width))
    groups = [("Faults", fault_lanes(facts) or [lane("", h("p", "none", cls="none"))]),
              ("What clients saw", client_lanes(facts, failures)),
              ("How long answers took", latencies),
              ("Faults by name", nemesis_lanes(facts)),
              ("Machines: when they ran, and when a fault touched them", machine_lanes(facts))]
    rows = [axis(facts)]
    for title, lanes in groups:
        if lanes:
            rows.append(h("h3", h("span", title)))
            rows += lanes
    rows.append(axis(facts))
    return h("div", h("p", words, key(), cls="legend"), zooms(facts),
             h("div", h("div", h("div", behind(facts, anomalies), h("div", cls="cross", hidden=True), cls="under"),
                        *rows, cls="lanes", data_end="%.3f" % facts.end),
               cls="scroll", tabindex="0", role="region", aria_label="Time line, can be scrolled"),
             h("p", cls="readout", id="readout", aria_hidden="true"), cls="timeline")


def key():
    entries = [("ok", "ok"), ("fail", "failed"), ("info", "unknown"), ("rest", "rest"),
               ("restless", "rest, not calm in time"), ("bad", "anomaly"), ("p50", "p50"), ("p99", "p99")]
    return h("span", *(h("span", h("i", cls="k-" + cls), word) for cls, word in entries), cls="key")

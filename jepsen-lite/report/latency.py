"""Latency of good answers: p50 and p99 of each window of time, on a scale of powers of ten."""

import math

from .facts import natural, percentile
from .markup import h, seconds
from .timeline import lane

HEIGHT = 84
LEAST = 0.0001


def points(facts, workload):
    """[(bin, p50, p99)]; sorts what each bin holds."""
    out = []
    for i in sorted(workload.bins):
        took = workload.bins[i].took
        if took:
            took.sort()
            out.append((i, max(LEAST, percentile(took, 0.5)), max(LEAST, percentile(took, 0.99))))
    return out


def path(series, y):
    """A line through the middles of bins; a bin without neighbours is a dot."""
    parts, last = [], None
    for i, value in series:
        parts.append("%s%.1f %.1f" % ("L" if last == i - 1 else "M", i + 0.5, y(value)))
        if last != i - 1:
            parts.append("h.01")
        last = i
    return "".join(parts)


def lanes(facts):
    out = []
    for name in sorted(facts.workloads, key=natural):
        w = facts.workloads[name]
        series = points(facts, w)
        if not series:
            continue
        low = math.floor(math.log10(min(p[1] for p in series)))
        high = max(low + 2, math.ceil(math.log10(max(p[2] for p in series)) - 1e-9))

        def y(value, low=low, high=high):
            return HEIGHT - 7 - (HEIGHT - 14) * (math.log10(value) - low) / (high - low)

        marks, labels = [], []
        for power in range(low, high + 1):
            marks.append(h("path", d="M0 %.1fH%d" % (y(10.0 ** power), facts.bins), cls="grid"))
            if power < high or high - low < 4:
                labels.append(h("span", seconds(10.0 ** power).replace(".00", "").replace(".0", ""),
                                style="top:%.0fpx" % y(10.0 ** power)))
        marks.append(h("path", d=path([(i, b) for i, _, b in series], y), cls="p99"))
        marks.append(h("path", d=path([(i, a) for i, a, _ in series], y), cls="p50"))
        w.took.sort()
        middle, worst = seconds(percentile(w.took, 0.5)), seconds(percentile(w.took, 0.99))
        svg = h("svg", *marks, viewBox="0 0 %d %d" % (facts.bins, HEIGHT), preserveAspectRatio="none", width="100%",
                height=HEIGHT, role="img", aria_label="%s, time to an answer: p50 %s, p99 %s" % (name, middle, worst))
        powers = h("span", *labels, cls="powers", style="height:%dpx" % HEIGHT, aria_hidden="true")
        out.append(lane(name, svg, cls="latency", note=["p50 " + middle, h("br"), "p99 " + worst], aside=powers))
    return out

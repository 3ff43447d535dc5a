#!/usr/bin/env python3
"""Draws cached share and time to first token against the number of routers, as SVG on stdout.

    picture.py CLUSTER_JSON     what table.py cluster wrote

Nothing but the standard library; the colours follow the reader's light or dark mode.
"""
import html
import json
import pathlib
import sys

WIDTH, HEIGHT = 720, 284
TOP, BOTTOM, PANEL, LEFTS = 48, 214, 262, (58, 420)
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #3d444d }
.title { font-weight: 600; font-size: 13px }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.shared { stroke: #1a7f37; fill: none; stroke-width: 2.5 }
.apart { stroke: #bc4c00; fill: none; stroke-width: 2.5 }
.one { stroke: #59636e; fill: none; stroke-width: 1.5; stroke-dasharray: 5 4 }
.dot.shared { fill: #1a7f37 } .dot.apart { fill: #bc4c00 }
text.shared { fill: #1a7f37; stroke: none } text.apart { fill: #bc4c00; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #d1d7e0 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
  .shared { stroke: #3fb950 } .apart { stroke: #f0883e }
  .dot.shared { fill: #3fb950 } .dot.apart { fill: #f0883e }
  text.shared { fill: #3fb950 } text.apart { fill: #f0883e }
}"""


def ticks(top):
    """Some four round values from 0 to at least `top`."""
    step = next(s * 10 ** e for e in range(-3, 6) for s in (1, 2, 2.5, 5) if top / (s * 10 ** e) <= 4)
    values = [0]
    while values[-1] < top * 0.999:
        values.append(values[-1] + step)
    return values


class Panel:
    def __init__(self, left, title, unit, rows, value):
        self.left, self.title, self.unit = left, title, unit
        self.counts = sorted({row["routers"] for row in rows})
        self.rows, self.value = rows, value
        self.ticks = ticks(100 if unit == "%" else max(map(value, rows)) * 1.05)

    def x(self, count):
        steps = max(len(self.counts) - 1, 1)
        return self.left + 24 + (PANEL - 48) * self.counts.index(count) / steps

    def y(self, value):
        return BOTTOM - (BOTTOM - TOP) * value / self.ticks[-1]

    def line(self, kind, points):
        path = " ".join(f"{self.x(c):.1f},{self.y(v):.1f}" for c, v in points)
        yield f'<polyline class="{kind}" points="{path}"/>'
        for count, value in points:
            yield f'<circle class="dot {kind}" cx="{self.x(count):.1f}" cy="{self.y(value):.1f}" r="3.5"/>'

    def draw(self):
        yield f'<text class="title" x="{self.left}" y="{TOP - 22}">{html.escape(self.title)}</text>'
        for tick in self.ticks:
            y = self.y(tick)
            yield f'<path class="grid" d="M{self.left} {y:.1f}h{PANEL}"/>'
            yield f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g} {self.unit}</text>'
        for count in self.counts:
            yield f'<text x="{self.x(count):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{count}</text>'
        yield (f'<text x="{self.left + PANEL / 2}" y="{BOTTOM + 36}" text-anchor="middle">routers, '
               f'each request at a random one</text>')
        one = [self.value(row) for row in self.rows if row["routers"] == 1]
        if one:
            yield f'<path class="one" d="M{self.left} {self.y(one[0]):.1f}h{PANEL}"/>'
        for kind in ("apart", "shared"):
            points = sorted((row["routers"], self.value(row)) for row in self.rows
                            if row["routers"] == 1 or row["shared"] == (kind == "shared"))
            if len(points) < 2:
                continue
            yield from self.line(kind, points)
            count, value = points[-1]
            below = self.unit == "%"  # place where the curves leave room
            yield (f'<text class="{kind}" x="{self.x(count) + 4:.1f}" '
                   f'y="{self.y(value) + (18 if below else -9):.1f}" text-anchor="end">'
                   f'{value:.{1 if self.unit == "%" else 2}f} {self.unit}</text>')


def legend():
    x = 150
    for kind, text in (("shared", "sharing state by gossip"), ("apart", "each for itself"),
                       ("one", "one router")):
        yield f'<path class="{kind}" d="M{x} {HEIGHT - 11}h26"/>'
        yield f'<text x="{x + 32}" y="{HEIGHT - 7}">{text}</text>'
        x += 68 + 6.3 * len(text)


def main(path):
    rows = json.loads(pathlib.Path(path).read_text())
    panels = [Panel(LEFTS[0], "Prompt tokens served from cache", "%", rows,
                    lambda row: 100 * row["cached_share"]),
              Panel(LEFTS[1], "Time to first token, mean", "s", rows, lambda row: row["ttft_s"])]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">')
    print("<title>Cached share and time to first token against the number of routers</title>")
    print(f"<style>{STYLE}\n</style>")
    for panel in panels:
        print("\n".join(panel.draw()))
    print("\n".join(legend()))
    print("</svg>")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

#!/usr/bin/env python3
"""Turns the records of quality-bench (--json) into a picture and the tables of docs/quality.md.

    picture.py svg RESULTS             the regret of every policy over the draws, as SVG on stdout
    picture.py tables RESULTS          the tables, as Markdown on stdout
    picture.py docs RESULTS SVG PAGE... writes the picture, and the tables between the pages'
                                       <!-- quality:NAME --> and <!-- /quality --> lines
    picture.py known PAGE              the promises that PAGE lists as broken, for --known

Nothing but the standard library; the colours follow the reader's light or dark mode.
"""
import html
import json
import math
import pathlib
import re
import sys

OWN = "cache_aware"
WIDTH, LEFT, RIGHT, TOP, ROW = 720, 150, 84, 58, 30
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #3d444d }
.title { font-weight: 600; font-size: 13px }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.one { stroke: #59636e; stroke-width: 1.5 }
circle { fill: #bc4c00; fill-opacity: 0.38 } circle.own { fill: #1a7f37; fill-opacity: 0.55 }
.median { stroke: #bc4c00; stroke-width: 3 } .median.own { stroke: #1a7f37 }
text.own { fill: #1a7f37; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  text { fill: #d1d7e0 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
  circle { fill: #f0883e } circle.own { fill: #3fb950 }
  .median { stroke: #f0883e } .median.own { stroke: #3fb950 } text.own { fill: #3fb950 }
}"""
MEASURES = (("mean TTFT", "ttft_s"), ("TTFT p99", "p99_s"),
            ("time to the end", "end_s"), ("share served from cache", "cached"))


def digits(value):
    """Three of them, and no powers of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def read(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return ([x for x in lines if x["kind"] == "row"], [x for x in lines if x["kind"] == "promise"])


def by_case(rows, first_word):
    cases = {}
    for row in rows:
        if row["case"].split()[0].rstrip(",") == first_word:
            cases.setdefault(row["case"], {})[row["policy"]] = row
    return cases


def regrets(draws, measure):
    """{policy: [regret in each draw]}: times the best policy; of the cached share, points less."""
    found = {}
    for rows in draws.values():
        rivals = [row[measure] for row in rows.values() if not row["bound"]]
        for policy, row in rows.items():
            value = 100 * (max(rivals) - row[measure]) if measure == "cached" else (
                row[measure] / min(rivals))
            found.setdefault(policy, []).append(value)
    return found


def at(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


def policies(found):
    return sorted(found, key=lambda policy: (policy != OWN, at(found[policy], 0.5)))


# --- the picture ---------------------------------------------------------------------------------


def svg(rows):
    draws = by_case(rows, "draw")
    bounds = {row["policy"] for row in rows if row["bound"]}
    found = {p: v for p, v in regrets(draws, "ttft_s").items() if p not in bounds}
    names = policies(found)
    most = max(max(v) for v in found.values())
    height = TOP + ROW * len(names) + 44

    def x(value):
        share = math.log(max(value, 1)) / math.log(most)
        return LEFT + 12 + (WIDTH - LEFT - RIGHT - 24) * share

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">')
    yield f"<title>Mean time to the first token against the best policy of each of {len(draws)} draws</title>"
    yield f"<style>{STYLE}\n</style>"
    yield (f'<text class="title" x="{LEFT}" y="20">Mean time to the first token, as times the best '
           f'policy of each of {len(draws)} draws</text>')
    yield f'<text x="{WIDTH - 8}" y="{TOP - 14}" text-anchor="end">worst</text>'
    for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000):
        if tick <= most:
            kind = "one" if tick == 1 else "grid"
            yield f'<path class="{kind}" d="M{x(tick):.1f} {TOP - 6}v{ROW * len(names) + 6}"/>'
            yield f'<text x="{x(tick):.1f}" y="{TOP - 14}" text-anchor="middle">{tick:g} x</text>'
    for i, name in enumerate(names):
        y, kind = TOP + ROW * i + ROW / 2, "own" if name == OWN else "other"
        yield f'<text class="{kind}" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>'
        for value in found[name]:
            yield f'<circle class="{kind}" cx="{x(value):.1f}" cy="{y}" r="4"/>'
        yield f'<path class="median {kind}" d="M{x(at(found[name], 0.5)):.1f} {y - 10}v20"/>'
        yield f'<text class="{kind}" x="{WIDTH - 8}" y="{y + 4}" text-anchor="end">{digits(max(found[name]))} x</text>'
    yield (f'<text x="{LEFT}" y="{height - 12}">One dot is one draw, the bar is the median. '
           f'Left is better; the scale is logarithmic.</text>')
    yield "</svg>"


# --- the tables ----------------------------------------------------------------------------------


def regret_table(rows, _):
    draws = by_case(rows, "draw")
    yield f"| `{OWN}`, over {len(draws)} draws | median | 75th percentile | worst |"
    yield "|---|---|---|---|"
    for name, measure in MEASURES:
        values = regrets(draws, measure)[OWN]
        form = "{:.1f} points" if measure == "cached" else "{:.2f} x"
        cells = " | ".join(form.format(at(values, share)) for share in (0.5, 0.75, 1))
        yield f"| {name} | {cells} |"


def rivals_table(rows, _):
    draws = by_case(rows, "draw")
    bounds = {row["policy"] for row in rows if row["bound"]}
    ttft, p99 = regrets(draws, "ttft_s"), regrets(draws, "p99_s")
    end, cached = regrets(draws, "end_s"), regrets(draws, "cached")
    yield "| policy | TTFT: median, worst | p99: median, worst | to the end: median, worst | cached: median, worst |"
    yield "|---|---|---|---|---|"
    for name in policies(ttft):
        times = " | ".join(f"{at(m[name], 0.5):.2f} x, {digits(max(m[name]))} x" for m in (ttft, p99, end))
        points = f"{-at(cached[name], 0.5):+.1f}, {-max(cached[name]):+.1f} points"
        shown = f"`{name}`" if name == OWN else name + (" knowledge" if name in bounds else "")
        yield f"| {shown} | {times} | {points} |"


def worst_table(rows, _):
    draws = by_case(rows, "draw")
    ranked = sorted(draws.items(), reverse=True, key=lambda case: case[1][OWN]["ttft_s"] / min(
        row["ttft_s"] for row in case[1].values() if not row["bound"]))
    yield "| draw | TTFT | best policy | perfect knowledge: what is at fault | fleet and workload |"
    yield "|---|---|---|---|---|"
    for case, policies_of in ranked[:5]:
        own = policies_of[OWN]
        best = min((r for r in policies_of.values() if not r["bound"]), key=lambda r: r["ttft_s"])
        bound = policies_of["perfect"]
        yield (f"| {case.split()[1].rstrip(':')} | {own['ttft_s'] / best['ttft_s']:.2f} x | "
               f"{best['policy']} | {bound['ttft_s'] / best['ttft_s']:.2f} x: {blame(own, bound, best)} | "
               f"{own['says']} |")


def blame(own, bound, best):
    """Sources of regret: the rule itself, or missing knowledge of the router."""
    regret, of_rule = own["ttft_s"] / best["ttft_s"] - 1, bound["ttft_s"] / best["ttft_s"] - 1
    if regret <= 0.05:
        return "none"
    if of_rule > regret / 2:
        return "the rule"
    if own["cached"] < bound["cached"] - 0.02:
        return "what is believed to be cached"
    return "speeds or load believed"


def workloads(rows):
    """[(case, default policy, perfect knowledge, best rival)] of all but draws and promises."""
    cases = {}
    for name in ("coding", "miniswe", "conversation", "azure"):
        cases.update(by_case(rows, name))
    for case, found in cases.items():
        rivals = [r for r in found.values() if not r["bound"] and r["policy"] != OWN]
        yield case, found[OWN], found["perfect"], min(rivals, key=lambda r: r["ttft_s"])


def coding_table(rows, _):
    yield "| workload | `cache_aware` | perfect knowledge | best rival |"
    yield "|---|---|---|---|"
    for case, *found in workloads(rows):
        shown = [f"{100 * r['cached']:.1f} %, {r['ttft_s']:.2f} s" for r in found]
        yield f"| {case} | {shown[0]} | {shown[1]} | {shown[2]} ({found[2]['policy']}) |"


def from_to(values, form):
    shown = [form.format(v) for v in (min(values), max(values))]
    return shown[0] if shown[0] == shown[1] else " to ".join(shown)


def brief_table(rows, _):
    """The same with one row for all numbers of routers."""
    groups = {}
    for case, *found in workloads(rows):
        groups.setdefault(re.sub(r", \d+ routers?$", "", case), []).append(found)
    yield "| workload | `cache_aware` | perfect knowledge | best rival |"
    yield "|---|---|---|---|"
    for name, cases in groups.items():
        shown = [from_to([100 * r["cached"] for r in of], "{:.1f}") + " %, " +
                 from_to([r["ttft_s"] for r in of], "{:.2f}") + " s" for of in zip(*cases)]
        rivals = ", ".join(sorted({rival["policy"] for _, _, rival in cases}))
        yield f"| {name} | {shown[0]} | {shown[1]} | {shown[2]} ({rivals}) |"


def promises_table(_, promises):
    yield "| promise | measured (bound in brackets) | |"
    yield "|---|---|---|"
    for p in promises:
        yield f"| {p['name']} | {p['says']} | {'kept' if p['kept'] else '**broken**'} |"


def broken_table(_, promises):
    rows = list(promises_table(_, [p for p in promises if not p["kept"]]))
    yield rows[0].replace("promise", "broken promise", 1)
    yield from rows[1:]


def known(page):
    """Each as quality-bench names it: the promise, and what of it, without what was measured."""
    rows = re.findall(r"^\| ([\w-]+) \| ([^:|]+):.* \| \*\*broken\*\* \|$", pathlib.Path(page).read_text(), flags=re.M)
    return ";".join(f"{name}: {what}" for name, what in rows)


TABLES = {"regret": regret_table, "rivals": rivals_table, "worst": worst_table,
          "coding": coding_table, "brief": brief_table, "promises": promises_table, "broken": broken_table}


def tables(rows, promises):
    for name, table in TABLES.items():
        print(f"\n{name}\n")
        print("\n".join(table(rows, promises)))


def docs(rows, promises, picture, *pages):
    pathlib.Path(picture).write_text("\n".join(svg(rows)) + "\n")

    def filled(match):
        lines = "\n".join(TABLES[match.group(1)](rows, promises))
        return f"<!-- quality:{match.group(1)} -->\n{lines}\n<!-- /quality -->"

    for page in map(pathlib.Path, pages):
        page.write_text(re.sub(r"<!-- quality:(\w+) -->\n.*?<!-- /quality -->", filled,
                               page.read_text(), flags=re.S))


def main(args):
    if len(args) < 2 or args[0] not in ("svg", "tables", "docs", "known"):
        sys.exit(__doc__)
    if args[0] == "known":
        print(known(args[1]))
        return
    rows, promises = read(args[1])
    if args[0] == "svg":
        print("\n".join(svg(rows)))
    elif args[0] == "tables":
        tables(rows, promises)
    else:
        docs(rows, promises, *args[2:])


if __name__ == "__main__":
    main(sys.argv[1:])

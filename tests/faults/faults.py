#!/usr/bin/env python3
"""`make faults`: eight engine simulators, one and three routers, 100 requests a second, one fault at a time.

    tests/faults/faults.py [--rows kill,stop] [--routers 1,3] [--seed 1] [--seconds 15] [--runs 1] [--rate 100] [--json FILE]

Per row, medians of the runs:

    offered     requests of clients in the run
    avoidable   got an error, or an end, without a single token, although another replica was well
    hangs       waited over 5 s longer than they should have for the next token
    cut         streams that broke after tokens; in brackets those that ended without an error event
    wrong       answers that no single engine sent: two beginnings, two ids, no last event
    upstream    requests that arrived at engines, for each one offered
    p99         time to the first token of streams, before the fault and during it; without streams that the fault hit:
                those at a replica that it touches (if it does not touch all), or moved
    held        the longest wait of a client for its first token (for a whole answer: without the usual time of such an
                answer; from the fault on), and the number of waits over 8 s
    failed      clients that got no whole answer
    beside      p99 of the others while the engine is stopped, against that while it is drained (row pause)
    moved       streams that broke or waited in vain at one replica and began at another; the longest time to that
    first good  after an outage of all: seconds until some client got a token

The exit status is 1 if a target is missed: none avoidable, at most 3 hangs, none cut without an error event,
none wrong, at most 2 engines killed by one poison request, upstream at most 1.1 (1.2 if all fail), p99 at most doubled
or 0.1 s more, first good within 1 s.
"""

import argparse
import asyncio
import collections
import json
import os
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fleet as f  # noqa: E402
import drawn  # noqa: E402
import edges  # noqa: E402
import load as l  # noqa: E402
import place  # noqa: E402
import rows  # noqa: E402

ROWS = rows.ROWS + edges.ROWS + [drawn.ROW]
HANGS_MAX, FIRST_GOOD_MAX = 3, 1.0
KILLED_MAX = 2      # engines, by one poison request: the one that got it, and one retry
P99_MORE_MAX = 0.1  # seconds: less is the machine's noise
REACHED_MAX = 0.02  # share of requests at a replica that rejects them all at once,
REJECTED_MAX = 0.01  # and share of clients that see a rejection
LATE = 8.0          # seconds for a first token, where an engine hangs
NOISE = 0.005       # seconds between two equal p99 on one machine
WARM = 2.0  # seconds of load that are ignored


async def run_row(row, routers, seconds, rate, seed, args=(), warm=WARM):
    """One run. Returns its figures."""
    seconds = max(seconds, row.least_s)
    fleet = await asyncio.to_thread(f.Fleet, row.engines, routers, args, f.ENGINE + row.engine, row.at())
    try:
        load = l.Load(fleet.addresses, rate if row.rate is None else row.rate, seed, row.mix, tools=row.tools)
        await load.run(warm)
        await load.finish()
        load.results.clear()
        base, downs = await asyncio.to_thread(fleet.count), fleet.downs()
        scene = rows.Scene(fleet, load, seconds * 2 / 3)
        running = asyncio.ensure_future(load.run(seconds))
        await asyncio.sleep(seconds / 3)
        at = time.monotonic()
        await row.run(scene)
        await running
        await load.finish()
        if row.needs_drop:
            f.drop(0, False)
        for e in fleet.engines:
            e.sim.signal(signal.SIGCONT)  # counts the received requests
        await asyncio.sleep(0.3)
        upstream = await asyncio.to_thread(fleet.count) - base
        scene.figures["down"] = fleet.downs() - downs
        m = figures(row, load.results, scene, at, upstream, await asyncio.to_thread(fleet.failed_at, scene.touched))
    finally:
        if row.needs_drop:
            f.drop(0, False)
        await asyncio.to_thread(fleet.stop)
    m.update(up_s=fleet.up_s, stop_s=fleet.stop_s)
    return m


def figures(row, results, scene, at, upstream, caught):
    before = [r for r in results if r.at < at and r.first is not None and r.end < at]
    expected = statistics.median(r.waited for r in before) if before else 0.1
    during = [r for r in results if r.at >= at and r.stream and r.ttft is not None]
    moved = [r for r in during if r.id in caught and (row.all_touched or r.replica not in scene.touched)]
    others = [r.ttft for r in during if r.id not in caught and (row.all_touched or r.replica not in scene.touched)]
    out = collections.OrderedDict()
    asked = [r for r in results if r.tag != "poison"]
    failed = [r for r in asked if not r.good and r.tokens == 0]
    if scene.outage is not None:  # no replica could have served those open at that time
        begin, end = scene.outage
        spared = [r for r in failed if r.at < end and r.end >= begin]
    else:
        spared = []
    avoidable = [r for r in failed if r not in spared]
    cut = [r for r in asked if not r.good and r.tokens > 0 and r.failure != "mixed"]
    silent = [r for r in cut if r.error is None and r.failure != "gave up"]  # that was the client itself
    whole = statistics.median([r.end - r.at for r in before if not r.stream] or [0])  # the length of such an answer
    first = [r.first - max(r.at, at) if r.stream and r.first is not None else r.end - max(r.at, at) - (not r.stream) * whole
             for r in asked if r.at >= at - 1]
    wrong = [r for r in asked if r.failure in ("mixed", "no token", "garbage")]
    hangs = [r for r in asked if r.waited > l.HANG + expected and r not in spared and
             # answers that have begun there wait for the engine
             not (r.tokens > 0 and (row.late_max is not None or row.beside is not None))]
    out["offered"] = len(results)
    out["avoidable"] = len(avoidable)
    out["unavoidable"] = len(spared)
    out["hangs"] = len(hangs)
    out["longest_wait_s"] = round(max((r.waited for r in asked), default=0), 2)
    out["held_s"] = round(max(first, default=0), 2)
    out["late"] = sum(v > LATE for v in first)
    out["failed"] = sum(not r.good for r in asked)
    if scene.paused is not None:
        def p99(begin, end):
            return l.percentile([r.ttft for r in results if r.stream and r.ttft is not None and r.id not in caught
                                 and begin <= r.at < end and r.replica not in scene.touched], 0.99)
        out["p99_drained_s"] = p99(scene.drained, scene.drained + scene.resumed - scene.paused)
        out["p99_paused_s"] = p99(scene.paused, scene.resumed)
    out["cut"] = len(cut)
    out["cut_silent"] = len(silent)
    out["wrong"] = len(wrong)
    out["upstream"] = upstream / max(1, len(results))
    out["p99_before_s"] = l.percentile([r.ttft for r in before if r.stream], 0.99)
    out["p99_during_s"] = l.percentile(others, 0.99)
    out["moved"] = len(moved)
    out["moved_max_s"] = max((r.ttft for r in moved), default=None)
    out["p50_during_s"] = l.percentile(others, 0.5)
    out["first_good_s"] = None
    if scene.outage is not None:
        good = [r.first for r in asked if r.good and r.first is not None and r.first > scene.outage[1]]
        out["first_good_s"] = min(good) - scene.outage[1] if good else 999.0
    if row.rejects:
        out["reached_share"] = scene.reached / max(1, scene.offered)
        out["rejected_share"] = len([r for r in failed if r.at >= at]) / max(1, scene.offered)
    out.update(scene.figures)
    poison = [r for r in results if r.tag == "poison"]
    if poison:
        out["poison"] = poison[0].failure or "served"
        out["killed"] = scene.killed
    out["failures"] = dict(collections.Counter(r.failure for r in avoidable))
    out["cuts"] = dict(collections.Counter(r.failure for r in cut))
    return out


def median(runs):
    """Field by field; where there is no number, what the first run has."""
    out = collections.OrderedDict()
    for key in runs[0]:
        values = [r[key] for r in runs if isinstance(r[key], (int, float))]
        out[key] = statistics.median(values) if values else runs[0][key]
    return out


def missed(row, m):
    """The targets that a row misses, by name."""
    out = []
    if m["avoidable"] > 0 and not row.rejects:
        out.append("avoidable")
    if row.rejects and m["reached_share"] > REACHED_MAX:
        out.append("reached")
    if row.rejects and m["rejected_share"] > REJECTED_MAX:
        out.append("rejected")
    if row.cut_max is not None and m["cut"] > row.cut_max:
        out.append("cut")
    if m["hangs"] > HANGS_MAX:
        out.append("hangs")
    if m["cut_silent"] > 0:
        out.append("cut without an event")
    if m["wrong"] > 0:
        out.append("wrong")
    if row.failed_max is not None and m["failed"] > row.failed_max:
        out.append("failed")
    if row.late_max is not None and m["late"] > row.late_max:
        out.append("first tokens late")
    if row.beside is not None and m["p99_drained_s"] and m["p99_paused_s"] and \
            m["p99_paused_s"] > max(row.beside * m["p99_drained_s"], m["p99_drained_s"] + NOISE):
        out.append("p99 beside")
    if m["upstream"] > row.upstream_max:
        out.append("upstream")
    if m.get("killed", 0) > KILLED_MAX:
        out.append("engines killed")
    out += [key for key, most in row.most.items() if m[key] > most]
    out += ["%s: too little" % key for key, least in row.least.items() if m[key] < least]
    if row.speed and m["p99_before_s"] and m["p99_during_s"] and m["p99_during_s"] > max(2 * m["p99_before_s"],
                                                                         m["p99_before_s"] + P99_MORE_MAX):
        out.append("p99")
    if m["first_good_s"] is not None and m["first_good_s"] > FIRST_GOOD_MAX:
        out.append("first good")
    return out


def show_head():
    print("  %-14s %7s %7s %9s %5s %9s %5s %8s %13s %10s %6s  %s" %
          ("fault", "routers", "offered", "avoidable", "hangs", "cut", "wrong", "upstream", "p99 ms", "moved", "first",
           "missed"))


def moved_of(m):
    return "%d, %.1f s" % (m["moved"], m["moved_max_s"]) if m["moved"] else "0"


def show(row, routers, m, wrongs):
    def ms(v):
        return "-" if v is None else "%.0f" % (v * 1000)
    first = "-" if m["first_good_s"] is None else "%.2f" % m["first_good_s"]
    if row.rejects:
        wrongs = (wrongs or ["ok"]) + ["%.1f %% reached it, %.1f %% of clients saw it" %
                                       (m["reached_share"] * 100, m["rejected_share"] * 100)]
    print("  %-14s %7d %7d %9g %5g %9s %5g %8.3f %13s %10s %6s  %s%s" %
          (row.name, routers, m["offered"], m["avoidable"], m["hangs"], "%g (%g)" % (m["cut"], m["cut_silent"]),
           m["wrong"], m["upstream"], ms(m["p99_before_s"]) + " -> " + ms(m["p99_during_s"]), moved_of(m), first,
           (", ".join(wrongs) or "ok") + (", %g killed, %s" % (m["killed"], m["poison"]) if "killed" in m else ""),
           " " + json.dumps(m["failures"]) if m["failures"] else ""), flush=True)
    if row.late_max is not None or row.beside is not None:
        more = "held %.1f s, %g waited over %g s, %g failed" % (m["held_s"], m["late"], LATE, m["failed"])
        if row.beside is not None:
            more += ", p99 drained %s ms, paused %s ms" % (ms(m["p99_drained_s"]), ms(m["p99_paused_s"]))
        print("  %-14s %s" % ("", more), flush=True)


    keys = list(row.most) + [key for key in row.least if key not in row.most]
    if keys or row.failed_max is not None and row.beside is None:
        print("  %-14s %s" % ("", ", ".join(["%g failed" % m["failed"]] + ["%s %.3g" % (key, m[key]) for key in keys])),
              flush=True)


def markdown(paths):
    """The table of docs/faults.md, from JSON files: one line a fault, `one router / three routers`."""
    table = []
    for path in paths.split(","):
        with open(path) as file:
            table += json.load(file)["rows"]
    table.sort(key=lambda t: t["routers"])
    titles = collections.OrderedDict((t["fault"], t["title"]) for t in table)
    print("| row | fault | avoidable | hangs | cut, without an event | upstream | p99 of the others, ms | moved, longest | first good, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, title in titles.items():
        runs = [t["median"] for t in table if t["fault"] == name]

        def cell(form, *keys):
            return " / ".join(form % tuple(m[k] for k in keys) for m in runs)
        first = cell("%.2f", "first_good_s") if runs[0]["first_good_s"] is not None else ""
        p99 = " / ".join("%.0f to %.0f" % (m["p99_before_s"] * 1000, m["p99_during_s"] * 1000) for m in runs)
        moved = " / ".join(moved_of(m) for m in runs)
        print("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            name, title, cell("%g", "avoidable"), cell("%g", "hangs"), cell("%g, %g", "cut", "cut_silent"),
            cell("%.2f", "upstream"), p99, moved, first))


def drawn_runs(o, routers, far, table):
    """Each run is a separate row, from a separate seed. Returns the number of rows that missed a target."""
    bad = 0
    for seed in range(o.seed, o.seed + o.runs):
        row = drawn.draw(seed, far)
        print("  drawn, seed %d: %s" % (seed, row.title), flush=True)
        m = asyncio.run(run_row(row, routers, o.seconds, o.rate, seed, o.args))
        wrongs = missed(row, m)
        bad += bool(wrongs)
        show(row, routers, m, wrongs)
        table.append({"fault": row.name, "title": row.title, "routers": routers, "seed": seed, "missed": wrongs,
                      "median": m, "runs": [m]})
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", default="", help="names, with commas (all); see --list")
    p.add_argument("--routers", default="1,3")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--rate", type=float, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", default="")
    p.add_argument("--list", action="store_true", help="the rows, and nothing else")
    p.add_argument("--markdown", default="", help="the table of JSON files (with commas) that were written before, and nothing else")
    p.add_argument("args", nargs="*", help="more flags of the routers, behind --")
    o = p.parse_args()
    if o.list:
        for row in ROWS:
            print("%-14s %s" % (row.name, row.title))
        return 0
    if o.markdown:
        markdown(o.markdown)
        return 0
    names = [n for n in o.rows.split(",") if n]
    unknown = set(names) - {r.name for r in ROWS}
    if unknown:
        p.error("no such row: %s" % ", ".join(sorted(unknown)))
    own_network = f.own_network()
    far = own_network and place.works()
    table, bad = [], 0
    show_head()
    for row in ROWS:
        if names and row.name not in names:
            continue
        if row.needs_network and not own_network or row.at().rtt is not None and not far:
            print("  %-14s skipped: no network namespace, no nft, or no TUN device" % row.name)
            continue
        for routers in [int(n) for n in o.routers.split(",")]:
            if row is drawn.ROW:
                bad += drawn_runs(o, routers, far, table)
                continue
            runs = [asyncio.run(run_row(row, routers, o.seconds, o.rate, o.seed + i, o.args)) for i in range(o.runs)]
            m = median(runs)
            wrongs = missed(row, m)
            bad += bool(wrongs)
            show(row, routers, m, wrongs)
            table.append({"fault": row.name, "title": row.title, "routers": routers, "missed": wrongs,
                          "median": m, "runs": runs})
    if o.json:
        with open(o.json, "w") as out:
            json.dump({"seconds": o.seconds, "rate": o.rate, "rows": table}, out, indent=1)
    print("%d of %d rows miss a target" % (bad, len(table)))
    return 1 if bad else 0


if __name__ == "__main__":
    f.ends_well()
    sys.exit(main())

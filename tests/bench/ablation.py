#!/usr/bin/env python3
"""The worth of each part of the routing rule: the bench of routing quality with that part left out.

Each run without a part has a twin with all of them: the same clients, engines and seeds of the routers. The result
is the mean over all cases of the logarithm of the ratio of both, in percent: positive if the part is useful. The interval
(95 %) is over cases; the three seeds of a case are one. A part is worth less than its noise if its interval contains 0 for
each of TTFT, time to the end and cached tokens.
    tests/bench/ablation.py                            all parts and pairs of them: an hour on two cores
    tests/bench/ablation.py --parts DUE,LATE+BEYOND    these; + leaves out both at once, FEW=0.5 halves a number
    tests/bench/ablation.py --numbers                  each number of the rule, halved and doubled: hours
    tests/bench/ablation.py --draws 20 --only draws    fewer cases
    tests/bench/ablation.py --out build/ablation.md    a table in Markdown
"""

import argparse
import collections
import concurrent.futures
import math
import os
import re
import statistics
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BENCH = os.path.join(TOP, "build", "ablation", "tests", "bench", "quality-bench")
# Parts that may do each other's work.
PAIRS = ("QUEUE_FOREIGN+FOREIGN", "SIZE+SIZE_READ", "RATE_SHOWN+LATE", "SHRUNK+APART", "WHOLE+WHOLE_LATE", "CROWD+STEP_MORE")
WORSE = 0.05  # a case's loss that counts as worse
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 8: 2.31, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04}


def parts_known():
    text = subprocess.run([BENCH, "--without", "list"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split("\t") for line in text.splitlines())


def play(without, settings):
    """{(group, case): [(ttft, end, cached) of each seed]}"""
    command = ["nice", BENCH, "--section", "ablation", *settings]
    if without:
        command += ["--without", without.replace("+", ",")]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=TOP).stdout
    found = collections.defaultdict(list)
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 7:
            found[fields[0], fields[1]].append((float(fields[3]), float(fields[5]), float(fields[6])))
    return found


def interval(values):
    """Mean, and half of the interval."""
    if len(values) < 2:
        return (values[0] if values else 0.0), math.inf
    freedom = max(k for k in T95 if k <= len(values) - 1)
    return statistics.mean(values), T95[freedom] * statistics.stdev(values) / math.sqrt(len(values))


def worth(whole, less):
    """For each measure: the differences by case, with its three seeds as one."""
    of = {"TTFT": [], "end": [], "cached": []}
    for case, twins in sorted(whole.items()):
        pairs = list(zip(twins, less[case]))
        of["TTFT"].append(100 * statistics.mean(math.log(b[0] / a[0]) for a, b in pairs))
        of["end"].append(100 * statistics.mean(math.log(b[1] / a[1]) for a, b in pairs))
        of["cached"].append(statistics.mean(a[2] - b[2] for a, b in pairs))
    return of


def row(name, says, of):
    cells, is_noise = [], True
    for measure in ("TTFT", "end", "cached"):
        mean, half = interval(of[measure])
        is_noise &= abs(mean) <= half
        cells.append("%+.2f ± %.2f" % (mean, half))
    worst = max(of["TTFT"], default=0)
    worse = sum(x > 100 * WORSE for x in of["TTFT"])
    better = sum(x < -100 * WORSE for x in of["TTFT"])
    return "| `%s` | %s | %s | %d / %d | %+.0f | %s |" % (name, says, " | ".join(cells), worse, better, worst,
                                                      "noise" if is_noise else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", help="names, with commas between them")
    parser.add_argument("--numbers", action="store_true", help="halve and double each number of node/replica/constants.h")
    parser.add_argument("--draws", default="52")
    parser.add_argument("--mixed", default="24")
    parser.add_argument("--talks", default="60", help="coding sessions; 0: all")
    parser.add_argument("--only", choices=["draws"], help="no traces")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out")
    args = parser.parse_args()
    if not os.access(BENCH, os.X_OK):
        sys.exit("ablation: %s is not built; try: make bench SECTION=ablation" % BENCH)
    settings = ["--draws", args.draws, "--mixed", args.mixed, "--talks", args.talks]
    if args.only:
        settings += ["--workload", "draws"]
    known = parts_known()
    numbers = [name for name in known if name.endswith("=")]
    names = [name for name in [*known, *PAIRS] if name not in numbers]
    if args.numbers:
        names = [name + times for name in numbers for times in ("0.5", "2")]
    if args.parts:
        names = args.parts.split(",")
    lines = ["| without | what goes | TTFT, %% | to the end, %% | cached, points | cases %g %% worse / better | worst, %% | |"
             % (100 * WORSE), "|---|---|---|---|---|---|---|---|"]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        whole = pool.submit(play, None, settings)
        less = {name: pool.submit(play, name, settings) for name in names}
        for i, name in enumerate(names):
            if sys.stderr.isatty():
                sys.stderr.write("\r%d of %d " % (i, len(names)))
            says = "; ".join(known[re.sub("=.*", "=", part)] for part in name.split("+"))
            lines.append(row(name, says, worth(whole.result(), less[name].result())))
            print(lines[-1], flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

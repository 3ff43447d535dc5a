#!/usr/bin/env python3
"""Turns the JSON files of the driver into tables.

    table.py policies FILE...   one row per file, named by its label
    table.py verdict FILE...    what they mean, in a sentence; the last is compared with the others
    table.py cpu DIR            the files of cpu.sh: {cpu,latency}.NAME.ROUND.ROUTER.json
    table.py tls DIR            those of tls.sh: {request,handshake,beside}.NAME.ROUND.ROUTER.json
    table.py cluster DIR OUT    those of cluster.sh: {shared,apart}.ROUTERS.ROUND.json; the means of the
                                rounds go to OUT too, for picture.py
"""
import json
import pathlib
import statistics
import sys


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths))


def seconds(value):
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def policies(files):
    rows = [["policy", "from cache", "first token", "p50", "p99", "per token", "to the end",
             "spread", "errors", "router CPU"]]
    for name in files:
        run = json.loads(pathlib.Path(name).read_text())
        cpu = run.get("router_cpu_us_per_request")
        rows.append([
            run["label"], f"{100 * run['cached_share']:.1f} %",
            seconds(run["ttft_s"]["mean"]), seconds(run["ttft_s"]["p50"]),
            seconds(run["ttft_s"]["p99"]), f"{1e3 * run['per_output_token_s']['mean']:.0f} ms",
            seconds(run["total_s"]["mean"]), f"{run['spread']:.2f}", str(run["failed"]),
            f"{cpu:.0f} us" if cpu is not None else "-"])
    print_table(rows)


def verdict(files):
    runs = [json.loads(pathlib.Path(name).read_text()) for name in files]
    own, others = runs[-1], runs[:-1]

    def times(other, key):
        ratio = other[key]["mean"] / max(own[key]["mean"], 1e-9)
        return f"{ratio:.1f} times sooner" if ratio > 1 else f"{1 / ratio:.1f} times later"

    parts = [f"{times(other, 'ttft_s')} than with {other['label']}" for other in others]
    print(f"With {own['label']} the engines took {100 * own['cached_share']:.0f} % of the prompt "
          f"tokens from their caches\n("
          + ", ".join(f"{o['label']}: {100 * o['cached_share']:.0f} %" for o in others)
          + "), and the first token came\n" + " and ".join(parts) + ".")


def cpu(folder):
    runs = {}
    names = []
    for path in sorted(pathlib.Path(folder).glob("*.json"), key=lambda p: p.stat().st_mtime):
        kind, name, _, router, _ = path.name.split(".")
        runs.setdefault((kind, name, router), []).append(json.loads(path.read_text()))
        if name not in names:
            names.append(name)
    titles = {"haproxy": "HAProxy", "nginx": "nginx", "grapevine": "Grapevine"}
    routers = [r for r in titles if any(key[2] == r for key in runs)]
    failed = sum(run["failed"] for group in runs.values() for run in group)

    def median(kind, name, router, pick):
        return statistics.median(pick(run) for run in runs[kind, name, router])

    print("\nCPU microseconds per request, the router's own process, median over rounds")
    both = "haproxy" in routers and "grapevine" in routers
    rows = [["body"] + [titles[r] for r in routers] + (["against HAProxy"] if both else []) +
            [titles[r] + "'s memory" for r in routers if r == "grapevine"]]
    for name in names:
        us = {r: median("cpu", name, r, lambda run: run["router_cpu_us_per_request"])
              for r in routers}
        row = [name] + [f"{us[r]:.1f}" for r in routers]
        if both:
            row.append(f"{us['grapevine'] / us['haproxy']:.2f} x")
        if "grapevine" in routers:
            rss = median("cpu", name, "grapevine", lambda run: run["router_rss_bytes"])
            row.append(f"{rss / 1e6:.0f} MB")
        rows.append(row)
    print_table(rows)

    print("\nAdded latency in microseconds (p50/p99), one request at a time, against the backend")
    rows = [["body", "direct"] + [titles[r] for r in routers]]
    for name in names:
        def at(router, quantile):
            return median("latency", name, router, lambda run: run["total_wall_us"][quantile])
        row = [name, f"{at('direct', 'p50'):.0f}/{at('direct', 'p99'):.0f}"]
        for router in routers:
            row.append("/".join(f"{at(router, q) - at('direct', q):+.0f}" for q in ("p50", "p99")))
        rows.append(row)
    print_table(rows)
    print(f"\n{failed} requests failed in all runs." if failed else "\nNo request failed.")


def tls(folder):
    def runs(kind):
        """{name: {router: [run]}}, in the order of the measuring"""
        found = {}
        for path in sorted(pathlib.Path(folder).glob(kind + ".*.json"), key=lambda p: p.stat().st_mtime):
            name, router = path.name[len(kind) + 1:].rsplit(".", 3)[0], path.name.split(".")[-2]
            found.setdefault(name, {}).setdefault(router, []).append(json.loads(path.read_text()))
        return found

    def median(group, pick):
        return statistics.median(pick(run) for run in group)

    print("\nCPU microseconds per request through TLS, the router's own process, median over rounds")
    rows = [["body", "HAProxy", "Grapevine", "against HAProxy"]]
    for name, by in runs("request").items():
        us = {r: median(by[r], lambda run: run["router_cpu_us_per_request"]) for r in by}
        rows.append([name, f"{us['haproxy']:.1f}", f"{us['grapevine']:.1f}", f"{us['grapevine'] / us['haproxy']:.2f} x"])
    print_table(rows)
    print("\nFull handshakes: CPU microseconds each, and so many a second on a core")
    rows = [["certificate", "HAProxy", "Grapevine", "HAProxy", "Grapevine", "against HAProxy"]]
    for name, by in runs("handshake").items():
        us = {r: median(by[r], lambda run: 1e6 * run["cpu_s"] / run["count"]) for r in by}
        rows.append([name] + [f"{us[r]:.0f}" for r in ("haproxy", "grapevine")] +
                    [f"{1e6 / us[r]:,.0f}/s" for r in ("haproxy", "grapevine")] +
                    [f"{us['haproxy'] / us['grapevine']:.2f} x"])
    print_table(rows)
    print("\nOne request at a time, microseconds (p50/p99/most): alone, and while four others shake hands")
    rows = [["", "HAProxy", "Grapevine"]]
    for name, by in runs("beside").items():
        rows.append([name] + [f"{by[r][0]['p50_us']:.0f}/{by[r][0]['p99_us']:.0f}/{by[r][0]['max_us']:.0f}"
                              for r in ("haproxy", "grapevine")])
    print_table(rows)


def cluster(folder, out):
    groups = {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        how, count, _, _ = path.name.split(".")
        run = json.loads(path.read_text())
        run["busy"], run["own"] = map(float, path.with_suffix(".busy").read_text().split())
        groups.setdefault((how, int(count)), []).append(run)
    result = []
    for (how, count), runs in sorted(groups.items(), key=lambda g: (g[0][0] != "shared", g[0][1])):
        def mean(pick):
            return statistics.mean(pick(run) for run in runs)
        result.append({
            "routers": count, "shared": how == "shared", "rounds": len(runs),
            "requests": sum(run["requests"] for run in runs),
            "failed": sum(run["failed"] for run in runs),
            "cached_share": mean(lambda run: run["cached_share"]),
            "ttft_s": mean(lambda run: run["ttft_s"]["mean"]),
            "ttft_p50_s": mean(lambda run: run["ttft_s"]["p50"]),
            "ttft_p99_s": mean(lambda run: run["ttft_s"]["p99"]),
            "total_s": mean(lambda run: run["total_s"]["mean"]),
            "spread": mean(lambda run: run["spread"]),
            "router_cpu_us": mean(lambda run: run["router_cpu_us_per_request"]),
            "machine_busy": mean(lambda run: run["busy"]) / 100,
            "machine_own": mean(lambda run: run["own"]) / 100})
    pathlib.Path(out).write_text(json.dumps(result, indent=2) + "\n")
    one = next((r for r in result if r["routers"] == 1), None)
    rows = [["routers", "from cache", "against one", "first token", "against one", "p50", "p99",
             "to the end", "spread", "errors", "routers' CPU", "machine"]]
    for r in result:
        alone = one is None or r is one
        rows.append([
            f"{r['routers']} {'shared' if r['shared'] else 'apart'}",
            f"{100 * r['cached_share']:.1f} %",
            "" if alone else f"{100 * (r['cached_share'] - one['cached_share']):+.1f}",
            seconds(r["ttft_s"]),
            "" if alone else f"{r['ttft_s'] / max(one['ttft_s'], 1e-9):.2f} x",
            seconds(r["ttft_p50_s"]), seconds(r["ttft_p99_s"]), seconds(r["total_s"]),
            f"{r['spread']:.2f}", str(r["failed"]), f"{r['router_cpu_us'] / 1e3:.1f} ms",
            f"{100 * r['machine_busy']:.0f} % ({100 * r['machine_own']:.0f} %)"])
    print_table(rows)
    print("  Aims with shared state: from cache within 0.5 points of one router, first token within "
          "1.1 x.")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "policies":
        policies(sys.argv[2:])
    elif len(sys.argv) > 2 and sys.argv[1] == "verdict":
        verdict(sys.argv[2:])
    elif len(sys.argv) == 3 and sys.argv[1] == "cpu":
        cpu(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "tls":
        tls(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "cluster":
        cluster(*sys.argv[2:])
    else:
        sys.exit(__doc__)

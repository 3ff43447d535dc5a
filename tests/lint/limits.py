#!/usr/bin/env python3
"""Compares the limits that the docs state with the code: every line of docs/limits.md that names a
constant, and the sentences of other pages that are listed below. The compiler judges: one static
assertion a number.

usage: limits.py [TREE]
"""
import glob
import os
import re
import subprocess
import sys

# Page, text around the number, constant.
STATED = [
    ("docs/how-to/routers.md", r"routers that live at one time \| ([\d,]+) \|", "GOSSIP_ROUTERS_MAX"),
    ("docs/threat-model.md", r"secret of ([\d,]+ bytes)", "HASH_SECRET_BYTES"),
    ("docs/threat-model.md", r"\(([\d,]+) pairs of both\)", "NODE_ANSWERED_ROWS_MAX"),
    ("docs/threat-model.md", r"a window of ([\d,]+) in a session", "GOSSIP_REPLAY_WINDOW"),
    ("docs/threat-model.md", r"at the latest ([\d,]+ s) after", "GOSSIP_SESSION_REJECT_US"),
    ("docs/http.md", r"saves up at most ([\d,]+);", "BUDGET_BURST"),
    ("docs/http.md", r"within ([\d,]+ ms) of the request's last byte", "UPSTREAM_STALE_MS"),
    ("docs/http.md", r"those that are down too; at most ([\d,]+) models", "MODEL_LIST_MAX"),
    ("docs/http.md", r"body over ([\d,]+ MiB) goes to no more", "EXCHANGE_ASK_BYTES"),
    ("docs/http.md", r"have denied a model within ([\d,]+ s),", "NODE_MODELS_DENIED_MS"),
    ("docs/http.md", r"own key, ([\d,]+) at a time", "MODELS_AT_ONCE"),
    ("docs/http.md", r"its engine after ([\d,]+ KiB);", "PROXY_OUT_BYTES_HIGH"),
    ("docs/how-to/monitor.md", r"`/metrics` over ([\d,]+ MiB)", "FETCH_BODY_MAX"),
    ("docs/how-to/monitor.md", r"or more than ([\d,]+) models, of one replica", "MODEL_LIST_MAX"),
    ("docs/hit-rate.md", r"row: ([\d,]+) at most\. A model has its name", "NODE_ANSWERED_ROWS_MAX"),
    ("gossip/README.md", r"UDP payload, at most ([\d,]+ bytes)", "GOSSIP_DATAGRAM_MAX"),
    ("gossip/README.md", r"\| packet \| ([\d,]+ bytes) \|", "GOSSIP_DATAGRAM_MAX"),
    ("gossip/README.md", r"\| live routers \| ([\d,]+) \|", "GOSSIP_ROUTERS_MAX"),
    ("gossip/README.md", r"\| members remembered, with the dead \| ([\d,]+) \|", "GOSSIP_MEMBERS_MAX"),
    ("gossip/README.md", r"\| strangers \| ([\d,]+), for", "GOSSIP_STRANGERS_MAX"),
    ("gossip/README.md", r"\| ranges beyond a hole \| ([\d,]+) per author", "GOSSIP_RANGES_MAX"),
    ("gossip/README.md", r"\| message \| ([\d,]+ KiB) \|", "GOSSIP_MESSAGE_MAX"),
    ("crdt/README.md", r"`names_max`, at most ([\d,]+)\)", "CRDT_NAMES_MAX"),
    ("crdt/README.md", r"more wait, up to ([\d,]+) rows", "CRDT_ROWS_MAX"),
    ("crdt/README.md", r"- ([\d,]+) routers, ", "CRDT_ROUTERS_MAX"),
    ("crdt/README.md", r"routers, ([\d,]+ bytes) per name", "CRDT_NAME_MAX"),
]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "s": 1}


def value_of(text, constant):
    """The number at the start of a text of the docs, in the unit of the constant."""
    m = re.match(r"([\d,]+)(?: (\S+))?(?= |$)", text.strip())
    if not m:
        return None
    number = int(m.group(1).replace(",", "")) * UNITS.get(m.group(2), 1)
    if m.group(2) == "s":
        number *= {"US": 1000000, "MS": 1000}.get(constant.rsplit("_", 1)[1], 1)
    return number


def stated(tree):
    """(place, constant, value or None, the text) of each number."""
    page = "docs/limits.md"
    for number, line in enumerate(open(os.path.join(tree, page), encoding="utf-8"), 1):
        m = re.match(r"- ([\d,]+ [^:]*?)[(; ]+`([A-Z0-9_]+)`\): ", line)
        if m:
            yield "%s:%d" % (page, number), m.group(2), value_of(m.group(1), m.group(2)), m.group(1)
    for page, pattern, constant in STATED:
        words = pattern.replace(" ", r"\s+")  # a line may end between two words
        m = re.search(words, open(os.path.join(tree, page), encoding="utf-8").read())
        if not m:
            yield page, constant, None, "no line with %r" % pattern
        else:
            number = " ".join(m.group(1).split())
            yield page, constant, value_of(number, constant), number


def headers(tree):
    """{constant: the header that defines it}"""
    found = {}
    for folder in ("base", "crdt", "gossip", "http", "node"):
        for path in glob.glob(os.path.join(tree, folder, "**", "*.h"), recursive=True):
            text = open(path, encoding="utf-8").read()
            for name in re.findall(r"^#define ([A-Z][A-Z0-9_]+) |\b([A-Z][A-Z0-9_]+) = ", text, re.M):
                found.setdefault(name[0] or name[1], os.path.relpath(path, tree))
    return found


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else "."
    where = headers(tree)
    failures, rows = [], []
    for place, constant, value, text in stated(tree):
        if value is None:
            failures.append("%s: %s: no number: %s" % (place, constant, text))
        elif constant not in where:
            failures.append("%s: %s is in no header" % (place, constant))
        else:
            rows.append((place, constant, value, text))
    source = "".join('#include "%s"\n' % h for h in sorted({where[c] for _, c, _, _ in rows}))
    first = source.count("\n") + 1
    source += "".join('_Static_assert((long long)(%s) == %dLL, "");\n' % (c, v) for _, c, v, _ in rows)
    gcc = subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-I", tree, "-fsyntax-only", "-x", "c", "-"],
                         input=source, capture_output=True, text=True)
    wrong = sorted({int(n) - first for n in re.findall(r"<stdin>:(\d+):\d+: error: static", gcc.stderr)})
    failures += ["%s: says %s, but the code has another %s" % (rows[i][0], rows[i][3], rows[i][1])
                 for i in wrong]
    if gcc.returncode != 0 and not wrong:
        failures.append(gcc.stderr)
    print("\n".join(failures) if failures else "%d numbers" % len(rows))
    sys.exit(1 if failures else 0)


main()

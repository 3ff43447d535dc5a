#!/usr/bin/env python3
"""Fails on a header with a function that gives its caller an object, through `struct thing **out`, but
none to end it: `..._destroy`, `_free`, `_end` or `_close(struct thing *...)` (CONTRIBUTING.md, rule
4).

usage: ownership.py ROOT
"""
import os
import re
import sys

FOLDERS = ["base", "crdt", "gossip", "http", "node"]

# Headers that end their objects in another way. It only shrinks.
KNOWN = {"node/io/gossip.h"}

DECLARATION = re.compile(r"^[a-zA-Z_][^;{}#/*]*?\b(\w+)\(([^;{}]*)\);", re.MULTILINE)
GIVES = re.compile(r"struct (\w+) \*\*(?:out|made)\b")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def problems(text):
    text = without_comments(text)
    for name, arguments in DECLARATION.findall(text):
        arguments = " ".join(arguments.split())
        given = GIVES.findall(arguments)
        for thing in given:
            end = rf"\b\w+_(?:destroy|free|end|close)\(\s*struct {thing} \*"
            if not re.search(end, text):
                yield f"{name}() gives a struct {thing} that nothing here destroys, frees or ends"


def main():
    root = sys.argv[1]
    failures = 0
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(n for n in names if n.endswith(".h")):
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as f:
                    found = list(problems(f.read()))
                path = os.path.relpath(path, root)
                if path in KNOWN:
                    found = [] if found else ["is as it should be: take it out of KNOWN"]
                for problem in found:
                    print(f"{path}: {problem}")
                    failures += 1
    sys.exit(1 if failures else 0)


main()

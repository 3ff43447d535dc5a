#!/usr/bin/env python3
"""Fails on a function of a header that returns int, and so may return an error, without MUST_USE
(base/err.h): with it the compiler refuses a call that drops the result.

usage: results.py ROOT
"""
import os
import re
import sys

FOLDERS = ["base", "crdt", "gossip", "http", "node"]

RETURNS_INT = re.compile(r"^(?:extern |static inline )*int (\w+)\(")


def main():
    root = sys.argv[1]
    failures = 0
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(n for n in names if n.endswith(".h")):
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        match = RETURNS_INT.match(line)
                        if match:
                            print(f"{os.path.relpath(path, root)}:{number}: {match.group(1)}() "
                                  "returns int: MUST_USE")
                            failures += 1
    sys.exit(1 if failures else 0)


main()

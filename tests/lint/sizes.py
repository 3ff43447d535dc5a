#!/usr/bin/env python3
"""Fails on a function over 70 lines and on a file over 600: a reader must keep it in mind at once.

usage: sizes.py FILE...

A function's lines are those between its braces as clang-format leaves them, both in column 1.
"""
import sys

FUNCTION_MAX = 70
FILE_MAX = 600

# Files that are too long still. It only shrinks: one that is short enough must go from here.
KNOWN = set()


def functions(lines):
    """(line number, name, lines of the body) of each function."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            head = start - 1
            while head > 1 and lines[head - 1].startswith((" ", "\t")):
                head -= 1
            yield start, lines[head - 1].split("(")[0].split()[-1], number - start - 1
            start = None


def main():
    failures = 0
    known = set(KNOWN)
    paths = sys.argv[1:]
    for path in paths:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        if len(lines) > FILE_MAX:
            if path in known:
                known.remove(path)
            else:
                print(f"{path}: {len(lines)} lines, more than {FILE_MAX}: split it by ideas")
                failures += 1
        if path.endswith((".c", ".h")):
            for number, name, count in functions(lines):
                if count > FUNCTION_MAX:
                    print(f"{path}:{number}: {name}() has {count} lines, more than {FUNCTION_MAX}")
                    failures += 1
    for path in sorted(known & set(paths)):
        print(f"{path} is short enough: take it out of KNOWN")
        failures += 1
    sys.exit(1 if failures else 0)


main()

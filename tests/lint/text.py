#!/usr/bin/env python3
"""Fails on tabs in C, trailing spaces, work left undone, dead words and paths of the machine it was
made on.

usage: text.py FILE...
"""
import re
import sys

UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = re.compile(r"/wor" r"k/|/tmp/br" r"ief|/home/(?!\$)\w+/")
BINARY = (".gz", ".xz", ".png", ".bin")


def problems(path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing space"
        if "\t" in line and path.endswith((".c", ".h", ".py")):
            yield number, "tab"
        if UNDONE.search(line):
            yield number, "work left undone"
        if MACHINE.search(line):
            yield number, "path of a machine"


def main():
    failures = 0
    for path in sys.argv[1:]:
        if path.startswith("tests/fuzz/corpus/") or path.endswith(BINARY):
            continue
        try:
            with open(path, encoding="utf-8") as f:
                lines = f.read().split("\n")
        except UnicodeDecodeError:
            print(f"{path}: not UTF-8")
            failures += 1
            continue
        except (FileNotFoundError, IsADirectoryError):
            continue
        for number, text in problems(path, lines):
            print(f"{path}:{number}: {text}")
            failures += 1
    sys.exit(1 if failures else 0)


main()

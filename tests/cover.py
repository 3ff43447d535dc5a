#!/usr/bin/env python3
"""The lines that the tests run (make coverage).

    tests/cover.py BUILD_DIR [ROOM]

Reads the counts of the programs of a build with --coverage. Prints for each folder the number of lines run and the
total, or for ROOM (node/io) the same of each file, followed by the lines not run. Reports a folder below its `least`,
with exit status 1.
"""

import argparse
import collections
import json
import os
import subprocess
import sys

# The product's folders, with the share of lines to be run, in percent. The rest of node/ is its shell.
PURE, SHELL = 95, 85
FOLDERS = ("base", "crdt", "gossip", "http", "node")
LEAST = collections.defaultdict(lambda: PURE, {"node/io": SHELL, "node/daemon": SHELL, "node/gvctl": SHELL})


def counted(build):
    """{file: {line: times it was run}}; an inline function of a header was run if any file ran it."""
    notes = [os.path.join(at, name) for folder in FOLDERS for at, _, names in os.walk(os.path.join(build, "obj", folder))
             for name in sorted(names) if name.endswith(".gcno")]
    if not notes:
        sys.exit("%s was not built with coverage" % build)
    out = subprocess.run(["gcov", "--json-format", "--stdout", *notes], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True).stdout
    lines = collections.defaultdict(collections.Counter)
    for unit in out.splitlines():
        for file in json.loads(unit)["files"]:
            if file["file"].split("/")[0] in FOLDERS:
                for line in file["lines"]:
                    lines[file["file"]][line["line_number"]] += line["count"]
    return lines


def folder_of(path):
    """The room below node/, the folder elsewhere."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "node" and len(parts) > 2 else parts[0]


def share(lines):
    """(lines run, lines there are)"""
    return sum(1 for times in lines if times), len(lines)


def row(name, ran, there):
    return "%5.1f %%  %5d of %5d  %s" % (100 * ran / there, ran, there, name)


def spans(numbers):
    """[3, 4, 5, 9] as [(3, 5), (9, 9)]"""
    out = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    return out


def show_room(lines, room):
    found = {path: of for path, of in sorted(lines.items()) if path.startswith(room.rstrip("/") + "/")}
    if not found:
        sys.exit("no file of %s was counted" % room)
    for path, of in found.items():
        print(row(path, *share(of.values())))
        with open(path) as f:
            text = f.read().split("\n")
        for first, last in spans(sorted(n for n, times in of.items() if not times)):
            for n in range(first, last + 1):
                print("%15d  %s" % (n, text[n - 1]))
    print(row(room, *share([times for of in found.values() for times in of.values()])))


def show_folders(lines):
    by_folder = collections.defaultdict(list)
    for path, of in lines.items():
        by_folder[folder_of(path)] += of.values()
    low = []
    for folder, times in sorted(by_folder.items()):
        ran, there = share(times)
        short = 100 * ran < LEAST[folder] * there
        low += [folder] if short else []
        print(row(folder, ran, there) + ("  less than %d %%" % LEAST[folder] if short else ""))
    return not low


def main():
    parser = argparse.ArgumentParser(description="Which lines the tests run.")
    parser.add_argument("build")
    parser.add_argument("room", nargs="?")
    given = parser.parse_args()
    lines = counted(given.build)
    if given.room:
        show_room(lines, given.room)
    elif not show_folders(lines):
        sys.exit(1)


if __name__ == "__main__":
    main()

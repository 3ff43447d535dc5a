#!/usr/bin/env python3
"""Fails on a circle of translation units, in a room or between rooms: two files that need each
other, directly or through others, cannot be read or tested apart.

usage: circles.py SOURCES_DIR OBJ_DIR    (OBJ_DIR/base/*.o, OBJ_DIR/node/io/*.o, ...)

Who needs whom comes from the objects: one defines a symbol, another has it undefined. An object
without a source is a leftover and does not count.
"""
import os
import subprocess
import sys

FOLDERS = ["base", "crdt", "gossip", "http", "node"]

# Remaining circles: their files, by room. There is none; it stays empty.
KNOWN = {}


def source(path):
    return path[:-2] + ".c"


def objects_below(sources, root):
    found = []
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(where, n), root) for n in names if n.endswith(".o")]
    return sorted(o for o in found if os.path.isfile(os.path.join(sources, source(o))))


def needs(root, objects):
    """Object -> the set of objects that define what it needs."""
    text = subprocess.run(["nm", "-A", "-P", "-g", *objects], cwd=root, check=True,
                          capture_output=True, text=True).stdout
    home, wanted = {}, {o: set() for o in objects}
    for line in text.splitlines():
        path, symbol, kind = line.split()[:3]
        path = path.rstrip(":")
        if kind in "Uwv":
            wanted[path].add(symbol)
        elif symbol != "main":
            home[symbol] = path
    return {o: {home[s] for s in wanted[o] if home.get(s, o) != o} for o in objects}


def circles(graph):
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while node not in group:
                        group.add(stack.pop())
                    on -= group
                    if len(group) > 1:
                        found.append(group)
    return found


def main():
    sources, root = sys.argv[1:3]
    objects = objects_below(sources, root)
    if not objects:
        print(f"no object files below {root}")
        sys.exit(1)
    graph = needs(root, objects)
    known = [{os.path.normpath(os.path.join(room, f"{f}.c")) for f in files}
             for room, files in KNOWN.items() if os.path.isdir(os.path.join(sources, room))]
    failures = 0
    still = set()
    for group in circles(graph):
        names = {source(o) for o in group}
        if any(names <= k for k in known):
            still |= names
            continue
        failures += 1
        print(f"circle: {', '.join(sorted(names))}")
        for o in sorted(group):
            print(f"    {source(o)} needs {', '.join(sorted(source(n) for n in graph[o] & group))}")
    for name in sorted(set().union(*known) - still):
        failures += 1
        print(f"{name} is in no circle: take it out of KNOWN")
    sys.exit(1 if failures else 0)


main()

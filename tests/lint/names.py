#!/usr/bin/env python3
"""Fails on an exported name that does not begin with a noun of its place (CONTRIBUTING.md, rule 1).

usage: names.py SOURCES_DIR OBJ_DIR

Exported are the symbols that an object defines, and the structs, enums, unions and inline functions
of headers. The nouns are those of the folder (crdt_, gossip_, http_, node_) and, below it, of the
room (proxy_); where a folder holds many small things, the first word of any file or folder there
(buf_, upstream_).
"""
import os
import re
import subprocess
import sys

FOLDERS = ["base", "crdt", "gossip", "http", "node"]
MANY = re.compile(r"(base|node/(proxy(/\w+)?|admission|io|daemon|gvctl))$")

# Nouns of no file. It only shrinks.
KNOWN = {}

TAG = re.compile(r"^(?:struct|enum|union) (\w+) (?:\{|__attribute__)")
INLINE = re.compile(r"^static inline .*?\b(\w+)\(")


def nouns(sources, folder):
    """The words that names of this folder may begin with."""
    parts = folder.split("/")
    found = set(parts) - {"base", "policy"}
    if MANY.match(folder):
        found |= {re.split(r"[_.]", name)[0] for name in os.listdir(os.path.join(sources, folder))}
    return found


def fits(name, words):
    return any(re.match(rf"{word}(?=_|\d|$)", name) for word in words)


def folders_below(sources):
    for top in FOLDERS:
        for where, _, names in os.walk(os.path.join(sources, top)):
            folder = os.path.relpath(where, sources)
            yield folder, sorted(n for n in names if n.endswith((".c", ".h")))


def symbols(objects, paths):
    """Source -> the symbols that its object defines."""
    found = {path: [] for path in paths}
    if paths:
        text = subprocess.run(["nm", "-A", "-P", "-g", "--defined-only", *[p[:-2] + ".o" for p in paths]],
                              cwd=objects, check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            path, symbol = line.split()[:2]
            found[path.rstrip(":")[:-2] + ".c"].append(symbol)
    return found


def tags(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            match = TAG.match(line) or INLINE.match(line)
            if match:
                yield match.group(1)


def main():
    sources, objects = sys.argv[1:3]
    failures = files = 0
    known = {(folder, word) for folder, words in KNOWN.items() for word in words
             if os.path.isfile(os.path.join(sources, "Makefile"))}
    used = set()
    for folder, names in folders_below(sources):
        words = nouns(sources, folder)
        defined = symbols(objects, [f"{folder}/{n}" for n in names if n.endswith(".c")])
        for name in names:
            path = f"{folder}/{name}"
            files += 1
            if name.endswith(".h"):
                exported = tags(os.path.join(sources, path))
            else:
                exported = defined[path]
            for symbol in exported:
                if symbol == "main" or fits(symbol, words):
                    continue
                excuse = {(folder, word) for word in KNOWN.get(folder, ()) if fits(symbol, {word})}
                used |= excuse
                if not excuse:
                    print(f"{path}: {symbol} begins with none of {', '.join(sorted(words))}")
                    failures += 1
    for folder, word in sorted(known - used):
        print(f"no name of {folder} begins with {word}_: take it out of KNOWN")
        failures += 1
    if files == 0:
        print("no source files found")
    sys.exit(1 if failures or files == 0 else 0)


main()

#!/usr/bin/env python3
"""Would the unit tests notice? Changes one thing in a source file, and runs the unit tests of its room (make mutants).

    tests/mutate.py [--room crdt ...] [--mutants 300] [--seed 1] [--jobs 2] [--out build/mutants.jsonl]

A mutant has one comparison, number, sign, condition or statement changed. Seed and number choose them, as many of each
kind and of each room. Each is built in a copy of the tree and has its room's unit tests run, those that include its
header first. It is caught if one of them fails or takes much longer; a mutant that does not compile does not count.
The difference of each survivor is printed: either a test is missing, or the mutant does the same in another way.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import queue
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

# The pure rooms, but for node/admin: its tests are end to end.
ROOMS = ("crdt", "gossip", "http", "node/access", "node/cluster", "node/replica", "node/discover", "node/route", "node/settings", "node/admission",
         "node/proxy")
# Warnings are no errors: a dropped statement leaves variables unused.
MAKE = ("make", "--no-print-directory", "-s", "OPT_release=-O1", "WARN=-w")
LIMIT_CPU_S, LIMIT_TIMES = 2, 3  # a test program has so long, and so many times what it takes without a mutant
LIMIT_S = 900                    # and it must not hang
AT_ONCE = 4                      # programs that are linked before any of them is run

SWAPS = {
    "comparison": {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "},
    "and or": {" && ": " || ", " || ": " && "},
    "sign": {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "},
}
STATEMENT = re.compile(r"^\s+(?!return\b|goto\b|break\b|case\b)[\w>.\[\]*-]+( [-+|&^]?= .+|\(.*\)|\+\+|--);$")
Mutant = collections.namedtuple("Mutant", "room kind path line old new")


# --- mutants -------------------------------------------------------------------------------------


def blanked(text):
    """The text with comments and literals blank, every character in its place."""
    quiet = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return quiet.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def changes(code, before, line):
    """(kind, the line anew) of all mutants of one line; `code` is the line and `before` the one before, blanked."""
    for kind, swaps in SWAPS.items():
        for old, new in swaps.items():
            for at in (m.start() for m in re.finditer(re.escape(old), code)):
                yield kind, line[:at] + new + line[at + len(old):]
    for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", code):
        yield "off by one", line[:m.start()] + str(int(m.group()) + 1) + line[m.end():]
    condition = re.match(r"^(\s+(?:\} else )?(?:if|while) \()(.+)(\)(?: \{)?)$", code)
    if condition:
        start, end = condition.span(2)
        yield "condition", line[:start] + "!(" + line[start:end] + ")" + line[end:]
    if STATEMENT.match(code) and re.search(r"([;{}):]|else)\s*$|^\s*$", before):
        yield "dropped", re.match(r"\s*", line).group() + ";"


def mutants_of(room, path):
    with open(path) as f:
        text = f.read()
    lines, codes = text.split("\n"), blanked(text).split("\n")
    function = ""
    for n, code in enumerate(codes):
        begins = re.match(r"^[a-z][\w *]*?\b(\w+)\(", code)
        function = begins.group(1) if begins else "" if code == "}" else function
        if not function or function.endswith("_check") or not code.startswith("    ") or "CHECK" in code:
            continue  # a weaker check catches less and does nothing else
        for kind, new in changes(code, codes[n - 1], lines[n]):
            yield Mutant(room, kind, path, n + 1, lines[n], new)


def chosen(rooms, number, seed):
    """So many, as many of each room, and in it of each kind of change."""
    pick = random.Random(seed)
    pools = {}
    for room in rooms:
        kinds = collections.defaultdict(list)
        for path in sorted(glob.glob(room + "/**/*.c", recursive=True)):
            for mutant in mutants_of(room, path):
                kinds[mutant.kind].append(mutant)
        for pool in kinds.values():
            pick.shuffle(pool)
        pools[room] = [kinds[kind] for kind in sorted(kinds)]
    out = []
    for turn in range(number):
        kinds = pools[rooms[turn % len(rooms)]]
        pool = kinds[turn // len(rooms) % len(kinds)]
        if pool:
            out.append(pool.pop())
    return out


# --- one copy of the tree ------------------------------------------------------------------------


def tests_of(room):
    return sorted(p[:-2] for p in glob.glob("tests/unit/%s/*_test.c" % os.path.basename(room)))


class Tree:
    """A copy of the tree, built: `seconds` is what each test program takes."""

    def __init__(self, top):
        self.top, self.seconds = top, {}

    def make(self, tests):
        return subprocess.run([*MAKE, *("build/" + t for t in tests)], cwd=self.top, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def passes(self, test, cpu_s=600):
        """True if they pass, and the seconds of CPU."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        with subprocess.Popen([os.path.join("build", test)], cwd=self.top, stdin=subprocess.DEVNULL, preexec_fn=limit,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            watch = threading.Timer(LIMIT_S, running.kill)
            watch.start()
            _, status, used = os.wait4(running.pid, 0)
            watch.cancel()
            running.returncode = status
        return status == 0, used.ru_utime + used.ru_stime

    def begin(self, tests, jobs):
        if not self.make(tests):
            sys.exit("the tree does not build")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for test, (good, seconds) in zip(tests, pool.map(self.passes, tests)):
                if not good:
                    sys.exit("%s fails without a mutant" % test)
                self.seconds[test] = seconds

    def judge(self, mutant):
        """"caught by TEST", "survived", "no program\""""
        path = os.path.join(self.top, mutant.path)
        with open(path) as f:
            text = f.read()
        lines = text.split("\n")
        assert lines[mutant.line - 1] == mutant.old
        lines[mutant.line - 1] = mutant.new
        with open(path, "w") as f:
            f.write("\n".join(lines))
        try:
            tests = self.in_order(mutant)
            for i, test in enumerate(tests):
                if i % AT_ONCE == 0 and not self.make(tests[i:i + AT_ONCE]):
                    return "no program"
                if not self.passes(test, int(LIMIT_CPU_S + LIMIT_TIMES * self.seconds[test]))[0]:
                    return "caught by " + test
            return "survived"
        finally:
            with open(path, "w") as f:
                f.write(text)

    def in_order(self, mutant):
        """The tests of its room: that of its file, those that include its header, quick ones."""
        header = mutant.path[:-2] + ".h"
        name = os.path.basename(mutant.path)[:-2]

        def rank(test):
            with open(os.path.join(self.top, test + ".c")) as f:
                includes = header in f.read()
            return (os.path.basename(test) != name + "_test", not includes, self.seconds[test])
        return sorted(tests_of(mutant.room), key=rank)


# --- all of them ---------------------------------------------------------------------------------


def copies(number, tests, under):
    first = os.path.join(under, "0")
    files = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in files.rstrip("\0").split("\0"):
        if os.path.exists(name):
            os.makedirs(os.path.dirname(os.path.join(first, name)), exist_ok=True)
            shutil.copy2(name, os.path.join(first, name))
    tree = Tree(first)
    tree.begin(tests, number)
    yield tree
    for n in range(1, number):
        other = Tree(os.path.join(under, str(n)))
        shutil.copytree(first, other.top, symlinks=True)
        other.seconds = tree.seconds
        yield other


def run(mutants, trees, out):
    verdicts = []

    def one(mutant):
        tree = trees.get()
        try:
            return mutant, tree.judge(mutant)
        finally:
            trees.put(tree)
    with concurrent.futures.ThreadPoolExecutor(trees.qsize()) as pool:
        for task in concurrent.futures.as_completed([pool.submit(one, m) for m in mutants]):
            mutant, verdict = task.result()
            verdicts.append((mutant, verdict))
            out.write(json.dumps({**mutant._asdict(), "verdict": verdict}) + "\n")
            out.flush()
            if verdict == "survived":
                print("%s:%d survived (%s)\n  - %s\n  + %s" % (mutant.path, mutant.line, mutant.kind,
                                                             mutant.old.strip(), mutant.new.strip()), flush=True)
    return verdicts


def table(verdicts):
    print("\n%-16s %8s %8s %9s" % ("room", "mutants", "caught", "survived"))
    rows = collections.defaultdict(collections.Counter)
    for mutant, verdict in verdicts:
        if verdict != "no program":
            for name in mutant.room, "all":
                rows[name][verdict.split()[0]] += 1
    for name in [*(r for r in ROOMS if r in rows), "all"]:
        print("%-16s %8d %8d %9d" % (name, sum(rows[name].values()), rows[name]["caught"], rows[name]["survived"]))


def main():
    parser = argparse.ArgumentParser(description="Would the unit tests notice?")
    parser.add_argument("--room", action="append", choices=ROOMS)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", default="build/mutants.jsonl")
    given = parser.parse_args()
    rooms = given.room or list(ROOMS)
    mutants = chosen(rooms, given.mutants, given.seed)
    with tempfile.TemporaryDirectory() as under, open(given.out, "w") as out:
        trees = queue.Queue()
        for tree in copies(given.jobs, [t for room in rooms for t in tests_of(room)], under):
            trees.put(tree)
        table(run(mutants, trees, out))


if __name__ == "__main__":
    main()

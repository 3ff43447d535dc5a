#!/usr/bin/env python3
"""Instructions that the router itself executes for a request of 1 KB, and where: by callgrind (Debian valgrind).

Time is noisy on shared machines, and creeps unseen; instructions are the same each time to one in a hundred. What the
system does for a request is not among them, nor what a cache miss costs.
    tests/bench/instructions.py                 1 KB
    BYTES=32768 tests/bench/instructions.py     other bodies
    STREAM=on tests/bench/instructions.py       streamed answers
    ARGS='--trace-endpoint http://127.0.0.1:4318' tests/bench/instructions.py      other settings
    KEEP=FILE tests/bench/instructions.py       leaves callgrind's file there, for callgrind_annotate
"""

import collections
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
os.environ.setdefault("BUILD", os.path.join(TOP, "build"))
from lib import BUILD, HOST, Router, wait_for  # noqa: E402

BYTES = os.environ.get("BYTES", "1024")
STREAM = os.environ.get("STREAM", "off")
WARM, COUNT = 4000, 4000


def drive(at, count, seed):
    subprocess.run([BUILD + "/tests/replay", "--target", "http://%s:%d" % (HOST, at), "--quiet", "--fixed", BYTES,
                    "--stream", STREAM, "--requests", str(count), "--connections", "8", "--seed", str(seed)],
                   check=True, stdout=subprocess.DEVNULL)


def switch(router, how):
    subprocess.run(["callgrind_control", "-i", how, str(router.pid)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def self_costs(path):
    """{source file: instructions}, of callgrind's own format: names are numbers after their first use."""
    names, costs, place, calls = {}, collections.Counter(), "", False
    for line in open(path):
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe", "cfi", "cfl"):
            number, name = re.match(r"\((\d+)\)(?: (.*))?", value).groups()
            names.setdefault(number, name)
            if key[0] == "f":
                place = names[number]
        elif key == "calls":
            calls = True  # the next line is the cost of the called function, which has its own line too
        elif line[0] in "0123456789+-*":
            costs[place] += 0 if calls else int(line.split()[1])
            calls = False
    return costs


def room_of(place):
    """The folder of the project, or the library."""
    rooms = re.search(r"(?:^|/)((?:node/\w+(?:/\w+)?|base|crdt|gossip|http)/\w+\.[ch])$", place)
    if rooms:
        return os.path.dirname(rooms.group(1))
    return "xxHash" if place.endswith("xxhash.h") else "C library, libuv"


def measure(folder):
    log, out = os.path.join(folder, "backend"), os.path.join(folder, "callgrind")
    with open(log, "wb") as f:
        backend = subprocess.Popen([BUILD + "/tests/bench/backend", *["--listen", HOST + ":0"] * 8, "--pace-us", "0"],
                                   stdout=f, stderr=f)
    try:
        engines = []

        def listening():
            engines[:] = re.findall(r"listening on (http:\S+)", open(log).read())
            return len(engines) == 8
        wait_for(listening, "the backend")
        router = Router(engines, "--listen", HOST + ":0", "--admin-listen", HOST + ":0", "--drain-delay", "0s",
                        *shlex.split(os.environ.get("ARGS", "")), defaults=False, wrap=("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                                              "--callgrind-out-file=" + out))
        try:
            wait_for(lambda: len(router.events("replica_up")) == 8, "replicas up")
            drive(router.port, WARM, 1)
            switch(router, "on")
            drive(router.port, COUNT, 2)
            switch(router, "off")
            router.signal(signal.SIGTERM)
            router.wait()
        finally:
            router.stop()
    finally:
        backend.kill()
        backend.wait()
    return self_costs(out)


def main():
    if shutil.which("callgrind_control") is None:
        sys.exit("instructions: want valgrind; try: make deps-bench")
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(folder)
        if "KEEP" in os.environ:
            shutil.copy(os.path.join(folder, "callgrind"), os.environ["KEEP"])
    rooms = collections.Counter()
    for place, n in costs.items():
        rooms[room_of(place)] += n
    print("%6d instructions a request of %s bytes" % (sum(costs.values()) / COUNT, BYTES))
    for room, n in rooms.most_common():
        if n >= COUNT * 100:
            print("%6d  %s" % (n / COUNT, room))


if __name__ == "__main__":
    main()

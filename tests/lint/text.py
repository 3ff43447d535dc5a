#!/usr/bin/env python3
"""Fails on tabs in C, comments of C that are too wide, trailing spaces, work left undone, dead words
and paths of the machine it was made on.

usage: text.py FILE...
"""
import re
import sys

UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = re.compile(r"/wor" r"k/|/tmp/br" r"ief|/home/(?!\$)\w+/")
# Dead words -> what to write. In pages, and in comments of C, Python, shell and Makefiles.
WORDS = {
    r"node/core": "the room: node/replica, node/route, node/cluster, node/settings",
    r"time-outs?": "timeout",
    r"good-?byes?": "it leaves, it announces that it leaves",
    r"TTFB|time to first byte": "TTFT",
    r"(white|black)-?lists?": "allow list, deny list",
    r"utili[sz]e[sd]?|leverage[sd]?": "use",
    r"in order to": "to",
    r"obviously|simply|of course": "nothing: delete it",
    r"gossipers?": "router",
    r"meta data": "metadata",
    r"(is|are|were|been) (not )?told": "is reported, published, announced, logged",
    r"how manieth": "its number",
    r"knobs?": "setting",
    r"hopefully|basically|actually": "nothing: delete it",
    r"options_table|options_print|exchange_parts": "the file's name now",
}
DEAD = [(re.compile(rf"\b({words})\b", re.IGNORECASE), instead) for words, instead in WORDS.items()]
# Comments of these folders open with the noun or the verb: not "What a router ...", "Whether ...", "Of ...".
OPENS = re.compile(r"^\s*(What|Whether|Who|Whoever|That|Those|And|Of|Where)\b")
PLAIN = ("base/", "crdt/", "gossip/", "http/", "node/access/", "node/admin/", "node/admission/", "node/cluster/",
         "node/daemon/", "node/discover/", "node/gvctl/", "node/io/", "node/kv/", "node/node.", "node/proxy/",
         "node/replica/", "node/route/", "node/settings/", "node/trace/", "tests/", "jepsen-lite/")
COLUMNS = 100  # clang-format leaves comments alone: it would make tables and lists into sentences
BINARY = (".gz", ".xz", ".png", ".bin")


def prose(path, lines):
    """The lines without what is no prose: code around comments, and blocks of code in pages."""
    inside = False
    for line in lines:
        if path.endswith((".c", ".h")):
            text, rest = "", line
            while rest:
                before, mark, rest = rest.partition("*/" if inside else "/*")
                text += before if inside else ""
                inside = inside != bool(mark)
            yield text
        elif path.endswith(".md"):
            inside = inside != line.startswith("```")
            yield "" if inside else line
        elif path.endswith((".py", ".sh")) or path == "Makefile":
            yield line.partition("#")[2]
        else:
            yield ""


def problems(path, lines):
    for number, text in enumerate(prose(path, lines), 1):
        if path.endswith((".c", ".h")) and text.strip() and len(lines[number - 1]) > COLUMNS:
            yield number, f"a comment beyond {COLUMNS} columns"
        line = lines[number - 1]
        opens = "/*" in line and OPENS.search(line.partition("/*")[2].lstrip("*"))
        if opens and path.endswith((".c", ".h")) and path.startswith(PLAIN) and '"/*' not in line:
            yield number, f'a comment opens with "{opens.group(1)}": begin with the noun or the verb'
        for dead, instead in DEAD:
            match = dead.search(text)
            if match and path != "tests/lint/text.py":
                yield number, f'"{match.group(0)}": write {instead}'
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

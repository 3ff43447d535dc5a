#!/usr/bin/env python3
"""Fails if a comment or a page names a file that does not exist, or a function that no code has.

usage: places.py FILE...    (from the top of the tree; decisions of docs/adr/ may name former ones)
"""
import os
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"\b([a-z]\w+)\(\)")
FILE = re.compile(r"(?<![\w*<])[\w./-]*\b\w[\w-]*\.(?:[ch]|py|sh)\b(?!\w)")
# Names of libc and of engines, parts of names, and examples.
OTHERS = {"select", "install", "a.b.c", "models.py", "blink.py", "keda.sh"}


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def prose(path, text):
    """Pairs of line and text: all of a page, the comments of code."""
    if path.endswith(".md"):
        yield from enumerate(text.split("\n"), 1)
        return
    for match in COMMENT.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(0)


def main():
    paths = [p for p in sys.argv[1:] if os.path.isfile(p)]
    code = {p: text_of(p) for p in paths if p.endswith((".c", ".h", ".py", ".sh"))}
    words = set()
    for path, text in code.items():
        words.update(re.findall(r"\w+", COMMENT.sub("", text) if path.endswith((".c", ".h")) else text))
    files = {os.path.basename(p) for p in paths}
    failures = 0
    for path in paths:
        if not path.endswith((".md", ".c", ".h")) or path.startswith(("docs/adr/", "tests/lint/")):
            continue
        for line, text in prose(path, text_of(path)):
            wrong = [f"{m.group(1)}() is no function" for m in FUNCTION.finditer(text)
                     if m.group(1) not in words | OTHERS]
            for match in FILE.finditer(text):
                name = match.group(0)
                base = os.path.basename(name)
                known = base in files or base.startswith("_") or "NAME" in name or base in OTHERS
                if not known or ("/" in name and base in files and not
                                 any(p.endswith(name.lstrip("./")) for p in paths)):
                    wrong.append(f"there is no file {name}")
            for problem in wrong:
                print(f"{path}:{line}: {problem}")
                failures += 1
    sys.exit(1 if failures else 0)


main()

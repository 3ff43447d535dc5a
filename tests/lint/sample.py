#!/usr/bin/env python3
"""Draws comments, sentences of pages and messages for a fresh reader, who says which had to be read twice.

usage: sample.py SEED [COUNT]    from the top of the tree; COUNT of each, 40 if not given
       sample.py --counts        how often comments say it, its, one and that, per 1,000 words

The aim is at most 4 of 120 (docs/adr/0077-said-plainly.md has past results). Take a new seed each time.
"""
import collections
import random
import re
import subprocess
import sys

import sentences

COMMENTED = ("base/", "crdt/", "gossip/", "http/", "node/")
SAYING = ("node/admin/words.c", "node/admin/attention.c", "node/settings/", "node/gvctl/", "node/proxy/")
STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
JOINT = re.compile(r'"\s*"')


def words(text):
    return re.findall(r"[A-Za-z][A-Za-z'_-]*", text)


def tracked():
    return subprocess.run(["git", "ls-files"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def comments(path):
    for line, text in sentences.comments(text_of(path)):
        if len(words(text)) >= 6:
            yield path, line, text


def pages(path):
    for line, paragraph in sentences.page(text_of(path)):
        for sentence in sentences.END.split(paragraph):
            if len(words(sentence)) >= 5:
                yield path, line, sentence


def messages(path):
    text = re.sub(r"^\s*#.*$", "", text_of(path), flags=re.M)
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for match in STRINGS.finditer(text):
        said = JOINT.sub("", match[0])[1:-1]
        if len(words(re.sub(r"%[-\d.*]*\w+", "", said))) >= 5:
            yield path, text.count("\n", 0, match.start()) + 1, said


def counts(paths):
    of, total = collections.Counter(), 0
    for path in paths:
        for match in sentences.TOKENS.finditer(text_of(path)):
            said = [w.lower() for w in words(match.group(1) or "")]
            total += len(said)
            of.update(said)
    print(", ".join("%s %.1f" % (word, 1000 * of[word] / total) for word in ("it", "its", "one", "that")),
          "in 1,000 of %d words" % total)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") and sys.argv[1] != "--counts":
        sys.exit(__doc__)
    paths = [p for p in tracked() if not p.startswith("tests/vectors/")]
    c = [p for p in paths if p.endswith((".c", ".h"))]
    if sys.argv[1] == "--counts":
        counts(c)
        return
    kinds = (("C", comments, [p for p in c if p.startswith(COMMENTED)]),
             ("S", pages, [p for p in paths if p == "README.md" or re.fullmatch(r"docs/(how-to/)?[\w-]+\.md", p)]),
             ("M", messages, [p for p in c if p.startswith(SAYING)]))
    rng = random.Random(int(sys.argv[1]))
    for kind, find, of in kinds:
        pool = [x for path in of for x in find(path)]
        drawn = rng.sample(pool, min(len(pool), int(sys.argv[2]) if len(sys.argv) > 2 else 40))
        for i, (path, line, text) in enumerate(drawn, 1):
            print("%s%d %s:%d\n    %s\n" % (kind, i, path, line, text))


main()

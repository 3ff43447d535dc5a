#!/usr/bin/env python3
"""Fails on sentences that a reader reads twice: over 30 words, more than one *it*, or *who* for a machine.

usage: sentences.py FILE...    (from the top of the tree)

Checks README.md, the pages of docs/ except docs/adr/, and comments of C in the folders CLEAN. Other files
pass. Skips blocks of code, code in backquotes, targets of links, and tables between <!-- NAME --> and
<!-- /NAME -->, which programs write. A sentence ends at one of . ! ? : ; before a space, and at the end of
a paragraph, a list item, a table cell or a comment.
"""
import re
import sys

WORDS_MAX = 30
# Folders with clean comments. A folder joins the list when its comments pass.
CLEAN = ("base/", "crdt/", "gossip/", "http/", "node/", "tests/")
# *Who* may follow these: "an operator who". *Whose* may follow any noun.
PEOPLE = "attacker|company|engineer|operator|owner|person|reader|reviewer|team|user"
WHO = re.compile(r"\bwho(?:m|ever)?\b", re.IGNORECASE)
PERSON = re.compile(rf"\b(?:(?:{PEOPLE})s?|people|companies|persons|(?:any|some|every)(?:one|body)|those),?\s+$",
                    re.IGNORECASE)
WORD = re.compile(r"[A-Za-z0-9'’_-]+")
END = re.compile(r"(?<=[.!?:;])\s+|(?<=[.!?][)*\"'])\s+")
# Strings and characters, because text in them may look like a comment; and comments.
TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(.*?)\*/', re.DOTALL)
ITEM = re.compile(r"(?:[-*+>]|\d+\.|#+)\s")


def paragraphs(lines, number):
    """Pairs of a paragraph's first line and its text. An empty line, an item or an indented line begins a
    paragraph. A line below an item continues the item if both texts begin in one column."""
    start, text, inside = number, [], None
    for at, line in enumerate(lines, number):
        item = re.match(r"(\s*)[-*]\s", line)
        deep = len(line) - len(line.lstrip())
        if text and (not line.strip() or item or line.startswith("|") or (deep > 1 and deep != inside)):
            yield start, " ".join(text)
            text = []
        if line.strip():
            start = start if text else at
            inside = item.end() if item else inside if text else None
            text.append(line.strip())
    if text:
        yield start, " ".join(text)


def comments(text):
    """Paragraphs of the comments of C."""
    for match in TOKENS.finditer(text):
        if match.group(1) is not None:
            lines = [re.sub(r"^\s*\*(?: |$)", "", line) for line in match.group(1).split("\n")]
            lines[0] = lines[0].strip()
            yield from paragraphs(lines, text.count("\n", 0, match.start()) + 1)


def page(text):
    """Paragraphs, list items and table cells of Markdown, without code and made tables."""
    fence, made, start, parts = None, False, 1, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        bare = line.strip()
        mark = re.match(r"```+|~~~+", bare)
        code = fence or (line.startswith("    ") and not parts)
        if mark and (fence is None or bare.startswith(fence)):
            fence = None if fence else mark.group(0)
            bare = ""
        elif code:
            continue
        made = made and not bare.startswith("<!-- /") or bool(re.fullmatch(r"<!-- \w+:?\w* -->", bare))
        if parts and (not bare or made or bare.startswith("|") or ITEM.match(bare)):
            yield start, " ".join(parts)
            parts = []
        if bare.startswith("|") and not made:
            yield from ((number, cell) for cell in bare.strip("|").split("|"))
        elif bare and not made:
            start = start if parts else number
            parts.append(bare)


def problems(sentence):
    words = WORD.findall(sentence)
    if len(words) > WORDS_MAX:
        yield f"{len(words)} words, at most {WORDS_MAX}: split it"
    if sum(word.lower() == "it" for word in words) > 1:
        yield 'more than one "it": write the noun'
    for match in WHO.finditer(sentence):
        if not PERSON.search(sentence[:match.start()]):
            yield f'"{match.group(0)}" not after a person: a machine is "it" or "that"'


def read(path):
    """The paragraphs of a file to check."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path == "README.md" or (path.endswith(".md") and path.startswith("docs/")
                               and not path.startswith("docs/adr/")):
        return page(text)
    if path.endswith((".c", ".h")) and path.startswith(CLEAN):
        return comments(text)
    return ()


def main():
    failed = False
    for path in sys.argv[1:]:
        if not path.endswith((".md", ".c", ".h")):
            continue
        for line, text in read(path):
            prose = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "CODE", text))
            for sentence in END.split(prose):
                for problem in problems(sentence):
                    print(f"{path}:{line}: {problem}: {sentence.strip()}")
                    failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

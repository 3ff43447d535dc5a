#!/usr/bin/env python3
"""Manual pages, from the option table and from what gvctl says of itself: no setting and no command is
written down twice.

usage: make.py GRAPEVINE GVCTL FOLDER    (writes FOLDER/grapevine.8 and FOLDER/gvctl.1)

The words around them stand in *.in beside this file. SOURCE_DATE_EPOCH, if set, is their date.
"""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def plain(text):
    """As it stands, for roff. Dashes are those of options: searched for, and copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def inline(text):
    """Markdown within a line: `code` in bold, of a link its words and, where it is a page, the page."""
    text = re.sub(r"\[([^\]]*)\]\((?:([\w/-]+\.md)(?:#[\w-]*)?|[^)]*)\)",
                  lambda m: m[1] + (" (%s)" % m[2] if m[2] else ""), text)
    parts = re.split(r"`([^`]*)`", text)
    return "".join("\\fB%s\\fR" % plain(p) if i % 2 else plain(p) for i, p in enumerate(parts))


def sentences(text):
    """One a line, as roff wants it."""
    return re.sub(r"(?<=[^.][.!?]) (?=[A-Z`\[])", "\n", text).split("\n")


def settings(markdown):
    """The lists of docs/options.md."""
    out = []
    for line in markdown.splitlines():
        if line.startswith("## "):
            out.append('.SS "%s"' % plain(line[3:]))
        row = re.fullmatch(r"- `([a-z-]+)` \((.*?)(?:, default `([^`]*)`)?\): (.*)", line)
        if row is None:
            continue
        name, values, default, meaning = row.groups()
        out += [".TP", "\\fB\\-\\-%s\\fR \\fI%s\\fR" % (plain(name), plain(values.replace("`", "")))]
        out += [inline(s) for s in sentences(meaning.removesuffix("*Restart.*").strip())]
        if default:
            out.append("Default: %s." % inline(default))
        if not meaning.endswith("*Restart.*"):
            out.append("Changes while the router runs.")
    return "\n".join(out)


def column_of(lines):
    """Where the explanations of a help text begin: the same column nearly everywhere."""
    starts = [m.end() for m in (re.match(r" +\S.*? {2,}(?=\S)", line) for line in lines) if m]
    return max(set(starts), key=starts.count) if starts else 0


def parse(text):
    """What a help text consists of: ("heading", words), ("row", left, right), ("lines", [as they stand]) or
    ("words", a paragraph). An explanation stands in its column, beside its row or below it."""
    blocks, column, fresh = [], column_of(text.splitlines()), True
    for line in text.splitlines():
        left, right = line[:column].strip(), line[column:].strip()
        last = blocks[-1][0] if blocks else None
        if not line.strip():
            fresh = True
            continue
        if line.startswith("usage:") or (last == "usage" and not fresh):
            blocks.append(("usage",))
        elif line.startswith("examples:") or (last == "lines" and line.startswith("  ") and not fresh):
            line = re.sub(r"^examples: *", "", line).strip()
            blocks[-1][1].append(line) if last == "lines" else blocks.append(("lines", [line]))
        elif not line.startswith(" "):
            if last == "words" and not fresh:
                blocks[-1][1].append(line)
            else:
                blocks.append(("heading", line[:-1]) if line.endswith(":") else ("words", [line]))
        elif last in ("heading", "row") or line[column - 1:column] == " ":
            if not left and last == "row":
                blocks[-1][2].append(right)
            elif line[column - 1:column].strip():  # too long for its column
                blocks.append(("row", line.strip(), []))
            else:
                blocks.append(("row", left, [right] if right else []))
        else:
            blocks.append(("lines", [line.strip()]))
        fresh = False
    return blocks


def row(left, right):
    return [".TP", "\\fB%s\\fR" % plain(left), *[plain(line) for line in right]]


def details(gvctl, name):
    """What `gvctl help NAME` adds to the command's line, if it has that."""
    p = subprocess.run([gvctl, "help", name], capture_output=True, text=True, check=False)
    out, skip = [], True  # the first paragraph is that line
    for kind, *rest in parse(p.stdout) if p.returncode == 0 else []:
        if kind == "heading" and rest[0] != "Options":
            break
        if kind == "words":
            out += [] if skip else [".PP", *map(plain, rest[0])]
            skip = False
        elif kind == "lines":
            out += [".PP", ".nf", *map(plain, rest[0]), ".fi"]
        elif kind == "row":
            out += row(*rest)
    return [".RS", *out, ".RE"] if out else []


def commands(gvctl):
    """From gvctl --help, and of each command from its own help."""
    out, options = [".SH COMMANDS"], False
    for kind, *rest in parse(output(gvctl, "--help")):
        if kind == "heading":
            options = rest[0].startswith("Options")
            out.append(".SH OPTIONS" if options else '.SS "%s"' % plain(rest[0]))
        elif kind == "row":
            if rest[0].startswith("--admin") and not options:
                options = True  # a help text without that heading
                out.append(".SH OPTIONS")
            out += row(*rest)
            name = re.match(r"[a-z][a-z-]*", rest[0])
            out += details(gvctl, name[0]) if name and not options else []
        elif kind == "words" and not rest[0][0].startswith("Exit status"):
            out += [".PP", *map(plain, rest[0])]
        elif kind == "lines":
            out += [".SH EXAMPLES", ".nf", *map(plain, rest[0]), ".fi"]
    return "\n".join(out)


def main():
    grapevine, gvctl, folder = sys.argv[1:]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    fill = {"@DATE@": time.strftime("%Y-%m-%d", time.gmtime(seconds)),
            "@VERSION@": output(grapevine, "--version").split()[-1],
            "@SETTINGS@": settings(output(grapevine, "--print-options-markdown")),
            "@HELP@": commands(gvctl)}
    os.makedirs(folder, exist_ok=True)
    for page in ("grapevine.8", "gvctl.1"):
        with open(os.path.join(HERE, page + ".in"), encoding="utf-8") as f:
            text = f.read()
        for name, value in fill.items():
            text = text.replace(name, value)
        with open(os.path.join(folder, page), "w", encoding="utf-8") as f:
            f.write(text)


main()

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
    text = re.sub(r"\[([^\]]*)\]\((?:([\w-]+\.md)(?:#[\w-]*)?|[^)]*)\)",
                  lambda m: m[1] + (" (%s)" % m[2] if m[2] else ""), text)
    parts = re.split(r"`([^`]*)`", text)
    return "".join("\\fB%s\\fR" % plain(p) if i % 2 else plain(p) for i, p in enumerate(parts))


def sentences(text):
    """One a line, as roff wants it."""
    return re.sub(r"(?<=[^.][.!?]) (?=[A-Z`\[])", "\n", text).split("\n")


def cells(row):
    return [c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]]


def settings(markdown):
    """The tables of docs/options.md."""
    out = []
    for line in markdown.splitlines():
        if line.startswith("## "):
            out.append('.SS "%s"' % plain(line[3:]))
        if not line.startswith("| `"):
            continue
        name, default, values, meaning = cells(line)
        name = name.strip("`")
        values = values.replace("\\|", "|")
        out += [".TP", "\\fB\\-\\-%s\\fR \\fI%s\\fR" % (plain(name), plain(values.replace("`", "")))]
        meaning = meaning[0].upper() + meaning[1:] if not meaning.startswith("`") else meaning
        out += [inline(s) for s in sentences(meaning.replace("\\|", "|"))]
        if default:
            out.append("Default: %s." % inline(default))
    return "\n".join(out)


def column_of(lines):
    """Where the explanations of a help text begin: the same column nearly everywhere."""
    starts = [m.end() for m in (re.match(r" +\S.*? {2,}(?=\S)", line) for line in lines) if m]
    return max(set(starts), key=starts.count)


def commands(text):
    """What gvctl --help says: headings end in a colon, rows are indented, and an explanation stands in its
    column, beside its row or below it."""
    lines = [line for line in text.splitlines() if line.strip()]
    column, out, end = column_of(lines), [".SH COMMANDS"], []
    for line in lines:
        left, right = line[:column].strip(), line[column:].strip()
        if line.lower().startswith("usage:"):
            continue
        if end or line.lower().startswith("examples:"):
            end.append(plain(re.sub(r"^examples: *", "", line, flags=re.I).strip()))
        elif line.startswith("  -") and ".SH OPTIONS" not in out:
            out += [".SH OPTIONS", ".TP", "\\fB%s\\fR" % plain(left), plain(right)]
        elif not line.startswith(" "):
            out.append('.SS "%s"' % plain(line[:-1]) if line.endswith(":") else ".PP\n" + plain(line))
        elif not left:
            out.append(plain(right))
        elif line[column - 1:column].strip():  # too long for its column
            out += [".TP", "\\fB%s\\fR" % plain(line.strip())]
        else:
            out += [".TP", "\\fB%s\\fR" % plain(left)] + ([plain(right)] if right else [])
    return "\n".join(out + ([".SH EXAMPLES", ".nf", *end, ".fi"] if end else []))


def main():
    grapevine, gvctl, folder = sys.argv[1:]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    fill = {"@DATE@": time.strftime("%Y-%m-%d", time.gmtime(seconds)),
            "@VERSION@": output(grapevine, "--version").split()[-1],
            "@SETTINGS@": settings(output(grapevine, "--print-options-markdown")),
            "@HELP@": commands(output(gvctl, "--help"))}
    os.makedirs(folder, exist_ok=True)
    for page in ("grapevine.8", "gvctl.1"):
        with open(os.path.join(HERE, page + ".in"), encoding="utf-8") as f:
            text = f.read()
        for name, value in fill.items():
            text = text.replace(name, value)
        with open(os.path.join(folder, page), "w", encoding="utf-8") as f:
            f.write(text)


main()

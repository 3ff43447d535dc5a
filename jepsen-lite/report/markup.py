"""HTML and SVG, safe by construction: what is no Markup is escaped. Nothing of a history can become markup."""

import html
import json
import re

# Characters that show nothing or turn the text around: they are shown as their number.
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
                    "\ud800-\udfff]")
VOID = {"br", "col", "hr", "input", "link", "meta", "path", "rect", "line", "circle"}


class Markup(str):
    """Text that is markup already."""


def text(value):
    return Markup(html.escape(HIDDEN.sub(lambda m: "\\u%04x" % ord(m.group()), str(value))))


def join(children):
    return Markup("".join(c if isinstance(c, Markup) else text(c) for c in children if c is not None))


def h(tag, *children, **attributes):
    """An element. `cls` is class, `_` in names is `-`; attributes of None or False are left out."""
    parts = ["<", tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = "class" if name == "cls" else name.rstrip("_").replace("_", "-")
        parts.append(" %s" % name if value is True else ' %s="%s"' % (name, text(value)))
    if tag in VOID and not children:
        return Markup("".join(parts) + ">" if tag in ("br", "col", "hr", "input", "link", "meta")
                      else "".join(parts) + "/>")
    return Markup("%s>%s</%s>" % ("".join(parts), join(children), tag))


def short(value, most=160):
    """One line of it."""
    line = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return line if len(line) <= most else line[:most - 1] + "…"


def table(head, rows, caption=None, cls=None, numbers=()):
    """`head`: names of columns; the first cell of a row is its header. `numbers`: columns aligned to the right."""
    def cell(tag, i, value, **more):
        return h(tag, value, cls="n" if i in numbers else None, **more)
    return h("div", h("table",
                      h("caption", caption) if caption else None,
                      h("thead", h("tr", *(cell("th", i, name, scope="col") for i, name in enumerate(head)))),
                      h("tbody", *(h("tr", *(cell("th", i, v, scope="row") if i == 0 else cell("td", i, v)
                                             for i, v in enumerate(row))) for row in rows)),
                      cls=cls), cls="wide", tabindex="0", role="region", aria_label=caption or head[0])


def seconds(s):
    """A duration as people say it."""
    if s is None:
        return "–"
    if s < 0.9995:
        return "%.3g ms" % (s * 1000)
    if s < 9.95:
        return "%.2f s" % s
    if s < 120:
        return "%.1f s" % s
    return "%d min %02d s" % divmod(round(s), 60)


def count(n):
    return "{:,}".format(n)


def many(n, noun):
    """3 anomalies, 1 anomaly."""
    if n == 1:
        return "1 " + noun
    return "%s %s" % (count(n), noun[:-1] + "ies" if noun.endswith("ly") or noun.endswith("ry") else noun + "s")

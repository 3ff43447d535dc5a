"""Values of routers' options. Pure."""

import re


def seconds(text):
    """The value of a time option; None: not a time."""
    m = re.fullmatch(r"(\d+)(ms|s|m)", text)
    return int(m.group(1)) * {"ms": 0.001, "s": 1, "m": 60}[m.group(2)] if m else None

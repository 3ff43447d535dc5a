"""What the options of routers say. Pure."""

import re


def seconds(text):
    """Of an option that is a time; None: it says something else."""
    m = re.fullmatch(r"(\d+)(ms|s|m)", text)
    return int(m.group(1)) * {"ms": 0.001, "s": 1, "m": 60}[m.group(2)] if m else None

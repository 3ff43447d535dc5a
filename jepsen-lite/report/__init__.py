"""report.html: one page that shows what happened in a run. Pure but for the file that it writes.

    report.write(history, anomalies, figures, path)

`figures`: what the checkers' figures() gave, by the name of the checker. The page needs nothing but itself: no script,
font or picture from elsewhere. Its size is bounded, however long the run was; the history itself has all.
"""

from . import page
from .facts import Facts


def write(history, anomalies, figures, path):
    with open(path, "w", encoding="utf-8") as f:
        f.write(page.build(Facts(history), list(anomalies), dict(figures or {})))

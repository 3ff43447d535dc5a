"""Latencies for the report: grouped, and their percentiles."""

import math


def percentile(values, share):
    """The least value that this share of them does not exceed."""
    values = sorted(values)
    return values[max(math.ceil(share * len(values)), 1) - 1] if values else None


def summary(seconds):
    return {"count": len(seconds), "p50_ms": round(percentile(seconds, 0.5) * 1000, 1),
            "p99_ms": round(percentile(seconds, 0.99) * 1000, 1), "most_ms": round(max(seconds) * 1000, 1)}


def by_group(pairs):
    """[(group, seconds)] -> {group: summary}"""
    groups = {}
    for group, seconds in pairs:
        groups.setdefault(group, []).append(seconds)
    return {group: summary(groups[group]) for group in sorted(groups)}


def faults_between(faults, begin, end):
    """Sorted names of the faults between these times; "none" if there was none."""
    return "+".join(sorted({value.get("fault", "?") for f, t, value in faults if f <= end and t >= begin})) or "none"

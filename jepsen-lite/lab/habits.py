"""Permanent habits of an engine: those of real engines that a simulator easily lacks. Drawn from the seed. Pure.

Pauses, rejections and lists that change are faults (nemeses/engine.py): they begin and end."""

import random

SHARE = 0.5                     # share of the engines that have habits
MOST = 2                        # the most kinds of habits that an engine has
CONTEXT = 3000                  # tokens of an engine's shorter context: some requests here do not fit
SILENCE_S = 0.3, 6.0            # a stream's text is delayed, as by a parser of tool calls
SILENCE_LIMITED_S = 0.3, 1.5    # if routers have time limits: the minimum that a control sets is 3 s
MISSING = ("vllm:iteration_tokens_total", "vllm:generation_tokens_total", "vllm:prompt_tokens_total",
           "vllm:iteration_tokens_total,vllm:generation_tokens_total")
FRAMINGS = ("crlf", "no-space", "giant", "identity")


def silence(rng, limited):
    least, most = SILENCE_LIMITED_S if limited else SILENCE_S
    return {"silence": "%.1f" % rng.uniform(least, most), "silence-after": str(rng.randint(0, 3)), "silence-share": "0.3"}


def metrics(rng, _):
    return {"metrics-digits": rng.choice(("2", "17")), "metrics-steps": rng.choice(("1", "40")),
            "metrics-at-end": rng.choice(("none", "requests", "all")), "metrics-missing": rng.choice(("",) + MISSING)}


def framing(rng, limited):
    """All text in one event is a first token that is late."""
    return {"framing": ",".join(f for f in FRAMINGS if rng.random() < 0.4 and not (limited and f == "giant")) or "crlf"}


def host(_, __):
    return {"host-name": ""}  # its address, wherever it is


def context(_, __):
    return {"max-model-len": str(CONTEXT)}


KINDS = (silence, metrics, framing, host, context)


def draw(seed, names, limited=False):
    """{engine: {option: value}}. One of them has the whole context."""
    out, rng = {}, random.Random("%d habits" % seed)
    whole = rng.choice(list(names))
    for name in names:
        kinds = rng.sample(KINDS, rng.randint(1, MOST)) if rng.random() < SHARE else []
        out[name] = {}
        for kind in kinds:
            if kind is not context or name != whole:
                out[name].update(kind(rng, limited))
    return out


def as_args(habits, address):
    """Arguments of engine-sim, at this address."""
    values = dict(habits, **({"host-name": address} if "host-name" in habits else {}))
    return ["--%s=%s" % option for option in values.items()]

"""Rows at the edges: names, networks, this machine's own limits, engines that answer before they should."""

import asyncio
import functools
import itertools
import random
import resource

import fleet as f
import load
import place
from rows import Row, failing

IDLE_MS = 200    # plus a round trip: engines close connections idle for so long, if that is to hit a request
CLIENTS = 10
PORTS, BURST = 12, 60
FILES, FEW = 12, 8  # more than a router has open; clients at once: the rest is for engines
NOISE = ("--tokenizer-ms", "50", "--tokenizer-slow-ms", "300")
SESSIONS, TURNS, PAUSE_S = 6, 24, 0.3
LOOKED_UP = 31   # seconds: a name is looked up again after 30


async def meet_closes(s):
    """Ten requests at once, again and again: when the engine has closed what the last ones went over, or is about to,
    and that is not known yet. Their answers end together."""
    before = await s.do(s.fleet.sum, "upstream_stale_total")
    rng = random.Random(1)
    end = f.time.monotonic() + s.seconds
    while f.time.monotonic() < end:
        for _ in range(CLIENTS):
            s.load.start(path=load.COMPLETIONS, stream=False, value={"model": "sim", "prompt": "x", "max_tokens": 4})
        await s.load.finish()
        await asyncio.sleep((IDLE_MS + s.fleet.at.rtt * rng.uniform(0, 1)) / 1000)
    s.figures["stale"] = await s.do(s.fleet.sum, "upstream_stale_total") - before


def closing(rtt, how="close"):
    """One replica: no other could serve its requests."""
    return Row("idle-%d" % rtt if how == "close" else "idle-" + how,
               "engine %s an idle connection, round trip %d ms" %
               ({"close": "closes", "reset": "resets", "408": "says 408 on"}[how], rtt), meet_closes, engines=1, rate=0,
               at=lambda: place.Place(rtt=rtt), needs_network=True, failed_max=0, speed=False,
               engine=("--idle-close-ms", str(IDLE_MS + rtt), "--idle-ends", how),
               most={"down": 0}, least={"stale": 1})


dozens = itertools.count(0)


def local_ports(first, last):
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as out:
        out.write("%d %d" % (first, last))


async def bursts(s, count=BURST, every=2.0):
    """So many requests at once, again and again."""
    end = f.time.monotonic() + s.seconds
    while f.time.monotonic() < end:
        for _ in range(count):
            s.load.start()
        await asyncio.sleep(every)
    await s.load.finish()


async def few_ports(s):
    first = 20000 + PORTS * next(dozens)
    s.load.sources = itertools.count(random.randrange(10000, 14000))
    local_ports(first, first + PORTS - 1)
    try:
        await bursts(s)
    finally:
        local_ports(32768, 60999)
    await short(s, "ports")


async def few_files(s):
    """Open files stay open; the next dozen is the last. Each router has eight clients at once, so that four files are
    left for connections to engines and for probes."""
    limits = {}
    for r in s.fleet.routers:
        limits[r.pid] = resource.prlimit(r.pid, resource.RLIMIT_NOFILE)
        highest = max(int(fd) for fd in f.os.listdir("/proc/%d/fd" % r.pid))
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (highest + 1 + FILES, limits[r.pid][1]))
    try:
        await bursts(s, FEW * len(limits))
    finally:
        for pid, limit in limits.items():
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
    await short(s, "files")


async def short(s, of):
    s.figures["shortages"] = await s.do(s.fleet.sum, 'local_shortages_total{of="%s"}' % of)


async def talk(s, seed, count, pause):
    """One conversation that grows, of 10,000 tokens at first. Counts turns that another replica than the last one's got."""
    rng = random.Random(seed)
    connection = load.Connection(s.load.addresses[seed % len(s.load.addresses)])
    messages = [{"role": "system", "content": load.words(rng, 8000)}]
    last = None
    for _ in range(count):
        messages.append({"role": "user", "content": load.words(rng, 30)})
        s.load.next += 1
        r = load.Result(load.CHAT, True, 0, "turn", "q%d" % s.load.next)
        s.load.results.append(r)
        body = {"model": "sim", "messages": messages, "stream": True, "max_tokens": 20}
        await load.ask(r, connection, load.json.dumps(body).encode())
        messages.append({"role": "assistant", "content": load.words(rng, 20)})
        s.figures["turns"] += 1
        s.figures["away"] += last is not None and r.replica != last
        last = r.replica
        await asyncio.sleep(rng.uniform(0.5, 1.5) * pause)
    connection.close()


async def sessions(s):
    s.figures.update(away=0, turns=0)
    await asyncio.gather(*[talk(s, i, TURNS, PAUSE_S) for i in range(SESSIONS)])


async def silence(s):
    """The name server says nothing more, of any name."""
    s.fleet.at.dns.silent.update(s.fleet.at.dns.records)
    await s.wait()


async def move(s):
    """The first engine's name gets another address, where an engine of the same kind is; the old one answers on."""
    old = s.one
    new = await s.do(f.Engine, *old.args, host=place.OTHER, port=old.port)
    s.fleet.others.append(new)
    s.fleet.at.dns.records["e0." + place.ZONE]["A"] = [place.OTHER]
    await asyncio.sleep(LOOKED_UP)
    before = await s.do(old.count)
    await asyncio.sleep(max(1, s.seconds - LOOKED_UP))
    s.figures["old"] = await s.do(old.count) - before
    s.figures["new"] = await s.do(new.count)


async def own_loopbacks(s):
    """The first router's own engine is killed. No router may use an engine on another router's loopback, before and
    after."""
    s.touch(s.one)
    await s.wait(0.5)
    await s.do(s.one.kill)
    await s.wait(0.5)
    await s.load.finish()
    own = {"%s:%d" % (e.host, e.port): i for i, e in enumerate(s.fleet.engines[:s.fleet.at.own])}
    asked = [(own[name], r.router) for r in s.load.results for name in [r.replica.partition("@")[0]] if name in own]
    s.figures["strangers"] = sum(owner != router for owner, router in asked)
    s.figures["own"] = sum(owner == router for owner, router in asked)


def named(**how):
    return functools.partial(place.Place, named=True, **how)


ROWS = [
    closing(20), closing(60), closing(160), closing(300), closing(160, "reset"), closing(160, "408"),
    Row("ports", "12 local ports are left, 60 requests at once", few_ports, needs_network=True, engines=3, rate=0,
        failed_max=0, most={"down": 0}, least={"shortages": 1}, speed=False),
    Row("files", "12 more files can be opened", few_files, engines=3, rate=0, failed_max=0, most={"down": 0},
        least={"shortages": 1}, speed=False),
    Row("noise", "first tokens up to 50 ms late by chance, one in twenty 0.3 s", sessions, engines=3, rate=0,
        engine=NOISE + ("--prefill-rate", "40000"), failed_max=0, most={"away": 0}, least={"turns": 144}, speed=False),
    Row("names-silent", "12 names of which DNS says nothing, then it says nothing at all", silence, at=named(silent=12),
        needs_network=True, failed_max=0, most={"up_s": 1, "stop_s": 1, "down": 0}),
    Row("names-late", "DNS answers 2 s late", silence, at=named(late=2.0), needs_network=True, failed_max=0,
        most={"up_s": 3, "stop_s": 1, "down": 0}),
    Row("names-moved", "a name moves, the old address answers on", move, at=named(), needs_network=True, least_s=54,
        failed_max=0, most={"old": 0, "down": 0}, least={"new": 1}),
    Row("loopback", "each router has an engine on its own loopback; one is killed", own_loopbacks, at=place.Loopback,
        needs_network=True, most={"strangers": 0}, least={"own": 1}),
    Row("early", "answers 503 before the body was read, and closes", failing("early")),
    Row("early-429", "the same with 429", failing("early", status=429)),
    Row("interim", "two 1xx heads ahead of each answer", failing("none"), engine=("--interim", "2"), failed_max=0,
        most={"down": 0}),
    Row("interim-hang", "1xx heads without an end", failing("interim", delay_ms=100), late_max=3),
]

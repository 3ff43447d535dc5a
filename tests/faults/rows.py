"""The faults. Each is a coroutine that does it to a fleet under load, in real time.

A row says which engines it touches, when all of them are out, and what a client may not be spared.
"""

import asyncio
import signal

import fleet as f
import load
import place


class Row:
    def __init__(self, name, title, run, **how):
        self.name, self.title, self.run = name, title, run
        self.engine = how.get("engine", ())         # more arguments of the engines
        self.all_out = how.get("all_out", False)    # there is an outage of all
        self.all_touched = how.get("all_touched", False)
        self.needs_drop = how.get("needs_drop", False)
        self.mix = how.get("mix")
        self.failed_max = how.get("failed_max")    # clients that get no whole answer; None: as the rest says
        self.held_max = how.get("held_max")        # seconds for a first token that a client may wait, and
        self.late_max = how.get("late_max")        # requests that may wait longer than 8 s
        self.beside = how.get("beside")            # p99 of the others against that with the engine drained
        self.upstream_max = how.get("upstream_max", 1.2 if self.all_out else 1.1)
        self.cut_max = how.get("cut_max")           # streams that may break; None: any
        self.at = how.get("at", place.Place)        # the engines' place
        self.engines = how.get("engines", 8)
        self.rate = how.get("rate")                 # requests a second beside what the fault asks; None: the driver's
        self.least_s = how.get("least_s", 0)        # seconds that a run lasts at least
        self.most = how.get("most", {})             # figures of its own, and what each may be at most,
        self.least = how.get("least", {})           # or must be at least for the fault to have been met
        self.needs_network = self.needs_drop or how.get("needs_network", False)
        self.speed = how.get("speed", True)         # p99 is judged
        self.rejects = how.get("rejects", False)    # one engine rejects: few requests may reach it, fewer be lost
        self.tools = how.get("tools", 0)            # the share of chats with tools


class Scene:
    """The scene of a fault: the fleet, the load beside it, the time allowed."""

    def __init__(self, fleet, the_load, seconds):
        self.fleet, self.load, self.seconds = fleet, the_load, seconds
        self.touched = set()    # names of engines that the fault hits
        self.outage = None      # (from, to) when no engine was well
        self.figures = {}       # the row's own
        self.killed = 0         # engines that a poison request took
        self.reached = self.offered = 0  # requests that the engine rejected, of all in that time
        self.drained = self.paused = self.resumed = None  # when each began, of `pause`
        self.one = fleet.engines[0]

    async def do(self, function, *args, **how):
        return await asyncio.to_thread(lambda: function(*args, **how))

    async def each(self, function, engines=None):
        await asyncio.gather(*[asyncio.to_thread(function, e) for e in engines or self.fleet.engines])

    def touch(self, *engines):
        self.touched |= {e.name for e in engines or self.fleet.engines}

    async def wait(self, share=1.0):
        await asyncio.sleep(self.seconds * share)


def failing(mode, **how):
    """One engine fails so until the end of the load."""
    async def run(s):
        s.touch(s.one)
        await s.do(s.one.fail, mode, **how)
        await s.wait()
    return run


def failing_a_while(mode, share=0.5, **how):
    async def run(s):
        s.touch(s.one)
        await s.do(s.one.fail, mode, **how)
        await s.wait(share)
        await s.do(s.one.fail, "none")
        await s.wait(1 - share)
    return run


async def kill(s):
    s.touch(s.one)
    await s.do(s.one.kill)
    await s.wait()


async def pause(s):
    """Stopped for ten seconds at most, then it goes on. Before that it is drained for as long: what the
    others' clients wait then is the measure."""
    s.touch(s.one)
    third = min(10, s.seconds / 3)
    s.drained = f.time.monotonic()
    await s.do(s.fleet.drain, s.one, True)
    await asyncio.sleep(third)
    await s.do(s.fleet.drain, s.one, False)
    await asyncio.sleep(s.seconds / 12)
    s.paused = f.time.monotonic()
    s.one.sim.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(third)
    finally:
        s.one.sim.signal(signal.SIGCONT)
    s.resumed = f.time.monotonic()


async def hang(s):
    s.touch(s.one)
    s.one.sim.signal(signal.SIGSTOP)
    await s.wait()


async def black_hole(s):
    s.touch(s.one)
    await s.do(f.drop, s.one.port, True)
    await s.wait()


def rolling(number, grace):
    """Each in its turn: a signal, a kill after `grace` seconds, up again on its port half a second later."""
    async def run(s):
        s.touch()
        pause = s.seconds / len(s.fleet.engines)
        for e in s.fleet.engines:
            end = f.time.monotonic() + pause
            await s.do(e.count)
            e.sim.signal(number)
            while e.sim.running() and f.time.monotonic() < end - pause + grace:
                await asyncio.sleep(0.02)
            await s.do(e.kill)
            await asyncio.sleep(min(0.5, pause / 4))
            await s.do(e.start)
            await asyncio.sleep(max(0, end - f.time.monotonic()))
    return run


async def health_slow(s):
    s.touch()
    await s.each(lambda e: e.fail("none", health="slow", health_delay_ms=10000))
    await s.wait()


def all_fail(out, back, seconds=5):
    async def run(s):
        s.touch()
        begin = f.time.monotonic()
        await s.each(out)
        await asyncio.sleep(max(0, min(seconds, s.seconds / 2) - (f.time.monotonic() - begin)))
        await s.each(back)
        s.outage = (begin, f.time.monotonic())
        await s.wait(0.5)
    return run


async def flap(s):
    s.touch(s.one)
    for _ in range(max(2, int(s.seconds))):
        await s.do(s.one.fail, "status_500", health=True)
        await asyncio.sleep(0.5)
        await s.do(s.one.fail, "none")
        await asyncio.sleep(0.5)


async def die(s):
    s.touch(s.one)
    await s.do(s.one.count)
    await s.do(s.one.fail, "die")
    await s.wait()


def crash(path, value):
    """One request that kills the engine that computes it; those that died come back after 2 s."""
    async def run(s):
        s.touch(*s.fleet.engines)
        s.load.start("poison", path, False, dict({"model": "sim", "max_tokens": 4}, **value))
        end = f.time.monotonic() + s.seconds
        while f.time.monotonic() < end:
            await asyncio.sleep(0.25)
            for e in s.fleet.engines:
                if e.sim.running():
                    await s.do(e.count)
                else:
                    s.killed += 1
                    await asyncio.sleep(2)
                    await s.do(e.start)
    return run


def set_up_otherwise(mode, **how):
    """One engine rejects what its peers accept, at once; the seven others go on."""
    async def run(s):
        s.touch(s.one)
        await s.do(s.one.fail, mode, **how)
        before = await s.do(s.fleet.rejected, s.one)
        offered = len(s.load.results)
        await s.wait()
        s.reached = await s.do(s.fleet.rejected, s.one) - before
        s.offered = max(1, len(s.load.results) - offered)
    return run


async def drain_sglang(s):
    s.touch(s.one)
    await s.do(s.one.count)
    s.one.sim.signal(signal.SIGTERM)
    await s.wait(0.7)
    await s.do(s.one.kill)
    await s.do(s.one.start)
    await s.wait(0.3)


POISON = "POISON-%d" % 4711
SGLANG = ("--engine", "sglang")
COARSE = ("--metrics-digits", "2", "--metrics-steps", "40", "--metrics-at-end", "requests")
ODD = ("--framing", "comments,crlf,no-space,gzip", "--ping", "0.2")

ROWS = [
    Row("500", "answers 500, /health 503", failing("status_500", health=True)),
    Row("drain", "drains: 500, /health 200", failing("draining")),
    Row("rolling", "all restarted in turn: SIGTERM, hang, kill", rolling(signal.SIGTERM, 1.0), all_touched=True,
        engine=("--on-term", "hang")),
    Row("rolling-drain", "the same, each drains", rolling(signal.SIGTERM, 1.0), all_touched=True,
        engine=("--on-term", "drain")),
    Row("rolling-exit", "the same, each exits at once", rolling(signal.SIGTERM, 1.0), all_touched=True),
    Row("kill", "kill -9", kill),
    Row("pause", "SIGSTOP for 10 s, after a drain as long (--seconds 45)", pause, failed_max=0, beside=1.1),
    Row("stop", "SIGSTOP", hang, late_max=3),
    Row("stuck", "work hangs, /health and /metrics fine", failing("stuck"), late_max=3),
    Row("hang", "new requests hang alone, /health and /metrics fine", failing("hang"), late_max=3),
    Row("crawl", "ten times slower", failing("crawl", factor=10)),
    Row("full", "503, queue full, for a while", failing_a_while("full")),
    Row("429", "429", failing("status_429")),
    Row("resets", "resets in the middle of streams", failing("reset_mid_stream", after_chunks=4)),
    Row("black-hole", "packets are dropped", black_hole, needs_drop=True),
    Row("health-slow", "/health of all takes 10 s", health_slow, all_touched=True),
    Row("all-killed", "all killed, back after 5 s", all_fail(lambda e: e.kill(), lambda e: e.start()),
        all_out=True, all_touched=True),
    Row("all-500", "all answer 500 for 5 s",
        all_fail(lambda e: e.fail("status_500", health=True), lambda e: e.fail("none")),
        all_out=True, all_touched=True),
    Row("sglang-full", "SGLang: queue full for a while", failing_a_while("full"), engine=SGLANG),
    Row("sglang-stuck", "SGLang: the same as stuck", failing("stuck"), engine=SGLANG, late_max=3),
    Row("sglang-hang", "SGLang: the same as hang", failing("hang"), engine=SGLANG, late_max=3),
    Row("sglang-drain", "SGLang: SIGTERM, drains", drain_sglang, engine=SGLANG + ("--on-term", "drain")),
    Row("sglang-die", "SGLang: scheduler killed", die, engine=SGLANG),
    Row("core", "vLLM: core killed", die),
    Row("sleep", "vLLM: asleep", failing("sleep")),
    Row("flap", "fails every other half second", flap),
    Row("no-end", "streams end without their last event", failing("end", after_chunks=4)),
    Row("garbage", "answers bytes that are no HTTP", failing("garbage")),
    Row("poison", "vLLM: one request kills its engine", all_touched=True, engine=("--poison", POISON),
        run=crash(load.CHAT, {"messages": [{"role": "user", "content": "%s %s" % (POISON, "word " * 50)}]})),
    Row("sglang-poison", "SGLang: token id beyond the vocabulary", all_touched=True, engine=SGLANG,
        run=crash(load.COMPLETIONS, {"prompt": [1 << 20]})),
    Row("pause-steps", "its steps pause for 3 s, /health and /metrics fine", failing_a_while("stuck", 0.3), cut_max=0),
    Row("silent", "SGLang: all hold back text for 1.5 s, coarse metrics", failing("none"), cut_max=0,
        engine=SGLANG + COARSE + ("--silence", "1.5", "--silence-after", "2", "--silence-share", "0.3")),
    Row("odd", "answers in odd framing, coarse metrics", failing("none"), engine=COARSE + ODD, cut_max=0),
    Row("401", "another API key", set_up_otherwise("status_401"), rejects=True),
    Row("403", "forbidden", set_up_otherwise("status_403"), rejects=True),
    Row("404", "lost its model", set_up_otherwise("status_404"), rejects=True),
    Row("422", "does not understand the body", set_up_otherwise("status_422"), rejects=True),
    Row("no-template", "no chat template", set_up_otherwise("no_template"), rejects=True),
    Row("no-tool-parser", "no tool parser, a third of the chats has tools", set_up_otherwise("no_tool_parser"),
        rejects=True, tools=0.33),
    Row("context", "a context of 64 tokens", set_up_otherwise("context", tokens=64), rejects=True),
]

"""A run inside its namespaces: start, episodes, rests, stop, verdict."""

import glob
import os
import shutil
import signal
import sys
import time
import traceback

import plan
from history import Recorder

from . import habits
from .episode import Stage
from .judge import Judgement
from .load import Loads
from .progress import Progress
from .rest import wait_calm
from .service import Options, Service

# Stated times, in s. Checkers find them in the history's first line.
LIMITS = {
    # From the last repair until all routers agree and use all engines: a back-off may last 30 s, the router that found a
    # stall has 5 s for its trial, and then the others hear of it and take turns of half a second.
    "rest_s": 40,
    "pause_s": 25,      # for a step of a workload that is under way
    "gone_s": 3,        # until the load of a killed router is gone everywhere
    "observation_s": 2,  # until all know an observation, p99, after a partition heals
    "fence_s": 6,       # until no router believes in the cache of an engine that restarted
}
LAST_REST_S = 3  # of the run's time, reserved for the last rest


def folder_of(o):
    if o.out:
        path = os.path.abspath(o.out)
    else:
        path = os.path.abspath("build/jepsen")
        if o.keep:
            path += time.strftime("-%Y%m%d-%H%M%S-seed") + str(o.seed)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def as_args(options):
    """--name value of name=value."""
    return [part for name, _, value in (option.partition("=") for option in options) for part in ("--" + name, value)]


def named(args):
    """--name value ... as an object."""
    return {name.removeprefix("--"): value for name, value in zip(args[::2], args[1::2])}


class Run:
    def __init__(self, o, workloads, nemeses):
        self.o, self.workload_classes = o, workloads
        self.folder = folder_of(o)
        self.progress = Progress()
        self.missing = []
        self.nemeses = []
        for cls in nemeses:
            least = getattr(cls, "least_run", 0)
            why = "in runs of %d s or more" % least if least > o.seconds else \
                cls.missing() if hasattr(cls, "missing") else None
            if why:
                self.missing.append("%s: %s" % (cls.name, why))
            else:
                self.nemeses.append(cls())
        self.recorder = Recorder(os.path.join(self.folder, "history.jsonl"))
        self.service = self.loads = self.stage = None
        self.rests = self.played = 0
        self.stalls = []

    def up(self):
        o = self.o
        options = Options(build=o.build, routers=o.routers, engines=o.engines, seed=o.seed, bug=o.bug,
                          clients=sum(c.clients for c in self.workload_classes), command=o.command,
                          stop_signal=getattr(signal, "SIG" + o.stop_signal.upper().removeprefix("SIG")))
        wanted = [option for c in self.workload_classes for option in getattr(c, "router_options", ())]
        options.router_args = options.router_args + as_args(wanted + o.router_option)
        wanted = [option for c in self.workload_classes for option in getattr(c, "engine_options", ())]
        options.engine_args = options.engine_args + as_args(wanted + o.engine_option)
        if o.habits == "drawn" and not o.command:
            limited = any(name.startswith("--upstream-") for name in options.router_args)
            options.habits = habits.draw(o.seed, ["e%d" % i for i in range(1, o.engines + 1)], limited)
        self.service = s = Service(options, self.recorder, self.folder)
        self.recorder.event("lab", "meta", {
            "seed": o.seed, "workloads": [c.name for c in self.workload_classes],
            "nemeses": [n.name for n in self.nemeses], "missing": self.missing,
            "routers": [{"name": r.name, "address": r.address} for r in s.routers],
            "engines": [{"name": e.name, "address": e.address, "habits": e.habits} for e in s.engines],
            "clients": [c.name for c in s.clients], "options": named(options.router_args),
            "build": s.build, "bug": o.bug, "limits": LIMITS, "watched": not o.command,
            "command": ["jepsen-lite/run"] + sys.argv[1:], "proxy": o.command})
        if o.capture or any(getattr(c, "capture", False) for c in self.workload_classes):
            s.whole_wire.capture(os.path.join(self.folder, "gossip.pcap"), self.recorder.began)
        for n in self.nemeses:
            if hasattr(n, "prepare"):
                n.prepare(s)
        s.start()
        self.stage = Stage(s, self.recorder, self.nemeses)
        self.loads = Loads(s, self.recorder, self.workload_classes, o.seed)

    def rest(self):
        """Pauses the clients, reads everything, and lets the clients go on."""
        self.recorder.event("lab", "rest", {"phase": "pause"})
        self.progress.say("waits for rest")
        paused = self.loads.pause(LIMITS["pause_s"])
        calm, waited, why = wait_calm(self.service, LIMITS["rest_s"])
        self.service.follower.poll()
        self.service.whole_wire.flush()
        value = {"phase": "begin", "calm": calm and paused, "waited_s": round(waited, 3)}
        if not calm or not paused:
            value["why"] = why or "a client's operation does not end"
        self.recorder.event("lab", "rest", value)
        for r in self.service.routers:
            self.recorder.event(r.name, "holds", r.holds())
        self.rests += 1
        self.progress.say("rests")
        self.loads.read_at_rest()
        self.recorder.event("lab", "rest", {"phase": "end"})

    def episodes(self):
        end = self.recorder.now() + self.o.seconds
        lasts = {n.name: n.seconds for n in self.nemeses if hasattr(n, "seconds")}
        apart = [(n.name, other) for n in self.nemeses for other in getattr(n, "apart", ())]
        names = [n.name for n in self.nemeses]
        self.loads.go()
        rested = False
        for episode in plan.episodes(self.o.seed, names, self.o.seconds, lasts, apart):
            left = end - self.recorder.now() - LAST_REST_S
            if left < (episode.seconds if self.played else 0):
                break
            self.progress.say(" + ".join(f.name for f in episode.faults) or "no fault", episode.number, end)
            self.stage.play(episode)
            self.stage.bring_back()
            self.played += 1
            rested = episode.rest
            if episode.rest:
                self.rest()
                self.loads.go()
        if not rested or not self.rests:
            self.rest()
        self.loads.stop()

    def down(self):
        self.progress.say("stops")
        if self.stage is not None:
            self.stage.over.set()
        if self.loads is not None:
            self.loads.stop()
        try:
            if self.service is not None:
                self.service.stop()
                self.tell_stalls()
        finally:
            self.recorder.close()

    def tell_stalls(self):
        """Records each pause of the machine on which all runs as a fault of everything."""
        self.stalls = self.service.whole_wire.stalls()
        for i, span in enumerate(self.stalls):
            begin, end = (max(0, t - self.recorder.began) for t in span)
            value = {"id": "machine-%d" % (i + 1), "fault": "machine"}
            text = "the machine under all of it stood still for %.1f s" % (end - begin)
            self.recorder.event("nemesis", "start", dict(value, hosts=list(self.service.hosts), text=text), t=begin)
            self.recorder.event("nemesis", "stop", value, t=end)

    def forget_keys(self):
        """Removes secrets that an interrupted run must not leave in its folder."""
        for path in glob.glob(os.path.join(glob.escape(self.folder), "cluster.key*")):
            os.unlink(path)

    def judge(self, errors):
        errors = errors + (self.loads.errors if self.loads else []) + (self.stage.errors if self.stage else [])
        j = Judgement(self.folder)
        self.progress.end()
        path = j.write(errors)
        for why in self.missing:
            print("skipped %s" % why)
        if self.stalls:
            print("the machine under all of it stood still %d times, %.1f s in all, which counts as a fault of everything" % (
                len(self.stalls), sum(end - begin for begin, end in self.stalls)))
        j.say(errors)
        print(path)
        return 2 if errors + j.errors else 1 if j.anomalies else 0

    def play(self):
        """The exit status."""
        errors = []
        for steps in ((self.up, self.episodes), (self.down,)):
            try:
                for step in steps:
                    step()
            except Exception:
                errors.append(traceback.format_exc())
        return self.judge(errors)


ENDS = (signal.SIGINT, signal.SIGTERM)


def ignore():
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)


def interrupted(*_):
    ignore()  # once is enough
    raise KeyboardInterrupt


def run(o, workloads, nemeses):
    for number in ENDS:
        signal.signal(number, interrupted)
    r = None
    try:
        r = Run(o, workloads, nemeses)
        status = r.play()
        ignore()
        return status
    except KeyboardInterrupt:
        if r is not None:
            r.progress.end()
            r.forget_keys()
        print("interrupted" + ("; what there is so far: %s" % r.folder if r is not None else ""))
        sys.stdout.flush()
        os._exit(130)  # the kernel ends all the rest

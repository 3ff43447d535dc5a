"""Shared by all faults: their victims, and a list of repairs that stop() runs, however far start() came."""

import os
import subprocess
import threading
import weakref

from .victims import Held

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_shared, _lock = weakref.WeakKeyDictionary(), threading.RLock()


def shared(service, make, *args):
    """State shared by all faults of one service, one object of each class. There may be several views of a service."""
    with _lock:
        table = _shared.setdefault(service.recorder, {})
        if make not in table:
            table[make] = make(*args)
        return table[make]


def compiled(source, folder):
    """The library of tests/lib/faults that a process is to have from its next start on."""
    os.makedirs(folder, exist_ok=True)
    library = os.path.join(folder, source + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, os.path.join(TOP, "tests", "lib", "faults", source + ".c")],
                   check=True, capture_output=True)
    return library


def preload(process, library):
    before = process.env.get("LD_PRELOAD")
    process.env["LD_PRELOAD"] = before + ":" + library if before else library


def names(processes):
    return [p.name for p in processes]


def plural(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


class Nemesis:
    name = None
    seconds = (3, 8)
    least_run = 0  # seconds that a run should have for it: the long ones

    def __init__(self):
        self.mends = []
        self.over = threading.Event()

    @staticmethod
    def missing():
        return None

    def prepare(self, service):
        pass

    def start(self, service, rng):
        raise NotImplementedError

    def stop(self, service):
        """Runs all repairs, the last one first; an exception of a repair is raised at the end."""
        self.over.set()
        failed = None
        while self.mends:
            mend, args = self.mends.pop()
            try:
                mend(*args)
            except Exception as e:
                failed = failed or e
        self.over.clear()
        if failed is not None:
            raise failed

    def later(self, mend, *args):
        """Registers a repair for stop(), before the harm is done, so that an incomplete start leaves nothing behind."""
        self.mends.append((mend, args))

    def some(self, service, rng, kind, most=None):
        """Processes to hurt: routers or engines, reserved until stop(). `most`: half of them by default."""
        processes = {p.name: p for p in getattr(service, kind)}
        held = shared(service, Held)
        self.later(held.drop, self)
        most = max(1, len(processes) // 2) if most is None else most
        return [processes[n] for n in held.take(self, rng, list(processes), most)]

    def wire(self, service):
        """The wire, which stop() heals: it is a layer of this fault alone."""
        self.later(service.wire.heal)
        return service.wire

    def background(self, work, *args):
        """Runs work until stop(). It looks at self.over now and then, and what it raises stop() raises."""
        raised = []

        def run():
            try:
                work(*args)
            except Exception as e:
                raised.append(e)

        thread = threading.Thread(target=run, daemon=True)

        def end():
            thread.join()
            if raised:
                raise raised[0]

        self.later(end)
        thread.start()

    def nobody(self):
        return {"hosts": [], "text": "%s: nothing, for nobody may be hurt besides" % self.name}

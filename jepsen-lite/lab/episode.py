"""An episode on a service: its faults begin, last and are repaired, each in its own thread."""

import itertools
import random
import threading
import traceback

STOP_S = 60  # a fault whose repair takes longer is an error of the lab


class Stage:
    """The place where faults are played."""

    def __init__(self, service, recorder, nemeses):
        self.service, self.recorder, self.nemeses = service, recorder, {n.name: n for n in nemeses}
        self.ids = itertools.count(1)
        self.over = threading.Event()  # repair everything now
        self.errors = []
        self.now = []                  # names of the faults under way

    def play(self, episode):
        threads = [threading.Thread(target=self.fault, args=(f,), daemon=True) for f in episode.faults]
        for t in threads:
            t.start()
        if not threads:
            self.over.wait(episode.seconds)
        for t in threads:
            t.join(max(f.after + f.lasts for f in episode.faults) + STOP_S)
            if t.is_alive():
                self.errors.append("a fault of %r does not end" % episode)

    def fault(self, f):
        nemesis, id = self.nemeses[f.name], next(self.ids)
        if self.over.wait(f.after):
            return
        view = self.service.with_layer()
        began, about = self.recorder.now(), {}
        self.now.append(f.name)
        try:
            about = nemesis.start(view, random.Random(f.seed)) or {}
        except Exception:
            self.failed(f, "start")
        self.recorder.event("nemesis", "start", dict({"hosts": []}, **about, id=id, fault=f.name), t=began)
        self.over.wait(max(0, began + f.lasts - self.recorder.now()))
        try:
            nemesis.stop(view)
        except Exception:
            self.failed(f, "stop")
        self.service.whole_wire.remove(view.wire)
        self.recorder.event("nemesis", "stop", {"id": id, "fault": f.name})
        self.now.remove(f.name)

    def failed(self, f, what):
        self.errors.append("%s.%s(): %s" % (f.name, what, traceback.format_exc()))

    def bring_back(self):
        """Restarts each process that is down although no fault keeps it down any more."""
        for p in self.service.processes:
            if not p.alive:
                p.start()

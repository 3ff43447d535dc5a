"""Workloads under way: a thread for each client machine, and a gate that pauses them all."""

import random
import threading
import time
import traceback


class Gate:
    """Steps pass the gate one by one. A closed gate lets steps inside end, and none enter."""

    def __init__(self):
        self.condition = threading.Condition()
        self.open, self.over, self.inside = False, False, 0

    def enter(self):
        """Returns true if there is more to do."""
        with self.condition:
            self.condition.wait_for(lambda: self.open or self.over)
            self.inside += not self.over
            return not self.over

    def leave(self):
        with self.condition:
            self.inside -= 1
            self.condition.notify_all()

    def set(self, open=False, over=False):
        with self.condition:
            self.open, self.over = open, over
            self.condition.notify_all()

    def empty(self, seconds):
        """Returns true if all are out by then."""
        with self.condition:
            return self.condition.wait_for(lambda: self.inside == 0, seconds)


class Loads:
    def __init__(self, service, recorder, classes, seed):
        self.gate = Gate()
        self.errors = []  # errors of workloads themselves: the run is worth nothing then
        self.workloads, self.threads, free = [], [], list(service.clients)
        for cls in classes:
            mine, free = free[:cls.clients], free[cls.clients:]
            workload = cls(service.with_clients(mine), recorder, random.Random("%d %s" % (seed, cls.name)))
            self.workloads.append(workload)
            for host in mine:
                rng = random.Random("%d %s %s" % (seed, cls.name, host.name))
                self.threads.append(threading.Thread(target=self.steps, args=(workload, host, rng), daemon=True))
        for t in self.threads:
            t.start()

    def steps(self, workload, host, rng):
        with host.inside():
            while self.gate.enter():
                try:
                    workload.step(host, rng)
                except Exception:
                    self.failed(workload, "step")
                    time.sleep(1)
                finally:
                    self.gate.leave()

    def failed(self, workload, what):
        self.errors.append("%s.%s(): %s" % (workload.name, what, traceback.format_exc()))

    def go(self):
        self.gate.set(open=True)

    def pause(self, seconds):
        """Returns true if all steps have ended by then."""
        self.gate.set()
        return self.gate.empty(seconds)

    def read_at_rest(self):
        for workload in self.workloads:
            try:
                workload.rest()
            except Exception:
                self.failed(workload, "rest")

    def stop(self):
        self.gate.set(over=True)
        self.gate.empty(5)

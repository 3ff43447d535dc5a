"""Each request has its own prompt and so teaches one fact: the replica with that prompt. Every router is asked, by its
admin port, until it knows; at rest all routers are asked about all prompts."""

import collections
import threading
import time

from workloads import beliefs

WAITS_MAX = 8        # prompts that a router is asked about at one time. None is given up for a new one: those that take
WAIT_S_MAX = 30.0    # long are what is measured
GAP_S, GAP_S_MAX, GAP_GROWS = 0.002, 0.25, 1.5  # between two questions about one prompt
READ_NEW, READ_OLD, READ_AT_ONCE = 120, 30, 50  # prompts at a rest, in an operation


class Wait:
    """Until one router knows one prompt."""

    def __init__(self, recorder, router, op, body):
        self.body, self.began, self.asked = body, time.monotonic(), recorder.now()
        self.due, self.gap = self.began, GAP_S
        self.vain, self.seen = None, {}  # when it was last asked in vain; {replica: [asked in vain, believed]}
        self.operation = recorder.invoke("ask-" + router.name, "observations.learn", {"op": op, "router": router.name})

    def ask(self, router, recorder):
        before = recorder.now()
        belief = beliefs.explain(router, self.body)
        for replica in belief.held if belief else ():
            self.seen.setdefault(replica, [self.vain, round(recorder.now(), 6)])
        if belief:
            self.vain = round(before, 6)
        self.gap = min(self.gap * GAP_GROWS, GAP_S_MAX)
        self.due = time.monotonic() + self.gap

    def over(self, taught):
        """`taught`: the replica that answered; None: not yet; False: none did."""
        if taught in self.seen:
            self.operation.ok({"seen": self.seen})
        elif taught is False or time.monotonic() > self.began + WAIT_S_MAX:
            self.give_up()
        return self.operation.ended

    def give_up(self):
        self.operation.info({"seen": self.seen})


class Asker(threading.Thread):
    """Asks one router, faults or not, until the run ends."""

    def __init__(self, workload, router):
        super().__init__(daemon=True, name="observations-" + router.name)
        self.workload, self.router = workload, router
        self.waits, self.new = [], collections.deque()
        self.wake = threading.Event()

    def watch(self, op, body):
        self.new.append((op, body))
        self.wake.set()

    def run(self):
        try:
            while True:
                self.turn()
        except ValueError:
            pass  # the history is closed: the run is over

    def turn(self):
        recorder = self.workload.recorder
        while self.new:
            op, body = self.new.popleft()
            if len(self.waits) < WAITS_MAX:
                self.waits.append((op, Wait(recorder, self.router, op, body)))
        now = time.monotonic()
        for op, wait in self.waits:
            if wait.due <= now:
                wait.ask(self.router, recorder)
        self.waits = [(op, wait) for op, wait in self.waits if not wait.over(self.workload.taught.get(op))]
        next_due = min((wait.due for _, wait in self.waits), default=now + 1)
        self.wake.wait(max(next_due - time.monotonic(), 0))
        self.wake.clear()


class Workload:
    name = "observations"
    clients = 2

    def __init__(self, service, recorder, rng):
        self.service, self.recorder, self.rng = service, recorder, rng
        self.model = beliefs.model_of(service)
        self.taught = {}  # op -> replica; False: the request failed
        self.fresh, self.old, self.rests = [], [], 0
        self.lock = threading.Lock()
        self.askers = [Asker(self, router) for router in service.routers]
        for asker in self.askers:
            asker.start()

    def step(self, client, rng):
        target = self.service.anyone(rng)
        operation = self.recorder.invoke(client.name, "observations.chat", {"router": target[0]})
        op = str(operation.id)
        body = beliefs.body_of(op, self.model)
        for asker in self.askers:
            asker.watch(op, body)
        replica = beliefs.teach(self.recorder, operation, client, target, body)
        self.taught[op] = replica or False
        if replica:
            with self.lock:
                self.fresh.append(op)
        time.sleep(rng.uniform(0.05, 0.5))

    def rest(self):
        with self.lock:
            fresh, self.fresh = self.fresh, []
        self.rests += 1
        ops = self.rng.sample(fresh, min(len(fresh), READ_NEW)) + self.rng.sample(self.old, min(len(self.old), READ_OLD))
        ops.append("never-%d" % self.rests)
        self.old += fresh
        readers = [threading.Thread(target=self.read, args=(router, ops)) for router in self.service.routers]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    def read(self, router, ops):
        for i in range(0, len(ops), READ_AT_ONCE):
            if not router.alive:
                return
            part = ops[i:i + READ_AT_ONCE]
            operation = self.recorder.invoke("ask-" + router.name, "observations.read",
                                             {"router": router.name, "ops": part})
            said = {op: beliefs.explain(router, beliefs.body_of(op, self.model), timeout=5) for op in part}
            if None in said.values():
                operation.info({"unanswered": [op for op, belief in said.items() if belief is None]})
                return
            operation.ok({"beliefs": {op: belief.held for op, belief in said.items() if belief.held},
                          "listed": sorted(set.intersection(*(set(belief.listed) for belief in said.values())))})

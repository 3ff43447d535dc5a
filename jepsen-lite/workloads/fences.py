"""Teaches some prompts to each engine, and asks routers about them for as long as possible, during all disturbances of
the engines. Now and then an engine loses its cache and its connections (POST /sim/restart); faults do the rest."""

import collections
import threading
import time

from workloads import beliefs

PROMPTS, LIFE_PROMPTS = 9, 3   # the newest of each engine; of each of its lives
RESTART_S = (6.0, 15.0)        # between two
OLD_S = 3                      # an engine is when its cache is lost: no model is loaded sooner
ASK_S, ASK_HOT_S, HOT_S = 0.08, 0.04, 10.0


class Prompt:
    """`life`: number of observed losses of its engine's cache."""

    def __init__(self, op, body, life):
        self.op, self.body, self.life = op, body, life


class Reader(threading.Thread):
    """Asks one router about all prompts in turn, and most about those of engines that restarted a moment ago. Only what
    changed is written down."""

    def __init__(self, workload, router):
        super().__init__(daemon=True, name="fences-" + router.name)
        self.workload, self.router = workload, router
        self.lock = threading.Lock()
        self.turn = 0
        self.life, self.last = None, {}  # op -> (Belief, when it was last asked)

    def run(self):
        try:
            while True:
                hot, prompts = self.workload.prompts()
                if not self.router.alive or not prompts:
                    time.sleep(0.2)
                    continue
                self.turn += 1
                chosen = hot[self.turn // 2 % len(hot)] if hot and self.turn % 2 else prompts[self.turn % len(prompts)]
                self.ask(chosen, timeout=1.0)
                time.sleep(ASK_HOT_S if hot else ASK_S)
        except ValueError:
            pass  # the history is closed: the run is over

    def ask(self, prompt, timeout, always=False):
        """`always`: the answer is written down though it is the same."""
        with self.lock:
            if self.life != self.router.life:
                self.life, self.last = self.router.life, {}
            life, now = self.life, self.workload.recorder.now()
            belief = beliefs.explain(self.router, prompt.body, timeout)
            if belief is None or self.router.life != life:
                return
            said, before = self.last.get(prompt.op, (None, None))
            if always or not belief.same(said):
                self.write(prompt, belief, round(now, 6) if said is not None and belief.same(said) else before)
            self.last[prompt.op] = belief, round(now, 6)

    def write(self, prompt, belief, before):
        operation = self.workload.recorder.invoke("ask-" + self.router.name, "fences.read",
                                                  {"router": self.router.name, "op": prompt.op})
        operation.ok({"beliefs": belief.held, "listed": belief.listed, "before": before})


class Workload:
    name = "fences"
    clients = 1

    def __init__(self, service, recorder, rng):
        self.service, self.recorder = service, recorder
        self.model = beliefs.model_of(service)
        self.taught = {}  # replica -> its newest prompts
        self.losses = collections.Counter()  # of replicas
        self.hot = {}     # replica that lost its cache -> (until when, a prompt that was in it)
        self.restart_at = time.monotonic() + rng.uniform(*RESTART_S)
        self.restarts = 0
        self.lives = {engine.name: engine.life for engine in service.engines}
        self.began = collections.defaultdict(time.monotonic)  # engine -> when it was seen to have begun
        self.lock = threading.Lock()
        self.readers = [Reader(self, router) for router in service.routers]
        for reader in self.readers:
            reader.start()

    def prompts(self):
        """(one of each engine that lost its cache a moment ago, all of them)"""
        with self.lock:
            self.look_at_lives()
            now = time.monotonic()
            hot = [prompt for until, prompt in self.hot.values() if until > now]
            return hot, [p for prompts in self.taught.values() for p in prompts]

    def step(self, client, rng):
        if time.monotonic() >= self.restart_at:
            self.restart(rng)
            self.restart_at = time.monotonic() + rng.uniform(*RESTART_S)
            return
        target = self.service.anyone(rng)
        operation = self.recorder.invoke(client.name, "fences.chat", {"router": target[0]})
        body = beliefs.body_of(str(operation.id), self.model)
        replica = beliefs.teach(self.recorder, operation, client, target, body)
        if replica:
            self.keep(replica, str(operation.id), body)
        time.sleep(rng.uniform(0.2, 0.8))

    def keep(self, replica, op, body):
        with self.lock:
            prompts = self.taught.setdefault(replica, collections.deque(maxlen=PROMPTS))
            life = self.losses[replica]
            if sum(p.life == life for p in prompts) < LIFE_PROMPTS:
                prompts.append(Prompt(op, body, life))

    def restart(self, rng):
        """For others it is a fault like any: connections to it break."""
        with self.lock:
            known = set(self.taught)
            self.look_at_lives()
            old = time.monotonic() - OLD_S
        engines = [e for e in self.service.engines if e.alive and self.replica(e) in known and self.began[e.name] < old]
        if not engines:
            return
        engine = rng.choice(engines)
        self.restarts += 1
        fault = {"id": "fences-%d" % self.restarts, "fault": "cache lost", "hosts": [engine.name]}
        self.recorder.event("nemesis", "start", dict(fault, text="%s loses its cache and connections" % engine.name))
        try:
            engine.control("/sim/restart", {})
        except Exception:  # it is down or paused: another fault was quicker
            pass
        self.recorder.event("nemesis", "stop", fault)
        with self.lock:
            self.lost(engine)

    def look_at_lives(self):
        for engine in self.service.engines:
            if engine.life != self.lives[engine.name]:
                self.lives[engine.name] = engine.life
                self.began[engine.name] = time.monotonic()
                self.lost(engine)

    def lost(self, engine):
        replica = self.replica(engine)
        self.losses[replica] += 1
        if self.taught.get(replica):
            self.hot[replica] = time.monotonic() + HOT_S, self.taught[replica][-1]

    @staticmethod
    def replica(engine):
        return "%s:%d" % (engine.address, engine.port)

    def rest(self):
        _, prompts = self.prompts()
        threads = [threading.Thread(target=self.read, args=(reader, prompts)) for reader in self.readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @staticmethod
    def read(reader, prompts):
        for prompt in prompts:
            reader.ask(prompt, timeout=5.0, always=True)

"""Engines that hang, crawl, drain, restart, fail, lie: what the simulator plays on demand."""

from .base import Nemesis, names, plural


class _Engine(Nemesis):
    seconds = (2, 10)
    serves = True  # it takes requests, and may never answer
    most = None  # engines at a time; None: half of them
    more = {}  # more fields of its start event
    wishes = ()  # (text for people, request for /sim/fail)

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines", self.most)
        if not chosen:
            return self.nobody()
        said, wish = rng.choice(self.wishes)
        for e in chosen:
            self.later(self.well, e)
            e.control("/sim/fail", wish)
        return {"hosts": names(chosen), "wish": wish, "serves": self.serves, **self.more,
                "text": "%s: %s" % (plural(names(chosen)), said)}

    @staticmethod
    def well(engine):
        if engine.alive:
            engine.control("/sim/fail", {"mode": "none"})


class Hang(_Engine):
    """Engines take requests and do not answer, or go silent in the middle."""
    name = "engine-hang"
    wishes = (("takes requests and answers none; its probes say that it is well", {"mode": "hang", "health": "ok"}),
              ("goes silent after three pieces of an answer", {"mode": "hang", "after_chunks": 3}),
              ("computes nothing; its probes say that it is well", {"mode": "stuck", "health": "ok"}))


class Mute(_Engine):
    """Engines answer nothing, probes included: no client's patience may end there."""
    name = "engine-mute"
    serves = False
    wishes = (("takes requests and answers none, probes included", {"mode": "hang", "health": True}),
              ("computes nothing and answers no probe", {"mode": "stuck", "health": "hang"}))


class Choke(_Engine):
    """Engines go from bad to worse: probes say no, then nothing is answered any more, and at last all is well."""
    name = "engine-choke"
    seconds = (6, 10)
    serves = False
    wishes = (("its probes say no, and then it computes nothing and answers no probe",
               {"mode": "stuck", "health": "hang"}),)
    NO_S = 2.5  # long enough for probes to be believed

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        said, last = self.wishes[0]
        for e in chosen:
            self.later(self.well, e)
            e.control("/sim/fail", {"mode": "none", "health": "503"})
        self.background(self.worse, chosen, last)
        return {"hosts": names(chosen), "wish": last, "serves": self.serves,
                "text": "%s: %s" % (plural(names(chosen)), said)}

    def worse(self, chosen, wish):
        if self.over.wait(self.NO_S):
            return
        for e in chosen:
            if e.alive:
                e.control("/sim/fail", wish)


class Crawl(_Engine):
    """Engines compute 5 or 30 times slower, or are late with all that they say."""
    name = "engine-crawl"
    wishes = (("computes five times slower", {"mode": "crawl", "factor": 5}),
              ("computes thirty times slower", {"mode": "crawl", "factor": 30}),
              ("begins each answer half a second late", {"mode": "slow", "delay_ms": 500}),
              ("answers probes slowly", {"mode": "crawl", "factor": 2, "health": "slow", "health_delay_ms": 3000}))


class Drain(_Engine):
    """Engines drain, sleep or are full."""
    name = "engine-drain"
    wishes = (("drains: its probes say no, and new requests get 503", {"mode": "draining", "health": "503"}),
              ("sleeps", {"mode": "sleep"}),
              ("is full: 503 to new requests", {"mode": "full"}))


class Fail(_Engine):
    """Engines answer errors, or break connections."""
    name = "engine-fail"
    serves = False
    wishes = (("answers 500", {"mode": "status_500"}), ("answers 503", {"mode": "status_503"}),
              ("answers 429", {"mode": "status_429"}),
              ("resets connections before the first piece", {"mode": "reset_mid_stream", "after_chunks": 0}),
              ("resets connections after two pieces", {"mode": "reset_mid_stream", "after_chunks": 2}),
              ("sends an error event after two pieces of an answer", {"mode": "error", "after_chunks": 2}))


class Lie(_Engine):
    """Engines lie: garbage, answers that end too early, probes that report the opposite."""
    name = "engine-lie"
    wishes = (("answers what is no HTTP", {"mode": "garbage"}),
              ("sends garbage after two pieces of an answer", {"mode": "garbage", "after_chunks": 2}),
              ("ends answers in the middle, as if they were whole", {"mode": "end", "after_chunks": 2}),
              ("answers 500 while its probes say that it is well", {"mode": "status_500", "health": "ok"}),
              ("is well while its probes say no", {"mode": "none", "health": "503"}),
              ("is well while its probes hang", {"mode": "none", "health": "hang"}))


class Pause(_Engine):
    """The steps of engines pause for 1 to 20 s and go on where they stood; HTTP and probes are answered meanwhile."""
    name = "engine-pause"
    seconds = (1, 20)
    more = {"pauses": True}
    wishes = (("computes nothing for a while; its probes say that it is well", {"mode": "stuck", "health": "ok"}),)


class Reject(_Engine):
    """An engine begins to reject what its peers accept: another key, no chat template, another context length."""
    name = "engine-reject"
    most = 1  # if more engines reject, the request counts as the cause
    more = {"rejects": True}
    wishes = (("answers 401: its key is another", {"mode": "status_401"}), ("answers 403", {"mode": "status_403"}),
              ("answers 404 for the model that it lists", {"mode": "status_404"}), ("answers 422", {"mode": "status_422"}),
              ("has no chat template", {"mode": "no_template"}),
              ("has a context of 100 tokens, and lists more", {"mode": "context", "tokens": 100}))


class List(Nemesis):
    """The list of models of an engine changes: it has another model, or one more."""
    name = "engine-list"
    seconds = (2, 10)
    MODEL = "sim"

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines", 1)
        if not chosen:
            return self.nobody()
        models = rng.choice((["another"], [self.MODEL, "another"]))
        for e in chosen:
            self.later(self.well, e)
            e.control("/sim/set", {"models": models})
        return {"hosts": names(chosen), "models": models, "excuses": self.MODEL not in models,
                "rejects": self.MODEL not in models,
                "text": "%s: serves %s" % (plural(names(chosen)), plural(models))}

    def well(self, engine):
        if engine.alive:
            engine.control("/sim/set", {"models": [self.MODEL]})


class Restart(Nemesis):
    """Engines restart, within the process or by kill -9: nothing is cached any more."""
    name = "engine-restart"
    seconds = (1, 4)

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        inside = rng.random() < 0.5
        for e in chosen:
            if inside:
                e.control("/sim/restart", {})
            else:
                e.restart()
        return {"hosts": names(chosen), "text": "%s: restart %s; nothing is cached any more" % (
            plural(names(chosen)), "within the process" if inside else "by kill -9")}

"""The cluster's key is changed while it is used, in the three steps of docs/how-to/routers.md."""

import json
import os
import re
import subprocess

from .base import Nemesis, names

STEPS = ("next", "promote", "finish")


def ids_in(text):
    return set(re.findall(r"\b[0-9a-f]{8}\b", text))


def has_read(lines, ids):
    """True if a router's log reports these keys, and no others."""
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row.get("event") in ("cluster_key_read", "cluster_key_held") and set(row["ids"].split(",")) == ids:
            return True
    return False


class RotateKeys(Nemesis):
    """The key of the cluster is changed in three steps, while it is used.

    After a step all routers have to have read the file before the next. A step that was not due at the end of the fault
    is left to the next one: two keys are accepted meanwhile, and all is well."""
    name = "rotate-keys"
    seconds = (5, 15)

    def __init__(self):
        super().__init__()
        self.done = 0  # steps of the present rotation
        self.ids, self.offsets = set(), {}

    def start(self, service, rng):
        text = "the cluster's key is changed; the first step is --%s" % STEPS[self.done % 3]
        self.background(self.run, service)
        return {"hosts": names(service.routers), "excuses": False, "text": text}

    def run(self, service):
        while not self.over.is_set():
            if not self.all_have_read(service):
                self.over.wait(0.1)
                continue
            self.offsets = {r.name: os.path.getsize(r.log) for r in service.routers}
            self.ids = self.step(service, STEPS[self.done % 3])
            self.done += 1
            if self.done % 3 == 0:
                return

    @staticmethod
    def step(service, step):
        """The ids of the keys in the file after it."""
        done = subprocess.run([os.path.join(service.build, "gvctl"), "keygen", "--" + step, service.key_file],
                              check=True, capture_output=True, text=True)
        return ids_in(done.stdout.splitlines()[0])

    def all_have_read(self, service):
        for r in service.routers:
            if r.name not in self.offsets:
                continue
            with open(r.log, "rb") as f:
                f.seek(self.offsets[r.name])
                if r.alive and not has_read(f.read().splitlines(), self.ids):
                    return False
        return True

"""The disk of the log is full, or hangs.

A file system that fsfreeze holds would do the latter too, but what writes to it cannot be killed: a run that ends early
would leave it behind. So a library takes the place of write()."""

import contextlib
import itertools
import os
import re
import shutil
import subprocess

from lab import client as http

from .base import Nemesis, compiled, names, plural, preload, shared

SIZE_MIB = 32


class Disk:
    """A small file system with the log of the last router. It is gone with the run, so the log is copied."""

    def __init__(self, service):
        self.router = service.routers[-1]
        self.folder, self.log = os.path.join(service.folder, "small-disk"), self.router.log
        self.ballast = os.path.join(self.folder, "ballast")
        os.makedirs(self.folder, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % SIZE_MIB, "jepsen", self.folder], check=True)
        self.router.log = os.path.join(self.folder, os.path.basename(self.log))

    def fill(self):
        """To the last byte: the page where the log ends has room too. Readers of the log skip blanks."""
        for path, bytes in ((self.ballast, 65536), (self.router.log, 1)):
            with open(path, "ab", buffering=0) as f, contextlib.suppress(OSError):
                while f.write(b" " * bytes):
                    pass

    def empty(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ballast)
        shutil.copyfile(self.router.log, self.log)


class DiskFull(Nemesis):
    """The disk with the log of the last router is full."""
    name = "disk-full"
    seconds = (3, 12)

    def prepare(self, service):
        shared(service, Disk, service)

    def start(self, service, rng):
        disk = shared(service, Disk, service)
        self.later(disk.empty)
        disk.fill()
        return {"hosts": [disk.router.name], "excuses": False,
                "text": "the disk with the log of %s is full" % disk.router.name}


class Frozen:
    """Logs that hang: a byte for each router. The last router logs each request, so that lines can be lost."""

    def __init__(self, service):
        self.folder = os.path.join(service.folder, "frozen")
        self.floods = itertools.count(1)
        library = compiled("log_freeze", self.folder)
        for r in service.routers:
            self.freeze(r.name, False)
            preload(r, library)
            r.env["LOG_FREEZE_FILE"] = self.path(r.name)
        service.routers[-1].args += ["--access-log", "all"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def freeze(self, name, hangs):
        """In place: the process has the file mapped."""
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(fd, b"\1" if hangs else b"\0", 0)
        finally:
            os.close(fd)


def dropped(router):
    """Lines that its metrics say were lost; None: it does not answer."""
    try:
        status, text = router.admin("GET", "/metrics", timeout=2)
    except OSError:
        return None
    found = re.search(r"(?m)^grapevine_log_lines_dropped_total (\d+)$", str(text)) if status == 200 else None
    return int(found.group(1)) if found else None


class DiskFrozen(Nemesis):
    """The disk with the logs of some or all routers hangs: a write returns at the end. Or the log of one overflows meanwhile."""
    name = "disk-frozen"
    seconds = (3, 12)
    LINES = 5000  # 400 bytes each: the log's buffer has 1 MiB (node/io/log_sink.h)

    @staticmethod
    def missing():
        return None if shutil.which("cc") else "cc, for the library that holds writes up (Debian: gcc)"

    def prepare(self, service):
        shared(service, Frozen, service)

    def start(self, service, rng):
        frozen, last = shared(service, Frozen, service), service.routers[-1]
        others = names(service.routers[:-1])
        chosen = sorted(rng.sample(others, rng.randint(0, len(others))) + [last.name])
        flood = rng.random() < 0.5
        for name in chosen:
            self.later(frozen.freeze, name, False)
            frozen.freeze(name, True)
        if flood:
            self.background(self.flood, service.recorder, last, "flood-%d-" % next(frozen.floods))
        return {"hosts": chosen, "excuses": False, "text": "the disk with the log of %s hangs%s" % (
            plural(chosen), ", and %s gets more to log than it holds" % last.name if flood else "")}

    def flood(self, recorder, router, prefix):
        """Requests from its own machine; each is a line. What it says to have lost is asked for before the disk goes on."""
        life, before, asked = router.life, dropped(router), 0
        connection = http.Connection(router.host, "127.0.0.1", router.port)
        while asked < self.LINES and not self.over.is_set():
            answer = connection.ask("GET", "/v1/models", {"x-request-id": "%s%d" % (prefix, asked)}, timeout=2)
            if not answer.finished:
                break
            asked += 1
        # A record is written when its answer has gone: before the next one on this connection.
        connection.ask("GET", "/v1/models", {}, timeout=2)
        connection.close()
        recorder.event(router.name, "flood", {"life": life, "prefix": prefix, "asked": asked, "before": before,
                                              "after": dropped(router)})

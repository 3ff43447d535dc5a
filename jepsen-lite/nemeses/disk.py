"""A disk without room for logs: one router's log is on a small one, which is filled up."""

import contextlib
import os
import shutil
import subprocess

from .base import Nemesis, shared

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

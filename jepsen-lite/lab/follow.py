"""Routers' logs and engines' journals, brought into the history while they are written.

A line of a log gets the time at which it was seen here: a router's own clock may be wrong on purpose. A line of a
journal has the machine's monotonic clock, which no fault touches.
"""

import json
import threading

EVERY_S = 0.02


class Follower(threading.Thread):
    def __init__(self, recorder):
        super().__init__(daemon=True)
        self.recorder = recorder
        self.files = {}  # path -> [file, name, whether it is a journal, bytes of a line that has no end yet]
        self.lock = threading.Lock()
        self.over = threading.Event()

    def add(self, name, path, journal=False):
        with self.lock:
            if path not in self.files:
                open(path, "ab").close()
                self.files[path] = [open(path, "rb"), name, journal, b""]

    def poll(self):
        """All that is written so far is in the history when this returns."""
        with self.lock:
            for entry in self.files.values():
                more = entry[0].read()
                if not more:
                    continue
                *lines, entry[3] = (entry[3] + more).split(b"\n")
                for line in lines:
                    self.take(entry[1], entry[2], line)

    def take(self, name, journal, line):
        try:
            row = json.loads(line)
        except ValueError:
            row = {"text": line.decode("utf-8", "replace")}
        if not isinstance(row, dict):
            row = {"text": str(row)}
        if not journal:
            self.recorder.event(name, "log", row)
        elif "f" not in row:
            self.recorder.event(name, "log", row)
        elif row["f"] != "start":  # the lab said so already
            self.recorder.event(name, row["f"], row.get("value"), t=row["t"] - self.recorder.began)

    def run(self):
        while not self.over.wait(EVERY_S):
            self.poll()

    def stop(self):
        self.over.set()
        self.join()
        self.poll()

"""Threads that ask routers."""

import threading


class Asker(threading.Thread):
    """Calls `ask` again and again, until the run ends."""

    def __init__(self, name, ask, every_s):
        super().__init__(daemon=True, name=name)
        self.ask, self.every_s, self.over = ask, every_s, threading.Event()

    def run(self):
        try:
            while not self.over.wait(self.every_s):
                self.ask()
        except ValueError:
            pass  # the history is closed: the run is over


def each(things, do):
    """Calls do() for all things at the same time; returns the results in their order."""
    out = [None] * len(things)

    def one(i, thing):
        out[i] = do(thing)
    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(things)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out

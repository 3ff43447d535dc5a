"""When each life of a router is ready first, by way of its own loopback: event `ready` in the history."""

import threading
import time

EVERY_S = 0.1
ANSWER_S = 0.5  # a stopped one no longer delays the others


class Watch(threading.Thread):
    def __init__(self, routers, recorder):
        super().__init__(daemon=True)
        self.routers, self.recorder = routers, recorder
        self.told = {}  # name -> life
        self.over = threading.Event()

    def look(self, router):
        life = router.life
        if not router.alive or self.told.get(router.name) == life:
            return
        try:
            status, _ = router.admin("GET", "/readyz", timeout=ANSWER_S)
        except OSError:
            return
        if status == 200 and router.life == life:
            self.told[router.name] = life
            self.recorder.event(router.name, "ready", {"life": life})

    def run(self):
        while not self.over.is_set():
            for router in self.routers:
                self.look(router)
            time.sleep(EVERY_S)

    def stop(self):
        self.over.set()
        self.join()

"""A program on a machine, over its lives: started, killed, started again at the same address."""

import os
import signal
import threading

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGABRT)


class Process:
    """`build` (a folder), `args`, `env` and `wrap` (a prefix of the command) apply from the next start."""

    program = ""  # its path in a build folder

    def __init__(self, service, host):
        self.service, self.host, self.name = service, host, host.name
        self.args, self.env, self.wrap = [], {}, []
        self.build = service.build
        self.life = 0
        self.began = 0.0  # in seconds of the run, the present life
        self.popen = None
        self.asked = ""  # to end: by which signal
        self.told = None  # when it was first asked in this life
        self.ended = threading.Event()
        self.ended.set()
        self.lock = threading.RLock()
        self.log = os.path.join(service.folder, "logs", self.name + ".log")
        host.processes.append(self)

    def command(self, build):
        raise NotImplementedError

    @property
    def address(self):
        return self.host.address

    @property
    def alive(self):
        return not self.ended.is_set()

    @property
    def pid(self):
        return self.popen.pid if self.popen is not None else None

    def about(self):
        """The history's record of its start."""
        return {"life": self.life, "address": "%s:%d" % (self.address, self.port)}

    def start(self):
        """It is started when this returns, but may not listen yet."""
        with self.lock:
            if self.alive:
                return
            self.life += 1
            self.began = self.service.recorder.now()
            self.asked, self.told = "", None
            ended = self.ended = threading.Event()
            self.service.follow(self)
            self.service.recorder.event(self.name, "start", self.about())
            try:
                self.popen = self.host.spawn(self.wrap + self.command(self.build) + self.args, self.log, self.env)
            except OSError:
                ended.set()  # there is none
                raise
            threading.Thread(target=self.watch, args=(self.popen, self.life, ended), daemon=True).start()

    def watch(self, popen, life, ended):
        status = popen.wait()
        value = {"life": life, "status": status, "asked": self.asked}
        if self.told is not None:
            value["told_s"] = round(self.service.recorder.now() - self.told, 3)
        self.service.recorder.event(self.name, "exit", value)
        ended.set()

    def signal(self, number):
        """Returns true if a process got the signal."""
        with self.lock:
            if not self.alive:
                return False
            if number in ENDS:
                self.asked = signal.Signals(number).name
                self.told = self.service.recorder.now() if self.told is None else self.told
            self.popen.send_signal(number)
            return True

    def wait(self, timeout=None):
        """Its exit status (negative: the signal), or None if it goes on."""
        return self.popen.returncode if self.popen is None or self.ended.wait(timeout) else None

    def kill(self):
        self.signal(signal.SIGKILL)
        self.ended.wait()

    def restart(self):
        """kill -9, and start."""
        with self.lock:
            self.kill()
            self.start()

"""Messages to the service manager (node/io/service.h): a test replaces the manager at NOTIFY_SOCKET."""

import fcntl
import os
import select
import signal
import socket
import tempfile
import time
import unittest

from lib import HOST, Case, answer, closed_port, stopped, wait_for


class Manager:
    """The socket, and what came to it, one (name, value) for each line."""

    def __init__(self, abstract=False):
        self.folder = tempfile.TemporaryDirectory()
        self.name = "@grapevine-test-%d-%d" % (os.getpid(), id(self)) if abstract \
            else os.path.join(self.folder.name, "notify")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.name.replace("@", "\0", 1) if abstract else self.name)
        self.told = []

    def env(self, **more):
        return dict({"NOTIFY_SOCKET": self.name}, **more)

    def read(self):
        while select.select([self.sock], [], [], 0)[0]:
            for line in self.sock.recv(4096).decode().splitlines():
                self.told.append(tuple(line.split("=", 1)))
        return self.told

    def values(self, name):
        return [v for n, v in self.read() if n == name]

    def wait(self, name, words=""):
        return wait_for(lambda: next((v for v in self.values(name) if words in v), None),
                        "%s=%s; there is %s" % (name, words, self.told))

    def close(self):
        self.sock.close()
        self.folder.cleanup()


class Notify(Case):
    def manager(self, **how):
        m = Manager(**how)
        self.addCleanup(m.close)
        return m

    def test_ready_when_the_ports_listen_whatever_the_engines_do(self):
        m = self.manager()
        r = self.router(["http://%s:%d" % (HOST, closed_port())], env=m.env())
        m.wait("READY", "1")
        self.assertEqual(self.client(r).ask("GET", "/health").status, 503)
        m.wait("STATUS", "Not ready: no replica is up")
        self.assertEqual(m.values("READY"), ["1"])
        self.assertEqual(m.values("WATCHDOG"), [])  # unrequested

    def test_the_status_says_why_the_router_is_not_ready(self):
        m = self.manager(abstract=True)
        e = self.engine()
        with tempfile.NamedTemporaryFile("w", suffix=".replicas") as f:
            f.write("# none yet\n")
            f.flush()
            self.router([], "--replica-file", f.name, env=m.env())
            m.wait("STATUS", "name one in " + f.name)
            f.write(e.url + "\n")
            f.flush()
            m.wait("STATUS", "Ready: replicas up: 1")

    def test_stopping_requests_time_for_the_drain(self):
        m = self.manager()
        r = self.router([self.engine()], "--drain-delay", "20s", "--drain-timeout", "2h", env=m.env())
        m.wait("STATUS", "Ready")
        self.assertEqual(m.values("STOPPING"), [])
        r.signal(signal.SIGTERM)
        m.wait("STOPPING", "1")
        self.assertGreaterEqual(int(m.wait("EXTEND_TIMEOUT_USEC")), 7220e6)
        m.wait("STATUS", "Draining")
        r.signal(signal.SIGTERM)
        r.wait()
        self.assertEqual(m.values("STOPPING"), ["1"])

    def told_of_a_reload(self, m, r, times=1):
        """The router reports that it reloads, since when, and then that it is ready; for each SIGHUP."""
        for _ in range(times):
            before, began = len(m.values("READY")), time.monotonic()
            r.signal(signal.SIGHUP)
            wait_for(lambda: len(m.values("READY")) == before + 1, "READY=1 again")
            names = [n for n, _ in m.told if n in ("RELOADING", "MONOTONIC_USEC", "READY")]
            self.assertEqual(names[-3:], ["RELOADING", "MONOTONIC_USEC", "READY"])
            self.assertLessEqual(began, int(m.values("MONOTONIC_USEC")[-1]) / 1e6)  # the one clock of the machine
            self.assertLessEqual(int(m.values("MONOTONIC_USEC")[-1]) / 1e6, time.monotonic())
        self.assertEqual(len(m.values("RELOADING")), len(m.values("READY")) - 1)

    def test_a_reload_reports_its_beginning_and_its_end(self):
        m = self.manager()
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write("log-level: info\n")
            f.flush()
            r = self.router([self.engine()], "--config", f.name, env=m.env())
            m.wait("STATUS", "Ready")
            self.assertEqual((m.values("READY"), m.values("RELOADING")), (["1"], []))
            f.write("retries-max: 1\n")
            f.flush()
            r.signal(signal.SIGHUP)  # the changes behind READY=1 are done by then
            wait_for(lambda: len(m.values("READY")) == 2, "READY=1 again")
            self.assertIn(b"retries-max: 1 ", r.admin("GET", "/config").body)
            self.told_of_a_reload(m, r, 3)
            f.write("retries-max: many\n")  # refused, but the reload ends all the same
            f.flush()
            self.told_of_a_reload(m, r)
            r.wait_event("config_refused")
            r.signal(signal.SIGHUP)
            r.signal(signal.SIGHUP)
            wait_for(lambda: m.read()[-1:] and [n for n, _ in m.told if n in ("RELOADING", "READY")][-1] == "READY",
                     "READY=1 is last")

    def test_a_reload_may_be_requested_during_a_reload(self):
        """READY=1 comes when both are over. A lease on the file makes other processes wait in open()."""
        m = self.manager()
        opens = []
        self.addCleanup(signal.signal, signal.SIGIO, signal.signal(signal.SIGIO, lambda *_: opens.append(1)))

        def told():
            return [n for n, _ in m.read() if n in ("RELOADING", "READY")]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grapevine.yaml")
            with open(path, "w") as f:
                f.write("log-level: info\n")
            r = self.router([self.engine()], "--config", path, env=m.env())
            m.wait("STATUS", "Ready")
            self.told_of_a_reload(m, r)  # the file is not looked at for a second now
            before, read = len(told()), len(r.events("config_reloaded"))
            with open(path) as f:
                fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                r.signal(signal.SIGHUP)
                wait_for(lambda: opens, "it opens the file")
                r.signal(signal.SIGHUP)
                wait_for(lambda: len(told()) == before + 2, "it has heard both")
                over = lambda: len(r.events("config_reloaded")) >= read + 2
                while wait_for(lambda: opens or over(), "both are read") and not over():
                    r.admin("GET", "/readyz")  # its messages from before this open() have come by now
                    if not over():
                        self.assertEqual(told()[before:], ["RELOADING", "RELOADING"])
                    opens.clear()
                    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                    wait_for(lambda: self.lease(f), "nobody has the file open")
            wait_for(lambda: told()[-1] == "READY", "READY=1 again")
            self.assertEqual(told()[before:], ["RELOADING", "RELOADING", "READY"])

    @staticmethod
    def lease(f):
        try:
            return fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK) == 0
        except BlockingIOError:
            return False

    def test_a_reload_without_a_file_ends_too(self):
        """Otherwise systemd would wait for the end, and give up."""
        m = self.manager()
        r = self.router([self.engine()], env=m.env())
        m.wait("STATUS", "Ready")
        self.told_of_a_reload(m, r, 2)
        r.wait_event("nothing_to_read")

    def test_watchdog_pings_come_in_time_and_again_after_a_pause(self):
        m = self.manager()
        r = self.router([self.engine()], env=m.env(WATCHDOG_USEC="1500000"))
        began = time.monotonic()
        wait_for(lambda: len(m.values("WATCHDOG")) >= 4, "signs of life")
        self.assertGreater(time.monotonic() - began, 0.7)  # every 0.5 s, not each tick
        with stopped(r):
            before = len(m.values("WATCHDOG"))
        wait_for(lambda: len(m.values("WATCHDOG")) > before + 1, "signs of life again")  # one was on its way, perhaps

    def test_a_watchdog_of_another_process_is_ignored(self):
        m = self.manager()
        self.router([self.engine()], env=m.env(WATCHDOG_USEC="150000", WATCHDOG_PID="1"))
        m.wait("STATUS", "Ready")
        self.assertEqual(m.values("WATCHDOG"), [])

    def test_messages_wait_while_the_managers_socket_is_full(self):
        m = self.manager()
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sender.close)
        sender.setblocking(False)
        with self.assertRaises(BlockingIOError):
            for _ in range(100000):
                sender.sendto(b"FULL=1", m.name)
        r = self.router([self.engine()], env=m.env())
        self.assertEqual(self.client(r).ask("GET", "/health").status, 200)  # waits for none
        m.wait("READY", "1")
        m.wait("STATUS", "Ready")

    def test_an_absent_manager_is_logged_once(self):
        e = self.engine()
        probes = []
        e.probes["/health"] = lambda asked: (asked.send(answer(200, b"")), probes.append(1))
        r = self.router([e], "--health-interval", "100ms", env={"NOTIFY_SOCKET": "/nowhere/notify"})
        r.wait_event("service_manager_unreachable")
        before = len(probes)
        for bad in ("", "notify", "@", "/" + "x" * 200):
            self.router([self.engine()], env={"NOTIFY_SOCKET": bad})
        # It tries again in each turn that makes a probe, and in more.
        wait_for(lambda: len(probes) >= before + 4, "probes, after some of which it has tried again")
        self.assertEqual(len(r.events("service_manager_unreachable")), 1)


if __name__ == "__main__":
    unittest.main()

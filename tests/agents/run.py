"""Real agents and SDKs against scripted engines: directly, then through a balancer of connections, three routers and three
engines.

    tests/agents/run.py [--programs claude,codex] [--faults cut,cut-text,die,pause,500,503] [--no-interrupts]

Each program runs without a terminal, in its own folder and with its own HOME. Its output, its exit code and its tool's
output must be the same both ways. Its prompts must be as well cached. It must recover from a failing engine wherever it
does so directly, and Ctrl-C must free the engine. Programs are installed from the registries into $GRAPEVINE_AGENTS (default:
$XDG_CACHE_HOME/grapevine/agents), in the versions of programs.py. Without a registry all is skipped, with a line that says so.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../e2e"), HERE]
os.environ.setdefault("BUILD", os.path.join(HERE, "../../build"))

import engine as engines  # noqa: E402
import lib  # noqa: E402
import programs  # noqa: E402

CACHE = os.environ.get("GRAPEVINE_AGENTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "grapevine", "agents")
FAULTS = ("cut", "cut-text", "die", "pause", "500", "503")
LIMIT_S = 240  # one run of a program: agents back off for up to two minutes
PAUSE_S = float(os.environ.get("PAUSE_S", "15"))
# Differences from the direct way, with reasons; docs/agents.md lists them too.
KNOWN = {("cline", "cut-text"): "directly its runtime sends the request again and puts the second answer behind the half of the first"}
SHARE_POINTS = 2.0  # by which the cached share may be less than with one engine


# --- programs -----------------------------------------------------------------------------------

def folder_of(program):
    packages = "+".join(re.sub("[^a-zA-Z0-9.]+", "-", p).strip("-") for p in program.packages)
    return os.path.join(CACHE, program.kind, packages)


def install(program):
    """Installs the program. Returns None, or why that failed."""
    folder = folder_of(program)
    if os.path.exists(folder + "/installed"):
        return None
    os.makedirs(folder, exist_ok=True)
    if program.kind == "npm":
        if shutil.which("npm") is None:
            return "npm is not installed"
        with open(folder + "/package.json", "w", encoding="utf-8") as f:
            f.write("{}")
        commands = [["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"] + program.packages]
    else:
        commands = [[sys.executable, "-m", "venv", folder], [folder + "/bin/pip", "install", "-q", "--disable-pip-version-check"] + program.packages]
    for command in commands:
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
        except subprocess.TimeoutExpired:
            return "%s: no end within 900 s" % " ".join(command[:2])
        if done.returncode != 0:
            return "%s: %s" % (" ".join(command[:2]), (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:])
    with open(folder + "/installed", "w", encoding="utf-8"):
        pass
    return None


class Run:
    """A program on its way."""

    def __init__(self, program, base):
        self.home = tempfile.mkdtemp(prefix="grapevine-agents-")
        work = self.home + "/work"
        os.mkdir(work)
        folder = folder_of(program)
        command, more = program.run(self.home, base)
        names = {"{npm}": folder + "/node_modules/.bin", "{pip}": folder + "/bin", "{modules}": folder}
        for name, value in names.items():
            command = [word.replace(name, value) for word in command]
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH")}
        env = dict(kept, HOME=self.home, TERM="dumb", CI="1", NO_COLOR="1", XDG_CONFIG_HOME=self.home + "/.config",
                   XDG_CACHE_HOME=self.home + "/.cache", XDG_DATA_HOME=self.home + "/.local/share", **more)
        self.process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.begun = time.monotonic()

    def end(self, limit_s=LIMIT_S):
        try:
            out, err = self.process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.process.communicate()
            err += "\n(no end within %d s)" % limit_s
        self.kill()
        self.end_rest()
        self.seconds = time.monotonic() - self.begun
        shutil.rmtree(self.home, ignore_errors=True)
        return self.process.returncode, out, err

    def end_rest(self):
        """Ends everything with this home: some programs leave a daemon behind, in its own session."""
        mark = b"HOME=%s\0" % self.home.encode()
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % number, "rb") as f:
                    if mark in f.read():
                        os.kill(int(number), signal.SIGKILL)
            except OSError:  # it ended, or is somebody else's
                pass

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        self.signal(signal.SIGKILL)


def said(out):
    """The engine's last text in the program's output."""
    found = re.findall(r"All is done: vine [a-z0-9 -]*\.", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out))
    return found[-1] if found else None


# --- the two ways -------------------------------------------------------------------------------

class Balancer:
    """Connections go to one router after the other."""

    def __init__(self, ports):
        self.ports, self.next = ports, 0
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            router = socket.create_connection(("127.0.0.1", self.ports[self.next % len(self.ports)]))
            self.next += 1
            for a, b in ((client, router), (router, client)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.socket.close()


class Direct:
    name = "directly"

    def __init__(self):
        self.script = engines.Script()
        self.engines = [engines.Engine(self.script, PAUSE_S)]
        self.base = self.engines[0].url

    def handshakes(self):
        """WebSocket handshakes refused by the program's server."""
        return sum(path == "/v1/responses" for _, path in self.script.probes)

    def close(self):
        for e in self.engines:
            e.stop()


class Routed(Direct):
    name = "through three routers"

    def __init__(self):
        super().__init__()
        self.engines += [engines.Engine(self.script, PAUSE_S) for _ in range(2)]
        self.folder = tempfile.TemporaryDirectory()
        key = self.folder.name + "/cluster.key"
        subprocess.run([lib.binary("gvctl"), "keygen", "--out", key], check=True, stdout=subprocess.DEVNULL)
        self.routers = []
        for number in range(3):
            more = ["--join", "127.0.0.1:%d" % self.routers[0].gossip_port] if self.routers else []
            self.routers.append(lib.Router([e.url for e in self.engines], "--gossip-listen", "127.0.0.1:0", "--cluster-key-file", key,
                                           "--node-name", "r%d" % number,
                                           "--stall-cut", "60s", *more))
        for r in self.routers:
            lib.wait_for(lambda r=r: len({e["replica"] for e in r.events("replica_up")}) >= 3, "replicas up")
        self.balancer = Balancer([r.port for r in self.routers])
        self.base = self.balancer.url

    def handshakes(self):
        return sum(r.metrics().get('grapevine_requests_invalid_total{reason="upgrade"}', 0) for r in self.routers)

    def close(self):
        self.balancer.close()
        for r in self.routers:
            r.stop()
        self.folder.cleanup()
        super().close()


def running(way):
    return sum(e.running for e in way.engines)


# --- what is tried ------------------------------------------------------------------------------

def attempt(way_class, program, fault=None):
    """(exit code, text, results of the tool), and the share of prompts that was cached."""
    way = way_class()
    try:
        if fault is not None:
            kind = int(fault) if fault.isdigit() else fault.split("-")[0]  # if it calls a tool, except for "cut-text"
            turn = engines.CALLS if fault == "cut-text" else 1
            way.script.faults = [(kind, turn if program.tools else 0)]
        run = Run(program, way.base)
        code, out, err = run.end()
        s = way.script
        share = 100.0 * s.cached_tokens / max(1, s.prompt_tokens)
        results = [word for r in (s.results[-1] if program.tools and s.results else []) for word in re.findall(r"grape-\d", r)[-1:]]
        text = said(out)
        if program.name in programs.LOAD_TOOLS:
            found = re.search(r'"2xx":\s*(\d+)', out)
            text = found and found.group(1)
        detail = {"seconds": run.seconds, "share": share, "requests": s.requests, "faults": s.faults_done, "out": out[-600:], "err": err[-600:],
                  "handshakes": way.handshakes()}
        return (code, text, results), detail
    finally:
        way.close()


def interrupt(program):
    """Ctrl-C while the engine says something endless. Why not, or None."""
    way = Routed()
    try:
        way.script.delay_s = 0.2
        run = Run(program, way.base)
        lib.wait_for(lambda: running(way) > 0 or run.process.poll() is not None, "a request at an engine", 60)
        lib.wait_for(lambda: sum(e.generated for e in way.engines) > 0 or run.process.poll() is not None, "the answer's beginning", 60)
        for _ in range(3):  # one retries, another one needs two failures
            run.signal(signal.SIGINT)
            try:
                run.process.wait(1)
                break
            except subprocess.TimeoutExpired:
                pass
        left = lib.wait_for(lambda: run.process.poll() is not None, "its end", 20)
        lib.wait_for(lambda: running(way) == 0, "the engine to be free", 20)
        return None if left else "it did not end"
    except AssertionError as e:
        return str(e)
    finally:
        way.script.delay_s = 0.0
        run.kill()
        run.end(10)
        way.close()


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def row(self, good, name, what, text):
        self.passed += good
        self.failed += not good
        print("%-4s %-17s %-10s %s" % ("ok" if good else "FAIL", name, what, text), flush=True)


def clean(report, program):
    direct, d = attempt(Direct, program)
    routed, r = attempt(Routed, program)
    good = direct == routed and direct[0] == 0 and direct[1] is not None and (len(direct[2]) == engines.CALLS) == program.tools
    text = "%s, cached %.1f %% / %.1f %%, %.0f s / %.0f s" % (direct[1], d["share"], r["share"], d["seconds"], r["seconds"])
    if good and program.name not in programs.LOAD_TOOLS and r["share"] < d["share"] - SHARE_POINTS:
        good = False
        text += ": less is cached"
    if r["handshakes"] > 1:
        good = False
    if d["handshakes"] or r["handshakes"]:
        text += ", WebSocket tried %d / %d times" % (d["handshakes"], r["handshakes"])
    if not good:
        text += "\n     directly %s\n     routed   %s\n     %s\n     %s" % (direct, routed, d["err"] + d["out"] if direct[0] != 0 else "", r["err"] + r["out"])
    report.row(good, program.name, "clean", text)
    return direct[0] == 0 and direct[1] is not None


def faulty(report, program, fault):
    direct, d = attempt(Direct, program, fault)
    routed, r = attempt(Routed, program, fault)
    recovered = [w[0] == 0 and w[1] is not None for w in (direct, routed)]
    good = recovered[1] or not recovered[0]
    if recovered == [True, True]:  # after a broken answer some call the tool once more
        good = direct[:2] == routed[:2]
    text = "%s directly, %s routed, %.0f s / %.0f s" % tuple(["recovers" if w else "does not" for w in recovered] + [d["seconds"], r["seconds"]])
    if not good and (program.name, fault) in KNOWN:
        good, text = True, text + ": known, " + KNOWN[program.name, fault]
    if not d["faults"] or not r["faults"]:
        good, text = False, text + ": the engine did not fail"
    if not good:
        text += "\n     directly %s\n     routed   %s\n     %s" % (direct, routed, r["err"] + r["out"])
    report.row(good, program.name, fault, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", default=os.environ.get("PROGRAMS", ""))
    parser.add_argument("--faults", default=os.environ.get("FAULTS", ",".join(FAULTS)))
    parser.add_argument("--no-interrupts", action="store_true")
    given = parser.parse_args()
    names = [n for n in given.programs.split(",") if n]
    faults = [f for f in given.faults.split(",") if f]
    report = Report()
    for program in programs.PROGRAMS:
        if names and program.name not in names:
            continue
        why = install(program)
        if why is not None:
            report.skipped += 1
            print("skip %-17s not installed (no registry?): %s" % (program.name, why), flush=True)
            continue
        try:
            if not clean(report, program) or program.name in programs.LOAD_TOOLS:
                continue
            for fault in faults:
                faulty(report, program, fault)
            if not given.no_interrupts:
                why = interrupt(program)
                report.row(why is None, program.name, "Ctrl-C", why or "frees the engine")
        except (AssertionError, OSError) as e:  # a router that does not start, a program that is not there
            report.row(False, program.name, "-", "could not be tried: %s" % e)
    print("%d passed, %d failed, %d skipped" % (report.passed, report.failed, report.skipped))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())

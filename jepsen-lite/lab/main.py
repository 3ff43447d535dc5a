"""The command line: settings, what the machine lacks, and the namespaces in which all runs."""

import argparse
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import textwrap

from . import cgroup, found, other

SKIPPED = 77  # exit status where the machine lacks something, as automake has it
INSIDE = "JEPSEN_LITE_INSIDE"  # the process outside, by a number that no other run has
PR_SET_PDEATHSIG = 1

ROOM = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]

EPILOG = """
A run is some seconds of clients that work and faults that come and go, alone and together, with rests
between them at which all must be the same everywhere. At the end a verdict; in the folder --out:
history.jsonl, logs/, journals/, report.html, and gossip.pcap with --capture. What comes of a seed is
the same faults at the same times; what processes make of it is theirs.

Exit status: 0 no anomaly, 1 an anomaly, 2 the harness failed, 77 this machine lacks something,
130 interrupted.

examples:
  jepsen-lite/run --seconds 60 --seed 7
  jepsen-lite/run --workload service,load --nemesis kill,partition --routers 5 --engines 8 --keep
  jepsen-lite/run --list
"""


def arguments(argv):
    p = argparse.ArgumentParser(prog="jepsen-lite/run", formatter_class=argparse.RawDescriptionHelpFormatter,
                                description=sys.modules["__main__"].__doc__, epilog=EPILOG)
    p.add_argument("--workload", default="all", metavar="A,B", help="what clients do, or all (%(default)s)")
    p.add_argument("--nemesis", default="all", metavar="A,B", help="what goes wrong, all or none (%(default)s)")
    p.add_argument("--routers", type=int, default=3, metavar="N", help="1 to 9 (%(default)s)")
    p.add_argument("--engines", type=int, default=4, metavar="N", help="1 to 32 (%(default)s)")
    p.add_argument("--seconds", type=float, default=60, metavar="S",
                   help="from the first request to the last rest, about (%(default)s)")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="of faults and of what clients ask (%(default)s)")
    p.add_argument("--out", metavar="DIR", help="folder of the results (build/jepsen; what was in it is removed)")
    p.add_argument("--keep", action="store_true", help="a folder of its own, that no later run removes")
    p.add_argument("--capture", action="store_true", help="record the packets between routers")
    p.add_argument("--build", default="build", metavar="DIR", help="whose binaries (%(default)s)")
    p.add_argument("--bug", default="", metavar="NAME", help="a known bug that the routers have: of base/bug.h, in DIR/lab of --build")
    p.add_argument("--router-option", action="append", default=[], metavar="NAME=VALUE", help="of all routers: ttl=30s")
    p.add_argument("--engine-option", action="append", default=[], metavar="NAME=VALUE", help="of all engines: speed-up=9")
    p.add_argument("--habits", choices=("drawn", "none"), default="drawn", help="what engines are like all the time: drawn from "
                   "the seed, or all as by their options (%(default)s)")
    p.add_argument("--command", default="", metavar="TEXT", help="another proxy in the routers' place: its command, with "
                   "{port}, {name}, {folder} and {engines} (host:port ...) to be filled in")
    p.add_argument("--stop-signal", default="TERM", metavar="NAME", help="what lets that proxy drain (%(default)s)")
    p.add_argument("--judge", metavar="DIR", help="judge an old folder again, and write its report anew")
    p.add_argument("--results", nargs="+", metavar="DIR", help="of old folders together: tables by workload and nemesis")
    p.add_argument("--list", action="store_true", help="workloads and nemeses, and nothing else")
    return p, p.parse_args(argv)


def chosen(parser, what, text, known):
    wishes = sorted(known) if text == "all" else [] if text == "none" else [n for n in text.split(",") if n]
    # partition is all kinds of it: partition-ring, partition-halves, ...
    families = {w: [w] if w in known else sorted(n for n in known if n.startswith(w + "-")) for w in wishes}
    names = list(dict.fromkeys(n for w in wishes for n in families[w]))
    unknown = [w for w in wishes if not families[w]]
    if unknown:
        parser.error("no %s %s: there are %s" % (what, ", ".join(unknown), ", ".join(sorted(known))))
    return [known[n] for n in names]


def lacking(o):
    """Requirements of a run that this machine lacks, as a line; None: nothing."""
    programs = [c for c in ("unshare", "ip", "nft") if shutil.which(c) is None]
    if shutil.which("haproxy") is None and not os.access("/usr/sbin/haproxy", os.X_OK):
        programs.append("haproxy")
    if programs:
        return "no %s (Debian: util-linux, iproute2, nftables, haproxy; make deps-test)" % ", ".join(programs)
    if os.geteuid() != 0:
        return "it needs root, for network namespaces"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun: modprobe tun"
    tried = subprocess.run(ROOM + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if tried.returncode != 0:
        return "no namespaces: %s" % tried.stderr.strip()
    for name in ("grapevine", "gvctl", "tests/engine-sim", "tests/wire", "tests/prompt-ids"):
        if not os.access(os.path.join(o.build, name), os.X_OK):
            return "%s is not built: make jepsen builds it" % os.path.join(o.build, name)
    if o.bug and not os.access(os.path.join(o.build, "lab/grapevine"), os.X_OK):
        return "%s/lab/grapevine is not built: make build-lab builds it" % o.build
    return None


def in_a_room(script, argv):
    """Runs this program again inside its own namespaces, with the same arguments. If this process dies, so does all."""
    libc = ctypes.CDLL(None)

    def dies_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    child = None
    told = []

    def pass_on(number, _):
        told.append(number)
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (child.pid, child.pid)) as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGINT)

    # The terminal signals the whole group, and this process signals its child: with its own group the child gets one
    # signal.
    child = subprocess.Popen(ROOM + ["--", sys.executable, script] + argv, env=dict(os.environ, **{INSIDE: str(os.getpid())}),
                             preexec_fn=dies_with_parent, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    status = child.wait()
    cgroup.clean(os.getpid())
    return 130 if told and status != 0 else status if status >= 0 else 2


def main(script):
    parser, o = arguments(sys.argv[1:])
    workloads, nemeses = found.workloads(), found.nemeses()
    if o.list:
        for title, known in (("workloads", workloads), ("nemeses", nemeses)):
            print(title)
            for name in sorted(known):
                print(textwrap.fill(found.about(known[name]), 110, initial_indent="  %-18s " % name,
                                    subsequent_indent=" " * 21))
        return 0
    if o.judge:
        from . import judge
        return judge.again(o.judge)
    if o.results:
        from report import results
        return results.main(o.results)
    if not 1 <= o.routers <= 9 or not 1 <= o.engines <= 32:
        parser.error("1 to 9 routers, 1 to 32 engines")
    if o.command:
        workloads = {n: w for n, w in workloads.items() if getattr(w, "any_proxy", False)}
        nemeses = {n: c for n, c in nemeses.items() if not other.own(c)}
    classes = chosen(parser, "workload", o.workload, workloads), chosen(parser, "nemesis", o.nemesis, nemeses)
    if INSIDE not in os.environ:
        why = lacking(o)
        if why:
            print("jepsen-lite: skipped: %s" % why)
            return SKIPPED
        return in_a_room(script, sys.argv[1:])
    from . import runner
    return runner.run(o, *classes)

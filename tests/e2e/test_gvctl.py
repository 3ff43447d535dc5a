"""gvctl against a scripted admin port, which may refuse, hang, close, or speak another protocol."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from lib import HOST, Case, answer, answer_json, binary, closed_port, wait_for
from lib_cluster import gvctl
from test_shadow import ASKED_OF_GVCTL

NODE = {"ready": True, "registry": "1", "whole_index": "2", "poison": "4", "reports": "5", "index": []}
# Commands of several calls, or of none (test_gvctl_live.py, test_gvctl_completion.py, test_gvctl_convert.py, test_cluster_keys.py).
OTHERS = {"status", "top", "key", "keygen", "completion", "convert", "help", "version"}
# Command -> method, target, an answer, the output, and the extra columns of a wide table.
SHOWN = {
    ("replicas",): ("GET", "/replicas", [
        {"name": "a:1", "health": "up", "why": "", "engine": "vllm", "sources": ["settings"], "chosen": 7,
         "restarts": 2, "models": {"from": "engine", "count": 3},
         "load": {"requests": 4, "requests_of_others": 5, "queue_s": 0.25},
         "cache": {"tokens": 100000, "present_bytes": 200000, "from": "events"}},
        {"name": "b:2", "health": "up", "avoided": True, "why": "errors", "why_for_ms": 4100, "wish": "added"},
        {"name": "d:4", "health": "up", "why": "", "cache": {"from": "inferred"},
         "events": {"state": "contradicts", "state_text": "are ignored", "from": "tcp://d:5", "answers": 80, "unmatched": 60, "contradicted": 3, "believed_in_ms": 290000}},
        {"name": "e:5", "health": "up", "events": {"state": "block_size", "state_text": "are odd", "from": "tcp://e:5", "block_tokens": 16}},
        {"name": "f:6", "health": "up", "events": {"state": "silent_tier", "state_text": "are unusable", "from": "tcp://f:6"}}, {"name": "g:7", "health": "up", "cache": {"from": "answers"}, "events": {"state": "off", "from": ""}},
        {"name": "c:3", "health": "down", "why": "down", "probes_refused": ["/health"], "router": "r9"}],
        [r"a:1 +up +- +vllm +9 +0\.250 +50\.0k\n", r"b:2 +avoided +errors:4\.1s +",
         r"c:3 is a Grapevine router \(r9\).*Remove\s+it from the replicas", r"c:3 refuses the router's /health", r"--replica-api-key-file FILE",
         r"- d:4  KV-cache events from tcp://d:5 are ignored: of 80 answers, 60 had no blocks in the events, and 3 found.*in 5 min", r"e:5 are odd. Blocks here have 16 tokens. Start",
         r"- f:6  KV-cache events from tcp://f:6 are unusable. Make the tier publish"],
        [r"a:1 +up +- +vllm +3 +settings +7 +9 +5 +0\.250 +0 +- +100k +50\.0k +events +2\n", r"g:7 +up .* answers, events off +0\n"]),
    ("sources",): ("GET", "/sources", [
        {"kind": "file", "name": "list.yaml", "entries": 3, "draining": 1, "failures": 2, "age_s": 1.5,
         "error": "no such file"},
        {"kind": "dns", "name": "x.y", "entries": 0, "empty": "no address"},
        {"kind": "settings", "name": "", "entries": 2, "removed": ["a:1", "b:2"]}],
        [r"\n\nsettings lists a:1, which an operator removed: gvctl add uses it again\.\nsettings lists b:2, ",
         r"file +3 +1 +2 +1\.5 +list\.yaml\n +no such file", r"dns +0 +0 +0 +never +x\.y\n +empty: no address\n"]),
    ("queue",): ("GET", "/queue", {
        "requests_in_flight": 12, "requests_max": 64, "queue_length": 2, "queue_max": 9, "queue_timeout_ms": 1500,
        "waiting": [{"model": "m", "requests": 2, "longest_ms": 700, "for": "a replica"}]},
        [r"in flight +12 of 64 \(requests-max\)", r"waiting +2 of 9 \(queue-max\), for at most 1\.5 s",
         r"m +2 +0\.7  a replica"]),
    ("explain",): ("POST", "/explain", {
        "policy": "cache_aware", "prompt_tokens": 100, "output_tokens": 1, "checkpoints": 2, "choice": "a:1", "displaced_weight": 0.5, "decode_weight": 1,
        "replicas": [{"replica": "a:1", "cached_tokens": 64, "cache_from": "events", "cost_s": 0.125, "due": True},
                     {"replica": "b:2", "cost_s": 0.5, "times_slower": 4.2, "beyond_s": 0.25, "followers": 9}],
        "left_out": [{"replica": "c:3", "why": "it is down"}]},
        [r"policy cache_aware, about 100 prompt tokens, 1 expected output token, 2 checkpoints\n",
         r"> a:1 +64 .* 0\.125\n  b:2 +0 .* 0\.500\n- c:3 +it is down\n",
         r"0\.5 x displaced \+ 1 x decode;", r"a:1 is slow, but no request waits there while requests wait at the cheapest replica; lately it got less work",
         r"b:2 is taken to be 4\.2 times slower", r"b:2: 0\.250 s of its QUEUE", r"b:2 would make a second copy of a prefix that another replica holds. 9 other"],
        [r"> a:1 +64 +events +0 "]),
    ("explain", "--all"): ("POST", "/explain?all=1", {"nodes": {
        "r1": {"choice": "a:1", "replicas": [{"replica": "a:1", "cost_s": 0.125, "cached_tokens": 64}]},
        "r2": {"error": "timeout"}}},
        [r"a:1 +> +0\.125 +64 "]),
    ("members",): ("GET", "/members", {"members": [
        {"name": "r1", "state": "alive", "self": True, "ready": True, "address": "10.0.0.1:7", "version": "1.0", "epoch_ms": 1767225600000},
        {"name": "r2", "state": "alive", "ready": True, "session": False, "address": "10.0.0.2:7",
         "version": "1.1", "lag_ms": 12.5, "rtt_ms": 0.25, "packets_in": 123456},
        {"name": "r3", "state": "dead", "hints": "it was killed"}], "stats": {}},
        [r"\* r1 +alive +10\.0\.0\.1:7 +1\.0 +-\n", r"  r2 +unmet +10\.0\.0\.2:7 +1\.1 +12\.5\n", r"  r3 +dead ",
         r"r3: it was killed", r"version: 1\.0 \(1\), 1\.1 \(1\)"],
        [r"\* r1 .* \d+ days ago\n", r"  r2 +unmet +10\.0\.0\.2:7 +1\.1 +12\.5 +\S+ +0\.25 +0 +0 +- +123k"]),
    ("convergence",): ("GET", "/convergence", {"equal": True, "nodes": {"r1": NODE, "r2": NODE}},
                       [r"^All 2 living routers hold the same state\.\n$"], [r"r1 +1 +2 +4 +5 +0 +0\n"]),
    ("shadow",): ASKED_OF_GVCTL,
    ("decisions",): ("GET", "/decisions", {"since_ms": 1, "changed": 4, "decisions": [
        {"id": 1, "time_ms": 1767229199870, "choice": "a:1", "why": "cached", "prompt_tokens": 5210, "cached_tokens": 4900, "why_text": "holds 4900 of 5210",
         "model": "m", "request": "6f1c", "attempt": 1, "ttft_s": 0.041, "outcome": {"end": "ok", "result": "ok", "status": 200, "ttft_ms": 39, "ms": 910, "cached_tokens": 4896}},
        {"id": 2, "choice": "b:2", "why": "cold", "prompt_tokens": 7, "outcome": None},
        {"id": 3, "choice": "c:3", "why": "cold", "prompt_tokens": 8, "outcome": {"end": "rejected", "status": 400}}, {"id": 4, "choice": "d:4", "why": "cold", "prompt_tokens": 9, "outcome": {"end": "client_gone"}},
        {"id": 5, "choice": "e:5", "outcome": {"end": "broken", "result": "cut", "status": 200}}, {"id": 6, "outcome": {"end": "broken", "result": "retried"}}]},
        [r"\d\d:\d\d:\d\d\.870  a:1 +5210 +4900 +0\.039  200 ok +holds 4900 of 5210\n", r"b:2 +7 +- +-  under way +cold\n",
         r"c:3 +8 +- +-  400 rejected +cold\n", r"d:4 .*  client gone +cold\n", r"e:5 .* 200 broken, cut +-\n", r"  broken, retried +-\n"],
        [r"200 ok +4896 +0\.041 +0\.910 +1  m +6f1c +holds 4900 of 5210\n"]),
    ("decisions", "--failed", "--slow", "5", "--model", "m&n", "--replica", "a:1", "--reason", "cold"): (
        "GET", "/decisions?failed=1&slow_ms=5000&model=m%26n&replica=a:1&reason=cold", {"decisions": []}, [r"END +WHY\n$"]),
    **{("decisions", "--slow", x): ("GET", "/decisions?slow_ms=%d" % ms, {"decisions": []}, [r"END +WHY\n$"]) for x, ms in (("500ms", 500), ("0.25", 250))},
    ("poison",): ("GET", "/poison", [
        {"hash": "00ff", "state": "refused", "seconds_ago": 5, "seconds_left": 60, "refused": 3,
         "replicas": ["a:1", "b:2"]}],
        [r"00ff +refused +5 s +60 s +3  a:1 b:2"]),
    ("events", "--local"): ("GET", "/events", {"router": "r1", "since_ms": 1, "changed": 19, "events": [
        {"id": 16, "change": 18, "time_ms": 1767229100000, "last_ms": 1767229100000, "count": 1, "kind": "death",
         "event": "member_dead", "about": "r2", "text": "Router r2 was marked dead."},
        {"id": 17, "change": 19, "time_ms": 1767229100000, "last_ms": 1767229130000, "count": 3, "kind": "retry",
         "event": "upstream_failed", "about": "10.0.0.2:8000", "text": "Requests failed at replica 10.0.0.2:8000."},
        {"id": 18}]},
        [r"TIME +ROUTER +ABOUT +WHAT\n", r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d  r1 +r2 +Router r2 was marked dead\.\n",
         r":50  r1 +10\.0\.0\.2:8000 +Requests failed at replica 10\.0\.0\.2:8000\. \(3 times\)\n", r"\n- +r1 +- +-\n"],
        [r":50  r1 +10\.0\.0\.2:8000 +\d\d:\d\d:20  retry +3  upstream_failed +Requests failed at replica 10\.0\.0\.2:8000\.\n"]),
    ("log-level", "debug"): ("POST", "/log-level?level=debug", {"ok": True}, [r"^the log level is debug until the next start\n$"]),
    ("drain", "a:1"): ("POST", "/drain?replica=a:1", {"ok": True}, [r"^a:1 drains: .*; the number of .* unknown\n$"]),
    ("undrain", "a:1@2"): ("POST", "/undrain?replica=a:1%402", {"ok": True}, [r"^a:1@2 gets requests again, from all routers\n$"]),
    ("add", "a&b c:1", "--engine", "vllm"): ("POST", "/replicas?replica=a%26b%20c:1&engine=vllm", {"ok": True},
                                             [r"^a&b c:1 is added for all routers\n$"]),
    ("remove", "a:1"): ("DELETE", "/replicas?replica=a:1", {"ok": True}, [r"^a:1 is removed for all routers; "]),
    ("reset-cache",): ("POST", "/reset-cache", {"replicas": [{"status": 200}]}, [r"^1 of 1 replica emptied its cache\n$"]),
    ("forget", "00ff"): ("DELETE", "/poison?hash=00ff", {"ok": True}, [r"^request 00ff is no longer refused: "]), ("forget-member", "r3"): ("DELETE", "/members?member=r3", {"nodes": {}}, [r"^router r3 is no longer shown\n$"]),
}
# Command -> method, target, an answer that is no JSON, the output of --json.
TEXTS = {
    ("ready",): ("/readyz", b"ready\n", None),
    ("alive",): ("/healthz", b"ok\n", {"alive": True}),
    ("metrics",): ("/metrics", b'# HELP x y\nx{a="1\\"2",b="\\\\"} 1.5 99\ny 12345678\nz +Inf\n',
                   [{"name": "x", "labels": {"a": '1"2', "b": "\\"}, "value": 1.5},
                    {"name": "y", "labels": {}, "value": 12345678}, {"name": "z", "labels": {}, "value": None}]),
    ("config",): ("/config", b'replica: [http://a:1, "x, y"]   # flag --replica\n# dns-server: []   # default\n'
                  b'log-level: info    # GRAPEVINE_LOG_LEVEL\nsession-header: "a # \\"b" # f.yaml:3\n',
                  {"replica": {"value": ["http://a:1", "x, y"], "from": "flag --replica"},
                   "dns-server": {"value": [], "from": "default"},
                   "log-level": {"value": "info", "from": "GRAPEVINE_LOG_LEVEL"},
                   "session-header": {"value": 'a # "b', "from": "f.yaml:3"}}),
}
EVERY = list(SHOWN) + list(TEXTS)
TABLES = [c for c in SHOWN if c[0] in ("replicas", "sources", "queue", "explain", "members", "convergence", "decisions", "events",
                                      "poison")]


def read_yaml(text):
    """Another reader's view of a document: grapevine reads no nested YAML, and Python has none built in. This reads the
    blocks that gvctl writes and leaves scalars to the rules of YAML 1.1."""
    lines = text.rstrip("\n").split("\n")
    break_in_line = re.search("[\x85\u2028\u2029\ufeff]", text)
    assert not break_in_line, "YAML breaks lines there"

    def scalar(word):
        if word.startswith('"'):
            return json.loads(word)
        if word in ("{}", "[]"):
            return json.loads(word)
        if re.fullmatch(r"(?i)true|yes|on|y", word):
            return True
        if re.fullmatch(r"(?i)false|no|off|n", word):
            return False
        if re.fullmatch(r"(?i)~|null|", word):
            return None
        if re.fullmatch(r"[-+]?[0-9][0-9_]*", word):
            return int(word)
        if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", word):
            return float(word)
        if re.match(r"0x|\d{4}-\d\d|[-?:,\[\]{}#&*!|>'%@` ]", word) or re.search(r": | #|:$| $", word):
            raise AssertionError("%r is not plain" % word)
        return word

    def depth(line):
        return len(line) - len(line.lstrip(" "))

    def block(indent):
        first = lines[0]
        if first.lstrip().startswith("- "):
            out = []
            while lines and depth(lines[0]) == indent and lines[0].lstrip().startswith("- "):
                lines[0] = " " * (indent + 2) + lines[0][indent + 2:]
                out.append(block(indent + 2))
            return out
        key = re.match(r'\s*("(?:[^"\\]|\\.)*"|[^\s"][^:]*):( |$)', first)
        if not key:
            return scalar(lines.pop(0).strip(" ") if not first.endswith(" ") else lines.pop(0)[indent:])
        out = {}
        while lines and depth(lines[0]) == indent:
            key = re.match(r'\s*("(?:[^"\\]|\\.)*"|[^\s"][^:]*):( |$)', lines[0])
            if not key or lines[0].lstrip().startswith("- "):
                break
            rest = lines.pop(0)[key.end():]
            out[scalar(key.group(1))] = scalar(rest) if rest else block(depth(lines[0]))
        return out
    return block(0)


def on_terminal(args, environment):
    """gvctl's output on a terminal."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([binary("gvctl"), *args], stdout=theirs, stderr=subprocess.DEVNULL,
                         env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
    os.close(theirs)
    out = b""
    try:
        while True:
            out += os.read(ours, 65536)
    except OSError:  # its end, on Linux
        pass
    p.wait()
    os.close(ours)
    return out.decode()


class Gvctl(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def ask(self, *command, says=None, **how):
        if says is not None:
            self.port.clear()
            self.port.closes(says)
        return gvctl(*command, admin=self.port.port, **how)

    def fails(self, command, says, *words):
        """gvctl exits with 1, and says only on stderr why and what to do next."""
        status, out, err = self.ask(*command, says=says)
        self.assertEqual((status, out), (1, ""), (command, says, err))
        self.assertRegex(err, r"^gvctl: .*\n")
        for word in words:
            self.assertIn(word, err, (command, says))

    def asked(self):
        """The command's last request; commands that change something look at the replicas first."""
        return [(a.method, a.target) for a in self.port.requests][-1]

    def test_each_command_sends_its_call_and_shows_the_answer(self):
        status, text, _ = gvctl("--help")
        named = set(re.findall(r"(?m)^  ([a-z]\S*)", text)) - OTHERS
        self.assertEqual((status, named), (0, {c[0] for c in EVERY}), "every command is tried here")
        for command, (method, target, said, words, *wide) in SHOWN.items():
            for args, expected in ((command, words), (command + ("-o", "wide"), wide[0] if wide else [])):
                status, out, err = self.ask(*args, says=answer_json(said), stdin=b'{"model":"m"}')
                self.assertEqual((status, err), (0, ""), args)
                self.assertEqual(self.asked(), (method, target))
                for word in expected:
                    self.assertRegex(out, word)
            for args in (("--json",), ("-o", "json"), ("--output=json",)):
                status, out, err = self.ask(*command, *args, says=answer_json(said), stdin=b'{"model":"m"}')
                self.assertEqual((status, json.loads(out), err), (0, said, ""), command)

    def test_text_answers_become_json(self):
        for command, (target, said, told) in TEXTS.items():
            status, out, err = self.ask(*command, says=answer(200, said))
            self.assertEqual((status, out, err, self.asked()), (0, said.decode(), "", ("GET", target)))
            if told is not None:
                status, out, err = self.ask(*command, "--json", says=answer(200, said))
                self.assertEqual((status, json.loads(out), err), (0, told, ""))
                self.fails(command + ("--json",), answer(200, b"<html>"), "is not one that this command can show")
        for code in (200, 503):
            status, out, err = self.ask("ready", "-o", "json", says=answer_json({"ready": code == 200}, code))
            self.assertEqual((status, json.loads(out), err), (int(code != 200), {"ready": code == 200}, ""))
            self.assertEqual(self.asked(), ("GET", "/readyz?format=json"))

    def test_yaml_output_equals_json_output(self):
        """As a reader of YAML reads it: libyaml's words for on, off, nothing and numbers stay text."""
        odd = ["true", "no", "~", "null", "1", "1.5", "0x1f", "1e3", "2026-01-01", "a: b", "a #b", "- a", "x:", " a",
               "a ", "", "[a]", "'a'", '"a"', "a\nb", "\u00e4\u2028", "%a", "@a", "a,b", "http://a:1/", ".5", "+1"]
        said = {"text": odd, "more": {"n": 1.25, "t": True, "f": False, "z": None, "e": {}, "l": [],
                                      "d": [[1, [2]], {"a": [{"b": {"c": 3}}]}]}}
        status, out, err = self.ask("queue", "-o", "yaml", says=answer_json(said))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(read_yaml(out), said)

    def test_output_name_prints_names_only(self):
        for command, out in ((("replicas",), "a:1\nb:2\nd:4\ne:5\nf:6\ng:7\nc:3\n"), (("members",), "r1\nr2\nr3\n"), (("poison",), "00ff\n")):
            self.assertEqual(self.ask(*command, "-o", "name", says=answer_json(SHOWN[command][2])), (0, out, ""))
        self.assertEqual(self.ask("queue", "-o", "name", says=answer_json(SHOWN[("queue",)][2])),
                         (2, "", "gvctl: queue has no output name: table, wide, json or yaml\n"))

    def test_verbose_explain_describes_each_column(self):
        """-v explained nothing."""
        plain, more = (self.ask("explain", *v, says=answer_json(SHOWN[("explain",)][2]), stdin=b"{}")[1] for v in ((), ("-v",)))
        heads = re.sub(" s(?= |$)", "", re.search("(?m)^ *REPLICA +(.*)$", more)[1])
        self.assertEqual(re.split("  +", heads), ["CACHED", "KNOWN BY", "FROM TIER", "QUEUE", "UNCACHED", "DISPLACED", "DECODE", "ADAPTER", "COST"])
        for head in re.split("  +", heads)[:-1]:
            self.assertRegex(more, r"(?m)(^|\. )%s: " % head)
            self.assertNotIn(head + ": ", plain)
        self.assertIn("\ncost = queue + ", more)

    def test_explain_shows_reasons_if_no_replica_can_be_chosen(self):
        """With all replicas drained the reasons were dropped, and gvctl exited with 0."""
        said = {"policy": "cache_aware", "model": "m", "error": "no replica can be chosen now",
                "left_out": [{"replica": "a:1", "why": "draining: by an operator"}]}
        status, out, err = self.ask("explain", says=answer_json(said), stdin=b"{}")
        self.assertEqual((status, out, err), (1, 'policy cache_aware: no replica can be chosen now (model "m")\n'
                                                 "- a:1  draining: by an operator\n", ""))
        status, out, err = self.ask("explain", "-o", "json", says=answer_json(said), stdin=b"{}")
        self.assertEqual((status, json.loads(out), err), (1, said, ""))
        chosen = SHOWN[("explain",)][2]
        for nodes, expected in (({"r1": said, "r2": said}, 1), ({"r1": said, "r2": chosen}, 0)):
            status, out, err = self.ask("explain", "--all", says=answer_json({"nodes": nodes}), stdin=b"{}")
            self.assertEqual((status, err), (expected, ""))
            self.assertIn("r1: no replica can be chosen now\n- a:1  draining: by an operator\n", out)

    def test_explain_marks_a_last_resort_choice_that_is_down(self):
        said = dict(SHOWN[("explain",)][2], last_resort="down: its port refuses connections")
        words = "a:1 is down too (its port refuses connections): the router would try it as a last resort (when-all-down: try).\n"
        self.assertIn("- c:3  it is down\n" + words, self.ask("explain", says=answer_json(said), stdin=b"{}")[1])
        self.assertNotIn("last resort", self.ask("explain", says=answer_json(dict(said, last_resort="")), stdin=b"{}")[1])
        for left_out, too in ((said["left_out"], " too"), ([], "")):
            one = dict(said, left_out=left_out)
            out = self.ask("explain", "--all", says=answer_json({"nodes": {"r1": one}}), stdin=b"{}")[1]
            self.assertIn("r1: a:1 is down%s (its port" % too, out)

    def test_explain_shortens_repeated_remarks(self):
        rows = [{"replica": "e-%d:1" % i, "cost_s": 1, "followers": 8 if i else 0} for i in range(64)]
        out = self.ask("explain", "-", says=answer_json(dict(SHOWN[("explain",)][2], replicas=rows)), stdin=b"{}")[1]
        self.assertEqual(out.count("8 other requests with that prefix"), 4, out)
        self.assertIn("the same applies to 59 more replicas; -o json lists them", out)

    def test_tables_are_narrow_and_explained_on_demand(self):
        many = [dict(SHOWN[("replicas",)][2][0], name="10.0.0.%d:8000" % i) for i in range(10)]
        routers = {"members": [{"name": "router-%d.gpu:7490" % i, "state": "alive", "ready": True, "session": True,
                                "address": "10.0.0.%d:7490" % i, "version": "0.1.0"} for i in range(10)]}
        for command, said, legend in (("replicas", many, "HELD"), ("members", routers, "VECTOR: each router")):
            out = self.ask(command, says=answer_json(said))[1]
            self.assertLessEqual(max(len(line) for line in out.splitlines()), 80, out)
            self.assertEqual([line for line in out.splitlines() if line.endswith(" ")], [])
            self.assertNotIn("\n\n", out, "no legend")
            more = self.ask(command, "-v", says=answer_json(said))[1]
            self.assertIn(legend, more)
            self.assertGreater(max(len(line) for line in more.splitlines()), 80)
            self.assertNotIn(legend + ":", self.ask(command, "-o", "wide", says=answer_json(said))[1])

    def test_colour_is_for_terminals(self):
        said = answer_json(SHOWN[("members",)][2])
        self.assertNotIn("\033", self.ask("members", says=said)[1])
        self.port.clear()
        self.port.closes(said)
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
            out = on_terminal(["--admin", self.port.url, "members"], environment)
            self.assertEqual("\033[32malive" in out, coloured, out)

    def test_changes_report_their_result(self):
        for command, said, words in (
                (("add", "a:1"), {"ok": True, "already": True}, "a:1 is already a replica"),
                (("add", "a:1"), {"ok": True, "waits": True}, "a:1 is added but not used yet"),
                (("add", "a:1"), {"ok": True, "answers": False, "why": "its port refuses connections"},
                 "but its port refuses connections: it gets requests once its health check succeeds"),
                (("undrain", "a:1"), {"ok": True, "drained_by": ["kubernetes x/y"]},
                 "a:1 still drains because its source says so (kubernetes x/y)"),
                (("undrain", "a:1"), {"ok": True, "drained_by": "no source lists it any more"},
                 "a:1 still drains: no source lists it any more"),
                (("remove", "http://a:1/"), {"ok": True, "already": True}, "a:1 was already removed")):
            status, out, err = self.ask(*command, says=answer_json(said))
            self.assertEqual((status, err), (0, ""))
            self.assertIn(words, out)

    def scripts(self, replicas):
        """The admin port answers GET /replicas with these, one after another, and any other call with success."""
        left = list(replicas)

        def handler(asked):
            asked.read_body()
            body = (left.pop(0) if len(left) > 1 else left[0]) if asked.target == "/replicas" else {"ok": True}
            asked.send(answer_json(body))
            asked.close()
        self.port.handler = handler

    def replica(self, name, requests=0, others=0, models=(), health="up"):
        return {"name": name, "health": health, "load": {"requests": requests, "requests_of_others": others},
                "models": {"names": list(models), "count": len(models)}}

    def test_taking_out_a_models_last_replica_logs_a_warning(self):
        two = [self.replica("a:1", models=["m", "n"]), self.replica("b:2", models=["m"]),
               self.replica("c:3", models=["n"], health="down")]
        for command, name, replicas, warning in (
                ("drain", "b:2", two, None), ("drain", "c:3", two, None),
                ("drain", "a:1", two, 'no other replica that is up serves "n"'),
                ("remove", "a:1", two, 'no other replica that is up serves "n"'),
                ("drain", "a:1", two[:1] + two[2:], "that was the last replica that was up"),
                ("drain", "x:9", two, None)):
            self.scripts([replicas])
            status, out, err = self.ask(command, name)
            self.assertEqual(status, 0)
            if warning is None:
                self.assertEqual(err, "", (name, out))
            else:
                self.assertIn("gvctl: warning: " + warning, err)

    def test_drain_and_remove_report_requests_in_flight(self):
        self.scripts([[self.replica("a:1", 2, 1), self.replica("a:10", 9), self.replica("a:1@3", 4)]])
        for command in ("drain", "remove"):
            self.assertIn("; 7 requests are still in flight there (1 from other routers)\n", self.ask(command, "a:1")[1])
        self.assertIn("; 4 requests are still in flight", self.ask("drain", "a:1@3")[1])

    def test_drain_wait_ends_when_no_router_has_requests_in_flight(self):
        other = self.replica("b:2", 5)
        looks = [[self.replica("a:1", 2, 1), other], [self.replica("a:1", 0, 1), other],
                 [self.replica("a:1", 0, 0), other], [self.replica("a:1", 0, 1), other], [self.replica("a:1"), other]]
        self.scripts(looks)
        status, out, err = self.ask("drain", "a:1", "--wait")
        self.assertEqual((status, out, err), (0, "a:1 drains: no router sends it new requests; nothing is in flight "
                                                 "there\n", ""))
        asked = [a.target for a in self.port.requests]
        self.assertEqual((asked[1], asked.count("/drain?replica=a:1")), ("/drain?replica=a:1", 1))
        self.assertGreater(asked.count("/replicas"), len(looks) + 2, "it looks again before it believes")

    def test_drain_wait_retries_at_a_joining_router(self):
        why = "This router is joining the cluster and has not copied its state yet: ask again in a moment."
        left = [2]

        def handler(asked):
            asked.read_body()
            if asked.target.startswith("/drain"):
                left[0] -= 1
            joins = asked.target.startswith("/drain") and left[0] >= 0
            body = {"error": {"message": why, "code": 503}} if joins else \
                [self.replica("a:1"), self.replica("b:2")] if asked.target == "/replicas" else {"ok": True}
            asked.send(answer_json(body, 503 if joins else 200))
            asked.close()
        self.port.handler = handler
        self.assertEqual(self.ask("drain", "a:1"), (1, "", "gvctl: %s (503)\n" % why))
        status, out, err = self.ask("drain", "a:1", "--wait")
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual([a.target for a in self.port.requests].count("/drain?replica=a:1"), 3)

    def test_drain_wait_gives_up_after_its_timeout(self):
        self.scripts([[self.replica("a:1", 2, 1), self.replica("b:2")]])
        status, out, err = self.ask("drain", "a:1", "--wait", "--timeout", "1")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("gave up after 1 s: 3 in flight at a:1, 1 of them from other routers; it still drains", err)

    def test_a_wrong_port_is_recognised_and_named(self):
        for says, words in ((answer(404, b"{}", (("x-grapevine-reason", "path"),)),
                             "is the client port of a router\n       The admin port is 9090 by default"),
                            (answer(200, b"{}", (("x-grapevine-replica", "a:1"),)), "is the client port of a router"),
                            (answer(404, b"{}", (("server", "uvicorn"),)), 'is not a router: it is "uvicorn" and answers 404')):
            for command in (("replicas",), ("ready",), ("drain", "a:1"), ("status",), ("convergence",)):
                self.fails(command, says, words)
        for command in (("replicas",), ("events",), ("status",)):  # Prometheus, which names itself nowhere
            self.fails(command, answer(404, b"404 page not found\n"), "is not a router: it answers 404\n       Set --admin to a router's")

    def test_draining_a_router_by_name_is_refused_with_advice(self):
        def handler(asked):
            asked.read_body()
            asked.send(answer_json({"members": [{"name": "r3"}]}) if asked.target == "/members" else
                       answer_json([]) if asked.target == "/replicas" else
                       answer_json({"error": {"message": "`x`: the port is missing"}}, 400))
            asked.close()
        self.port.handler = handler
        for name, hint in (("r3", "r3 is a router. Stop it with SIGTERM (systemctl stop grapevine); it then drains by itself."),
                           ("r4", "Give HOST:PORT of a replica; gvctl replicas lists them.")):
            self.assertEqual(self.ask("drain", name), (1, "", "gvctl: `x`: the port is missing (400)\n       %s\n" % hint))

    def follows(self, command, answers):
        """gvctl's output for one answer after another (None: none), and its requests."""
        asked = []

        def handler(request):
            request.read_body()
            answer_of = answers[len(asked)] if len(asked) < len(answers) else (2, 2, [])
            asked.append(request.target)
            if answer_of is not None:
                request.send(answer_json(dict(zip(("since_ms", "changed", command.split()[0]), answer_of))))
            request.close()
        self.port.handler = handler
        p = subprocess.Popen([binary("gvctl"), "--admin", self.port.url, *command.split(), "--follow", "-o", "json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: len(asked) > len(answers), "it asks on")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        return [json.loads(line) for line in out.splitlines()], err.decode(), asked

    def test_decisions_are_followed(self):
        """Each decision is shown once, in the order of requests' ends, over a restart of the router and a gap."""
        def one(number, change):
            return {"id": number, "change": change, "choice": "a:1", "why": "cold", "outcome": {"end": "ok", "status": 200}}
        told, err, asked = self.follows("decisions", [
            (1, 0, []), (1, 5, [one(1, 4), one(2, 5)]), None, (1, 7, [one(3, 7)]), (2, 3, [one(1, 1)]),
            (2, 2, [one(1, 2)])])
        self.assertEqual([d["id"] for d in told], [1, 2, 3, 1])
        self.assertEqual(err, "gvctl: cannot reach %s; retrying\n" % self.port.url)
        self.assertEqual([re.sub(".*changed=", "", a) for a in asked[1:7]], ["0", "5", "5", "7", "0", "2"])
        self.assertEqual({"ended=1" in a for a in asked[1:]}, {True})
        self.fails(("decisions", "--follow"), answer_json({"error": {"message": "No such admin call."}}, 404),
                   "that router has an older version without decisions")

    def test_events_are_followed(self):
        """An event that happens again is shown again."""
        told, err, asked = self.follows("events --local", [
            (1, 0, []), (1, 5, [{"id": 1, "change": 5, "count": 1}]), (1, 6, [{"id": 1, "change": 6, "count": 2}])])
        self.assertEqual([(e["id"], e["count"]) for e in told], [(1, 1), (1, 2)])
        self.assertEqual([re.sub(".*changed=", "", a) for a in asked[1:4]], ["0", "5", "6"])
        self.assertEqual((err, {a.split("?")[0] for a in asked}), ("", {"/events"}))

    def test_help(self):
        status, usage, err = gvctl("help")
        self.assertEqual((status, err, usage), (0, "", gvctl("--help")[1]))
        self.assertLessEqual(max(len(line) for line in usage.splitlines()), 88)
        for name in re.findall(r"(?m)^  ([a-z]\S*)", usage):
            status, out, err = gvctl("help", name)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("usage: gvctl %s" % name), out)
            self.assertEqual(gvctl(name, "--help"), (0, out, ""))
            self.assertEqual(gvctl("-h", name)[1], out)
        self.assertIn("--session KEY", gvctl("help", "explain")[1])
        self.assertNotIn("--session", gvctl("help", "replicas")[1])
        self.assertEqual(gvctl("help", "typo")[0], 2)
        self.assertEqual(gvctl("help", "key", "new"), gvctl("help", "key"))
        self.assertEqual(gvctl("key", "new", "--help"), gvctl("help", "key"))
        for args in (("key", "old"), ("drain", "a:1")):
            self.assertEqual(gvctl("help", *args)[::2], (2, 'gvctl: %s takes no "%s"; see gvctl help %s\n' % (*args, args[0])))

    def test_version(self):
        own = gvctl("--version")[1].split()[1]
        status, out, err = self.ask("version", says=answer(200, b"grapevine 9.8.7\nGET /x\n"))
        self.assertEqual((status, out, err), (0, "gvctl %s\ngrapevine 9.8.7 (%s)\n" % (own, self.port.url), ""))
        status, out, err = gvctl("version", "-o", "json", admin=closed_port())
        self.assertEqual((status, json.loads(out), err), (0, {"gvctl": own, "grapevine": None}, ""))
        self.assertIn("grapevine not reached", gvctl("version", admin=closed_port())[1])
        for form in ((), ("-o", "json")):
            status, out, err = self.ask("version", *form, says=answer_json({"error": {"message": "Bring a token."}}, 401))
            self.assertEqual((status, err), (1, "gvctl: Bring a token. (401)\n"))  # it read "not reached"
            self.assertIn(own, out)
            self.assertIn("not told" if not form else '"grapevine": null', out)
        self.assertIn("is not one that this command can show", self.ask("version", says=answer(200, b"nginx"))[2])

    def test_token_session_and_body_are_sent(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w") as f:
                f.write("sesame\n")
            self.ask("explain", "--session", "kim", "--token-file", path, says=answer_json(SHOWN[("explain",)][2]),
                     stdin=b"a body")
        asked = self.port.requests[0]
        self.assertEqual((asked.get("authorization"), asked.get("x-grapevine-session"), asked.body),
                         ("Bearer sesame", "kim", b"a body"))

    def test_a_refused_connection_is_explained(self):
        for command in EVERY + [("status",), ("top",)]:
            status, out, err = gvctl(*command, admin=closed_port())
            self.assertEqual((status, out), (1, ""), command)
            self.assertIn("Connection refused\n       Is grapevine running? Set --admin", err)

    def test_a_timeout_is_explained(self):
        for accepts in (True, False):  # the kernel takes the connection, and it is read or not
            if accepts:
                self.port.handler = lambda asked: asked.sock.recv(1)
                port = self.port.port
            else:
                silent = socket.create_server((HOST, 0))
                self.addCleanup(silent.close)
                port = silent.getsockname()[1]
            for command in (("replicas",), ("ready",), ("convergence",), ("undrain", "a:1")):
                status, out, err = gvctl(*command, "--timeout", "1", admin=port)
                self.assertEqual((status, out), (1, ""))
                self.assertIn("did not answer within 1 s\n       --timeout SECONDS waits longer.", err)

    def test_a_truncated_answer_is_an_error(self):
        """The first half of /metrics was shown with exit 0: a check behind a pipe believed it."""
        whole_answers = {c: answer_json(row[2]) for c, row in SHOWN.items()}
        whole_answers.update({c: answer(200, row[1]) for c, row in TEXTS.items()})
        for command, whole in whole_answers.items():
            for cut in (1, len(whole) // 2, len(whole) - 1):
                self.fails(command, whole[:cut], "was cut off", "Set --admin to its admin-listen address")
            self.fails(command, b"", "the peer has closed", "Set --admin to its admin-listen address")

    def test_an_answer_that_is_not_http_is_an_error(self):
        for said in (b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail ESMTP\r\n\r\n", bytes(range(256)), b"\0" * 100000):
            for command in (("replicas",), ("ready",), ("convergence",)):
                self.fails(command, said, "cannot be read: the input is malformed", "Is that grapevine's admin port")

    def test_unexpected_and_missing_json_never_crash_gvctl(self):
        """Before, gvctl exited with 1 and no message."""
        for command in TABLES:
            for said in (answer(200, b"<html>"), answer(200, b""), answer(200, b'{"a":'), answer_json(7), answer_json(None),
                         answer_json({"a": []} if command[0] in ("replicas", "sources", "poison") else [])):
                self.fails(command, said, "is not one that this command can show", "--json prints the answer as it is")
            rows = [1, "x", None, {}, [], {"name": 7, "load": [], "models": "m", "sources": 1, "replicas": [None, 7]}]
            for said in (rows, {"members": rows, "waiting": rows, "replicas": rows, "left_out": rows,
                                "nodes": {str(i): row for i, row in enumerate(rows)}, "stats": rows, "differ": rows}):
                status, _, err = self.ask(*command, says=answer_json(said))
                self.assertIn(status, (0, 1), (command, said, err))

    def test_a_refusals_message_is_shown(self):
        for command in EVERY:
            self.fails(command, answer_json({"error": {"message": "Bring a token: --token-file."}}, 401),
                       "gvctl: Bring a token: --token-file. (401)")
            self.fails(command, answer(503, b"joining: wait\n"), "gvctl: 503: joining: wait")
            self.fails(command, answer(500, b""), "gvctl: 500: an answer without a word")

    def test_usage_errors_are_explained(self):
        for command, word in (((), "usage: gvctl"), (("typo",), 'no command "typo"; '), (("replica",), "did you mean replicas?"),
                              (("drain",), "drain takes one argument, HOST:PORT; see gvctl help drain"),
                              (("replicas", "a:1"), "replicas takes no argument"),
                              (("replicas", "--all"), "replicas has no option --all; see gvctl help replicas"),
                              (("replicas", "--timeout", "0"), 'gvctl: --timeout "0": want a number from 1 on\n'),
                              *((("decisions", "--slow", x), 'gvctl: --slow "%s": want a time from 1ms on, such as 0.5, 500ms or 2s\n' % x) for x in ("0", "2d", "")),
                              (("events", "--last", "x"), 'gvctl: --last "x": want a number from 1 on\n'),
                              (("replicas", "-o", "xml"), 'no output "xml": table, wide, json, yaml or name'),
                              (("drain", "a:1", "--members", "2"), "drain has no option --members"),
                              (("replicas", "--nothing"), "see gvctl --help"),
                              (("--token-file", "/nowhere", "ready"), 'cannot read "/nowhere"')):
            status, out, err = self.ask(*command)
            self.assertEqual((status, out), (2, ""), command)
            self.assertIn(word, err)
        for admin in ("nonsense", "ftp://a:1", "http://127.0.0.1", "a:99999"):
            for command in ("ready", "status", "events", "convergence"):
                status, out, err = gvctl("--admin", admin, command)
                self.assertEqual((status, out, "is not http[s]://" in err or admin == "a:99999" and "is not" in err), (2, "", True))
        status, out, err = self.ask("explain", "/nowhere/request.json")
        self.assertEqual((status, out, 'cannot read "/nowhere/request.json"' in err), (1, "", True))


if __name__ == "__main__":
    unittest.main()

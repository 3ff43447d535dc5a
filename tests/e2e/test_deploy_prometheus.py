"""Rules of Prometheus, the dashboard of Grafana, and make demo OBSERVE=1: every metric, label and runbook that they
name exists, promtool accepts and tests the rules, and a real Prometheus loads them."""

import json
import os
import re
import signal
import subprocess
import unittest
import urllib.request

from lib import LIMIT
from lib_deploy import TOP, anchors, documents, path, text, tool
from test_demo import BUILD, left_of

OTHERS = {"up"}  # Prometheus's own
RULES = ("recording.yaml", "alerts.yaml")
ROW = re.compile(r"^- `(grapevine_\w+)(?:\{([\w,]+)\})?`: (\S+)", re.M)
OWN = {"namespace", "job", "instance", "pod", "le", "model"}  # labels that a scrape adds, that of histograms, and that of models


def rules():
    return [r for name in RULES for g in documents(text("deploy", "prometheus", name))[0]["groups"] for r in g["rules"]]


def documented():
    """{series: set of its labels}"""
    found = {}
    for name, labels, kind in ROW.findall(text("docs", "metrics.md")):
        for ending in ("_bucket", "_sum", "_count") if kind == "Histogram:" else ("",):
            found[name + ending] = set(filter(None, labels.split(",")))
    return found


class Names(unittest.TestCase):
    def setUp(self):
        self.documented = documented()
        self.recorded = {r["record"] for r in rules() if "record" in r}
        self.assertGreater(len(self.documented), 100)

    def check(self, query, where):
        for name in re.findall(r"\bgrapevine:\w+(?::\w+)?", query):
            self.assertIn(name, self.recorded, where)
        names = re.findall(r"\bgrapevine_\w+", query)
        for name in names:
            self.assertIn(name, self.documented, where)
        labels = {label for label, _ in re.findall(r"[{,]\s*(\w+)\s*(=~|!~|!=|=)\s*\"", query)}
        labels |= {label.strip() for by in re.findall(r"\bby \(([^)]*)\)", query) for label in by.split(",")}
        known = OWN.union(*(self.documented[name] for name in names))
        self.assertLessEqual(labels, known, where)
        return names

    def test_rules_name_existing_metrics(self):
        for r in rules():
            names = self.check(r["expr"], r)
            self.assertTrue(names or "grapevine:" in r["expr"] or OTHERS & set(re.findall(r"\w+", r["expr"])), r)

    def test_each_alert_has_a_summary_and_a_runbook(self):
        have = anchors("docs/runbook.md")
        alerts = [r for r in rules() if "alert" in r]
        self.assertEqual(len({a["alert"] for a in alerts}), len(alerts))
        for a in alerts:
            page, _, anchor = a["annotations"]["runbook_url"].partition("#")
            self.assertEqual((page, anchor), ("docs/runbook.md", a["alert"].lower()))
            self.assertIn(anchor, have)
            self.assertIn(a["labels"]["severity"], ("critical", "warning", "info"))
            self.assertTrue(a["annotations"]["summary"])
            for label in re.findall(r"\$labels\.(\w+)", a["annotations"]["summary"]):
                self.assertTrue(label == "instance" or re.search(r"\b%s\b" % label, a["expr"]), a)

    def test_no_runbook_without_an_alert(self):
        named = {r["alert"] for r in rules() if "alert" in r}
        self.assertEqual(set(re.findall(r"^### (Grapevine\w+)$", text("docs", "runbook.md"), re.M)), named)

    def test_the_dashboard_names_existing_metrics(self):
        board = json.loads(text("deploy", "grafana", "grapevine.json"))
        panels = [p for p in board["panels"] if p["type"] != "row"]
        self.assertGreater(len(panels), 20)
        self.assertEqual(len({p["id"] for p in board["panels"]}), len(board["panels"]))
        cells = set()
        for p in panels:
            self.assertTrue(p["targets"])
            for t in p["targets"]:
                self.assertTrue(self.check(t["expr"].replace('"$job"', '".*"'), p["title"]), p["title"])
                for label in re.findall(r"\{\{(\w+)\}\}", t["legendFormat"]):
                    self.assertTrue(label == "instance" or re.search(r"\b%s\b" % label, t["expr"]), t)
            at = p["gridPos"]
            own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(own & cells, p["title"])
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells |= own


@unittest.skipUnless(tool("promtool"), "promtool is not here (Debian: prometheus)")
class Promtool(unittest.TestCase):
    def promtool(self, *args):
        p = subprocess.run([tool("promtool"), *args], cwd=path("deploy", "prometheus"), capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    def test_promtool_accepts_the_rules(self):
        self.assertEqual(self.promtool("check", "rules", *RULES).count("SUCCESS"), 2)

    def test_alerts_fire_when_they_should(self):
        self.assertEqual(self.promtool("test", "rules", "tests.yaml", "tests_day.yaml").count("SUCCESS"), 2)

    def test_promtool_accepts_the_dashboards_queries(self):
        queries = [t["expr"].replace("$__rate_interval", "1m").replace("$job", ".*")
                   for p in json.loads(text("deploy", "grafana", "grapevine.json"))["panels"] for t in p.get("targets", [])]
        groups = {"groups": [{"name": "dashboard", "rules": [
            {"record": "query:%d" % i, "expr": q} for i, q in enumerate(queries)]}]}
        p = subprocess.run([tool("promtool"), "check", "rules", "/dev/stdin"], input=json.dumps(groups),
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("%d rules found" % len(queries), p.stdout + p.stderr)


@unittest.skipUnless(tool("prometheus"), "Prometheus is not installed (Debian: prometheus)")
class Demo(unittest.TestCase):
    def test_prometheus_observes_the_demo(self):
        p = subprocess.Popen(["tests/bench/demo.sh"], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "BUILD": BUILD, "REQUESTS": "5", "OBSERVE": "1", "KEEP": "1"},
                             start_new_session=True)
        try:
            out, err = p.communicate(timeout=10 * LIMIT)
            self.assertEqual(p.returncode, 0, out + err)
            shares = re.search(r"Share of prompt tokens served from cache.*\n((?:  \w+ +[\d.]+ %\n)+)", out)
            self.assertEqual(sorted(line.split()[0] for line in shares[1].splitlines()),
                             ["cache_aware", "round_robin", "session"])
            address = re.search(r"^Prometheus: (http://127\.0\.0\.1:\d+)", out, re.M)[1]
            with urllib.request.urlopen(address + "/api/v1/rules", timeout=LIMIT) as f:
                groups = json.load(f)["data"]["groups"]
            loaded = {r["name"] for g in groups for r in g["rules"]}
            self.assertEqual(loaded, {r.get("alert") or r["record"] for r in rules()})
            self.assertEqual([r["lastError"] for g in groups for r in g["rules"] if r.get("lastError")], [])
        finally:
            if left_of(p.pid):
                os.killpg(p.pid, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()

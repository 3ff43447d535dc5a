"""/metrics of a router in a cluster, with traffic: valid Prometheus text, and the texts of docs/metrics.md."""

import glob
import os
import re
import tempfile
import unittest

from lib import wait_for
from lib_cluster import Clustered, Talk
from lib_tls import Authority

LABELS = r'(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})?'
SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)%s (\S+)" % LABELS)
TOP = os.path.join(os.path.dirname(__file__), "..", "..")


def documented():
    """(page, name with a * or {labels}) of all metrics that a page names in full, and the endings of
    those named in short: `grapevine_a_total`, `_b_total`."""
    for page in ["README.md"] + sorted(glob.glob("docs/*.md", root_dir=TOP) + glob.glob("docs/how-to/*.md", root_dir=TOP)):
        with open(os.path.join(TOP, page), encoding="utf-8") as f:
            text = f.read()
        for start, name in re.findall(
                r"(\^?)\b(grapevine_[a-z0-9_]+[a-z0-9](?:_?\*|\{[a-z]+[}=])?)", text):
            yield page, name + ("*" if start else "")  # grep ^grapevine_answered
        for line in text.splitlines():
            if "`grapevine_" in line:
                for ending in re.findall(r"`(_[a-z0-9_]+)`", line):
                    yield page, "*" + ending


def plain(about):
    """A row's text as HELP has it: without marks, without links, and as a sentence."""
    about = re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", about).removeprefix("Histogram: ")
    about = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", about).replace("`", "")
    return about[0].upper() + about[1:] + "."


class Metrics(Clustered):
    def setUp(self):
        super().setUp()
        sims = [self.sim("--speed-up", "5") for _ in range(2)]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shown = Authority(folder.name).flags("replica")  # so that a certificate's expiry is shown
        self.r, other = self.cluster(2, sims, *shown, "--model-alias", "gpt-4o=sim")
        self.r.wait_up(2)
        talk = Talk(self, 1)
        for router in (self.r, other, self.r):
            talk.ask(router)
        wait_for(lambda: self.r.metric("cluster_ready") == 1, "ready")

    def families(self):
        """{name: set of its labels' names}. Each family has its HELP and TYPE once, then all its series."""
        got = self.r.admin("GET", "/metrics")
        self.assertTrue(got.get("content-type").startswith("text/plain; version=0.0.4"))
        families, typed, seen, self.helps = {}, {}, set(), {}
        current = None
        for line in got.body.decode().splitlines():
            if line.startswith("# HELP "):
                _, _, current, about = line.split(" ", 3)
                self.assertNotIn(current, list(families), "family twice")
                self.assertRegex(about, r"^\S.*[^\s\\]$")
                families[current] = set()
                self.helps[current] = about
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertEqual(name, current)
                self.assertNotIn(name, typed)
                self.assertIn(kind, ("counter", "gauge", "histogram"))
                self.assertTrue(kind != "histogram" or name.endswith("_seconds"), name)
                self.assertEqual(kind == "counter", name.endswith("_total"), name)
                typed[name] = kind
            else:
                m = SERIES.fullmatch(line)
                self.assertTrue(m, line)
                float(m.group(3))
                name = m.group(1)
                if typed[current] == "histogram":
                    name = re.sub("_(bucket|sum|count)$", "", name)
                self.assertEqual(name, current, "%s is not under its own HELP" % line)
                self.assertNotIn((m.group(1), m.group(2)), seen, "series twice")
                seen.add((m.group(1), m.group(2)))
                seen.add((name, ""))
                families[current] |= set(re.findall(r'[{,](\w+)="', m.group(2) or ""))
        self.assertEqual(set(families), set(typed))
        self.assertEqual([n for n in families if not re.fullmatch(r"grapevine_[a-z0-9_]+", n)], [])
        names = {name for name, _ in seen}
        self.assertEqual([n for n in families if n not in names and n + "_bucket" not in names], [])
        return families

    def test_histograms_of_streams_and_whole_answers(self):
        """Buckets rise to the count, and every answer that came whole is in one."""
        talk = Talk(self, 2)
        talk.ask(self.r)
        metrics = self.r.metrics()
        for name in ("time_to_first_token_seconds", "inter_token_seconds", "request_seconds"):
            for labels in ("", 'streamed="false"', 'streamed="true"'):
                count = metrics.get("grapevine_%s_count%s" % (name, "{%s}" % labels if labels else ""))
                if count is None:
                    continue
                last = 0
                for series, value in metrics.items():
                    if series.startswith("grapevine_%s_bucket{%s" % (name, labels + "," if labels else "le")):
                        self.assertGreaterEqual(value, last, series)
                        last = value
                self.assertEqual(last, count, name)
        self.assertGreater(sum(v for k, v in metrics.items() if k.startswith("grapevine_request_seconds_count")), 2)

    def test_the_docs_list_every_metric_with_its_help(self):
        with open(os.path.join(TOP, "docs/metrics.md"), encoding="utf-8") as f:
            rows = re.findall(r"^- `(grapevine_[a-z0-9_]+)(\{[a-z,]+\})?`: (.*)$", f.read(), re.M)
        families = self.families()
        labels = {name: set(of.strip("{}").split(",")) for name, of, _ in rows}
        self.assertEqual(len(rows), len(labels), "docs/metrics.md has a metric twice")
        self.assertEqual([n for n in families if n not in labels], [], "docs/metrics.md lacks them")
        self.assertEqual([n for n in labels if n not in families], [], "docs/metrics.md has what is no more")
        for name, found in families.items():
            self.assertLessEqual(found - {"le"}, labels[name], name)
        self.assertEqual({name: about for name, _, about in rows if plain(about) != self.helps[name]}, {},
                         "docs/metrics.md and HELP differ")

    def test_the_text_is_valid_and_has_all_documented_metrics(self):
        families = self.families()
        self.assertGreater(len(families), 120)
        names = list(documented())
        self.assertGreater(len(names), 40)
        for page, name in names:
            pattern, _, label = name.partition("{")
            pattern = re.escape(pattern).replace(r"\*", ".*")
            having = [n for n in families if any(re.fullmatch(pattern, n + e) for e in ("", "_bucket", "_count"))]
            self.assertTrue(having, "%s names %s" % (page, name))
            if label:
                self.assertIn(label.rstrip("}="), families[having[0]], "%s names %s" % (page, name))


if __name__ == "__main__":
    unittest.main()

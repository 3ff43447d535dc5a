"""The report shows the contents of the history, escapes its markup, and has a bounded size."""

import contextlib
import html.parser
import io
import json
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import report  # noqa: E402
from history import Anomaly, History  # noqa: E402
from report import facts, markup, page, results, timeline  # noqa: E402

VOID = {"br", "hr", "input", "link", "meta"}
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'>&amp; \u202eright \ud800 \x00"


class Page(html.parser.HTMLParser):
    """Fails on tags that do not match; keeps ids, links, tags and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.words, self.attributes = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes += attrs.items()
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if "href" in attrs:
            self.links.append(attrs["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


class Story:
    """A history by hand."""

    def __init__(self, **meta):
        self.rows, self.ids = [], 0
        self.add(0, "event", "lab", "meta", dict({
            "seed": 7, "workloads": ["service"], "nemeses": ["kill"], "seconds": 60, "clients": 2,
            "routers": [{"name": "r1", "address": "10.0.1.1"}, {"name": "r2", "address": "10.0.1.2"}],
            "engines": [{"name": "e1", "address": "10.0.2.1"}], "limits": {"rest_s": 15}}, **meta))

    def add(self, t, type, process, f, value=None, id=None):
        row = {"t": t, "type": type, "process": process, "f": f}
        row.update({} if value is None else {"value": value}, **({} if id is None else {"id": id}))
        self.rows.append(row)

    def op(self, t, took, type="ok", f="service.chat", asked=None, saw=None, process="c1"):
        self.ids += 1
        self.add(t, "invoke", process, f, asked if asked is not None else {"prompt": "once"}, self.ids)
        if type:
            self.add(t + took, type, process, f, saw if saw is not None else {"status": 200}, self.ids)
        return self.ids

    def fault(self, a, b, name="kill", hosts=("r1",), text="kill -9 of r1", number=None):
        self.faults = getattr(self, "faults", 0) + 1
        self.add(a, "event", "nemesis", "start", {"id": self.faults, "fault": name, "hosts": list(hosts), "text": text})
        if b is not None:
            self.add(b, "event", "nemesis", "stop", {"id": self.faults})

    def rest(self, pause, begin, end, calm=True):
        self.add(pause, "event", "lab", "rest", {"phase": "pause"})
        self.add(begin, "event", "lab", "rest", {"phase": "begin", "calm": calm})
        self.add(end, "event", "lab", "rest", {"phase": "end"})

    def page(self, anomalies=(), figures=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            report.write(History(self.rows), list(anomalies), figures or {}, path)
            with open(path, encoding="utf-8") as f:
                self.html = f.read()
        return Page(self.html)


def top_of(page):
    """The text above the time line."""
    return page.text.partition("What happened")[0]


def ordinary():
    s = Story()
    for i in range(200):
        s.op(i * 0.1, 0.02)
    s.fault(4, 7)
    s.add(4.01, "event", "r1", "start", {"life": 1, "build": "release"})
    s.add(4.02, "event", "r1", "exit", {"life": 1, "status": -9})
    s.add(7.01, "event", "r1", "start", {"life": 2, "build": "release"})
    s.op(5, 0.2, "fail", saw={"status": 503, "error": "no replica"})
    s.op(5.1, 1, "info", saw={"error": "reset"})
    s.add(5.05, "event", "e1", "request", {"request": 1, "op": "service-201", "path": "/v1/chat/completions"})
    s.add(5.06, "event", "r2", "log", {"event": "member_dead", "member": "r1"})
    s.rest(8, 9.5, 11)
    return s


class Contents(unittest.TestCase):
    def test_the_report_of_a_good_run_says_so_first(self):
        p = ordinary().page()
        self.assertIn("No anomaly", p.text)
        self.assertNotIn("✗", p.text)
        self.assertIn("2 routers, 1 engine", p.text)
        self.assertIn("202 operations: 1 failed, 1 unknown", p.text)
        self.assertIn("1 fault · 1 rest", p.text)

    def test_the_report_has_the_command_that_repeats_the_run(self):
        self.assertIn("jepsen-lite/run --workload service --nemesis kill --routers 2 --engines 1 --seconds 60 --seed 7",
                      ordinary().page().text)
        self.assertIn("jepsen-lite/run --seed 9 '--bug=a b'",
                      Story(command=["jepsen-lite/run", "--seed", 9, "--out", "/x", "--bug=a b"]).page().text)

    def test_an_anomaly_is_explained_with_its_operations_and_the_lines_around_it(self):
        s = ordinary()
        p = s.page([Anomaly("service.avoidable", "r2 had a healthy replica", [201], 5.2)])
        self.assertIn("1 anomaly: service.avoidable", p.text)
        self.assertIn("anomaly-1", p.ids)
        for words in ("r2 had a healthy replica", "during: kill -9 of r1", "no replica", "member_dead", "request 1"):
            self.assertIn(words, p.text)
        self.assertIn('class="mine"', s.html)  # the journal line of that very operation

    def test_lines_far_away_are_not_shown(self):
        s = ordinary()
        s.add(19, "event", "r2", "log", {"event": "much_later"})
        self.assertNotIn("much_later", s.page([Anomaly("service.avoidable", "it failed", [201])]).text)

    def test_an_anomaly_without_time_or_operations_is_shown(self):
        p = ordinary().page([Anomaly("load.sum", "it differs"), Anomaly("x", "unknown operation", [999])])
        self.assertIn("No time is given", p.text)
        self.assertIn("2 anomalies: load.sum, x", p.text)

    def test_failures_in_the_time_line_are_links(self):
        p = ordinary().page()
        chosen = [x for x in p.links if x.startswith("#f-service-")]
        self.assertEqual(len(chosen), 2)
        for link in chosen:
            self.assertIn(link[1:], p.ids)
        self.assertIn("503, no replica", p.text)

    def test_all_links_have_targets_and_ids_are_unique(self):
        s = ordinary()
        for i in range(3000):
            s.op(i * 0.5, 0.1, "fail", saw={"error": "e%d" % i})
        p = s.page([Anomaly("r%d" % (i % 3), "text", [i + 1]) for i in range(100)])
        self.assertEqual(len(p.ids), len(set(p.ids)))
        self.assertEqual(set(), {x for x in p.links if x[1:] not in p.ids})

    def test_one_anomaly_of_each_rule_is_shown_in_full(self):
        p = ordinary().page([Anomaly("often", "again", [1])] * 500 + [Anomaly("once", "the only one", [2])])
        self.assertIn("anomaly-501", p.ids)
        self.assertIn("501 anomalies: often × 500, once", p.text)
        top = top_of(p)
        self.assertIn("often × 500, at first: again", top)
        self.assertIn("once : the only one", top)

    def test_figures_of_checkers_of_any_shape(self):
        p = ordinary().page(figures={"service": {"answers": 12345, "by status": {"200": {"n": 3}, "503": {"n": 1}},
                                                 "list": [{"a": 1}, {"b": None}], "deep": {"x": {"y": {"z": [1, 2]}}}},
                                     "none": None, "empty": {}, "number": 0.25})
        for words in ("12,345", "503", "0.25"):
            self.assertIn(words, p.text)

    def test_rests_and_the_reason_if_not_calm_are_shown(self):
        s = ordinary()
        s.rest(15, 19, 20, calm=False)
        s.rows[-2]["value"]["why"] = "r2 has 3 requests under way"
        p = s.page()
        self.assertIn("2 rests; until all was calm: p50 1.50 s, longest 4.00 s. One was not calm", p.text)
        self.assertIn("no: r2 has 3 requests under way", p.text)

    def test_faults_that_were_left_out_are_shown(self):
        self.assertIn("mtu: no such thing here", Story(missing=["mtu: no such thing here"]).page().text)

    def test_a_client_that_left_has_not_failed(self):
        s = Story()
        s.op(1, 0.1, "info", saw={"error": "left"})
        s.op(2, 0.1, "info", saw={"status": 404, "finished": True})
        s.op(3, 0.1, "info", saw={"status": 404, "finished": False})
        s.op(4, 0.1, "info", saw={"status": 429, "finished": True})
        f = facts.Facts(History(s.rows))
        self.assertEqual(f.workloads["service"].counts, {"ok": 0, "fail": 0, "info": 2, "own": 2})
        self.assertEqual([e.t for e in f.failed], [3, 4])

    def test_faults_without_an_end_last_to_the_end_of_the_history(self):
        s = Story()
        s.fault(1, None)
        s.op(10, 0.1)
        self.assertIn("kill: 1 s to 10.1 s, kill -9 of r1", " ".join(v or "" for _, v in s.page().attributes))

    def test_operations_without_an_end_are_unknown(self):
        s = Story()
        s.op(1, 0, None)
        s.op(2, 0.1)
        p = s.page()
        self.assertIn("1 unknown", p.text)
        self.assertIn("it had no end when the history ended", p.text)

    def test_an_empty_history(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            report.write(History([]), [], {}, path)
            with open(path, encoding="utf-8") as f:
                self.assertIn("No anomaly", Page(f.read()).text)


class Safe(unittest.TestCase):
    def test_text_of_a_history_is_never_markup(self):
        """A prompt, a header, a line of a log and a name may hold anything; a report is opened in a browser."""
        s = Story(seed=EVIL, bug=EVIL, missing=[EVIL], limits={EVIL: EVIL}, options=[EVIL], workloads=[EVIL],
                  routers=[{"name": EVIL, "address": EVIL}])
        i = s.op(1, 0.5, f=EVIL + ".chat", asked={"prompt": EVIL}, saw={"body": EVIL}, process=EVIL)
        j = s.op(2, 0.5, "fail", f=EVIL + ".chat", asked={"prompt": EVIL}, saw={"error": EVIL}, process=EVIL)
        s.fault(1, 3, EVIL, [EVIL], EVIL)
        s.rest(4, 5, 6)
        s.add(1.5, "event", EVIL, "log", {EVIL: EVIL, "event": EVIL})
        s.add(1.6, "event", EVIL, "start", {"build": EVIL})
        anomaly = Anomaly(EVIL, EVIL, [i, j], 2.0)
        anomaly.checker = EVIL
        p = s.page([anomaly], {EVIL: {EVIL: EVIL, "t": {EVIL: {EVIL: EVIL}}}})
        self.assertEqual(p.tags.count("script"), 1)
        self.assertNotIn("img", p.tags)
        self.assertEqual([], [n for n, _ in p.attributes if n.startswith("on")])
        self.assertNotIn("\u202e", s.html)
        self.assertNotIn("\x00", s.html)
        self.assertIn("<script>alert('x')</script>", p.text)

    def test_the_report_loads_nothing(self):
        s = ordinary()
        p = s.page([Anomaly("service.avoidable", "it failed", [201])])
        self.assertEqual([], [v for n, v in p.attributes if n in ("src", "srcset", "data", "xlink:href")])
        self.assertEqual([], [x for x in p.links if not x.startswith("#")])
        self.assertNotIn("@import", s.html)
        self.assertNotIn("url(", s.html)
        self.assertIn("default-src 'none'", dict(p.attributes)["content"] + s.html.replace("&#x27;", "'"))

    def test_markup_escapes_plain_text(self):
        self.assertEqual(markup.h("p", "<", title='"'), '<p title="&quot;">&lt;</p>')
        self.assertEqual(markup.h("p", markup.h("b", "x"), None, cls="y"), '<p class="y"><b>x</b></p>')


class Readable(unittest.TestCase):
    def test_pictures_and_regions_have_names_and_tables_have_headers(self):
        s = ordinary()
        s.page([Anomaly("service.avoidable", "it failed", [201])])
        for svg in re.findall(r"<svg[^>]*>", s.html):
            self.assertTrue("aria-label=" in svg or "aria-hidden=" in svg, svg)
        for region in re.findall(r'<div[^>]*role="region"[^>]*>', s.html):
            self.assertIn("aria-label=", region)
            self.assertIn("tabindex=", region)
        self.assertEqual(s.html.count("<table"), s.html.count("<thead>"))
        self.assertEqual(s.html.count("<h1"), 1)
        self.assertIn('lang="en"', s.html)

    def test_ticks_are_round_and_few(self):
        for end in (0.5, 3, 45, 60, 120, 600, 3600, 36000):
            major = [t for t, rank in timeline.ticks(end) if rank == 0]
            self.assertTrue(2 <= len(major) <= 8, (end, major))
            self.assertLessEqual(max(major), end + 1e-9)

    def test_time_stamps(self):
        self.assertEqual([timeline.stamp(t) for t in (0, 1.234, 60, 121, 121.5)],
                         ["0 s", "1.23 s", "60 s", "2:01", "2:01.50"])


class Counts(unittest.TestCase):
    def test_operations_count_under_the_faults_that_lasted_when_they_began(self):
        s = Story()
        s.fault(1, 3, "kill")
        s.fault(2, 4, "loss")
        for t, type in ((0.5, "ok"), (1.0, "ok"), (2.5, "fail"), (3.0, "info"), (3.5, "ok"), (4.0, "ok")):
            s.op(t, 0.1, type)
        by = facts.Facts(History(s.rows)).by_fault
        self.assertEqual({k: (v["ok"], v["fail"], v["info"]) for k, v in by.items()},
                         {"": (2, 0, 0), "kill": (1, 1, 0), "loss": (1, 1, 1)})

    def test_faults_are_packed_so_that_none_overlaps(self):
        s = Story()
        for a, b in ((1, 4), (2, 3), (3, 5), (4, 6), (4.5, 7)):
            s.fault(a, b)
        rows = timeline.packed(facts.Facts(History(s.rows)).faults)
        self.assertEqual([[(f.began, f.ended) for f in row] for row in rows],
                         [[(1, 4), (4, 6)], [(2, 3), (3, 5)], [(4.5, 7)]])

    def test_results_of_several_runs(self):
        workloads, under = {}, {}
        for anomalies in ([], [{"checker": "service", "t": 5.2}, {"checker": "processes", "t": None}]):
            results.add(facts.Facts(History(ordinary().rows)), anomalies, workloads, under)
        told = results.tell(workloads, under)
        self.assertIn("| service | 400 | 4 | 0 | 20 ms | 20 ms | 1 |", told)
        self.assertIn("| processes | 0 | 0 | 0 | – | – | 1 |", told)
        self.assertIn("| `kill` | 2 | 60 | 4 | 0 | 20 ms | 20 ms | 1 |", told)
        self.assertIn("| none |  | 340 | 0 | 0 | 20 ms | 20 ms | 0 |", told)

    def test_results_of_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(results.main([folder]), 2)
            with open(os.path.join(folder, "history.jsonl"), "w") as f:
                f.writelines(json.dumps(row) + "\n" for row in ordinary().rows)
            with open(os.path.join(folder, "verdict.json"), "w") as f:
                json.dump({"anomalies": []}, f)
            with contextlib.redirect_stdout(said):
                self.assertEqual(results.main([folder, folder]), 0)
            self.assertIn("| service | 400 | 4 | 0 | 20 ms | 20 ms | 0 |", said.getvalue())

    def test_percentiles(self):
        self.assertEqual(facts.percentile(list(range(1, 101)), 0.99), 99)
        self.assertEqual(facts.percentile([5], 0.5), 5)
        self.assertIsNone(facts.percentile([], 0.5))

    def test_times_at_which_a_router_ran(self):
        self.assertEqual(facts.Facts(History(ordinary().rows)).up("r1")[0], (4.01, 4.02))


class Bounded(unittest.TestCase):
    def test_an_hour_of_failures_and_anomalies_is_less_than_two_megabytes(self):
        """Everything goes wrong, seven workloads, long prompts."""
        s = Story(workloads=["w%d" % i for i in range(7)])
        long = "a long prompt " * 200
        for i in range(9000):
            s.op(i * 0.4, 0.5, ("ok", "fail", "info")[i % 3], "w%d.ask" % (i % 7), {"prompt": long},
                 {"error": long + str(i)})
            if i % 2 == 0:
                s.add(i * 0.4, "event", "r%d" % (i % 2 + 1), "log", {"event": "said", "text": long})
        for i in range(900):
            s.fault(i * 4, i * 4 + 3, "fault%d" % (i % 30), ("r1", "e1"), "something long to say " * 10)
            if i % 3 == 0:
                s.rest(i * 4 + 3, i * 4 + 3.5, i * 4 + 4)
        s.page([Anomaly("rule%d" % (i % 20), long, range(i, i + 50), i * 1.0) for i in range(3000)])
        self.assertLess(len(s.html.encode()), 2_000_000)


if __name__ == "__main__":
    unittest.main()

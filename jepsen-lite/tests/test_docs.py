"""The page names each checker, the list each nemesis, and the examples of jepsen-lite/README.md work."""

import os
import random
import re
import subprocess
import sys
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from history import History  # noqa: E402
from lab import client, found  # noqa: E402

with open(os.path.join(HERE, "..", "..", "docs", "jepsen-lite.md"), encoding="utf-8") as page:
    PAGE = page.read()
with open(os.path.join(HERE, "..", "README.md"), encoding="utf-8") as page:
    BLOCKS = {m.group(1): m.group(2) for m in re.finditer(r"```python\n# jepsen-lite/(\S+)\n(.*?)```", page.read(), re.S)}


def module(path):
    out = types.ModuleType(path.replace("/", "."))
    out.__package__ = path.split("/")[0]
    exec(compile(BLOCKS[path], path, "exec"), out.__dict__)
    return out


class Examples(unittest.TestCase):
    def test_each_example_is_short(self):
        self.assertEqual(set(BLOCKS), {"workloads/models.py", "checkers/models.py", "nemeses/blink.py"})
        for path, text in BLOCKS.items():
            self.assertLessEqual(len([line for line in text.splitlines() if line.strip()]), 24, path)

    def test_the_example_checker_reads_the_example_workloads_history(self):
        rows = []
        for body, status, error in ((b'{"data":[{"id":"m"}]}', 200, None), (b'{"data":[]}', 200, None),
                                    (b"", 0, "refused")):
            answer = types.SimpleNamespace(finished=error is None, status=status, body=body, error=error)
            with unittest.mock.patch.object(client, "ask", lambda *_: answer):
                self.step(rows)
        self.assertEqual([a.ids for a in module("checkers/models.py").check(History(rows))], [[2]])
        self.assertEqual(module("checkers/models.py").figures(History(rows)), {"lists": 3})

    def step(self, rows):
        class Recorder:
            def invoke(self, process, f, value):
                self.row = {"process": process, "f": f, "id": len(rows) // 2 + 1}
                rows.append(dict(self.row, t=len(rows), type="invoke", value=value))
                return self

            def ok(self, value):
                rows.append(dict(self.row, t=len(rows), type="ok", value=value))

            def info(self, value):
                rows.append(dict(self.row, t=len(rows), type="info", value=value))

        service = types.SimpleNamespace(anyone=lambda rng: ("r1", "10.77.1.1", 8080))
        module("workloads/models.py").Workload(service, Recorder(), None).step(types.SimpleNamespace(name="c1"), None)

    def test_the_example_nemesis_repairs_its_fault(self):
        said = []
        host = types.SimpleNamespace(run=lambda *argv: said.append(argv[-1]))
        engines = [types.SimpleNamespace(name=n, host=host) for n in ("e1", "e2")]

        class Recorder:
            pass

        service = types.SimpleNamespace(engines=engines, routers=[], recorder=Recorder())
        nemesis = module("nemeses/blink.py").Blink()
        about = nemesis.start(service, random.Random(1))
        nemesis.stop(service)
        self.assertEqual(len(about["hosts"]), 1)
        self.assertEqual(said[-1], "up")


class Lists(unittest.TestCase):
    def test_list_describes_each_workload_and_nemesis(self):
        self.assertEqual([], [n for all_of_them in (found.workloads(), found.nemeses()) for n, c in all_of_them.items()
                              if not re.fullmatch(r"[A-Z0-9].{10,}\.", found.about(c))])
        done = subprocess.run([os.path.join(HERE, "..", "run"), "--list"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("\n  service            Requests of all kinds, as clients of an LLM service send them, to routers and",
                      done.stdout)
        self.assertIn("\n  kill               SIGKILL to routers.\n", done.stdout)

    def test_list_names_each_nemesis(self):
        done = subprocess.run([os.path.join(HERE, "..", "run"), "--list"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual([], [n for n in found.nemeses() if not re.search(r"^  %s\s" % re.escape(n), done.stdout, re.M)])
        self.assertIn("`jepsen-lite/run --list`", PAGE)

    def test_the_page_lists_the_rules_of_each_checker(self):
        self.assertEqual([], [n for n in found.checkers() if not re.search(r"^- \*\*%s\*\*(, also)? \(" % n, PAGE, re.M)])


if __name__ == "__main__":
    unittest.main()

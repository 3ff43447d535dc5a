"""A promise of routing that is broken: quality-bench ends with an error, and so does `make bench`, which goes on."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

import lib

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BENCH = os.path.abspath(f"{lib.BUILD}/tests/bench/quality-bench")
PICTURE = f"{TOP}/tests/bench/quality/picture.py"
sys.path.insert(0, os.path.dirname(PICTURE))
import picture  # noqa: E402

DRAWS = ("--section", "draws", "--draws", "2", "--mixed", "0", "--asks", "20")

FAKE = """#!/bin/sh
while [ "$1" != --json ]; do shift; done
: >"$2"
echo "BROKEN late: it is"
exit 1
"""


def bench(*args):
    r = subprocess.run((BENCH, *args), capture_output=True, text=True, timeout=120 * lib.SLOW)
    return r.returncode, r.stdout


class Verdict(unittest.TestCase):
    def test_a_kept_promise_is_reported(self):
        status, says = bench("--section", "cases", "--workload", "slow-answer")
        self.assertEqual(says.count("kept   slow-answer"), 3, says)
        self.assertIn("\n0 promises broken\n", says)
        self.assertEqual(status, 0, says)

    def test_a_broken_promise_fails_the_bench(self):
        """No policy keeps a regret of 0."""
        status, says = bench(*DRAWS, "--regret", "0")
        self.assertIn("BROKEN regret: 2 draws: mean TTFT", says)
        self.assertIn("\n1 promise broken: regret: 2 draws\n", says)
        self.assertEqual(status, 1, says)

    def test_a_known_broken_promise_has_its_own_status(self):
        """The promise still counts as broken: the status says that this is known."""
        status, says = bench(*DRAWS, "--regret", "0", "--known", "bursts: 1 router;regret: 2 draws")
        self.assertIn("BROKEN regret: 2 draws", says)
        self.assertIn("\n1 promise broken: regret: 2 draws (known)\n", says)
        self.assertEqual(status, 3, says)
        status, says = bench(*DRAWS, "--regret", "0", "--known", "regret: 2 draw;regret: 22 draws")
        self.assertEqual(status, 1, says)


class Documented(unittest.TestCase):
    def test_promises_that_the_page_lists_as_broken_are_known(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write("| promise | measured | |\n|---|---|---|\n"
                       "| bursts | 8 routers: 48 at once: TTFT 1 s | **broken** |\n"
                       "| late | 4 routers: well | kept |\n"
                       "| no-reuse | load 0.30: p99: 2 s | **broken** |\n")
            page.flush()
            out = subprocess.run((PICTURE, "known", page.name), capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, "bursts: 8 routers;no-reuse: load 0.30\n")

    def test_the_pages_broken_promises_are_all_read(self):
        with open(f"{TOP}/docs/quality.md") as f:
            page = f.read()
        out = subprocess.run((PICTURE, "known", f"{TOP}/docs/quality.md"), capture_output=True, text=True,
                             check=True).stdout.strip()
        self.assertEqual(len([x for x in out.split(";") if x]), len(re.findall(r"\*\*broken\*\* \|$", page, re.M)))


class Brief(unittest.TestCase):
    def test_one_row_for_all_numbers_of_routers(self):
        rows = [{"kind": "row", "case": f"coding, engines x 1, {routers}", "policy": policy, "cached": cached,
                 "ttft_s": ttft_s, "bound": policy == "perfect"}
                for routers, figures in (("1 router", (0.96, 0.34, 0.97, 0.3, 0.9, 1.9)),
                                         ("8 routers", (0.95, 0.34, 0.97, 0.3, 0.8, 1.5)))
                for policy, cached, ttft_s in zip(("cache_aware", "perfect", "session"), figures[::2], figures[1::2])]
        out = list(picture.brief_table(rows, None))[2:]
        self.assertEqual(out, ["| coding, engines x 1 | 95.0 to 96.0 %, 0.34 s | 97.0 %, 0.30 s | "
                               "80.0 to 90.0 %, 1.50 to 1.90 s (session) |"])


class Run(unittest.TestCase):
    def test_make_bench_goes_on_and_fails_at_its_end(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(f"{build}/tests/bench")
            for name, text in (("quality-bench", FAKE), ("other_bench", "#!/bin/sh\necho the parts\n")):
                path = f"{build}/tests/bench/{name}"
                with open(path, "w") as f:
                    f.write(text)
                os.chmod(path, stat.S_IRWXU)
            r = subprocess.run((f"{TOP}/tests/bench/run.sh", "quality", "micro"), capture_output=True, text=True,
                               env={**os.environ, "BUILD": build, "GRAPEVINE_SHARED": "/nonexistent"},
                               timeout=60 * lib.SLOW)
        self.assertIn("quality: a promise is broken", r.stdout, r.stderr)
        self.assertIn("the parts", r.stdout)
        self.assertEqual(r.returncode, 1, r.stderr)


if __name__ == "__main__":
    unittest.main()

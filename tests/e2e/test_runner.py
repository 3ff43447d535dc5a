"""tests/run.sh and its calls from the Makefile, on a tree with its own tests: a test that did not run is never a
success."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TESTS = '''
import unittest

class Some(unittest.TestCase):
    def test_passes(self):
        pass

    def test_skips(self):
        """With a docstring."""
        self.skipTest("nothing to try it with")

class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("nothing of it")

    def test_never(self):
        pass
'''


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tests = os.path.join(folder.name, "tests")
        os.makedirs(os.path.join(self.tests, "e2e"))
        shutil.copy(os.path.join(TOP, "tests", "run.sh"), self.tests)
        self.write("e2e/test_three.py", TESTS)
        self.write("skips.txt", "# none\n")

    def write(self, name, text):
        with open(os.path.join(self.tests, name), "w") as f:
            f.write(text)

    def run_tests(self, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("CI", "FILTER", "ONLY", "VERBOSE")}
        p = subprocess.run(["bash", os.path.join(self.tests, "run.sh"), "build"], env={**clean, **env},
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return p.returncode, p.stdout.splitlines()[-1], p.stdout

    def test_a_filter_that_matches_no_test_fails(self):
        for name in ("typo", "test_thre.Some.test_passes", "http/json_test.vectors"):
            status, last, text = self.run_tests(FILTER=name)
            self.assertEqual((status, last), (1, "0 passed, 1 failed"))
            self.assertIn("no test matches FILTER=" + name, text)
        self.assertEqual(self.run_tests(FILTER="test_three.Some.test_typo")[0], 1)

    def test_one_method_of_one_file(self):
        self.assertEqual(self.run_tests(FILTER="test_three.Some.test_passes", CI="true")[:2], (0, "1 passed, 0 failed"))
        self.assertEqual(self.run_tests(FILTER="test_three.Some")[:2], (0, "1 passed, 0 failed, 1 skipped"))

    def test_ci_fails_on_a_skip_that_is_not_listed(self):
        self.assertEqual(self.run_tests()[:2], (0, "1 passed, 0 failed, 2 skipped"))
        status, last, text = self.run_tests(CI="true")
        self.assertEqual((status, last), (1, "1 passed, 2 failed"))
        self.assertIn("test_three.Some.test_skips was skipped, and tests/skips.txt does not have it", text)
        self.write("skips.txt", "test_three.Some.test_skips any a reason\ntest_three.Whole build a reason\n")
        self.assertEqual(self.run_tests(CI="true")[:2], (0, "1 passed, 0 failed, 2 skipped"))
        self.write("skips.txt", "test_three.Some.test_skips asan a reason\ntest_three.Whole asan a reason\n")
        self.assertEqual(self.run_tests(CI="true")[:2], (1, "1 passed, 2 failed"))

    # --- make

    def make(self, *words, **env):
        """Replaces the build: nothing is built."""
        top = os.path.dirname(self.tests)
        shutil.copy(os.path.join(TOP, "Makefile"), top)
        for path, text in (("tests/lib/deps.sh", ""), ("jepsen-lite/tests/test_lite.py", TESTS),
                           ("jepsen-lite/run", "echo 'skipped: no tun'; exit 77")):
            path = os.path.join(top, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text if path.endswith(".py") else "#!/bin/sh\n%s\n" % text)
            os.chmod(path, 0o755)
        clean = {k: v for k, v in os.environ.items()
                 if k not in ("CI", "FILTER", "ONLY", "VERBOSE", "BUILD", "VARIANT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        p = subprocess.run(["make", "-s", "MAKE=echo made", *words], cwd=top, env={**clean, **env}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
        return p.returncode, p.stdout

    def test_make_test_one_runs_a_test_of_either_kind(self):
        for name in ("test_three.Some.test_passes", "test_lite.Some.test_passes"):
            status, text = self.make("test-one", "TEST=" + name)
            self.assertEqual((status, text.splitlines()[-1]), (0, "1 passed, 0 failed"), text)

    def test_a_typo_is_reported_before_the_build(self):
        for name in ("test_lita.Some.test_passes", "http/jsom_test.vectors"):
            status, text = self.make("test-one", "TEST=" + name)
            self.assertNotEqual(status, 0)
            self.assertIn("there is no tests/unit/%s.c" % name.split(".")[0], text)
            self.assertNotIn("made", text)

    def test_ci_fails_if_jepsen_lite_lacks_a_requirement(self):
        for ci, fails in (("", False), ("true", True)):
            status, text = self.make("jepsen", CI=ci)
            self.assertIn("skipped: no tun", text)
            self.assertEqual(status != 0, fails, text)


if __name__ == "__main__":
    unittest.main()

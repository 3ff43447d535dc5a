"""tests/run.sh itself, on a tree with three tests of its own: what did not run is never a success."""

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

    def test_a_filter_that_fits_nothing_fails(self):
        for name in ("typo", "test_thre.Some.test_passes", "http/json_test.vectors"):
            status, last, text = self.run_tests(FILTER=name)
            self.assertEqual((status, last), (1, "0 passed, 1 failed"))
            self.assertIn("no test matches FILTER=" + name, text)
        self.assertEqual(self.run_tests(FILTER="test_three.Some.test_typo")[0], 1)

    def test_one_method_of_one_file(self):
        self.assertEqual(self.run_tests(FILTER="test_three.Some.test_passes", CI="true")[:2], (0, "1 passed, 0 failed"))
        self.assertEqual(self.run_tests(FILTER="test_three.Some")[:2], (0, "1 passed, 0 failed, 1 skipped"))

    def test_ci_fails_on_a_skip_that_no_list_has(self):
        self.assertEqual(self.run_tests()[:2], (0, "1 passed, 0 failed, 2 skipped"))
        status, last, text = self.run_tests(CI="true")
        self.assertEqual((status, last), (1, "1 passed, 2 failed"))
        self.assertIn("test_three.Some.test_skips was skipped, and tests/skips.txt does not have it", text)
        self.write("skips.txt", "test_three.Some.test_skips any a reason\ntest_three.Whole build a reason\n")
        self.assertEqual(self.run_tests(CI="true")[:2], (0, "1 passed, 0 failed, 2 skipped"))
        self.write("skips.txt", "test_three.Some.test_skips asan a reason\ntest_three.Whole asan a reason\n")
        self.assertEqual(self.run_tests(CI="true")[:2], (1, "1 passed, 2 failed"))


if __name__ == "__main__":
    unittest.main()

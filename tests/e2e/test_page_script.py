"""The page's texts and requests, by its own script run in Node.js with a minimal browser (tests/page/world.mjs). `make
test-page` tests it in a real one."""

import os
import shutil
import subprocess
import unittest

from lib_deploy import path


@unittest.skipUnless(shutil.which("node"), "Node.js is not here")
class Script(unittest.TestCase):
    def run_file(self, name):
        p = subprocess.run(["node", path("tests", "page", name)], capture_output=True, text=True, timeout=100,
                           env={k: v for k, v in os.environ.items() if k != "NODE_OPTIONS"})
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertNotIn("# pass 0", p.stdout)

    def test_the_stream(self):
        self.run_file("stream_test.mjs")

    def test_the_words(self):
        self.run_file("words_test.mjs")


if __name__ == "__main__":
    unittest.main()

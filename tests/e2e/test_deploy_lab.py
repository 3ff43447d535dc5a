"""Three routers with TLS, keys and tokens on one machine, as in docs/how-to/secure.md: its commands as written, in
their own network."""

import os
import subprocess
import tempfile
import unittest

from lib import BUILD, LIMIT
from lib_deploy import commands
from test_readme import namespace


class Lab(unittest.TestCase):
    def test_the_pages_commands_work(self):
        wrap = namespace()
        if not wrap:
            self.skipTest("skipped, needs a network namespace")
        tests = os.path.join(BUILD, "tests")
        script = "(engine-sim --listen 127.0.0.1:8001 >engine.log 2>&1 & echo $! >pid)\n%s%swait\nkill $(cat pid)\n" % (
            commands("Make the files"), commands("One machine, to try it"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")}
        env["PATH"] = os.pathsep.join([os.path.abspath(BUILD), os.path.abspath(tests), env["PATH"]])
        with tempfile.TemporaryDirectory(prefix="grapevine-lab-") as folder:
            p = subprocess.Popen(wrap + ["bash", "-euc", script], cwd=folder, env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
            try:
                out = p.communicate(timeout=4 * LIMIT)[0]
            except subprocess.TimeoutExpired:
                p.kill()
                out = p.communicate()[0]
            finally:
                subprocess.run(["pkill", "-9", "-s", str(p.pid)])
        self.assertEqual(p.returncode, 0, out)
        for what in ("All 3 living routers hold the same state", '"object":"list"', "ready\n"):
            self.assertIn(what, out)


if __name__ == "__main__":
    unittest.main()

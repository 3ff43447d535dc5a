"""README.md as a reader uses it: every ```sh block pasted into one shell, in order, from the top of
a checkout. Before the last block, which stops everything, come those of "Try it" in docs/replication.md; their last
one comes after it.

The checkout is a copy with the programs of this build, so nothing is compiled and nothing is left
here. The ports are those of the page, in a network namespace of their own if possible.
Left out by rule: blocks of nothing but `make demo` and `make test`, which take minutes (and the
second runs this test). Blocks in other languages (text, yaml) are the reader's own network."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from lib import BUILD, wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PORTS = [8001, 8002, 8080, 8081, 8082, 8083, 9090, 9091, 9092, 9093, 7491, 7492, 7493]
SECONDS = 180
LEFT_OUT = re.compile(r"make (demo|test)\b")
LANGUAGES = {"sh", "text", "yaml", ""}
LEFT_BEHIND = ("asan", "cov", "fuzz", "lab", "ablation", "trained", "unit")

# Brings up the loopback of a new network namespace, then becomes the command.
LOOPBACK = """
import fcntl, os, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def fenced(text):
    """[(language, text)] of the code blocks."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def commands(block):
    return [line for line in block.split("\n") if line.strip() and not line.startswith("#")]


def namespace():
    """A prefix that runs a command with its own network, or nothing."""
    for flags in (["-n"], ["-rn"]):
        wrap = ["unshare", *flags, "python3", "-c", LOOPBACK]
        try:
            if subprocess.run(wrap + ["true"], capture_output=True).returncode == 0:
                return wrap
        except FileNotFoundError:
            return []
    return []


def ports_taken():
    taken = []
    for port in PORTS:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                taken.append(port)
    return taken


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(TOP, "README.md")) as f:
            cls.page = f.read()
        with open(os.path.join(TOP, "docs", "replication.md")) as f:
            cls.more = re.search(r"^## Try it\n(.*?)^## ", f.read(), re.M | re.S).group(1)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="grapevine-readme-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.end_what_runs)

    def copy(self):
        """The files of the checkout, and this build as build/: make has nothing to do."""
        for at, folders, names in os.walk(TOP):
            if at == TOP:
                folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
            for name in names:
                path = os.path.join(at, name)
                self.copy_file(path, os.path.relpath(path, TOP))
        self.link(BUILD, os.path.join(self.folder, "build"),
                  lambda at, names: [n for n in names if n in LEFT_BEHIND and at in (BUILD, BUILD + "/tests")])
        # The flags name the folder: other ones would have make compile all of it.
        flags = os.path.join(self.folder, "build", "flags")
        times = os.stat(flags)
        with open(flags) as f:
            text = f.read()
        os.remove(flags)  # it is a link
        with open(flags, "w") as f:
            f.write(text.replace(TOP + "=.", os.path.realpath(self.folder) + "=."))
        os.utime(flags, ns=(times.st_atime_ns, times.st_mtime_ns))

    def link(self, path, to, left_out):
        def one(path, to):
            try:
                os.link(path, to)
            except OSError:  # another file system
                shutil.copy2(path, to)
        shutil.copytree(path, to, copy_function=one, ignore=left_out)

    def copy_file(self, path, name):
        to = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(path, to)  # with its time: make has nothing to do

    def files(self):
        """Outside of build/, which git ignores."""
        found = set()
        for at, folders, names in os.walk(self.folder):
            if at == self.folder:
                folders.remove("build")
            found |= {os.path.join(at, n) for n in names}
        return found

    def running(self):
        """Programs of the copy."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink("/proc/%s/exe" % pid).startswith(self.folder):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def end_what_runs(self):
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.running(), "the end of what was started")

    def paste(self, blocks):
        """Runs them in one bash; [(what it printed, the commands that failed)] of each."""
        script = ["trap 'echo \"@@failed $BASH_COMMAND\"' ERR"]
        for block in blocks:
            script += [block, "echo @@next"]
        path = os.path.join(self.folder, "build", "pasted.sh")
        with open(path, "w") as f:
            f.write("\n".join(script))
        wrap = namespace()
        taken = [] if wrap else ports_taken()
        if taken:
            self.skipTest("ports %s are taken, and no network namespace can be made here" % taken)
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("GRAPEVINE_", "MAKE", "MFLAGS", "BUILD"))}
        with open(os.path.join(self.folder, "build", "pasted.log"), "w+") as log:
            p = subprocess.Popen(wrap + ["bash", path], cwd=self.folder, env=env, stdout=log,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 start_new_session=True)
            try:
                p.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
            log.seek(0)
            self.printed = log.read()
        parts = self.printed.split("@@next\n")
        self.assertEqual((p.returncode, len(parts)), (0, len(blocks) + 1), self.printed)
        return [(text, re.findall(r"^@@failed (.*)$", text, re.M)) for text in parts[:-1]]

    def answers(self, text):
        """[(replica, cached tokens)]"""
        return [(a, int(n)) for a, n in re.findall(
            r'x-grapevine-replica: (\S+)\s+"prompt_tokens":\d+\s+"cached_tokens":(\d+)', text)]

    def test_the_readme_works_pasted_block_by_block(self):
        self.assertLessEqual({language for language, _ in fenced(self.page)}, LANGUAGES)
        blocks = [text for language, text in fenced(self.page) if language == "sh"]
        pasted = [b for b in blocks if not all(map(LEFT_OUT.match, commands(b)))]
        self.assertEqual(len(blocks) - len(pasted), 1, "one block is left out")
        more = [text for language, text in fenced(self.more) if language == "sh"]
        pasted[-1:] = more[:-1] + pasted[-1:] + more[-1:]
        self.copy()
        files = self.files()
        results = self.paste(pasted)
        for block, (text, failed) in zip(pasted, results):
            self.assertEqual(failed, [], "%s\n--- printed:\n%s" % (block, text))
        text = "".join(text for text, _ in results)

        asked = self.answers(text)
        self.assertEqual(len(asked), 4, text)
        (first, none), (second, some), (at_r1, _), (at_r3, shared) = asked
        self.assertEqual((first, none), (second, 0))
        self.assertGreater(some, 1000)
        self.assertEqual(at_r1, at_r3)
        self.assertGreater(shared, 1000)
        self.assertIn('grapevine_answered_cached_tokens_total{replica="%s",model="m"} %d\n'
                      % (first, some), text)
        self.assertRegex(text, r'grapevine_answered_prompt_tokens_total\{replica="%s",model="m"\} [1-9]'
                         % re.escape(first))
        self.assertEqual(text.count("All 3 living routers hold the same state"), 2, text)

        self.assertEqual(self.running(), [])
        self.assertEqual(self.files(), files)
        self.assertNotIn("cluster.key", os.listdir(os.path.join(self.folder, "build")))

    def test_the_readmes_settings_are_accepted(self):
        for text in (text for language, text in fenced(self.page) if language == "yaml"):
            path = os.path.join(self.folder, "settings.yaml")
            with open(path, "w") as f:
                f.write(text)
            p = subprocess.run([os.path.join(BUILD, "grapevine"), "--check-config", "--config", path],
                               capture_output=True, timeout=SECONDS)
            self.assertEqual(p.returncode, 0, p.stderr.decode())

    def test_make_names_the_packages_that_are_missing(self):
        """Instead of the compiler's error about the first missing header."""
        self.copy()
        shutil.rmtree(os.path.join(self.folder, "build"))
        compiler = os.path.join(self.folder, "cc")
        with open(compiler, "w") as f:
            f.write('#!/bin/sh\nasked=$(cat)\n'
                    'case $asked in *uv.h*|*yaml.h*) exit 1 ;; esac\nexit 0\n')
        os.chmod(compiler, 0o755)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        for cc, packages in ((compiler, "libuv1-dev libyaml-dev"), ("no-cc", "build-essential")):
            p = subprocess.run(["make", "-j2", "CC_release=" + cc], cwd=self.folder, env=env,
                               capture_output=True, timeout=SECONDS)
            said = p.stderr.decode()
            self.assertNotEqual(p.returncode, 0)
            self.assertIn("These Debian packages are missing: %s\n" % packages, said)
            self.assertIn("make deps", said)
            self.assertEqual(said.count("missing"), 1, said)


if __name__ == "__main__":
    unittest.main()

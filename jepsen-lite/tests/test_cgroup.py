"""Memory groups on trees of files in place of the kernel's: of version 1, of version 2, and of neither."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from lab import cgroup  # noqa: E402


class Groups(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, path, text=""):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def text(self, path):
        with open(os.path.join(self.root, path)) as f:
            return f.read()

    def find(self, mine):
        return cgroup.find(self.root, self.put("mine", mine))

    def group(self, path, handed=""):
        self.put(path + "/cgroup.procs")
        self.put(path + "/cgroup.subtree_control", handed)

    def test_version_1(self):
        self.put("memory/a/b/memory.limit_in_bytes")
        m = self.find("5:cpu:/c\n4:cpuset,memory:/a/b\n0::/\n")
        self.assertEqual((m.home, m.parent), (self.root + "/memory/a/b",) * 2)
        m.confine(7, 123, 4096)
        self.assertEqual(self.text("memory/a/b/jepsen-lite-123/memory.limit_in_bytes"), "4096")
        self.assertEqual(self.text("memory/a/b/jepsen-lite-123/cgroup.procs"), "7")
        m.release(7)
        self.assertEqual(self.text("memory/a/b/cgroup.procs"), "7")

    def test_version_1_in_a_container_that_sees_its_own_group_as_the_root(self):
        self.put("memory/memory.limit_in_bytes")
        self.assertEqual(self.find("4:memory:/of/the/host\n").parent, self.root + "/memory")

    def test_version_2_uses_the_nearest_group_that_delegates_memory(self):
        """A systemd session delegates nothing, because it has processes; its slice delegates memory."""
        self.group("user.slice/user-0.slice/session-1.scope")
        self.group("user.slice/user-0.slice", "memory pids\n")
        self.group("user.slice", "memory pids\n")
        self.group(".", "cpu memory\n")
        m = self.find("0::/user.slice/user-0.slice/session-1.scope\n")
        self.assertEqual(m.home, self.root + "/user.slice/user-0.slice/session-1.scope")
        self.assertEqual(m.parent, self.root + "/user.slice/user-0.slice")
        self.put("user.slice/user-0.slice/jepsen-lite-123/memory.swap.max", "max")  # the kernel makes it
        m.confine(7, 123, 4096)
        for name, value in (("memory.max", "4096"), ("memory.swap.max", "0"), ("cgroup.procs", "7")):
            self.assertEqual(self.text("user.slice/user-0.slice/jepsen-lite-123/" + name), value)
        m.release(7)
        self.assertEqual(self.text("user.slice/user-0.slice/session-1.scope/cgroup.procs"), "7")

    def test_version_2_below_the_root(self):
        self.group("a")
        self.group(".", "memory")
        self.assertEqual(self.find("0::/a\n").parent, self.root)
        self.assertEqual(self.find("0::/\n").parent, self.root)

    def test_no_group_is_found_if_none_delegates_memory(self):
        self.group("a", "pids")
        self.group(".", "cpu pids")
        self.assertIsNone(self.find("0::/a\n"))

    def test_no_group_is_found_without_cgroups(self):
        self.assertIsNone(self.find(""))
        self.assertIsNone(cgroup.find(self.root, self.root + "/nothing"))

    # Groups are folders without files here: the kernel removes a group together with its files.

    def make(self, *numbers):
        for n in numbers:
            os.mkdir(os.path.join(self.root, "jepsen-lite-%s" % n))
        return cgroup.Memory(self.root, self.root, "memory.max")

    def left(self):
        return sorted(os.listdir(self.root))

    def test_a_run_removes_its_own_group(self):
        cgroup.clean(os.getpid(), self.make(os.getpid()))
        self.assertEqual(self.left(), [])

    def test_groups_of_other_running_runs_stay(self):
        """Process 1 lives; a number that no process has is one of a run that was killed."""
        cgroup.clean(os.getpid(), self.make(1, 1 << 30, os.getpid()))
        self.assertEqual(self.left(), ["jepsen-lite-1"])

    def test_a_group_in_use_is_no_error(self):
        memory = self.make(os.getpid())
        self.put("jepsen-lite-%d/busy" % os.getpid())
        cgroup.clean(os.getpid(), memory, wait_s=0.1)
        self.assertEqual(self.left(), ["jepsen-lite-%d" % os.getpid()])


if __name__ == "__main__":
    unittest.main()

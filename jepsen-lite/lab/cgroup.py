"""The memory group (cgroup) of a run: its name has the number of the process outside all namespaces, which removes it.

Version 1 has a tree for memory alone. Version 2, of Debian 12, has one tree for all. In that, only a group below a
parent that delegates memory has a limit, and only the root both delegates and has processes. So the group is below the
nearest ancestor that delegates."""

import contextlib
import os
import time

NAME = "jepsen-lite-"
ROOT = "/sys/fs/cgroup"
GONE_S = 2  # until the kernel has let go of a run's last process


class Memory:
    """A place for a group: below `parent`. `home`: the group of this process. `limit`: the file with the limit."""

    def __init__(self, home, parent, limit):
        self.home, self.parent, self.limit = home, parent, limit

    def folder(self, number):
        return os.path.join(self.parent, NAME + str(number))

    def confine(self, pid, number, bytes):
        folder = self.folder(number)
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, self.limit), bytes)
        swap = os.path.join(folder, "memory.swap.max")
        if os.path.exists(swap):
            write(swap, 0)
        write(os.path.join(folder, "cgroup.procs"), pid)

    def release(self, pid):
        with contextlib.suppress(ProcessLookupError):
            write(os.path.join(self.home, "cgroup.procs"), pid)

    def remove(self, number):
        """Returns true if the group is gone."""
        with contextlib.suppress(OSError):
            os.rmdir(self.folder(number))
        return not os.path.exists(self.folder(number))

    def strays(self, alive):
        """Numbers of groups whose run was killed, together with all processes that could remove them."""
        numbers = [n.removeprefix(NAME) for n in os.listdir(self.parent) if n.startswith(NAME)]
        return [n for n in numbers if not (n.isdigit() and alive(int(n)))]


def write(path, value):
    with open(path, "w") as f:
        f.write(str(value))


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def ancestors(path):
    while path not in ("", "/"):
        yield path
        path = os.path.dirname(path)
    yield ""


def find(root=ROOT, mine="/proc/self/cgroup"):
    """A Memory, or None: this machine has none that may be written."""
    rows = [line.split(":", 2) for line in read(mine).splitlines()]
    one = [path for _, kinds, path in rows if "memory" in kinds.split(",")]
    for path in one + ["/"]:
        home = root + "/memory" + path.rstrip("/")
        if os.access(home + "/memory.limit_in_bytes", os.W_OK):
            return Memory(home, home, "memory.limit_in_bytes")
    for path in [path for number, kinds, path in rows if number == "0" and not kinds]:
        for parent in (root + p for p in ancestors(path)):
            handed = read(parent + "/cgroup.subtree_control").split()
            if "memory" in handed and all(os.access(p + "/cgroup.procs", os.W_OK) for p in (root + path.rstrip("/"), parent)):
                return Memory(root + path.rstrip("/"), parent, "memory.max")
    return None


def clean(number, memory=None, wait_s=GONE_S):
    """Cleans up after a run, by process number: its group, and those of killed runs."""
    memory = memory or find()
    if memory is None:
        return
    for stray in memory.strays(lambda n: n != number and os.path.exists("/proc/%d" % n)):
        end = time.monotonic() + wait_s
        while not memory.remove(stray) and stray == str(number) and time.monotonic() < end:
            time.sleep(0.05)

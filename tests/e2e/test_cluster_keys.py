"""The keys of a cluster: which routers get in, and how a key is changed."""

import os
import random
import re
import select
import signal
import socket
import stat
import struct
import unittest

from lib import HOST, LIMIT, wait_for
from lib_cluster import Clustered, gvctl, run_grapevine


class Keys(Clustered):
    def test_a_cluster_without_a_key_does_not_start(self):
        for args in (("--gossip-listen", HOST + ":0"), ("--join", HOST)):
            status, err = run_grapevine("--replica", "http://127.0.0.1:1", *args)
            self.assertEqual(status, 2, err)
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertIn("gvctl keygen --out FILE", err)
            self.assertIn("insecure-gossip", err)

    def test_settings_that_contradict_each_other(self):
        one = ("--replica", "http://127.0.0.1:1")
        for args, word in (
                (("--insecure-gossip",), "alone"),
                (("--cluster-key-file", self.key), "alone"),
                (("--gossip-advertise", "1.2.3.4:5"), "alone"),
                (("--node-name", "router-1"), "alone"),
                (("--join", HOST, "--insecure-gossip", "--cluster-key-file", self.key), "insecure"),
                (("--gossip-listen", "nonsense", "--insecure-gossip"), "HOST:PORT"),
                (("--join", ":1", "--insecure-gossip"), "join"),
                (("--gossip-advertise", HOST, "--join", HOST, "--insecure-gossip"), "advertise"),
                (("--gossip-advertise", "0.0.0.0:7", "--join", HOST, "--insecure-gossip"), "reach"),
                (("--gossip-advertise", "[::]:7", "--join", HOST, "--insecure-gossip"), "reach"),
                (("--gossip-listen", HOST + ":0", "--cluster-key-file", "/does/not/exist"),
                 "/does/not/exist")):
            status, err = run_grapevine(*one, *args)
            self.assertEqual((status, len(err.splitlines())), (2, 1), err)
            self.assertIn(word, err)
        bad = os.path.join(self.folder.name, "bad")
        with open(os.open(bad, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("hash 12\n")
        status, err = run_grapevine(*one, "--gossip-listen", HOST + ":0", "--cluster-key-file", bad)
        self.assertEqual((status, len(err.splitlines())), (2, 1), err)
        self.assertIn("line 1", err)

    def test_insecure_gossip_logs_a_warning(self):
        e = self.engine()
        r = self.node("r1", [e], "--insecure-gossip", key="")
        self.assertEqual(r.wait_event("insecure_gossip")["level"], "warn")
        other = self.node("r2", [e], "--insecure-gossip", key="", join=r)
        self.wait_alive(other, ["r1", "r2"])

    def test_a_key_file_that_others_can_read_logs_a_warning(self):
        os.chmod(self.key, 0o644)
        r = self.node("r1", [self.engine()])
        self.assertEqual(r.wait_event("cluster_key_readable")["level"], "warn")

    def test_a_router_with_the_wrong_key_never_joins(self):
        e = self.engine()
        first = self.node("r1", [e])
        other = self.node("r2", [e], join=first, key=self.new_key("other.key"), ready=False)
        wait_for(lambda: other.admin("GET", "/readyz").status == 200, "r2 alone")
        first.wait_event("gossip_refused_key")
        self.assertEqual((self.alive(first), self.alive(other)), (["r1"], ["r2"]))

    def test_garbage_gets_no_answer(self):
        r = self.node("r1", [self.engine()])
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((HOST, 0))
        rng = random.Random(1)
        for size in list(range(0, 130)) + [512, 1200, 1232, 1233, 1500, 9000, 65507]:
            for _ in range(3):
                data = bytes(rng.randrange(256) for _ in range(size))
                s.sendto(data, (HOST, r.gossip_port))
                s.sendto(bytes([1 + rng.randrange(4)]) + data[1:], (HOST, r.gossip_port))
        s.settimeout(1)
        with self.assertRaises(socket.timeout):
            s.recvfrom(65536)
        s.close()
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(rng.randrange(256) for _ in range(5000))):
            t = socket.create_connection((HOST, r.gossip_port), LIMIT)
            t.sendall(data)
            t.shutdown(socket.SHUT_WR)
            try:
                self.assertEqual(t.recv(100), b"")
            except ConnectionResetError:
                pass
            t.close()
        self.assertEqual(r.admin("GET", "/readyz").status, 200)

    def test_idle_connections_keep_no_member_out(self):
        e = self.engine()
        first = self.node("r1", [e])
        idle = [socket.create_connection((HOST, first.gossip_port), LIMIT) for _ in range(200)]
        wait_for(lambda: first.metric("gossip_calls_refused_total") >= 200 - 64, "the first ones are closed")
        # The router closes the oldest first, so a member that connects now is safe. Checked from the newest on,
        # because more may be closed meanwhile.
        gone = [bool(select.select([s], [], [], 0)[0]) for s in reversed(idle)]
        self.assertEqual(gone, sorted(gone))
        second = self.node("r2", [e], join=first)
        self.assertEqual(second.events("snapshot_failed"), [])
        self.wait_alive(second, ["r1", "r2"])
        for s in idle:
            s.close()

    def test_a_slow_handshake_is_closed(self):
        """Each byte counts as activity, but one time limit holds for the whole handshake."""
        r = self.node("r1", [self.engine()])
        with socket.create_connection((HOST, r.gossip_port), LIMIT) as s:
            s.sendall(struct.pack("<H", 4 + 32 + 16))  # the length of its hello

            def closed():
                if select.select([s], [], [], 0)[0]:
                    return True
                s.sendall(b"\0")
                return False
            wait_for(closed, "it is closed", step=1)
        self.assertEqual(r.metric("gossip_calls_refused_total"), 0)  # the bytes so far were valid

    def test_a_new_key_file_is_private_and_never_lost(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)
        before = self.read_key()
        status, out, err = gvctl("keygen", "--out", self.key)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("already", err)
        self.assertEqual(self.read_key(), before)
        status, out, err = gvctl("keygen")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, "(?m)^hash [0-9a-f]{64}\nkey [0-9a-f]{64}$")
        self.assertEqual(gvctl("keygen", "--next", self.key, "--promote", self.key)[0], 2)

    def test_a_rotation_only_goes_forward(self):
        """--finish without --promote took the old key and left the new; --promote twice undid it."""
        def key_ids(text):
            return re.findall("[0-9a-f]{8}", text.splitlines()[0])

        def refused(option, word):
            before = self.read_key()
            status, out, err = gvctl("keygen", option, self.key)
            self.assertEqual((status, out), (1, ""))
            self.assertIn(word, err)
            self.assertEqual(self.read_key(), before)

        def taken(option):
            status, out, err = gvctl("keygen", option, self.key)
            self.assertEqual((status, err), (0, ""))
            return key_ids(out)
        for option in ("--promote", "--finish"):
            refused(option, "--next")
        old, new = taken("--next")
        refused("--next", "--promote")
        refused("--finish", "--promote")
        self.assertEqual(taken("--promote"), [new, old])
        self.assertEqual(re.findall("(?m)^(key|next|old) ", self.read_key()), ["old", "key"])
        refused("--promote", "--finish")
        refused("--next", "--finish")
        self.assertEqual(taken("--finish"), [new])
        refused("--finish", "--next")

    def secret(self, name, text):
        """A file as Kubernetes mounts it: a link into a folder that is swapped."""
        folder = os.path.join(self.folder.name, name)
        os.makedirs(folder, exist_ok=True)
        version = os.path.join(folder, "..%d" % len(os.listdir(folder)))
        os.mkdir(version)
        with open(os.open(os.path.join(version, "key"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(text)
        os.symlink(version, version + ".new")
        os.replace(version + ".new", os.path.join(folder, "..data"))
        if not os.path.lexists(os.path.join(folder, "key")):
            os.symlink("..data/key", os.path.join(folder, "key"))
        return os.path.join(folder, "key")

    def test_a_new_key_file_is_read_without_a_signal(self):
        """A router that starts with a file two steps ahead of the others finds them too. Before, it began sessions
        with a key that the others did not have, so it was alone, and reported ready."""
        e = self.engine()
        texts = [self.read_key()]
        for option in ("--next", "--promote", "--finish"):
            self.assertEqual(gvctl("keygen", option, self.key)[0], 0)
            texts.append(self.read_key())
        first = self.node("r1", [e], key=self.secret("r1", texts[0]))
        second = self.node("r2", [e], join=first, key=self.secret("r2", texts[0]))
        ahead = self.node("r3", [e], join=first, key=self.secret("r3", texts[2]))
        self.assertEqual(ahead.wait_event("cluster_ready")["from"] in ("r1", "r2"), True)
        nodes = {"r1": first, "r2": second, "r3": ahead}
        for r in nodes.values():
            self.wait_alive(r, ["r1", "r2", "r3"])
        self.secret("r1", "hash 12\n")
        refused = first.wait_event("cluster_key_refused")
        self.assertIn("64 hexadecimal digits", refused["error"])
        for step in (1, 2, 3):
            for name, r in nodes.items():
                if name == "r3" and step < 3:
                    continue
                read = len(r.events("cluster_key_read"))
                self.secret(name, texts[step])
                self.assertEqual(r.wait_event("cluster_key_read", read + 1)["changed"], True)
        self.assertEqual(len(first.events("cluster_key_refused")), 1)
        self.assertEqual(first.events("cluster_key_read")[-1]["keys"], 1)
        said = gvctl("events", admin=first.admin_port)[1]  # a line for each step, to be compared
        for read in first.events("cluster_key_read"):
            self.assertIn("Loaded the cluster key file: keys %s." % read["ids"], said)
        for r in nodes.values():
            self.wait_alive(r, ["r1", "r2", "r3"])
            self.assertEqual(r.events("member_dead"), [])
        self.converge(first, 3)

    def test_the_hash_of_a_running_cluster_cannot_change(self):
        """With different hash keys, routers would give one prompt different ids. The keys in use stay."""
        text = self.read_key()
        r = self.node("r1", [self.engine()], key=self.secret("r1", text))
        digits = re.search("hash ([0-9a-f]{64})", text).group(1)
        self.secret("r1", text.replace(digits, digits[::-1]))
        self.assertIn("`hash` has changed", r.wait_event("cluster_key_refused")["error"])
        self.assertEqual(r.events("cluster_key_read"), [])
        self.wait_alive(self.node("r2", [self.engine()], join=r, key=self.secret("r2", text)), ["r1", "r2"])

    def test_a_key_is_changed_without_a_pause(self):
        e = self.engine()
        nodes = self.cluster(2, [e])
        names = ["r1", "r2"]

        def step(option, n):
            status, out, err = gvctl("keygen", option, self.key)
            self.assertEqual((status, err), (0, ""))
            for i, r in enumerate(nodes):
                r.signal(signal.SIGHUP)
                r.wait_event("cluster_key_read", n)
                self.assertEqual(self.alive(nodes[i]), names)
        old = self.read_key()
        step("--next", 1)
        third = self.node("r3", [e], join=nodes[0])
        names.append("r3")
        for r in nodes:
            self.wait_alive(r, names)
        self.assertEqual(gvctl("keygen", "--next", self.key)[0], 1)
        third.stop()
        names.remove("r3")
        for r in nodes:
            self.wait_alive(r, names)
        step("--promote", 2)
        step("--finish", 3)
        self.assertEqual(gvctl("keygen", "--finish", self.key)[0], 1)
        self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)
        new = self.read_key()
        self.assertNotEqual(new, old)
        self.assertEqual(re.findall("hash .*", new), re.findall("hash .*", old))
        self.assertEqual(len(re.findall("(?m)^(key|next|old) ", new)), 1)
        other = os.path.join(self.folder.name, "other.key")
        with open(other, "w") as f:
            f.write(old)
        outsider = self.node("r4", [e], join=nodes[0], key=other)
        self.assertEqual(self.alive(outsider), ["r4"])
        with open(other, "w") as f:
            f.write(new)
        outsider.signal(signal.SIGHUP)
        outsider.wait_event("cluster_key_read")
        for r in nodes + [outsider]:
            self.wait_alive(r, names + ["r4"])
        with open(self.key, "w") as f:
            f.write("nonsense\n")
        nodes[0].signal(signal.SIGHUP)
        nodes[0].wait_event("cluster_key_refused")
        self.assertEqual(self.alive(nodes[0]), names + ["r4"])


if __name__ == "__main__":
    unittest.main()

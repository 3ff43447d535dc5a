"""/live: the cluster as it happens, for many viewers. Slow ones are in tests/unit/admin/live_test.c."""

import signal
import socket
import time

from lib import HOST, Case, Cut, wait_for
from lib_cluster import Clustered
from lib_live import Viewer
from test_engines import CHAT, message

SECRET = "the-prompt-nobody-may-read"
VIEWERS_MAX = 128


def chat(stream=False):
    return {"model": "sim", "messages": [message("user", SECRET + " word" * 400)], "max_tokens": 4, "stream": stream}


class Live(Case):
    def viewer(self, r, **how):
        v = Viewer(r, **how)
        self.addCleanup(v.close)
        return v.begin()

    def open(self, r):
        return r.metric("connections_open")

    def test_a_viewer_sees_requests_and_changes_but_no_prompts(self):
        sims = [self.sim() for _ in range(2)]
        r = self.router(sims)
        c = self.client(r)
        self.assertEqual(c.post(CHAT, chat(stream=True)).status, 200)
        v = self.viewer(r)
        self.assertEqual(v.status, 200)
        for line in ("Content-Type: text/event-stream", "Cache-Control: no-store", "Connection: close"):
            self.assertIn(line, v.head)
        name, hello = v.next()
        self.assertEqual(name, "hello")
        self.assertEqual(len(hello["decisions"]), 1)
        self.assertIn(" added.", hello["events"][1]["text"] + hello["events"][2]["text"])
        self.assertEqual(hello["router"]["policy"], "cache_aware")
        self.assertEqual((hello["router"]["loopback_only"], hello["router"]["viewers"]), (True, 1))
        self.assertEqual({x["name"] for x in hello["replicas"]}, {s.name for s in sims})
        self.assertIsNone(hello["members"])
        self.assertEqual(hello["agreement"]["state"], "alone")
        for i in range(6):
            self.assertEqual(c.post(CHAT, chat()).status, 200)
        seen, ends = {}, {}

        def all_seen(news):
            seen.update({d["id"]: d for d in news["decisions"]})
            ends.update({e["id"]: e for e in news["ends"]})
            ended = set(ends) | {n for n, d in seen.items() if d["outcome"]}
            return ended >= set(range(2, 8))
        v.wait("news", all_seen, "six decisions and their ends")
        self.assertEqual(seen[5]["why"], "cached")
        snap = v.wait("snap", lambda s: sum(x["cached_tokens"] for x in s["replicas"]) > 0, "the hits")
        self.assertEqual(sum(x["chosen"] for x in snap["replicas"]), 7)
        later = v.next("snap")[1]
        self.assertEqual(later["frame"], snap["frame"] + 1)
        self.assertEqual(later["made"], 7)
        def all_counted():
            seconds = self.viewer(r).next()[1]["history"]
            return sum(s["requests"] for s in seconds) >= 7 and seconds
        history = wait_for(all_counted, "the seconds with all of them", step=0.3)
        self.assertGreater(sum(s["cached_tokens"] for s in history), 500)
        self.assertTrue([s for s in history if s["ttft_p50_s"] is not None])
        r.admin("POST", "/drain?replica=" + sims[0].name)
        v.wait("news", lambda n: [e for e in n["events"] if e["kind"] == "drain"], "the drain")
        self.assertNotIn(SECRET, v.text.decode())

    def test_replicas_beyond_one_snapshot_are_sent_too(self):
        """Before, the page showed the first 128 replicas only."""
        sim = self.sim()
        away = ["http://127.1.%d.%d:1" % (i // 200, 1 + i % 200) for i in range(300)]
        r = self.router([sim], *[a for url in away for a in ("--replica", url)])
        self.assertEqual(self.client(r).post(CHAT, chat()).status, 200)
        v, rows = self.viewer(r), {}

        def joined(snap):
            first, behind = snap["replicas_span"]
            for slot in [s for s in rows if first <= s < behind] + snap["replicas_gone"]:
                rows.pop(slot, None)
            rows.update({x["slot"]: x for x in snap["replicas"]})
            return snap
        self.assertEqual(len(joined(v.next("hello")[1])["replicas"]), 301)
        v.wait("snap", lambda s: joined(s)["replicas_well"] == 1 and s["answered"]["prompt_tokens"] > 0, "those that are away")
        v.wait("snap", lambda s: joined(s) and [x["health"] for x in rows.values()].count("down") == 300, "each of them")
        self.assertEqual((v.last["snap"]["replica_count"], len(v.last["snap"]["replicas"])), (301, 256))
        for url in away[:250]:
            self.assertEqual(r.admin("DELETE", "/replicas?replica=" + url[7:]).status, 200)
        v.wait("snap", lambda s: joined(s)["replica_count"] == 51, "some are gone")
        self.assertEqual((v.last["snap"]["replicas_well"], len(rows)), (1, 51))
        self.assertEqual(sorted(x["health"] for x in rows.values())[-1], "up")

    def test_viewers_have_a_limit_and_leave_no_trace(self):
        r = self.router([self.engine()])
        before = self.open(r)
        viewers = [self.viewer(r) for _ in range(VIEWERS_MAX)]
        self.assertTrue(all(v.status == 200 for v in viewers))
        late = self.viewer(r)
        self.assertEqual(late.status, 503)
        self.assertIn("128 pages already show this router", late.reader.until(b"cluster.").decode())
        self.assertEqual(viewers[0].next("snap")[1]["router"]["viewers"], VIEWERS_MAX)
        for v in viewers[1:]:
            v.close()
        v = wait_for(lambda: (lambda x: x if x.status == 200 else x.close())(Viewer(r).begin()), "room")
        self.addCleanup(v.close)
        wait_for(lambda: viewers[0].next("snap")[1]["router"]["viewers"] == 2, "they are gone")
        viewers[0].close()
        v.close()
        late.close()
        wait_for(lambda: self.open(r) == before, "no connection is left")
        self.assertEqual(r.metric("client_gone_total"), 0)

    def test_a_viewer_does_not_delay_the_routers_exit(self):
        r = self.router([self.engine()])
        v = self.viewer(r)
        v.next()
        begun = time.monotonic()
        r.signal(signal.SIGTERM)
        self.assertEqual(r.wait(), 0)
        self.assertLess(time.monotonic() - begun, 10)
        with self.assertRaises((Cut, OSError)):
            while True:
                v.next()

    def test_head_and_other_methods(self):
        r = self.router([self.engine()])
        with socket.create_connection((HOST, r.admin_port)) as s:
            s.sendall(b"HEAD /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: s.recv(65536), b""))
        self.assertIn(b"text/event-stream", text)
        self.assertTrue(text.endswith(b"\r\n\r\n"))
        self.assertEqual(r.admin("POST", "/live", b"").status, 405)


class Cluster(Clustered):
    def test_viewers_see_agreement_and_a_routers_death(self):
        sim = self.sim()
        nodes = self.cluster(3, [sim])
        v = Viewer(nodes[0])
        self.addCleanup(v.close)
        v.begin()
        # Once in twenty runs under sanitizers this never came, because digests were requested in step with the
        # reports.
        snap = v.wait("snap", lambda s: s["agreement"]["state"] == "equal", "they agree")
        self.assertEqual([m["name"] for m in snap["members"]], ["r1", "r2", "r3"])
        self.assertEqual(set(snap["agreement"]["nodes"]), {"r1", "r2", "r3"})
        for name, node in snap["agreement"]["nodes"].items():
            self.assertEqual(set(node["hears"]), {"r1", "r2", "r3"} - {name})
            self.assertTrue(all(ms < 3000 for ms in node["hears"].values()))
            self.assertEqual(len(node["registry"]), 16)
        since = snap["agreement"]["since_ms"]
        self.client(nodes[1]).post(CHAT, chat())
        snap = v.wait("snap", lambda s: s["cluster"]["nodes"].get("r2", {}).get("requests", 0) > 0, "what r2 counted")
        self.assertEqual(set(snap["cluster"]["nodes"]), {"r1", "r2", "r3"})
        snap = v.next("snap")[1]
        self.assertIn(snap["agreement"]["state"], ("equal", "moving"))
        self.assertEqual(snap["agreement"]["since_ms"], since)
        nodes[2].signal(signal.SIGKILL)
        nodes[2].stopped = True
        nodes[2].wait()
        v.wait("snap", lambda s: [m["state"] for m in s["members"]][2] != "alive" or s["agreement"]["state"] == "silent",
               "it is noticed")
        v.wait("news", lambda n: [e for e in n["events"] if e["kind"] == "death" and e["about"] == "r3"], "its death")
        v.wait("snap", lambda s: s["agreement"]["state"] == "equal", "the two agree")

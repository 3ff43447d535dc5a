"""The load driver: its requests, its counts, and its messages when things break."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import unittest

BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
REPLAY = BUILD / "tests/replay"
ENGINE = BUILD / "tests/engine-sim"

USAGE = ('"usage": {"prompt_tokens": 100, "total_tokens": 103, "completion_tokens": 3, '
         '"prompt_tokens_details": {"cached_tokens": 64}}')
CHUNK = 'data: {{"id": "c", "choices": [{{"index": 0, "delta": {{{}}}}}], "usage": null}}\n\n'


def stream_events(cut=False):
    events = CHUNK.format('"role": "assistant", "content": ""')
    events += "".join(CHUNK.format(f'"content": "{word}"') for word in ("one", " two", " three"))
    if not cut:
        events += 'data: {"choices": [], ' + USAGE + "}\n\ndata: [DONE]\n\n"
    return events.encode()


class FakeEngine:
    """Answers every POST with the same bytes, piece by piece, and keeps the bodies."""

    def __init__(self, answer, piece=None):
        self.answer, self.piece, self.requests = answer, piece, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.socket.close()

    def _accept(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        with peer, peer.makefile("rb") as stream:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    if not line:
                        return
                    head += line
                length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
                self.requests.append((head.decode(), json.loads(stream.read(length))))
                step = self.piece or len(self.answer)
                try:
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for at in range(0, len(self.answer), step):
                        peer.sendall(self.answer[at:at + step])
                except OSError:
                    return


def chunked(payload, size=7, last=True):
    body = b"".join(b"%x\r\n%s\r\n" % (len(payload[i:i + size]), payload[i:i + size])
                    for i in range(0, len(payload), size))
    return (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"x-grapevine-replica: left\r\ntransfer-encoding: chunked\r\n\r\n" + body +
            (b"0\r\n\r\n" if last else b""))


def session_files(folder):
    """Two sessions of three turns: 10, 20 and 30 blocks of 64 tokens, each extending the last."""
    for number in range(2):
        requests = [{"t": i, "in": blocks * 64 + 10, "out": 5, "think_time": 0.01,
                     "hash_ids": list(range(1, blocks + 1))}
                    for i, blocks in enumerate((10, 20, 30))]
        path = pathlib.Path(folder) / f"session_{number}.json"
        path.write_text(json.dumps({"tool_tokens": 512, "system_tokens": 128,
                                    "requests": requests}))


class ReplayTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def replay(self, *flags, status=0):
        report = pathlib.Path(self.folder.name) / "report.json"
        done = subprocess.run([REPLAY, *flags, "--json", report, "--quiet"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(report.read_text()) if report.exists() else done.stderr

    def fake(self, answer, piece=None):
        engine = FakeEngine(answer, piece)
        self.addCleanup(engine.close)
        return engine

    def coding(self):
        folder = pathlib.Path(self.folder.name) / "coding"
        folder.mkdir(exist_ok=True)
        session_files(folder)
        return f"coding:{folder}"

    def engines(self, count, *flags):
        urls = []
        for _ in range(count):
            process = subprocess.Popen(
                [ENGINE, "--listen", "127.0.0.1:0", "--model", "sim", *flags],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)
            line = process.stdout.readline()
            urls.append(re.search(r"listening on (http://\S+)", line)[1])
        return urls


class AgainstEngines(ReplayTest):
    def test_second_turns_are_served_from_cache(self):
        (engine,) = self.engines(1, "--cache-tokens", "100000", "--speed-up", "50")
        run = self.replay("--target", engine, "--trace", self.coding(), "--sessions", "1",
                          "--speed-up", "50")
        self.assertEqual((run["requests"], run["failed"], run["without_usage"]), (6, 0, 0))
        self.assertEqual(run["completion_tokens"], 30)
        # 120 blocks in all; 30 of each session were there before, and the second session finds
        # the common part of the first: 5 blocks.
        self.assertAlmostEqual(run["cached_share"], 65 / 122, delta=0.05)
        self.assertAlmostEqual(run["prompt_tokens"], 2 * (60 * 64 + 30), delta=400)
        for key in ("ttft_s", "total_s", "per_output_token_s"):
            self.assertGreater(run[key]["mean"], 0, key)
            self.assertGreaterEqual(run[key]["p99"], run[key]["p50"], key)

    def test_the_demo_mix_is_spread_over_targets(self):
        left, right = self.engines(2, "--cache-tokens", "100000", "--speed-up", "100")
        run = self.replay("--target", left, "--target", right, "--trace", "demo",
                          "--requests-max", "60", "--speed-up", "100", "--pid", str(os.getpid()))
        self.assertEqual((run["requests"], run["failed"]), (60, 0))
        self.assertEqual(len(run["replicas"]), 2)
        self.assertEqual(sum(r["prompt_tokens"] for r in run["replicas"]), run["prompt_tokens"])
        self.assertGreater(run["cached_share"], 0)
        self.assertGreater(run["router_rss_bytes"], 0)


class RequestBodies(ReplayTest):
    def test_a_later_turn_extends_the_earlier_one(self):
        engine = self.fake(chunked(stream_events()))
        run = self.replay("--target", engine.url, "--trace", self.coding(), "--sessions", "1",
                          "--speed-up", "1000")
        self.assertEqual((run["requests"], run["failed"]), (6, 0))
        bodies = [body for _, body in engine.requests]
        # All but the last message, which is the turn's own, as one text.
        texts = ["".join(m["role"] + ":" + m["content"] for m in body["messages"][:-1])
                 for body in bodies]
        for first in (0, 3):
            self.assertTrue(texts[first + 1].startswith(texts[first]))
            self.assertTrue(texts[first + 2].startswith(texts[first + 1]))
        self.assertEqual(bodies[0]["messages"][0], bodies[3]["messages"][0])  # the common part
        self.assertEqual(bodies[0]["messages"][0]["role"], "system")
        self.assertNotEqual(texts[0], texts[3])
        self.assertTrue(all(body["messages"][-1]["role"] == "user" for body in bodies))
        self.assertTrue(all(body["stream"] and body["ignore_eos"] and body["max_tokens"] == 5
                            and body["stream_options"]["include_usage"] for body in bodies))
        sessions = [re.search(r"(?i)x-session-id: (\S+)", head)[1] for head, _ in engine.requests]
        self.assertEqual(len(set(sessions[:3])), 1)
        self.assertEqual(len(set(sessions)), 2)

    def test_fixed_bodies_have_their_size_and_differ(self):
        engine = self.fake(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                           b"content-length: %d\r\n\r\n{%s}" % (len(USAGE) + 2, USAGE.encode()))
        run = self.replay("--target", engine.url, "--fixed", "32768", "--requests", "20",
                          "--connections", "2")
        self.assertEqual((run["requests"], run["failed"], run["without_usage"]), (20, 0, 0))
        self.assertAlmostEqual(run["cached_share"], 0.64)
        lengths = {re.search(r"(?i)content-length: (\d+)", head)[1] for head, _ in engine.requests}
        self.assertEqual(lengths, {"32768"})
        self.assertEqual(len({json.dumps(body) for _, body in engine.requests}), 20)


class Counting(ReplayTest):
    def test_streams_in_pieces_of_any_size(self):
        for piece in (1, 3, 50, None):
            engine = self.fake(chunked(stream_events()), piece)
            run = self.replay("--target", engine.url, "--trace", "demo", "--requests-max", "2",
                              "--speed-up", "1000")
            self.assertEqual((run["requests"], run["failed"]), (2, 0))
            self.assertEqual(run["prompt_tokens"], 200)
            self.assertEqual(run["cached_tokens"], 128)
            self.assertEqual([r["name"] for r in run["replicas"]], ["left"])

    def failures(self, answer, status=1):
        engine = self.fake(answer)
        run = self.replay("--target", engine.url, "--trace", "demo", "--requests-max", "1",
                          "--speed-up", "1000", "--timeout-s", "1", status=status)
        self.assertEqual(run["failed"], 1)
        return run["errors"][0]["name"]

    def test_failures_are_distinguished(self):
        self.assertEqual(self.failures(chunked(stream_events(cut=True))), "stream_cut_short")
        self.assertEqual(self.failures(chunked(stream_events(), last=False)), "timeout")
        self.assertEqual(self.failures(b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno"),
                         "status_503")
        self.assertEqual(self.failures(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"
                                       b"content-length: 3\r\n\r\nno"), "bad_head")
        self.assertEqual(self.failures(chunked(b'data: {"error": {"code": 500}}\n\n'
                                               b"data: [DONE]\n\n")), "error_in_stream")

    def test_refused_connections_are_counted(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
        run = self.replay("--target", f"http://127.0.0.1:{port}", "--trace", "demo",
                          "--speed-up", "1000", status=1)
        self.assertEqual(run["errors"][0]["name"], "refused")
        self.assertEqual(run["ok"], 0)

    def test_bad_flags_are_named(self):
        self.assertIn("--speed-up", self.replay("--speed-up", "fast", status=2))
        self.assertIn("--target", self.replay("--trace", "demo", status=2))
        self.assertIn("--trace", self.replay("--target", "http://127.0.0.1:1", "--trace", "x",
                                             status=2))


if __name__ == "__main__":
    unittest.main()

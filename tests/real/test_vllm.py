"""A real vLLM's behaviour through Grapevine. Run by tests/real/run.sh."""
import http.client
import json
import os
import re
import signal
import subprocess

from lib import BUILD, HOST, closed_port, wait_for
from lib_real import HOME, VLLM, RealCase

REQUESTS = os.environ.get("REQUESTS", "900")  # requests of Events; a quarter of an hour each on two idle cores
TEXT = "The vine grows along the wall and bears fruit late in the year. " * 60


class Answers(RealCase):
    kind = VLLM

    def setUp(self):
        super().setUp()
        self.front_router = self.front(self.pair())

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(HOST, self.front_router.port, timeout=60)
        headers = {"content-type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, text

    def chat(self, messages, **more):
        answer, text = self.call("POST", "/v1/chat/completions",
                                 {"model": "tiny", "messages": messages, "max_tokens": 8, **more})
        return answer, json.loads(text)

    def replicas(self):
        return self.front_router.admin("GET", "/replicas").json

    def test_second_turn_comes_from_cache_on_the_same_replica(self):
        for round_ in range(4):
            messages = [{"role": "user", "content": f"{round_} {TEXT}"}]
            first, one = self.chat(messages)
            messages += [one["choices"][0]["message"], {"role": "user", "content": "and then?"}]
            messages[1] = {"role": "assistant", "content": messages[1]["content"]}
            second, two = self.chat(messages)
            self.assertEqual(first.getheader("x-grapevine-replica"), second.getheader("x-grapevine-replica"))
            self.assertGreater(two["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_stream(self):
        answer, text = self.call("POST", "/v1/chat/completions", {
            "model": "tiny", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 16,
            "ignore_eos": True, "messages": [{"role": "user", "content": TEXT}]})
        self.assertEqual(answer.getheader("content-type"), "text/event-stream; charset=utf-8")
        events = text.decode().split("\n\n")
        self.assertEqual(events[-2], "data: [DONE]")
        usage = json.loads(events[-3][len("data: "):])["usage"]
        self.assertEqual(usage["completion_tokens"], 16)

    def test_errors_pass_unchanged(self):
        answer, text = self.call("POST", "/v1/chat/completions",
                            {"model": "tiny", "messages": [{"role": "user", "content": "x " * 9000}]})
        self.assertEqual(answer.status, 400)
        self.assertEqual(json.loads(text)["error"]["param"], "input_tokens")
        answer, body = self.chat([{"role": "user", "content": "x"}], cache_salt="")
        self.assertEqual(answer.status, 400)
        answer, text = self.call("POST", "/v1/chat/completions", {"model": "nope", "messages": []})
        self.assertEqual(answer.status, 404)

    def test_cancel_reaches_the_engine(self):
        connection = http.client.HTTPConnection(HOST, self.front_router.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps({
            "model": "tiny", "stream": True, "max_tokens": 6000, "ignore_eos": True,
            "messages": [{"role": "user", "content": TEXT}]}), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read(200)
        wait_for(lambda: any((r["engine_metrics"] or {}).get("running", 0) > 0 for r in self.replicas()), "it runs")
        connection.sock.close() if connection.sock else None
        answer.close()
        connection.close()
        wait_for(lambda: all((r["engine_metrics"] or {}).get("running") == 0 for r in self.replicas()),
                 "it is cancelled")
        wait_for(lambda: all(r["load"]["requests"] == 0 for r in self.replicas()), "its booking is released")

    def test_the_engines_metrics_are_understood(self):
        for replica in wait_for(lambda: [r for r in self.replicas() if r["engine_metrics"]], "metrics"):
            self.assertEqual(replica["engine"], "vllm")
            self.assertTrue(replica["cache"]["told_by_engine"])
            self.assertGreater(replica["cache"]["tokens"], 1_000_000)  # 16,384 blocks of 128 tokens
            self.assertGreaterEqual(replica["engine_metrics"]["running"], 0)

    def test_models_are_merged(self):
        models = json.loads(self.call("GET", "/v1/models")[1])
        self.assertEqual([m["id"] for m in models["data"]], ["tiny"])

    def test_messages_and_responses(self):
        answer, text = self.call("POST", "/v1/messages", {
            "model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": TEXT}]})
        self.assertEqual(answer.status, 200)
        answer, text = self.call("POST", "/v1/responses", {
            "model": "tiny", "max_output_tokens": 16, "input": TEXT})
        self.assertEqual(answer.status, 200)

class Deaths(RealCase):
    """The death of one of two engines under load loses no answer that the other could have given."""
    kind = VLLM

    def test_sigterm(self):
        a, b = self.pair()
        self.trouble(self.front([a, b]), lambda: a.process.send_signal(signal.SIGTERM))

    def test_sigstop(self):
        a, b = self.pair()
        try:
            self.trouble(self.front([a, b]), lambda: a.signal_all(signal.SIGSTOP))
        finally:
            a.signal_all(signal.SIGCONT)

    def test_sleep(self):
        a, b = self.pair()
        router = self.front([a, b])
        self.trouble(router, lambda: self.assertEqual(a.ask("POST", "/sleep?level=1")[0], 200))
        self.assertEqual(a.ask("POST", "/wake_up")[0], 200)

    def test_worker_killed(self):
        a, b = self.pair()
        self.trouble(self.front([a, b]), lambda: os.kill(a.child("VLLM::Worker"), signal.SIGKILL))

    def test_rank_killed(self):
        """One of two data-parallel ranks. The server ends; what runs at the other rank is aborted, with 200."""
        engines = [VLLM("--data-parallel-size", "2").start(), VLLM().start()]
        try:
            for engine in engines:
                engine.wait()
            router = self.front(engines)
            wait_for(lambda: sum("@" in r["name"] for r in router.admin("GET", "/replicas").json) == 2, "ranks")
            self.trouble(router, lambda: os.kill(engines[0].child("VLLM::EngineCore_DP1"), signal.SIGKILL))
        finally:
            for engine in engines:
                engine.stop()

    def test_worker_hangs(self):
        """As with a GPU that never answers: the server is fine, its metrics stop."""
        a, b = self.pair()
        worker = a.child("VLLM::Worker")
        try:
            self.trouble(self.front([a, b]), lambda: os.kill(worker, signal.SIGSTOP))
        finally:
            os.kill(worker, signal.SIGCONT)

    def test_api_key(self):
        engines = [VLLM(key="sesame").start(), VLLM(key="sesame").start()]
        try:
            for engine in engines:
                engine.wait()
            key = os.path.join(HOME, "key")
            with open(key, "w") as file:
                file.write("sesame\n")
            os.chmod(key, 0o600)
            router = self.front(engines, "--replica-api-key-file", key)
            wait_for(lambda: [m["id"] for m in router.get("/v1/models").json.get("data", [])] == ["tiny"], "models")
            self.trouble(router, lambda: engines[0].process.send_signal(signal.SIGTERM), key="sesame")
        finally:
            for engine in engines:
                engine.stop()


class Events(RealCase):
    """KV-cache events: what is predicted with them, beside a ledger that knows the tokens of each prompt."""
    kind = VLLM

    def engine(self):
        events = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://*:%d" % closed_port(),
                  "replay_endpoint": "tcp://*:%d" % closed_port(), "topic": "kv-events"}
        return VLLM("--block-size", "32", "--num-gpu-blocks-override", "161", "--max-model-len", "4096",
                    "--kv-events-config", json.dumps(events))

    def figures(self, *args):
        """{"auto": ..., "off": ..., "ledger": (mean error in % of the prompt, share that was exact)}, and right beliefs."""
        engines = [self.engine().start(), self.engine().start()]
        try:
            for engine in engines:
                engine.wait()
            said = subprocess.run([HOME + "/engine/bin/python", "tests/bench/kv_events.py", "--build", BUILD, "--model", "tiny",
                                   "--engines", ",".join(str(e.port) for e in engines), "--ledger", *args],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout
        finally:
            for engine in engines:
                engine.stop()
        print(said, flush=True)
        figure = r"^(?:events )?(\w+) .* mean error ([\d.]+) % of the prompt, exact ([\d.]+) %"
        found = {name: (float(error), float(exact)) for name, error, exact in re.findall(figure, said, re.M)}
        right, all_ = re.findall(r"right: (\d+) of (\d+)", said)[-1]
        return found, 100 * int(right) / int(all_)

    def judge(self, *args):
        found, right = self.figures(*args)
        self.assertLess(found["auto"][0], found["off"][0] / 2)
        self.assertLess(found["auto"][0], 1.5 * found["ledger"][0] + 2)
        self.assertGreater(right, 95)

    def test_predictions(self):
        self.judge("--scale", "1.5", "--requests", REQUESTS, "--clients", "4")

    def test_predictions_with_a_quarter_of_requests_past_the_router(self):
        self.judge("--scale", "1.5", "--requests", REQUESTS, "--clients", "4", "--past", "25")

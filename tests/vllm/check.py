"""What a real vLLM must look like through Grapevine. Run by tests/vllm/run.sh."""
import http.client
import json
import os
import time
import unittest
import urllib.parse

ROUTER = urllib.parse.urlparse(os.environ["ROUTER"])
ADMIN = urllib.parse.urlparse(os.environ["ADMIN"])
TEXT = "The vine grows along the wall and bears fruit late in the year. " * 60


def call(where, method, path, body=None):
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    headers = {"content-type": "application/json"} if body is not None else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer, text


def chat(messages, **more):
    answer, text = call(ROUTER, "POST", "/v1/chat/completions",
                        {"model": "tiny", "messages": messages, "max_tokens": 8, **more})
    return answer, json.loads(text)


def replicas():
    return json.loads(call(ADMIN, "GET", "/replicas")[1])


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


class RealEngine(unittest.TestCase):
    def test_second_turn_comes_from_cache_on_the_same_replica(self):
        for round_ in range(4):
            messages = [{"role": "user", "content": f"{round_} {TEXT}"}]
            first, one = chat(messages)
            messages += [one["choices"][0]["message"], {"role": "user", "content": "and then?"}]
            messages[1] = {"role": "assistant", "content": messages[1]["content"]}
            second, two = chat(messages)
            self.assertEqual(first.getheader("x-grapevine-replica"), second.getheader("x-grapevine-replica"))
            self.assertGreater(two["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_stream(self):
        answer, text = call(ROUTER, "POST", "/v1/chat/completions", {
            "model": "tiny", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 16,
            "ignore_eos": True, "messages": [{"role": "user", "content": TEXT}]})
        self.assertEqual(answer.getheader("content-type"), "text/event-stream; charset=utf-8")
        events = text.decode().split("\n\n")
        self.assertEqual(events[-2], "data: [DONE]")
        usage = json.loads(events[-3][len("data: "):])["usage"]
        self.assertEqual(usage["completion_tokens"], 16)

    def test_errors_pass_as_they_are(self):
        answer, text = call(ROUTER, "POST", "/v1/chat/completions",
                            {"model": "tiny", "messages": [{"role": "user", "content": "x " * 9000}]})
        self.assertEqual(answer.status, 400)
        self.assertEqual(json.loads(text)["error"]["param"], "input_tokens")
        answer, body = chat([{"role": "user", "content": "x"}], cache_salt="")
        self.assertEqual(answer.status, 400)
        answer, text = call(ROUTER, "POST", "/v1/chat/completions", {"model": "nope", "messages": []})
        self.assertEqual(answer.status, 404)

    def test_cancel_reaches_the_engine(self):
        connection = http.client.HTTPConnection(ROUTER.hostname, ROUTER.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps({
            "model": "tiny", "stream": True, "max_tokens": 6000, "ignore_eos": True,
            "messages": [{"role": "user", "content": TEXT}]}), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read(200)
        until(lambda: any(r["engine_metrics"]["running"] > 0 for r in replicas()))
        connection.sock.close() if connection.sock else None
        answer.close()
        connection.close()
        until(lambda: all(r["engine_metrics"]["running"] == 0 for r in replicas()), 5)
        until(lambda: all(r["load"]["requests"] == 0 for r in replicas()))

    def test_its_metrics_are_understood(self):
        for replica in until(lambda: [r for r in replicas() if r["engine_metrics"]]):
            self.assertEqual(replica["engine"], "vllm")
            self.assertTrue(replica["cache"]["told_by_engine"])
            self.assertGreater(replica["cache"]["tokens"], 1_000_000)  # 16,384 blocks of 128 tokens
            self.assertGreaterEqual(replica["engine_metrics"]["running"], 0)

    def test_models_are_merged(self):
        models = json.loads(call(ROUTER, "GET", "/v1/models")[1])
        self.assertEqual([m["id"] for m in models["data"]], ["tiny"])

    def test_messages_and_responses(self):
        answer, text = call(ROUTER, "POST", "/v1/messages", {
            "model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": TEXT}]})
        self.assertEqual(answer.status, 200)
        answer, text = call(ROUTER, "POST", "/v1/responses", {
            "model": "tiny", "max_output_tokens": 16, "input": TEXT})
        self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()

"""The scripted engine of `make test-agents`, by each of its APIs, and the driver where no registry can be reached."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

from agents import engine as engines  # noqa: E402
from lib import closed_port  # noqa: E402

SHELL = {"properties": {"command": {"type": "string"}, "why": {"type": "string"}}, "required": ["command", "why"]}
SAYS = {"role": "user", "content": "go"}


def post(engine, path, body):
    asked = urllib.request.Request(engine.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return answer.read().decode()


class AgentEngine(unittest.TestCase):
    def setUp(self):
        self.script = engines.Script()
        self.engine = engines.Engine(self.script)
        self.addCleanup(self.engine.stop)

    def test_the_scripted_engine_calls_the_shell_tool_twice_and_ends(self):
        tool = {"type": "function", "function": {"name": "bash", "parameters": SHELL}}
        results = []
        for number in range(3):
            body = json.loads(post(self.engine, "/v1/chat/completions", {"messages": [SAYS] + results, "tools": [tool]}))
            message = body["choices"][0]["message"]
            if number < 2:
                arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
                self.assertEqual(arguments, {"command": "echo grape-%d" % (number + 1), "why": "run it"})
            results.append({"role": "tool", "content": "grape-%d\n" % (number + 1)})
        self.assertEqual(message["content"], "All is done: vine grape-1 grape-2.")
        self.assertEqual(self.script.results, [["grape-1\n", "grape-2\n"]])

    def test_each_api_streams_a_text_answer(self):
        for path, body in (("/v1/chat/completions", {"messages": [SAYS]}), ("/v1/responses", {"input": [SAYS]}),
                           ("/v1/messages", {"messages": [SAYS]})):
            whole = post(self.engine, path, body)
            stream = post(self.engine, path, dict(body, stream=True))
            self.assertIn("All is done: vine alone.", whole)
            for word in ("All ", "vine ", "alone."):
                self.assertIn(json.dumps(word), stream, path)

    def test_a_repeated_prompt_is_cached(self):
        body = {"messages": [{"role": "user", "content": "x" * 4000}]}
        shares = [json.loads(post(self.engine, "/v1/chat/completions", body))["usage"] for _ in range(2)]
        cached = [u["prompt_tokens_details"]["cached_tokens"] / u["prompt_tokens"] for u in shares]
        self.assertEqual(cached[0], 0)
        self.assertGreater(cached[1], 0.9)

    def test_the_scripted_engine_fails_once_on_demand(self):
        self.script.faults = [(503, 0)]
        with self.assertRaises(urllib.error.HTTPError) as caught:
            post(self.engine, "/v1/messages", {"messages": [SAYS]})
        self.assertEqual(caught.exception.code, 503)
        self.assertIn("vine", post(self.engine, "/v1/messages", {"messages": [SAYS]}))

    def test_without_a_registry_the_driver_skips(self):
        with tempfile.TemporaryDirectory() as folder:
            nowhere = "http://127.0.0.1:%d" % closed_port()
            env = dict(os.environ, GRAPEVINE_AGENTS=folder, npm_config_registry=nowhere, npm_config_fetch_retries="0",
                       npm_config_cache=folder + "/npm")
            done = subprocess.run([sys.executable, ROOT + "/tests/agents/run.py", "--programs", "codex"], env=env, capture_output=True,
                                  text=True, timeout=120, check=False)
        self.assertRegex(done.stdout, r"skip codex +not installed \(no registry\?\)")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "0 passed, 0 failed, 1 skipped"))


if __name__ == "__main__":
    unittest.main()

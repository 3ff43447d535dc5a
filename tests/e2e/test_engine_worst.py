"""The engine simulator's worst failures: failures on demand, deaths, and SGLang's own errors."""

import json
import signal
import time

from lib import Cut, request, wait_for
from test_engine_sim import JSON, TEXT, SimCase, chat, events

MESSAGES = [{"role": "user", "content": TEXT}]


def said(r):
    """The data of a stream's events."""
    return [d for _, d in events(r.body)]


class Worst(SimCase):
    def begun(self, **how):
        """A client with a long stream under way."""
        c = self.client(self.one)
        c.send(request("POST", "/v1/chat/completions",
                       json.dumps(chat(stream=True, max_tokens=50000, ignore_eos=True, **how)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] >= 1, "a running request")
        return c

    def ends(self, c):
        """The connection ends without another answer."""
        try:
            return c.read() is None
        except (Cut, ConnectionResetError):
            return True


class OnDemand(Worst):
    def test_statuses(self):
        for mode, status in (("status_429", 429), ("draining", 500), ("full", 503)):
            self.fail_by(mode)
            self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, status, mode)
            self.assertEqual(self.c.ask("GET", "/health").status, 200)
        self.fail_by("draining")
        self.assertIn("cannot schedule new futures after shutdown",
                      self.c.post("/v1/chat/completions", chat()).json["error"]["message"])

    def test_health_fails_independently_of_requests(self):
        self.fail_by("none", health="503")
        self.assertEqual(self.c.ask("GET", "/health").status, 503)
        self.assertEqual(self.c.post("/v1/chat/completions", chat(max_tokens=2)).status, 200)
        self.fail_by("none", health="slow", health_delay_ms=300)
        at = time.monotonic()
        self.assertEqual(self.c.ask("GET", "/health").status, 200)
        self.assertGreater(time.monotonic() - at, 0.29)
        self.fail_by("status_500", health="ok")
        self.assertEqual(self.c.ask("GET", "/health").status, 200)

    def test_work_stops_and_continues(self):
        for mode, asleep in (("stuck", "0"), ("sleep", "1")):
            self.fail_by(mode)
            c = self.client(self.one)
            c.send(request("POST", "/v1/chat/completions", json.dumps(chat(max_tokens=4)).encode(), [JSON]))
            wait_for(lambda: self.stats()["running"] == 1, "a running request")
            made = self.stats()["generation_tokens"]
            metrics = self.metrics()
            self.assertEqual(metrics['vllm:engine_sleep_state{engine="0",model_name="tiny",'
                                     'sleep_state="weights_offloaded"}'], asleep)
            self.assertEqual(self.c.ask("GET", "/health").status, 200)
            self.assertTrue(c.is_open())
            self.assertEqual(self.stats()["generation_tokens"], made)
            self.fail_by("none")
            self.assertEqual(c.read().status, 200)

    def test_answers_end_in_each_wrong_way(self):
        self.fail_by("error", after_chunks=2)
        data = said(self.c.post("/v1/chat/completions", chat(stream=True, max_tokens=500)))
        self.assertEqual(data[-2]["error"]["code"], 500)
        self.assertEqual(data[-1], "[DONE]")
        self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, 500)
        self.fail_by("end", after_chunks=2)
        data = said(self.c.post("/v1/chat/completions", chat(stream=True, max_tokens=500)))
        self.assertEqual([d["choices"][0]["finish_reason"] for d in data], [None, None, None])
        self.fail_by("garbage")
        self.c.send(request("POST", "/v1/chat/completions", json.dumps(chat()).encode(), [JSON]))
        self.assertIn(b"no HTTP", self.c.rest())


class Deaths(Worst):
    def test_vllms_core_dies(self):
        streamed = self.begun()
        self.fail_by("die")
        data = said(streamed.read())
        self.assertIn("EngineCore", data[-2]["error"]["message"])
        self.assertEqual(data[-1], "[DONE]")
        self.assertEqual(self.one.wait(), 1)

    def test_poison_kills_again(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--poison", "arsenic")
        for path in ("/v1/chat/completions", "/v1/messages"):
            self.c = self.client(self.one)
            other = self.begun()
            r = self.c.post(path, chat(messages=[{"role": "user", "content": "some arsenic"}]))
            self.assertEqual(r.status, 500)
            self.assertIn("error", said(other.read())[-2])
            self.assertEqual(self.one.wait(), 1)
            self.one = self.sim(*self.one.args[4:], port=self.one.port)


class Sglang(Worst):
    arguments = ("--engine", "sglang", "--model", "tiny", "--block-tokens", "16",
                 "--speed-up", "20", "--cache-tokens", "100000")

    def again(self, *more):
        self.one.stop()
        self.one = self.sim(*self.arguments, *more)
        self.c = self.client(self.one)

    def test_nothing_before_the_first_token(self):
        self.fail_by("stuck")
        for path, comes in (("/v1/chat/completions", False), ("/v1/messages", False), ("/generate", True)):
            c = self.client(self.one)
            ask = chat(stream=True, max_tokens=3) if path != "/generate" else \
                {"text": TEXT, "stream": True, "sampling_params": {"max_new_tokens": 3}}
            c.send(request("POST", path, json.dumps(ask).encode(), [JSON]))
            if comes:
                self.assertEqual(c.head().status, 200)
            else:
                self.assertTrue(c.is_open())  # nothing came

    def test_a_chat_stream(self):
        data = said(self.c.post("/v1/chat/completions", chat(
            stream=True, max_tokens=3, ignore_eos=True, messages=MESSAGES, stream_options={"include_usage": True})))
        self.assertEqual(data[0]["choices"][0]["delta"], {"reasoning_content": None, "role": "assistant",
                                                          "content": ""})
        self.assertTrue(data[1]["choices"][0]["delta"]["content"])
        last, usage = data[-3], data[-2]["usage"]
        self.assertEqual((last["choices"][0]["delta"], last["choices"][0]["finish_reason"]),
                         ({"reasoning_content": None}, "length"))
        self.assertEqual((usage["completion_tokens"], usage["prompt_tokens_details"]), (3, {"cached_tokens": 0}))
        self.assertEqual([d["choices"][0]["finish_reason"] for d in data[:-3]], [None] * (len(data) - 3))
        text = said(self.c.post("/v1/completions", {"prompt": TEXT, "max_tokens": 3, "stream": True,
                                                    "ignore_eos": True}))
        self.assertEqual((text[-2]["choices"][0]["finish_reason"], text[-2]["usage"]), ("length", None))

    def test_other_apis(self):
        self.c.post("/v1/messages", chat(messages=MESSAGES, max_tokens=2))
        data = said(self.c.post("/v1/messages", chat(messages=MESSAGES, max_tokens=2, stream=True)))
        self.assertGreater(data[0]["message"]["usage"]["cache_read_input_tokens"], 0)
        self.assertEqual(data[-2]["usage"], {"output_tokens": 2})
        data = said(self.c.post("/v1/responses", {"input": TEXT, "max_output_tokens": 2, "stream": True}))
        self.assertEqual(data[-1]["type"], "response.incomplete")

    def test_errors(self):
        self.again("--max-model-len", "100")
        for path, ask in (("/v1/chat/completions", chat(messages=MESSAGES * 9)),
                          ("/v1/completions", {"prompt": TEXT * 9, "stream": True})):
            r = self.c.post(path, ask)
            self.assertEqual((r.status, r.json["object"], r.json["code"]), (400, "error", 400))
            self.assertIn("longer than the model's context length", r.json["message"])
        r = self.c.post("/v1/messages", chat(messages=MESSAGES * 9))
        self.assertEqual((r.status, r.json["type"], r.json["error"]["type"]), (400, "error", "BadRequestError"))
        native = {"text": TEXT * 9}
        self.assertEqual(list(self.c.post("/generate", native).json["error"]), ["message"])
        r = self.c.post("/generate", dict(native, stream=True))
        self.assertEqual((r.status, said(r)[0]["error"]["code"]), (200, 400))
        r = self.c.post("/v1/messages", {"messages": MESSAGES})
        self.assertEqual((r.status, r.json["error"]), (400, {"type": "invalid_request_error",
                                                             "message": "max_tokens: Field required"}))

    def test_a_full_queue(self):
        self.fail_by("full")
        flat = {"object": "error", "message": "The request queue is full.", "type": "503", "param": None, "code": 503}
        native = {"text": TEXT}
        for path, ask in (("/v1/chat/completions", chat()), ("/generate", native)):
            r = self.c.post(path, ask)
            self.assertEqual((r.status, r.json), (503, flat))
        r = self.c.post("/v1/chat/completions", chat(stream=True, stream_options={"include_usage": True}))
        data = said(r)
        self.assertEqual((r.status, data[0]["error"]["type"], data[1]["usage"]["total_tokens"], data[2]),
                         (200, "SERVICE_UNAVAILABLE", 0, "[DONE]"))
        abort = said(self.c.post("/generate", dict(native, stream=True)))[0]["meta_info"]["finish_reason"]
        self.assertEqual((abort["type"], abort["status_code"]), ("abort", 503))
        r = self.c.post("/v1/messages", chat())
        self.assertEqual((r.status, r.json["error"]["type"]), (503, "overloaded_error"))
        data = said(self.c.post("/v1/messages", chat(stream=True)))
        self.assertEqual([d["type"] for d in data], ["message_start", "error", "message_stop"])
        r = self.c.post("/v1/responses", {"input": TEXT})
        self.assertEqual((r.status, r.json["error"]["message"]), (400, "503: The request queue is full."))
        self.assertEqual(said(self.c.post("/v1/responses", {"input": TEXT, "stream": True}))[-1]["type"],
                         "response.failed")

    def test_a_client_that_left_is_noticed_late_unless_it_streams(self):
        self.again("--speed-up", "4")
        for stream, late in ((True, False), (False, True)):
            c = self.client(self.one)
            c.send(request("POST", "/v1/chat/completions",
                           json.dumps(chat(stream=stream, max_tokens=50000)).encode(), [JSON]))
            wait_for(lambda: self.stats()["running"] == 1, "a running request")
            at = time.monotonic()
            c.close()
            wait_for(lambda: self.stats()["running"] == 0, "its end")
            if late:
                self.assertGreater(time.monotonic() - at, 0.6)

    def test_drain(self):
        self.again("--on-term", "drain")
        busy = self.begun()
        idle = self.client(self.one)
        self.assertEqual(idle.ask("GET", "/ping").status, 200)
        self.one.signal(signal.SIGTERM)
        wait_for(lambda: self.c.ask("GET", "/ping").status == 503, "503 of /ping")
        self.assertEqual(self.c.ask("GET", "/health").status, 503)
        self.assertEqual(idle.post("/v1/chat/completions", chat(max_tokens=2)).status, 200)  # still served
        busy.close()
        self.assertEqual(self.one.wait(), 0)

    def test_sglangs_scheduler_dies(self):
        self.again("--speed-up", "2")
        streamed = self.begun()
        self.fail_by("die")
        c = self.client(self.one)
        c.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        for path in ("/ping", "/v1/models"):
            self.assertEqual(self.c.ask("GET", path).status, 200)
        self.assertTrue(c.is_open())
        self.assertTrue(self.ends(streamed))
        self.assertEqual(self.one.wait(), 1)

    def test_a_token_beyond_the_vocabulary_kills_sglang(self):
        self.c.send(request("POST", "/v1/completions", json.dumps({"prompt": [1 << 21]}).encode(), [JSON]))
        self.assertTrue(self.ends(self.c))
        self.assertEqual(self.one.wait(), 1)

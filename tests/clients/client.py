"""The official OpenAI and Anthropic clients for Python through Grapevine."""
import asyncio
import json
import os
import time
import unittest
import urllib.request

import anthropic
import openai

MODEL = "sim"
SYSTEM = {"role": "system", "content": "You are a careful assistant. " * 200}


def running():
    """Requests that the router has under way at its engines."""
    with urllib.request.urlopen(os.environ["ADMIN"] + "/replicas") as answer:
        return sum(replica["load"]["requests"] for replica in json.load(answer))


class OpenAIClient(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(max_retries=0)
        self.addCleanup(self.client.close)

    def chat(self, text, **more):
        return self.client.chat.completions.create(
            model=MODEL, messages=[SYSTEM, {"role": "user", "content": text}], max_tokens=8, **more)

    def test_chat(self):
        answer = self.chat("hello")
        self.assertEqual(answer.model, MODEL)
        self.assertTrue(answer.choices[0].message.content)
        self.assertGreater(answer.usage.prompt_tokens, 100)

    def test_second_turn_is_cached(self):
        self.chat("remember this")
        answer = self.chat("remember this")
        self.assertGreater(answer.usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream_with_usage(self):
        chunks = list(self.chat("tell a story", stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertTrue(text)
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

    def test_tools(self):
        tool = {"type": "function", "function": {
            "name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
        answer = self.chat("weather in Paris?", tools=[tool], tool_choice="required")
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.name, "weather")

    def test_errors_are_the_clients_own_types(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
        self.assertIn("does not exist", str(caught.exception))
        with self.assertRaises(openai.BadRequestError):
            self.chat("hello", extra_body={"cache_salt": ""})

    def test_cancelled_stream_ends_at_the_engine(self):
        stream = self.client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "go on for ever"}], max_tokens=6000,
            extra_body={"ignore_eos": True}, stream=True)
        next(iter(stream))
        self.assertEqual(running(), 1)
        stream.close()
        deadline = time.monotonic() + 2  # the whole answer would take twice as long
        while running() > 0:
            self.assertLess(time.monotonic(), deadline, "the router goes on with a cancelled stream")
            time.sleep(0.02)

    def test_models_completions_responses_embeddings(self):
        self.assertEqual([m.id for m in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)
        self.assertTrue(self.client.completions.create(model=MODEL, prompt="once", max_tokens=4).choices[0].text)
        first = self.client.responses.create(model=MODEL, input="hello", max_output_tokens=16)
        self.assertEqual(self.client.responses.retrieve(first.id).id, first.id)
        second = self.client.responses.create(
            model=MODEL, input="and then?", previous_response_id=first.id, max_output_tokens=16)
        self.assertEqual(second.previous_response_id, first.id)

    def test_many_at_once(self):
        async def all_of_them():
            async with openai.AsyncOpenAI(max_retries=0) as client:
                return await asyncio.gather(*(client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": f"number {i}"}], max_tokens=4)
                    for i in range(50)))
        self.assertEqual(len(asyncio.run(all_of_them())), 50)


class AnthropicClient(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(max_retries=0)
        self.addCleanup(self.client.close)

    def test_messages_and_stream(self):
        messages = [{"role": "user", "content": "hello"}]
        answer = self.client.messages.create(model=MODEL, max_tokens=8, system=SYSTEM["content"], messages=messages)
        self.assertEqual(answer.usage.output_tokens, 8)
        with self.client.messages.stream(model=MODEL, max_tokens=8, messages=messages) as stream:
            self.assertTrue("".join(stream.text_stream))


if __name__ == "__main__":
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}, {os.environ['OPENAI_BASE_URL']}")
    unittest.main(verbosity=2)

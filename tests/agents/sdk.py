"""A small conversation by an SDK for Python, streamed and not: prints the texts."""

import os
import sys

which, base = sys.argv[1], os.environ["BASE"]
SYSTEM = "You are a careful assistant. " * 1000
turns = ["Say what you see.", "And again."]
history = []


def ask(stream):
    if which == "anthropic":
        if stream:
            with client.messages.stream(model="m", max_tokens=100, system=SYSTEM, messages=history) as s:
                return "".join(s.text_stream)
        return client.messages.create(model="m", max_tokens=100, system=SYSTEM, messages=history).content[0].text
    whole = [{"role": "system", "content": SYSTEM}] + history
    if which == "litellm":
        answer = litellm.completion(model="openai/m", api_base=base + "/v1", api_key="k", messages=whole, stream=stream, num_retries=2)
    else:
        answer = client.chat.completions.create(model="m", messages=whole, stream=stream)
    if not stream:
        return answer.choices[0].message.content
    return "".join(c.choices[0].delta.content or "" for c in answer if c.choices)


if which == "anthropic":
    import anthropic
    client = anthropic.Anthropic(base_url=base, api_key="k")
elif which == "litellm":
    import litellm
    litellm.suppress_debug_info = True
else:
    import openai
    client = openai.OpenAI(base_url=base + "/v1", api_key="k")

for number, text in enumerate(turns):
    history.append({"role": "user", "content": text})
    history.append({"role": "assistant", "content": ask(stream=number == 0)})
    print(history[-1]["content"])

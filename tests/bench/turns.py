#!/usr/bin/env python3
"""One conversation of six turns, each at the next of several routers, and where its cache was found.

    turns.py MODEL ROUTER_URL...
"""
import json
import pathlib
import sys
import urllib.request

QUESTIONS = ["What is this about?", "Which part matters most?", "What happens when a replica fails?",
             "And when a router does?", "What would you measure first?", "Thank you. One sentence, please."]


def ask(router, model, messages):
    body = json.dumps({"model": model, "max_tokens": 40, "messages": messages}).encode()
    request = urllib.request.Request(router + "/v1/chat/completions", body,
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["x-grapevine-replica"], json.load(answer)


def main(model, routers):
    text = (pathlib.Path(__file__).parents[2] / "docs" / "routing.md").read_text()
    messages = [{"role": "system", "content": "You explain this document:\n" + text}]
    print("  turn  router    engine           prompt tokens  from its cache")
    for turn, question in enumerate(QUESTIONS):
        router = turn % len(routers)
        messages.append({"role": "user", "content": question})
        engine, answer = ask(routers[router], model, messages)
        messages.append(answer["choices"][0]["message"])
        usage = answer["usage"]
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        print(f"  {turn + 1:4}  router {router + 1}  {engine:15}  {usage['prompt_tokens']:13}  {cached:14}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])

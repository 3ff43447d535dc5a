"""Meaning of each API's events: the last event, events with tokens, events that report a failure.

An event is what stands behind `data:`. Pure."""

import json

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
RESPONSES, GENERATE = "/v1/responses", "/generate"
STREAMS = (CHAT, COMPLETIONS, MESSAGES, RESPONSES, GENERATE)
LAST = ("message_stop", "response.completed", "response.incomplete", "response.failed")


def parse(data):
    """The event as a dict; empty if it is none."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def is_last(event):
    """But for `[DONE]`, which is no JSON."""
    return event.get("type") in LAST


def is_error(event):
    """True if the event, or a whole body, reports that the answer failed."""
    if event.get("error") or event.get("type") in ("error", "response.failed"):
        return True
    finish = (event.get("meta_info") or {}).get("finish_reason")
    if isinstance(finish, dict) and finish.get("type") == "abort":
        return True
    return any(c.get("finish_reason") == "abort" for c in event.get("choices") or [])


def has_token(event):
    """True if the event shows a client some part of the answer."""
    kind = event.get("type", "")
    if kind.startswith("response."):
        return kind.endswith(".delta")
    if kind == "content_block_delta":
        return True
    if event.get("text"):
        return True
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        if choice.get("text") or delta.get("content") or delta.get("tool_calls"):
            return True
    return False

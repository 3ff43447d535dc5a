"""The rules by which programs decide to retry: a table of facts, read out of the packages of these versions.

`statuses`  HTTP statuses that the program repeats, as a pattern of the number
`text`      patterns in the program's view of an error, one of which makes it repeat: `"STATUS MESSAGE"`, or only the
            message of an event in a stream
`event`     patterns of an event's JSON that do the same
`overflow` patterns by which it takes an error for a prompt that is too long: it shortens its history, which no error of
            the router should cause
`header`    it obeys `x-should-retry: false`
`apis`      the APIs that it speaks: of "openai" (chat), "responses", "anthropic"
`exceptions` behaviour that no words can change, with the reason
"""

import collections
import json
import re

Program = collections.namedtuple("Program", "name version apis statuses text event overflow header exceptions")

STATUSES = r"408|409|429|5\d\d"
OVERFLOW_PI = [
    r"prompt is too long", r"request_too_large", r"input is too long for requested model", r"exceeds the context window",
    r"input token count.*exceeds the maximum", r"maximum prompt length is \d+", r"reduce the length of the messages",
    r"maximum context length is \d+ tokens", r"exceeds the limit of \d+", r"exceeds the available context size",
    r"greater than the context length", r"context window exceeds limit", r"exceeded model token limit",
    r"too large for model with \d+ maximum context length", r"model_context_window_exceeded",
    r"prompt too long; exceeded (?:max )?context length", r"context[_ ]length[_ ]exceeded", r"too many tokens",
    r"token limit exceeded", r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)"]
TEXT_PI = [
    r"overloaded|provider.?returned.?error|rate.?limit|too many requests|429|500|502|503|504|service.?unavailable|"
    r"server.?error|internal.?error|network.?error|connection.?error|connection.?refused|connection.?lost|websocket.?closed|"
    r"websocket.?error|other side closed|fetch failed|upstream.?connect|reset before headers|socket hang up|ended without|"
    r"http2 request did not get a response|timed? out|timeout|terminated|retry delay"]
TEXT_OPENCODE = [
    r"429|500|502|503|504|524", r"rate increased too quickly|rate limit|rate-limit|rate_limit|too many requests",
    r"overloaded|service unavailable|service_unavailable|service-unavailable|internal error|internal_error|"
    r"internal server error|server error|server_error|server-error|provider returned error|provider_returned_error",
    r"terminated|fetch failed|failed to fetch|network[-_\s]error|upstream connect|connection error|connection refused|"
    r"connection lost|socket connection was closed|socket hang up|reset before headers|getaddrinfo|enotfound|eai_again|"
    r"econnrefused|econnreset|etimedout",
    r"^timeout$|\b(?:request|response|connection|network|stream|read) (?:timeout|timed out|time out)\b",
    r"try your request again|retry your request|resource exhausted|resource_exhausted",
    r"\btry again (?:later|in\b)|\b(?:currently|temporarily) at capacity\b"]
OVERFLOW_OPENCODE = OVERFLOW_PI[:-1] + [
    r"exceeds (?:the )?(?:model'?s )?maximum context length", r"tokens in request more than max tokens allowed",
    r"exceeds (?:the )?maximum allowed input length", r"is longer than the model'?s context length",
    r"request entity too large", r"context length is only \d+ tokens", r"input length.*exceeds.*context length",
    r"but the configured context size is"]
OVERFLOW_QWEN = [
    r"\bcontext[_\s-]?length[_\s-]?exceeded\b", r"\bmaximum context length\b", r"\bprompt\s+(?:is\s+)?too long\b",
    r"\binput\s+(?:token\s+)?(?:count\s+|length\s+)?(?:is\s+)?too long\b", r"\brange of input length should be\b",
    r"\btoo many tokens\b", r"\btokens?\s*>\s*[\d,]+\s*(?:maximum|max|limit)\b",
    r"\b(?:input|prompt|messages?|context)\b[^\n]{0,120}\btokens?\b[^\n]{0,120}\bexceed(?:s|ed|ing)?\b"]
OVERFLOW_CLINE = [
    r"\bcontext\s*(?:length|window|limit)\b", r"\bmaximum\s*context\b", r"\b(?:input\s*)?tokens?\s+exceeds?\b",
    r"\btoo\s*many\s*tokens?\b", r"\binput\s+is\s+too\s+long\b", r"\bprompt\s+is\s+too\s+long\b",
    r"reduce\s+the\s+length\s+of\s+the\s+messages\s+or\s+completion", r"requested\s+input\s+length\s+.*exceeds\s+.*maximum"]
OVERFLOW_LITELLM = [
    r"exceed context limit", r"this model's maximum context length is", r"is longer than the model's context length",
    r"string too long\. expected a string with maximum length", r"input tokens exceed the configured limit",
    r"exceeds the available context size", r"exceeds the maximum number of tokens allowed", r"prompt is too long",
    r"current length is.*while limit is", r"maximum input length is.*tokens", r"input too long:.*input tokens, limit is"]
# litellm has no status for an event: all are an APIError, which aider repeats, except for these words.
EVENT_LITELLM = [r"^(?!.*(invalid_request_error|model_not_found|content_policy_violation|invalid_encrypted_content|could not be verified))"]

PROGRAMS = [
    Program("openai SDKs", "Python 3.57.0, Node 6.49.0", ("openai", "responses"), STATUSES, [], [], [], True,
            {"event": "an SDK repeats no stream that has begun"}),
    Program("anthropic SDKs", "Python 2.14.0, Node 1.14.0", ("anthropic",), STATUSES, [], [], [], True,
            {"event": "an SDK repeats no stream that has begun"}),
    Program("Claude Code", "2.1.197", ("anthropic",), STATUSES, [], [r'"type":"overloaded_error"'], [r"prompt is too long"], True, {}),
    Program("Codex", "0.171.0", ("responses",), r"5\d\d", [], [r'"type":"error"'], [r"context_length_exceeded"], False,
            {"429": "Codex ends at 429, whatever it says", "408": "Codex repeats 5xx alone"}),
    Program("OpenCode", "1.18.33", ("openai", "anthropic"), STATUSES, TEXT_OPENCODE, [], OVERFLOW_OPENCODE, False, {}),
    Program("Qwen Code", "0.15.10", ("openai", "anthropic"), r"429|5\d\d", [], [r'"code":(429|503|1302|1305)\b'], OVERFLOW_QWEN, False,
            {"408": "repeated by the SDK below it", "anthropic event": "it looks for a number, which Anthropic's events do not have"}),
    Program("pi", "0.73.1, 0.74.2", ("openai", "responses", "anthropic"), r"429|50[0234]", TEXT_PI, [], OVERFLOW_PI, False,
            {"429": "", "408": ""}),
    Program("cline", "3.0.65", ("openai", "responses", "anthropic"), r"408|409|425|429|50[0234]|529", [r"provider returned error"],
            [r'"code":"?(408|409|425|429|50[0234]|529)\b'], OVERFLOW_CLINE, False, {}),
    Program("aider", "0.86.2 with litellm 1.81.10", ("openai", "responses", "anthropic"), r"403|422|408|409|429|5\d\d", [r"rate[\s_\-]*limit"],
            EVENT_LITELLM, OVERFLOW_LITELLM, False, {}),
    Program("litellm", "1.110.2", ("openai", "responses", "anthropic"), STATUSES, [r"rate[\s_\-]*limit"], EVENT_LITELLM, OVERFLOW_LITELLM,
            False, {}),
]


def found(patterns, text):
    return any(re.search(p, text, re.IGNORECASE) for p in patterns)


def message_of(body):
    error = body.get("error", body)
    return error["message"] if isinstance(error, dict) else body["message"]


def api_of(body, event):
    """The API of a body: Anthropic's has its outer type; chat's and responses' are the same."""
    if body.get("type") == "error":
        return "anthropic" if "error" in body else "responses"
    return "openai" if event else "openai responses"


def repeats(program, status, body, should_retry=True):
    """`status` is None of an event. By the words alone: `words`."""
    message = message_of(body)
    if status is None:
        return found(program.event, json.dumps(body, separators=(",", ":"))) or found(program.text, message)
    if program.header and not should_retry:
        return False
    return re.fullmatch(program.statuses, str(status)) is not None or found(program.text, "%d %s" % (status, message))


def repeats_by_words(program, message):
    return found(program.text, message)


def takes_for_too_long(program, message):
    return found(program.overflow, message)

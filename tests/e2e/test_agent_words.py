"""Agents decide by the router's error text whether to retry (docs/agents.md; tests/agents/classifiers.py has their
rules). Each agent must retry a transient failure, and none a lasting failure. All errors of the stories are checked,
and each message in the source is in a story or in this file."""

import json
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

from agents import classifiers  # noqa: E402

STORIES = os.path.join(ROOT, "tests/unit/proxy/stories")
ROOMS = ("own", "exchange", "guard", "client")
# Lasting errors with status 5xx: they carry x-should-retry: false.
LASTING = r"Engines died after this request\. It is not sent|The request (came back to this router|passed \d+ routers)|method is not|HTTP version|transfer coding"
# The stories do not show these: their lines cut long bodies, and end-to-end tests try the rest. With the status that each has.
AGAIN = " Provider returned error %d (server error): try again later."
OTHERS = [(None, status, text + (AGAIN % status if status >= 500 else "")) for status, text in (
    (401, "The engines refuse this API key."),
    (503, "Too many clients ask for the models now."),
    (400, "The zstd body needs a window of more than 8 MiB to be decoded: compress it with a smaller one, or send it uncompressed."),
    (503, "No replica whose context is long enough for this request is up."),
    (400, "The replica returned status 400, with more text than the router buffers."),
    (403, "The list of videos holds those of other API keys: ask for yours by id."),
    (403, "Pages of this origin may not call this router. Its operator can add the origin to cors-allow-origin."),
    (431, "The request head is too large."),
    (503, "Too many connections are open."),
    (503, "There is no replica."),
    (503, "Too many requests go to all replicas now, try again later."),
    (404, "Nothing was sent to `127.0.0.1:8000@b`: it is on the loopback of router b."),
    (400, "Name one replica (?replica=HOST:PORT) or one model (?model=NAME), or neither, for all."),
    (413, "A body that goes to all replicas has at most 64 KiB."),
)]
# No error of a request: an answer of 200, the health of the router, an engine's error without words.
NONE = ("Grapevine is running.\\n", "The router is not ready: %s.", "The engine failed.")


def strings(text):
    """C string literals, those side by side as one."""
    for m in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        yield "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', m.group())).replace('\\"', '"')


def messages():
    """The source's messages to clients: sentences."""
    for room in ROOMS:
        folder = os.path.join(ROOT, "node/proxy", room)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    text = re.sub(r"/\*.*?\*/|#include [^\n]*", "", f.read(), flags=re.S)
                for s in strings(text):
                    if re.match(r"[A-Z].* .*[.%]", s) and s.count(" ") >= 2 and "\\r\\n" not in s and s not in NONE:
                        yield name, s


def errors():
    """Errors of all stories: (story, status or None of an event, body, x-should-retry)."""
    for name in sorted(os.listdir(STORIES)):
        with open(os.path.join(STORIES, name), encoding="utf-8") as f:
            lines = f.read().splitlines()
        engines = " ".join(line.replace("\\", "") for line in lines if re.match(r"\d[a-z]? ", line))
        admins = {line.split()[0] for line in lines if re.search("connects to the (admin|probe) port", line)}
        for line in lines:
            to = re.match(r"    to ([A-Z]+): ", line)
            if to is None or to.group(1) in admins:
                continue
            bare = line.replace('\\"', '"').replace("\\\\", "\\")
            status = re.search(r": HTTP/1\.1 (\d\d\d) ", line)
            for m in re.finditer(r'(data: )?(\{(?:"error":\{|"type":"error").*?\}(?=\\n|"$|\\r))', bare):
                try:
                    body = json.loads(m.group(2))
                except ValueError:
                    continue
                if classifiers.message_of(body).startswith("The router is not ready"):
                    continue
                if classifiers.message_of(body).replace('"', "") in engines.replace('"', ""):
                    continue  # the engine's own words
                event = m.group(1) is not None
                yield name, None if event else int(status.group(1)), body, "x-should-retry: false" not in line


class Words(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.errors = list(errors()) + [(name, status, {"error": {"message": text, "type": "", "code": status}}, True)
                                        for name, status, text in OTHERS]
        self.assertGreater(len(self.errors), 200)

    def programs(self, status, body):
        apis = classifiers.api_of(body, status is None)
        return [p for p in classifiers.PROGRAMS if set(p.apis) & set(apis.split())]

    def excepted(self, program, status, body):
        api = classifiers.api_of(body, status is None)
        keys = [str(status)] if status is not None else ["event", api + " event"]
        return any(k in program.exceptions for k in keys)

    def passing(self, status, body):
        message = classifiers.message_of(body)
        if re.search(LASTING, message):
            return False
        code = status if status is not None else body.get("error", {}).get("code", 503 if "Provider returned error" in message else 400)
        return code in (408, 429) or code >= 500

    def test_every_agent_retries_transient_failures(self):
        wrong = [(p.name, story, status, classifiers.message_of(body)) for story, status, body, should in self.errors if self.passing(status, body)
                 for p in self.programs(status, body)
                 if not classifiers.repeats(p, status, body, should) and not self.excepted(p, status, body)]
        self.assertEqual(wrong, [])

    def test_the_message_alone_marks_a_failure_as_transient(self):
        """SDKs show an agent nothing else."""
        readers = [p for p in classifiers.PROGRAMS if p.name in ("pi", "OpenCode", "cline")]
        wrong = [(p.name, story, classifiers.message_of(body)) for story, status, body, _ in self.errors if self.passing(status, body)
                 for p in readers if not classifiers.repeats_by_words(p, classifiers.message_of(body))]
        self.assertEqual(wrong, [])

    def test_no_agent_retries_lasting_failures(self):
        wrong = [(p.name, story, status, classifiers.message_of(body)) for story, status, body, should in self.errors if not self.passing(status, body)
                 for p in self.programs(status, body)
                 if classifiers.repeats_by_words(p, classifiers.message_of(body)) or (status is None and p.name != "Codex" and "litellm" not in p.name + p.version
                                                                   and classifiers.repeats(p, status, body)) or (p.header and classifiers.repeats(p, status, body, should))]
        self.assertEqual(wrong, [])

    def test_no_other_error_looks_like_a_prompt_that_is_too_long(self):
        """On such an error agents drop a part of their history."""
        wrong = [(p.name, story, classifiers.message_of(body)) for story, status, body, _ in self.errors if status != 413
                 for p in classifiers.PROGRAMS if classifiers.takes_for_too_long(p, classifiers.message_of(body))]
        self.assertEqual(wrong, [])

    def test_each_error_message_is_checked(self):
        said = "\n".join(classifiers.message_of(body) for _, _, body, _ in self.errors)
        missing = []
        for name, s in messages():
            pattern = ".*".join(re.escape(part) for part in re.split(r"%[-+ 0-9.*]*(?:ll|z)?[a-z]", s))
            if not re.search(pattern, said):
                missing.append((name, s))
        self.assertEqual(missing, [], "show it in a story, or add it to OTHERS with its status")


if __name__ == "__main__":
    unittest.main()

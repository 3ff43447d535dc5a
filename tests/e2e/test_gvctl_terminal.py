"""gvctl shows text of clients, engines and routers without control sequences, which the operator's terminal would
obey. A request with
the model "\x1b]0;..." set the title of the window in which `gvctl decisions -o wide` ran, and another could hide
lines."""

import json
import re
import unittest

from lib import Case, answer, answer_json
from lib_cluster import gvctl
from test_gvctl import SHOWN, on_terminal

EVIL = "\x1b]0;owned\x07\r\x1b[2K\u009b31m\x7f\u202eb\u2028a\nm"
SHOWN_AS = r"\u001b]0;owned\u0007\u000d\u001b[2K\u009b31m\u007f\u202eb\u2028a\u000am"
BAD = set("\x1b\x07\r\x7f\u009b\u202e\u2028")


def evil(value):
    """The same answer with control sequences in every text and name."""
    if isinstance(value, dict):
        return {(k if k not in ("r1", "r2") else EVIL + k): evil(v) for k, v in value.items()}
    if isinstance(value, list):
        return [evil(v) for v in value]
    return EVIL if isinstance(value, str) else value


class Terminal(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def ask(self, says, *command):
        self.port.clear()
        self.port.closes(says)
        return gvctl(*command, admin=self.port.port, stdin=b"{}")

    def check(self, text, what):
        self.assertEqual(BAD & set(text), set(), (what, text))

    def test_no_table_has_control_sequences(self):
        for command, (_, _, said, *_) in SHOWN.items():
            for more in ((), ("-o", "wide"), ("-v",), ("-o", "json"), ("-o", "yaml")):
                status, out, err = self.ask(answer_json(evil(said)), *command, *more)
                self.check(out + err, command + more)
                if more == ("-o", "json"):
                    self.assertEqual(json.loads(out), evil(said), "JSON says what it is")
        for command in (("decisions", "-o", "wide"), ("queue",), ("replicas",)):
            said = SHOWN[command[:1]][2]
            self.assertIn(SHOWN_AS, self.ask(answer_json(evil(said)), *command)[1], command)

    def test_plain_text_has_no_control_sequences(self):
        said = ('# HELP x y\nx{a="%s"} 1\n' % EVIL.replace("\n", "")).encode()
        for command in ("metrics", "config", "ready", "alive"):
            status, out, err = self.ask(answer(200, said), command)
            self.check(out + err, command)
            self.assertEqual(status, 0)
        self.assertIn("\nx{a=", self.ask(answer(200, said), "metrics")[1], "lines stay lines")
        self.assertIn(r"\x9b31m", self.ask(answer(200, b"ok \x9b31m"), "alive")[1], "no UTF-8")

    def test_no_message_has_control_sequences(self):
        for says in (answer_json({"error": {"message": EVIL}}, 409), answer(503, EVIL.encode()),
                     answer(404, b"", (("server", "a\u009b31m"),))):
            status, out, err = self.ask(says, "undrain", "a:1")
            self.assertEqual((status, out), (1, ""))
            self.check(err, says)
            self.assertIn("gvctl: ", err)
        answers = {"/replicas": [{"name": "a:1", "health": "up", "models": {"names": [EVIL]}},
                                 {"name": "b:2", "health": "up"}],
                   "/drain?replica=a:1": {"ok": True, "replica": "a:1"},
                   "/undrain?replica=a:1": {"ok": True, "replica": "a:1", "drained_by": [EVIL]},
                   "/replicas?replica=a:1": {"ok": True, "answers": False, "why": EVIL}}

        def handler(asked):
            asked.read_body()
            asked.send(answer_json(answers[asked.target]))
            asked.close()
        self.port.handler = handler
        for command in ("drain", "undrain", "add"):
            status, out, err = gvctl(command, "a:1", admin=self.port.port)
            self.assertEqual(status, 0)
            self.check(out + err, command)
            self.assertIn(SHOWN_AS if command == "drain" else r"\u001b]0;owned", out + err)

    def test_events_of_all_routers_have_no_control_sequences(self):
        event = {"id": 1, "change": 1, "time_ms": 1, "last_ms": 1, "text": EVIL, "about": EVIL}
        said = {"self": "r1", "nodes": {"r1": {"router": EVIL, "events": [event]}, EVIL: {"error": EVIL}},
                "not_asked": {EVIL: EVIL}}
        for form in ("table", "json", "yaml"):
            status, out, err = self.ask(answer_json(said), "events", "-o", form)
            self.assertEqual(status, 0)
            self.check(out + err, form)

    def test_an_unsupported_output_format_is_refused(self):
        """top and keygen printed text with -o json, and -o name of a queue got "is it grapevine?"."""
        names, texts = {"members", "replicas", "poison"}, {"top", "keygen", "completion", "help"}
        listed = set(re.findall(r"(?m)^  ([a-z]\S*)", gvctl("--help")[1]))
        self.assertGreater(len(listed), 20)
        arguments = {"explain": ["-"], "log-level": ["info"], "completion": ["bash"], "key": ["new", "alice"]}
        for command in sorted(listed):
            args = arguments.get(command, ["a:1"] if command in ("add", "remove", "drain", "undrain", "forget") else [])
            for form in ("json", "yaml", "name"):
                has = form == "yaml" if command == "convert" else command in names if form == "name" else command not in texts
                self.port.closes(answer_json(SHOWN[(command,)][2] if (command,) in SHOWN else {}))
                status, out, err = gvctl(command, *args, "-o", form, admin=self.port.port, stdin=b"{}")
                refused = "%s has no output %s: table" % (command, form)
                if has:
                    self.assertNotIn("has no output", err, (command, form))
                else:
                    self.assertEqual((status, out), (2, ""), (command, form))
                    self.assertIn("gvctl: " + refused, err)
            said = re.search(r"-o, --output FORMAT +(.*)\n", gvctl("help", command)[1])[1]
            self.assertEqual("name" in said, command in names, command)
            self.assertEqual("json" in said, command not in texts | {"convert"}, command)
        self.assertIn("gvctl status has json and yaml", self.ask(answer_json([]), "top", "-o", "json", "--once")[2])

    def test_gvctls_own_colours_stay(self):
        for options, shown_as in (["-o", "wide"], SHOWN_AS), ([], SHOWN_AS[:10]):  # a narrow table cuts names
            self.port.closes(answer_json([{"name": EVIL, "health": "up"}]))
            out = on_terminal(["--admin", "http://127.0.0.1:%d" % self.port.port, "replicas", *options], {})
            self.assertIn("\x1b[32mup\x1b[0m", out)
            self.assertIn(shown_as, out)
            self.assertNotIn("\x1b]", out)


if __name__ == "__main__":
    unittest.main()

"""Shadow mode: a plain policy routes, and the router counts its own policy's choices; after the switch, a control
group has the plain policy."""

import json
import unittest

from lib import wait_for
from lib_cluster import Clustered, gvctl, run_grapevine
from test_engines import CHAT, message
from test_reload import Reloading

SPEED = ("--speed-up", "20")
SHADOW = ("--shadow", "on", "--plain-policy", "round_robin")
TEXT = "some words of a prompt "


# A call of gvctl, an answer to it, and lines that gvctl shows of that.
ASKED_OF_GVCTL = ("GET", "/shadow", {"self": "r1", "nodes": {"r1": {"shadow": {
        "mode": "shadow", "policy": "cache_aware", "plain_policy": "least_request", "hour": {
            "plain": {"requests": 10, "prompt_tokens": 1000, "cached_tokens": 310, "first_tokens": 2, "ttft_sum_s": 2.5},
            "policy": {"requests": 10, "prompt_tokens": 1000, "cached_tokens": 784, "first_tokens": 2, "ttft_sum_s": 0.6}, "moved": 8}}},
        "r2": {"error": "timed out"}, "r3": {}}, "not_asked": {}},
        [r"^Prompt tokens from cache in the last hour: 31 % with least_request \(in use\), 78 % with cache_aware \(predicted\)\.\n"
         r"cache_aware would have sent 80 % of 10 requests to another replica\.\n"
         r"Mean time to first token: 1\.25 s with least_request, 300 ms with cache_aware \(predicted\)\.\n"
         r"r2 did not answer and is not counted\.\nr3 has other settings for shadow or control-share and is not counted"])


class Talking:
    """Conversations whose turns repeat all before."""

    def __init__(self, case, router, number):
        self.case, self.router, self.text = case, router, "%d: %s" % (number, TEXT * 80)
        self.session = "session-%d" % number

    def turn(self, stream=True):
        self.text += TEXT * 40
        body = {"model": "sim", "messages": [message("user", self.text)], "max_tokens": 2, "stream": stream}
        if stream:  # the router requests usage once it knows all engines
            body["stream_options"] = {"include_usage": True}
        got = self.case.client(self.router).post(CHAT, body, headers=[("x-session-id", self.session)])
        self.case.assertEqual(got.status, 200, got)


def figures(r, mode, side):
    wanted = '{mode="%s",side="%s"}' % (mode, side)
    return {name[len("grapevine_shadow_"):-len("_total" + wanted)]: value for name, value in r.metrics().items()
            if name.startswith("grapevine_shadow_") and name.endswith("_total" + wanted)}


class Shadow(Reloading):
    def said(self, r):
        code, out, err = gvctl("shadow", admin=r.admin_port)
        self.assertEqual((code, err), (0, ""))
        return out

    def share(self, r, mode, side):
        of = figures(r, mode, side)
        return of["cached_tokens"] / of["prompt_tokens"]

    def test_shadow_mode_predicts_and_a_control_group_compares(self):
        sims = [self.sim(*SPEED) for _ in range(3)]
        r = self.started([s.url for s in sims], lines=["shadow: on", "plain-policy: round_robin"])
        talks = [Talking(self, r, i) for i in range(4)]
        for _ in range(6):
            for talk in talks:
                talk.turn()
        wait_for(lambda: figures(r, "shadow", "plain")["requests"] == 24, "all answers")
        self.assertEqual(figures(r, "shadow", "policy")["requests"], 24)
        self.assertGreater(self.share(r, "shadow", "policy"), 0.6)
        self.assertLess(self.share(r, "shadow", "plain"), self.share(r, "shadow", "policy") - 0.1)
        chosen = [r.metrics()['grapevine_replica_chosen_total{replica="%s"}' % s.name] for s in sims]
        self.assertEqual(chosen, [8, 8, 8])  # as round robin does
        said = self.said(r)
        self.assertRegex(said, r"Prompt tokens from cache in the last (minute|\d minutes): \d+ % with round_robin \(in use\), "
                               r"\d+ % with cache_aware \(predicted\)\.")
        self.assertRegex(said, r"cache_aware would have sent \d+ % of 24 requests to another replica\.")
        self.assertIn("The prediction starts with empty caches", said)
        one = r.admin("GET", "/decisions").json["decisions"][0]
        self.assertEqual((one["why"], one["policy"]), ("plain", "round_robin"))
        self.assertIn(one["shadow_choice"], [s.name for s in sims])
        self.assertRegex(gvctl("decisions", admin=r.admin_port)[1],
                         r"routed by plain-policy; policy would choose (127\.0\.0\.1:\d+|the same)\n")
        body = json.dumps({"model": "sim", "messages": [message("user", talks[0].text)]}).encode()
        code, out, err = gvctl("explain", "-", admin=r.admin_port, stdin=body)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"Shadow mode: round_robin routes\. CACHED, QUEUE and the costs are those that the router's own\n"
                              r"policy would have made\. It would choose (the same|127\.0\.0\.1:\d+ \(\*\))\.")

        predicted = self.share(r, "shadow", "policy")
        self.reloaded(r, "control-share: 0.5", "plain-policy: random")
        talks = [Talking(self, r, i) for i in range(10, 30)]
        for _ in range(5):
            for talk in talks:
                talk.turn()
        wait_for(lambda: figures(r, "control", "plain")["requests"] + figures(r, "control", "policy")["requests"] == 100,
                 "all answers")
        self.assertEqual(figures(r, "control", "plain")["requests"] % 5, 0)  # whole conversations
        self.assertGreater(self.share(r, "control", "policy"), self.share(r, "control", "plain"))
        said = self.said(r)
        self.assertRegex(said, r"% with random \(control group\)")
        self.assertIn("predicted %.0f %%." % (100 * predicted), said)

    def test_shadow_mode_needs_a_policy_with_costs(self):
        code, said = run_grapevine("--check-config", "--replica", "http://127.0.0.1:1", "--policy", "random",
                                   "--shadow", "on")
        self.assertNotEqual(code, 0)
        self.assertIn("want off with policy", said)

    def test_a_control_share_without_effect_is_reported(self):
        """Before, it was accepted silently, and gvctl shadow waited for ever."""
        said = [("setting_ignored", "control-share", "shadow is on")]
        code, out = run_grapevine("--check-config", "--replica", "http://127.0.0.1:1", "--shadow", "on", "--control-share", "0.1")
        self.assertEqual((code, [(e["event"], e["setting"], e["why"]) for e in map(json.loads, out.splitlines())]), (0, said))
        r = self.started([self.sim(*SPEED).url], lines=["control-share: 0.1"])
        self.reloaded(r, "shadow: on")
        self.assertEqual(r.events("setting_ignored"), [])
        self.reloaded(r, "shadow: on", "control-share: 0.1")
        self.assertEqual([(e["event"], e["setting"], e["why"]) for e in r.events("setting_ignored")], said)
        told = json.loads(gvctl("config", "-o", "json", admin=r.admin_port)[1])["control-share"]
        self.assertEqual((told["value"], told["ignored"], told["from"].endswith(":2")), ("0.1", "shadow is on", True), told)
        self.assertIn("control-share has no effect: shadow is on.", gvctl("events", admin=r.admin_port)[1])

    def test_without_shadow_mode_gvctl_says_how_to_begin(self):
        """Before, what shadow mode had found was gone after the switch."""
        r = self.started([self.sim(*SPEED).url], lines=["plain-policy: random"])
        self.assertIn("Neither shadow mode nor a control group is on. Set shadow: on", self.said(r))
        self.reloaded(r, "shadow: on")
        self.assertEqual(self.said(r), "Shadow mode is on; no request has ended in the last hour.\n")
        Talking(self, r, 0).turn(stream=False)
        wait_for(lambda: figures(r, "shadow", "plain")["requests"] == 1, "the answer")
        self.reloaded(r, "shadow: off")
        self.assertRegex(self.said(r), r"Neither .*\nBefore the switch, shadow mode measured \d+ % from cache and predicted \d+ %\.\n$")

    def test_engines_without_cached_token_counts_are_reported(self):
        sims = [self.sim(*SPEED), self.sim(*SPEED, "--prompt-tokens-details", "off")]
        r = self.started([s.url for s in sims], lines=["shadow: on", "plain-policy: round_robin"])
        talk = Talking(self, r, 0)
        for _ in range(4):
            talk.turn(stream=False)
        wait_for(lambda: figures(r, "shadow", "plain")["requests"] == 4, "all answers")
        self.assertRegex(self.said(r), r"Of \d\d % of the prompt tokens, answers report how many were cached")


class Together(Clustered):
    def test_gvctl_sums_up_all_routers(self):
        sims = [self.sim(*SPEED) for _ in range(2)]
        routers = self.cluster(2, [s.url for s in sims], *SHADOW)
        for i, r in enumerate(routers):
            talk = Talking(self, r, i)
            for _ in range(3):
                talk.turn()
        wait_for(lambda: sum(figures(r, "shadow", "plain")["requests"] for r in routers) == 6, "all answers")
        self.assertIn("% of 6 requests to another replica", gvctl("shadow", admin=routers[0].admin_port)[1])
        nodes = json.loads(gvctl("shadow", "-o", "json", admin=routers[0].admin_port)[1])["nodes"]
        self.assertEqual([n["shadow"]["mode"] for n in nodes.values()], ["shadow", "shadow"])


if __name__ == "__main__":
    unittest.main()

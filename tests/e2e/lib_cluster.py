"""Several routers on real sockets, gvctl, and a conversation that goes from router to router."""

import json
import os
import subprocess
import tempfile

from lib import HOST, LIMIT, SLOW, Case, binary, closed_port, wait_for
from test_engines import CHAT, message, words

FAST_PROBES = ("--scrape-interval", "200ms")


def gvctl(*args, stdin=b"", admin=None, limit=60):
    command = [binary("gvctl")]
    if admin:
        command += ["--admin", "http://%s:%d" % (HOST, admin)]
    p = subprocess.run(command + list(args), input=stdin, capture_output=True, timeout=limit,
                       env={k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")})
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def run_grapevine(*args):
    p = subprocess.run([binary("grapevine"), "--listen", HOST + ":0", "--admin-listen", HOST + ":0"]
                       + list(args), capture_output=True, timeout=LIMIT)
    return p.returncode, p.stderr.decode()


class Talk:
    """One conversation whose turns go to routers in turn."""

    def __init__(self, case, seed):
        self.case, self.seed, self.turn = case, seed, 0
        self.messages = [message("system", words("system%d" % seed, 300))]
        self.where, self.cached, self.prompt = [], [], []

    def body(self):
        return {"model": "sim", "messages": self.messages, "max_tokens": 8}

    def ask(self, router):
        self.turn += 1
        self.messages.append(message("user", words("%d %d" % (self.seed, self.turn), 300)))
        got = self.case.client(router).post(CHAT, self.body())
        self.case.assertEqual(got.status, 200, got)
        usage = got.json["usage"]
        self.messages.append(message("assistant", got.json["choices"][0]["message"]["content"]))
        self.where.append(got.get("x-grapevine-replica"))
        self.cached.append((usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
        self.prompt.append(usage["prompt_tokens"])

    def believed(self, router):
        """{replica: cached tokens} as the router would explain the next turn."""
        got = router.admin("POST", "/explain", json.dumps(self.body()).encode())
        self.case.assertEqual(got.status, 200, got)
        return {r["replica"]: r["cached_tokens"] for r in got.json["replicas"]}

    def counted(self, router):
        """Tokens of the next turn and of its answer, as the router estimates them."""
        got = router.admin("POST", "/explain", json.dumps(self.body()).encode()).json
        return round(got["prompt_tokens"], 3), round(got["output_tokens"], 3)


class Clustered(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.key = self.new_key("cluster.key")

    def tearDown(self):
        super().tearDown()
        self.folder.cleanup()

    def new_key(self, name):
        path = os.path.join(self.folder.name, name)
        status, out, err = gvctl("keygen", "--out", path)
        self.assertEqual((status, err), (0, ""))
        return path

    def read_key(self):
        with open(self.key) as f:
            return f.read()

    def node(self, name, engines, *args, join=None, listen=None, key=None, ready=True, **how):
        """No other test gets the node's port while the node is down: it may restart there."""
        listen = listen or "%s:%d" % (HOST, closed_port())
        command = ["--gossip-listen", listen, "--node-name", name, *FAST_PROBES]
        command += ["--cluster-key-file", key or self.key] if key != "" else []
        if join is not None:
            command += ["--join", join if isinstance(join, str) else
                        "%s:%d" % (HOST, join.gossip_port)]
        r = self.router([getattr(e, "url", e) for e in engines], *command, *args, wait_up=False,
                        **how)
        if ready:
            wait_for(lambda: r.admin("GET", "/readyz").status == 200, name + " ready")
        return r

    def cluster(self, n, engines, *args):
        first = self.node("r1", engines, *args)
        rest = [self.node("r%d" % i, engines, *args, join=first) for i in range(2, n + 1)]
        nodes = [first] + rest
        for r in nodes:
            self.wait_alive(r, ["r%d" % i for i in range(1, n + 1)])
        return nodes

    def members(self, r):
        got = r.admin("GET", "/members")
        self.assertEqual(got.status, 200, got)
        return {m["name"]: m for m in got.json["members"]}

    def alive(self, r):
        return sorted(n for n, m in self.members(r).items() if m["state"] == "alive")

    def wait_alive(self, r, names, limit=LIMIT):
        wait_for(lambda: self.alive(r) == sorted(names),
                 "members %s (there are %s)" % (names, self.alive(r)), limit, step=0.02)

    def converge(self, r, members, timeout=15):
        status, out, err = gvctl("convergence", "--wait", "--timeout", str(int(timeout * SLOW)), "--members",
                                 str(members), admin=r.admin_port)
        if status != 0:
            print(r.admin("GET", "/convergence").body.decode())
        self.assertEqual(status, 0, out + err)
        return out

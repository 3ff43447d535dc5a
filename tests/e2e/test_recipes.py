"""Follows the recipes of CONTRIBUTING.md on a copy of the tree: what they name is all that has to be
touched. One build for all, without optimization."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import lib
from lib import wait_for
from lib_cluster import Clustered
from test_engines import CHAT, message, words

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(lib.BUILD)

# Recipe -> file -> (the old text, the new text) or the text of a new file.
RECIPES = {
    "policy": {
        "node/route/policy/last.c": """/* The last candidate. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    return in->count - 1;
}

const struct node_policy node_policy_last = {.name = "last", .choose = choose};
""",
        "node/route/policy_table.c": [(r"    PLAIN\(random\)\n", r"    PLAIN(random) PLAIN(last)\n")],
    },
    "option": {
        "node/settings/options.h": [(r"(    double load_bound;\n)", r"\1    uint64_t patience_ms;\n")],
        "node/settings/table.c": [(r'(    \{\.name = "seed",)', r"""    {.name = "patience",
     TIME(patience_ms, RESTART),
     .fallback = "3s",
     .max = 10e3,
     .help = "before it is lost"},
\1""")],
    },
    "admin call": {
        "node/admin/calls.h": [(r'(    X\(CONFIG, GET)', r"""    X(PEERS, GET, "/peers", NULL, admin_peers, 0, "how many replicas there are") \\
\1""")],
        "node/admin/admin.c": [(r"(\nstatic const struct call \{)", r"""
void admin_peers(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    int err = buf_printf(&out, "%u", node_router_replica_count(a->config.router));
    admin_answer_buf(x, err, type_text, &out);
}
\1""")],
        "docs/admin-api.md": [(r"(### `GET /config`)", r"### `GET /peers`\n\nHow many.\n\n\1")],
    },
    "learned field": {
        "crdt/learned.h": [(r"(    X\(u64, shrunk_ppm, ALONG\))",
                            r"\1 X(u32, prompt_peak, MOVED) X(u32, prompt_peak_samples, DOUBLED)")],
        "node/replica/cache.h": [(r"(    uint64_t bytes_samples;)",
                                  r"    uint64_t prompt_peak, prompt_peak_samples;\n\1")],
        "node/route/learning.c": [(r"(    learn_bytes\(replica, model, &e->work, usage\);\n)", r"""\1
    if (usage->prompt_tokens > 0) {
        if ((uint64_t)usage->prompt_tokens > replica->cache.prompt_peak)
            replica->cache.prompt_peak = (uint64_t)usage->prompt_tokens;
        replica->cache.prompt_peak_samples++;
    }
""")],
        "node/replica/learned.c": [
            (r"(/\* [^\n]* \*/\nstatic const struct figure \{)", r"""static void peak_report(const struct node_replica *k, struct crdt_learned *out)
{
    out->prompt_peak = to_count(k->cache.prompt_peak);
}

static void peak_hear(struct node_replica *k, const struct crdt_learned *in, uint64_t now_ms)
{
    (void)now_ms;
    k->cache.prompt_peak = in->prompt_peak;
    k->cache.prompt_peak_samples = in->prompt_peak_samples;
}

\1"""),
            (r"(    \{OWN\(shown\.rate\.samples\))", r"""    {OWN(cache.prompt_peak_samples), WIRE(prompt_peak_samples), WIRE(prompt_peak), peak_report, peak_hear},
\1"""),
            (r'("Learned time of a decode step without context\.", k->believed\.step_base_s\))',
             r'\1 X(peak, "prompt_peak", 1, "replica_prompt_peak_tokens", "Longest prompt.", '
             r'(double)k->cache.prompt_peak)'),
        ],
    },
}
FILES_MAX = {"policy": 2, "option": 2, "admin call": 3, "learned field": 5}


def named(recipe):
    """The files that the recipe names, in the words of CONTRIBUTING.md."""
    with open(os.path.join(TOP, "CONTRIBUTING.md"), encoding="utf-8") as f:
        text = re.search(r"### To add an? %s\n(.*?)(\n###|\Z)" % recipe, f.read(), re.S).group(1)
    return re.findall(r"^\d\. `([\w/.-]+)`:", text, re.M)


def edit(tree, path, how):
    path = os.path.join(tree, path)
    if isinstance(how, str):
        text = how
    else:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for pattern, new in how:
            text, n = re.subn(pattern, new, text)
            if n != 1:
                raise AssertionError("%s: %d places for %s" % (path, n, pattern))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def build(tree):
    """Compiles only the files that the recipes touched and the files that include them."""
    shutil.copytree(os.path.join(TOP, "docs"), os.path.join(tree, "docs"))
    for folder in ("base", "crdt", "gossip", "http", "node"):
        shutil.copytree(os.path.join(TOP, folder), os.path.join(tree, folder))
        shutil.copytree(os.path.join(BUILD, "obj", folder), os.path.join(tree, "build", "obj", folder))
    shutil.copy2(os.path.join(TOP, "Makefile"), tree)
    for path in glob.glob(os.path.join(BUILD, "*.a")) + [os.path.join(BUILD, "have-headers")]:
        shutil.copy2(path, os.path.join(tree, "build"))
    # Unchanged files stay as they are, whatever flags they were compiled with.
    with open(os.path.join(tree, "build", "flags"), "w") as f:
        f.write("as they are\n")
    os.utime(f.name, (0, 0))
    for recipe in RECIPES.values():
        for path, how in recipe.items():
            edit(tree, path, how)
    made = subprocess.run(["make", "-s", "-j4", "BUILD_release=build", "OPT_release=-O0", "WHOLE_release=-fno-lto",
                           "FLAGS=as they are", "CPPFLAGS=-I. -D_GNU_SOURCE", "build/grapevine", "build/gvctl"], cwd=tree, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")})
    if made.returncode != 0:
        raise AssertionError(made.stdout)
    return os.path.join(tree, "build", "grapevine")


class Recipes(Clustered):
    @classmethod
    def set_up(cls):
        if os.path.basename(BUILD) != "build":
            raise unittest.SkipTest("skipped: the recipes are followed in the ordinary build only")
        cls.tree = tempfile.TemporaryDirectory()
        cls.grapevine = build(cls.tree.name)
        cls.ordinary = lib.binary

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.tree.cleanup()

    def setUp(self):
        super().setUp()
        lib.binary = lambda name: self.grapevine if name == "grapevine" else type(self).ordinary(name)

    def tearDown(self):
        lib.binary = type(self).ordinary
        super().tearDown()

    def run_it(self, *args):
        return subprocess.run([self.grapevine, *args], capture_output=True, text=True, timeout=lib.LIMIT)

    def test_recipes_name_every_file_that_they_touch(self):
        for recipe, files in RECIPES.items():
            names = [n.replace("NAME", "last") for n in named(recipe)]
            self.assertLessEqual(set(files), set(names), recipe)
            self.assertLessEqual(len(names), FILES_MAX[recipe], recipe)

    def test_a_policy(self):
        self.assertIn("`random`, `last`", self.run_it("--print-options-markdown").stdout)
        sims = [self.sim() for _ in range(3)]
        last = max(s.name for s in sims) # a router keeps them in the order of their names
        r = self.router([s.url for s in sims], "--policy", "last")
        r.wait_up(3)
        for _ in range(3):
            got = self.client(r).post(CHAT, {"model": "sim", "max_tokens": 1, "messages": [
                message("user", "hello")]})
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, last))

    def test_an_option(self):
        self.assertRegex(self.run_it("--help").stdout, r"--patience TIME +before it is lost \[3s\]")
        replica = ("--replica", "http://127.0.0.1:1")
        got = self.run_it("--check-config", *replica, "--patience", "7s")
        self.assertRegex(got.stdout, r"patience: 7s +# flag --patience")
        self.assertNotEqual(self.run_it("--check-config", *replica, "--patience", "11s").returncode, 0)

    def test_an_admin_call(self):
        """The server has it, GET / lists it, and gvctl has a command for it."""
        r = self.router([self.sim().url])
        self.assertEqual(r.admin("GET", "/peers").body, b"1")
        self.assertRegex(r.admin("GET", "/").body.decode(), r"GET  /peers +how many replicas there are")
        gvctl = os.path.join(os.path.dirname(self.grapevine), "gvctl")
        got = subprocess.run([gvctl, "--admin", "http://127.0.0.1:%d" % r.admin_port, "peers"],
                             capture_output=True, text=True, timeout=lib.LIMIT)
        self.assertEqual((got.returncode, got.stdout.strip()), (0, "1"))
        self.assertIn("peers", subprocess.run([gvctl, "--help"], capture_output=True, text=True).stdout)

    def test_a_learned_field(self):
        """One router learns it, the other shows it."""
        engine = self.sim()
        one, other = self.cluster(2, [engine])
        one.wait_up(1)
        other.wait_up(1)
        got = self.client(one).post(CHAT, {"model": "sim", "max_tokens": 1, "messages": [
            message("user", words("long", 700))]})
        peak = got.json["usage"]["prompt_tokens"]
        self.assertGreater(peak, 100)
        for router in (one, other):
            wait_for(lambda r=router: r.metric('replica_prompt_peak_tokens{replica="%s"}' % engine.name)
                     == peak, "the metric")
            shown = json.loads(router.admin("GET", "/replicas").body)[0]["learned"]
            self.assertEqual(shown["prompt_peak"], peak)
        self.converge(one, 2)


if __name__ == "__main__":
    unittest.main()

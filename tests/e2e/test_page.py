"""The page for browsers, without a browser: its files, permitted calls, and a stranger at the port. `make test-page`
tests it in a real browser."""

import html.parser
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from lib import HOST, Case, request, wait_for
from test_engines import CHAT, message

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.path.join(ROOT, "node", "admin", "page")
HTML = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]
SECRET = "the-prompt-nobody-may-read"
VOID = {"meta", "link", "input", "img", "br", "hr"}


def source(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return f.read()


class Tree(html.parser.HTMLParser):
    """Fails on tags that are not nested."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, "</%s> closes <%s>" % (tag, self.open[-1:])
        self.open.pop()


class Files(Case):
    def setUp(self):
        super().setUp()
        self.names = sorted(os.listdir(FOLDER))
        self.tree = Tree()
        self.tree.feed(source("index.html"))

    def test_the_html_is_valid_and_has_all_elements_of_the_script(self):
        self.assertEqual(self.tree.open, [])
        self.assertEqual(len(self.tree.ids), len(set(self.tree.ids)))
        for name in self.names:
            if name.endswith(".js"):
                for wanted in re.findall(r"\$\('([^']+)'\)", source(name)):
                    self.assertIn(wanted, self.tree.ids, name)
        for tag, attrs in self.tree.tags:
            for name in ("aria-labelledby", "for"):
                if name in attrs:
                    self.assertIn(attrs[name], self.tree.ids)
            for name in ("href", "src"):
                if attrs.get(name, "").startswith("page/"):
                    self.assertIn(attrs[name][5:], self.names)
        tags = [t for t, _ in self.tree.tags]
        for landmark in ("header", "main", "footer", "h1"):
            self.assertEqual(tags.count(landmark), 1)

    def test_the_page_loads_nothing_external_and_nothing_inline(self):
        for tag, attrs in self.tree.tags:
            self.assertNotIn("style", attrs)
            self.assertFalse([k for k in attrs if k.startswith("on")])
            self.assertTrue(tag != "script" or attrs.get("src", "").startswith("page/"))
        self.assertNotIn("<style", source("index.html"))
        for name in self.names:
            text = source(name).replace("http://www.w3.org/2000/svg", "")
            self.assertNotRegex(text, r"https?://\w|[\"'(]//|@import|url\(", name)
            self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|"
                                      r"localStorage|sessionStorage|document\.cookie", name)

    def test_the_page_is_small_and_served_unchanged(self):
        r = self.router([self.engine()])
        total = 0
        for name in self.names:
            path = "/" if name == "index.html" else "/page/" + name
            got = r.admin("GET", path, headers=HTML)
            self.assertEqual((got.status, got.body.decode()), (200, source(name)), name)
            total += len(got.body)
            policy = got.get("content-security-policy")
            self.assertIn("default-src 'none'", policy)
            self.assertIn("script-src 'self'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(got.get("x-content-type-options"), "nosniff")
            kind = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
            self.assertTrue(got.get("content-type").startswith(kind[name.rpartition(".")[2]]))
        self.assertLess(total, 150 * 1000)

    def test_others_than_browsers_get_the_list_of_calls(self):
        r = self.router([self.engine()])
        for headers in ([], [("Accept", "*/*")], [("Accept", "application/json")]):
            got = r.admin("GET", "/", headers=headers)
            self.assertTrue(got.get("content-type").startswith("text/plain"))
            self.assertIn("/decisions", got.body.decode())
        self.assertEqual(r.admin("GET", "/page/other.js").status, 404)
        self.assertEqual(r.admin("POST", "/page/app.js", b"").status, 404)


class Access(Case):
    """A browser's permissions for pages, by the headers that it sends."""

    def setUp(self):
        super().setUp()
        self.e = self.engine()
        self.r = self.router([self.e])
        self.own = "%s:%d" % (HOST, self.r.admin_port)
        self.body = json.dumps({"model": "m", "messages": [message("user", SECRET)]}).encode()

    def explain(self, *headers):
        host = [] if "Host" in dict(headers) else [("Host", self.own)]
        return self.r.admin("POST", "/explain", self.body, host + list(headers))

    def test_the_page_itself_may_call_explain(self):
        got = self.explain(("Origin", "http://" + self.own), ("Sec-Fetch-Site", "same-origin"))
        self.assertEqual(got.status, 200, got)
        self.assertEqual(got.json["choice"], self.e.name)
        self.assertNotIn(SECRET, got.body.decode())
        self.assertEqual(self.explain(("Origin", "http://" + self.own)).status, 200)  # an older browser

    def test_pages_of_other_origins_may_not_call_explain(self):
        for origin in ("http://evil.test", "http://%s" % HOST, "http://%s:1" % HOST, "null", "http://" + self.own + ".evil.test",
                       "ftp://" + self.own, "file://"):
            self.assertEqual(self.explain(("Origin", origin)).status, 403, origin)
            self.assertEqual(self.r.admin("GET", "/decisions", headers=[("Host", self.own), ("Origin", origin)]).status,
                             403, origin)
        self.assertEqual(self.explain(("Origin", "http://" + self.own), ("Sec-Fetch-Site", "cross-site")).status, 403)
        # A name that was pointed here (DNS rebinding) is not the router's name, though the page has the same origin.
        rebound = [("Host", "evil.test:9090"), ("Origin", "http://evil.test:9090"), ("Sec-Fetch-Site", "same-origin")]
        self.assertEqual(self.explain(*rebound).status, 403)
        self.assertEqual(self.r.admin("GET", "/", headers=HTML + rebound[:1]).status, 403)

    def test_advertised_names_are_accepted_as_host(self):
        """The page's links to other routers use these names; before, they were refused if admin-listen is 0.0.0.0."""
        alone = ("--gossip-listen", HOST + ":0", "--insecure-gossip", "on")
        machine = socket.gethostname()
        for args, host, told in ((("--admin-listen", "0.0.0.0:0"), machine, machine),
                                 (("--admin-advertise", "Router-1.test"), "router-1.TEST", "Router-1.test"),
                                 (("--admin-advertise", "router-1.test:99"), "router-1.test", "router-1.test:99"),
                                 (("--admin-advertise", "fd00::7"), "[fd00::7]", "[fd00::7]")):
            r = self.router([self.e], *alone, *args)
            port = "" if ":99" in told else ":%d" % r.admin_port
            self.assertEqual(r.admin("GET", "/members").json["members"][0]["admin"], told + port, args)
            own = "%s:%d" % (host, r.admin_port)
            page = [("Host", own), ("Origin", "http://" + own), ("Sec-Fetch-Site", "same-origin")]
            self.assertEqual(r.admin("GET", "/", headers=HTML + [("Host", own)]).status, 200, args)
            self.assertEqual(r.admin("POST", "/explain", self.body, page).status, 200, args)
            self.assertEqual(r.admin("POST", "/drain?replica=" + self.e.name, b"", page).status, 403)
            for other in ("evil.test", "fd00", "router-2.test", "xrouter-1.test", machine + ".evil.test"):
                self.assertEqual(r.admin("GET", "/", headers=HTML + [("Host", other)]).status, 403, other)

    def test_pages_of_other_origins_get_no_streams_but_links_work(self):
        for site in ("cross-site", "same-site"):
            c = self.client(self.r.admin_port)
            c.send(request("GET", "/live", None, [("Host", HOST), ("Sec-Fetch-Site", site)]))
            self.assertEqual(c.head().status, 403)  # a stream has no end to be read to
            frame = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")]
            self.assertEqual(self.r.admin("GET", "/", headers=HTML + frame).status, 403)
            link = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
            self.assertEqual(self.r.admin("GET", "/", headers=HTML + link).status, 200)
            self.assertEqual(self.r.admin("HEAD", "/", headers=HTML + link).status, 200)
            form = self.r.admin("POST", "/drain?replica=" + self.e.name, b"", link)  # sent, not followed
            self.assertEqual(form.status, 403)
            self.assertIn("web pages", form.json["error"]["message"])

    def test_the_page_cannot_change_anything(self):
        """Whatever script runs in the page: no token, no change."""
        own = [("Origin", "http://" + self.own), ("Sec-Fetch-Site", "same-origin")]
        for method, path in (("POST", "/drain?replica=" + self.e.name), ("DELETE", "/replicas?replica=" + self.e.name),
                             ("POST", "/replicas?replica=10.0.0.9:80"), ("POST", "/log-level?level=debug")):
            got = self.r.admin(method, path, b"", own)
            self.assertEqual(got.status, 403, path)
            self.assertIn("change nothing", got.json["error"]["message"])
        self.assertEqual([x["health"] for x in self.r.admin("GET", "/replicas").json], ["up"])


# The explain box in a document with only the parts that it uses; its calls fail without the token.
ASKS = """
const made = {};
function element(id) {
  return made[id] ||= {
    id, value: '', children: [], listeners: {}, attributes: id === 'ask-token-form' ? { hidden: '' } : {},
    setAttribute(name, value) { this.attributes[name] = value; },
    removeAttribute(name) { delete this.attributes[name]; },
    getAttribute(name) { return name in this.attributes ? this.attributes[name] : null; },
    replaceChildren(...children) { this.children = children; },
    append(...children) { this.children.push(...children); },
    addEventListener(name, listener) { this.listeners[name] = listener; },
    focus() {},
    get text() { return this.children.map((c) => c.text ?? c).join(''); },
  };
}
let count = 0;
globalThis.document = { getElementById: element, createElement: () => element('made' + count++) };
const ask = await import(process.argv[1]);
let token = '';
const told = [];
ask.begin(async (method, path) => {
  const good = token === 'sesame';
  told.push([path, token]);
  return { ok: good, status: good ? 200 : 401,
           json: async () => good ? { error: 'no replica' } : { error: { message: 'It needs the admin token.' } } };
}, (text) => { token = text; });
const seen = [];
async function look() {
  await new Promise((resolve) => setTimeout(resolve, 5));
  seen.push([element('ask-answer').text, 'hidden' in element('ask-token-form').attributes]);
}
element('ask-form').listeners.submit({ preventDefault() {} });
await look();
for (const text of [' wrong ', 'sesame']) {
  element('ask-token').value = text;
  element('ask-token-form').listeners.submit({ preventDefault() {} });
  await look();
}
console.log(JSON.stringify({ told, seen, left: element('ask-token').value }));
"""


@unittest.skipUnless(shutil.which("node"), "node is not here (Debian: nodejs)")
class Asking(unittest.TestCase):
    def test_the_explain_box_requests_a_token_if_calls_need_one(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(FOLDER):
                shutil.copy(os.path.join(FOLDER, name), folder)
            with open(os.path.join(folder, "package.json"), "w") as f:
                f.write('{"type": "module"}')
            p = subprocess.run(["node", "--input-type=module", "-e", ASKS, os.path.join(folder, "ask.js")],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        said = json.loads(p.stdout)
        self.assertEqual(said["told"], [["explain", ""], ["explain", "wrong"], ["explain", "sesame"]])
        self.assertEqual(said["seen"], [["It needs the admin token.", False], ["This token is not accepted.", False],
                                        ["Nowhere: no replica.", True]])
        self.assertEqual(said["left"], "", "the field forgets it")


class Stranger(Case):
    def test_every_path_and_method_without_the_token(self):
        """Nothing changes, and nothing of a prompt can be read."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        token = os.path.join(folder.name, "token")
        with open(token, "w") as f:
            f.write("sesame\n")
        e = self.engine()
        r = self.router([e], "--admin-token-file", token)
        body = {"model": "m", "messages": [message("user", SECRET + " word" * 300)], "user": SECRET}
        self.assertEqual(self.client(r).post(CHAT, body, [("x-session", SECRET)]).status, 200)
        listed = r.admin("GET", "/").body.decode()
        paths = set(re.findall(r"(/[a-z-]+)", listed)) | {"/", "/page/app.js", "/..", "/%2e%2e/etc/passwd", "/page/"}
        self.assertGreater(len(paths), 16)

        def state():
            return ([{k: x[k] for k in ("name", "health", "wish", "chosen")} for x in r.admin("GET", "/replicas").json],
                    r.admin("GET", "/config").body, r.admin("GET", "/poison").json)
        before = state()
        query = "?replica=%s&level=debug&hash=00&all=0&n=5&x=1" % e.name
        for path in sorted(paths - {"/live"}):
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                for target in (path, path + query):
                    for headers in ([], [("Authorization", "Bearer wrong")], HTML):
                        data = None if method in ("GET", "HEAD", "OPTIONS") else b"{}"
                        got = r.admin(method, target, data, headers)
                        self.assertLess(got.status, 500, (method, target))
                        self.assertNotIn(SECRET, got.body.decode(errors="replace"), (method, target))
                        self.assertNotIn("sesame", got.body.decode(errors="replace"), (method, target))
        self.assertEqual(state(), before)
        self.assertEqual(r.events("replica_drain") + r.events("log_level"), [])
        wait_for(lambda: r.events("admin_refused"), "that it was noticed")

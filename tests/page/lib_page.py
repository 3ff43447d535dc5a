"""What the tests of the page in Chromium share: a cluster under load, the browser, and what it shows."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from lib import HOST, Client, wait_for
from lib_cluster import Clustered, gvctl
from test_engines import CHAT, message, words

SECRET = "the-prompt-nobody-may-read"
SOON_S = 3.0  # until the page reports a problem
SHOTS = os.environ.get("SHOTS")
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Load:
    """Conversations at all routers, until it is stopped."""

    def __init__(self, nodes, clients=6):
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(nodes[k % len(nodes)].port, k), daemon=True)
                        for k in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, port, seed):
        rnd, c, i = random.Random(seed), None, 0
        while not self.stopping.wait(0.05):
            i += 1
            who = rnd.randrange(24)
            body = {"model": "sim", "max_tokens": 20, "stream": i % 2 == 0, "messages": [
                message("system", SECRET + " " + words("s%d" % (who % 4), 300)),
                message("user", words("u%d" % who, 200 + 60 * (i % 5)))]}
            try:
                c = c or Client(port)
                c.post(CHAT, body)
            except Exception:  # its router was killed
                c = None
                self.stopping.wait(0.2)

    def stop(self):
        self.stopping.set()
        for t in self.threads:
            t.join(10)


class PageCase(Clustered):
    def setUp(self):
        super().setUp()
        options = Options()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1440,1100"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.d = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.addCleanup(self.d.quit)
        self.make()
        self.load = Load(self.nodes)
        self.addCleanup(self.load.stop)

    def make(self):
        """The cluster; a test may have another."""
        self.sims = [self.sim() for _ in range(4)]
        self.nodes = self.cluster(3, self.sims)

    def open(self, r):
        self.d.get("http://%s:%d/" % (HOST, r.admin_port))
        wait_for(lambda: self.text("live-text") == "live", "the stream", limit=20)

    def text(self, name):
        return self.d.find_element(By.ID, name).text

    def said(self, condition, what, where="headline", limit=10):
        begun = time.monotonic()
        wait_for(lambda: condition(self.text(where)), "%s; it says: %s" % (what, self.text(where)), limit, step=0.05)
        took = time.monotonic() - begun
        print("%s: said after %.1f s: %s" % (what, took, self.text(where)))
        return took

    def assert_status(self, severity, what, command, r=None):
        """gvctl status says the same, with the next command."""
        out = gvctl("status", admin=(r or self.nodes[0]).admin_port)[1]
        self.assertRegex(out, r"(?m)^%s .*%s.*\n +hurts .*; next: %s" % (severity, re.escape(what), re.escape(command)))

    def chosen(self):
        """The replicas of the decisions shown."""
        return set(self.d.execute_script("return [...document.querySelectorAll('.decision .to')].map((x) => x.textContent.split(' ')[0])"))

    def kill(self, r):
        r.signal(signal.SIGKILL)
        r.stopped = True
        r.wait()

    def well(self):
        return self.said(lambda t: t.startswith("All 3 routers agree; all 4 replicas"), "all is well", limit=30)

    def shot(self, name, width, height, dark=False):
        self.d.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                               {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.d.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.d.set_script_timeout(10)
        self.d.execute_async_script("const done = arguments[0]; let left = 4;"
                                    "(function frame() { left-- > 0 ? requestAnimationFrame(frame) : done(); })()")
        # Nothing is cut off sideways, on a phone or on a wall display.
        self.assertLessEqual(self.d.execute_script("return document.documentElement.scrollWidth"), width)
        if SHOTS:
            path = os.path.join(TOP, "docs", "img", "page-%s.png" % name)
            self.d.save_screenshot(path)
            if shutil.which("pngquant"):
                subprocess.run(["pngquant", "--force", "--output", path, "64", path], check=False)
            self.assertLess(os.path.getsize(path), 200 * 1024, "too large for the docs: is pngquant there?")

    def painted(self):
        return self.d.execute_script("return performance.getEntriesByName('first-contentful-paint')[0].startTime")

    def assert_whole(self, selector, width):
        """Nothing in there is cut off sideways."""
        self.assertTrue(self.d.execute_script("const t = document.querySelector(arguments[0]); return t.scrollWidth <= t.clientWidth",
                                              selector), width)

    @contextlib.contextmanager
    def dropped(self, rule):
        table = "grapevine_page_%d" % os.getpid()
        text = "table inet %s { chain c { type filter hook output priority 0; %s; }; }" % (table, rule)
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
        try:
            yield
        finally:
            subprocess.run(["nft", "delete", "table", "inet", table], check=True)

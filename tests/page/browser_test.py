"""The page in headless Chromium, with three routers under load: its contents, and how soon it shows a trouble."""

import http.server
import json
import os
import shutil
import threading
import time
import unittest
import urllib.request

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from lib import HOST, SLOW, closed_port, wait_for
from lib_page import SECRET, SHOTS, SOON_S, PageCase
from test_engines import message


class Page(PageCase):
    def test_the_page_shows_the_cluster(self):
        self.open(self.nodes[0])
        self.well()
        wait_for(lambda: self.text("f-cached").endswith("%"), "the cached share", limit=20)
        wait_for(lambda: "ms" in self.text("f-ttft"), "the time to the first token", limit=20)
        self.assertEqual(len(self.d.find_elements(By.CSS_SELECTOR, "#ring circle")), 3)
        self.assertEqual(len(self.d.find_elements(By.CSS_SELECTOR, "#ring .link.both")), 3)
        self.assertEqual(len(self.d.find_elements(By.CSS_SELECTOR, "#routers tbody tr")), 3)
        cards = self.d.find_elements(By.CSS_SELECTOR, "#replicas tr[data-state]")
        self.assertEqual({c.find_element(By.TAG_NAME, "th").text for c in cards}, {s.name for s in self.sims})
        wait_for(lambda: self.d.find_elements(By.CSS_SELECTOR, ".decision"), "a decision", limit=20)
        self.assertRegex(self.text("events"), r"Router r[23] joined\.")
        self.assertIn("only from this router’s machine", self.text("who"))
        time.sleep(3)
        self.shot("wide", 1440, 1100)
        self.shot("phone", 360, 780, dark=True)
        self.shot("wall", 2400, 1350, dark=True)
        self.shot("wide", 1440, 1100)

        # A decision opens, by keyboard, into its table, and stays while others come.
        self.d.find_element(By.ID, "pause").click()  # or the line is gone before it is read
        line = wait_for(lambda: [b for b in self.d.find_elements(By.CSS_SELECTOR, ".decision button[aria-expanded]")
                                 if "olds" in b.text], "a line", limit=20)[0]
        line.send_keys(Keys.ENTER)
        opened = self.d.find_element(By.ID, line.get_attribute("aria-controls"))
        self.assertIn("It costs", opened.text)
        self.assertEqual(len(opened.find_elements(By.CSS_SELECTOR, "tbody tr")), 4)
        self.assertEqual(len(opened.find_elements(By.CSS_SELECTOR, "tr.chosen")), 1)
        wait_for(lambda: "new)" in self.text("pause"), "others wait", limit=20)
        self.assertTrue(opened.is_displayed())
        self.shot("decision", 1440, 1100)
        if not SHOTS:
            self.shot("costs-whole", 1200, 1000)
        self.assert_whole(".decision .scroll", 1200)

        # Filters look through all that the router keeps.
        name = self.sims[2].name
        self.d.find_element(By.ID, "d-replica").send_keys(name, Keys.TAB)
        wait_for(lambda: "match" in self.text("d-found"), "what was found", limit=20)
        self.assertEqual(self.chosen(), {name})
        self.d.find_element(By.CSS_SELECTOR, "#d-end option[value=failed]").click()
        wait_for(lambda: self.text("d-found") == "0 decisions of the last 512 match.", "that none failed", limit=20)
        self.d.find_element(By.ID, "d-clear").click()
        wait_for(lambda: len(self.chosen()) > 1, "all again", limit=20)

        # The explain box, for this router and for all.
        box = self.d.find_element(By.ID, "ask")
        box.send_keys(json.dumps({"model": "sim", "messages": [message("user", "a question of my own")]}))
        self.d.find_element(By.ID, "ask-all").click()
        wait_for(lambda: "would choose" in self.text("ask-answer"), "all are asked", limit=20)
        self.assertEqual(len(self.d.find_elements(By.CSS_SELECTOR, "#ask-answer > .scroll tbody tr")), 3)
        self.d.find_element(By.ID, "ask-one").click()
        wait_for(lambda: "It would go to" in self.text("ask-answer"), "this one is asked", limit=20)
        self.assertNotIn("question of my own", self.text("ask-answer"))
        self.assertNotIn(SECRET, self.d.page_source)
        self.assertEqual([e for e in self.d.get_log("browser") if e["level"] != "INFO"], [])

    def test_charts_show_their_values(self):
        self.open(self.nodes[0])
        self.well()
        picture = self.d.find_element(By.ID, "s-requests")
        right = picture.size["width"] // 2 - 2  # from the middle, the last second
        for range_text in (r"^\d\d:\d\d:\d\d: [\d.]+ a second$", r"^$"):  # no minute is over yet
            ActionChains(self.d).move_to_element_with_offset(picture, right, 0).perform()
            self.assertRegex(picture.find_element(By.CLASS_NAME, "tip").text, range_text)
            self.d.find_element(By.ID, "range").click()
        self.assertEqual(self.d.find_element(By.ID, "range").get_attribute("aria-pressed"), "false")

    def test_a_killed_router_is_reported(self):
        self.open(self.nodes[0])
        self.well()
        self.kill(self.nodes[2])
        took = self.said(lambda t: "outer r3 is" in t, "a router killed", "attention")
        self.said(lambda t: "Router r3 is gone" in t, "it is dead", "attention", limit=20)
        self.assertIn("Router r3 was marked dead", self.text("events"))
        self.shot("killed", 1440, 1100)
        self.assertLess(took, SOON_S * SLOW)
        self.kill(self.nodes[0])  # the router of the open page
        took = self.said(lambda t: "r1 has not answered" in t, "the router of the page killed")
        self.assertIn("r2", self.text("advice"))
        self.assertLess(took, SOON_S * SLOW)

    def test_a_drained_replica_and_a_dead_replica_are_reported(self):
        self.open(self.nodes[0])
        self.well()
        name = self.sims[0].name
        self.assertEqual(self.nodes[1].admin("POST", "/drain?replica=" + name).status, 200)  # at another router
        took = self.said(lambda t: "3 of 4 replicas take requests" in t, "a replica drained")
        self.assertLess(took, SOON_S * SLOW)
        self.nodes[1].admin("POST", "/undrain?replica=" + name)
        self.well()
        self.sims[1].kill()
        took = self.said(lambda t: self.sims[1].name + " is" in t, "a replica killed", "attention")
        self.assertLess(took, SOON_S * SLOW)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("nft"), "needs root and nftables")
    def test_a_partition_is_reported(self):
        self.open(self.nodes[0])
        self.well()
        ports = "{ %d, %d }" % (self.nodes[1].gossip_port, self.nodes[2].gossip_port)
        with self.dropped("udp sport %s udp dport %s drop" % (ports, ports)):
            took = self.said(lambda t: "Routers r2 and r3 do not hear each other" in t, "a partition between two others", "attention")
            self.assertIn("Other routers relay the messages of both", self.text("why-differ"))
            self.assert_status("amber", "routers r2 and r3 do not hear each other", "open the gossip ports of both: gvctl members")
            self.shot("partition", 1440, 1100)
        self.assertLess(took, SOON_S * SLOW)
        self.well()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("nft"), "needs root and nftables")
    def test_one_way_loss_is_reported(self):
        self.open(self.nodes[0])
        self.well()
        with self.dropped("udp sport %d udp dport %d drop" % (self.nodes[1].gossip_port, self.nodes[2].gossip_port)):
            took = self.said(lambda t: "Router r3 does not hear r2" in t, "loss one way, between two others", "attention")
            self.assertIn("Router r3 does not hear r2, but is heard there", self.text("why-differ"))
            self.assert_status("amber", "router r3 does not hear r2, but is heard there", "open the gossip port of r3: gvctl members")
        self.assertLess(took, SOON_S * SLOW)
        self.well()

    def test_the_page_takes_a_read_token(self):
        """A port that requires a token, here in front of a router."""
        admin = "http://%s:%d" % (HOST, self.nodes[0].admin_port)

        class Guard(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                open_to_all = self.path == "/" or self.path.startswith("/page/")
                if not open_to_all and self.headers.get("Authorization") != "Bearer sesame":
                    self.send_response(401)
                    self.end_headers()
                    return
                asked = urllib.request.Request(admin + self.path, headers={"Accept": self.headers["Accept"]})
                with urllib.request.urlopen(asked) as answer:
                    self.send_response(200)
                    self.send_header("Content-Type", answer.headers["Content-Type"])
                    self.end_headers()
                    try:
                        for part in iter(lambda: answer.read1(65536), b""):
                            self.wfile.write(part)
                    except OSError:  # the tab is closed
                        pass

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer((HOST, 0), Guard)
        server.handle_error = lambda *_: None  # its router is stopped
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.d.get("http://%s:%d/" % (HOST, server.server_port))
        field = self.d.find_element(By.ID, "token")
        wait_for(field.is_displayed, "it asks for a token", limit=20)
        field.send_keys("wrong", Keys.ENTER)
        self.said(lambda t: t == "This token is not accepted.", "a wrong token")
        field.send_keys("sesame", Keys.ENTER)
        self.well()
        self.assertFalse(field.is_displayed())
        kept = self.d.execute_script("return JSON.stringify([localStorage, sessionStorage, document.cookie])")
        self.assertEqual(kept, '[{},{},""]')

    def test_a_thousand_replicas(self):
        """Before, the last column was cut off at 1,440 pixels, and replicas beyond 128 were missing."""
        port = self.sim(host="0.0.0.0", port=closed_port()).port
        many = ["http://127.1.%d.%d:%d" % (i // 200, 1 + i % 200, port) for i in range(1000)]
        away = ["http://a-replica-with-a-long-name-%d.example.invalid:8000" % i for i in range(3)]
        r = self.router(many, *[a for url in away for a in ("--replica", url)])
        self.d.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": (
            "const look = () => { if (document.querySelectorAll('#replicas tr[data-state]').length < 1003) setTimeout(look, 5);"
            " else window.whole = performance.now(); }; look();")})
        self.open(r)
        self.open(r)  # the browser is warm
        whole = wait_for(lambda: self.d.execute_script("return window.whole"), "each replica has its row", limit=20)
        print("1,003 replicas: first paint after %.0f ms, all rows after %.0f ms" % (self.painted(), whole))
        wait_for(lambda: [x.get_attribute("data-state") for x in self.d.find_elements(By.CSS_SELECTOR, "#replicas tr[data-state]")[:4]]
                 == ["out"] * 3 + ["well"], "the names that nobody resolves come first", limit=20)
        for width in (2000, 1440, 1200, 400):
            self.shot("whole-table", width, 1000) if not SHOTS else None
            self.assert_whole(".replicas .scroll", width)

    def test_the_page_is_small_and_paints_soon(self):
        self.open(self.nodes[0])
        self.d.refresh()
        wait_for(lambda: self.text("live-text") == "live", "the stream", limit=20)
        sizes = self.d.execute_script("return performance.getEntriesByType('resource').filter(e => e.name.match(/page./))"
                                      ".concat(performance.getEntriesByType('navigation')).map(e => e.decodedBodySize)")
        print("first paint after %.0f ms; %d bytes in %d files" % (self.painted(), sum(sizes), len(sizes)))
        self.assertLess(sum(sizes), 150 * 1000)

    @unittest.skipUnless(os.path.exists(os.environ.get("AXE", "")), "axe-core is not there")
    def test_axe_finds_no_violation(self):
        with open(os.environ["AXE"]) as f:
            axe = f.read()
        self.open(self.nodes[0])
        self.well()
        line = wait_for(lambda: self.d.find_elements(By.CSS_SELECTOR, ".decision button"), "a line", limit=20)[0]
        line.click()
        self.d.find_element(By.ID, "ask").send_keys('{"model": "sim", "messages": []}')
        self.d.find_element(By.ID, "ask-all").click()
        wait_for(lambda: "would choose" in self.text("ask-answer"), "the answer", limit=20)
        self.kill(self.nodes[2])
        self.said(lambda t: "Router r3 is gone" in t, "r3 dead", "attention", limit=20)
        self.d.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        for dark in (False, True):
            for width in (1900, 1300):  # the column of digests was cut
                self.shot("whole-table", width, 1000, dark) if not SHOTS else None
                self.assert_whole(".routers .scroll", width)
            for width in (1440, 360):
                self.shot("axe-none", width, 1000, dark) if not SHOTS else None
                found = self.d.execute_async_script(
                    "const done = arguments[arguments.length - 1];"
                    "axe.run(document).then(r => done(r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.target + '')])))")
                self.assertEqual(found, [], (dark, width))


if __name__ == "__main__":
    unittest.main()

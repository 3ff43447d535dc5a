"""One or two routers read the metrics of an engine, for all."""

import unittest

from lib import answer, wait_for
from lib_cluster import Clustered
from lib_net import owner_of

METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} %d
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 2
# TYPE vllm:engine_sleep_state gauge
vllm:engine_sleep_state{sleep_state="awake"} %d
# TYPE process_start_time_seconds gauge
process_start_time_seconds %d
"""


class Scrapes(Clustered):
    def setUp(self):
        super().setUp()
        self.running, self.awake, self.started = 3, 1, 1700000000
        self.readers = []  # the reading router, each time
        self.e = self.engine()

        def metrics(asked):
            self.readers.append(owner_of(asked.sock.getpeername()[1], [r.pid for r in self.nodes]))
            asked.send(answer(200, (METRICS % (self.running, self.awake, self.started)).encode()))
        self.e.probes["/metrics"] = metrics
        self.nodes = []
        self.nodes = self.cluster(5, [self.e], "--scrape-interval", "200ms")
        for r in self.nodes:
            r.wait_up(1)
        wait_for(lambda: len(self.scrapers()) == 2, "two of five scrape")

    def scrapers(self):
        """The routers that read its metrics the next ten times."""
        before = len(self.readers)
        wait_for(lambda: len(self.readers) >= before + 10, "ten readings")
        return set(self.readers[before:before + 10])

    def of(self, r, metric):
        return r.metric('replica_%s{replica="%s"}' % (metric, self.e.name))

    def all_see(self, metric, value, nodes=None):
        for r in nodes or self.nodes:
            wait_for(lambda: self.of(r, metric) == value, "%s %s" % (metric, value))

    def test_two_routers_scrape_for_all(self):
        self.running = 7
        self.all_see("engine_running", 7)
        self.all_see("engine_waiting", 2)
        for r in self.nodes:
            wait_for(lambda: self.of(r, "scrape_age_seconds") < 5, "a young scrape")
        self.awake = 0
        self.all_see("up", 0)
        self.awake = 1
        self.all_see("up", 1)
        self.started += 1000
        self.all_see("restarts_total", 1)
        wait_for(lambda: len(self.scrapers()) == 2, "still two scrape: one may die")

    def test_a_dead_scraper_is_replaced(self):
        self.running = 1
        while len(self.nodes) > 2:
            r = self.nodes.pop(0)
            r.stopped = True
            r.kill()
            self.running += 1
            self.all_see("engine_running", self.running)
        wait_for(lambda: self.scrapers() == {r.pid for r in self.nodes}, "both that are left scrape")


if __name__ == "__main__":
    unittest.main()

"""The checker of the resources of machines that routers use."""

import unittest

from story import Story, rules
from checkers.resources import check, figures


class Resources(unittest.TestCase):
    def test_descriptors_of_connections_are_no_leak(self):
        story = Story("service")
        story.event(1, "r1", "holds", descriptors=22, sockets=8)
        story.event(9, "r1", "holds", descriptors=92, sockets=78)
        story.event(9, "r2", "holds")  # it does not run
        self.assertEqual(check(story.history()), [])
        self.assertEqual(figures(story.history()), {"most descriptors of a router at rest": 92, "most sockets": 78})

    def test_connections_that_stay_are_an_anomaly(self):
        story = Story("service")
        story.event(9, "r1", "holds", descriptors=412, sockets=398)
        self.assertEqual(rules(check(story.history())), ["sockets"])

    def test_sockets_that_grow_at_each_rest_are_an_anomaly(self):
        for counts, expected in ((range(7, 100, 5), ["growing"]), ([11, 60, 60, 60, 60, 60, 60, 60, 60], []),
                                 ([11, 12, 13, 14, 15, 16, 17, 18], []), ([7, 17, 27, 37, 47, 11, 21, 31, 41], [])):
            story = Story("service")
            for i, n in enumerate(counts):
                story.event(10 * i + 10, "r1", "holds", descriptors=n + 10, sockets=n)
            self.assertEqual(rules(check(story.history())), expected)

    def test_a_rest_without_readings_is_blind(self):
        for look, expected in ((False, ["blind"]), (True, [])):
            story = Story("service")
            story.rest(10, 2)
            if look:
                story.event(10.1, "r1", "holds", descriptors=22, sockets=8)
            self.assertEqual(rules(check(story.history())), expected)
            story.rows[0]["value"]["proxy"] = "haproxy {port} {folder} {engines}"
            self.assertEqual(rules(check(story.history())), [])

    def test_descriptors_without_connections_are_an_anomaly(self):
        story = Story("service")
        for t, n in ((1, 28), (5, 30), (9, 90)):
            story.event(t, "r1", "holds", descriptors=n, sockets=8)
        self.assertEqual(rules(check(story.history())), ["descriptors"])
        self.assertIn("90", check(story.history())[0].text)


if __name__ == "__main__":
    unittest.main()

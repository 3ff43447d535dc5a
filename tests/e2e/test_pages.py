"""The documentation's pages: links have targets, and the commands of gvctl that they name exist."""

import glob
import os
import re
import subprocess
import unittest

from lib import binary
from lib_deploy import TOP, anchors, path, text

PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] + sorted(glob.glob("docs/**/*.md", root_dir=TOP, recursive=True))


def prose(page):
    """Without blocks of code, where brackets are no links."""
    return re.sub(r"(?ms)^```.*?^```", "", text(*page.split("/")))


class Pages(unittest.TestCase):
    def test_links_have_targets(self):
        wrong = []
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page))):
                file, _, anchor = target.partition("#")
                if "://" in target:
                    continue
                at = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
                if not os.path.exists(path(at)):
                    wrong.append("%s: there is no %s" % (page, target))
                elif anchor and at.endswith(".md") and anchor not in anchors(at):
                    wrong.append("%s: %s has no such heading" % (page, target))
        self.assertEqual(wrong, [])

    def test_commands_of_gvctl_exist(self):
        usage = subprocess.run([binary("gvctl"), "--help"], capture_output=True, text=True, check=True).stdout
        commands = set(re.findall(r"(?m)^  ([a-z][a-z-]*)", usage)) | {"command"}
        self.assertGreater(len(commands), 10)
        operators = [p for p in PAGES if re.match(r"docs/(how-to/|(runbook|sizing|hit-rate|gvctl|page|admin-api|logs)\.md)", p)]
        self.assertGreater(len(operators), 15)
        wrong = []
        for page in operators:
            body = text(*page.split("/"))
            spans = re.findall(r"`gvctl ([^`]+)`", body)
            for block in re.findall(r"(?ms)^```.*?^```", body):
                spans += re.findall(r"(?m)\bgvctl (.+)$", block)
            for span in spans:
                word = next((w for w in re.sub(r"--(admin|config|ca-file|token-file|session) \S+", "", span).split()
                             if not w.startswith("-")), None)
                if word is not None and word.lower().rstrip(";") not in commands:
                    wrong.append("%s: gvctl %s" % (page, span))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()

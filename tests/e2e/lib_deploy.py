"""Shared by the tests of deploy/: YAML, and the tools that may be missing (make deploy-tools)."""

import json
import os
import re
import shutil
import subprocess

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TOOLS = os.environ.get("DEPLOY_TOOLS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "grapevine")
KUBERNETES = ("1.35", "1.36", "1.37")  # the last three
READ = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)"


def path(*names):
    return os.path.join(TOP, *names)


def text(*names):
    with open(path(*names), encoding="utf-8") as f:
        return f.read()


def documents(yaml_text):
    """The documents of a YAML text, without empty ones. PyYAML comes from this Python or from Debian's."""
    for python in ("python3", "/usr/bin/python3"):
        p = subprocess.run([python, "-c", READ], input=yaml_text, capture_output=True, text=True)
        if p.returncode == 0:
            return [d for d in json.loads(p.stdout) if d is not None]
        if "No module named" not in p.stderr:
            raise AssertionError(p.stderr)
    raise AssertionError("no Python here has PyYAML (Debian: python3-yaml)")


def tool(name):
    """The tool's path, or None."""
    return shutil.which(name, path=os.pathsep.join(
        [os.environ.get("PATH", ""), os.path.join(TOOLS, "bin"), os.path.join(TOOLS, "venv", "bin"), "/usr/sbin"]))


def commands(heading):
    """The commands below a heading of docs/how-to/secure.md, as one script."""
    part = re.search(r"(?ms)^### %s\n(.*?)^##" % re.escape(heading), text("docs", "how-to", "secure.md"))[1]
    return "".join(re.findall(r"(?ms)^```(?:sh|text)\n(.*?)^```", part))


def anchors(page):
    """Anchors of a page's headings, as a forge makes them."""
    found = set()
    for line in text(*page.split("/")).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            found.add(re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", title)))
    return found

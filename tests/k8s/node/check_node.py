"""The plain manifests of deploy/kubernetes as written, on a real node: the image, the Job that makes the key, probes,
the service, rollouts, evictions, policies. Run by tests/k8s/run.sh with NODE=1, in namespaces of its own."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error

from lib import wait_for
from lib_deploy import path, text, tool
from node import Node

ENGINES = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm, namespace: inference}
spec:
  replicas: 2
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      terminationGracePeriodSeconds: 2
      containers:
        - name: engine
          image: test:1
          command: [/engine-sim, --listen, "0.0.0.0:8000"]
          readinessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 1}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: vllm, namespace: inference}
spec:
  selector: {app: vllm}
  ports: [{name: http, port: 8000}]
"""
STRANGER = """
apiVersion: v1
kind: Pod
metadata: {name: stranger, labels: {app: stranger}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  terminationGracePeriodSeconds: 1
  containers:
    - name: stranger
      image: test:1
      command: [/engine-sim, --listen, "0.0.0.0:8000"]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
MINE = ("-n", "grapevine")


class Load:
    """Clients that ask at a service, each time by another connection, and never twice."""

    def __init__(self, host, clients=6):
        self.host, self.stopping, self.good, self.bad = host, threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(clients)]
        for t in self.threads:
            t.start()

    def ask(self, number):
        turn = 0
        while not self.stopping.wait(0.05):
            turn += 1
            body = {"model": "sim", "max_tokens": 20, "stream": turn % 2 == 0,
                    "messages": [{"role": "user", "content": "client %d, turn %d " % (number, turn) * 20}]}
            try:
                c = http.client.HTTPConnection(self.host, 80, timeout=20)
                c.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
                answer = c.getresponse()
                text = answer.read()
                c.close()
                if answer.status != 200 or (b"[DONE]" if turn % 2 == 0 else b'"usage"') not in text:
                    self.bad.append((answer.status, text[:200]))
                self.good += 1
            except (OSError, http.client.HTTPException) as error:
                self.bad.append(repr(error))

    def end(self):
        self.stopping.set()
        for t in self.threads:
            t.join()
        return self.bad


class RealNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.node = Node(cls.folder, [os.path.join(os.environ["IMAGES"], n) for n in ("grapevine.tar", "test.tar")])
        cls.addClassCleanup(cls.node.end)
        for name in ("inference", "grapevine"):
            cls.kubectl("create", "namespace", name)
            cls.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        cls.kubectl("apply", "-f", "-", input=ENGINES)
        for name in ("key", "rbac", "router"):
            cls.kubectl("apply", "-f", path("deploy", "kubernetes", name + ".yaml"))
        cls.rolled()
        cls.service = cls.kubectl(*MINE, "get", "service", "grapevine", "-o", "jsonpath={.spec.clusterIP}")

    @classmethod
    def kubectl(cls, *args, **more):
        p = cls.node.kubectl(*args, **more)
        if p.returncode != 0:
            raise AssertionError("kubectl %s: %s%s" % (" ".join(args), p.stdout, p.stderr))
        return p.stdout

    @classmethod
    def rolled(cls):
        cls.kubectl(*MINE, "rollout", "status", "deployment/grapevine", "--timeout", "120s")

    def gvctl(self, *args):
        return self.kubectl(*MINE, "exec", "deployment/grapevine", "--", "gvctl", *args)

    def pods(self):
        return self.node.pods("grapevine", "app.kubernetes.io/name%3Dgrapevine")

    def routers(self):
        """The routers that are to stay."""
        return [p for p in self.pods() if "deletionTimestamp" not in p["metadata"]]

    def ready(self):
        return [p["metadata"]["name"] for p in self.routers()
                if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]

    def evict(self, name):
        """The status: 201, or 429 where the budget is used up."""
        try:
            self.node.call("POST", "/api/v1/namespaces/grapevine/pods/%s/eviction" % name, {
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "grapevine"}})
            return 201
        except urllib.error.HTTPError as error:
            return error.code

    def test_1_the_manifests_run_unchanged(self):
        self.assertIn("All 3 living routers hold the same state", self.gvctl("convergence", "--wait", "--members", "3"))
        self.assertIn("replicas     2: 2 up", self.gvctl("status"))
        self.assertEqual([p["status"].get("containerStatuses", [{}])[0].get("restartCount") for p in self.routers()], [0] * 3)

    def test_2_engines_come_and_go(self):
        for count in (3, 2):
            self.kubectl("-n", "inference", "scale", "deployment/vllm", "--replicas", str(count))
            wait_for(lambda: "replicas     %d: %d up" % (count, count) in self.gvctl("status"), "%d engines" % count, limit=60)

    def test_3_a_rollout_under_load(self):
        load = Load(self.service)
        self.kubectl(*MINE, "rollout", "restart", "deployment/grapevine")
        self.rolled()
        wait_for(lambda: len(self.pods()) == 3, "the old ones have drained and are gone", limit=60)
        self.assertEqual(load.end(), [])
        print("\n    %d requests, none failed" % load.good)
        self.assertIn("All 3 living routers hold the same state", self.gvctl("convergence", "--wait", "--members", "3"))

    def test_4_evictions(self):
        """One at a time, as during a node's drain; unready pods block none."""
        names = self.ready()
        self.assertEqual([self.evict(n) for n in names[:2]], [201, 429])
        wait_for(lambda: len(self.ready()) == 3, "another one in its place", limit=60)
        self.kubectl("-n", "inference", "scale", "deployment/vllm", "--replicas", "0")
        wait_for(lambda: not self.ready(), "without engines no router is ready", limit=60)
        self.assertEqual([self.evict(p["metadata"]["name"]) for p in self.routers()], [201] * 3)
        self.kubectl("-n", "inference", "scale", "deployment/vllm", "--replicas", "2")
        wait_for(lambda: len(self.ready()) == 3, "all are ready again", limit=90)

    def test_5_a_hung_router_is_restarted(self):
        pids = subprocess.run(["pgrep", "-x", "grapevine"], capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(pids[0]), signal.SIGSTOP)

        def restarts():
            return sum(s["restartCount"] for p in self.routers() for s in p["status"].get("containerStatuses", []))
        wait_for(lambda: restarts() == 1, "the liveness probe fails", limit=120)
        wait_for(lambda: len(self.ready()) == 3, "it is back", limit=60)

    def address(self, namespace, label, which=0):
        return self.node.pods(namespace, label)[which]["status"]["podIP"]

    def reaches(self, caller, address, port):
        """True if a pod is admitted to a listening port. Policies may refuse, or drop."""
        script = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
        return self.node.inside(caller, sys.executable, "-c", script, address, str(port)).returncode == 0

    def test_6_peers_that_reach_each_port(self):
        self.kubectl("create", "namespace", "monitoring")
        for namespace in ("grapevine", "monitoring"):
            self.kubectl("-n", namespace, "apply", "-f", "-", input=STRANGER)
            self.kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/stranger", "--timeout", "60s")
        routers = [p["status"]["podIP"] for p in self.routers()]
        callers = {"of its namespace": self.address("grapevine", "app%3Dstranger"), "another router": routers[1],
                   "Prometheus": self.address("monitoring", "app%3Dstranger"),
                   "an engine": self.address("inference", "app%3Dvllm")}
        ports = {"client": 8080, "admin": 9090, "probe": 9091, "gossip": 7490}
        found = {c: [p for p in ports if self.reaches(callers[c], routers[0], ports[p])] for c in callers}
        self.assertEqual(found, {
            "of its namespace": ["client", "admin", "probe"], "another router": ["client", "admin", "probe", "gossip"],
            "Prometheus": ["client", "probe"], "an engine": ["client"]})

    def test_7_a_policy_for_the_routers_own_calls(self):
        """The policy of docs/how-to/kubernetes.md: enough for new pods to get ready, and nothing else is reached."""
        values = os.path.join(self.folder, "egress.yaml")
        with open(values, "w") as f:
            f.write(re.search(r"(?ms)^```yaml\n(# egress\.yaml\n.*?)^```", text("docs", "how-to", "kubernetes.md"))[1])
        p = subprocess.run([tool("helm"), "template", "grapevine", path("deploy", "helm", "grapevine"), "-n", "grapevine",
                            "--kube-version", "1.34.4", "-f", values, "-s", "templates/networkpolicy.yaml"], capture_output=True, text=True, check=True)
        self.kubectl("apply", "-f", "-", input=p.stdout)
        self.kubectl(*MINE, "rollout", "restart", "deployment/grapevine")
        self.rolled()
        wait_for(lambda: len(self.pods()) == 3, "the old ones have drained and are gone", limit=60)
        self.assertIn("All 3 living routers hold the same state", self.gvctl("convergence", "--wait", "--members", "3"))
        self.assertIn("replicas     2: 2 up", self.gvctl("status"))
        router = self.routers()[0]["status"]["podIP"]
        engine, other = self.address("inference", "app%3Dvllm"), self.address("monitoring", "app%3Dstranger")
        self.assertTrue(self.reaches(router, engine, 8000))
        self.assertFalse(self.reaches(router, other, 8000))
        self.assertTrue(self.reaches(engine, other, 8000))  # no policy is between these


if __name__ == "__main__":
    unittest.main()

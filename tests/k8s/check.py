"""A real kube-apiserver's behaviour that Grapevine relies on. Run by tests/k8s/run.sh, in a network namespace of its
own."""

import base64
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from lib import Case, binary, wait_for
from lib_deploy import commands, tool
from lib_k8s import READY, STARTING, TERMINATING, Account, openssl, write

POD = "192.0.2.1"  # address of all engines: an endpoint must not have a loopback address
ETCD, SERVER = "http://127.0.0.1:2379", "https://127.0.0.1:6443"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/inference/endpointslices"
PATHS = {  # kind -> where one is made
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/%s/serviceaccounts",
    "Service": "/api/v1/namespaces/%s/services",
    "ConfigMap": "/api/v1/namespaces/%s/configmaps",
    "Secret": "/api/v1/namespaces/%s/secrets",
    "Deployment": "/apis/apps/v1/namespaces/%s/deployments",
    "Job": "/apis/batch/v1/namespaces/%s/jobs",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/%s/horizontalpodautoscalers",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
}


def running(args, log):
    return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class Cluster:
    """etcd and kube-apiserver, and an administrator's connection to it."""
    flags = ["--bind-address", "127.0.0.1", "--advertise-address", POD]
    reconciler = "none"

    def __init__(self, folder):
        self.folder = folder
        self.warnings = []  # from answers
        self.account = Account(folder)
        self.tls = ssl.create_default_context(cafile=self.account.path("ca.crt"))
        at = self.at = lambda name: os.path.join(folder, name)
        openssl("genrsa", "-out", at("sa.key"), "2048")
        write(at("tokens.csv"), "admin,admin,admin,system:masters\n")
        self.log = open(at("log"), "w")
        self.etcd = running(["etcd", "--data-dir", at("etcd"), "--listen-client-urls", ETCD,
                             "--advertise-client-urls", ETCD, "--listen-peer-urls",
                             "http://127.0.0.1:2380"], self.log)
        self.api = None
        self.start()

    def start(self):
        secret = self.account.secret
        self.api = running([
            os.environ["KUBE_APISERVER"], "--etcd-servers", ETCD, "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", self.at("sa.key"),
            "--service-account-signing-key-file", self.at("sa.key"),
            "--token-auth-file", self.at("tokens.csv"), "--service-cluster-ip-range", "10.0.0.0/24",
            "--tls-cert-file", os.path.join(secret, "api.crt"),
            "--tls-private-key-file", os.path.join(secret, "api.key"), "--cert-dir", self.folder,
            *self.flags, "--endpoint-reconciler-type", self.reconciler], self.log)
        wait_for(self.ready, "kube-apiserver ready", limit=120, step=0.2)

    def ready(self):
        if self.api.poll() is not None:
            raise AssertionError("kube-apiserver ended, see %s" % self.log.name)
        try:
            return self.call("GET", "/readyz", raw=True) == b"ok"
        except OSError:
            return False

    def stop(self):
        self.api.kill()
        self.api.wait()

    def end(self):
        self.stop()
        self.etcd.kill()
        self.etcd.wait()
        self.log.close()

    def call(self, method, path, body=None, raw=False, kind="application/json"):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = urllib.request.Request(SERVER + path, body, method=method, headers={
            "Authorization": "Bearer admin", "Content-Type": kind})
        with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
            text = answer.read()
            self.warnings += answer.headers.get_all("Warning") or []
        return text if raw else json.loads(text)

    def apply(self, file, dry=False):
        """Every object of a file of ours, as kubectl create would."""
        with open(file) as f:
            documents = re.split(r"^---$", f.read(), flags=re.M)
        for text in documents:
            if not re.search(r"^kind:", text, re.M):
                continue
            kind = re.search(r"^kind: (\w+)", text, re.M).group(1)
            space = re.search(r"^  namespace: (\w+)", text, re.M).group(1)
            self.call("POST", PATHS[kind] % space + "?fieldValidation=Strict" +
                      ("&dryRun=All" if dry else ""), text.encode(), kind="application/yaml")

    def token(self, account="grapevine"):
        made = self.call("POST", "/api/v1/namespaces/grapevine/serviceaccounts/%s/token" % account, {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600}})
        return made["status"]["token"]

    def put(self, name, conditions, port=8000, ip=POD):
        value = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                 "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "vllm"}},
                 "addressType": "IPv4",
                 "endpoints": [{"addresses": [ip], "conditions": conditions}],
                 "ports": [{"name": "http", "port": port}]}
        try:
            self.call("POST", SLICES, value)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            self.call("PUT", SLICES + "/" + name, value)

    def delete(self, name):
        self.call("DELETE", SLICES + "/" + name)

    def compact(self):
        """Forgets all versions before the present one, as kube-apiserver does every five minutes."""
        def etcd(path, body):
            with urllib.request.urlopen(ETCD + path, json.dumps(body).encode(), timeout=10) as a:
                return json.loads(a.read())
        key = base64.b64encode(b"/").decode()
        revision = etcd("/v3/kv/range", {"key": key})["header"]["revision"]
        etcd("/v3/kv/compaction", {"revision": revision, "physical": True})


class RealApiServer(Case):
    @classmethod
    def set_up(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.cluster = Cluster(cls.folder)
        cls.addClassCleanup(cls.cluster.end)
        for name in ("inference", "grapevine"):
            cls.cluster.call("POST", PATHS["Namespace"], {"metadata": {"name": name, "labels": {
                "pod-security.kubernetes.io/" + mode: "restricted" for mode in ("enforce", "warn")}}})

    def setUp(self):
        super().setUp()
        self.names = []

    def tearDown(self):
        for name in self.names:
            self.cluster.delete(name)
        super().tearDown()

    def follow(self, *args):
        return self.router([], "--replica-kubernetes", "inference/vllm:http", "--log-level", "debug",
                           "--kubernetes-credentials", self.cluster.account.folder, *args,
                           env={"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                                "KUBERNETES_SERVICE_PORT": "6443"}, wait_up=False)

    def pod(self, name, conditions=READY):
        engine = self.engine(host=POD)
        self.cluster.put(name, conditions, engine.port)
        self.names.append(name)
        return engine

    def gone(self, name):
        self.cluster.delete(name)
        self.names.remove(name)

    def wait_used(self, router, *engines):
        want = sorted(e.name for e in engines)
        wait_for(lambda: sorted(r["name"] for r in router.admin("GET", "/replicas").json
                                if r["health"] == "up") == want, "%s in use" % want, limit=40)

    def asked(self, router, kind):
        """Targets of the lists or watches that it asked for."""
        return [e["target"] for e in router.events("kubernetes_asked")
                if ("watch=true" in e["target"]) == (kind == "watch")]

    def failures(self, router):
        return [e["error"] for e in router.events("discovery_failed")]

    def test_1_rights(self):
        write(self.cluster.account.path("token"), "nobody")
        one = self.pod("a")
        router = self.follow()
        wait_for(lambda: self.failures(router), "401")
        self.assertIn("401", self.failures(router)[0])
        self.cluster.call("POST", PATHS["ServiceAccount"] % "grapevine",
                          {"metadata": {"name": "grapevine"}})
        write(self.cluster.account.path("token"), self.cluster.token())
        wait_for(lambda: any("403" in why for why in self.failures(router)), "403", limit=40)
        why = [w for w in self.failures(router) if "403" in w][0]
        self.assertIn("system:serviceaccount:grapevine:grapevine", why)
        print("\n    " + why)
        self.cluster.call("DELETE", PATHS["ServiceAccount"] % "grapevine" + "/grapevine")
        self.cluster.apply("deploy/kubernetes/rbac.yaml")
        write(self.cluster.account.path("token"), self.cluster.token())
        self.wait_used(router, one)

    def test_0_manifests(self):
        for name in ("rbac", "key", "router", "kv-events", "autoscaler"):
            self.cluster.apply("deploy/kubernetes/%s.yaml" % name, dry=True)
        self.assertEqual(self.cluster.warnings, [])
        # A less restricted pod would have caused a warning.
        with open("deploy/kubernetes/router.yaml") as f:
            loose = f.read().replace("runAsNonRoot: true", "runAsNonRoot: false")
        file = os.path.join(self.cluster.folder, "loose.yaml")
        write(file, "---".join(d for d in loose.split("---") if "kind: Deployment" in d))
        self.cluster.apply(file, dry=True)
        self.assertRegex(self.cluster.warnings[0], "would violate PodSecurity .*restricted.*runAsNonRoot")

    def test_1_key(self):
        """As the Job of key.yaml makes it, with its service account and no other right."""
        self.cluster.apply("deploy/kubernetes/key.yaml")
        folder = os.path.join(self.cluster.folder, "keygen")
        shutil.copytree(self.cluster.account.folder, folder)
        write(os.path.join(folder, "token"), self.cluster.token("grapevine-keygen"))
        write(os.path.join(folder, "namespace"), "grapevine")
        secrets = PATHS["Secret"] % "grapevine"
        made = []
        for words in ("Made the Secret", "is there already"):
            p = subprocess.run([binary("gvctl"), "keygen", "--kubernetes-secret", "grapevine-key"], text=True,
                               capture_output=True, env={**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                                                         "KUBERNETES_SERVICE_PORT": "6443",
                                                         "GRAPEVINE_KUBERNETES_CREDENTIALS": folder})
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertIn(words, p.stdout)
            made.append(self.cluster.call("GET", secrets + "/grapevine-key")["data"])
        self.assertEqual(made[0], made[1])
        text = base64.b64decode(made[0]["cluster.key"]).decode()
        self.assertRegex(text, r"(?m)^key [0-9a-f]{64}$")
        print("\n    " + p.stdout.strip())

    @unittest.skipUnless(tool("helm"), "Helm is not here (make deploy-tools)")
    def test_1_helm(self):
        """Helm itself installs, upgrades and removes the chart; nothing runs the hook's Job here."""
        def helm(*args, space="helm"):
            p = subprocess.run([tool("helm"), *args, "--namespace", space, "--kube-apiserver", SERVER, "--kube-token",
                                "admin", "--kube-ca-file", self.cluster.account.path("ca.crt")], text=True,
                               capture_output=True)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            return p.stdout
        self.cluster.call("POST", PATHS["Namespace"], {"metadata": {"name": "helm"}})
        chart = ["grapevine", "deploy/helm/grapevine", "--no-hooks", "--set", "fullnameOverride=gv"]
        notes = helm("install", *chart)
        for line in ("3 routers in front of inference/vllm:8000", "kubectl -n helm exec deployment/gv -- gvctl members",
                     "http://gv.helm ", "is the Secret gv-key"):
            self.assertIn(line, notes)
        helm("upgrade", *chart, "--set", "replicaCount=5,service.type=NodePort,autoscaling.enabled=true")
        made = self.cluster.call("GET", PATHS["Deployment"] % "helm" + "/gv")
        self.assertEqual(made["spec"]["strategy"]["rollingUpdate"], {"maxUnavailable": 0, "maxSurge": 1})
        self.cluster.call("GET", PATHS["HorizontalPodAutoscaler"] % "helm" + "/gv")
        # After the autoscaler is turned on there are as many routers as before, and later as many as it requests.
        helm("upgrade", *chart, "--set", "replicaCount=6")
        helm("upgrade", *chart, "--set", "autoscaling.enabled=true")
        self.assertEqual(self.cluster.call("GET", PATHS["Deployment"] % "helm" + "/gv")["spec"]["replicas"], 6)
        made = self.cluster.call("GET", PATHS["Deployment"] % "helm" + "/gv")
        made["spec"]["replicas"] = 8
        self.cluster.call("PUT", PATHS["Deployment"] % "helm" + "/gv", made)
        helm("upgrade", *chart, "--set", "autoscaling.enabled=true,image.tag=new")
        self.assertEqual(self.cluster.call("GET", PATHS["Deployment"] % "helm" + "/gv")["spec"]["replicas"], 8)
        helm("uninstall", "grapevine", "--no-hooks")
        # The same release in two namespaces, with the same engines; names that YAML takes for something else.
        for name in ("1234", "1e5", "on", "off"):
            self.cluster.call("POST", PATHS["Namespace"], {"metadata": {"name": "helm-" + name}})
            for space in ("helm", "helm-" + name):
                helm("install", name, "deploy/helm/grapevine", "--no-hooks", space=space)

    @unittest.skipUnless(tool("helm") and tool("kubectl"), "Helm or kubectl is not here")
    def test_1_page(self):
        """TLS, keys and tokens as docs/how-to/secure.md tells it, in another namespace: each file that a setting names is an
        entry of a Secret that was made."""
        folder = os.path.join(self.cluster.folder, "page")
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(os.path.abspath("deploy"), os.path.join(folder, "deploy"))
        os.symlink(os.path.abspath(binary("gvctl")), os.path.join(folder, "bin", "gvctl"))
        ca = self.cluster.account.path("ca.crt")
        for name, how in (("kubectl", "--server %s --token admin --certificate-authority %s" % (SERVER, ca)),
                          ("helm", "--kube-apiserver %s --kube-token admin --kube-ca-file %s" % (SERVER, ca))):
            hooks = '[ "$1" != install ] || set -- "$@" --no-hooks\n' if name == "helm" else ""
            file = os.path.join(folder, "bin", name)
            write(file, '#!/bin/sh\n%sexec %s "$@" %s\n' % (hooks, tool(name), how))
            os.chmod(file, 0o755)
        script = re.sub(r"(-n|namespace) grapevine", r"\1 page", commands("Kubernetes")).replace("inference/", "page/")
        script = commands("Make the files") + script
        p = subprocess.run(["bash", "-euc", script], cwd=folder, text=True, capture_output=True,
                           env={**os.environ, "HOME": folder, "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]})
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("finds the certificate and the token by itself", p.stdout)
        pod = self.cluster.call("GET", PATHS["Deployment"] % "page" + "/grapevine")["spec"]["template"]["spec"]
        mounts = {m["mountPath"]: m["name"] for m in pod["containers"][0]["volumeMounts"]}
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        settings = self.cluster.call("GET", PATHS["ConfigMap"] % "page" + "/grapevine")["data"]["grapevine.yaml"]
        found = set()
        for name, at, entry in re.findall(r"(?m)^(\S+): (/etc/grapevine/\S+)/(\S+)$", settings):
            if name != "cluster-key-file":  # its Job did not run
                data = self.cluster.call("GET", PATHS["Secret"] % "page" + "/" + secrets[mounts[at]])["data"]
                self.assertIn(entry, data)
                found.add(name)
                if name == "client-keys-file":
                    self.assertEqual(len(base64.b64decode(data[entry]).splitlines()), 2)  # alice, and bob who came later
        self.assertEqual(found, {"tls-cert", "tls-key", "admin-tls-cert", "admin-tls-key", "admin-token-file",
                                 "admin-read-token-file", "client-keys-file"})

    def test_2_pods(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        two = self.pod("b", STARTING)
        time.sleep(0.5)
        self.wait_used(router, one)
        self.cluster.put("b", READY, two.port)
        self.wait_used(router, one, two)
        self.cluster.put("a", TERMINATING, one.port)
        self.wait_used(router, two)
        self.gone("a")
        self.assertEqual(len(self.asked(router, "list")), 1)
        self.assertEqual(self.failures(router), [])

    def test_3_pages(self):
        one = self.pod("a")
        for n in range(205):
            self.cluster.put("s%03d" % n, STARTING, ip="192.0.2.2")
            self.names.append("s%03d" % n)
        router = self.follow()
        self.wait_used(router, one)
        lists = self.asked(router, "list")
        self.assertEqual(["continue=" in target for target in lists], [False, True, True])
        self.wait_used(router, one, self.pod("t"))

    def test_4_api_server_restarts(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        time.sleep(1.5)
        self.cluster.stop()
        wait_for(lambda: self.failures(router), "it is away")
        self.cluster.start()
        self.wait_used(router, one, self.pod("b"))
        print("\n    away: %r" % self.failures(router))

    def test_5_resource_versions_that_are_too_old(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        time.sleep(1.5)
        lists = len(self.asked(router, "list"))
        router.signal(signal.SIGSTOP)  # it sleeps while the world moves on
        self.cluster.stop()
        self.cluster.start()
        self.gone("a")
        two = self.pod("b")
        self.cluster.stop()
        self.cluster.compact()
        self.cluster.start()
        router.signal(signal.SIGCONT)
        self.wait_used(router, two)
        print("\n    lists %d, failures %r" % (len(self.asked(router, "list")) - lists,
                                               self.failures(router)))
        self.assertGreater(len(self.asked(router, "list")), lists)

    def test_6_an_idle_cluster(self):
        """A watch that brings nothing, not even a bookmark, is made anew without a word."""
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        age = lambda: router.admin("GET", "/sources").json[0]["age_s"]
        wait_for(lambda: age() > 10, "quiet", limit=30)
        wait_for(lambda: age() < 5, "heard of again", limit=100, step=0.5)
        print("\n    watches %d" % len(self.asked(router, "watch")))
        self.assertEqual(len(self.asked(router, "list")), 1)
        self.assertEqual(self.failures(router), [])


if __name__ == "__main__":
    unittest.main()

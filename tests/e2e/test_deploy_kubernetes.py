"""The manifests of deploy/kubernetes and the chart that renders them: objects agree with each other, Kubernetes
accepts them, and the committed files are what the chart renders.

The structure is always checked. Schemas need kubernetes-validate, rendering needs Helm: make deploy-tools.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest

from lib import binary
from lib_chart import (ALL_SECRETS, CHART, FILES, MONITORING, OPERATORS, OPTIONAL, OWN_PODS, Objects, check, check_config,
                       helm, notes, of_namespace, policy, template)
from lib_deploy import KUBERNETES, documents, path, text, tool
from lib_tls import Authority


class Structure(unittest.TestCase):
    def setUp(self):
        self.objects = Objects(self, [d for name in FILES
                                      for d in documents(text("deploy", "kubernetes", name + ".yaml"))])

    def test_objects_of_the_manifests_agree(self):
        check(self, self.objects)

    def test_only_routers_reach_the_gossip_port(self):
        o = self.objects
        rules = o.one("NetworkPolicy")["spec"]["ingress"]
        by_port = {p["port"]: r.get("from") for r in rules for p in r["ports"]}
        self.assertEqual(set(by_port), set(o.ports))
        for port in ("gossip", "gossip-tcp"):
            self.assertEqual([set(peer) for peer in by_port[port]], [{"podSelector"}])
            self.assertLessEqual(by_port[port][0]["podSelector"]["matchLabels"].items(),
                                 o.pod["metadata"]["labels"].items())

    def test_prometheus_reaches_only_the_probe_port(self):
        who = policy(self.objects)
        self.assertEqual((who["http"], who["admin"], who["probe"]), (None, [OWN_PODS], [OWN_PODS, MONITORING]))

    def test_scaler_and_monitor_name_existing_objects(self):
        o = self.objects
        scaler = o.one("HorizontalPodAutoscaler")["spec"]
        self.assertEqual((scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]),
                         ("Deployment", "grapevine"))
        self.assertIn("`%s`" % scaler["metrics"][1]["pods"]["metric"]["name"], text("docs", "metrics.md"))
        monitor = o.one("ServiceMonitor")["spec"]
        services = [s for s in o.of("Service")
                    if monitor["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()]
        self.assertEqual([s["metadata"]["name"] for s in services], ["grapevine-metrics"])
        self.assertEqual(monitor["endpoints"][0]["port"], "probe")
        self.assertIn(monitor["endpoints"][0]["port"], [p["name"] for p in services[0]["spec"]["ports"]])

    def test_versions_are_those_of_the_program(self):
        version = re.search(r'GRAPEVINE_VERSION "(.*)"', text("base", "version.h"))[1]
        self.assertEqual(documents(text("deploy", "helm", "grapevine", "Chart.yaml"))[0]["appVersion"], version)
        self.assertEqual(self.objects.container["image"], "grapevine:" + version)

    def test_commands_are_those_of_the_image(self):
        image = text("deploy", "Containerfile")
        self.assertIn("ENTRYPOINT %s" % json.dumps(self.objects.container["command"]), image)
        job = self.objects.one("Job", "grapevine-keygen")["spec"]["template"]["spec"]["containers"][0]
        self.assertIn('CMD ["%s"' % job["command"][0], image)
        self.assertIn("USER %d:%d\n" % (self.objects.pod["spec"]["securityContext"]["runAsUser"],
                                        self.objects.pod["spec"]["securityContext"]["runAsGroup"]), image)

    def test_the_router_accepts_the_config_map(self):
        said = check_config(self.objects)
        for name in self.objects.config:
            self.assertRegex(said, r"(?m)^%s: .*/config/grapevine.yaml" % name)

    def test_a_port_for_engines_that_connect(self):
        """The optional file, with the setting that its comment says to add."""
        added = text("deploy", "kubernetes", "kv-events.yaml")
        setting, port = re.search(r'(?m)^#     (kv-events-listen: "0.0.0.0:(\d+)")$', added).groups()
        o = Objects(self, self.objects.all + documents(added))
        o.one("ConfigMap")["data"]["grapevine.yaml"] += setting + "\n"
        self.assertRegex(check_config(o), r"(?m)^%s " % setting.replace('"', ""))
        self.assertEqual([(p["port"], p["targetPort"]) for p in o.one("Service", "grapevine-kv-events")["spec"]["ports"]],
                         [(int(port), int(port))])
        self.assertEqual(policy(o), {**policy(self.objects), int(port): [of_namespace("inference")]})
        o.container["ports"].append({"name": "kv-events", "containerPort": int(port), "protocol": "TCP"})
        check(self, o)

    def test_the_chart_has_the_rules_and_the_dashboard(self):
        for folder, name in (("prometheus", "recording.yaml"), ("prometheus", "alerts.yaml"),
                             ("grafana", "grapevine.json")):
            self.assertEqual(text("deploy", "helm", "grapevine", "files", name), text("deploy", folder, name),
                             "deploy/kubernetes/render.sh copies it")


@unittest.skipUnless(tool("kubernetes-validate"), "kubernetes-validate is not here (make deploy-tools)")
class Schemas(unittest.TestCase):
    def validate(self, texts):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, yaml_text in texts.items():
                for i, d in enumerate(documents(yaml_text)):
                    if d["kind"] not in OPERATORS:
                        files.append(os.path.join(folder, "%s-%d.yaml" % (name, i)))
                        with open(files[-1], "w") as f:
                            json.dump(d, f)
            versions = [a for v in KUBERNETES for a in ("-k", v)]
            p = subprocess.run([tool("kubernetes-validate"), *versions, "--strict", *files], capture_output=True,
                               text=True)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            return files, p

    def test_kubernetes_accepts_the_manifests(self):
        files, _ = self.validate({n: text("deploy", "kubernetes", n + ".yaml") for n in FILES + OPTIONAL})
        self.assertGreater(len(files), 12)

    @unittest.skipUnless(tool("helm"), "Helm is not here (make deploy-tools)")
    def test_kubernetes_accepts_the_manifests_with_all_secrets(self):
        self.validate({"all": template("--set", ALL_SECRETS)})

    @unittest.skipUnless(tool("helm"), "Helm is not here (make deploy-tools)")
    def test_kubernetes_accepts_the_manifests_with_events_and_state(self):
        peer = json.dumps([{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "vllm"}}}])
        for values in ("ipFamily=IPv4", "ipFamily=dual"):
            self.validate({"all": template("--set", "ports.kvEvents=5557,state.enabled=true," + values,
                                           "--set-json", "networkPolicy.engines=" + peer)})

    def test_a_mistake_is_detected(self):
        wrong = text("deploy", "kubernetes", "router.yaml").replace("readOnlyRootFilesystem", "readOnlyRoot")
        with self.assertRaisesRegex(AssertionError, "readOnlyRoot"):
            self.validate({"router": wrong})


@unittest.skipUnless(tool("helm"), "Helm is not here (make deploy-tools)")
class Helm(unittest.TestCase):
    def test_lint(self):
        self.assertIn("0 chart(s) failed", helm("lint", "--strict", CHART))

    def test_committed_manifests_equal_the_rendered_chart(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([path("deploy", "kubernetes", "render.sh"), out, tool("helm")], check=True)
            self.assertEqual({name + ".yaml" for name in FILES + OPTIONAL}, set(os.listdir(out)))
            for name in FILES + OPTIONAL:
                with open(os.path.join(out, name + ".yaml")) as f:
                    self.assertEqual(text("deploy", "kubernetes", name + ".yaml"), f.read(),
                                     name + ": deploy/kubernetes/render.sh")

    def test_objects_agree_with_other_values(self):
        o = Objects(self, documents(template(
            "--set", "ports.http=8000,ports.gossip=7000,drain.delaySeconds=20,drain.preStopSeconds=3,"
            "engines.kubernetes={a/x:8000,b/y:http,a/z},config.index-bytes=256MiB,config.policy=session,"
            "extraArgs={--log-level=debug},service.type=LoadBalancer,resources.limits.memory=2Gi")))
        check(self, o)
        self.assertEqual(o.pod["spec"]["terminationGracePeriodSeconds"], 333)
        self.assertEqual(o.container["args"], ["--log-level=debug"])
        self.assertEqual(o.config["policy"], "session")
        self.assertEqual(o.of("HorizontalPodAutoscaler") + o.of("ServiceMonitor") + o.of("PrometheusRule"), [])

    def test_the_pages_values_render(self):
        example = re.search(r"(?s)```yaml\n(# values.yaml\n.*?)```", text("docs", "how-to", "kubernetes.md"))[1]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "values.yaml")
            with open(file, "w") as f:
                f.write(example)
            o = Objects(self, documents(template("-f", file)))
        check(self, o)
        folder = os.path.dirname(o.config["replica-api-key-file"])
        self.assertIn(folder, [m["mountPath"] for m in o.container["volumeMounts"]])
        for name in ("tls-cert", "admin-tls-cert", "admin-token-file", "client-keys-file"):
            self.assertIn(name, o.config)
        self.assertEqual(len(o.of("HorizontalPodAutoscaler") + o.of("ServiceMonitor") + o.of("PrometheusRule")), 3)

    def test_alerts_link_to_a_runbook_of_the_operators(self):
        """A path in the repository is no link in a chat."""
        def urls(*values):
            rule = Objects(self, documents(template("--set", "prometheusRule.enabled=true", *values))).one("PrometheusRule")
            return {r["alert"]: r["annotations"]["runbook_url"] for g in rule["spec"]["groups"] for r in g["rules"] if "alert" in r}
        wiki, before = "https://wiki.example/a:8/runbook", urls()
        self.assertEqual(before["GrapevineNoReplica"], "docs/runbook.md#grapevinenoreplica")
        self.assertEqual(urls("--set", "prometheusRule.runbookUrl=" + wiki),
                         {alert: wiki + "#" + url.partition("#")[2] for alert, url in before.items()})
        for wrong in ("", "a b", "x#y"):
            self.assertIn("runbookUrl", helm("template", "g", CHART, "--set", "prometheusRule.runbookUrl=" + wrong, ok=False))

    def test_the_api_servers_token_is_mounted_only_if_used(self):
        for values, token in (("engines.kubernetes={a/x:8000}", True), ("engines.kubernetes=null,config.replica=http://x:1", False)):
            o = Objects(self, documents(template("--set", values)))
            pod = o.one("Deployment")["spec"]["template"]["spec"]
            self.assertEqual(pod.get("automountServiceAccountToken", True), token)

    def test_labels_may_have_a_slash(self):
        o = Objects(self, documents(template("--set", "engines.kubernetes={vllm:8000#model=meta-llama/Llama-3,"
                                             "https://b/y:http#model=x/y#engine=vllm}")))
        check(self, o)
        self.assertEqual([r["metadata"]["namespace"] for r in o.of("Role") if "replicas" in r["metadata"]["name"]],
                         ["grapevine", "b"])

    def test_address_families(self):
        for family, host, policy_of in (("IPv4", "0.0.0.0", {}), ("dual", "[::]", {"ipFamilyPolicy": "PreferDualStack"}),
                                        ("IPv6", "[::]", {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]})):
            o = Objects(self, documents(template("--set", "ipFamily=" + family)))
            check(self, o, host)
            for s in o.of("Service"):
                self.assertEqual({k: v for k, v in s["spec"].items() if k.startswith("ipFamil")}, policy_of)
            self.assertEqual(len(o.of("Service")), 2)

    def test_the_autoscalers_target_is_relative_to_one_core(self):
        """A router computes in one thread: a target that it cannot pass would never add a router."""
        for values, want in (("", 140), (",resources.requests.cpu=1", 70), (",resources.requests.cpu=250m", 280),
                             (",resources.requests.cpu=0.35", 200), (",autoscaling.cpuUtilization=90", 90),
                             (",autoscaling.cpuUtilization=90,resources.requests.cpu=1000m", 90)):
            o = Objects(self, documents(template("--set", "autoscaling.enabled=true" + values)))
            cpu = o.one("HorizontalPodAutoscaler")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]
            self.assertEqual(cpu, want, values)

    def test_an_advertised_name_for_the_admin_port(self):
        o = Objects(self, documents(template("--set", "config.admin-advertise=router.example")))
        check(self, o)
        self.assertEqual(o.config["admin-advertise"], "router.example")

    def test_an_existing_cluster_key_is_used(self):
        o = Objects(self, documents(template("--set", "clusterKey.existingSecret=mine,clusterKey.entry=k")))
        check(self, o)
        self.assertEqual(o.of("Job"), [])
        self.assertIn("mine", [v.get("secret", {}).get("secretName") for v in o.pod["spec"]["volumes"]])

    def test_invalid_values_are_refused(self):
        for value, why in (("config.drain-delay=5s", "set drain.delaySeconds"), ("replicas=3", "replicas"),
                           ("ports.http=80", "ports.http|/ports/http"), ("replicaCount=0", "replicaCount"),
                           ("updateStrategy.type=Recreate", "updateStrategy|/updateStrategy"),
                           ("fullnameOverride=my.router", "fullnameOverride"),
                           ("fullnameOverride=1router", "fullnameOverride"),
                           ("clusterKey.create=false", "set existingSecret"),
                           ("clusterKey.entry=k", "k requires existingSecret"), ("ipFamily=IPv5", "ipFamily"),
                           ("autoscaling.enabled=true,autoscaling.cpuUtilization=140,resources.requests.cpu=1",
                            "never add one"),
                           ("autoscaling.enabled=true,resources.requests.cpu=null", "set resources.requests.cpu"),
                           ("engines.kubernetes={http://x:1}", "engines.kubernetes|/engines/kubernetes"),
                           ("readinessProbe.exec=1", "readinessProbe"),
                           ("ports.probe=80", "ports.probe|/ports/probe"), ("ports.probe=9090", "another port of the router uses"),
                           ("config.probe-listen=0.0.0.0:1", "set ports.probe"),
                           ("config.kv-events-listen=0.0.0.0:1", "set ports.kvEvents"),
                           ("ports.kvEvents=80", "ports.kvEvents|/ports/kvEvents"),
                           ("ports.kvEvents=7490", "another port of the router uses"), ("ports.kvEvents=9091", "another port of the router uses"),
                           ("ports.kvEvents=5557,engines.kubernetes=null", "networkPolicy.engines: list the engines"),
                           ("networkPolicy.engines=x", "networkPolicy.engines|/networkPolicy/engines"),
                           ("state.enabled=true,config.state-dir=/a", "config.state-dir: state.enabled"),
                           ("state.sizeLimit=much", "state.sizeLimit|/state/sizeLimit"),
                           ("tls.secretName=t,config.tls-cert=/a", "set tls.secretName"),
                           ("tls.secretName=t,config.tls-key=/a", "set tls.secretName"),
                           ("clientKeys.secretName=t,config.client-keys-file=/a", "set clientKeys.secretName"),
                           ("tls.ticketSecretName=t", "session tickets require TLS"), ("tls.secret=t", "tls.*secret"),
                           ("adminToken.secretName=t,adminToken.entry=", "name the entry of the Secret"),
                           ("adminTls.secretName=t,ports.probe=0", "set ports.probe .*no pod becomes ready"),
                           ("config.admin-tls-cert=/a,ports.probe=0", "set ports.probe")):
            self.assertRegex(template("--set", value, ok=False), why, value)

    def test_an_older_kubernetes_is_refused(self):
        self.assertIn("chart requires kubeVersion: >=1.27.0", template("--kube-version", "1.26.9", ok=False))
        template("--kube-version", "1.27.0-gke.1")

    def test_release_names_may_be_numbers(self):
        for d in documents(template(name="1234")):
            self.assertRegex(d["metadata"]["name"], r"^grapevine-1234(-.*)?$")
            self.assertEqual(d["metadata"]["labels"]["app.kubernetes.io/instance"], "1234")

    def test_secrets(self):
        """All Secrets at once: a router accepts the settings, and finds the Secrets' files in their folders."""
        o = Objects(self, documents(template("--set", ALL_SECRETS + ",serviceMonitor.enabled=true")))
        check(self, o)
        mounts = {m["mountPath"]: m["name"] for m in o.container["volumeMounts"]}
        volumes = {v["name"]: v.get("secret", {}).get("secretName") for v in o.pod["spec"]["volumes"]}
        for name, secret, entry in (("tls-cert", "a", "tls.crt"), ("tls-key", "a", "tls.key"),
                                    ("tls-ticket-key-file", "b", "tickets.key"), ("admin-tls-cert", "c", "tls.crt"),
                                    ("admin-tls-key", "c", "tls.key"), ("admin-token-file", "d", "admin.token"),
                                    ("admin-read-token-file", "d", "read.token"), ("client-keys-file", "e", "k"),
                                    ("replica-api-key-file", "f", "engine.key")):
            folder, file = os.path.split(o.config[name])
            self.assertEqual((volumes[mounts[folder]], file), (secret, entry), name)
        with tempfile.TemporaryDirectory() as folder:
            self.files(folder)
            file = os.path.join(folder, "grapevine.yaml")
            with open(file, "w") as f:
                f.write(o.one("ConfigMap")["data"]["grapevine.yaml"].replace("/etc/grapevine", folder))
            p = subprocess.run([binary("grapevine"), "--config", file, "--check-config"], capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(os.path.join(folder, "client-keys", "k"), "a") as f:
                f.write("nonsense\n")
            p = subprocess.run([binary("grapevine"), "--config", file, "--check-config"], capture_output=True, text=True)
            self.assertIn("client-keys/k", p.stderr)

    def files(self, folder):
        """As Kubernetes would mount them."""
        def put(name, data):
            file = os.path.join(folder, name)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w") as f:
                f.write(data)
        run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for name in ("tls", "admin-tls"):
            put(name + "/x", "")
            Authority(os.path.join(folder, name), "tls")
        put("tls-tickets/tickets.key", run("openssl", "rand", "-base64", "80").replace("\n", ""))
        for name in ("admin-token/admin.token", "admin-token/read.token", "engine-key/engine.key"):
            put(name, name.replace("/", "-") + "\n")
        put("client-keys/k", "")
        run(binary("gvctl"), "key", "new", "alice", "--file", os.path.join(folder, "client-keys", "k"))
        put("key/x", "")
        run(binary("gvctl"), "keygen", "--out", os.path.join(folder, "key", "cluster.key"))

    def test_without_a_port_for_probes(self):
        o = Objects(self, documents(template("--set", "ports.probe=0,serviceMonitor.enabled=true,prometheusAnnotations=true")))
        check(self, o)
        self.assertEqual(policy(o)["admin"], [OWN_PODS, MONITORING])
        self.assertNotIn("probe", policy(o))
        self.assertEqual(o.one("ServiceMonitor")["spec"]["endpoints"][0]["port"], "admin")
        self.assertEqual(o.pod["metadata"]["annotations"]["prometheus.io/port"], "9090")
        o = Objects(self, documents(template("--set", "prometheusAnnotations=true")))
        self.assertEqual(o.pod["metadata"]["annotations"]["prometheus.io/port"], "9091")

    def test_a_port_for_engines_that_connect(self):
        values = ["--set", "ports.kvEvents=5557,service.type=LoadBalancer,serviceMonitor.enabled=true"]
        plain, o = (Objects(self, documents(template(*v))) for v in (values[:1] + ["service.type=LoadBalancer"], values))
        check(self, o)
        self.assertEqual((o.ports["kv-events"], o.config["kv-events-listen"]), ((5557, "TCP"), "0.0.0.0:5557"))
        self.assertRegex(check_config(o), r"(?m)^kv-events-listen: 0\.0\.0\.0:5557 ")
        # Engines reach it by a Service that is never open to the outside, and by no other one.
        to = {s["metadata"]["name"]: s["spec"]["type"] for s in o.of("Service")
              for p in s["spec"]["ports"] if p["targetPort"] in (5557, "kv-events")}
        self.assertEqual(to, {"grapevine-kv-events": "ClusterIP"})
        self.assertEqual([p["port"] for p in o.one("Service", "grapevine-kv-events")["spec"]["ports"]], [5557])
        # No other pod reaches it, and the routers reach nothing else.
        self.assertEqual(policy(o), {**policy(plain), "kv-events": [of_namespace("inference")]})
        monitor = o.one("ServiceMonitor")["spec"]["selector"]["matchLabels"]
        self.assertFalse(monitor.items() <= o.one("Service", "grapevine-kv-events")["metadata"]["labels"].items())
        # Off, nothing of it is there.
        self.assertEqual((set(plain.ports) & {"kv-events"}, "kv-events-listen" in plain.config), (set(), False))
        self.assertEqual([d["metadata"]["name"] for d in plain.all if "kv-events" in d["metadata"]["name"]], [])

    def test_only_pods_of_engines_reach_the_kv_events_port(self):
        """Pods of the namespaces that have engines, or pods that a value names."""
        for values, who in (("{a/x:1,https://b/y:http#model=x/y,a/z:2,own:3}", ["a", "b", "grapevine"]), ("{own:1}", ["grapevine"])):
            o = Objects(self, documents(template("--set", "ports.kvEvents=6000,engines.kubernetes=" + values)))
            check(self, o)
            self.assertEqual(policy(o)["kv-events"], [of_namespace(name) for name in who])
        peer = {"podSelector": {"matchLabels": {"app": "vllm"}}}
        o = Objects(self, documents(template("--set", "ports.kvEvents=5557,engines.kubernetes=null,config.replica=http://x:1",
                                             "--set-json", "networkPolicy.engines=" + json.dumps([peer]))))
        self.assertEqual(policy(o)["kv-events"], [json.dumps(peer)])
        o = Objects(self, documents(template("--set", "ports.kvEvents=5557,networkPolicy.enabled=false")))
        check(self, o)
        self.assertEqual(o.of("NetworkPolicy"), [])

    def test_the_pages_values_for_kv_events_render(self):
        example = re.search(r"(?s)```yaml\n(# kv-events.yaml\n.*?)```", text("docs", "how-to", "kubernetes.md"))[1]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(example)
            file.flush()
            o = Objects(self, documents(template("-f", file.name)))
        check(self, o)
        self.assertEqual(policy(o)["kv-events"], [json.dumps(documents(example)[0]["networkPolicy"]["engines"][0], sort_keys=True)])
        self.assertIn('"endpoint":"tcp://grapevine-kv-events.grapevine:5557"', text("docs", "how-to", "kubernetes.md"))

    def test_state_on_disk(self):
        values = "state.enabled=true,ports.kvEvents=5557,engines.kubernetes={inference/vllm:8000#kv-events=listen?replay=5657}"
        o = Objects(self, documents(template("--set", values)))
        check(self, o)
        self.assertEqual([v["emptyDir"] for v in o.pod["spec"]["volumes"] if "emptyDir" in v], [{"sizeLimit": "1Gi"}])
        said = check_config(o)
        self.assertRegex(said, r"(?m)^state-dir: \S+/lib/state .*GRAPEVINE_STATE_DIR")
        self.assertIn("kv-events=listen?replay=5657", said)
        o = Objects(self, documents(template()))
        check(self, o)
        self.assertNotIn("state-dir: /", check_config(o))

    def test_notes_after_install(self):
        plain = notes()
        self.assertNotIn("KV-cache events", plain)
        events = notes("--set", "ports.kvEvents=5557")
        self.assertIn('"endpoint":"tcp://grapevine-kv-events.grapevine:5557"', events)
        self.assertNotIn("networkPolicy is off", events)
        self.assertIn("networkPolicy is off", notes("--set", "ports.kvEvents=5557,networkPolicy.enabled=false"))
        for line in ("Clients connect to http://grapevine.grapevine (", "curl http://127.0.0.1:8080/v1/models\n",
                     "then http://127.0.0.1:9090/\n", "The admin port has no token: ", "from kubectl port-forward"):
            self.assertIn(line, plain)
        said = notes("--set", "tls.secretName=a,service.port=443,clientKeys.secretName=mine,adminTls.secretName=b,"
                     "adminToken.secretName=c")
        for line in ("Clients connect to https://grapevine.grapevine (from inside the cluster), each with its own key",
                     'curl -k -H "Authorization: Bearer $KEY" https://127.0.0.1:8080/v1/models\n',
                     "in the Secret mine.", "finds the certificate and the token by itself",
                     "-- gvctl replicas\n", "then https://127.0.0.1:9090/\n"):
            self.assertIn(line, said)
        self.assertNotIn("has no token", said)
        self.assertIn("connect to https://grapevine.grapevine:80 (", notes("--set", "tls.secretName=a"))
        for text_of in (plain, said, events):
            self.assertLess(max(map(len, text_of.splitlines())), 130)


if __name__ == "__main__":
    unittest.main()

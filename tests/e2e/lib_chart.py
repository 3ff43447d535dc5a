"""The Helm chart rendered, its objects by kind and name, and the invariants for all values."""

import json
import os
import re
import shutil
import subprocess
import tempfile

from lib import binary
from lib_deploy import documents, path, text, tool

CHART = path("deploy", "helm", "grapevine")
FILES = ("rbac", "key", "router", "autoscaler", "monitoring")
OPTIONAL = ("kv-events",)  # applied in addition, with one more setting
OPERATORS = ("ServiceMonitor", "PrometheusRule")  # kinds that Kubernetes itself does not have
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SETTINGS = dict(re.findall(r"^- `([a-z-]+)` \(.*?default `([^`]*)`\): ", text("docs", "options.md"), re.M))


def size(value):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]+)", value).groups()
    return int(number) * UNITS[unit]


def seconds(value):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", value).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def helm(*args, ok=True):
    p = subprocess.run([tool("helm"), *args], capture_output=True, text=True)
    if ok and p.returncode != 0:
        raise AssertionError(p.stderr)
    return p.stdout if ok else p.stderr


def template(*args, name="grapevine", chart=CHART, **how):
    """Renders the chart for Kubernetes 1.27: a Helm built by Go's module proxy assumes an old version."""
    return helm("template", name, chart, "--namespace", "grapevine", "--kube-version", "1.27.0", *args, **how)


def notes(*args):
    """The output of `helm install`, which would need a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        chart = os.path.join(folder, "grapevine")
        shutil.copytree(CHART, chart)
        os.rename(os.path.join(chart, "templates", "NOTES.txt"), os.path.join(chart, "NOTES.txt"))
        with open(os.path.join(chart, "templates", "notes.yaml"), "w") as f:
            f.write('notes: {{ tpl (.Files.Get "NOTES.txt") . | quote }}\n')
        return documents(template(*args, "--show-only", "templates/notes.yaml", chart=chart))[0]["notes"]


def settings_file(o):
    """The settings file of the router, and of gvctl."""
    return {e["name"]: e.get("value") for e in o.container["env"]}["GRAPEVINE_CONFIG"]


class Objects:
    """Objects of some files, by kind and name, with queries."""

    def __init__(self, case, docs):
        self.case = case
        self.all = docs

    def of(self, kind):
        return [d for d in self.all if d["kind"] == kind]

    def one(self, kind, name="grapevine"):
        found = [d for d in self.of(kind) if d["metadata"]["name"] == name]
        self.case.assertEqual(len(found), 1, "%s/%s" % (kind, name))
        return found[0]

    @property
    def pod(self):
        return self.one("Deployment")["spec"]["template"]

    @property
    def container(self):
        return self.pod["spec"]["containers"][0]

    @property
    def ports(self):
        return {p["name"]: (p["containerPort"], p["protocol"]) for p in self.container["ports"]}

    @property
    def config(self):
        return documents(self.one("ConfigMap")["data"]["grapevine.yaml"])[0]

    def setting(self, name):
        return self.config.get(name, SETTINGS[name])


def check(case, o, any_host="0.0.0.0"):
    """Checks the invariants for all values."""
    config, ports, labels = o.config, o.ports, o.pod["metadata"]["labels"]
    # The ports of the pod are those that the router listens on.
    listens = {"http": "listen", "admin": "admin-listen", "gossip": "gossip-listen", "gossip-tcp": "gossip-listen"}
    if "probe-listen" in config:
        listens["probe"] = "probe-listen"
    if "kv-events-listen" in config:
        listens["kv-events"] = "kv-events-listen"
    case.assertEqual({n: "%s:%d" % (any_host, port) for n, (port, _) in ports.items()},
                     {n: config[setting] for n, setting in listens.items()})
    case.assertEqual({n for n, (_, p) in ports.items() if p != "TCP"}, {"gossip"})
    # Every pod selector selects the router's pods.
    selectors = [s["spec"]["selector"] for s in o.of("Service")]
    selectors += [o.one("Deployment")["spec"]["selector"]["matchLabels"]]
    selectors += [p["spec"]["selector"]["matchLabels"] for p in o.of("PodDisruptionBudget")]
    selectors += [p["spec"]["podSelector"]["matchLabels"] for p in o.of("NetworkPolicy")]
    selectors += [t["labelSelector"]["matchLabels"]
                  for t in o.pod["spec"].get("topologySpreadConstraints", [])]
    for s in selectors:
        case.assertTrue(s and s.items() <= labels.items(), s)
    for job in o.of("Job"):  # and no other pods
        other = job["spec"]["template"]["metadata"]["labels"]
        case.assertFalse(any(s.items() <= other.items() for s in selectors))
    # Services lead to existing ports, with the right protocol.
    for s in o.of("Service"):
        for p in s["spec"]["ports"]:
            case.assertIn(p["protocol"], [protocol for name, (number, protocol) in ports.items()
                                          if p["targetPort"] in (name, number)], p)
    gossip = o.one("Service", "grapevine-gossip")["spec"]
    case.assertEqual((gossip["clusterIP"], gossip["publishNotReadyAddresses"]), ("None", True))
    case.assertEqual({(p["port"], p["protocol"]) for p in gossip["ports"]},
                     {(ports["gossip"][0], "UDP"), (ports["gossip"][0], "TCP")})
    case.assertEqual(config["join"], "grapevine-gossip:%d" % ports["gossip"][0])
    # No router is killed before its own limits have passed, and it serves until no more requests come.
    spec = o.pod["spec"]
    stop = o.container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    delay, limit = seconds(config["drain-delay"]), seconds(config["drain-timeout"])
    case.assertGreater(spec["terminationGracePeriodSeconds"], stop + delay + limit)
    ready = o.container["readinessProbe"]
    case.assertGreater(delay, ready["periodSeconds"] * ready["failureThreshold"])
    # Probes ask what needs no token, on a port without TLS.
    asked = "probe" if "probe" in ports else "admin"
    case.assertNotIn("admin-tls-cert" if asked == "admin" else "", config)
    calls = text("node", "admin", "calls.h")
    for kind in ("readinessProbe", "livenessProbe"):
        get = o.container[kind]["httpGet"]
        case.assertEqual((get["port"], get.get("scheme", "HTTP")), (asked, "HTTP"))
        case.assertRegex(calls, r'GET, "%s", NULL, \w+, ADMIN_PROBED' % re.escape(get["path"]))
    # The key is at the router's path, and its group can read it.
    mounts = {m["mountPath"]: m for m in o.container["volumeMounts"]}
    volumes = {v["name"]: v for v in spec["volumes"]}
    folder, entry = os.path.split(config["cluster-key-file"])
    secret = volumes[mounts[folder]["name"]]["secret"]
    case.assertNotIn("subPath", mounts[folder])
    case.assertEqual(secret["defaultMode"], 0o440)
    for job in o.of("Job"):
        args = job["spec"]["template"]["spec"]["containers"][0]["args"]
        case.assertIn("--kubernetes-secret=" + secret["secretName"], args)
        case.assertIn('SECRET_ENTRY "%s"' % entry, text("node", "gvctl", "keygen.c"))
    check_secrets(case, o, mounts, volumes)
    check_state(case, o, mounts, volumes)
    case.assertIs(spec["enableServiceLinks"], False)
    # A pod announces an address that leads to it; its name does not.
    own = {e["name"]: e for e in o.container["env"]}.get("GRAPEVINE_ADMIN_ADVERTISE", {})
    case.assertEqual(own.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath"),
                     None if "admin-advertise" in config else "status.podIP")
    case.assertIn("- `admin-advertise` (", text("docs", "options.md"))
    folder, entry = os.path.split(settings_file(o))
    case.assertEqual(volumes[mounts[folder]["name"]]["configMap"]["name"], "grapevine")
    case.assertIn(entry, o.one("ConfigMap")["data"])
    # Memory: the index, all bodies, and the router's other memory.
    case.assertGreaterEqual(size(o.container["resources"]["limits"]["memory"]),
                            size(o.setting("index-bytes")) + size(o.setting("buffered-bytes-max")) + (128 << 20))
    check_rights(case, o)


def check_secrets(case, o, mounts, volumes):
    """Each file that settings name is in a Secret that is mounted as a folder, for the router's group."""
    own = os.path.dirname(o.config["cluster-key-file"])
    for name, value in o.config.items():
        for file in value if isinstance(value, list) else [value]:
            folder = os.path.dirname(str(file))
            if not folder.startswith("/etc/grapevine/"):
                continue
            case.assertIn(folder, mounts, name)
            case.assertNotIn("subPath", mounts[folder])
            case.assertIs(mounts[folder]["readOnly"], True)
            case.assertEqual(volumes[mounts[folder]["name"]]["secret"]["defaultMode"], 0o440)
            case.assertEqual(folder == own, name == "cluster-key-file")


def check_state(case, o, mounts, volumes):
    """The router makes its folder in a volume: the volume itself is root's, and others may write there."""
    at = {e["name"]: e.get("value") for e in o.container["env"]}.get("GRAPEVINE_STATE_DIR")
    case.assertEqual(at is not None, "state" in volumes)
    if at is None:
        return
    mount = mounts[os.path.dirname(at)]
    case.assertFalse(mount.get("readOnly", False))
    volume = volumes[mount["name"]]["emptyDir"]
    case.assertEqual(set(volume), {"sizeLimit"})  # on the node's disk, not in memory
    # The kubelet evicts a pod whose volume is larger.
    files = len(re.findall(r'name_\w+\[\] = "state', text("node", "io", "state_dir.c")))
    each = int(re.search(r"NODE_KEEP_BYTES_MAX = (\d+) << 20", text("node", "cluster", "keep.h"))[1]) << 20
    case.assertEqual(files, 4)
    case.assertGreaterEqual(size(volume["sizeLimit"]), files * each)
    own = o.pod["spec"]["securityContext"]
    case.assertEqual(own["fsGroup"], own["runAsGroup"])


def check_config(o, ok=True):
    """The router's verdict on the settings of its pod, file and environment, with its volumes in a local folder."""
    with tempfile.TemporaryDirectory() as folder:
        at = lambda value: value.replace("/etc/grapevine", folder).replace("/var/lib/grapevine", folder + "/lib")
        env = {e["name"]: at(e["value"]) for e in o.container["env"] if "value" in e}
        for name in ("config", "key", "lib"):
            os.mkdir(os.path.join(folder, name))
        os.chmod(os.path.join(folder, "lib"), 0o2777)  # as the kubelet makes an emptyDir with an fsGroup
        subprocess.run([binary("gvctl"), "keygen", "--out", at(o.config["cluster-key-file"])], check=True,
                       stdout=subprocess.DEVNULL)
        with open(env["GRAPEVINE_CONFIG"], "w") as f:
            f.write(at(o.one("ConfigMap")["data"]["grapevine.yaml"]))
        p = subprocess.run([binary("grapevine"), "--check-config"], capture_output=True, text=True,
                           env={**os.environ, **env})
        if ok and p.returncode != 0:
            raise AssertionError(p.stderr)
        return p.stdout if ok else p.stderr


def policy(o):
    """Peers that may reach each port: its name -> kinds of peers; None: everybody."""
    names = {number: name for name, (number, protocol) in o.ports.items() if protocol == "TCP"}
    peers = lambda r: None if "from" not in r else [json.dumps(p, sort_keys=True) for p in r["from"]]
    found = [(names.get(p["port"], p["port"]), peers(r)) for n in o.of("NetworkPolicy")
             for r in n["spec"]["ingress"] for p in r["ports"]]
    if len(dict(found)) < len(found):
        raise AssertionError("two rules for one port: %s" % found)
    return dict(found)


def of_namespace(name):
    return '{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "%s"}}}' % name


ALL_SECRETS = ("tls.secretName=a,tls.ticketSecretName=b,adminTls.secretName=c,adminToken.secretName=d,"
               "adminToken.readEntry=read.token,clientKeys.secretName=e,clientKeys.entry=k,engineKey.secretName=f")
OWN_PODS = '{"podSelector": {}}'
MONITORING = of_namespace("monitoring")


def check_rights(case, o):
    for pod in [o.pod] + [j["spec"]["template"] for j in o.of("Job")]:  # Pod Security Standards: restricted
        case.assertTrue(pod["spec"]["securityContext"]["runAsNonRoot"])
        case.assertGreater(pod["spec"]["securityContext"]["runAsUser"], 0)
        case.assertEqual(pod["spec"]["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        for c in pod["spec"]["containers"]:
            case.assertEqual(c["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                    "capabilities": {"drop": ["ALL"]}})
        case.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(pod["spec"]))
    # A namespace comes before the service, not in a label behind it: #model=meta-llama/Llama-3.
    services = [s.partition("#")[0].removeprefix("https://") for s in o.config.get("replica-kubernetes", [])]
    engines = {s.partition("/")[0] if "/" in s else "grapevine" for s in services}
    slices = [r for r in o.of("Role") if r["metadata"]["name"] == "grapevine-grapevine-replicas"]
    case.assertEqual({r["metadata"]["namespace"] for r in slices}, engines)
    for r in slices:
        case.assertEqual(r["rules"], [{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
                                       "verbs": ["list", "watch"]}])
    for b in o.of("RoleBinding"):
        accounts = [a["metadata"]["name"] for a in o.of("ServiceAccount")]
        case.assertIn(b["subjects"][0]["name"], accounts)
        case.assertIn((b["roleRef"]["name"], b["metadata"]["namespace"]),
                      [(r["metadata"]["name"], r["metadata"]["namespace"]) for r in o.of("Role")])
    case.assertEqual([r["rules"] for r in o.of("Role") if r not in slices],
                     [[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]] * len(o.of("Job")))
    case.assertIn(o.pod["spec"]["serviceAccountName"], [a["metadata"]["name"] for a in o.of("ServiceAccount")])

"""One node of Kubernetes in a network and a mount namespace of its own: containerd, kubelet, kube-proxy, the scheduler and
the controllers, beside the API server of the tests. Pods are routed (ptp); services are kube-proxy's, of nftables; policies
are kube-router's."""

import json
import os
import subprocess
import sys

from check import POD as NODE
from check import Cluster
from lib import wait_for
from lib_deploy import tool
from lib_k8s import write

PODS, SERVICES = "10.244.0.0/24", "10.0.0.0/24"
API = "https://%s:6443" % NODE
HERE = os.path.dirname(os.path.abspath(__file__))

CONTAINERD = """version = 2
root = "%(at)s/containerd"
state = "%(at)s/run-containerd"
[grpc]
  address = "%(at)s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/test:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%(at)s/cni"
"""
CNI = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
    {"type": "ptp", "mtu": 1500, "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "dataDir": "",
                                          "routes": [{"dst": "0.0.0.0/0"}]}}]}
KUBELET = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
           "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
           "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "failSwapOn": False,
           "clusterDNS": [NODE], "clusterDomain": "cluster.local", "readOnlyPort": 0,
           "evictionHard": {"memory.available": "1Mi"}, "imageGCHighThresholdPercent": 100,
           "enforceNodeAllocatable": [], "cgroupRoot": "/grapevine-node"}
PROXY = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
         "clusterCIDR": PODS, "hostnameOverride": "node", "conntrack": {"maxPerCore": 0},
         "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249"}


class Node(Cluster):
    flags = ["--bind-address", "0.0.0.0", "--advertise-address", NODE, "--allow-privileged=true",
             "--kubelet-preferred-address-types", "InternalIP"]
    reconciler = "lease"

    def __init__(self, folder, images):
        super().__init__(folder)
        at = self.at
        self.kubeconfig = at("kubeconfig")
        write(self.kubeconfig, json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": API, "certificate-authority": self.account.path("ca.crt")}}],
            "users": [{"name": "u", "user": {"token": "admin"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        self.parts = []
        self.container_runtime(images)
        self.controllers()
        self.kubelet()

    def part(self, name, *args, env=None):
        with open(self.at(name + ".log"), "w") as log:
            self.parts.append(subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               env={**os.environ, **(env or {})}))

    def program(self, name):
        """Beside kube-apiserver, under a name like its own."""
        return os.environ["KUBE_APISERVER"].replace("kube-apiserver", name)

    def container_runtime(self, images):
        os.makedirs(self.at("cni"))
        write(self.at("containerd.toml"), CONTAINERD % {"at": self.folder})
        CNI["plugins"][0]["ipam"]["dataDir"] = self.at("cni-ipam")
        write(self.at("cni/pods.conflist"), json.dumps(CNI))
        self.part("containerd", "containerd", "--config", self.at("containerd.toml"))
        wait_for(lambda: self.ctr("version").returncode == 0, "containerd")
        for image in images:
            p = self.ctr("images", "import", image)
            assert p.returncode == 0, p.stderr
        for name in self.ctr("images", "ls", "-q").stdout.split():  # under the names of a registry's, as manifests have them
            if name.startswith("localhost/"):
                self.ctr("images", "tag", name, name.replace("localhost/", "docker.io/library/"))

    def ctr(self, *args):
        return subprocess.run(["ctr", "-a", self.at("containerd.sock"), "-n", "k8s.io", *args], capture_output=True,
                              text=True)

    def controllers(self):
        self.part("scheduler", self.program("kube-scheduler"), "--kubeconfig", self.kubeconfig, "--leader-elect=false")
        self.part("controllers", self.program("kube-controller-manager"), "--kubeconfig", self.kubeconfig,
                  "--leader-elect=false", "--service-account-private-key-file", self.at("sa.key"), "--root-ca-file",
                  self.account.path("ca.crt"), "--controllers", "*,-nodeipam,-node-route-controller,-cloud-node-lifecycle")
        self.part("dns", sys.executable, os.path.join(HERE, "dns.py"), NODE,
                  env={"SERVER": API, "CA": self.account.path("ca.crt")})

    def kubelet(self):
        socket = "unix://" + self.at("containerd.sock")
        write(self.at("resolv.conf"), "")
        write(self.at("kubelet.json"), json.dumps({
            **KUBELET, "containerRuntimeEndpoint": socket, "imageServiceEndpoint": socket,
            "resolvConf": self.at("resolv.conf"), "volumePluginDir": self.at("plugins"), "podLogsDir": self.at("pod-logs")}))
        self.part("kubelet", self.program("kubelet"), "--config", self.at("kubelet.json"), "--kubeconfig", self.kubeconfig,
                  "--root-dir", self.at("kubelet"), "--cert-dir", self.at("kubelet-pki"), "--hostname-override", "node",
                  "--node-ip", NODE)
        write(self.at("proxy.json"), json.dumps({**PROXY, "clientConnection": {"kubeconfig": self.kubeconfig}}))
        self.part("proxy", self.program("kube-proxy"), "--config", self.at("proxy.json"))
        wait_for(self.node_ready, "the node is ready", limit=60, step=0.5)
        self.part("policies", os.environ["KUBE_ROUTER"], "--kubeconfig", self.kubeconfig, "--hostname-override", "node",
                  "--run-router=false", "--run-service-proxy=false", "--enable-cni=false", "--health-port", "0",
                  "--service-cluster-ip-range", SERVICES)

    def node_ready(self):
        nodes = self.call("GET", "/api/v1/nodes")["items"]
        return any(c["type"] == "Ready" and c["status"] == "True" for n in nodes for c in n["status"]["conditions"])

    def end(self):
        for part in reversed(self.parts):
            part.kill()
            part.wait()
        if os.environ.get("LOGS"):
            subprocess.run("cp %s/*.log %s" % (self.folder, os.environ["LOGS"]), shell=True)
        super().end()

    def inside(self, address, *command):
        """Runs a command in the network of the pod with this address."""
        for pid in subprocess.run(["pgrep", "-x", "pause"], capture_output=True, text=True).stdout.split():
            enter = ["nsenter", "-t", pid, "-n"]
            if " %s/" % address in subprocess.run([*enter, "ip", "-4", "addr"], capture_output=True, text=True).stdout:
                return subprocess.run([*enter, *command], capture_output=True, text=True)
        raise AssertionError("no pod has " + address)

    def pods(self, namespace, label=""):
        return self.call("GET", "/api/v1/namespaces/%s/pods?labelSelector=%s" % (namespace, label))["items"]

    def kubectl(self, *args, **more):
        return subprocess.run([tool("kubectl"), "--kubeconfig", self.kubeconfig, *args], capture_output=True, text=True, **more)

"""gvctl convert: command lines and files of other routers become settings that grapevine takes, and nothing that they
say goes unmentioned."""

import os
import re
import subprocess
import tempfile
import unittest

from lib import binary
from lib_cluster import gvctl

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "from-other-routers.md")
# The routers' published flags (docs/from-other-routers.md gives their sources), without dashes.
FORK = """host port worker-urls policy prefill-policy decode-policy prefill decode worker-startup-timeout-secs
worker-startup-check-interval cache-threshold balance-abs-threshold balance-rel-threshold max-tree-size max-payload-size
enable-igw api-key log-dir log-level service-discovery selector service-discovery-port service-discovery-namespace
prefill-selector decode-selector prometheus-port prometheus-host request-id-headers request-timeout-secs
max-concurrent-requests queue-size queue-timeout-secs rate-limit-tokens-per-second cors-allowed-origins retry-max-retries
retry-initial-backoff-ms retry-max-backoff-ms retry-backoff-multiplier retry-jitter-factor disable-retries
cb-failure-threshold cb-success-threshold cb-timeout-duration-secs cb-window-duration-secs disable-circuit-breaker
health-failure-threshold health-success-threshold health-check-timeout-secs health-check-interval-secs
health-check-endpoint eviction-interval-secs eviction-interval"""
GATEWAY = """pd-disaggregation bucket-adjust-interval-secs dp-aware model-path tokenizer-path chat-template
tokenizer-cache-enable-l0 tokenizer-cache-l0-max-entries tokenizer-cache-enable-l1 tokenizer-cache-l1-max-memory
reasoning-parser tool-call-parser mcp-config-path backend history-backend oracle-wallet-path oracle-tns-alias
oracle-connect-descriptor oracle-username oracle-password oracle-pool-min oracle-pool-max oracle-pool-timeout-secs
client-cert-path client-key-path ca-cert-paths enable-trace otlp-traces-endpoint load-monitor-interval max-idle-secs
assignment-mode log-json prometheus-duration-buckets shutdown-grace-period-secs disable-health-check served-model-name
storage-hook-wasm-path oracle-external-auth postgres-db-url postgres-pool-max redis-url redis-key-prefix redis-pool-max
redis-retention-days tls-cert-path tls-key-path control-plane-api-keys control-plane-audit-enabled jwt-issuer
jwt-audience jwt-jwks-uri jwt-role-mapping mini-lb e-disaggregation epd-disaggregation encode encode-policy
encode-selector bootstrap-port-annotation model runtime oracle-dsn oracle-user postgres-pool-max-size
redis-pool-max-size jwt-role-claim disable-audit-logging enable-mesh mesh-server-name mesh-host mesh-port
mesh-advertise-host mesh-peer-urls router-selector router-mesh-port-annotation"""
PUBLISHED = {
    "vllm-router": FORK + """ mini-lb vllm-pd-disaggregation intra-node-data-parallel-size
        vllm-discovery-address kv-connector enable-trace otlp-traces-endpoint otel-sampling-ratio otel-excluded-paths
        backend runtime history-backend profile enable-program-scheduling program-scheduling-config-json
        api-key-validation-urls wasm-middleware wasm-middleware-sha256 wasm-middleware-route""",
    "sglang-router": FORK + " " + GATEWAY,  # flags missing from one release are in another
    "smg": FORK + " " + GATEWAY,
    "production-stack": """host port service-discovery k8s-service-discovery-type static-backends static-models
        static-aliases static-model-types static-model-labels static-backend-health-checks k8s-port k8s-namespace
        k8s-label-selector k8s-watcher-timeout-seconds backend-health-check-timeout-seconds routing-logic
        lmcache-controller-port session-key callbacks request-rewriter enable-batch-api file-storage-class
        file-storage-path batch-processor engine-stats-interval request-stats-window log-stats log-stats-interval
        dynamic-config-yaml dynamic-config-json feature-gates log-level sentry-dsn sentry-traces-sample-rate
        sentry-profile-session-sample-rate otel-endpoint otel-service-name otel-secure prefill-model-labels
        decode-model-labels kv-aware-threshold lmcache-health-check-interval lmcache-worker-timeout""",
    "llm-d": """grpc-port ha-enable-leader-election drain-timeout grpc-max-recv-msg-size grpc-max-send-msg-size pool-group
        pool-namespace pool-name endpoint-selector endpoint-target-ports disable-endpoint-subset-filter
        refresh-metrics-interval refresh-prometheus-metrics-interval metrics-staleness-threshold
        total-queued-requests-metric total-running-requests-metric kv-cache-usage-percentage-metric lora-info-metric
        cache-info-metric tracing health-checking metrics-port grpc-health-port enable-pprof cert-path enable-cert-reload
        enable-grpc-stream-metrics secure-serving metrics-endpoint-auth metrics-client-ca-file metrics-cert-dir
        config-file config-text allow-experimental-plugins v""",
}
# A value for each kind of flag.
VALUES = {"worker-urls": ["http://10.0.0.1:8000", "http://10.0.0.2:8000"], "static-backends": ["http://10.0.0.1:8000"],
          "host": ["127.0.0.1"], "prometheus-host": ["127.0.0.1"], "policy": ["random"], "routing-logic": ["roundrobin"],
          "log-level": ["info"], "zap-log-level": ["info"], "log-format": ["json"], "health-check-endpoint": ["/healthz"],
          "session-key": ["x-user"], "service-discovery": ["k8s"], "pool-name": ["engines"], "pool-namespace": ["ns"],
          "k8s-namespace": ["ns"], "service-discovery-namespace": ["ns"], "drain-timeout": ["30s"],
          "refresh-metrics-interval": ["500ms"], "config-file": ["/nowhere"], "selector": ["app=vllm", "env=prod"],
          "router-selector": ["app=smg", "tier=router"], "mesh-host": ["0.0.0.0"], "mesh-port": ["39527"],
          "mesh-advertise-host": ["10.0.0.11"], "mesh-peer-urls": ["10.0.0.12:39527", "10.0.0.13:39527"],
          "endpoint-selector": ["app=vllm"], "prometheus-port": ["8"], "max-payload-size": ["1048576"], "metrics-port": ["8"], "retry-max-retries": ["3"]}


def settings(text):
    """{name: value or [values]} of YAML as gvctl convert writes it."""
    out, name = {}, None
    for line in text.splitlines():
        item = re.match(r"  - (.*)$", line)
        pair = re.match(r"([a-z-]+):(?: (.*))?$", line)
        if item:
            out[name].append(item.group(1).strip('"'))
        elif pair:
            name = pair.group(1)
            out[name] = pair.group(2).strip('"') if pair.group(2) is not None else []
    return out


def tables():
    """{router: [(flag, its values in words, its result)]} of the page."""
    found, routers, group = {}, [], ""
    with open(PAGE) as f:
        for line in f:
            title = re.match(r"### .* of (.*)$", line)
            if title:
                routers = title.group(1).split(", ")
            group = {"Converted:": "", "By hand:": ", by hand", "Not needed:": "not needed",
                     "No counterpart:": "no counterpart"}.get(line.strip(), group)
            row = re.match(r"- (`.*?`): ((?:`[^`]+`(?:, )?)*)", line)
            becomes = row.group(2) + group if row and not group.endswith(("needed", "counterpart")) else group
            for flag, values in re.findall(r"`--?([a-z0-9A-Z-]+)([ =]X|=\.\.\.)?`", row.group(1) if row else ""):
                for router in routers:
                    found.setdefault(router, []).append((flag, values[1:], becomes))
    return found


class Converts(unittest.TestCase):
    """The output of gvctl convert passes --check-config."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def convert(self, *args, stdin=b"", exits=0):
        status, out, err = gvctl("convert", *args, stdin=stdin)
        self.assertEqual(status, exits, err)
        if exits < 2:
            given = out
            if "#   --enable-mesh: make a key" in out:  # done here
                key = os.path.join(self.folder.name, "cluster.key")
                if not os.path.exists(key):
                    self.assertEqual(gvctl("keygen", "--out", key)[0], 0)
                self.assertIn("\ngossip-listen: ", out)
                given += "cluster-key-file: %s\n" % key
            p = subprocess.run([binary("grapevine"), "--config", self.file("out.yaml", given), "--check-config"],
                               capture_output=True, text=True)
            # Certificate files that the settings name are opened last, and do not exist here.
            if not (p.returncode == 2 and "No such file or directory" in p.stderr):
                said = re.sub(r'\{.*"event":"cluster_key_held".*\n', "", p.stderr)
                self.assertEqual((p.returncode, said), (0, ""), out)
        return settings(out), out, err


class Convert(Converts):
    def test_the_page_is_made_of_the_tables(self):
        with open(PAGE) as f:
            self.assertEqual(f.read(), gvctl("convert", "--print-page")[1], "make docs")

    def test_every_setting_that_a_row_names_exists(self):
        """Also for HAProxy's rows, which no single input covers: gvctl aborts at a setting that does not exist."""
        p = subprocess.run([binary("grapevine"), "--print-options-markdown"], capture_output=True, text=True, check=True)
        known = set(re.findall(r"^- `([a-z-]+)` \(", p.stdout, re.M))
        with open(PAGE) as f:
            cells = re.findall(r"^- `.*?`:((?: `[^`]+`,?)+)", f.read(), re.M)
        named = {name for cell in cells for name in re.findall(r"`([a-z-]+)", cell)}
        self.assertGreater(len(named), 30)
        self.assertEqual(sorted(named - known), [])

    def test_every_published_flag_has_a_row(self):
        for router, flags in PUBLISHED.items():
            rows = {row[0] for row in tables()[router]}
            self.assertEqual(sorted(set(flags.split()) - rows), [], router)

    def test_every_row_of_every_table_is_converted(self):
        """All flags at once, with a worker: the output has each result, or the reason why there is none."""
        for router, rows in tables().items():
            if router == "haproxy":
                continue
            worker = {"llm-d": ["--pool-name", "engines"], "production-stack": ["--static-backends", "http://a:1"]}.get(
                router, ["--worker-urls", "http://a:1"])
            self.assertGreater(len(rows), 25)
            line, wanted = list(worker), []
            for flag, arity, becomes in rows:
                if flag == "disable-retries":  # beside retry-max-retries
                    continue
                values = VALUES.get(flag, ["7"]) if arity else []
                line += [("-" if len(flag) == 1 else "--") + flag] + values[:1 if arity == "X" else None]
                setting = re.match(r"`([a-z-]+)(?:: \S+)?`( by hand)?$", becomes)
                self.assertTrue(setting or becomes in ("not needed", "no counterpart") or "by hand" in becomes, flag)
                if setting:
                    wanted.append((flag, setting.group(1)))
            got, out, err = self.convert("--from", router, "--", *line)
            self.assertNotRegex(out, r"(?m): unknown (flag|word|plugin|section|directive|option)\b")
            refused = set(re.findall(r"#   --?(\S+): set \S+: the value", out))
            for flag, setting in wanted:
                if flag not in refused and not flag.startswith("config-"):
                    self.assertIn(setting, got, (router, flag, out))
            for flag, arity, becomes in rows:
                if becomes in ("not needed", "no counterpart") and flag != "config-file":
                    self.assertRegex(out, r"#   --?%s: \S" % re.escape(flag), (router, flag))
            self.assertLessEqual(refused, {"tls-cert-path", "tls-key-path", "client-cert-path", "client-key-path",
                                           "ca-cert-paths"}, "settings of TLS come with TLS")

    def test_vllm_router(self):
        got, out, err = self.convert("--", "vllm-router", "--worker-urls", "http://w1:8000", "http://w2:8000", "--policy",
                                     "consistent_hash", "--host", "::", "--port=8080", "--request-timeout-secs", "600",
                                     "--queue-size", "50", "--health-check-interval-secs", "10", "--log-level", "warning",
                                     "--intra-node-data-parallel-size", "8")
        self.assertEqual(got, {"replica": ["http://w1:8000", "http://w2:8000"], "policy": "session",
                               "listen": "[::]:8080", "request-timeout": "600s", "queue-max": "50",
                               "health-interval": "10s", "log-level": "warn", "body-bytes-max": "512MiB"})
        self.assertIn("session-header names the header", out)
        self.assertIn("--intra-node-data-parallel-size: the router finds data-parallel ranks itself", out)
        self.assertIn("0 without a counterpart", err)

    def test_a_program_is_known_by_its_name_first(self):
        """vllm-router with one flag of SMG's was taken for SMG. Two routers have the name vllm-router."""
        for args, router in ((("--worker-urls", "http://a:1", "--tls-cert-path", "X"), "vllm-router"),
                             (("--worker-urls", "http://a:1", "--jwt-issuer", "x", "--tls-cert-path", "X"), "vllm-router"),
                             (("--static-backends", "http://a:1", "--tls-cert-path", "X"), "production-stack")):
            out, err = self.convert("--", "vllm-router", *args)[1:]
            self.assertIn("gvctl: converted %s: " % router, err)
            self.assertIn("--tls-cert-path: unknown flag; a flag of smg with this name sets tls-cert", out)

    def test_mesh_flags_become_cluster_settings(self):
        """Before, six mesh flags were unknown."""
        line = ("--enable-mesh", "--mesh-server-name", "node1", "--mesh-host", "0.0.0.0", "--mesh-advertise-host", "10.0.0.11",
                "--mesh-port", "39527", "--mesh-peer-urls", "10.0.0.12:39527", "grpc://[fd00::3]:39527",
                "--worker-urls", "http://10.1.0.1:8000", "--host", "0.0.0.0", "--port", "8000")
        cluster = {"gossip-listen": "0.0.0.0:39527", "gossip-advertise": "10.0.0.11:39527", "node-name": "node1",
                   "join": ["10.0.0.12:39527", "[fd00::3]:39527"]}
        rest = {"replica": ["http://10.1.0.1:8000"], "listen": "0.0.0.0:8000", "body-bytes-max": "512MiB"}
        for program in (("smg",), ("python", "-m", "sglang_router.launch_router"), ()):
            got, out, err = self.convert("--", *program, *line)
            self.assertEqual(got, cluster | rest)
            self.assertRegex(err, r"^gvctl: converted \S+: 7 written, 0 not needed, 1 by hand, 0 without a counterpart\n"
                             r"gvctl: by hand: --enable-mesh: make a key with gvctl keygen --out FILE.* cluster-key-file: FILE at each\n$")
        for part, wanted in ((("--mesh-port=1234",), {"gossip-listen": "0.0.0.0:1234"}), ((), {"gossip-listen": "0.0.0.0:39527"}),
                             (("--mesh-host", "::1", "--mesh-advertise-host", "fd00::1"),
                              {"gossip-listen": "[::1]:39527", "gossip-advertise": "[fd00::1]:39527"})):
            got, out, err = self.convert("--", "smg", "--enable-mesh", "--worker-urls", "http://a:1", *part)
            self.assertEqual({k: v for k, v in got.items() if k in cluster}, wanted)

    def test_a_mesh_that_is_off_or_found_by_kubernetes(self):
        got, out, err = self.convert("--strict", "--", "smg", "--mesh-port", "1", "--mesh-peer-urls", "h:1", "--worker-urls", "http://a:1")
        self.assertEqual(sorted(got), ["body-bytes-max", "listen", "replica"])
        self.assertIn("#   --mesh-peer-urls: no effect without --enable-mesh", out)
        got, out, err = self.convert("--", "smg", "--enable-mesh", "--service-discovery", "--selector", "app=vllm",
                                     "--router-selector", "app=smg", "tier=router", "--mesh-advertise-host", "$(POD_IP)")
        self.assertIn('with the selector "app=vllm"', err)
        self.assertIn("gvctl: by hand: --router-selector: create a headless Service for the routers", err)
        self.assertIn("set gossip-advertise: the value $(POD_IP):39527 is invalid", err)
        # With that prefix launch_server names the engines' pods.
        err = self.convert("--", "python", "-m", "sglang_router.launch_server", "--router-service-discovery", "--router-selector", "app=x")[2]
        self.assertIn('with the selector "app=x"', err)

    def test_flags_of_other_releases_and_of_forks(self):
        """--eviction-interval was known of vLLM Router alone, and half of the gateway's flags of SMG alone."""
        for program in (("vllm-router",), ("python", "-m", "sglang_router.launch_router"), ("smg", "launch"),
                        ("python3", "-m", "smg.launch_router"), ("/usr/bin/amg",)):
            out, err = self.convert("--strict", "--", *program, "--worker-urls", "http://a:1", "--eviction-interval", "60")[1:]
            self.assertIn("#   --eviction-interval: the prefix index follows each engine's cache", out)
        got = self.convert("--strict", "--", "sgl-router", "--worker-urls", "http://a:1", "--log-json", "--policy", "least_load",
                           "--shutdown-grace-period-secs", "60", "--max-idle-secs", "9")[0]
        self.assertEqual((got["log-format"], got["drain-timeout"], got["policy"]), ("json", "60s", "least_tokens"))
        got = self.convert("--strict", "--", "vllm-router", "--worker-urls", "http://a:1", "--policy", "sticky_least_loaded")[0]
        self.assertEqual(got["policy"], "session")

    def test_an_engines_command_line_is_not_converted(self):
        """Before, --served-model-name was taken for a flag of SMG, and the router next to the engine was ignored."""
        manifest = """
services:
  engine:
    image: vllm/vllm-openai
    command: --model m --served-model-name x --chat-template t --enable-trace --reasoning-parser qwen3
  other: {image: lmsysorg/sglang, command: python3 -m sglang.launch_server --model-path m --tokenizer-path t --port 8000}
  router: {image: ghcr.io/lightseekorg/smg, command: --service-discovery --selector app=x --jwt-issuer i}
"""
        got, out, err = self.convert(stdin=manifest.encode())
        self.assertEqual(got["replica-kubernetes"], ["engines"])
        self.assertIn("gvctl: converted smg: ", err)

    def test_sglang_in_kubernetes_and_compose(self):
        manifest = """
apiVersion: v1
kind: Service
metadata: {name: x}
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - {name: sidecar, image: y, args: [--port, "1"]}
        - name: router
          command: ["python3", "-m", "sglang_router.launch_router"]
          args: ["--service-discovery", "--selector", "app=sgl", "env=prod", "--service-discovery-port", "8000",
                 "--service-discovery-namespace", "inference", "--prometheus-port", "29000", "--api-key", "sekret"]
"""
        got, out, err = self.convert(self.file("deployment.yaml", manifest))
        self.assertEqual(got, {"replica-kubernetes": ["inference/engines:8000"], "listen": "0.0.0.0:30000",
                               "admin-listen": "127.0.0.1:29000", "body-bytes-max": "512MiB"})
        self.assertIn('with the selector "app=sgl,env=prod"', out)
        self.assertIn("#   --api-key: write the key, one line, into a file", out)
        self.assertNotIn("sekret", out + err)
        compose = """
services:
  engine: {image: vllm/vllm-openai, command: --model m}
  router:
    image: lmsysorg/sglang
    command: >
      python3 -m sglang_router.launch_router --worker-urls http://engine:8000
      --policy power_of_two --router-cache-threshold 0.5
"""
        got, out, err = self.convert(stdin=compose.encode())
        self.assertEqual((got["replica"], got["policy"]), (["http://engine:8000"], "power_of_two"))
        self.assertIn("#   --cache-threshold: ", out)

    def test_smg(self):
        script = """#!/bin/sh
# the gateway
exec smg launch --worker-urls "http://10.0.0.1:30001" 'http://10.0.0.2:30001' \\
    --policy cache_aware --log-json --shutdown-grace-period-secs 180 \\
    --max-concurrent-requests -1 --postgres-db-url postgres://u:p@h/db
"""
        got, out, err = self.convert(self.file("run.sh", script.replace("exec ", "")))
        self.assertEqual(got, {"replica": ["http://10.0.0.1:30001", "http://10.0.0.2:30001"], "policy": "cache_aware",
                               "listen": "0.0.0.0:30000", "log-format": "json", "drain-timeout": "180s",
                               "body-bytes-max": "512MiB"})
        self.assertIn("--postgres-db-url: engines store responses", err)
        self.assertNotIn("u:p@h", out + err)

    def test_production_stack(self):
        got, out, err = self.convert("--", "vllm-router", "--service-discovery", "static", "--static-backends",
                                     "http://a:8000,http://b:8000/v1", "--static-models", "m,m", "--routing-logic",
                                     "session", "--session-key", "x-user-id", "--engine-stats-interval", "10")
        self.assertEqual(got, {"replica": ["http://a:8000", "http://b:8000"], "policy": "session",
                               "session-header": "x-user-id", "listen": "0.0.0.0:8001", "scrape-interval": "10s"})
        got, out, err = self.convert("--", "vllm-router", "--service-discovery", "k8s", "--k8s-namespace", "prod",
                                     "--k8s-port", "8000", "--k8s-label-selector", "app=v", "--routing-logic", "priority")
        self.assertEqual(got["replica-kubernetes"], ["prod/engines:8000"])
        self.assertIn("--routing-logic: no priorities", err)

    def test_llm_d(self):
        config = """apiVersion: llm-d.ai/v1
kind: EndpointPickerConfig
plugins:
- type: prefix-cache-scorer
  parameters: {blockSize: 64}
- type: kv-cache-utilization-scorer
- type: pd-profile-handler
- type: made-up
- type: max-score-picker
flowControl: {maxBytes: 10Gi}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: kv-cache-utilization-scorer}
  - {pluginRef: max-score-picker}
"""
        path = self.file("epp.yaml", config)
        map_of_it = "apiVersion: v1\nkind: ConfigMap\ndata:\n  epp.yaml: |\n" + re.sub("(?m)^", "    ", config)
        got, out, err = self.convert("--", "/app/epp", "--pool-name", "vllm", "--pool-namespace=ns", "--v=4",
                                     "--endpoint-target-ports", "8000", "--config-file", path, "--enable-pprof=false")
        self.assertEqual(got, {"replica-kubernetes": ["ns/engines:8000"], "policy": "cache_aware"})
        for given in (path, self.file("map.yaml", map_of_it)):
            got, more, err = self.convert(given)
            self.assertEqual(got, {"replica-kubernetes": ["engines"], "policy": "cache_aware"})
            for plugin in ("prefix-cache-scorer: ", "kv-cache-utilization-scorer: no weights",
                           "pd-profile-handler: prefill/decode disaggregation", "made-up: unknown plugin",
                           "flowControl: requests wait in one queue", "max-score-picker: "):
                self.assertIn("#   " + plugin, more)
                self.assertIn("#   " + plugin, out)
        self.assertIn("3 without a counterpart", err)

    def test_haproxy(self):
        config = """# engines
global
    maxconn 20000
    nbthread 4
    tune.bufsize 65536
defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 600000
    timeout http-request 10s
    timeout queue 30s
    retries 2
    option redispatch
    option httplog
frontend llm
    bind *:443 ssl crt /etc/ssl/llm.pem accept-proxy
    bind :8080
    http-request deny if { path /x }
    default_backend engines
backend engines
    balance hash req.hdr(x-session-id)
    option httpchk
    http-check send meth GET uri /health
    http-check expect status 200-299
    default-server inter 2s fall 3 maxconn 64
    server e1 10.0.0.1:8000 check weight 3
    server e2 [fd00::2]:8000 check backup
    server-template pod 8 _vllm._tcp.engines.svc resolvers dns
    whatever x
"""
        got, out, err = self.convert(self.file("haproxy.cfg", config))
        had = {"replica": ["http://10.0.0.1:8000#weight=3"],
               "replica-dns": ["_vllm._tcp.engines.svc"], "policy": "session", "session-header": "x-session-id",
               "connections-max": "20000", "upstream-connect-timeout": "5s", "client-body-timeout": "60s",
               "client-write-timeout": "60s", "client-idle-timeout": "10s",
               "upstream-idle-timeout": "600s", "client-head-timeout": "10s", "queue-timeout": "30s", "retries-max": "2",
               "access-log": "all", "listen": "0.0.0.0:443", "proxy-protocol": "on", "health-path": "/health",
               "health-statuses": "200..299", "health-interval": "2s", "health-failures": "3",
               "replica-requests-max": "64"}
        self.assertEqual({k: v for k, v in got.items() if k != "tls-cert"}, had)
        self.assertEqual("tls-cert" in got, "set tls-cert: the value" not in out)
        for words in ("bind: :8080 is left out: the router has one client address, *:443", "by hand: server: http://[fd00::2]:8000: a backup in HAProxy",
                      "http-request: the router routes by model", "whatever: unknown directive"):
            self.assertIn("gvctl: " + words, err)
        for words in ("nbthread: a router has one thread", "tune.*: nothing to tune", "mode: the router always speaks HTTP"):
            self.assertIn("#   " + words, out)
        self.assertEqual(self.convert("--", "haproxy", "-f", self.file("haproxy.cfg", config))[0], got)
        for balance, policy in (("roundrobin", "round_robin"), ("leastconn", "least_request"), ("random", "power_of_two"),
                                ("random(1)", "random"), ("source", "cache_aware"), ("hdr(x-y)", "session")):
            text = "backend b\n  balance %s\n  server a 1.1.1.1:1\n" % balance
            self.assertEqual(self.convert(stdin=text.encode())[0]["policy"], policy)

    def test_haproxy_servers_that_differ(self):
        config = "backend b\n server a 1.1.1.1:1 maxconn 16\n server b 1.1.1.2:1 maxconn 64\n server c 1.1.1.3:1 weight 200\n"
        got, _, err = self.convert(stdin=config.encode())
        self.assertEqual(got["replica-requests-max"], "16")
        self.assertEqual(got["replica"][2], "http://1.1.1.3:1#weight=100")
        self.assertIn("gvctl: by hand: server: maxconn: replica-requests-max is one value for all replicas", err)
        self.assertIn("gvctl: by hand: server: weight 200: weights end at 100", err)

    def test_lost_settings_are_reported(self):
        line = ("--worker-urls", "http://a:1", "--pd-disaggregation", "--no-such-flag", "x", "--retry-max-retries", "many")
        for strict, status in (((), 0), (("--strict",), 1)):
            got, out, err = self.convert("--from", "smg", *strict, "--", *line, exits=status)
            self.assertIn("gvctl: converted smg: 3 written, 0 not needed, 1 by hand, 2 without a counterpart\n", err)
            self.assertEqual(len(got), 3)
            self.assertIn("gvctl: by hand: --retry-max-retries: set retries-max: the value many is invalid: ", err)
            self.assertIn("gvctl: --pd-disaggregation: prefill/decode disaggregation is not supported", err)
            self.assertIn("gvctl: --no-such-flag: unknown flag", err)
            self.assertIn("#   --retry-max-retries: set retries-max: the value many is invalid: ", out)
        self.convert("--strict", "--from", "smg", "--", "--worker-urls", "http://a:1")

    def test_settings_to_make_by_hand_are_reported(self):
        """Before, such settings were counted but not named, or named but not counted, and --strict passed."""
        key = ("--", "vllm-router", "--worker-urls", "http://a:1", "--api-key", "sekret", "--api-key", "other")
        picker = "kind: EndpointPickerConfig\nplugins:\n- type: prefix-cache-scorer\n- type: max-score-picker\n"
        for args, stdin, counts, told in (
                (key, "", "3 written, 0 not needed, 1 by hand, 0", "--api-key: write the key, one line, into a file"),
                ((), picker, "2 written, 2 not needed, 1 by hand, 0", "replica-kubernetes: the router finds pods by a Service"),
                ((), "backend b\n  server a h:1\nbackend d\n  server b h:2\n", "1 written, 0 not needed, 1 by hand, 0",
                 "server: the servers of b, d became one set of replicas"),
                (("--from", "smg", "--", "--port", "1"), "", "2 written, 0 not needed, 1 by hand, 0",
                 "all settings: setting replica is missing")):
            status, out, err = gvctl("convert", *args, stdin=stdin.encode())
            self.assertEqual((status, len(settings(out))), (0, int(counts.split()[0])))
            self.assertRegex(err, r"^gvctl: converted \S+: %s without a counterpart\ngvctl: by hand: %s.*\n$" % (counts, told))
            self.assertIn("\n# Set by hand:\n#   %s" % told, out)
            self.assertEqual(gvctl("convert", "--strict", *args, stdin=stdin.encode()), (1, out, err))

    def test_conflicting_settings_are_reported(self):
        got, out, err = self.convert("--", "vllm-router", "--worker-urls", "http://a:1", "--port", "9090")
        self.assertEqual((got["listen"], got["admin-listen"]), ("127.0.0.1:9090", "127.0.0.1:9091"))
        for args, words in ((("--worker-urls", "http://a:1", "--port", "1", "--prometheus-port", "1"), "want another port than that of listen"),
                            (("--port", "1"), "setting replica is missing")):
            status, out, err = gvctl("convert", "--from", "smg", "--", *args)
            self.assertEqual(status, 0)
            self.assertRegex(out, "#   all settings: .*" + words)

    def test_input_of_no_known_router_is_refused(self):
        for args, stdin, words in ((("--", "nginx", "-g", "daemon off;"), b"", "cannot recognise a router in the command line"),
                                   ((), b"a: b\n", "cannot recognise a router in standard input: name it with --from"),
                                   ((), b"", "router in standard input"),
                                   ((), b"\xff\xfe\0{[", "cannot recognise"),
                                   (("--from", "envoy", "--", "x"), b"", "router in envoy")):
            status, out, err = gvctl("convert", *args, stdin=stdin)
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()

"""gvctl convert, given configurations as people have them."""

import tempfile
import unittest

from lib_cluster import gvctl
from test_gvctl_convert import Converts

DEBIAN = r"""# Debian's head, a page of statistics first, plain HTTP that redirects
global
    log /dev/log    local0
    log /dev/log    local1 notice
    chroot /var/lib/haproxy
    stats socket /run/haproxy/admin.sock mode 660 level admin
    stats timeout 30s
    user haproxy
    group haproxy
    daemon
    ca-base /etc/ssl/certs
    crt-base /etc/ssl/private
    ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256
    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets

defaults
    log    global
    mode    http
    option    httplog
    option    dontlognull
        timeout connect 5000
        timeout client  50000
        timeout server  50000
    errorfile 400 /etc/haproxy/errors/400.http

frontend stats
    bind *:8404
    maxconn 10
    stats enable
    stats uri /stats
    stats refresh 10s
    stats auth admin:secret

frontend http
    bind :80
    http-request redirect scheme https unless { ssl_fc }

frontend    llm
    bind 10.0.0.5:443 ssl crt llm.pem alpn h2,http/1.1
    bind [2001:db8::5]:443 ssl crt llm.pem
    maxconn 4000
    default_backend    vllm

backend vllm
    balance leastconn
    option httpchk GET /health HTTP/1.1\r\nHost:\ llm.internal
    http-check expect rstatus ^2
    default-server check inter 3s fastinter 1s downinter 10s rise 2 fall 4 maxconn 128
    server gpu1 ipv4@10.0.1.1:8000 weight 100
    server gpu2 10.0.1.2:8000 weight 100
    server gpu3 2001:db8::3:8000 weight 50
"""
DNS = r"""defaults tcp-things
    mode tcp
    timeout server 10m
defaults web
    mode http
    timeout connect 2s
    timeout client 5m
    timeout server 15m
    timeout tunnel 1h
    default_backend engines
listen postgres from tcp-things
    bind 127.0.0.1:5432
    disabled
    server pg 10.0.0.9:5432
frontend in from web
    bind unix@/run/haproxy/llm.sock
    bind *:8080,[::]:8080 v4v6
backend engines from web
    balance url_param session_id check_post
    option httpchk
    http-check connect ssl sni llm.internal
    http-check send meth HEAD uri /ping ver HTTP/1.1 hdr Host llm.internal
    http-check expect ! status 500-599
    default-server ssl verify none sni str(llm.internal)
    server-template e 1-8 engines.internal:8443 check resolvers d init-addr none
    server old engines-old.internal:8443 backup weight 0
resolvers d
    nameserver one 10.0.0.2:53
    nameserver two tcp@10.0.0.3:53
    parse-resolv-conf
    resolve_retries 3
    timeout resolve 1s
    timeout retry 1s
    hold valid 10s
"""
MUTUAL = r"""listen llm
    bind :8000 ssl crt /etc/haproxy/certs/ ca-file /etc/ssl/clients.pem verify required
    mode http
    balance hash req.hdr(X-Session-ID),lower
    hash-type consistent xxh64
    cookie SRV insert indirect nocache
    timeout server 1h
    timeout queue 90s
    http-check disable-on-404
    retry-on conn-failure empty-response 503
    retries 4
    server a 10.1.0.1:8000 check port 9000 ssl ca-file /etc/ssl/engines.pem verify required verifyhost engines.example crt /etc/ssl/router.pem
    server b 10.1.0.2 check
    server c unix@/run/vllm.sock
    server d 10.1.0.4:8000 check track llm/a on-marked-down shutdown-sessions new-word 3
userlist admins
    user bob insecure-password x
    group g users bob
peers others
    peer haproxy1 10.0.0.5:10000
    server haproxy2 10.0.0.6:10000
program agent
    command /usr/bin/agent
    user nobody
"""
SEVERAL = r"""global
    maxconn 65536
    nbthread 8
    hard-stop-after 10m
frontend api
    bind *:443 ssl crt /etc/certs/a.pem crt /etc/certs/b.pem
    bind *:80
    redirect scheme https code 301 if !{ ssl_fc }
    acl chat path_beg /v1/chat
    acl small hdr(x-model) small
    http-request set-header X-Forwarded-Proto https
    http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100 }
    stick-table type ip size 100k expire 30s store http_req_rate(10s)
    use_backend small if small
    use_backend site unless chat
    default_backend large
backend large
    balance random(2)
    timeout server 300s
    server l1 large-1.gpu:8000 check
    server l2 large-2.gpu:8000 check
backend small
    balance uri whole
    server s1 small-1.gpu:8000 check
backend site
    server w1 10.0.0.80:80
"""
VARIABLES = r"""defaults
  timeout connect 100ms
  timeout client 2d
  timeout server 1500us
  timeout http-request 0
  timeout check "2s"
  option redispatch 3
  no option httpclose
  log-format "%ci:%cp [%tr] #%ft"   # with a comment
listen l
  bind "${ADDR}:${PORT}"
  balance rdp-cookie(x)
  balance first
  option tcp-check
  option foo bar
  server-template v 5 _http._tcp.vllm.default.svc.cluster.local:8000 resolvers k8s check
  server x "$ENGINE"
"""
SCORERS = r"""apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
  name: unused
- type: weighted-random-picker
- type: single-profile-handler
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: queue-scorer
    weight: 2
  - pluginRef: kv-cache-utilization-scorer
    weight: 2.5
  - pluginRef: weighted-random-picker
saturationDetector:
  queueDepthThreshold: 5
  kvCacheUtilThreshold: 0.8
"""
RELEASE = r"""# Helm: everything that a release renders
apiVersion: v1
kind: ConfigMap
metadata: {name: epp}
data:
  default-plugins.yaml: |
    apiVersion: inference.networking.x-k8s.io/v1alpha1
    kind: EndpointPickerConfig
    plugins:
    - type: prefix-cache-scorer
      parameters: {hashBlockSize: 64, maxPrefixBlocksToMatch: 256, lruCapacityPerServer: 31250}
    - type: queue-scorer
    - type: session-affinity-scorer
    schedulingProfiles:
    - name: default
      plugins:
      - {pluginRef: prefix-cache-scorer, weight: 50}
      - {pluginRef: queue-scorer, weight: 1}
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: vllm-qwen, namespace: llm}
spec:
  targetPorts: [{number: 8000}]
  selector: {matchLabels: {app: vllm-qwen, tier: gpu}}
  endpointPickerRef: {name: epp, port: {number: 9002}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: epp, namespace: llm}
spec:
  template:
    spec:
      containers:
      - name: epp
        image: ghcr.io/llm-d/llm-d-inference-scheduler:v0.3.2
        args: [--pool-name, vllm-qwen, --pool-namespace, llm, --v, "4", --zap-encoder, json, --grpc-port, "9002", --config-file, /config/default-plugins.yaml]
"""
VALUES = r"""inferenceExtension:
  replicas: 1
  pluginsConfigFile: "custom-plugins.yaml"
  pluginsCustomConfig:
    custom-plugins.yaml: |
      apiVersion: inference.networking.x-k8s.io/v1alpha1
      kind: EndpointPickerConfig
      plugins:
      - type: pd-profile-handler
        parameters: {threshold: 100}
      - type: prefill-filter
      - type: decode-filter
      - type: max-score-picker
      - type: prefix-cache-scorer
      schedulingProfiles:
      - name: prefill
        plugins: [{pluginRef: prefill-filter}, {pluginRef: max-score-picker}]
      - name: decode
        plugins: [{pluginRef: decode-filter}, {pluginRef: max-score-picker}, {pluginRef: prefix-cache-scorer, weight: 50}]
"""
ODD = r"""apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl, prepareDataPlugins]
plugins:
- type: precise-prefix-cache-scorer
  name: kv
  parameters:
    tokenProcessorConfig: {blockSize: 64}
    indexerConfig: {tokenizersPoolConfig: {modelName: Qwen/Qwen3-32B}}
- type: random-picker
  name: picker
  parameters: {maxNumOfEndpoints: 2}
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: kv
    weight: 0
  - pluginRef: picker
  - pluginRef: gone
flowControl:
  maxBytes: 4Gi
  defaultRequestTTL: 1m30s
  maxRequests: 500
"""
BARE = r"""kind: EndpointPickerConfig
plugins:
- type: prefix-cache-scorer
- type: least-queue
"""


class HAProxy(Converts):
    def of(self, text):
        return self.convert(self.file("haproxy.cfg", text))

    def says(self, text, *lines):
        for line in lines:
            self.assertIn("#   %s\n" % line, text)

    def test_debians_file_with_statistics_first_and_a_redirection(self):
        got, out, _ = self.of(DEBIAN.replace("    ", "\t"))  # as Debian writes it
        self.assertEqual(got, {
            "replica": ["http://10.0.1.1:8000#weight=100", "http://10.0.1.2:8000#weight=100",
                        "http://[2001:db8::3]:8000#weight=50"],
            "listen": "10.0.0.5:443", "tls-cert": ["/etc/ssl/private/llm.pem"], "policy": "least_request",
            "connections-max": "4000", "client-body-timeout": "50s", "client-write-timeout": "50s",
            "client-idle-timeout": "50s", "upstream-connect-timeout": "5s",
            "upstream-idle-timeout": "50s", "replica-requests-max": "128", "health-interval": "3s", "health-failures": "4",
            "health-path": "/health", "access-log": "all"})
        self.says(out, "frontend stats: left out: no engines behind it",
                  "frontend http: left out: no engines behind it",
                  "bind: [2001:db8::5]:443 is left out: the router has one client address, 10.0.0.5:443",
                  "server: rise: one good health check brings a replica back",
                  "http-check expect: health-statuses: the statuses of a healthy replica; the body does not count")

    def test_a_file_above_1_mib_is_not_converted(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(DEBIAN + "# more\n" * 200000)
            f.flush()
            status, out, err = gvctl("convert", "--from", "haproxy", "--", "haproxy", "-f", f.name)
        self.assertEqual((status, out), (1, ""))
        self.assertIn(": it is above 1 MiB", err)

    def test_names_of_dns_with_tls_and_a_service_that_is_off(self):
        got, out, _ = self.of(DNS)
        self.assertEqual(got, {
            "replica-dns": ["https://engines.internal:8443"],
            "dns-server": ["10.0.0.2:53"], "replica-tls-name": "llm.internal", "policy": "cache_aware",
            "client-body-timeout": "300s", "client-write-timeout": "300s", "client-idle-timeout": "300s", "upstream-connect-timeout": "2s", "upstream-idle-timeout": "900s",
            "health-path": "/ping", "listen": "0.0.0.0:8080"})
        self.says(out, "listen postgres: disabled", "server: https://engines-old.internal:8443: weight 0 in HAProxy: add it with gvctl add when needed",
                  "bind: unix@/run/haproxy/llm.sock is left out: the router has one client address, *:8080,[::]:8080",
                  "bind: the router has one client address: gvctl used the first",
                  "nameserver: set dns-server: IP:PORT, for replica-dns", "balance: the query does not identify a prompt")
        self.assertNotIn("resolve_retries", out)
        self.assertIn("server: verify none: certificates are always checked", out)

    def test_servers_out_of_service_get_no_prompts(self):
        """Servers under maintenance and backups were among the replicas."""
        got, out, err = self.of("""backend b
  server new 10.0.0.7:8000 check cookie backup
  server old 10.0.0.9:8000 check disabled weight 3
  server spare 10.0.0.8:8000 backup
  server quiet 10.0.0.6:8000 weight 0
  server-template t 4 pods.internal:8000 disabled
backend d
  default-server disabled backup
  server a 10.1.0.1:8000
  server b 10.1.0.2:8000 enabled
  server c 10.1.0.3:8000 enabled no-backup
backend e
  server a 10.2.0.1:8000
""")
        self.assertEqual(got, {"replica": ["http://10.0.0.7:8000", "http://10.1.0.3:8000", "http://10.2.0.1:8000"]})
        left = (("http://10.0.0.9:8000#weight=3", "disabled in HAProxy: add it with gvctl add when needed"),
                ("http://10.0.0.8:8000", "a backup in HAProxy; Grapevine has none: add it with gvctl add when needed"),
                ("http://10.0.0.6:8000", "weight 0 in HAProxy: add it with gvctl add when needed"),
                ("http://10.1.0.1:8000", "disabled in HAProxy: add it with gvctl add when needed"),
                ("http://10.1.0.2:8000", "a backup in HAProxy; Grapevine has none: add it with gvctl add when needed"))
        for url, why in left:
            self.assertRegex(out, '\n  # - "?%s"?   # %s\n' % (url, why))
            self.assertIn("gvctl: by hand: server: %s: %s\n" % (url, why), err)
        self.assertIn("\n# replica-dns:\n  # - pods.internal:8000   # disabled in HAProxy: uncomment the line to use it\n", out)
        self.assertIn("1 written, 0 not needed, 7 by hand, 1 without", err)  # several backends; a cookie

    def test_certificates_of_both_sides_and_sections_of_other_things(self):
        got, out, _ = self.of(MUTUAL)
        self.assertEqual(got, {
            "replica": ["https://10.1.0.1:8000", "http://10.1.0.4:8000"], "listen": "0.0.0.0:8000",
            "replica-ca-file": "/etc/ssl/engines.pem", "replica-cert": "/etc/ssl/router.pem",
            "replica-key": "/etc/ssl/router.pem", "replica-tls-name": "engines.example", "policy": "session",
            "session-header": "X-Session-ID", "upstream-idle-timeout": "3600s", "queue-timeout": "90s", "retries-max": "4"})
        self.says(out, "bind: crt: set tls-cert: one entry for each file in /etc/haproxy/certs/",
                  "server: 10.1.0.2 is not HOST:PORT: write the engine's address", "server: unix@/run/vllm.sock is not HOST:PORT: write the engine's address",
                  "userlist admins: client-keys-file lists the API keys",
                  "peer: join names another router, at its gossip port (7490)",
                  "server: port: health checks use the replica's own port",
                  "server: new-word: unknown word of a server line",
                  "bind: ca-file: no client certificates; client-keys-file checks API keys")
        self.assertNotIn("haproxy2", out)

    def test_several_backends_behind_rules(self):
        got, out, _ = self.of(SEVERAL)
        self.assertEqual(got, {
            "replica": ["http://large-1.gpu:8000", "http://large-2.gpu:8000", "http://small-1.gpu:8000",
                        "http://10.0.0.80:80"], "listen": "0.0.0.0:443",
            "tls-cert": ["/etc/certs/a.pem", "/etc/certs/b.pem"], "policy": "cache_aware", "connections-max": "65536",
            "upstream-idle-timeout": "300s", "drain-timeout": "600s"})
        self.says(out, "server: the servers of large, small, site became one set of replicas: remove those that are no engines. "
                  "The router asks each engine for its models", "bind: *:80 is left out: the router has one client address, *:443")

    def test_http_2_is_reported(self):
        """Before, alpn h2 was ignored on a bind line and counted as not needed on a server line."""
        two = "HTTP/2 is not supported: a proxy in front must speak HTTP/1.1 to the router"
        both = "bind: alpn: HTTP/2 is not supported: clients that also offer http/1.1 use that"
        server = "HTTP/2 is not supported: the engine must accept HTTP/1.1, as vLLM and SGLang do"
        for bind, at, line, hand, none in (
                ("alpn h2,http/1.1", "", both, 0, 1), ("alpn h3,h2,http/1.1", "", both, 0, 1),
                ("alpn h2", "", "bind: alpn h2: " + two, 1, 0), ("proto h2", "", "bind: proto h2: " + two, 1, 0),
                ("alpn http/1.1", "", "bind: alpn http/1.1: the router offers HTTP/1.1", 0, 0),
                ("", "alpn h2", "server: alpn h2: " + server, 1, 0), ("", "proto h2", "server: proto h2: " + server, 1, 0),
                ("", "alpn h2,http/1.1", "server: alpn: the router speaks HTTP/1.1", 0, 0)):
            _, out, err = self.of("listen l\n  bind :443 %s\n  server a h:1 %s\n" % (bind, at))
            self.says(out, line)
            self.assertIn("%d by hand, %d without" % (hand, none), err)
        got, out, _ = self.of("listen l\n  bind quic4@:443 ssl alpn h3\n  bind :443 ssl\n  server a h:1\n")
        self.assertEqual(got["listen"], "0.0.0.0:443")
        self.says(out, "bind: quic4@:443 is left out: the router has one client address, :443")

    def test_rate_limits_are_reported(self):
        """Before, they were reported as stickiness and rules."""
        lines = ("stick-table type ip size 100k expire 30s store http_req_rate(10s)", "http-request track-sc0 src",
                 "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100 }",
                 "tcp-request connection reject if { src_conn_rate ge 20 }", "acl busy sc0_gpc0_rate gt 5",
                 "http-request tarpit if busy", "http-request deny unless !busy || { path /x }")
        calls = ("acl many src_conn_cur gt 30", "tcp-request connection reject if many")
        text = "listen l\n  bind :80\n  %s\n  server a h:1\n"
        _, out, err = self.of(text % "\n  ".join(lines + calls))
        for line in lines + calls:
            first, rest = line.split(" ", 1)
            what = "connections-per-client-max limits connections per address" if line in calls else (
                "client-keys-file: a key may have requests-per-minute=N")
            self.assertIn("gvctl: by hand: %s: %s: %s" % (first, rest, what), err)
        self.assertIn("9 by hand, 0 without", err)
        for line in ("stick-table type string size 1m", "acl x path /x", "http-request deny if x"):  # these are none
            self.assertIn("0 by hand, 1 without", self.of(text % line)[2])
        self.says(self.of(text % "filter bwlim-in x default-limit 1m default-period 1s")[1],
                  "filter bwlim-in: the router does not limit bandwidth")

    def test_timeout_client_sets_all_timeouts_of_clients(self):
        """Before, it set the timeout of bodies only. HAProxy also uses it for kept-alive connections if there is no
        timeout http-request."""
        for lines, idle in (("", "50s"), ("timeout http-request 5s", "5s"), ("timeout http-request 0", "50s"),
                            ("timeout http-request 5s\n  timeout http-keep-alive 1s", "1s")):
            got, out, _ = self.of("defaults\n  timeout client 50s\n  %s\nlisten l\n  server a h:1\n" % lines)
            self.assertEqual([got["client-%s-timeout" % k] for k in ("body", "write", "idle")], ["50s", "50s", idle])
            self.assertIn("#   timeout client: client-head-timeout limits the head", out)

    def test_every_unknown_word_is_reported(self):
        """Words missing from the tables for a bind line, behind an unknown word of a server, of resolvers, peers and
        balance."""
        _, out, err = self.of("""foo bar
listen l
  bind :80 new-word 3 v4v6
  balance new-balance
  no option httpclose
  server a h:1 newer-word 3 rise 2
  server b h:2 sni req.hdr(host)
resolvers d
  hold valid 10s
peers p
  server q 1.1.1.1:1
traces
  trace h1
""")
        self.says(out, "foo: unknown directive", "bind: new-word: unknown word of a bind line",
                  "bind: v4v6: the system decides if [::] also accepts IPv4", "no option httpclose: switched off",
                  "balance: unknown policy: cache_aware is used",
                  "server: newer-word: unknown word of a server line",
                  "server: rise: one good health check brings a replica back",
                  "server: sni: set replica-tls-name: one name for all requests",
                  "resolvers: only its nameservers count", "traces: the log goes to standard error")
        self.assertRegex(out, "#   peers: only its peer lines count: ")
        err = self.convert("--", "haproxy", "-W", "-f", self.file("h.cfg", "listen l\n server a h:1\n"), "-n", "5", "-new")[2]
        for word in ("-n: maxconn in its file, or connections-max", "-new: unknown flag"):
            self.assertIn("gvctl: by hand: " + word if word[1] == "n" and word[2] == ":" else "gvctl: " + word, err)
        self.assertIn("1 by hand, 1 without", err)
        _, out, _ = self.convert(self.file("epp.yaml", BARE + "newSection: {a: b}\n"))
        self.says(out, "newSection: unknown section")

    def test_default_server_applies_to_the_servers_below_it(self):
        got, _, _ = self.of("backend b\n  default-server ssl weight 5\n  server a h:1\n  server c h:2 no-ssl weight 2\n"
                            "backend d\n  server e h:3\n")
        self.assertEqual(got["replica"], ["https://h:1#weight=5", "http://h:2#weight=2", "http://h:3"])

    def test_variables_and_odd_times(self):
        got, out, _ = self.of(VARIABLES)
        self.assertEqual(got, {
            "replica-dns": ["_http._tcp.vllm.default.svc.cluster.local"], "policy": "cache_aware",
            "client-head-timeout": "0ms", "upstream-connect-timeout": "100ms", "upstream-idle-timeout": "2ms",
            "health-timeout": "2s"})
        self.says(out, "option foo: unknown option", "server: $ENGINE is not HOST:PORT: write the engine's address")
        self.assertIn("bind: set listen: the value ${ADDR}:${PORT} is invalid", out)
        self.assertIn("timeout client: set client-body-timeout: the value 172800s is invalid", out)


class LlmD(Converts):
    def of(self, text):
        return self.convert(self.file("epp.yaml", text))

    def test_a_scorer_that_no_profile_uses_decides_nothing(self):
        got, out, _ = self.of(SCORERS)
        self.assertEqual(got, {"replica-kubernetes": ["engines"], "policy": "least_tokens"})
        self.assertIn("#   unused: unused: no profile names it\n", out)

    def test_a_whole_release_with_its_pool(self):
        got, out, _ = self.of(RELEASE)
        self.assertEqual(got, {"replica-kubernetes": ["llm/engines:8000"], "policy": "cache_aware"})
        self.assertIn('with the selector "app=vllm-qwen,tier=gpu"', out)
        self.assertIn("#   session-affinity-scorer: unused: no profile names it", out)
        older = RELEASE.replace("targetPorts: [{number: 8000}]", "targetPortNumber: 8000").replace(
            "{matchLabels: {app: vllm-qwen, tier: gpu}}", "{app: vllm-qwen, tier: gpu}")
        self.assertEqual(self.of(older)[0], got)
        self.assertIn('with the selector "app=vllm-qwen,tier=gpu"', self.of(older)[1])

    def test_helm_values_with_separate_prefill(self):
        got, out, err = self.of(VALUES)
        self.assertEqual(got, {"replica-kubernetes": ["engines"], "policy": "cache_aware"})
        for plugin in ("pd-profile-handler", "prefill-filter"):
            self.assertIn("gvctl: %s: prefill/decode disaggregation is not supported" % plugin, err)

    def test_zero_weights_and_dangling_references(self):
        got, out, _ = self.of(ODD)
        self.assertEqual(got, {"replica-kubernetes": ["engines"], "policy": "least_tokens", "queue-max": "500",
                               "queue-timeout": "90s"})
        self.assertIn("#   kv: unused: its weight is 0\n", out)
        self.assertIn("#   gone: a profile names this plugin, but no plugin has that name\n", out)

    def test_without_profiles_all_plugins_count(self):
        got, out, _ = self.of(BARE)
        self.assertEqual(got["policy"], "cache_aware")
        self.assertIn("#   least-queue: unknown plugin\n", out)

    def test_times_of_several_units(self):
        got, _, _ = self.convert("--", "/app/epp", "--pool-name", "x", "--drain-timeout=1m30s",
                                 "--refresh-metrics-interval=1.5s")
        self.assertEqual((got["drain-delay"], got["scrape-interval"]), ("90s", "1500ms"))


if __name__ == "__main__":
    unittest.main()

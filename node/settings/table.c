/* The option table: a new setting is a row here, or in table_requests.c, and a field in struct
 * node_options. This half has the router's ports, cluster and policy. */
#include "node/route/router.h"
#include "node/settings/aliases.h"
#include "node/settings/allowed.h"
#include "node/settings/table_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "crdt/limits.h"
#include "gossip/limits.h"

static const struct node_option rows[] = {
    {.name = "replica",
     .group = "Endpoints",
     LIST(replica, "URL", LIVE),
     .wrong = node_replica_wrong,
     .help = "engine, http[s]://HOST:PORT; repeatable",
     .more = "Default port: 80, or 443 for https. Required, unless the router joins a cluster or "
             "has another source. [Labels](how-to/engines.md#labels) may follow, each after `#`: "
             "`http://HOST:PORT#engine=vllm#weight=2`. In YAML a replica may be a mapping: "
             "`{url: http://HOST:PORT, engine: vllm, weight: 2}`."},
    {.name = "replica-dns",
     LIST(replica_dns, "NAME:PORT", RESTART),
     .wrong = node_allowed_replica_dns_not,
     .help = "each address of a DNS name is a replica",
     .more = "A, AAAA or SRV records, looked up every `replica-dns-interval`. A name that begins "
             "with an underscore "
             "(`_http._tcp.engines.example`) has SRV records, which give the ports. Labels apply "
             "to all addresses: `engines.internal:8000#engine=vllm`. [If a lookup "
             "fails](how-to/discovery.md)."},
    {.name = "replica-dns-interval",
     TIME(replica_dns_interval_ms, RESTART),
     .fallback = "3s",
     .min = 100,
     .max = 3600e3,
     .help = "time between two lookups of replica-dns",
     .more = "Independent of the TTL."},
    {.name = "dns-server",
     LIST(dns_server, "IP[:PORT]", RESTART),
     .wrong = node_allowed_dns_server_not,
     .help = "DNS server for replica-dns, not the system's",
     .more = "Default port 53; repeatable. A silent server is asked twice, for 2 s and 4 s. If "
             "none answers, the replicas stay. The default is the servers in `/etc/resolv.conf`, "
             "re-read when that file changes. Its search domains always apply. Other names "
             "(`replica`, `join`) use "
             "the system's servers."},
    {.name = "replica-file",
     LIST(replica_file, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "file with a list of replicas, re-read",
     .more = "Checked every second. One replica per line, as in `replica`, or a YAML sequence. If "
             "the file is missing, the router waits for it. "
             "[Format](how-to/discovery.md#file)."},
    {.name = "replica-kubernetes",
     LIST(replica_kubernetes, "SERVICE", RESTART),
     .wrong = node_allowed_replica_kubernetes_not,
     .help = "ready pods of a Kubernetes service",
     .more = "`NAMESPACE/SERVICE:PORT`; the router must run in the cluster. The port is a number "
             "or its name in the service. The default namespace is the router's own. Labels apply "
             "to all pods: `inference/vllm:http#engine=vllm`. The "
             "router's service account needs a Role. [How pods become "
             "replicas](how-to/discovery.md#kubernetes)."},
    {.name = "kubernetes-credentials",
     FIELD(kubernetes_credentials, PATH, "FOLDER", RESTART),
     .fallback = "/var/run/secrets/kubernetes.io/serviceaccount",
     .help = "token, CA, namespace for replica-kubernetes",
     .more = "Token and CA are read for each call of the API server, the namespace at start."},
    {.name = "client-keys-file",
     PATH(client_keys_file),
     .help = "API keys of clients: names, hashes, limits",
     .more = "Only clients with a key in this file are served. `gvctl key new NAME` makes a key. "
             "The router re-reads the file every second; if it is invalid, the old keys stay. "
             "Requests to engines carry no client key. "
             "[Client keys](how-to/client-keys.md)."},
    {.name = "replica-api-key-file",
     PATH(replica_api_key_file),
     .help = "API key of the engines",
     .more =
         "For engines that run with `--api-key`. Re-read every second. The router sends the key as "
         "`Authorization: Bearer KEY` with its own questions "
         "to every replica. Clients' requests carry that key only if `client-keys-file` is "
         "set, else the client's own. [Without this key](http.md#engines-that-want-an-api-key)."},
    {.name = "replicas-max",
     NUMBER(replicas_max, RESTART),
     .fallback = "1024",
     .min = 1,
     .max = CRDT_NAMES_MAX,
     .help = "most replicas in use at one time",
     .more = "Same value at all routers. A replica that no router names any more still counts for "
             "16 minutes: leave headroom. Excess replicas wait until another one is forgotten."},
    {.name = "listen",
     FIELD(listen, ADDRESS, "HOST:PORT", RESTART),
     .fallback = "0.0.0.0:8080",
     .help = "address for clients",
     .more = "IPv6 in brackets: `[::]:8080`. Port 0: the kernel chooses."},
    {.name = "admin-listen",
     FIELD(admin_listen, ADDRESS, "HOST:PORT", RESTART),
     .fallback = "127.0.0.1:9090",
     .help = "health, metrics, administration",
     .more = "Serves `/healthz`, `/readyz`, `/metrics` and `gvctl`. If other machines reach this "
             "port, set `admin-token-file`: without a token they may only read. [Access "
             "rules](how-to/secure.md#the-admin-port)."},
    {.name = "admin-advertise",
     TEXT(admin_advertise, "HOST[:PORT]"),
     .wrong = node_allowed_admin_advertise_not,
     .help = "address at which others reach the admin port",
     .more = "Default: the host of `admin-listen`, or this machine's name. For the links on other "
             "routers' pages and for `gvctl status`. The port also accepts calls under that name."},
    {.name = "admin-token-file",
     PATH(admin_token_file),
     .help = "token for admin calls that change something",
     .more = "Sent as `Authorization: Bearer TOKEN`. Re-read every second. Without this file, the "
             "router accepts changes from its own machine only."},
    {.name = "admin-read-token-file",
     PATH(admin_read_token_file),
     .help = "token for admin calls that only read",
     .more = "`/healthz`, `/readyz` and `/metrics` never need one. The token of `admin-token-file` "
             "also works. Without this setting, reading needs no token."},
    {.name = "probe-listen",
     TEXT(probe_listen, "HOST:PORT"),
     .wrong = node_allowed_address_not,
     .help = "port with only probes and /metrics",
     .more = "The admin port need not be reachable then."},
    {.name = "config",
     PATH(config),
     .help = "YAML file of settings",
     .more = "Cannot be set in the file itself."},
    {.name = "tls-cert",
     .group = "TLS",
     LIST(tls_cert, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "certificate for clients; repeatable",
     .more = "PEM, with intermediate certificates. Re-read every second. The client port then "
             "speaks only TLS 1.2 and 1.3. The server name (SNI) selects the certificate; if none "
             "matches, the first. [TLS](tls.md)."},
    {.name = "tls-key",
     LIST(tls_key, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "private keys, in the order of tls-cert",
     .more = "PEM, not encrypted. Default: the key is in the certificate's file."},
    {.name = "tls-ticket-key-file",
     PATH(tls_ticket_key_file),
     .help = "keys of session tickets, shared by routers",
     .more = "80 random bytes in base64 per line. The first key encrypts new tickets; all decrypt. "
             "By default each "
             "router makes its own keys. [How to make and rotate keys](tls.md#session-tickets)."},
    {.name = "tls-handshake-timeout",
     TIME(tls_handshake_timeout_ms, RESTART),
     .fallback = "10s",
     .min = 100,
     .max = 600e3,
     .help = "limit for a client's TLS handshake",
     .more = "On the client and admin ports. Replicas: part of `upstream-connect-timeout`."},
    {.name = "replica-ca-file",
     PATH(replica_ca_file),
     .help = "CAs of https replicas; default: the system's",
     .more = "PEM, any number. A replica's own certificate works too. Re-read every second."},
    {.name = "replica-cert",
     PATH(replica_cert),
     .help = "client certificate for https replicas",
     .more = "For engines or proxies that require mutual TLS."},
    {.name = "replica-key", PATH(replica_key), .help = "private key of replica-cert"},
    {.name = "replica-tls-name",
     TEXT(replica_tls_name, "NAME"),
     .wrong = node_allowed_tls_name_not,
     .help = "name in the certificates of https replicas",
     .more = "Default: the host in the replica's URL. The router sends this name (SNI) and checks "
             "the certificate against it. For replicas known by addresses that are not in their "
             "certificates (`replica-dns`, `replica-kubernetes`)."},
    {.name = "admin-tls-cert",
     PATH(admin_tls_cert),
     .help = "certificate of the admin port",
     .more = "The port then speaks TLS only, also to probes and Prometheus. With gvctl: `--admin "
             "https://HOST:PORT --ca-file FILE`."},
    {.name = "admin-tls-key", PATH(admin_tls_key), .help = "private key of admin-tls-cert"},
    {.name = "gossip-listen",
     .group = "Cluster",
     TEXT(gossip_listen, "HOST:PORT"),
     .wrong = node_allowed_address_not,
     .help = "address for other routers, UDP and TCP",
     .more = "With `join` the default is `0.0.0.0:7490`. Port 0: the kernel chooses. Without "
             "`gossip-listen` and `join`, a router runs alone and needs no key."},
    {.name = "join",
     LIST(join, "HOST[:PORT]", RESTART),
     .wrong = node_allowed_join_not,
     .help = "another router; repeatable",
     .more = "One running router is enough. Default port: that of `gossip-listen`. A name may have "
             "many addresses, or one that all routers share. The router never stops trying. All "
             "routers may have the same list, themselves included."},
    {.name = "cluster-key-file",
     PATH(cluster_key_file),
     .help = "key shared by all routers of the cluster",
     .more = "Made by `gvctl keygen --out FILE`. Anyone with it is a member. Re-read every second "
             "and on SIGHUP, so you can rotate the key without downtime (`gvctl help keygen`)."},
    {.name = "insecure-gossip",
     SWITCH(insecure_gossip, RESTART),
     .fallback = "off",
     .help = "no key: any router may become a member",
     .more = "For trials. Each start logs a warning."},
    {.name = "gossip-advertise",
     TEXT(gossip_advertise, "HOST:PORT"),
     .wrong = node_allowed_advertise_not,
     .help = "address at which others reach this router",
     .more = "Needed only behind NAT or port mappings that block incoming traffic. The default is "
             "the address in `gossip-listen`. If that is 0.0.0.0 or [::], it is the address from "
             "which the other routers see this router's packets come. Loopback and link-local "
             "addresses are never given to other machines."},
    {.name = "cluster-name",
     TEXT(cluster_name, "NAME"),
     .wrong = node_allowed_node_name_not,
     .help = "name of this cluster",
     .more = "Same at all its routers. Separates clusters that share a key file. Routers with "
             "another name never become members (`gossip_other_cluster` in the log). Before you "
             "name a running cluster, stop all its routers."},
    {.name = "node-name",
     TEXT(node_name, "NAME"),
     .wrong = node_allowed_node_name_not,
     .help = "unique name of this router",
     .more = "Default: host name and gossip port, `router-1:7490`. Keep it over restarts."},
    {.name = "gossip-bandwidth",
     SIZE(gossip_bandwidth, RESTART),
     .fallback = "64MiB",
     .min = 65536,
     .max = 64 * GIB,
     .help = "limit for gossip sent per second",
     .more = "To all routers together. Excess data waits."},
    {.name = "gossip-ring-bytes",
     SIZE(gossip_ring_bytes, RESTART),
     .fallback = "4MiB",
     .min = 65536,
     .max = 4 * GIB,
     .help = "memory for own updates, for late routers",
     .more = "A router that lacks older updates compares states instead."},
    {.name = "gossip-flush",
     TIME(gossip_flush_ms, RESTART),
     .fallback = "0",
     .max = 10e3,
     .help = "how long updates may wait to be batched",
     .more =
         "0: 10 ms, or 20 ms from 100 routers. The first update after a pause goes out at once."},
    {.name = "gossip-relay-above",
     NUMBER(gossip_relay_above, RESTART),
     .fallback = "256",
     .min = 2,
     .max = GOSSIP_ROUTERS_MAX,
     .help = "cluster size above which some routers relay"},
    {.name = "policy",
     .group = "Routing",
     FIELD(policy, CHOICE, "NAME", LIVE),
     .fallback = "cache_aware",
     .choices = node_policy_names,
     .help = "how a replica is chosen",
     .more = "[All policies](policies.md)."},
    {.name = "shadow",
     SWITCH(shadow, LIVE),
     .fallback = "off",
     .help = "route by plain-policy, predict policy",
     .more = "`gvctl shadow` compares both. [Shadow "
             "mode](how-to/shadow.md)."},
    {.name = "plain-policy",
     FIELD(plain_policy, CHOICE, "NAME", LIVE),
     .fallback = "least_request",
     .choices = node_policy_plain_names,
     .help = "policy to compare with in shadow mode"},
    {.name = "control-share",
     FIELD(control_share, FLOAT, "SHARE", LIVE),
     .fallback = "0",
     .max = 1,
     .help = "share for plain-policy while shadow is off",
     .more = "A share of conversations, for comparison with `policy`: `gvctl shadow`. [After the "
             "switch](how-to/shadow.md#after-the-switch)."},
    {.name = "model-alias",
     LIST(model_alias, "NAME=MODEL", LIVE),
     .wrong = node_alias_wrong,
     .help = "another name for a model; a split; fallbacks",
     .more = "`gpt-4o=llama-70b`. [Models](how-to/models.md). With weights it is a split: "
             "`gpt-4o=llama-70b:90,llama-70b-v2:10`. `gpt-4o=llama-70b>qwen-32b` sends requests to "
             "`qwen-32b` while no replica of `llama-70b` is up. In a shell, quote a value with "
             "`>`. In the file it may be a mapping."},
    {.name = "session-header",
     FIELD(session_header, STRING, "NAME,...", LIVE),
     .fallback = "auto",
     .wrong = node_allowed_header_names_not,
     .help = "headers with a session key",
     .more = "For policy `session`, `control-share` and splits of `model-alias`. `auto`: those of "
             "known agents. The first present header counts. Without such a header, a field of the "
             "body counts. [Which agent sends "
             "which](policies.md#sessions)."},
    {.name = "index-bytes",
     SIZE(index_bytes, RESTART),
     .fallback = "64MiB",
     .min = 1048576,
     .max = 1024 * GIB,
     .help = "memory for the prefix index",
     .more = "Allocated at the start; never grows."},
    {.name = "generation",
     TIME(generation_ms, RESTART),
     .fallback = "8s",
     .min = 1000,
     .max = 600e3,
     .help = "resolution of a prefix's last use time",
     .more = "`ttl` may be at most 3,840 times as long. If `generation` is not set and `ttl` "
             "exceeds 128 min, it is `ttl` / 960."},
    {.name = "ttl",
     TIME(ttl_ms, RESTART),
     .fallback = "1h",
     .min = 1000,
     .max = DAY_MS,
     .help = "time until an unused prefix is forgotten"},
    {.name = "displaced-weight",
     FIELD(displaced_weight, FLOAT, "NUMBER", LIVE),
     .fallback = "6",
     .max = 1000,
     .help = "weight W of tokens evicted from a cache",
     .more = "[The cost](routing.md#the-cost)."},
    {.name = "decode-weight",
     FIELD(decode_weight, FLOAT, "NUMBER", LIVE),
     .fallback = "0.5",
     .max = 1000,
     .help = "weight V of slower decoding",
     .more = "[The cost](routing.md#the-cost)."},
    {.name = "reuse-horizon",
     TIME(reuse_horizon_ms, RESTART),
     .fallback = "120s",
     .min = 1000,
     .max = DAY_MS,
     .help = "age at which reuse is unlikely (R)",
     .more = "[The cost](routing.md#the-cost)."},
    {.name = "near-tie",
     FIELD(near_tie, FLOAT, "SHARE", LIVE),
     .fallback = "0.02",
     .max = 1,
     .help = "costs this close count as equal",
     .more =
         "Share of the least cost, but at least 1 ms. Among equal costs, the fewest requests win."},
    {.name = "cache-tokens",
     FIELD(cache_tokens, INTEGER, "TOKENS", LIVE),
     .fallback = "400000",
     .min = 1,
     .max = 1e12,
     .help = "cache size of engines that report none"},
    {.name = "prefill-rate",
     FIELD(prefill_rate, FLOAT, "NUMBER", RESTART),
     .fallback = "10000",
     .min = 1,
     .max = 1e9,
     .help = "prefill tokens/s, until learned"},
    {.name = "decode-step",
     TIME(decode_step_ms, RESTART),
     .fallback = "20ms",
     .min = 1,
     .max = 60e3,
     .help = "time of a decode step, until learned"},
    {.name = "bytes-per-token",
     FIELD(bytes_per_token, FLOAT, "NUMBER", RESTART),
     .fallback = "4",
     .min = 0.25,
     .max = 1000,
     .help = "bytes of a prompt token, until learned"},
    {.name = "load-bound",
     FIELD(load_bound, FLOAT, "NUMBER", LIVE),
     .fallback = "1.25",
     .min = 1,
     .max = 1000,
     .help = "prefix_hash: load limit, times the mean"},
    {.name = "seed",
     NUMBER(seed, RESTART),
     .fallback = "0",
     .help = "seed of random draws; 0: random",
     .more = "The same seed and traffic give the same choices."},
};

const struct node_option *node_option_at(unsigned i)
{
    if (i < ARRAY_LEN(rows))
        return &rows[i];
    i -= ARRAY_LEN(rows);
    return i < node_option_request_count ? &node_option_requests[i] : NULL;
}

int node_option_find(struct slice name)
{
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        if (slice_equal(name, slice_of_cstr(row->name)))
            return (int)i;
    }
    return ERR_NOT_FOUND;
}

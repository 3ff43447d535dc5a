/* The option table: a new setting is one row here, or in table_requests.c, and one field in struct
 * node_options. This half has what a router is: its ports, its cluster, its rule. */
#include "node/route/router.h"
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
     .help = "an engine, http[s]://HOST:PORT; repeat",
     .more = "At least one is needed, but for a router of a cluster: it gets to know those that "
             "the others name, or one with another source of replicas. Without a port, 80 is "
             "meant, of https 443. [Labels](operations.md#labels) may follow, each behind its own "
             "`#`: `http://HOST:PORT#engine=vllm#weight=2`."},
    {.name = "replica-dns",
     LIST(replica_dns, "NAME:PORT", RESTART),
     .wrong = node_allowed_replica_dns_not,
     .help = "each address of a DNS name is a replica",
     .more =
         "Looked up again and again: A and AAAA, with the search domains of `/etc/resolv.conf`, "
         "and `/etc/hosts`. A name that begins with an underscore (`_http._tcp.engines.example`) "
         "has SRV records, which give the ports: write none. Labels may follow and count for all "
         "of them: `engines.internal:8000#engine=vllm`. [What happens when addresses go, or an "
         "answer fails](operations.md#finding-replicas)."},
    {.name = "replica-dns-interval",
     TIME(replica_dns_interval_ms, RESTART),
     .fallback = "3s",
     .min = 100,
     .max = 3600e3,
     .help = "between two lookups of replica-dns",
     .more = "Whatever the TTL of the answers is: resolvers on the way keep to that."},
    {.name = "dns-server",
     LIST(dns_server, "IP[:PORT]", RESTART),
     .wrong = node_allowed_dns_server_not,
     .help = "asked for replica-dns, instead of the system's",
     .more = "An IP address, no name: `10.0.0.10`, `10.0.0.10:5353`, `[fd00::10]`. Without a port, "
             "53 is meant. Repeat it for several. A server that does not answer within 2 s gives "
             "way to the next; after all of them each is asked once more, for 4 s. If none "
             "answers, the replicas stay as they were. By default those of `/etc/resolv.conf` are "
             "asked, which is read again when it changes; its search domains count in any case. "
             "Other names (`replica`, `join`) are asked of the system's."},
    {.name = "replica-file",
     LIST(replica_file, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "a list of replicas, read again as it changes",
     .more = "One replica a line as `replica` writes it, or a YAML sequence. It is looked at each "
             "second, by its name: a link that is swapped is a new list. A file that is not "
             "understood changes nothing, and one that is not there is waited for. [Its "
             "format](operations.md#a-file)."},
    {.name = "replica-kubernetes",
     LIST(replica_kubernetes, "SERVICE", RESTART),
     .wrong = node_allowed_replica_kubernetes_not,
     .help = "the ready pods of a Kubernetes service",
     .more = "`NAMESPACE/SERVICE:PORT`, for a router that runs in the cluster. The port is that of "
             "the pods, by its number or by its name in the service; it may be left out where "
             "there is only one. Without a namespace the router's own is meant. Labels may follow "
             "and count for all of them: `inference/vllm:http#engine=vllm`. The router's service "
             "account wants a Role. [What follows from what pods do](operations.md#kubernetes)."},
    {.name = "kubernetes-credentials",
     FIELD(kubernetes_credentials, PATH, "FOLDER", RESTART),
     .fallback = "/var/run/secrets/kubernetes.io/serviceaccount",
     .help = "token, CA and namespace for replica-kubernetes",
     .more = "The files are read for each request, so they may change while the router runs."},
    {.name = "client-keys-file",
     PATH(client_keys_file),
     .help = "API keys of clients: names, hashes, limits",
     .more =
         "With it only clients whose key is in the file are served. `gvctl key new NAME` makes a "
         "key and its line. The file is read anew each second; one that is wrong leaves the keys "
         "as they were. Clients' keys go to no engine then, and the key of `replica-api-key-file`, "
         "if there is one, goes with their requests. [How to use it](operations.md#who-may-call)."},
    {.name = "replica-api-key-file",
     PATH(replica_api_key_file),
     .help = "API key of the engines",
     .more = "For engines that were started with `--api-key`. The key, one line, is sent as "
             "`Authorization: Bearer KEY` with the router's own health checks and questions to "
             "every replica. With clients' requests it goes only where `client-keys-file` says "
             "whose they are: else those carry the clients' own. The file is read anew each "
             "second, so a new key, or a link that is swapped, needs no restart. A relative path "
             "is taken from the directory that grapevine was started in. [What is different "
             "without it](http.md#engines-that-want-an-api-key)."},
    {.name = "replicas-max",
     NUMBER(replicas_max, RESTART),
     .fallback = "1024",
     .min = 1,
     .max = CRDT_NAMES_MAX,
     .help = "replicas in use at one time",
     .more = "Over time there may be any number: a name that no router names any more is forgotten "
             "after 16 minutes. Until then it counts, so give it room. What is more waits, those "
             "that were named last first, and comes into use when another is forgotten. The same "
             "at all routers."},
    {.name = "listen",
     FIELD(listen, ADDRESS, "HOST:PORT", RESTART),
     .fallback = "0.0.0.0:8080",
     .help = "where clients connect",
     .more = "IPv6 addresses stand in brackets: `[::]:8080`. Port 0 lets the kernel choose."},
    {.name = "admin-listen",
     FIELD(admin_listen, ADDRESS, "HOST:PORT", RESTART),
     .fallback = "127.0.0.1:9090",
     .help = "health, metrics, administration",
     .more =
         "Serves `/healthz`, `/readyz`, `/metrics` and what `gvctl` asks for. Where other machines "
         "reach it, give it an admin-token-file: without one they may only read, and a port that "
         "listens neither on loopback nor on all addresses takes no changes at all."},
    {.name = "admin-advertise",
     TEXT(admin_advertise, "HOST[:PORT]"),
     .wrong = node_allowed_admin_advertise_not,
     .help = "where others reach the admin port",
     .more = "Told to the other routers: their page links there, and `gvctl status` asks there. "
             "Otherwise it is the host of `admin-listen`, or, where that is all addresses, the "
             "name of this machine. The port takes calls under that name too."},
    {.name = "admin-token-file",
     PATH(admin_token_file),
     .help = "token asked of calls that change something",
     .more = "On the admin port: `Authorization: Bearer TOKEN`. Reading needs no token, but with "
             "`admin-read-token-file`. Without a token file, changes are taken from the router's "
             "own machine alone. What a prompt would cost (`gvctl explain`) others learn with this "
             "token, or the one for reading, alone. The file, one line, is read anew each second."},
    {.name = "admin-read-token-file",
     PATH(admin_read_token_file),
     .help = "token asked of calls that only read",
     .more = "On the admin port: `Authorization: Bearer TOKEN`, this one or that of "
             "`admin-token-file`. Without it reading needs no token. `/healthz`, `/readyz` and "
             "`/metrics` never need one."},
    {.name = "probe-listen",
     TEXT(probe_listen, "HOST:PORT"),
     .wrong = node_allowed_address_not,
     .help = "a port for probes and /metrics alone",
     .more = "Serves `/healthz`, `/readyz` and `/metrics`, and nothing else, so that those who ask "
             "them need not reach the admin port, which serves them too."},
    {.name = "config",
     PATH(config),
     .help = "YAML file of settings",
     .more = "Cannot be set in the file itself."},
    {.name = "tls-cert",
     .group = "TLS",
     LIST(tls_cert, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "certificate for clients; repeat for each",
     .more = "The client port then speaks TLS 1.2 and 1.3 and nothing else. A PEM file with the "
             "certificate, then those between it and the CA. Of several the one whose names have "
             "the name that the client asks for is shown, and the first one if none has. The files "
             "are read anew each second: [TLS](tls.md)."},
    {.name = "tls-key",
     LIST(tls_key, "FILE", RESTART),
     .wrong = node_allowed_path_not,
     .help = "its private key; in the order of tls-cert",
     .more = "PEM, not encrypted. Without any, each tls-cert has its key in the same file."},
    {.name = "tls-ticket-key-file",
     PATH(tls_ticket_key_file),
     .help = "keys of session tickets, shared by routers",
     .more = "One key a line, 80 random bytes in base64: [how to make and change "
             "them](tls.md#session-tickets). The first seals, all of them open. Without it each "
             "router makes its own up, and a client that comes back to another router pays for a "
             "whole handshake."},
    {.name = "tls-handshake-timeout",
     TIME(tls_handshake_timeout_ms, RESTART),
     .fallback = "10s",
     .min = 100,
     .max = 600e3,
     .help = "for a client's whole handshake",
     .more = "Of the client port and the admin port. Towards replicas it is a part of "
             "upstream-connect-timeout."},
    {.name = "replica-ca-file",
     PATH(replica_ca_file),
     .help = "CAs of https replicas; default: the system's",
     .more = "PEM, any number of certificates. One of a replica itself does too. It is read anew "
             "each second; those of the system are read once."},
    {.name = "replica-cert",
     PATH(replica_cert),
     .help = "certificate that is shown to https replicas",
     .more = "For engines, or proxies before them, that ask for one (mutual TLS)."},
    {.name = "replica-key", PATH(replica_key), .help = "its private key"},
    {.name = "replica-tls-name",
     TEXT(replica_tls_name, "NAME"),
     .wrong = node_allowed_tls_name_not,
     .help = "name in the certificates of replicas",
     .more = "Asked for and checked instead of the host of each https replica: for replicas that "
             "are known by their addresses, which their certificates do not have (replica-dns, "
             "replica-kubernetes)."},
    {.name = "admin-tls-cert",
     PATH(admin_tls_cert),
     .help = "certificate of the admin port",
     .more = "It then speaks TLS alone, to probes and Prometheus too. gvctl: `--admin "
             "https://HOST:PORT --ca-file FILE`."},
    {.name = "admin-tls-key", PATH(admin_tls_key), .help = "its private key"},
    {.name = "gossip-listen",
     .group = "Cluster",
     TEXT(gossip_listen, "HOST:PORT"),
     .wrong = node_allowed_address_not,
     .help = "where other routers reach this one",
     .more = "UDP and TCP. Without it and without `join` a router runs alone, opens no such port "
             "and needs no key. With `join` alone it is `0.0.0.0:7490`. On all addresses "
             "(`0.0.0.0`, `[::]`) routers announce to each other where they see this one. Port 0 "
             "lets the kernel choose."},
    {.name = "join",
     LIST(join, "HOST[:PORT]", RESTART),
     .wrong = node_allowed_join_not,
     .help = "another router; repeat for several",
     .more = "One that is alive is enough: through it all meet all, and then it may go. A name may "
             "stand for many addresses, or for one that all routers share, and is looked up again "
             "and again; all are tried for ever. Without a port, that of `gossip-listen` is meant. "
             "Naming the router itself does no harm, so all may have the same list."},
    {.name = "cluster-key-file",
     PATH(cluster_key_file),
     .help = "the key that all routers share",
     .more =
         "Made by `gvctl keygen --out FILE`. A router that has it is a member. A relative path is "
         "taken from the directory that grapevine was started in. It is read again once a second, "
         "and on SIGHUP: that is how a key is changed without a pause (`gvctl help keygen`)."},
    {.name = "insecure-gossip",
     SWITCH(insecure_gossip, RESTART),
     .fallback = "off",
     .help = "no key: whoever reaches the port is a member",
     .more = "For trying things out. Each start warns of it."},
    {.name = "gossip-advertise",
     TEXT(gossip_advertise, "HOST:PORT"),
     .wrong = node_allowed_advertise_not,
     .help = "its address, where it is another one",
     .more = "Needed behind NAT or port mappings that let nothing in only. A name may stand for an "
             "IPv4 and an IPv6 address. Otherwise it is the address in `gossip-listen`, or, where "
             "that is all addresses, the one at which others see it. No loopback or link-local "
             "address is handed to other machines."},
    {.name = "cluster-name",
     TEXT(cluster_name, "NAME"),
     .wrong = node_allowed_node_name_not,
     .help = "of this cluster; keys are made of it",
     .more = "For clusters with one key file; the same at all routers of one. Routers of another "
             "name are no members, whatever address they have (`gossip_other_cluster` in the log). "
             "To give a running cluster a name, stop all its routers first."},
    {.name = "node-name",
     TEXT(node_name, "NAME"),
     .wrong = node_allowed_node_name_not,
     .help = "of this router; unlike all others",
     .more = "By default host name and gossip port: `router-1:7490`. Keep it over restarts."},
    {.name = "gossip-bandwidth",
     SIZE(gossip_bandwidth, RESTART),
     .fallback = "64MiB",
     .min = 65536,
     .max = 64 * GIB,
     .help = "sent to routers a second, at most",
     .more = "To all of them together. What exceeds it waits."},
    {.name = "gossip-ring-bytes",
     SIZE(gossip_ring_bytes, RESTART),
     .fallback = "4MiB",
     .min = 65536,
     .max = 4 * GIB,
     .help = "own news kept for those that missed it",
     .more = "A router that lacks older news gets it by comparing states."},
    {.name = "gossip-flush",
     TIME(gossip_flush_ms, RESTART),
     .fallback = "0",
     .max = 10e3,
     .help = "how long news may wait for company; 0: auto",
     .more = "The first piece after a pause goes out at once. 0 is 10 ms, and 20 ms from 100 "
             "routers on."},
    {.name = "gossip-relay-above",
     NUMBER(gossip_relay_above, RESTART),
     .fallback = "256",
     .min = 2,
     .max = GOSSIP_ROUTERS_MAX,
     .help = "routers; in larger clusters some relay"},
    {.name = "policy",
     .group = "Routing",
     FIELD(policy, CHOICE, "NAME", LIVE),
     .fallback = "cache_aware",
     .choices = node_policy_names,
     .help = "how a replica is chosen",
     .more = "`docs/policies.md` says what each does."},
    {.name = "session-header",
     FIELD(session_header, STRING, "NAME,...", LIVE),
     .fallback = "auto",
     .wrong = node_allowed_header_names_not,
     .help = "headers with a session key; auto: agents'",
     .more =
         "The first that is there. Only policy `session` reads them. Without one it is "
         "`prompt_cache_key`, `session_id`, `metadata.user_id` (of JSON in it the `session_id`) or "
         "`user` of the body: `docs/policies.md` says which agent sends which."},
    {.name = "index-bytes",
     SIZE(index_bytes, RESTART),
     .fallback = "64MiB",
     .min = 1048576,
     .max = 1024 * GIB,
     .help = "memory for the prefix index",
     .more = "Taken at the start and never grown."},
    {.name = "generation",
     TIME(generation_ms, RESTART),
     .fallback = "8s",
     .min = 1000,
     .max = 600e3,
     .help = "grain of the time of last use",
     .more =
         "If it is not given and ttl is above 128min, a 960th of ttl. A ttl can be 3,840 of them."},
    {.name = "ttl",
     TIME(ttl_ms, RESTART),
     .fallback = "1h",
     .min = 1000,
     .max = DAY_MS,
     .help = "forget prefixes unused for so long"},
    {.name = "displaced-weight",
     FIELD(displaced_weight, FLOAT, "NUMBER", LIVE),
     .fallback = "6",
     .max = 1000,
     .help = "weight W of tokens pushed out of a cache"},
    {.name = "decode-weight",
     FIELD(decode_weight, FLOAT, "NUMBER", LIVE),
     .fallback = "0.5",
     .max = 1000,
     .help = "weight V of slower decoding"},
    {.name = "reuse-horizon",
     TIME(reuse_horizon_ms, RESTART),
     .fallback = "120s",
     .min = 1000,
     .max = DAY_MS,
     .help = "age at which reuse is unlikely (R)"},
    {.name = "near-tie",
     FIELD(near_tie, FLOAT, "SHARE", LIVE),
     .fallback = "0.02",
     .max = 1,
     .help = "costs this close count as equal",
     .more = "A share of the least cost, or 1 ms, if that is more. Of equal ones the one with the "
             "fewest requests is taken."},
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
     .help = "prefill tokens/s, until it is learned"},
    {.name = "decode-step",
     TIME(decode_step_ms, RESTART),
     .fallback = "20ms",
     .min = 1,
     .max = 60e3,
     .help = "time of a decode step, until it is learned"},
    {.name = "bytes-per-token",
     FIELD(bytes_per_token, FLOAT, "NUMBER", RESTART),
     .fallback = "4",
     .min = 0.25,
     .max = 1000,
     .help = "of prompts, until it is learned"},
    {.name = "load-bound",
     FIELD(load_bound, FLOAT, "NUMBER", LIVE),
     .fallback = "1.25",
     .min = 1,
     .max = 1000,
     .help = "prefix_hash: most load, times the mean"},
    {.name = "seed",
     NUMBER(seed, RESTART),
     .fallback = "0",
     .help = "of random draws; 0 makes one up",
     .more = "For tests and simulations: the same seed and traffic give the same choices."},
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

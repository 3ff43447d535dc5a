/* The option table: a new setting is one row here and one field in struct node_options. */
#include "node/route/router.h"
#include "node/settings/access_internal.h"
#include "node/settings/allowed.h"
#include "node/settings/clients_internal.h"
#include "node/settings/health_internal.h"
#include "node/settings/limits_internal.h"
#include "node/settings/options.h"
#include "node/settings/retries_internal.h"
#include "node/settings/sources_internal.h"
#include "node/settings/stop_internal.h"
#include "node/settings/tls_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "crdt/limits.h"
#include "gossip/limits.h"
#include "http/limits.h"

#define FIELD(member)      .offset = offsetof(struct node_options, member)
#define TIME_FIELD(member) FIELD(member), .type = NODE_TYPE_MS, .unit = "TIME"
/* The same of a setting that may change while the router runs. */
#define LIVE(member)      FIELD(member), .live = true
#define LIVE_TIME(member) TIME_FIELD(member), .live = true
#define DAY_MS            86400e3
#define GIB               1073741824.0

/* Rows of one group stand together. `help` and the default must fit beside the name in 80 columns
 * (tests/unit/settings/options_test.c checks that). */
static const struct node_option table[] = {
    /* --- Endpoints ------------------------------------------------------------------------- */
    {.name = "replica",
     .type = NODE_TYPE_LIST,
     LIVE(replica),
     .fallback = "",
     .wrong = node_replica_wrong,
     .unit = "URL",
     .group = "Endpoints",
     .help = "an engine, http[s]://HOST:PORT; repeat",
     .more =
         "At least one is needed, but for a router of a cluster: it gets to know those that "
         "the others name, or one with another source of replicas. Without a port, 80 is meant, "
         "of https 443. "
         "[Labels](operations.md#labels) may follow, each behind its own `#`: "
         "`http://HOST:PORT#engine=vllm#weight=2`."},
    NODE_OPTION_ROWS_SOURCES,
    NODE_OPTION_ROWS_ACCESS,
    {.name = "replica-api-key-file",
     .type = NODE_TYPE_PATH,
     FIELD(replica_api_key_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "API key of the engines",
     .more = "For engines that were started with `--api-key`. The key, one line, is sent as "
             "`Authorization: Bearer KEY` with the router's own health checks and questions to "
             "every replica. With clients' requests it goes only where `client-keys-file` says "
             "whose they are: else those carry the clients' own. The "
             "file is read anew each second, so a new key, or a link that is swapped, needs no "
             "restart. A relative path is taken from the directory that grapevine was started in. "
             "[What is different without it](http.md#engines-that-want-an-api-key)."},
    {.name = "replicas-max",
     .type = NODE_TYPE_INTEGER,
     FIELD(replicas_max),
     .fallback = "1024",
     .min = 1,
     .max = CRDT_NAMES_MAX,
     .unit = "NUMBER",
     .group = "Endpoints",
     .help = "replicas in use at one time",
     .more = "Over time there may be any number: a name that no router names any more is forgotten "
             "after 16 minutes. Until then it counts, so give it room. What is more waits, those "
             "that were named last first, and comes into use when another is forgotten. The same "
             "at all routers."},
    {.name = "listen",
     .type = NODE_TYPE_ADDRESS,
     FIELD(listen),
     .fallback = "0.0.0.0:8080",
     .unit = "HOST:PORT",
     .group = "Endpoints",
     .help = "where clients connect",
     .more = "IPv6 addresses stand in brackets: `[::]:8080`. Port 0 lets the kernel choose."},
    {.name = "admin-listen",
     .type = NODE_TYPE_ADDRESS,
     FIELD(admin_listen),
     .fallback = "127.0.0.1:9090",
     .unit = "HOST:PORT",
     .group = "Endpoints",
     .help = "health, metrics, administration",
     .more =
         "Serves `/healthz`, `/readyz`, `/metrics` and what `gvctl` asks for. Where other "
         "machines reach it, give it an admin-token-file: without one they may only read, and a "
         "port that listens neither on loopback nor on all addresses takes no changes at all."},
    {.name = "admin-advertise",
     .type = NODE_TYPE_STRING,
     FIELD(admin_advertise),
     .fallback = "",
     .wrong = node_allowed_admin_advertise_not,
     .unit = "HOST[:PORT]",
     .group = "Endpoints",
     .help = "where others reach the admin port",
     .more = "Told to the other routers: their page links there, and `gvctl status` asks there. "
             "Otherwise it is the host of `admin-listen`, or, where that is all addresses, the "
             "name of this machine. The port takes calls under that name too."},
    {.name = "admin-token-file",
     .type = NODE_TYPE_PATH,
     FIELD(admin_token_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "token asked of calls that change something",
     .more = "On the admin port: `Authorization: Bearer TOKEN`. Reading needs no token, but with "
             "`admin-read-token-file`. Without a token file, changes are taken from the router's "
             "own machine alone. What a prompt would cost (`gvctl explain`) others learn with this "
             "token, or the one for reading, alone. The file, one line, is read anew each "
             "second."},
    NODE_OPTION_ROWS_ADMIN_ACCESS,
    {.name = "config",
     .type = NODE_TYPE_PATH,
     FIELD(config),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "YAML file of settings",
     .more = "Cannot be set in the file itself."},

    NODE_OPTION_ROWS_TLS,

    /* --- Cluster --------------------------------------------------------------------------- */
    {.name = "gossip-listen",
     .type = NODE_TYPE_STRING,
     FIELD(gossip_listen),
     .fallback = "",
     .wrong = node_allowed_address_not,
     .unit = "HOST:PORT",
     .group = "Cluster",
     .help = "where other routers reach this one",
     .more =
         "UDP and TCP. Without it and without `join` a router runs alone, opens no such port "
         "and needs no key. With `join` alone it is `0.0.0.0:7490`. On all addresses (`0.0.0.0`, "
         "`[::]`) routers announce to each other where they see this one. Port 0 lets the kernel "
         "choose."},
    {.name = "join",
     .type = NODE_TYPE_LIST,
     FIELD(join),
     .fallback = "",
     .wrong = node_allowed_join_not,
     .unit = "HOST[:PORT]",
     .group = "Cluster",
     .help = "another router; repeat for several",
     .more =
         "One that is alive is enough: through it all meet all, and then it may go. A name may "
         "stand for many "
         "addresses, or for one that all routers share, and is looked up again and again; all are "
         "tried for ever. Without a port, "
         "that of `gossip-listen` is meant. Naming the router itself does no harm, so all may "
         "have the same list."},
    {.name = "cluster-key-file",
     .type = NODE_TYPE_PATH,
     FIELD(cluster_key_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Cluster",
     .help = "the key that all routers share",
     .more = "Made by `gvctl keygen --out FILE`. A router that has it is a member. A relative path "
             "is taken "
             "from the directory that grapevine was started in. It is read again once a second, "
             "and on SIGHUP: that is how a key is changed without a pause (`gvctl help keygen`)."},
    {.name = "insecure-gossip",
     .type = NODE_TYPE_BOOL,
     FIELD(insecure_gossip),
     .fallback = "off",
     .unit = "on|off",
     .group = "Cluster",
     .help = "no key: whoever reaches the port is a member",
     .more = "For trying things out. Each start warns of it."},
    {.name = "gossip-advertise",
     .type = NODE_TYPE_STRING,
     FIELD(gossip_advertise),
     .fallback = "",
     .wrong = node_allowed_advertise_not,
     .unit = "HOST:PORT",
     .group = "Cluster",
     .help = "its address, where it is another one",
     .more =
         "Needed behind NAT or port mappings that let nothing in only. A name may stand for "
         "an IPv4 and an IPv6 address. Otherwise it is the address in `gossip-listen`, or, where "
         "that is all addresses, the one at which others see it. No loopback or link-local "
         "address is handed to other machines."},
    {.name = "cluster-name",
     .type = NODE_TYPE_STRING,
     FIELD(cluster_name),
     .fallback = "",
     .wrong = node_allowed_node_name_not,
     .unit = "NAME",
     .group = "Cluster",
     .help = "of this cluster; keys are made of it",
     .more = "For clusters with one key file; the same at all routers of one. Routers of another "
             "name are no members, whatever address they have (`gossip_other_cluster` in the "
             "log). To give a running cluster a name, stop all its routers first."},
    {.name = "node-name",
     .type = NODE_TYPE_STRING,
     FIELD(node_name),
     .fallback = "",
     .wrong = node_allowed_node_name_not,
     .unit = "NAME",
     .group = "Cluster",
     .help = "of this router; unlike all others",
     .more = "By default host name and gossip port: `router-1:7490`. Keep it over restarts."},
    {.name = "gossip-bandwidth",
     .type = NODE_TYPE_BYTES,
     FIELD(gossip_bandwidth),
     .fallback = "64MiB",
     .min = 65536,
     .max = 64 * GIB,
     .unit = "SIZE",
     .group = "Cluster",
     .help = "sent to routers a second, at most",
     .more = "To all of them together. What exceeds it waits."},
    {.name = "gossip-ring-bytes",
     .type = NODE_TYPE_BYTES,
     FIELD(gossip_ring_bytes),
     .fallback = "4MiB",
     .min = 65536,
     .max = 4 * GIB,
     .unit = "SIZE",
     .group = "Cluster",
     .help = "own news kept for those that missed it",
     .more = "A router that lacks older news gets it by comparing states."},
    {.name = "gossip-flush",
     TIME_FIELD(gossip_flush_ms),
     .fallback = "0",
     .max = 10e3,
     .group = "Cluster",
     .help = "how long news may wait for company; 0: auto",
     .more = "The first piece after a pause goes out at once. 0 is 10 ms, and 20 ms from 100 "
             "routers on."},
    {.name = "gossip-relay-above",
     .type = NODE_TYPE_INTEGER,
     FIELD(gossip_relay_above),
     .fallback = "256",
     .min = 2,
     .max = GOSSIP_ROUTERS_MAX,
     .unit = "NUMBER",
     .group = "Cluster",
     .help = "routers; in larger clusters some relay"},

    /* --- Routing --------------------------------------------------------------------------- */
    {.name = "policy",
     .type = NODE_TYPE_CHOICE,
     LIVE(policy),
     .fallback = "cache_aware",
     .choices = node_policy_names,
     .unit = "NAME",
     .group = "Routing",
     .help = "how a replica is chosen",
     .more = "`docs/policies.md` says what each does."},
    {.name = "session-header",
     .type = NODE_TYPE_STRING,
     LIVE(session_header),
     .fallback = "auto",
     .wrong = node_allowed_header_names_not,
     .unit = "NAME,...",
     .group = "Routing",
     .help = "headers with a session key; auto: agents'",
     .more = "The first that is there. Only policy `session` reads them. Without one it is "
             "`prompt_cache_key`, `session_id`, "
             "`metadata.user_id` (of JSON in it the `session_id`) or `user` of the body: "
             "`docs/policies.md` says which agent sends which."},
    {.name = "index-bytes",
     .type = NODE_TYPE_BYTES,
     FIELD(index_bytes),
     .fallback = "64MiB",
     .min = 1048576,
     .max = 1024 * GIB,
     .unit = "SIZE",
     .group = "Routing",
     .help = "memory for the prefix index",
     .more = "Taken at the start and never grown."},
    {.name = "generation",
     TIME_FIELD(generation_ms),
     .fallback = "8s",
     .min = 1000,
     .max = 600e3,
     .group = "Routing",
     .help = "grain of the time of last use",
     .more =
         "If it is not given and ttl is above 128min, a 960th of ttl. A ttl can be 3,840 of them."},
    {.name = "ttl",
     TIME_FIELD(ttl_ms),
     .fallback = "1h",
     .min = 1000,
     .max = DAY_MS,
     .group = "Routing",
     .help = "forget prefixes unused for so long"},
    {.name = "displaced-weight",
     .type = NODE_TYPE_FLOAT,
     LIVE(displaced_weight),
     .fallback = "6",
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "weight W of tokens pushed out of a cache"},
    {.name = "decode-weight",
     .type = NODE_TYPE_FLOAT,
     LIVE(decode_weight),
     .fallback = "0.5",
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "weight V of slower decoding"},
    {.name = "reuse-horizon",
     TIME_FIELD(reuse_horizon_ms),
     .fallback = "120s",
     .min = 1000,
     .max = DAY_MS,
     .group = "Routing",
     .help = "age at which reuse is unlikely (R)"},
    {.name = "near-tie",
     .type = NODE_TYPE_FLOAT,
     LIVE(near_tie),
     .fallback = "0.02",
     .max = 1,
     .unit = "SHARE",
     .group = "Routing",
     .help = "costs this close count as equal",
     .more = "A share of the least cost, or 1 ms, if that is more. Of equal ones the one with the "
             "fewest requests is taken."},
    {.name = "cache-tokens",
     .type = NODE_TYPE_INTEGER,
     LIVE(cache_tokens),
     .fallback = "400000",
     .min = 1,
     .max = 1e12,
     .unit = "TOKENS",
     .group = "Routing",
     .help = "cache size of engines that report none"},
    {.name = "prefill-rate",
     .type = NODE_TYPE_FLOAT,
     FIELD(prefill_rate),
     .fallback = "10000",
     .min = 1,
     .max = 1e9,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "prefill tokens/s, until it is learned"},
    {.name = "decode-step",
     TIME_FIELD(decode_step_ms),
     .fallback = "20ms",
     .min = 1,
     .max = 60e3,
     .group = "Routing",
     .help = "time of a decode step, until it is learned"},
    {.name = "bytes-per-token",
     .type = NODE_TYPE_FLOAT,
     FIELD(bytes_per_token),
     .fallback = "4",
     .min = 0.25,
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "of prompts, until it is learned"},
    {.name = "load-bound",
     .type = NODE_TYPE_FLOAT,
     LIVE(load_bound),
     .fallback = "1.25",
     .min = 1,
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "prefix_hash: most load, times the mean"},
    {.name = "seed",
     .type = NODE_TYPE_INTEGER,
     FIELD(seed),
     .fallback = "0",
     .unit = "NUMBER",
     .group = "Routing",
     .help = "of random draws; 0 makes one up",
     .more = "For tests and simulations: the same seed and traffic give the same choices."},

    /* --- Front door ------------------------------------------------------------------------ */
    {.name = "other-paths",
     .type = NODE_TYPE_CHOICE,
     LIVE(other_paths),
     .fallback = "refuse",
     .choices = node_allowed_paths,
     .unit = "pass|refuse",
     .group = "Front door",
     .help = "paths that the router does not know",
     .more = "`refuse` answers 404. `pass` sends the request to the least loaded replica. If its "
             "JSON body or form names a `model`, only replicas of that model count. "
             "[Paths](http.md#paths)."},
    {.name = "engine-control-paths",
     .type = NODE_TYPE_CHOICE,
     LIVE(engine_control_paths),
     .fallback = "refuse",
     .choices = node_allowed_control_paths,
     .unit = "all|pass|refuse",
     .group = "Front door",
     .help = "sleep, reset, LoRA loading and the like",
     .more = "They change the engine for everybody: let clients pass only if you trust them all. "
             "`pass` sends each to one replica, `all` to all or to those of `?model=` or "
             "`?replica=`; with client keys only keys marked `control` may. "
             "[Control paths](http.md#control-paths)."},
    {.name = "engine-fields",
     .type = NODE_TYPE_CHOICE,
     LIVE(engine_fields),
     .fallback = "refuse",
     .choices = node_allowed_paths,
     .unit = "pass|refuse",
     .group = "Front door",
     .help = "kv_transfer_params, bootstrap_* and the like",
     .more =
         "By these fields a client can make an engine connect to a host of its choice. `pass` is "
         "for clients that you trust. [Engine "
         "fields](http.md#fields-of-engines-among-themselves)."},
    {.name = "replica-header",
     .type = NODE_TYPE_BOOL,
     LIVE(replica_header),
     .fallback = "on",
     .unit = "on|off",
     .group = "Front door",
     .help = "name the replica in each answer's head"},
    {.name = "ask-usage",
     .type = NODE_TYPE_BOOL,
     LIVE(ask_usage),
     .fallback = "on",
     .unit = "on|off",
     .group = "Front door",
     .help = "ask engines for the usage of streams",
     .more = "Streams of chats and completions whose clients do not ask for it: the router learns "
             "from it, and takes it "
             "out again."},
    {.name = "forwarded-headers",
     .type = NODE_TYPE_CHOICE,
     LIVE(forwarded_headers),
     .fallback = "trust",
     .choices = node_allowed_forwarded,
     .unit = "trust|replace",
     .group = "Front door",
     .help = "X-Forwarded-* and the like",
     .more = "`trust` continues what a proxy in front sent. `replace` drops what clients sent and "
             "writes them anew: right where clients connect directly."},
    {.name = "cors-allow-origin",
     .type = NODE_TYPE_STRING,
     LIVE(cors_allow_origin),
     .fallback = "*",
     .wrong = node_allowed_origins_not,
     .unit = "ORIGIN",
     .group = "Front door",
     .help = "web pages that may read answers (CORS)",
     .more = "`*` allows all pages, as engines do by default. A list of origins, separated by "
             "commas, such as `https://chat.example.com`, allows only these, in engines' answers "
             "too. `off` adds no CORS headers and sends preflights to the engines. Unless it is "
             "`off`, the router answers preflights itself, and they need no client key. "
             "[Browsers](http.md#browsers)."},
    {.name = "host-header",
     .type = NODE_TYPE_CHOICE,
     LIVE(host_header),
     .fallback = "replica",
     .choices = node_allowed_host_header,
     .unit = "replica|client",
     .group = "Front door",
     .help = "Host header of requests to engines",
     .more = "`replica` sends host and port of the replica's URL: an ingress, or another proxy in "
             "front of engines, finds the engine by them. `client` sends the client's `Host`. "
             "The [label](operations.md#labels) `host-header` overrides this for one replica. "
             "[The host of requests](http.md#the-host-of-requests)."},
    {.name = "head-bytes-max",
     .type = NODE_TYPE_BYTES,
     FIELD(head_bytes_max),
     .fallback = "32KiB",
     .min = 1024,
     .max = 1048576,
     .unit = "SIZE",
     .group = "Front door",
     .help = "request line and headers; then 431"},
    {.name = "headers-max",
     .type = NODE_TYPE_INTEGER,
     LIVE(headers_max),
     .fallback = "100",
     .min = 8,
     .max = HTTP_FIELDS_MAX,
     .unit = "NUMBER",
     .group = "Front door",
     .help = "header lines of a request; then 431"},
    {.name = "body-bytes-max",
     .type = NODE_TYPE_BYTES,
     LIVE(body_bytes_max),
     .fallback = "64MiB",
     .min = 1024,
     .max = 64 * GIB,
     .unit = "SIZE",
     .group = "Front door",
     .help = "body of a request; then 413"},
    {.name = "buffered-bytes-max",
     .type = NODE_TYPE_BYTES,
     LIVE(buffered_bytes_max),
     .fallback = "1GiB",
     .min = 65536,
     .max = 1024 * GIB,
     .unit = "SIZE",
     .group = "Front door",
     .help = "all request bodies held at once; then 503"},
    {.name = "connections-max",
     .type = NODE_TYPE_INTEGER,
     FIELD(connections_max),
     .fallback = "10000",
     .min = 1,
     .max = 1e6,
     .unit = "NUMBER",
     .group = "Front door",
     .help = "clients at once; more get 503"},
    NODE_OPTION_ROWS_CLIENTS,

    /* --- Replicas -------------------------------------------------------------------------- */
    {.name = "upstream-connect-timeout",
     LIVE_TIME(upstream_connect_timeout_ms),
     .fallback = "2s",
     .min = 10,
     .max = 600e3,
     .group = "Replicas",
     .help = "then another replica is tried"},
    NODE_OPTION_ROWS_TIME,
    {.name = "upstream-keepalive",
     LIVE_TIME(upstream_keepalive_ms),
     .fallback = "4s",
     .max = 3600e3,
     .group = "Replicas",
     .help = "how long an idle connection is pooled",
     .more = "Engines close idle connections at 5 s by default: stay below that. 0 turns pooling "
             "off."},
    {.name = "upstream-connections-max",
     .type = NODE_TYPE_INTEGER,
     LIVE(upstream_connections_max),
     .fallback = "4096",
     .min = 1,
     .max = 1e6,
     .unit = "NUMBER",
     .group = "Replicas",
     .help = "to one replica at once"},
    NODE_OPTION_ROWS_OVERLOAD,
    NODE_OPTION_ROWS_RETRIES,
    NODE_OPTION_ROWS_HEALTH,
    {.name = "scrape-interval",
     LIVE_TIME(scrape_interval_ms),
     .fallback = "1s",
     .min = 100,
     .max = 3600e3,
     .group = "Replicas",
     .help = "between two reads of /metrics"},

    /* --- Operation ------------------------------------------------------------------------- */
    {.name = "log-level",
     .type = NODE_TYPE_CHOICE,
     LIVE(log_level),
     .fallback = "info",
     .choices = node_allowed_log_level,
     .unit = "LEVEL",
     .group = "Operation",
     .help = "error, warn, info or debug",
     .more = "SIGUSR1 moves a running process one level on."},
    {.name = "log-format",
     .type = NODE_TYPE_CHOICE,
     FIELD(log_format),
     .fallback = "auto",
     .choices = node_allowed_log_format,
     .unit = "FORMAT",
     .group = "Operation",
     .help = "text, json, or by terminal",
     .more = "`auto` is text on a terminal and JSON otherwise."},
    {.name = "access-log",
     .type = NODE_TYPE_CHOICE,
     LIVE(access_log),
     .fallback = "errors",
     .choices = node_allowed_access_log,
     .unit = "WHICH",
     .group = "Operation",
     .help = "requests to log: off, errors or all"},
    NODE_OPTION_ROWS_STOP,
};

_Static_assert(ARRAY_LEN(table) <= NODE_OPTIONS_MAX, "origins[] has one entry a row");

const struct node_option *node_option_table(unsigned *count)
{
    *count = ARRAY_LEN(table);
    return table;
}

int node_option_find(struct slice name)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        if (slice_equal(name, slice_of_cstr(table[i].name)))
            return (int)i;
    }
    return ERR_NOT_FOUND;
}

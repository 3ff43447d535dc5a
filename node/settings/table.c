/* The option table: a new setting is one row here and one field in struct node_options. */
#include "node/route/policy.h"
#include "node/settings/options.h"

#include "base/check.h"
#include "base/err.h"
#include "gossip/gossip.h"
#include "http/limits.h"

static const char *const *paths_choices(void)
{
    static const char *const names[] = {"refuse", "pass", NULL};
    return names;
}

static const char *const *log_level_choices(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug", NULL};
    return names;
}

static const char *const *log_format_choices(void)
{
    static const char *const names[] = {"auto", "text", "json", NULL};
    return names;
}

static const char *const *access_log_choices(void)
{
    static const char *const names[] = {"off", "errors", "all", NULL};
    return names;
}

static const char *const *forwarded_choices(void)
{
    static const char *const names[] = {"trust", "replace", NULL};
    return names;
}

/* A field name of RFC 9110, section 5.1: a token. */
static const char *header_name_wrong(struct slice value)
{
    const char *wrong = "want the name of a header, such as x-session-id";
    if (value.len == 0 || value.len > 128)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return wrong;
    }
    return NULL;
}

static const char *replica_wrong(struct slice value)
{
    struct node_replica_option parsed;
    if (node_replica_parse(value, &parsed) == 0)
        return NULL;
    if (slice_starts_with(value, SLICE("https:")))
        return "TLS to engines is not supported, want http://HOST:PORT";
    if (!slice_starts_with(value, SLICE("http://")))
        return "want a URL such as http://10.0.0.1:8000";
    struct slice rest = slice_skip(value, strlen("http://"));
    size_t fragment = slice_find(rest, '#');
    if (fragment < rest.len &&
        node_replica_parse(slice_of(value.at, strlen("http://") + fragment), &parsed) == 0)
        return "after # want engine=vllm, engine=sglang or engine=other";
    if (slice_find(rest, '/') < rest.len || slice_find(rest, '?') < rest.len)
        return "want no path: http://HOST:PORT alone";
    return "want a URL such as http://10.0.0.1:8000, its port from 1 to 65535";
}

static const char *address_wrong(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || node_address_parse(value, &parsed) == 0)
        return NULL;
    return "want HOST:PORT, such as 0.0.0.0:7490 or [::]:7490";
}

/* Peers must be able to send there. */
static const char *advertise_wrong(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || (node_address_parse(value, &parsed) == 0 && parsed.port != 0 &&
                           !node_host_is_any(parsed.host)))
        return NULL;
    return "want HOST:PORT where the other routers reach this one, such as 10.0.0.7:7490";
}

static const char *join_wrong(struct slice value)
{
    struct node_address parsed;
    if (node_address_parse_default(value, NODE_GOSSIP_PORT, &parsed) == 0 && parsed.port != 0)
        return NULL;
    return "want HOST or HOST:PORT, such as routers.internal or 10.0.0.7:7490";
}

/* It stands in logs, metrics and tables. */
static const char *node_name_wrong(struct slice value)
{
    const char *wrong = "want 1 to 128 letters, digits or any of . _ : - [ ] @";
    _Static_assert((int)GOSSIP_NAME_MAX == 128, "the text names it");
    if (value.len > GOSSIP_NAME_MAX)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("._:-[]@", c) == NULL))
            return wrong;
    }
    return NULL;
}

#define FIELD(member) .offset = offsetof(struct node_options, member)
#define DAY_MS        86400e3
#define GIB           1073741824.0

/* Rows of one group stand together. `help` and the default must fit beside the name in 80 columns
 * (tests/unit/settings/options_test.c checks that). */
static const struct node_option table[] = {
    /* --- Endpoints ------------------------------------------------------------------------- */
    {.name = "replica",
     .type = NODE_TYPE_LIST,
     FIELD(replica),
     .fallback = "",
     .wrong = replica_wrong,
     .unit = "URL",
     .group = "Endpoints",
     .help = "an engine, http://HOST:PORT; repeat for each",
     .more = "At least one is needed, but for a router of a cluster: it gets to know those that "
             "the others name. The kind of engine is found out by asking it; "
             "`http://HOST:PORT#engine=vllm` (or `sglang`, `other`) says it beforehand. "
             "Without a port, 80 is meant."},
    {.name = "replica-api-key-file",
     .type = NODE_TYPE_PATH,
     FIELD(replica_api_key_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "API key of the engines, for the router's probes",
     .more = "For engines that were started with `--api-key`. The key, one line, is sent as "
             "`Authorization: Bearer KEY` with the router's own health checks and questions to "
             "every replica, and never with clients' requests: those carry the clients' own. The "
             "file is read anew each second, so a new key, or a link that is swapped, needs no "
             "restart. A relative path is taken from the directory that grapevine was started in. "
             "[What is different without it](http.md#engines-that-want-an-api-key)."},
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
    {.name = "admin-token-file",
     .type = NODE_TYPE_PATH,
     FIELD(admin_token_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "token asked of calls that change something",
     .more = "On the admin port: `Authorization: Bearer TOKEN`. Reading needs no token. Without a "
             "token file, changes are taken from the router's own machine alone."},
    {.name = "config",
     .type = NODE_TYPE_PATH,
     FIELD(config),
     .fallback = "",
     .unit = "FILE",
     .group = "Endpoints",
     .help = "YAML file of settings",
     .more = "Cannot be set in the file itself."},

    /* --- Cluster --------------------------------------------------------------------------- */
    {.name = "gossip-listen",
     .type = NODE_TYPE_STRING,
     FIELD(gossip_listen),
     .fallback = "",
     .wrong = address_wrong,
     .unit = "HOST:PORT",
     .group = "Cluster",
     .help = "where other routers reach this one",
     .more =
         "UDP and TCP. Without it and without `join` a router runs alone, opens no such port "
         "and needs no key. With `join` alone it is `0.0.0.0:7490`. On all addresses (`0.0.0.0`, "
         "`[::]`) routers tell each other where they see this one. Port 0 lets the kernel "
         "choose."},
    {.name = "join",
     .type = NODE_TYPE_LIST,
     FIELD(join),
     .fallback = "",
     .wrong = join_wrong,
     .unit = "HOST[:PORT]",
     .group = "Cluster",
     .help = "another router; repeat for several",
     .more = "One that is alive is enough: through it all meet all, and then it may go. A name may "
             "stand for many "
             "addresses and is looked up again and again; all are tried for ever. Without a port, "
             "that of `gossip-listen` is meant. Naming the router itself does no harm, so all may "
             "have the same list."},
    {.name = "cluster-key-file",
     .type = NODE_TYPE_PATH,
     FIELD(cluster_key_file),
     .fallback = "",
     .unit = "FILE",
     .group = "Cluster",
     .help = "the key that all routers share",
     .more = "Made by `gvctl keygen --out FILE`. Who has it is a member. A relative path is taken "
             "from the directory that grapevine was started in. SIGHUP reads it again: that is how "
             "a key is changed without a pause (`gvctl --help`)."},
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
     .wrong = advertise_wrong,
     .unit = "HOST:PORT",
     .group = "Cluster",
     .help = "its address, where it is another one",
     .more = "Needed behind NAT or port mappings only. Otherwise it is the address in "
             "`gossip-listen`, or, where that is all addresses, the one that its packets come "
             "from: whoever gets them hands it on, but no loopback or link-local address to other "
             "machines."},
    {.name = "node-name",
     .type = NODE_TYPE_STRING,
     FIELD(node_name),
     .fallback = "",
     .wrong = node_name_wrong,
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
     .more = "Who lacks older news gets it by comparing states."},
    {.name = "gossip-flush",
     .type = NODE_TYPE_MS,
     FIELD(gossip_flush_ms),
     .fallback = "0",
     .max = 10e3,
     .unit = "TIME",
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
     FIELD(policy),
     .fallback = "cache_aware",
     .choices = node_policy_names,
     .unit = "NAME",
     .group = "Routing",
     .help = "how a replica is chosen",
     .more = "`docs/routing.md` says what each does."},
    {.name = "session-header",
     .type = NODE_TYPE_STRING,
     FIELD(session_header),
     .fallback = "x-session-id",
     .wrong = header_name_wrong,
     .unit = "NAME",
     .group = "Routing",
     .help = "request header with a session key"},
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
     .type = NODE_TYPE_MS,
     FIELD(generation_ms),
     .fallback = "15s",
     .min = 1000,
     .max = 600e3,
     .unit = "TIME",
     .group = "Routing",
     .help = "grain of the time of last use"},
    {.name = "ttl",
     .type = NODE_TYPE_MS,
     FIELD(ttl_ms),
     .fallback = "1h",
     .min = 1000,
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Routing",
     .help = "forget prefixes unused for so long"},
    {.name = "displaced-weight",
     .type = NODE_TYPE_FLOAT,
     FIELD(displaced_weight),
     .fallback = "6",
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "weight W of tokens pushed out of a cache"},
    {.name = "decode-weight",
     .type = NODE_TYPE_FLOAT,
     FIELD(decode_weight),
     .fallback = "0.25",
     .max = 1000,
     .unit = "NUMBER",
     .group = "Routing",
     .help = "weight V of slower decoding"},
    {.name = "reuse-horizon",
     .type = NODE_TYPE_MS,
     FIELD(reuse_horizon_ms),
     .fallback = "120s",
     .min = 1000,
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Routing",
     .help = "age R at which reuse becomes unlikely"},
    {.name = "near-tie",
     .type = NODE_TYPE_FLOAT,
     FIELD(near_tie),
     .fallback = "0.02",
     .max = 1,
     .unit = "SHARE",
     .group = "Routing",
     .help = "costs this close count as equal",
     .more = "A share of the least cost. Equal ones are drawn at random."},
    {.name = "cache-tokens",
     .type = NODE_TYPE_INTEGER,
     FIELD(cache_tokens),
     .fallback = "400000",
     .min = 1,
     .max = 1e12,
     .unit = "TOKENS",
     .group = "Routing",
     .help = "cache size of engines that do not tell"},
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
     .type = NODE_TYPE_MS,
     FIELD(decode_step_ms),
     .fallback = "20ms",
     .min = 1,
     .max = 60e3,
     .unit = "TIME",
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
     FIELD(load_bound),
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
     FIELD(other_paths),
     .fallback = "refuse",
     .choices = paths_choices,
     .unit = "pass|refuse",
     .group = "Front door",
     .help = "paths that no engine API has",
     .more = "`pass` proxies them by load like any HTTP request."},
    {.name = "engine-control-paths",
     .type = NODE_TYPE_CHOICE,
     FIELD(engine_control_paths),
     .fallback = "refuse",
     .choices = paths_choices,
     .unit = "pass|refuse",
     .group = "Front door",
     .help = "sleep, reset, LoRA loading, ...",
     .more = "They change the engine for everybody: let clients pass only if you trust them all."},
    {.name = "replica-header",
     .type = NODE_TYPE_BOOL,
     FIELD(replica_header),
     .fallback = "on",
     .unit = "on|off",
     .group = "Front door",
     .help = "tell clients which replica answered"},
    {.name = "forwarded-headers",
     .type = NODE_TYPE_CHOICE,
     FIELD(forwarded_headers),
     .fallback = "trust",
     .choices = forwarded_choices,
     .unit = "trust|replace",
     .group = "Front door",
     .help = "X-Forwarded-* and the like",
     .more = "`trust` continues what a proxy in front sent. `replace` drops what clients sent and "
             "writes them anew: right where clients connect directly."},
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
     FIELD(headers_max),
     .fallback = "100",
     .min = 8,
     .max = HTTP_FIELDS_MAX,
     .unit = "NUMBER",
     .group = "Front door",
     .help = "header lines of a request; then 431"},
    {.name = "body-bytes-max",
     .type = NODE_TYPE_BYTES,
     FIELD(body_bytes_max),
     .fallback = "64MiB",
     .min = 1024,
     .max = 64 * GIB,
     .unit = "SIZE",
     .group = "Front door",
     .help = "body of a request; then 413"},
    {.name = "buffered-bytes-max",
     .type = NODE_TYPE_BYTES,
     FIELD(buffered_bytes_max),
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
    {.name = "client-idle-timeout",
     .type = NODE_TYPE_MS,
     FIELD(client_idle_timeout_ms),
     .fallback = "60s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Front door",
     .help = "kept alive between two requests",
     .more = "0 turns it off."},
    {.name = "client-head-timeout",
     .type = NODE_TYPE_MS,
     FIELD(client_head_timeout_ms),
     .fallback = "10s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Front door",
     .help = "for a whole request head; then 408",
     .more = "0 turns it off."},
    {.name = "client-body-timeout",
     .type = NODE_TYPE_MS,
     FIELD(client_body_timeout_ms),
     .fallback = "30s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Front door",
     .help = "between two pieces of a body; then 408",
     .more = "0 turns it off."},
    {.name = "client-write-timeout",
     .type = NODE_TYPE_MS,
     FIELD(client_write_timeout_ms),
     .fallback = "60s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Front door",
     .help = "for a client that does not read",
     .more = "0 turns it off."},

    /* --- Replicas -------------------------------------------------------------------------- */
    {.name = "upstream-connect-timeout",
     .type = NODE_TYPE_MS,
     FIELD(upstream_connect_timeout_ms),
     .fallback = "2s",
     .min = 10,
     .max = 600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "then another replica is tried"},
    {.name = "upstream-first-byte-timeout",
     .type = NODE_TYPE_MS,
     FIELD(upstream_first_byte_timeout_ms),
     .fallback = "300s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Replicas",
     .help = "until an answer begins; 0: never",
     .more = "Prefill and the engine's queue count: do not make it short. A generation that is not "
             "streamed has upstream-whole-answer-timeout instead. 0 turns it off."},
    {.name = "upstream-whole-answer-timeout",
     .type = NODE_TYPE_MS,
     FIELD(upstream_whole_answer_timeout_ms),
     .fallback = "0",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Replicas",
     .help = "for one that is not streamed; 0: never",
     .more = "The first byte of such an answer comes with its last. By default its client decides "
             "how long to wait."},
    {.name = "upstream-idle-timeout",
     .type = NODE_TYPE_MS,
     FIELD(upstream_idle_timeout_ms),
     .fallback = "120s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Replicas",
     .help = "between two pieces of an answer",
     .more = "0 turns it off."},
    {.name = "upstream-keepalive",
     .type = NODE_TYPE_MS,
     FIELD(upstream_keepalive_ms),
     .fallback = "4s",
     .max = 3600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "how long an idle connection is pooled",
     .more = "Engines close idle connections at 5 s by default: stay below that. 0 turns pooling "
             "off."},
    {.name = "upstream-connections-max",
     .type = NODE_TYPE_INTEGER,
     FIELD(upstream_connections_max),
     .fallback = "4096",
     .min = 1,
     .max = 1e6,
     .unit = "NUMBER",
     .group = "Replicas",
     .help = "to one replica at once"},
    {.name = "retries-max",
     .type = NODE_TYPE_INTEGER,
     FIELD(retries_max),
     .fallback = "2",
     .max = 16,
     .unit = "NUMBER",
     .group = "Replicas",
     .help = "other replicas tried per request",
     .more = "Only where nothing of an answer has reached the client."},
    {.name = "health-interval",
     .type = NODE_TYPE_MS,
     FIELD(health_interval_ms),
     .fallback = "2s",
     .min = 100,
     .max = 3600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "between two health checks"},
    {.name = "health-timeout",
     .type = NODE_TYPE_MS,
     FIELD(health_timeout_ms),
     .fallback = "5s",
     .min = 10,
     .max = 600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "for the answer to a health check"},
    {.name = "health-timeout-sglang",
     .type = NODE_TYPE_MS,
     FIELD(health_timeout_sglang_ms),
     .fallback = "30s",
     .min = 10,
     .max = 600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "the same for SGLang",
     .more =
         "SGLang may answer a health check by generating a token, behind whatever it computes."},
    {.name = "health-failures",
     .type = NODE_TYPE_INTEGER,
     FIELD(health_failures),
     .fallback = "3",
     .min = 1,
     .max = 100,
     .unit = "NUMBER",
     .group = "Replicas",
     .help = "in a row until a replica is down",
     .more = "A refused connection counts as down at once."},
    {.name = "scrape-interval",
     .type = NODE_TYPE_MS,
     FIELD(scrape_interval_ms),
     .fallback = "1s",
     .min = 100,
     .max = 3600e3,
     .unit = "TIME",
     .group = "Replicas",
     .help = "between two reads of /metrics"},

    /* --- Operation ------------------------------------------------------------------------- */
    {.name = "log-level",
     .type = NODE_TYPE_CHOICE,
     FIELD(log_level),
     .fallback = "info",
     .choices = log_level_choices,
     .unit = "LEVEL",
     .group = "Operation",
     .help = "error, warn, info or debug",
     .more = "SIGUSR1 moves a running process one level on."},
    {.name = "log-format",
     .type = NODE_TYPE_CHOICE,
     FIELD(log_format),
     .fallback = "auto",
     .choices = log_format_choices,
     .unit = "FORMAT",
     .group = "Operation",
     .help = "text, json, or by terminal",
     .more = "`auto` is text on a terminal and JSON otherwise."},
    {.name = "access-log",
     .type = NODE_TYPE_CHOICE,
     FIELD(access_log),
     .fallback = "errors",
     .choices = access_log_choices,
     .unit = "WHICH",
     .group = "Operation",
     .help = "requests to log: off, errors or all"},
    {.name = "drain-delay",
     .type = NODE_TYPE_MS,
     FIELD(drain_delay_ms),
     .fallback = "5s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Operation",
     .help = "still serves after SIGTERM, not ready",
     .more = "Longer than load balancers take to see `/readyz` fail. SIGINT (Ctrl-C) skips it, a "
             "second SIGTERM ends it. 0 turns it off."},
    {.name = "drain-timeout",
     .type = NODE_TYPE_MS,
     FIELD(drain_timeout_ms),
     .fallback = "30s",
     .max = DAY_MS,
     .unit = "TIME",
     .group = "Operation",
     .help = "for open requests after drain-delay"},
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

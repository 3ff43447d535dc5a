/* An HAProxy configuration in tables: sections, directives, and words of bind and server lines. */
#include <stdlib.h>
#include <string.h>

#include "node/gvctl/convert/convert_internal.h"
#include "node/replica/labels.h"

#define NOTE_SYSTEMD "systemd or the container does that"
#define NOTE_RULES   "the router routes by model and prompt, not by rules"
#define NOTE_EDIT    "the router does not edit heads or bodies"
#define NOTE_STICK   "requests follow their prompt's prefix; or set policy: session"
#define NOTE_ADMIN   "see gvctl and /metrics on the admin port"
#define NOTE_SILENT  "the router detects dead connections on both sides"
#define NOTE_LOG     "the log goes to standard error, one line per event"
#define NOTE_ERRORS  "errors have the called API's format"
#define NOTE_STRICT  "the HTTP parser is always strict"
#define NOTE_TLS12   "TLS 1.2 and 1.3 with built-in ciphers"
#define NOTE_ALERTS  "use the alerts in deploy/prometheus"
#define NOTE_JOIN    "join names another router, at its gossip port (7490)"
#define NOTE_PREFIX  "cache_aware uses the prompt's prefix"
#define NOTE_GET     "a health check is one GET of health-path"

/* --- lines beyond a row's means --------------------------------------------------------------- */

static void take_bind(struct convert_state *c, const char *label, const json_t *values)
{
    struct slice rest = slice_of_cstr(convert_word(values, 0)), first = slice_cut(&rest, ',');
    const char *at = convert_text(c, "%.*s", SLICE_ARG(first));
    const char *address = convert_haproxy_address(c, at, "0.0.0.0");
    if (address == NULL) {
        convert_note(c, CONVERT_HAND, label, "%s is not HOST:PORT: clients connect over TCP", at);
        return;
    }
    (void)convert_set(c, "listen", address, label);
    if (rest.len > 0)
        convert_note(c, CONVERT_NONE, label,
                     "the router has one client address: gvctl used the first");
    convert_words(c, CONVERT_BIND, values, 1);
}

static bool is_on(const struct convert_state *c, const char *part)
{
    return strcmp(convert_part(c, part, ""), "on") == 0;
}

/* Takes a replica, or a DNS name of several replicas, with the words of default-server. */
static void take_server(struct convert_state *c, const char *label, const json_t *values)
{
    bool template = strcmp(label, "server-template") == 0;
    const char *setting = template ? "replica-dns" : "replica";
    const char *at = convert_word(values, template ? 2 : 1);
    const char *address = template ? at : convert_haproxy_address(c, at, "127.0.0.1");
    if (address == NULL) {
        convert_note(c, CONVERT_HAND, label, "%s is not HOST:PORT: write the engine's address", at);
        return;
    }
    json_t *parts = c->parts; /* parts of this line apply to this line alone */
    c->parts = convert_own(c, json_copy(parts));
    convert_words(c, CONVERT_SERVER, values, template ? 3 : 2);
    const char *weight = convert_part(c, "replica.weight", "1");
    double share = strtod(weight, NULL);
    const char *why = is_on(c, "replica.disabled") ? "disabled in HAProxy"
                      : share == 0                 ? "weight 0 in HAProxy"
                      : is_on(c, "replica.backup") ? "a backup in HAProxy; Grapevine has none"
                                                   : NULL;
    const char *scheme = is_on(c, "replica.ssl") ? "https://" : template ? "" : "http://";
    c->parts = parts;
    if (template && at[0] == '_') /* SRV records have the ports */
        address = convert_text(c, "%.*s", (int)strcspn(at, ":"), at);
    const char *url = convert_text(c, "%s%s", scheme, address);
    if (!template && share > NODE_WEIGHT_MAX) {
        convert_note(c, CONVERT_HAND, label,
                     "weight %s: weights end at %g, scale those of all servers", weight,
                     NODE_WEIGHT_MAX);
        weight = convert_text(c, "%g", NODE_WEIGHT_MAX);
    }
    if (!template && share > 0 && share != 1)
        url = convert_text(c, "%s#weight=%s", url, weight);
    if (why == NULL) {
        (void)convert_set(c, setting, url, label);
        return;
    }
    why = convert_text(c, "%s: %s", why,
                       template ? "uncomment the line to use it"
                                : "add it with gvctl add when needed");
    convert_add(c->left, setting, url, why);
    convert_note(c, CONVERT_HAND, label, "%s: %s", url, why);
}

static void take_default_server(struct convert_state *c, const char *label, const json_t *values)
{
    (void)label;
    convert_words(c, CONVERT_SERVER, values, 0);
}

/* Sets the name required in a certificate. verifyhost takes precedence. */
static void take_sni(struct convert_state *c, const char *label, const json_t *values)
{
    const char *sni = convert_word(values, 0), *setting = "replica-tls-name";
    bool fixed = strncmp(sni, "str(", 4) == 0;
    if (convert_setting(c, setting) != NULL)
        return;
    if (!fixed)
        convert_note(c, CONVERT_HAND, label, "set %s: one name for all requests", setting);
    else
        (void)convert_set(c, setting, convert_text(c, "%.*s", (int)strcspn(sni + 4, ")"), sni + 4),
                          label);
}

/* Servers may differ, but the setting is one for all of them: the lowest value is safe. */
static void take_maxconn(struct convert_state *c, const char *label, const json_t *values)
{
    const char *setting = "replica-requests-max", *value = convert_word(values, 0);
    const char *before = convert_setting(c, setting);
    bool higher = before != NULL && strtod(value, NULL) > strtod(before, NULL);
    if (!higher && !convert_set(c, setting, value, label))
        return;
    if (before != NULL && strcmp(value, before) != 0)
        convert_note(c, CONVERT_HAND, label,
                     "%s is one value for all replicas: gvctl wrote the lowest", setting);
}

static void take_hash(struct convert_state *c, const char *label, const json_t *values)
{
    const char *header = strstr(convert_word(values, 0), "hdr(");
    if (header == NULL) {
        (void)convert_set(c, "policy", "cache_aware", label);
        convert_note(c, CONVERT_DID, label, NOTE_PREFIX);
        return;
    }
    const char *name = convert_text(c, "%.*s", (int)strcspn(header + 4, ",)"), header + 4);
    (void)convert_set(c, "session-header", name, label);
    (void)convert_set(c, "policy", "session", label);
    convert_note(c, CONVERT_DID, label,
                 "try cache_aware: it finds sessions by their prompts, and moves them if another "
                 "replica costs less");
}

/* Takes the first path, after "GET", "uri", or alone. */
static void take_check(struct convert_state *c, const char *label, const json_t *values)
{
    for (size_t i = json_array_size(values); i-- > 0;) {
        if (convert_word(values, i)[0] == '/')
            (void)convert_set(c, "health-path", convert_word(values, i), label);
    }
    if (json_array_size(values) > 1)
        convert_note(c, CONVERT_NOT_NEEDED, label, NOTE_GET);
}

static void take_nameserver(struct convert_state *c, const char *label, const json_t *values)
{
    const char *at = convert_word(values, 1);
    if (strpbrk(at, "/@") != NULL)
        convert_note(c, CONVERT_HAND, label, "set dns-server: IP:PORT, for replica-dns");
    else
        (void)convert_set(c, "dns-server", at, label);
}

static void take_file(struct convert_state *c, const char *label, const json_t *values)
{
    (void)label;
    if (c->unread[0] == '\0')
        (void)convert_file(convert_word(values, 0), &c->text, c->unread);
}

/* --- tables ---------------------------------------------------------------------------------- */

static const struct convert_row sections[] = {
    READ("global, defaults, frontend, listen, backend", NULL,
         "only defaults and sections with engines count"),
    READ("resolvers", "dns-server", "only its nameservers count"),
    READ("peers", "join", "only its peer lines count: " NOTE_JOIN),
    BY_HAND("userlist", "client-keys-file", "client-keys-file lists the API keys"),
    MISSING("mailers", NOTE_ALERTS),
    MISSING("cache", "the router does not cache answers"),
    NEEDLESS("program", NOTE_SYSTEMD),
    NEEDLESS("ring, log-profile, traces", "the log goes to standard error"),
    MISSING("log-forward", "the router does not forward logs"),
    MISSING("http-errors", NOTE_ERRORS),
    BY_HAND("crt-store", "tls-cert", "set tls-cert for each certificate that it lists"),
    MISSING("acme", "another tool must renew the certificate files"),
    MISSING("fcgi-app", "replicas speak HTTP"),
    {0},
};

/* Directives of one or more words; the longest match wins. */
static const struct convert_row directives[] = {
    CALL("bind", "listen", take_bind, NULL),
    CALL("server", "replica", take_server,
         "weight becomes a label (at most 100: scale greater ones); a disabled, backup or weight-0 "
         "server becomes a comment"),
    CALL("server-template", "replica-dns", take_server, NULL),
    CALL("default-server", NULL, take_default_server, "the same words as server"),
    SAME("balance roundrobin, balance static-rr", "policy: round_robin"),
    NEARLY("balance leastconn", "policy: least_request",
           "try cache_aware, which also knows caches"),
    SAME("balance random(1)", "policy: random"),
    SAME("balance random", "policy: power_of_two"),
    NEARLY("balance first", "policy: cache_aware",
           "the router does not fill replicas one after another"),
    NEARLY("balance source", "policy: cache_aware", "the prompt identifies the session"),
    NEARLY("balance uri", "policy: cache_aware", "the path does not identify a prompt"),
    NEARLY("balance url_param", "policy: cache_aware", "the query does not identify a prompt"),
    NEARLY("balance rdp-cookie", "policy: cache_aware", NOTE_PREFIX),
    CALL("balance hash, balance hdr", "policy", take_hash,
         "of a header: session with session-header; of the body: cache_aware"),
    OTHERWISE("balance", "policy", "unknown policy: cache_aware is used"),
    NEEDLESS("hash-type", "session hashing is consistent"),
    NEEDLESS("hash-balance-factor", "policy prefix_hash has load-bound"),
    SAME("timeout connect", "upstream-connect-timeout"),
    NEARLY("timeout server", "upstream-idle-timeout",
           "within an answer; before its first token, upstream-first-token-timeout"),
    NEARLY("timeout client", "client-body-timeout client-write-timeout",
           "client-head-timeout limits the head; if timeout http-keep-alive and timeout "
           "http-request are missing, client-idle-timeout is set too"),
    SAME("timeout http-request", "client-head-timeout"),
    SAME("timeout http-keep-alive", "client-idle-timeout"),
    SAME("timeout queue", "queue-timeout"),
    SAME("timeout check", "health-timeout"),
    NEEDLESS("timeout tunnel", "there are no tunnels"),
    NEEDLESS("timeout client-fin, timeout server-fin", "such connections close by themselves"),
    MISSING("timeout tarpit", NOTE_RULES),
    SAME("retries", "retries-max"),
    NEEDLESS("retry-on", "docs/http.md lists the retries before the first token"),
    NEEDLESS("option redispatch", "retries go to another replica"),
    CALL("option httpchk, http-check send", "health-path", take_check, NOTE_GET),
    SAME("http-check expect status", "health-statuses"),
    BY_HAND("http-check expect", "health-statuses",
            "health-statuses: the statuses of a healthy replica; the body does not count"),
    NEEDLESS("http-check connect", "health checks use the replica's address"),
    NEEDLESS("http-check disable-on-404", "health-statuses lists the healthy statuses"),
    NEEDLESS("http-check", NOTE_GET),
    NEEDLESS("option tcp-check", "health checks use HTTP, at health-path"),
    NEEDLESS("option forwardfor", "the router sets X-Forwarded-For (forwarded-headers)"),
    SAME("option httplog, option tcplog, option httpslog", "access-log: all"),
    NEEDLESS("option log-health-checks", "the router logs each health change"),
    NEEDLESS("option http-server-close, option httpclose", "upstream-keepalive: 0 does this"),
    NEEDLESS("option http-keep-alive", "the router keeps connections alive on both sides"),
    NEEDLESS("option http-buffer-request", "the router reads the body before it chooses"),
    NEEDLESS("option http-no-delay", "the router forwards streams at once"),
    NEEDLESS("option abortonclose", "a client that disconnects frees the engine at once"),
    NEEDLESS("option prefer-last-server", NOTE_STICK),
    NEEDLESS("option splice-auto", "the router avoids needless copies"),
    NEEDLESS("option dontlognull, option logasap, log, log-format, log-tag", NOTE_LOG),
    NEEDLESS("option contstats, option socket-stats, stats", NOTE_ADMIN),
    NEEDLESS("option tcpka, option clitcpka, option srvtcpka", NOTE_SILENT),
    NEEDLESS("option allbackups", "backup servers become comments"),
    MISSING("option accept-invalid-http-request, option accept-invalid-http-response", NOTE_STRICT),
    MISSING("option external-check, lua-load", NOTE_CODE),
    MISSING("option *", "unknown option"),
    SAME("maxconn", "connections-max"),
    NEEDLESS("fullconn", "replica-requests-max limits each replica"),
    NEEDLESS("http-reuse", "the router pools connections to replicas"),
    NEEDLESS("mode", "the router always speaks HTTP"),
    NEEDLESS("default_backend", "there is one set of replicas"),
    MISSING("use_backend, use-server, acl, http-request, tcp-request, tcp-response, redirect",
            NOTE_RULES),
    BY_HAND("a limit by rate", "client-keys-file",
            "client-keys-file: a key may have requests-per-minute=N (gvctl key new); addresses "
            "have no rate limit"),
    BY_HAND("a limit by conn_cur", "connections-per-client-max",
            "connections-per-client-max limits connections per address"),
    MISSING("filter bwlim-in, filter bwlim-out, http-request set-bandwidth-limit",
            "the router does not limit bandwidth"),
    MISSING("http-response, http-after-response, filter, compression", NOTE_EDIT),
    MISSING("errorfile, errorloc, http-error", NOTE_ERRORS),
    NEEDLESS("unique-id-format, unique-id-header", "each request has an x-request-id"),
    MISSING("cookie, stick-table, stick", NOTE_STICK),
    NEEDLESS("monitor-uri, monitor-net", "/readyz and /healthz are on the admin port"),
    NEEDLESS("nbthread, thread-groups", "a router has one thread: run several routers"),
    NEEDLESS("nbproc", "a router is one process: run several routers"),
    NEEDLESS("cpu-map, daemon, master-worker, user, group, chroot, pidfile, ulimit-n",
             NOTE_SYSTEMD),
    NEEDLESS("spread-checks", "health checks are spread out automatically"),
    NEEDLESS("server-state-file, load-server-state-from-file",
             "a router gets its state from the other routers"),
    BY_HAND("setenv, presetenv", NULL,
            "gvctl convert does not expand variables: write their values"),
    NEEDLESS("backlog", "4,096 connections may wait to be accepted"),
    MISSING("dispatch", "list the replicas one by one"),
    MISSING("source", "the system chooses the source address"),
    MISSING("capture", "the log has no headers"),
    MISSING("email-alert", NOTE_ALERTS),
    BY_HAND("rate-limit", "client-keys-file", "a key may have requests-per-minute"),
    MISSING("maxconnrate, maxsessrate, maxsslrate", "connections-per-client-max limits clients"),
    NEEDLESS("maxsslconn", "connections-max counts TLS connections too"),
    SAME("hard-stop-after", "drain-timeout"),
    SAME("grace", "drain-delay"),
    NEEDLESS("description", "write a comment"),
    SAME("node, localpeer", "node-name"),
    BY_HAND("peer", "join", NOTE_JOIN),
    CALL("nameserver", "dns-server", take_nameserver, "used for replica-dns"),
    NEEDLESS("ssl-default-bind-options, ssl-default-server-options", "TLS 1.2 and 1.3"),
    MISSING("ssl-default-bind-ciphers, ssl-default-bind-ciphersuites, ssl-default-server-ciphers, "
            "ssl-default-server-ciphersuites",
            "the program chooses the ciphers"),
    NEARLY("ca-base", "replica-ca-file.base", "settings need full paths"),
    NEARLY("crt-base", "tls-cert.base replica-cert.base replica-key.base",
           "settings need full paths"),
    NEEDLESS("ssl-dh-param-file", "keys are exchanged by ECDHE"),
    BY_HAND("ssl-server-verify", "replica-ca-file",
            "the router always checks certificates: set replica-ca-file to their CA"),
    NEEDLESS("tune.*", "nothing to tune"),
    {0},
};

static const struct convert_row flags[] = {
    CALL("f=", NULL, take_file, "the file"),
    NEEDLESS("W, Ws, D, d, db, q, V, c, p=, x=, S=, sf=, st=", NOTE_SYSTEMD),
    BY_HAND("n=, N=, m=", "connections-max", "maxconn in its file, or connections-max"),
    BY_HAND("L=", "node-name", "node-name"),
    BY_HAND("C=", NULL, "settings need full paths"),
    {0},
};

/* Words after an address; "=" marks a word with an argument. */
static const struct convert_row binds[] = {
    READ("ssl", "tls-cert", NULL),
    SAME("crt=", "tls-cert"),
    BY_HAND("alpn h2, proto h2", NULL,
            "HTTP/2 is not supported: a proxy in front must speak HTTP/1.1 to the router"),
    NEEDLESS("alpn http/1.1, proto h1", "the router offers HTTP/1.1"),
    MISSING("alpn=, npn=, proto=",
            "HTTP/2 is not supported: clients that also offer http/1.1 use that"),
    BY_HAND("crt-list=", "tls-cert", "set tls-cert for each file that it lists"),
    SAME("accept-proxy", "proxy-protocol: on"),
    MISSING("ca-file=, ca-verify-file=, crl-file=, verify=",
            "no client certificates; client-keys-file checks API keys"),
    NEEDLESS("verify none", "clients need no certificates"),
    BY_HAND("tls-ticket-keys=", "tls-ticket-key-file",
            "tls-ticket-key-file: one 80-byte key in base64 per line"),
    NEEDLESS("ciphers=, ciphersuites=, curves=, ecdhe=, "
             "ssl-min-ver=, ssl-max-ver=, no-sslv3, no-tlsv10, "
             "no-tlsv11, prefer-client-ciphers",
             NOTE_TLS12),
    NEEDLESS("v4v6, v6only", "the system decides if [::] also accepts IPv4"),
    NEEDLESS("name=, id=", "there is one listener"),
    NEEDLESS("backlog=, defer-accept, mss=, nice=, process=, shards=, tcp-ut=, tfo, thread=",
             "nothing to tune"),
    NEEDLESS("mode=, user=, group=, uid=, gid=, level=", "clients connect over TCP"),
    BY_HAND("maxconn=", "connections-max", "connections-max counts all clients"),
    {0},
};

static const struct convert_row servers[] = {
    READ("weight=", "replica.weight", "a label"),
    READ("disabled", "replica.disabled", "an unused server becomes a comment"),
    READ("enabled", "replica.disabled: off", NULL),
    READ("backup", "replica.backup", "an unused server becomes a comment"),
    READ("no-backup", "replica.backup: off", NULL),
    READ("ssl", "replica.ssl", "https://"),
    READ("no-ssl", "replica.ssl: off", NULL),
    CALL("sni=", "replica-tls-name", take_sni, NULL),
    SAME("verifyhost=", "replica-tls-name"),
    READ("check", NULL, "health is always checked"),
    MISSING("no-check", "health is always checked"),
    SAME("inter=", "health-interval"),
    SAME("fall=", "health-failures"),
    NEEDLESS("maxconn 0", "HAProxy then has no limit; here the default applies"),
    CALL("maxconn=", "replica-requests-max", take_maxconn,
         "one value for all replicas, the lowest; it applies per router: divide by their number"),
    SAME("ca-file=", "replica-ca-file"),
    SAME("crt=", "replica-cert replica-key"),
    BY_HAND("verify none", "replica-ca-file",
            "certificates are always checked: replica-ca-file names their CA, replica-tls-name "
            "their name"),
    READ("verify=", NULL, "certificates are always checked"),
    NEEDLESS("rise=", "one good health check brings a replica back"),
    NEEDLESS("fastinter=, downinter=", "health-interval applies in all states"),
    MISSING("port=", "health checks use the replica's own port"),
    MISSING("addr=", "health checks use the replica's own address"),
    NEEDLESS("check-ssl, check-sni=, check-alpn=, check-proto=",
             "health checks use the same protocol as requests"),
    MISSING("check-send-proxy, send-proxy, send-proxy-v2",
            "the router sends no PROXY header to replicas"),
    BY_HAND("alpn h2, proto h2", NULL,
            "HTTP/2 is not supported: the engine must accept HTTP/1.1, as vLLM and SGLang do"),
    NEEDLESS("alpn=, proto=, ws=", "the router speaks HTTP/1.1"),
    MISSING("cookie=", NOTE_STICK),
    NEEDLESS("slowstart=", "slow start is built in"),
    NEEDLESS("track=, observe=, error-limit=, on-error=, on-marked-down=, on-marked-up=",
             "the router detects and avoids failing replicas itself"),
    MISSING("minconn=", "replica-requests-max is one fixed number"),
    MISSING("maxqueue=", "requests wait in one queue (queue-max)"),
    MISSING("agent-check, agent-port=, agent-addr=, agent-inter=, agent-send=",
            "the router reads engines' health and /metrics over HTTP"),
    NEEDLESS("resolvers=, init-addr=, resolve-prefer=, resolve-opts=, resolve-net=",
             "the router resolves names itself; dns-server applies to replica-dns"),
    NEEDLESS("ciphers=, ciphersuites=, ssl-min-ver=, ssl-max-ver=", NOTE_TLS12),
    NEEDLESS("pool-max-conn=, pool-low-conn=, pool-purge-delay=, max-reuse=",
             "the router pools connections to replicas"),
    NEEDLESS("id=", "replicas are named by their addresses"),
    {0},
};

const struct convert_router convert_haproxy = {
    .name = "haproxy",
    .title = "HAProxy",
    .source = "the HAProxy 2.6 configuration manual",
    .programs = "haproxy",
    .marks = "",
    .tables = {{CONVERT_DIRECTIVE, directives},
               {CONVERT_SECTION, sections},
               {CONVERT_BIND, binds},
               {CONVERT_SERVER, servers},
               {CONVERT_FLAG, flags}},
    .time = "ms",
    .finish = convert_haproxy_text,
};

/* An HAProxy configuration in tables: sections, directives, words of bind and server lines. */
#include <stdlib.h>
#include <string.h>

#include "node/gvctl/convert/convert_internal.h"

#define NOTE_SYSTEMD "systemd or the container does that"
#define NOTE_RULES   "requests are routed by their model and prompt, not by rules"
#define NOTE_EDIT    "heads and bodies are sent on as they are"
#define NOTE_STICK   "stickiness is by the prompt's prefix, or policy: session with session-header"
#define NOTE_ADMIN   "gvctl and /metrics at the admin port have that"
#define NOTE_SILENT  "machines that are silent are found out, on both sides"
#define NOTE_LOG     "the log goes to standard error, one line an event"
#define NOTE_ERRORS  "errors have the form of the API that was asked"
#define NOTE_STRICT  "HTTP is read strictly"
#define NOTE_TLS12   "TLS 1.2 and 1.3, with the program's ciphers"
#define NOTE_ALERTS  "deploy/prometheus has alerts"
#define NOTE_JOIN    "join names another router, at its gossip port (7490)"
#define NOTE_PREFIX  "the prompt's prefix says more"
#define NOTE_GET     "health is one GET of health-path"

/* --- lines that no row can say --------------------------------------------------------------- */

static void take_bind(struct convert_state *c, const char *label, const json_t *values)
{
    struct slice rest = slice_of_cstr(convert_word(values, 0)), first = slice_cut(&rest, ',');
    const char *at = convert_text(c, "%.*s", SLICE_ARG(first));
    const char *address = convert_haproxy_address(c, at, "0.0.0.0");
    if (address == NULL) {
        convert_note(c, CONVERT_HAND, label, "%s: want HOST:PORT; clients come over TCP", at);
        return;
    }
    (void)convert_set(c, "listen", address, label);
    if (rest.len > 0)
        convert_note(c, CONVERT_NONE, label, "clients connect at one address: the first is used");
    convert_words(c, CONVERT_BIND, values, 1);
}

static bool is_on(const struct convert_state *c, const char *part)
{
    return strcmp(convert_part(c, part, ""), "on") == 0;
}

/* A replica, or a name that DNS has many under; with what default-server says. */
static void take_server(struct convert_state *c, const char *label, const json_t *values)
{
    bool template = strcmp(label, "server-template") == 0;
    const char *setting = template ? "replica-dns" : "replica";
    const char *at = convert_word(values, template ? 2 : 1);
    const char *address = template ? at : convert_haproxy_address(c, at, "127.0.0.1");
    if (address == NULL) {
        convert_note(c, CONVERT_HAND, label, "%s: want HOST:PORT of an engine", at);
        return;
    }
    json_t *parts = c->parts; /* this line's are of it alone */
    c->parts = convert_own(c, json_copy(parts));
    convert_words(c, CONVERT_SERVER, values, template ? 3 : 2);
    const char *weight = convert_part(c, "replica.weight", "1");
    double share = strtod(weight, NULL);
    const char *why = is_on(c, "replica.disabled") ? "disabled there"
                      : share == 0                 ? "weight 0 there"
                      : is_on(c, "replica.backup") ? "a backup there, and here are none"
                                                   : NULL;
    const char *scheme = is_on(c, "replica.ssl") ? "https://" : template ? "" : "http://";
    c->parts = parts;
    if (template && at[0] == '_') /* a service's records give the ports */
        address = convert_text(c, "%.*s", (int)strcspn(at, ":"), at);
    const char *url = convert_text(c, "%s%s", scheme, address);
    if (!template && share > 0 && share != 1)
        url = convert_text(c, "%s#weight=%s", url, weight);
    if (why == NULL) {
        (void)convert_set(c, setting, url, label);
        return;
    }
    why = convert_text(c, "%s: %s", why,
                       template ? "uncomment it to use it" : "gvctl add brings it in");
    convert_add(c->left, setting, url, why);
    convert_note(c, CONVERT_HAND, label, "%s: %s", url, why);
}

static void take_default_server(struct convert_state *c, const char *label, const json_t *values)
{
    (void)label;
    convert_words(c, CONVERT_SERVER, values, 0);
}

/* The name that a certificate must have. verifyhost is stronger. */
static void take_sni(struct convert_state *c, const char *label, const json_t *values)
{
    const char *sni = convert_word(values, 0), *setting = "replica-tls-name";
    bool fixed = strncmp(sni, "str(", 4) == 0;
    if (convert_setting(c, setting) != NULL)
        return;
    if (!fixed)
        convert_note(c, CONVERT_HAND, label, "%s: one name, which no request changes", setting);
    else
        (void)convert_set(c, setting, convert_text(c, "%.*s", (int)strcspn(sni + 4, ")"), sni + 4),
                          label);
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
    convert_note(
        c, CONVERT_DID, label,
        "cache_aware finds sessions by their prompts, and moves them when it must: try it");
}

/* The first path, behind "GET", "uri", or alone. */
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
        convert_note(c, CONVERT_HAND, label, "dns-server: IP:PORT, for replica-dns");
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
         "those count that lead to engines, and what is said of all"),
    READ("resolvers", "dns-server", "only its nameservers count"),
    READ("peers", "join", "only its lines with peer count: " NOTE_JOIN),
    BY_HAND("userlist", "client-keys-file", "client-keys-file lists who may call"),
    MISSING("mailers", NOTE_ALERTS),
    MISSING("cache", "answers are not cached"),
    NEEDLESS("program", NOTE_SYSTEMD),
    NEEDLESS("ring, log-profile, traces", "the log goes to standard error"),
    MISSING("log-forward", "logs of others are not carried"),
    MISSING("http-errors", NOTE_ERRORS),
    BY_HAND("crt-store", "tls-cert", "tls-cert: each certificate that it lists"),
    MISSING("acme", "certificates are files that others renew"),
    MISSING("fcgi-app", "replicas speak HTTP"),
    {0},
};

/* A directive of one word or several; the longest that fits counts. */
static const struct convert_row directives[] = {
    CALL("bind", "listen", take_bind, NULL),
    CALL("server", "replica", take_server,
         "weight becomes a label; one that is disabled, a backup or of weight 0 becomes a comment"),
    CALL("server-template", "replica-dns", take_server, NULL),
    CALL("default-server", NULL, take_default_server, "as the words of server"),
    SAME("balance roundrobin, balance static-rr", "policy: round_robin"),
    NEARLY("balance leastconn", "policy: least_request", "cache_aware knows caches too: try it"),
    SAME("balance random(1)", "policy: random"),
    SAME("balance random", "policy: power_of_two"),
    NEARLY("balance first", "policy: cache_aware", "replicas are not filled one after another"),
    NEARLY("balance source", "policy: cache_aware", "sessions are known by their prompts"),
    NEARLY("balance uri", "policy: cache_aware", "the path says nothing of a prompt"),
    NEARLY("balance url_param", "policy: cache_aware", "the query says nothing of a prompt"),
    NEARLY("balance rdp-cookie", "policy: cache_aware", NOTE_PREFIX),
    CALL("balance hash, balance hdr", "policy", take_hash,
         "a hash of a header becomes session, with session-header; of the body cache_aware"),
    OTHERWISE("balance", "policy", "no such policy is known here: cache_aware is used"),
    NEEDLESS("hash-type", "sessions are hashed consistently"),
    NEEDLESS("hash-balance-factor", "load-bound is that of prefix_hash"),
    SAME("timeout connect", "upstream-connect-timeout"),
    NEARLY("timeout server", "upstream-idle-timeout",
           "between two pieces of an answer; the first token has upstream-first-token-timeout"),
    NEARLY("timeout client", "client-body-timeout client-write-timeout",
           "the head of a request has client-head-timeout; without a timeout of http-keep-alive it "
           "becomes client-idle-timeout, too"),
    SAME("timeout http-request", "client-head-timeout"),
    SAME("timeout http-keep-alive", "client-idle-timeout"),
    SAME("timeout queue", "queue-timeout"),
    SAME("timeout check", "health-timeout"),
    NEEDLESS("timeout tunnel", "there are no tunnels"),
    NEEDLESS("timeout client-fin, timeout server-fin", "they close by themselves"),
    MISSING("timeout tarpit", NOTE_RULES),
    SAME("retries", "retries-max"),
    NEEDLESS("retry-on", "what is retried before the first token: docs/http.md"),
    NEEDLESS("option redispatch", "a retry goes to another replica"),
    CALL("option httpchk, http-check send", "health-path", take_check, NOTE_GET),
    SAME("http-check expect status", "health-statuses"),
    BY_HAND("http-check expect", "health-statuses",
            "health-statuses: the statuses of a replica that is well; its body does not count"),
    NEEDLESS("http-check connect", "health is asked at the replica's address"),
    NEEDLESS("http-check disable-on-404", "health-statuses lists what is well"),
    NEEDLESS("http-check", NOTE_GET),
    NEEDLESS("option tcp-check", "health is asked by HTTP, at health-path"),
    NEEDLESS("option forwardfor", "X-Forwarded-For is written (forwarded-headers)"),
    SAME("option httplog, option tcplog, option httpslog", "access-log: all"),
    NEEDLESS("option log-health-checks", "each change of health is logged"),
    NEEDLESS("option http-server-close, option httpclose", "upstream-keepalive: 0 does it"),
    NEEDLESS("option http-keep-alive", "connections are kept on both sides"),
    NEEDLESS("option http-buffer-request", "bodies are read before the choice"),
    NEEDLESS("option http-no-delay", "streams are sent on at once"),
    NEEDLESS("option abortonclose", "who hangs up frees the engine at once"),
    NEEDLESS("option prefer-last-server", NOTE_STICK),
    NEEDLESS("option splice-auto", "bytes are not copied where they need not be"),
    NEEDLESS("option dontlognull, option logasap, log, log-format, log-tag", NOTE_LOG),
    NEEDLESS("option contstats, option socket-stats, stats", NOTE_ADMIN),
    NEEDLESS("option tcpka, option clitcpka, option srvtcpka", NOTE_SILENT),
    NEEDLESS("option allbackups", "there are no backups: they become comments"),
    MISSING("option accept-invalid-http-request, option accept-invalid-http-response", NOTE_STRICT),
    MISSING("option external-check, lua-load", NOTE_CODE),
    MISSING("option *", "no such option is known here"),
    SAME("maxconn", "connections-max"),
    NEEDLESS("fullconn", "replica-requests-max limits each replica"),
    NEEDLESS("http-reuse", "connections to replicas are pooled"),
    NEEDLESS("mode", "HTTP, whatever it was"),
    NEEDLESS("default_backend", "there is one set of replicas"),
    MISSING("use_backend, use-server, acl, http-request, tcp-request, tcp-response, redirect",
            NOTE_RULES),
    BY_HAND("a limit by rate", "client-keys-file",
            "client-keys-file: a key may have requests-per-minute=N (gvctl key new); no address is "
            "limited so"),
    BY_HAND("a limit by conn_cur", "connections-per-client-max",
            "connections-per-client-max limits those of an address at once"),
    MISSING("filter bwlim-in, filter bwlim-out, http-request set-bandwidth-limit",
            "no bandwidth is limited"),
    MISSING("http-response, http-after-response, filter, compression", NOTE_EDIT),
    MISSING("errorfile, errorloc, http-error", NOTE_ERRORS),
    NEEDLESS("unique-id-format, unique-id-header", "each request has an x-request-id"),
    MISSING("cookie, stick-table, stick", NOTE_STICK),
    NEEDLESS("monitor-uri, monitor-net", "/readyz and /healthz are at the admin port"),
    NEEDLESS("nbthread, thread-groups", "one thread: run several routers"),
    NEEDLESS("nbproc", "one process: run several routers"),
    NEEDLESS("cpu-map, daemon, master-worker, user, group, chroot, pidfile, ulimit-n",
             NOTE_SYSTEMD),
    NEEDLESS("spread-checks", "health checks are spread by themselves"),
    NEEDLESS("server-state-file, load-server-state-from-file",
             "state comes from the other routers"),
    BY_HAND("setenv, presetenv", NULL, "variables are not replaced: write what they hold"),
    NEEDLESS("backlog", "4,096 connections may wait to be accepted"),
    MISSING("dispatch", "replicas are named one by one"),
    MISSING("source", "the system chooses the address towards replicas"),
    MISSING("capture", "the log has no headers"),
    MISSING("email-alert", NOTE_ALERTS),
    BY_HAND("rate-limit", "client-keys-file", "a key may have requests-per-minute"),
    MISSING("maxconnrate, maxsessrate, maxsslrate", "connections-per-client-max limits clients"),
    NEEDLESS("maxsslconn", "connections-max counts them too"),
    SAME("hard-stop-after", "drain-timeout"),
    SAME("grace", "drain-delay"),
    NEEDLESS("description", "a comment does it"),
    SAME("node, localpeer", "node-name"),
    BY_HAND("peer", "join", NOTE_JOIN),
    CALL("nameserver", "dns-server", take_nameserver, "it is asked for replica-dns"),
    NEEDLESS("ssl-default-bind-options, ssl-default-server-options", "TLS 1.2 and 1.3"),
    MISSING("ssl-default-bind-ciphers, ssl-default-bind-ciphersuites, ssl-default-server-ciphers, "
            "ssl-default-server-ciphersuites",
            "ciphers are chosen by the program"),
    NEARLY("ca-base", "replica-ca-file.base", "files are named by their whole paths"),
    NEARLY("crt-base", "tls-cert.base replica-cert.base replica-key.base",
           "files are named by their whole paths"),
    NEEDLESS("ssl-dh-param-file", "keys are exchanged by ECDHE"),
    BY_HAND("ssl-server-verify", "replica-ca-file",
            "certificates of replicas are always checked: replica-ca-file names their CA"),
    NEEDLESS("tune.*", "nothing of it needs tuning"),
    {0},
};

static const struct convert_row flags[] = {
    CALL("f=", NULL, take_file, "the file"),
    NEEDLESS("W, Ws, D, d, db, q, V, c, p=, x=, S=, sf=, st=", NOTE_SYSTEMD),
    BY_HAND("n=, N=, m=", "connections-max", "maxconn in its file, or connections-max"),
    BY_HAND("L=", "node-name", "node-name"),
    BY_HAND("C=", NULL, "files are named by their whole paths"),
    {0},
};

/* Words behind an address; with "=" one has an argument. */
static const struct convert_row binds[] = {
    READ("ssl", "tls-cert", NULL),
    SAME("crt=", "tls-cert"),
    BY_HAND("alpn h2, proto h2", NULL,
            "it is not spoken: a proxy in front has to take HTTP/1.1 to the router"),
    NEEDLESS("alpn http/1.1, proto h1", "it is what is offered"),
    MISSING("alpn=, npn=, proto=",
            "HTTP/2 is not spoken: clients that offer http/1.1 too take that"),
    BY_HAND("crt-list=", "tls-cert", "tls-cert: each file that it lists"),
    SAME("accept-proxy", "proxy-protocol: on"),
    MISSING("ca-file=, ca-verify-file=, crl-file=, verify=",
            "clients show no certificates; client-keys-file asks for API keys"),
    NEEDLESS("verify none", "clients show no certificates"),
    BY_HAND("tls-ticket-keys=", "tls-ticket-key-file",
            "tls-ticket-key-file: keys of 80 bytes in base64, a line each"),
    NEEDLESS("ciphers=, ciphersuites=, curves=, ecdhe=, "
             "ssl-min-ver=, ssl-max-ver=, no-sslv3, no-tlsv10, "
             "no-tlsv11, prefer-client-ciphers",
             NOTE_TLS12),
    NEEDLESS("v4v6, v6only", "the system says whether [::] takes IPv4 too"),
    NEEDLESS("name=, id=", "there is one listener"),
    NEEDLESS("backlog=, defer-accept, mss=, nice=, process=, shards=, tcp-ut=, tfo, thread=",
             "nothing of it needs tuning"),
    NEEDLESS("mode=, user=, group=, uid=, gid=, level=", "clients come over TCP"),
    BY_HAND("maxconn=", "connections-max", "connections-max is of all clients"),
    {0},
};

static const struct convert_row servers[] = {
    READ("weight=", "replica.weight", "a label"),
    READ("disabled", "replica.disabled", "one that is not in use becomes a comment"),
    READ("enabled", "replica.disabled: off", NULL),
    READ("backup", "replica.backup", "one that is not in use becomes a comment"),
    READ("no-backup", "replica.backup: off", NULL),
    READ("ssl", "replica.ssl", "https://"),
    READ("no-ssl", "replica.ssl: off", NULL),
    CALL("sni=", "replica-tls-name", take_sni, NULL),
    SAME("verifyhost=", "replica-tls-name"),
    READ("check", NULL, "health is always checked"),
    MISSING("no-check", "health is always checked"),
    SAME("inter=", "health-interval"),
    SAME("fall=", "health-failures"),
    NEEDLESS("maxconn 0", "no limit is said: the default holds"),
    SAME("maxconn=", "replica-requests-max"),
    SAME("ca-file=", "replica-ca-file"),
    SAME("crt=", "replica-cert replica-key"),
    BY_HAND("verify none", "replica-ca-file",
            "certificates are always checked: replica-ca-file names their CA, replica-tls-name the "
            "name in them"),
    READ("verify=", NULL, "certificates are always checked"),
    NEEDLESS("rise=", "a replica is back with its first good answer"),
    NEEDLESS("fastinter=, downinter=", "health-interval holds in all states"),
    MISSING("port=", "health is asked at the replica's own port"),
    MISSING("addr=", "health is asked at the replica's own address"),
    NEEDLESS("check-ssl, check-sni=, check-alpn=, check-proto=",
             "health is asked as requests are sent"),
    MISSING("check-send-proxy, send-proxy, send-proxy-v2", "replicas get no PROXY header"),
    BY_HAND("alpn h2, proto h2", NULL,
            "it is not spoken: the engine has to take HTTP/1.1, as vLLM and SGLang do"),
    NEEDLESS("alpn=, proto=, ws=", "HTTP/1.1 is spoken"),
    MISSING("cookie=", NOTE_STICK),
    NEEDLESS("slowstart=", "a replica that comes back is weighed by what it does"),
    NEEDLESS("track=, observe=, error-limit=, on-error=, on-marked-down=, on-marked-up=",
             "what answers wrongly is found out and avoided by itself"),
    MISSING("minconn=", "replica-requests-max is one number"),
    MISSING("maxqueue=", "requests wait in one line (queue-max)"),
    MISSING("agent-check, agent-port=, agent-addr=, agent-inter=, agent-send=",
            "engines are asked over HTTP, for their health and at /metrics"),
    NEEDLESS("resolvers=, init-addr=, resolve-prefer=, resolve-opts=, resolve-net=",
             "names are looked up by themselves; dns-server is for replica-dns"),
    NEEDLESS("ciphers=, ciphersuites=, ssl-min-ver=, ssl-max-ver=", NOTE_TLS12),
    NEEDLESS("pool-max-conn=, pool-low-conn=, pool-purge-delay=, max-reuse=",
             "connections to replicas are pooled"),
    NEEDLESS("id=", "replicas are called by their addresses"),
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

/* An HAProxy configuration: its directives. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/haproxy_internal.h"

#define NOTE_SYSTEMD "systemd or the container does that"
#define NOTE_RULES   "requests are routed by their model and prompt, not by rules"
#define NOTE_EDIT    "heads and bodies are sent on as they are"
#define NOTE_STICK   "stickiness is by the prompt's prefix, or policy: session with session-header"
#define NOTE_ADMIN   "gvctl and /metrics at the admin port have that"
#define NOTE_SILENT  "machines that are silent are found out, on both sides"
#define NOTE_LOG     "the log goes to standard error, one line an event"

/* A directive of one word or several; the longest that fits counts. */
static const struct convert_row rows[] = {
    ROW("bind", MANY, SPECIAL, "listen", "accept-proxy becomes proxy-protocol, crt tls-cert"),
    ROW("server", MANY, SPECIAL, "replica",
        "weight becomes a label; one that is disabled, a backup or of weight 0 becomes a comment"),
    ROW("server-template", MANY, SPECIAL, "replica-dns", NULL),
    ROW("default-server", MANY, SPECIAL, "health-interval", "inter, fall and maxconn"),
    ROW("balance", MANY, SPECIAL, "policy",
        "roundrobin, leastconn, random; a hash of a header becomes session, of the body "
        "cache_aware"),
    ROW("hash-type", MANY, NEEDLESS, NULL, "sessions are hashed consistently"),
    ROW("hash-balance-factor", ONE, NEEDLESS, NULL, "load-bound is that of prefix_hash"),
    ROW("timeout connect", ONE, DURATION, "upstream-connect-timeout", NULL),
    ROW("timeout server", ONE, DURATION, "upstream-idle-timeout",
        "between two pieces of an answer; the first token has upstream-first-token-timeout"),
    ROW("timeout client", ONE, DURATION, "client-body-timeout",
        "clients that do not read have client-write-timeout"),
    ROW("timeout http-request", ONE, DURATION, "client-head-timeout", NULL),
    ROW("timeout http-keep-alive", ONE, DURATION, "client-idle-timeout", NULL),
    ROW("timeout queue", ONE, DURATION, "queue-timeout", NULL),
    ROW("timeout check", ONE, DURATION, "health-timeout", NULL),
    ROW("timeout tunnel", ONE, NEEDLESS, NULL, "there are no tunnels"),
    ROW("timeout client-fin", ONE, NEEDLESS, NULL, "connections that end are closed by themselves"),
    ROW("timeout server-fin", ONE, NEEDLESS, NULL, "connections that end are closed by themselves"),
    ROW("timeout tarpit", ONE, MISSING, NULL, NOTE_RULES),
    ROW("retries", ONE, NUMBER, "retries-max", NULL),
    ROW("retry-on", MANY, NEEDLESS, NULL, "what is retried before the first token: docs/http.md"),
    ROW("option redispatch", ONE, NEEDLESS, NULL, "a retry goes to another replica"),
    ROW("option httpchk", MANY, SPECIAL, "health-path", NULL),
    ROW("http-check send", MANY, SPECIAL, "health-path", "uri"),
    ROW("http-check expect", MANY, SPECIAL, "health-statuses", "status"),
    ROW("http-check connect", MANY, NEEDLESS, NULL, "health is asked at the replica's address"),
    ROW("http-check disable-on-404", ONE, NEEDLESS, NULL,
        "a status outside health-statuses takes a replica out at once"),
    ROW("http-check", MANY, NEEDLESS, NULL, "health is one GET of health-path"),
    ROW("option tcp-check", ONE, NEEDLESS, NULL, "health is asked by HTTP, at health-path"),
    ROW("option forwardfor", MANY, NEEDLESS, NULL,
        "X-Forwarded-For is written (forwarded-headers)"),
    {"option httplog", CONVERT_MANY, CONVERT_FIXED, "access-log", NULL, "all"},
    {"option dontlognull", CONVERT_MANY, CONVERT_NEEDLESS, NULL, NOTE_LOG, NULL},
    ROW("option log-health-checks", ONE, NEEDLESS, NULL, "each change of health is logged"),
    ROW("option http-server-close", ONE, NEEDLESS, NULL, "upstream-keepalive: 0 turns pooling off"),
    ROW("option httpclose", ONE, NEEDLESS, NULL, "upstream-keepalive: 0 turns pooling off"),
    ROW("option http-keep-alive", ONE, NEEDLESS, NULL, "connections are kept on both sides"),
    ROW("option http-buffer-request", ONE, NEEDLESS, NULL, "bodies are read before the choice"),
    ROW("option http-no-delay", ONE, NEEDLESS, NULL, "streams are sent on at once"),
    ROW("option abortonclose", ONE, NEEDLESS, NULL, "who hangs up frees the engine at once"),
    ROW("option prefer-last-server", ONE, NEEDLESS, NULL, NOTE_STICK),
    ROW("option splice-auto", ONE, NEEDLESS, NULL, "bytes are not copied where they need not be"),
    {"option tcplog", CONVERT_MANY, CONVERT_FIXED, "access-log", NULL, "all"},
    {"option httpslog", CONVERT_MANY, CONVERT_FIXED, "access-log", NULL, "all"},
    ROW("option logasap", ONE, NEEDLESS, NULL, NOTE_LOG),
    ROW("option contstats", ONE, NEEDLESS, NULL, NOTE_ADMIN),
    ROW("option socket-stats", ONE, NEEDLESS, NULL, NOTE_ADMIN),
    ROW("option tcpka", ONE, NEEDLESS, NULL, NOTE_SILENT),
    ROW("option clitcpka", ONE, NEEDLESS, NULL, NOTE_SILENT),
    ROW("option srvtcpka", ONE, NEEDLESS, NULL, NOTE_SILENT),
    ROW("option allbackups", ONE, NEEDLESS, NULL, "there are no backups: they become comments"),
    ROW("option accept-invalid-http-request", ONE, MISSING, NULL, "HTTP is read strictly"),
    ROW("option accept-invalid-http-response", ONE, MISSING, NULL, "HTTP is read strictly"),
    ROW("option external-check", ONE, MISSING, NULL, "the router runs no code of others"),
    ROW("option", MANY, MISSING, NULL, "no such option is known here"),
    ROW("maxconn", ONE, NUMBER, "connections-max", NULL),
    ROW("fullconn", ONE, NEEDLESS, NULL, "replica-requests-max limits each replica"),
    ROW("http-reuse", ONE, NEEDLESS, NULL, "connections to replicas are pooled"),
    ROW("mode", ONE, NEEDLESS, NULL, "HTTP, whatever it was"),
    ROW("default_backend", ONE, NEEDLESS, NULL, "there is one set of replicas"),
    ROW("use_backend", MANY, MISSING, NULL, NOTE_RULES),
    ROW("use-server", MANY, MISSING, NULL, NOTE_RULES),
    ROW("acl", MANY, MISSING, NULL, NOTE_RULES),
    ROW("http-request", MANY, MISSING, NULL, NOTE_RULES),
    ROW("http-response", MANY, MISSING, NULL, NOTE_EDIT),
    ROW("http-after-response", MANY, MISSING, NULL, NOTE_EDIT),
    ROW("tcp-request", MANY, MISSING, NULL, NOTE_RULES),
    ROW("tcp-response", MANY, MISSING, NULL, NOTE_RULES),
    ROW("redirect", MANY, MISSING, NULL, NOTE_RULES),
    ROW("filter", MANY, MISSING, NULL, NOTE_EDIT),
    ROW("compression", MANY, MISSING, NULL, NOTE_EDIT),
    ROW("errorfile", MANY, MISSING, NULL, "errors have the form of the API that was asked"),
    ROW("errorloc", MANY, MISSING, NULL, "errors have the form of the API that was asked"),
    ROW("http-error", MANY, MISSING, NULL, "errors have the form of the API that was asked"),
    ROW("unique-id-format", MANY, NEEDLESS, NULL, "each request has an x-request-id"),
    ROW("unique-id-header", ONE, NEEDLESS, NULL, "each request has an x-request-id"),
    ROW("cookie", MANY, MISSING, NULL, NOTE_STICK),
    ROW("stick-table", MANY, MISSING, NULL, NOTE_STICK),
    ROW("stick", MANY, MISSING, NULL, NOTE_STICK),
    ROW("log", MANY, NEEDLESS, NULL, NOTE_LOG),
    ROW("log-format", MANY, NEEDLESS, NULL, NOTE_LOG),
    ROW("log-tag", ONE, NEEDLESS, NULL, NOTE_LOG),
    ROW("stats", MANY, NEEDLESS, NULL, NOTE_ADMIN),
    ROW("monitor-uri", ONE, NEEDLESS, NULL, "/readyz and /healthz are at the admin port"),
    ROW("monitor-net", ONE, NEEDLESS, NULL, "/readyz and /healthz are at the admin port"),
    ROW("nbthread", ONE, NEEDLESS, NULL, "one thread: run several routers"),
    ROW("nbproc", ONE, NEEDLESS, NULL, "one process: run several routers"),
    ROW("cpu-map", MANY, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("daemon", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("master-worker", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("user", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("group", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("chroot", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("pidfile", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("ulimit-n", ONE, NEEDLESS, NULL, NOTE_SYSTEMD),
    ROW("thread-groups", ONE, NEEDLESS, NULL, "one thread: run several routers"),
    ROW("spread-checks", ONE, NEEDLESS, NULL, "health checks are spread by themselves"),
    ROW("server-state-file", ONE, NEEDLESS, NULL, "state comes from the other routers"),
    ROW("load-server-state-from-file", ONE, NEEDLESS, NULL, "state comes from the other routers"),
    ROW("setenv", MANY, BY_HAND, NULL, "variables are not replaced: write what they hold"),
    ROW("presetenv", MANY, BY_HAND, NULL, "variables are not replaced: write what they hold"),
    ROW("backlog", ONE, NEEDLESS, NULL, "4,096 connections may wait to be accepted"),
    ROW("dispatch", ONE, MISSING, NULL, "replicas are named one by one"),
    ROW("source", MANY, MISSING, NULL, "the system chooses the address towards replicas"),
    ROW("capture", MANY, MISSING, NULL, "the log has no headers"),
    ROW("email-alert", MANY, MISSING, NULL, "deploy/prometheus has alerts"),
    ROW("rate-limit", MANY, BY_HAND, "client-keys-file", "a key may have requests-per-minute"),
    ROW("maxconnrate", ONE, MISSING, NULL, "connections-per-client-max limits clients"),
    ROW("maxsslconn", ONE, NEEDLESS, NULL, "connections-max counts them too"),
    ROW("hard-stop-after", ONE, DURATION, "drain-timeout", NULL),
    ROW("grace", ONE, DURATION, "drain-delay", NULL),
    ROW("description", MANY, NEEDLESS, NULL, "a comment does it"),
    ROW("node", ONE, TEXT, "node-name", NULL),
    ROW("localpeer", ONE, TEXT, "node-name", NULL),
    ROW("peer", MANY, BY_HAND, "join", "join names another router, at its gossip port (7490)"),
    ROW("nameserver", MANY, SPECIAL, "dns-server", "it is asked for replica-dns"),
    ROW("ssl-default-bind-options", MANY, NEEDLESS, NULL, "TLS 1.2 and 1.3"),
    ROW("ssl-default-bind-ciphers", MANY, MISSING, NULL, "ciphers are chosen by the program"),
    ROW("ssl-default-bind-ciphersuites", MANY, MISSING, NULL, "ciphers are chosen by the program"),
    ROW("ca-base", ONE, SPECIAL, "replica-ca-file", "files are named by their whole paths"),
    ROW("crt-base", ONE, SPECIAL, "tls-cert", "files are named by their whole paths"),
    ROW("ssl-default-server-options", MANY, NEEDLESS, NULL, "TLS 1.2 and 1.3"),
    ROW("ssl-default-server-ciphers", MANY, MISSING, NULL, "ciphers are chosen by the program"),
    ROW("ssl-default-server-ciphersuites", MANY, MISSING, NULL,
        "ciphers are chosen by the program"),
    ROW("ssl-dh-param-file", ONE, NEEDLESS, NULL, "keys are exchanged by ECDHE"),
    ROW("ssl-server-verify", ONE, BY_HAND, "replica-ca-file",
        "certificates of replicas are always checked: replica-ca-file names their CA"),
    {"tune.*", CONVERT_MANY, CONVERT_NEEDLESS, NULL, "nothing of it needs tuning", NULL},
    ROW("lua-load", ONE, MISSING, NULL, "the router runs no code of others"),
};

static void take_balance(struct convert_state *c, const json_t *words)
{
    static const struct convert_policy policies[] = {
        {"roundrobin", "round_robin", NULL},
        {"static-rr", "round_robin", NULL},
        {"leastconn", "least_request", "cache_aware knows caches too: try it"},
        {"first", "cache_aware", "replicas are not filled one after another"},
        {"source", "cache_aware", "sessions are known by their prompts, not by addresses"},
        {"uri", "cache_aware", "the path says nothing of a prompt"},
        {"url_param", "cache_aware", "the query says nothing of a prompt"},
        {"rdp-cookie", "cache_aware", "the prompt's prefix says more"}};
    const char *kind = convert_word(words, 0), *ours = "cache_aware", *note = NULL;
    char name[128] = "";
    if (strncmp(kind, "hdr(", 4) == 0)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(kind + 4, ",)"), kind + 4);
    const char *sample = strcmp(kind, "hash") == 0 ? strstr(convert_word(words, 1), "hdr(") : NULL;
    if (sample != NULL)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(sample + 4, ",)"), sample + 4);
    if (strncmp(kind, "random", 6) == 0)
        ours =
            strchr(kind, '(') != NULL && strcmp(kind, "random(1)") != 0 ? "power_of_two" : "random";
    if (strcmp(kind, "random") == 0)
        ours = "power_of_two"; /* HAProxy draws two by default */
    if (strcmp(kind, "hash") == 0)
        note = "the prompt's prefix says more";
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        size_t len = strlen(policies[i].theirs);
        if (strncmp(policies[i].theirs, kind, len) == 0 &&
            (kind[len] == '\0' || kind[len] == '(')) {
            ours = policies[i].ours;
            note = policies[i].note;
        }
    }
    if (name[0] != '\0') {
        ours = "session";
        convert_set(c, "session-header", name, "balance");
        note = "cache_aware finds sessions by their prompts, and moves them when it must: try it";
    }
    convert_set(c, "policy", ours, "balance");
    convert_note(c, CONVERT_DID, "balance", note);
}

/* A path behind "GET", "uri", or alone. */
static void take_check_path(struct convert_state *c, const char *flag, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        if (convert_word(words, i)[0] == '/') {
            convert_set(c, "health-path", convert_word(words, i), flag);
            break;
        }
    }
}

/* "200-399" is "200..399" here. */
static void take_expect(struct convert_state *c, const json_t *words)
{
    char text[64];
    size_t n = 0, last = json_array_size(words) - 1;
    bool status = last > 0 && convert_is(words, last - 1, "status");
    bool negated = last > 1 && convert_is(words, last - 2, "!");
    const char *from = status && !negated ? convert_word(words, last) : "";
    for (; *from != '\0' && n + 3 < sizeof text; from++) {
        text[n++] = *from == '-' ? '.' : *from;
        if (*from == '-')
            text[n++] = '.';
    }
    text[n] = '\0';
    if (n > 0)
        convert_set(c, "health-statuses", text, "http-check expect");
    else
        convert_note(
            c, CONVERT_HAND, "http-check expect",
            "health-statuses: the statuses of a replica that is well; its body does not count");
}

static void set_nameserver(struct convert_state *c, const json_t *words)
{
    const char *at = convert_word(words, 1);
    if (strchr(at, '/') != NULL || strchr(at, '@') != NULL) {
        convert_note(c, CONVERT_HAND, "nameserver", "dns-server: IP:PORT, for replica-dns");
        return;
    }
    convert_set(c, "dns-server", at, "nameserver");
}

/* A folder in which files of that kind are. */
static void take_base(char *out, size_t size, const json_t *words)
{
    (void)snprintf(out, size, "%s", convert_word(words, 0));
}

static void special(struct convert_state *c, const struct convert_row *row, const json_t *words)
{
    static const struct {
        const char *flag;
        void (*take)(struct convert_state *c, const json_t *words);
    } takers[] = {{"bind", convert_haproxy_bind},
                  {"server", convert_haproxy_server},
                  {"server-template", convert_haproxy_server_template},
                  {"default-server", convert_haproxy_default_server},
                  {"balance", take_balance},
                  {"http-check expect", take_expect},
                  {"nameserver", set_nameserver}};
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
        if (strcmp(row->flag, takers[i].flag) == 0) {
            takers[i].take(c, words);
            return;
        }
    }
    if (strcmp(row->flag, "crt-base") == 0)
        take_base(c->crt_base, sizeof c->crt_base, words);
    else if (strcmp(row->flag, "ca-base") == 0)
        take_base(c->ca_base, sizeof c->ca_base, words);
    else
        take_check_path(c, row->flag, words);
}

static const struct convert_policy policies[] = {{NULL, NULL, NULL}};

const struct convert_router convert_haproxy = {
    .name = "haproxy",
    .title = "HAProxy",
    .source = "the HAProxy 2.6 configuration manual",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .is_config = true,
    .special = special,
};

void convert_haproxy_line(struct convert_state *c, json_t *words)
{
    char two[160];
    if (strcmp(convert_word(words, 0), "no") == 0) /* "no option X" */
        return;
    (void)snprintf(two, sizeof two, "%s %s", convert_word(words, 0), convert_word(words, 1));
    const struct convert_row *row = convert_find(&convert_haproxy, slice_of_cstr(two));
    size_t used = row != NULL ? 2 : 1;
    if (row == NULL)
        row = convert_find(&convert_haproxy, slice_of_cstr(convert_word(words, 0)));
    if (row == NULL && strncmp(convert_word(words, 0), "tune.", 5) == 0)
        row = convert_find(&convert_haproxy, SLICE("tune.*"));
    if (row == NULL) {
        convert_note(c, CONVERT_NONE, convert_word(words, 0), "this directive is not known here");
        return;
    }
    if (strcmp(row->flag, "option") == 0) {
        convert_note(c, CONVERT_NONE, two, row->note);
        return;
    }
    while (used-- > 0)
        (void)json_array_remove(words, 0);
    convert_take(c, row, words);
}

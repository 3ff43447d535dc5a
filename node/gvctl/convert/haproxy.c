/* An HAProxy configuration: the sections that the engines are in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"

#define NOTE_SYSTEMD "systemd or the container does that"
#define NOTE_RULES   "requests are routed by their model and prompt, not by rules"
#define NOTE_EDIT    "heads and bodies are sent on as they are"
#define NOTE_STICK   "stickiness is by the prompt's prefix, or policy: session with session-header"
#define NOTE_ADMIN   "gvctl and /metrics at the admin port have that"
#define NOTE_LOG     "the log goes to standard error, one line an event"

/* A directive of one word or several; the longest that fits counts. */
static const struct convert_row rows[] = {
    ROW("bind", MANY, SPECIAL, "listen", "accept-proxy becomes proxy-protocol, crt tls-cert"),
    ROW("server", MANY, SPECIAL, "replica", "weight becomes a label; what else it says is listed"),
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
    ROW("hard-stop-after", ONE, DURATION, "drain-timeout", NULL),
    ROW("grace", ONE, DURATION, "drain-delay", NULL),
    ROW("description", MANY, NEEDLESS, NULL, "a comment does it"),
    ROW("node", ONE, TEXT, "node-name", NULL),
    ROW("localpeer", ONE, TEXT, "node-name", NULL),
    ROW("peer", MANY, BY_HAND, "join", "join names another router, at its gossip port (7490)"),
    ROW("nameserver", MANY, BY_HAND, "dns-server", "dns-server: IP:PORT, for replica-dns"),
    ROW("ssl-default-bind-options", MANY, NEEDLESS, NULL, "TLS 1.2 and 1.3"),
    ROW("ssl-default-bind-ciphers", MANY, MISSING, NULL, "ciphers are chosen by the program"),
    ROW("ssl-default-bind-ciphersuites", MANY, MISSING, NULL, "ciphers are chosen by the program"),
    ROW("ca-base", ONE, NEEDLESS, NULL, "files are named by their whole paths"),
    ROW("crt-base", ONE, NEEDLESS, NULL, "files are named by their whole paths"),
    {"tune.*", CONVERT_MANY, CONVERT_NEEDLESS, NULL, "nothing of it needs tuning", NULL},
    ROW("lua-load", ONE, MISSING, NULL, "the router runs no code of others"),
};

static const char *word(const json_t *words, size_t i)
{
    const char *text = json_string_value(json_array_get(words, i));
    return text != NULL ? text : "";
}

/* The word behind `key`, from words[from] on; NULL: it is not there. */
static const char *behind(const json_t *words, size_t from, const char *key)
{
    for (size_t i = from; i < json_array_size(words); i++) {
        if (strcmp(word(words, i), key) == 0)
            return word(words, i + 1);
    }
    return NULL;
}

static void take_bind(struct convert_state *c, const json_t *words)
{
    char address[300];
    struct slice at = slice_of_cstr(word(words, 0));
    size_t colon = at.len;
    while (colon > 0 && at.at[colon - 1] != ':')
        colon--;
    struct slice host = slice_of(at.at, colon > 0 ? colon - 1 : 0);
    if (host.len == 0 || slice_equal(host, SLICE("*")))
        host = SLICE("0.0.0.0");
    (void)snprintf(address, sizeof address, "%.*s:%.*s", SLICE_ARG(host),
                   SLICE_ARG(slice_skip(at, colon)));
    if (c->listen_given) {
        convert_note(c, CONVERT_NONE, "bind", "clients connect at one address: the first is used");
        return;
    }
    c->listen_given = true;
    convert_set(c, "listen", address, "bind");
    if (behind(words, 1, "accept-proxy") != NULL)
        convert_set(c, "proxy-protocol", "on", "bind: accept-proxy");
    if (behind(words, 1, "crt") != NULL)
        convert_set(c, "tls-cert", behind(words, 1, "crt"), "bind: crt");
    convert_note(c, CONVERT_DID, "bind", NULL);
}

/* inter, fall, maxconn: of a server, but ours are of all. */
static void take_checks(struct convert_state *c, const json_t *words, size_t from)
{
    const char *inter = behind(words, from, "inter"), *fall = behind(words, from, "fall");
    const char *most = behind(words, from, "maxconn");
    char time[64];
    if (inter != NULL && convert_duration(slice_of_cstr(inter), time, sizeof time))
        convert_set(c, "health-interval", time, "inter");
    if (fall != NULL)
        convert_set(c, "health-failures", fall, "fall");
    if (most != NULL)
        convert_set(c, "replica-requests-max", most, "maxconn of a server");
}

static void take_server(struct convert_state *c, const json_t *words)
{
    static const char *const lost[][2] = {
        {"backup", "there are no backups: all replicas serve"},
        {"cookie", NOTE_STICK},
        {"send-proxy", "replicas get no PROXY header"},
        {"send-proxy-v2", "replicas get no PROXY header"},
        {"slowstart", "a replica that comes back is weighed by what it does"},
        {"disabled", "it is among the replicas: gvctl drain takes it out"}};
    const char *weight = behind(words, 2, "weight");
    bool tls = behind(words, 2, "ssl") != NULL;
    const char *address = word(words, 1);
    char url[400];
    (void)snprintf(url, sizeof url, "%s://%s", tls ? "https" : "http", address);
    if (strchr(address, ':') == NULL) {
        convert_note(c, CONVERT_HAND, "server", "its address has no port");
        return;
    }
    if (weight != NULL && strtod(weight, NULL) > 0 && strcmp(weight, "1") != 0) {
        size_t len = strlen(url);
        (void)snprintf(url + len, sizeof url - len, "#weight=%s", weight);
    }
    convert_set(c, "replica", url, "server");
    take_checks(c, words, 2);
    if (behind(words, 2, "ca-file") != NULL)
        convert_set(c, "replica-ca-file", behind(words, 2, "ca-file"), "server: ca-file");
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        if (behind(words, 2, lost[i][0]) != NULL) {
            char what[64];
            (void)snprintf(what, sizeof what, "server: %s", lost[i][0]);
            convert_note(c, CONVERT_NONE, what, lost[i][1]);
        }
    }
    convert_note(c, CONVERT_DID, "server", NULL);
}

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
    const char *kind = word(words, 0), *ours = "cache_aware", *note = NULL;
    char name[128] = "";
    if (strncmp(kind, "hdr(", 4) == 0)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(kind + 4, ",)"), kind + 4);
    const char *sample = strcmp(kind, "hash") == 0 ? strstr(word(words, 1), "hdr(") : NULL;
    if (sample != NULL)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(sample + 4, ",)"), sample + 4);
    if (strncmp(kind, "random", 6) == 0)
        ours =
            strchr(kind, '(') != NULL && strcmp(kind, "random(1)") != 0 ? "power_of_two" : "random";
    if (strcmp(kind, "random") == 0)
        ours = "power_of_two"; /* HAProxy draws two by default */
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        if (strcmp(policies[i].theirs, kind) == 0) {
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
        if (word(words, i)[0] == '/') {
            convert_set(c, "health-path", word(words, i), flag);
            break;
        }
    }
    convert_note(c, CONVERT_DID, flag, NULL);
}

static void take_expect(struct convert_state *c, const json_t *words)
{
    const char *status = behind(words, 0, "status");
    char text[64];
    size_t n = 0;
    for (; status != NULL && status[0] != '\0' && n + 3 < sizeof text; status++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", "");
        if (*status == '-') {
            text[n++] = '.';
            text[n++] = '.';
        } else {
            text[n++] = *status;
        }
    }
    text[n] = '\0';
    if (n > 0 && behind(words, 0, "!") == NULL) {
        convert_set(c, "health-statuses", text, "http-check expect");
        convert_note(c, CONVERT_DID, "http-check expect", NULL);
    } else {
        convert_note(c, CONVERT_NONE, "http-check expect", "only statuses count, no bodies");
    }
}

static void special(struct convert_state *c, const struct convert_row *row, const json_t *words)
{
    if (strcmp(row->flag, "bind") == 0) {
        take_bind(c, words);
    } else if (strcmp(row->flag, "server") == 0) {
        take_server(c, words);
    } else if (strcmp(row->flag, "server-template") == 0) {
        convert_set(c, "replica-dns", word(words, 2), "server-template");
        take_checks(c, words, 3);
        convert_note(c, CONVERT_DID, row->flag, NULL);
    } else if (strcmp(row->flag, "default-server") == 0) {
        take_checks(c, words, 0);
        convert_note(c, CONVERT_DID, row->flag, NULL);
    } else if (strcmp(row->flag, "balance") == 0) {
        take_balance(c, words);
    } else if (strcmp(row->flag, "http-check expect") == 0) {
        take_expect(c, words);
    } else {
        take_check_path(c, row->flag, words);
    }
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

static bool is_section(const char *first)
{
    static const char *const names[] = {"global",  "defaults",  "frontend",    "backend",  "listen",
                                        "peers",   "resolvers", "userlist",    "mailers",  "cache",
                                        "program", "ring",      "http-errors", "crt-store"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(first, names[i]) == 0)
            return true;
    }
    return false;
}

static void take_line(struct convert_state *c, json_t *words)
{
    char two[160];
    if (strcmp(word(words, 0), "no") == 0) /* "no option X" */
        return;
    (void)snprintf(two, sizeof two, "%s %s", word(words, 0), word(words, 1));
    const struct convert_row *row = convert_find(&convert_haproxy, slice_of_cstr(two));
    size_t used = row != NULL ? 2 : 1;
    if (row == NULL)
        row = convert_find(&convert_haproxy, slice_of_cstr(word(words, 0)));
    if (row == NULL && strncmp(word(words, 0), "tune.", 5) == 0)
        row = convert_find(&convert_haproxy, SLICE("tune.*"));
    if (row == NULL) {
        convert_note(c, CONVERT_NONE, word(words, 0), "this directive is not known here");
        return;
    }
    while (used-- > 0)
        (void)json_array_remove(words, 0);
    convert_take(c, row, words);
}

void convert_haproxy_text(struct convert_state *c, struct slice text)
{
    while (text.len > 0) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        if (json_array_size(words) > 0 && !is_section(word(words, 0)))
            take_line(c, words);
        json_decref(words);
    }
}

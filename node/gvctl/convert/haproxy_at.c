/* Of an HAProxy configuration: addresses, and what is said behind them on their lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "node/gvctl/convert/haproxy_internal.h"

#define NOTE_FOUND "what answers wrongly is found out and avoided by itself"
#define NOTE_NAMES "names are looked up by themselves; dns-server is for replica-dns"
#define NOTE_TLS12 "TLS 1.2 and 1.3, with the program's ciphers"
#define NOTE_POOL  "connections to replicas are pooled"
#define NOTE_AGENT "engines are asked over HTTP, for their health and at /metrics"

/* The word behind `key`, from words[from] on; NULL: it is not there. */
static const char *behind(const json_t *words, size_t from, const char *key)
{
    for (size_t i = from; i < json_array_size(words); i++) {
        if (convert_is(words, i, key))
            return convert_word(words, i + 1);
    }
    return NULL;
}

/* "HOST:PORT" as a setting writes it; false: it is no address of TCP. A host that is left out, or
 * "*", is `any`. */
static bool read_address(struct slice text, const char *any, char *out, size_t size)
{
    static const char *const families[] = {"ipv4@", "ipv6@", "tcp4@", "tcp6@", "tcp@"};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (slice_starts_with(text, slice_of_cstr(families[i])))
            text = slice_skip(text, strlen(families[i]));
    }
    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':')
        colon--;
    struct slice host = slice_of(text.at, colon > 0 ? colon - 1 : 0);
    if (text.len == 0 || text.at[0] == '/' || slice_find(text, '@') < text.len)
        return false;
    if (host.len == 0 || slice_equal(host, SLICE("*")))
        host = slice_of_cstr(any);
    bool bare = slice_find(host, ':') < host.len && host.at[0] != '['; /* an IPv6 address */
    (void)snprintf(out, size, "%s%.*s%s:%.*s", bare ? "[" : "", SLICE_ARG(host), bare ? "]" : "",
                   SLICE_ARG(slice_skip(text, colon)));
    return colon > 0 && colon < text.len;
}

/* A file, by the folder that the global section names for those of its kind. */
static void set_file(struct convert_state *c, const char *setting, const char *base,
                     const char *path, const char *origin)
{
    char whole[600], note[700];
    struct stat status;
    bool under = path[0] != '/' && base[0] != '\0';
    (void)snprintf(whole, sizeof whole, "%s%s%s", under ? base : "", under ? "/" : "", path);
    bool folder = whole[0] != '\0' && whole[strlen(whole) - 1] == '/';
    if (folder || (stat(whole, &status) == 0 && S_ISDIR(status.st_mode))) {
        (void)snprintf(note, sizeof note, "%s: the name of each file in %s, one an entry", setting,
                       whole);
        convert_note(c, CONVERT_HAND, origin, note);
        return;
    }
    convert_set(c, setting, whole, origin);
}

/* --- bind ------------------------------------------------------------------------------------ */

void convert_haproxy_bind(struct convert_state *c, const json_t *words)
{
    char address[300], note[400];
    struct slice rest = slice_of_cstr(convert_word(words, 0));
    struct slice first = slice_cut(&rest, ',');
    if (!read_address(first, "0.0.0.0", address, sizeof address)) {
        (void)snprintf(note, sizeof note, "%.*s: want HOST:PORT; clients come over TCP",
                       SLICE_ARG(first));
        convert_note(c, CONVERT_HAND, "bind", note);
        return;
    }
    c->listen_given = true;
    convert_set(c, "listen", address, "bind");
    if (rest.len > 0)
        convert_note(c, CONVERT_NONE, "bind", "clients connect at one address: the first is used");
    if (behind(words, 1, "accept-proxy") != NULL)
        convert_set(c, "proxy-protocol", "on", "bind: accept-proxy");
    for (size_t i = 1; i < json_array_size(words); i++) {
        if (convert_is(words, i, "crt"))
            set_file(c, "tls-cert", c->crt_base, convert_word(words, ++i), "bind: crt");
        else if (convert_is(words, i, "crt-list"))
            convert_note(c, CONVERT_HAND, "bind: crt-list", "tls-cert: each file that it lists");
        else if (convert_is(words, i, "ca-file"))
            convert_note(c, CONVERT_NONE, "bind: ca-file",
                         "clients show no certificates; client-keys-file asks for API keys");
        else if (convert_is(words, i, "tls-ticket-keys"))
            convert_note(c, CONVERT_HAND, "bind: tls-ticket-keys",
                         "tls-ticket-key-file: keys of 80 bytes in base64, a line each");
    }
}

/* --- servers --------------------------------------------------------------------------------- */

/* What a server's line may say; NULL as its note: it is read elsewhere, or says nothing here. */
static const struct {
    const char *word;
    bool argument;
    enum convert_kind kind;
    const char *note;
} says[] = {
    {"check", false, CONVERT_DID, NULL},
    {"enabled", false, CONVERT_DID, NULL},
    {"no-check", false, CONVERT_NONE, "health is always checked"},
    {"weight", true, CONVERT_DID, NULL},
    {"inter", true, CONVERT_DID, NULL},
    {"fall", true, CONVERT_DID, NULL},
    {"maxconn", true, CONVERT_DID, NULL},
    {"ssl", false, CONVERT_DID, NULL},
    {"no-ssl", false, CONVERT_DID, NULL},
    {"ca-file", true, CONVERT_DID, NULL},
    {"crt", true, CONVERT_DID, NULL},
    {"verify", true, CONVERT_DID, NULL},
    {"verifyhost", true, CONVERT_DID, NULL},
    {"sni", true, CONVERT_DID, NULL},
    {"rise", true, CONVERT_NOT_NEEDED, "a replica is back with its first good answer"},
    {"fastinter", true, CONVERT_NOT_NEEDED, "health-interval holds in all states"},
    {"downinter", true, CONVERT_NOT_NEEDED, "health-interval holds in all states"},
    {"port", true, CONVERT_NONE, "health is asked at the replica's own port"},
    {"addr", true, CONVERT_NONE, "health is asked at the replica's own address"},
    {"check-ssl", false, CONVERT_NOT_NEEDED, "health is asked as requests are sent"},
    {"check-sni", true, CONVERT_NOT_NEEDED, "health is asked as requests are sent"},
    {"check-alpn", true, CONVERT_NOT_NEEDED, "health is asked as requests are sent"},
    {"check-proto", true, CONVERT_NOT_NEEDED, "health is asked as requests are sent"},
    {"check-send-proxy", false, CONVERT_NONE, "replicas get no PROXY header"},
    {"send-proxy", false, CONVERT_NONE, "replicas get no PROXY header"},
    {"send-proxy-v2", false, CONVERT_NONE, "replicas get no PROXY header"},
    {"alpn", true, CONVERT_NOT_NEEDED, "HTTP/1.1 is spoken"},
    {"proto", true, CONVERT_NOT_NEEDED, "HTTP/1.1 is spoken"},
    {"ws", true, CONVERT_NOT_NEEDED, "HTTP/1.1 is spoken"},
    {"backup", false, CONVERT_DID, NULL},
    {"no-backup", false, CONVERT_DID, NULL},
    {"disabled", false, CONVERT_DID, NULL},
    {"cookie", true, CONVERT_NONE,
     "stickiness is by the prompt's prefix, or policy: session with session-header"},
    {"slowstart", true, CONVERT_NOT_NEEDED, "a replica that comes back is weighed by what it does"},
    {"track", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"observe", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"error-limit", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"on-error", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"on-marked-down", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"on-marked-up", true, CONVERT_NOT_NEEDED, NOTE_FOUND},
    {"minconn", true, CONVERT_NONE, "replica-requests-max is one number"},
    {"maxqueue", true, CONVERT_NONE, "requests wait in one line (queue-max)"},
    {"agent-check", false, CONVERT_NONE, NOTE_AGENT},
    {"agent-port", true, CONVERT_NONE, NOTE_AGENT},
    {"agent-addr", true, CONVERT_NONE, NOTE_AGENT},
    {"agent-inter", true, CONVERT_NONE, NOTE_AGENT},
    {"agent-send", true, CONVERT_NONE, NOTE_AGENT},
    {"resolvers", true, CONVERT_NOT_NEEDED, NOTE_NAMES},
    {"init-addr", true, CONVERT_NOT_NEEDED, NOTE_NAMES},
    {"resolve-prefer", true, CONVERT_NOT_NEEDED, NOTE_NAMES},
    {"resolve-opts", true, CONVERT_NOT_NEEDED, NOTE_NAMES},
    {"resolve-net", true, CONVERT_NOT_NEEDED, NOTE_NAMES},
    {"ciphers", true, CONVERT_NOT_NEEDED, NOTE_TLS12},
    {"ciphersuites", true, CONVERT_NOT_NEEDED, NOTE_TLS12},
    {"ssl-min-ver", true, CONVERT_NOT_NEEDED, NOTE_TLS12},
    {"ssl-max-ver", true, CONVERT_NOT_NEEDED, NOTE_TLS12},
    {"pool-max-conn", true, CONVERT_NOT_NEEDED, NOTE_POOL},
    {"pool-low-conn", true, CONVERT_NOT_NEEDED, NOTE_POOL},
    {"pool-purge-delay", true, CONVERT_NOT_NEEDED, NOTE_POOL},
    {"max-reuse", true, CONVERT_NOT_NEEDED, NOTE_POOL},
    {"id", true, CONVERT_NOT_NEEDED, "replicas are called by their addresses"},
};

static int find_word(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        if (strcmp(says[i].word, word) == 0)
            return (int)i;
    }
    return -1;
}

/* What is said of a server, and has none or another counterpart. */
static void note_words(struct convert_state *c, const json_t *words, size_t from)
{
    char what[96];
    for (size_t i = from; i < json_array_size(words); i++) {
        int row = find_word(convert_word(words, i));
        (void)snprintf(what, sizeof what, "server: %s", convert_word(words, i));
        if (row < 0) { /* and whether the next is its argument is not known either */
            convert_note(c, CONVERT_NONE, what, "what it says of a server is not known here");
            return;
        }
        if (says[row].note != NULL)
            convert_note(c, says[row].kind, what, says[row].note);
        i += says[row].argument ? 1 : 0;
    }
}

/* The name that its certificate must have. */
static void take_name(struct convert_state *c, const json_t *words, size_t from)
{
    const char *host = behind(words, from, "verifyhost"), *sni = behind(words, from, "sni");
    char name[256];
    if (host == NULL && sni != NULL && strncmp(sni, "str(", 4) == 0) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(sni + 4, ")"), sni + 4);
        host = name;
    }
    if (host != NULL)
        convert_set(c, "replica-tls-name", host, "server: sni, verifyhost");
}

/* Of a server, but ours are of all. */
static void take_rest(struct convert_state *c, const json_t *words, size_t from)
{
    const char *inter = behind(words, from, "inter"), *fall = behind(words, from, "fall");
    const char *most = behind(words, from, "maxconn"), *ca = behind(words, from, "ca-file");
    const char *verify = behind(words, from, "verify"), *crt = behind(words, from, "crt");
    char time[64];
    if (inter != NULL && convert_duration(slice_of_cstr(inter), time, sizeof time))
        convert_set(c, "health-interval", time, "inter");
    if (fall != NULL)
        convert_set(c, "health-failures", fall, "fall");
    if (most != NULL && strcmp(most, "0") != 0)
        convert_set(c, "replica-requests-max", most, "maxconn of a server");
    if (ca != NULL && ca[0] != '@') /* @system-ca is what is taken without a setting */
        set_file(c, "replica-ca-file", c->ca_base, ca, "server: ca-file");
    if (crt != NULL) {
        set_file(c, "replica-cert", c->crt_base, crt, "server: crt");
        set_file(c, "replica-key", c->crt_base, crt, "server: crt");
    }
    if (verify != NULL && strcmp(verify, "none") == 0)
        convert_note(c, CONVERT_HAND, "server: verify none",
                     "certificates are always checked: replica-ca-file names their CA, "
                     "replica-tls-name the name in them");
    take_name(c, words, from);
    note_words(c, words, from);
}

/* It is spoken by a server without a word of its own where a default-server says so. */
static bool speaks_tls(const struct convert_state *c, const json_t *words, size_t from)
{
    bool off = behind(words, from, "no-ssl") != NULL;
    return !off && (c->servers.tls || behind(words, from, "ssl") != NULL);
}

/* Whether it says so itself: not as the argument of something else, such as a cookie. */
static bool says_word(const json_t *words, size_t from, const char *word)
{
    for (size_t i = from; i < json_array_size(words); i++) {
        int row = find_word(convert_word(words, i));
        if (convert_is(words, i, word))
            return true;
        i += row >= 0 && says[row].argument ? 1 : 0;
    }
    return false;
}

/* Why no requests go to it; NULL: they do. */
static const char *out_of_use(const struct convert_state *c, const json_t *words, size_t from)
{
    const char *weight = behind(words, from, "weight");
    bool disabled = c->servers.disabled || says_word(words, from, "disabled");
    bool backup = c->servers.backup || says_word(words, from, "backup");
    if (disabled && !says_word(words, from, "enabled"))
        return "disabled there";
    if (weight != NULL && strtod(weight, NULL) == 0)
        return "weight 0 there";
    if (backup && !says_word(words, from, "no-backup"))
        return "a backup there, and here are none";
    return NULL;
}

/* `how`: how one that is not in use comes into it. */
static void set_or_leave(struct convert_state *c, const char *setting, const char *value,
                         const char *origin, const char *why_not, const char *how)
{
    char why[200];
    if (why_not == NULL) {
        convert_set(c, setting, value, origin);
        return;
    }
    (void)snprintf(why, sizeof why, "%s: %s", why_not, how);
    convert_leave(c, setting, value, origin, why);
}

void convert_haproxy_server(struct convert_state *c, const json_t *words)
{
    const char *weight = behind(words, 2, "weight"), *said = convert_word(words, 1);
    char address[300], url[400], note[400];
    if (!read_address(slice_of_cstr(said), "127.0.0.1", address, sizeof address)) {
        (void)snprintf(note, sizeof note, "%s: want HOST:PORT of an engine", said);
        convert_note(c, CONVERT_HAND, "server", note);
        return;
    }
    (void)snprintf(url, sizeof url, "%s://%s", speaks_tls(c, words, 2) ? "https" : "http", address);
    double share = weight != NULL ? strtod(weight, NULL) : 1;
    if (share > 0 && share != 1) {
        size_t len = strlen(url);
        (void)snprintf(url + len, sizeof url - len, "#weight=%s", weight);
    }
    set_or_leave(c, "replica", url, "server", out_of_use(c, words, 2), "gvctl add brings it in");
    take_rest(c, words, 2);
}

void convert_haproxy_server_template(struct convert_state *c, const json_t *words)
{
    char name[400];
    const char *said = convert_word(words, 2);
    bool srv = said[0] == '_'; /* its records give the ports */
    (void)snprintf(name, sizeof name, "%s%.*s", speaks_tls(c, words, 3) ? "https://" : "",
                   srv ? (int)strcspn(said, ":") : (int)strlen(said), said);
    set_or_leave(c, "replica-dns", name, "server-template", out_of_use(c, words, 3),
                 "uncomment it to use it");
    take_rest(c, words, 3);
}

void convert_haproxy_default_server(struct convert_state *c, const json_t *words)
{
    c->servers.tls = c->servers.tls || says_word(words, 0, "ssl");
    c->servers.disabled = c->servers.disabled || says_word(words, 0, "disabled");
    c->servers.backup = c->servers.backup || says_word(words, 0, "backup");
    take_rest(c, words, 0);
}

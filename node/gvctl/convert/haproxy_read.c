/* An HAProxy configuration, read: lines by their rows, and which sections lead to engines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert_internal.h"

enum { NAMES_MAX = 8 /* of backends, in a note */ };

static bool is(const json_t *words, size_t i, const char *word)
{
    return strcmp(convert_word(words, i), word) == 0;
}

/* --- bind and server lines ------------------------------------------------------------------- */

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

/* Words of a line from words[from] on, by their rows and as {word: argument}. */
static void take_words(struct convert_state *c, const char *line, const json_t *words, size_t from,
                       json_t *said)
{
    bool known = true;
    for (size_t i = from; i < json_array_size(words); i++) {
        char name[160], value[160], unknown[80];
        const char *word = convert_word(words, i), *next = convert_word(words, i + 1);
        (void)snprintf(name, sizeof name, "%s: %s", line, word);
        (void)snprintf(value, sizeof value, "%s: %s %s", line, word, next);
        struct convert_found found =
            convert_find_value(&convert_haproxy, slice_of_cstr(name), next);
        (void)snprintf(unknown, sizeof unknown, "what it says of a %s is not known here", line);
        if (found.row == NULL && known) /* what follows may be its arguments */
            convert_note(c, CONVERT_NONE, name, unknown);
        known = found.row != NULL;
        if (!known)
            continue;
        bool by_value = found.name.len > strlen(name);
        json_t *values = json_pack("[s]", found.value || by_value ? next : "");
        i += found.value || by_value ? 1 : 0;
        if (strcmp(word, "enabled") == 0)
            (void)json_object_del(said, "disabled");
        if (strncmp(word, "no-", 3) == 0)
            (void)json_object_del(said, word + 3);
        (void)json_object_set(said, word, json_array_get(values, 0));
        convert_take(c, found, by_value ? value : name, values);
        json_decref(values);
    }
}

static void take_bind(struct convert_state *c, const json_t *words)
{
    char address[300], note[400];
    struct slice rest = slice_of_cstr(convert_word(words, 0));
    struct slice first = slice_cut(&rest, ',');
    json_t *said = json_object();
    if (read_address(first, "0.0.0.0", address, sizeof address)) {
        convert_set(c, "listen", address, "bind");
        if (rest.len > 0)
            convert_note(c, CONVERT_NONE, "bind",
                         "clients connect at one address: the first is used");
        take_words(c, "bind", words, 1, said);
    } else {
        (void)snprintf(note, sizeof note, "%.*s: want HOST:PORT; clients come over TCP",
                       SLICE_ARG(first));
        convert_note(c, CONVERT_HAND, "bind", note);
    }
    json_decref(said);
}

/* The name that its certificate must have. */
static void take_name(struct convert_state *c, const json_t *said)
{
    const char *host = json_string_value(json_object_get(said, "verifyhost"));
    const char *sni = json_string_value(json_object_get(said, "sni"));
    char name[256] = "";
    if (host != NULL)
        (void)snprintf(name, sizeof name, "%s", host);
    else if (sni != NULL && strncmp(sni, "str(", 4) == 0)
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(sni + 4, ")"), sni + 4);
    if (name[0] != '\0')
        convert_set(c, "replica-tls-name", name, "server: sni, verifyhost");
    else if (sni != NULL)
        convert_note(c, CONVERT_HAND, "server: sni",
                     "replica-tls-name: one name, which no request changes");
}

/* A replica, or a name that DNS has many under; with what default-server says. */
static void take_servers(struct convert_state *c, const json_t *words, bool template)
{
    char address[300], text[400], why[200];
    const char *at = convert_word(words, template ? 2 : 1);
    if (!template && !read_address(slice_of_cstr(at), "127.0.0.1", address, sizeof address)) {
        (void)snprintf(text, sizeof text, "%s: want HOST:PORT of an engine", at);
        convert_note(c, CONVERT_HAND, "server", text);
        return;
    }
    json_t *said = json_deep_copy(c->servers);
    take_words(c, "server", words, template ? 3 : 2, said);
    take_name(c, said);
    const char *weight = json_string_value(json_object_get(said, "weight"));
    double share = weight != NULL ? strtod(weight, NULL) : 1;
    bool tls = json_object_get(said, "ssl") != NULL, label = share > 0 && share != 1 && !template;
    const char *what = json_object_get(said, "disabled") != NULL ? "disabled there: "
                       : weight != NULL && share == 0            ? "weight 0 there: "
                       : json_object_get(said, "backup") != NULL
                           ? "a backup there, and here are none: "
                           : "";
    (void)snprintf(why, sizeof why, "%s%s", what,
                   what[0] == '\0' ? ""
                   : template      ? "uncomment it to use it"
                                   : "gvctl add brings it in");
    if (template) /* a service's records give the ports */
        (void)snprintf(address, sizeof address, "%.*s",
                       (int)(at[0] == '_' ? strcspn(at, ":") : strlen(at)), at);
    (void)snprintf(text, sizeof text, "%s%s%s%s",
                   tls        ? "https://"
                   : template ? ""
                              : "http://",
                   address, label ? "#weight=" : "", label ? weight : "");
    convert_leave(c, template ? "replica-dns" : "replica", text,
                  template ? "server-template" : "server", why);
    json_decref(said);
}

static void take_server(struct convert_state *c, const json_t *words)
{
    take_servers(c, words, false);
}

static void take_server_template(struct convert_state *c, const json_t *words)
{
    take_servers(c, words, true);
}

static void take_default_server(struct convert_state *c, const json_t *words)
{
    take_words(c, "server", words, 0, c->servers);
    take_name(c, c->servers);
}

/* --- other directives ------------------------------------------------------------------------ */

/* Those of a hash, and what no row knows. */
static void take_balance(struct convert_state *c, const json_t *words)
{
    bool hash = is(words, 0, "hash");
    const char *header = strstr(convert_word(words, hash ? 1 : 0), "hdr(");
    char name[128];
    if (header != NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(header + 4, ",)"), header + 4);
        convert_set(c, "session-header", name, "balance");
    }
    convert_set(c, "policy", header != NULL ? "session" : "cache_aware", "balance");
    convert_note(c, header != NULL || hash ? CONVERT_DID : CONVERT_NONE, "balance",
                 header != NULL
                     ? "cache_aware finds sessions by their prompts, and moves them when it must: "
                       "try it"
                 : hash ? "the prompt's prefix says more"
                        : "no such policy is known here: cache_aware is used");
}

/* A path behind "GET", "uri", or alone. */
static void take_check(struct convert_state *c, const char *flag, const json_t *words)
{
    size_t n = json_array_size(words), path = 0;
    while (path < n && convert_word(words, path)[0] != '/')
        path++;
    if (path < n)
        convert_set(c, "health-path", convert_word(words, path), flag);
    if (n > 1)
        convert_note(c, CONVERT_NOT_NEEDED, flag, "health is one GET of health-path");
}

/* "200-399" is "200..399" here. */
static void take_expect(struct convert_state *c, const json_t *words)
{
    char text[64];
    size_t n = 0, last = json_array_size(words) - 1;
    bool status = last > 0 && is(words, last - 1, "status") && !is(words, last - 2, "!");
    for (const char *from = convert_word(words, last); *from != '\0' && n + 3 < sizeof text; from++)
        n += (size_t)snprintf(text + n, sizeof text - n, *from == '-' ? ".." : "%c", *from);
    if (status && n > 0)
        convert_set(c, "health-statuses", text, "http-check expect");
    else
        convert_note(
            c, CONVERT_HAND, "http-check expect",
            "health-statuses: the statuses of a replica that is well; its body does not count");
}

static void take_nameserver(struct convert_state *c, const json_t *words)
{
    const char *at = convert_word(words, 1);
    if (strpbrk(at, "/@") != NULL)
        convert_note(c, CONVERT_HAND, "nameserver", "dns-server: IP:PORT, for replica-dns");
    else
        convert_set(c, "dns-server", at, "nameserver");
}

static void special(struct convert_state *c, const char *name, const json_t *words)
{
    static const struct {
        const char *name;
        void (*take)(struct convert_state *c, const json_t *words);
    } takers[] = {{"bind", take_bind},
                  {"server", take_server},
                  {"server-template", take_server_template},
                  {"default-server", take_default_server},
                  {"balance", take_balance},
                  {"http-check expect", take_expect},
                  {"nameserver", take_nameserver}};
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
        if (strcmp(name, takers[i].name) == 0) {
            takers[i].take(c, words);
            return;
        }
    }
    take_check(c, name, words);
}

/* Whether a line limits clients, by counters of a stick table: also by an acl of such. */
static bool take_limit(struct convert_state *c, const json_t *line)
{
    const char *first = convert_word(line, 0), *by = NULL;
    char text[600], note[900];
    size_t len = 0;
    bool acl = strcmp(first, "acl") == 0, table = strcmp(first, "stick-table") == 0;
    if (!acl && !table && strcmp(first, "http-request") != 0 && strcmp(first, "tcp-request") != 0)
        return false;
    for (size_t i = 1; i < json_array_size(line) && len < sizeof text; i++) {
        const char *word = convert_word(line, i);
        const char *other = json_string_value(
            acl ? NULL : json_object_get(c->limits, word[0] == '!' ? word + 1 : word));
        bool rate = strstr(word, "_rate") != NULL || strstr(word, "_cnt") != NULL ||
                    strstr(word, "gpc") != NULL || strncmp(word, "track-sc", 8) == 0 ||
                    (table && strcmp(word, "store") == 0);
        by = strstr(word, "conn_cur") != NULL ? "a limit by conn_cur"
             : other != NULL                  ? other
             : rate && by == NULL             ? "a limit by rate"
                                              : by;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 1 ? " " : "", word);
    }
    if (by == NULL)
        return false;
    if (acl)
        (void)json_object_set_new(c->limits, convert_word(line, 1), json_string(by));
    struct convert_found found = convert_find(c->router, slice_of_cstr(by));
    (void)snprintf(note, sizeof note, "%s: %s", text, found.row->note);
    convert_note(c, CONVERT_HAND, first, note);
    return true;
}

static void take_line(struct convert_state *c, const json_t *line)
{
    char two[160], name[400];
    const char *first = convert_word(line, 0), *second = convert_word(line, 1);
    json_t *words = json_copy((json_t *)line);
    (void)snprintf(two, sizeof two, "%s %s", first, second);
    struct convert_found found = convert_find_value(&convert_haproxy, slice_of_cstr(first), second);
    if (found.name.len <= strlen(first)) { /* "random(2)" */
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(second, "("), second);
        found = convert_find_value(&convert_haproxy, slice_of_cstr(first), name);
    }
    bool both = found.row != NULL && found.name.len > strlen(first) && found.name.at[0] != '*';
    (void)slice_to_cstr(found.name, name, sizeof name);
    (void)json_array_remove(words, 0);
    if (both)
        (void)json_array_remove(words, 0);
    if (strcmp(first, "no") == 0) { /* option X */
        (void)snprintf(name, sizeof name, "%s %s", two, convert_word(line, 2));
        convert_note(c, CONVERT_NOT_NEEDED, name, "it is off");
    } else if (found.row == NULL)
        convert_note(c, CONVERT_NONE, first, "this directive is not known here");
    else
        convert_take(c, found,
                     strcmp(first, "balance") == 0 ? first
                     : strcmp(name, "option") == 0 ? two
                                                   : name,
                     words);
    json_decref(words);
}

/* --- sections -------------------------------------------------------------------------------- */

static struct convert_found section_row(const char *word)
{
    char name[160];
    (void)snprintf(name, sizeof name, "section %s", word);
    return convert_find(&convert_haproxy, slice_of_cstr(name));
}

bool convert_is_haproxy(struct slice text)
{
    bool found = false;
    while (text.len > 0 && !found) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        const struct convert_row *row = section_row(convert_word(words, 0)).row;
        found = row != NULL && row->as == CONVERT_READ && row->settings == NULL;
        json_decref(words);
    }
    return found;
}

/* [[head, line, ...], ...], each a list of words. What stands before the first one is of all. */
static json_t *read_sections(struct slice text)
{
    json_t *all = json_array(), *section = NULL;
    while (text.len > 0) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        bool head = section_row(convert_word(words, 0)).row != NULL;
        if (head || section == NULL) {
            section = json_array();
            (void)json_array_append_new(all, section);
            if (!head)
                (void)json_array_append_new(section, json_pack("[s]", "global"));
        }
        if (json_array_size(words) > 0)
            (void)json_array_append(section, words);
        json_decref(words);
    }
    return all;
}

static bool is_head(const json_t *section, const char *name)
{
    return is(json_array_get(section, 0), 0, name);
}

/* Whether it has a line that begins so. */
static bool has(const json_t *section, const char *first)
{
    for (size_t i = 1; i < json_array_size(section); i++) {
        if (is(json_array_get(section, i), 0, first))
            return true;
    }
    return false;
}

static bool has_servers(const json_t *section)
{
    return has(section, "server") || has(section, "server-template");
}

/* Whether what it says is of engines, or of all: requests that come in at pages of statistics and
 * redirections go to no servers. */
static bool is_used(const json_t *section, bool by_default)
{
    if (is_head(section, "global") || is_head(section, "defaults"))
        return true;
    if (has(section, "disabled") || is_head(section, "backend"))
        return !has(section, "disabled");
    bool proxy = is_head(section, "frontend") || is_head(section, "listen");
    return proxy && (has_servers(section) || has(section, "default_backend") ||
                     has(section, "use_backend") ||
                     (by_default && !has(section, "stats") && !has(section, "redirect")));
}

/* The bind line that counts: the first with TLS, or the first of TCP. NULL: there is none. */
static const json_t *find_bind(const json_t *all, bool by_default)
{
    size_t i, k;
    const json_t *section, *line, *first = NULL;
    json_array_foreach(all, i, section)
    {
        json_array_foreach(is_used(section, by_default) ? section : NULL, k, line)
        {
            char address[300];
            const char *at = convert_word(first, 1);
            if (!is(line, 0, "bind"))
                continue;
            if (!read_address(slice_of_cstr(at), "*", address, sizeof address))
                first = line;
            bool tcp =
                read_address(slice_of_cstr(convert_word(line, 1)), "*", address, sizeof address);
            for (size_t w = 2; w < json_array_size(line) && tcp; w++) {
                if (is(line, w, "ssl"))
                    return line;
            }
        }
    }
    return first;
}

static void take_section(struct convert_state *c, const json_t *section, const json_t *bind)
{
    const char *only = is_head(section, "resolvers") ? "nameserver"
                       : is_head(section, "peers")   ? "peer"
                                                     : NULL;
    json_t *servers = json_deep_copy(c->servers); /* of a backend it is of that alone */
    char note[400];
    for (size_t i = 1; i < json_array_size(section); i++) {
        const json_t *line = json_array_get(section, i);
        if (is(line, 0, "bind") && line != bind) {
            (void)snprintf(note, sizeof note, "%s: clients connect at one address, %s",
                           convert_word(line, 1), convert_word(bind, 1));
            convert_note(c, CONVERT_NONE, "bind", note);
        } else if (only == NULL || is(line, 0, only)) {
            if (!take_limit(c, line))
                take_line(c, line);
        } else {
            convert_note(c, CONVERT_NOT_NEEDED, convert_word(json_array_get(section, 0), 0),
                         section_row(convert_word(json_array_get(section, 0), 0)).row->note);
        }
    }
    if (is_head(section, "defaults")) {
        json_decref(servers);
    } else {
        json_decref(c->servers);
        c->servers = servers;
    }
}

static void leave_out(struct convert_state *c, const json_t *section)
{
    const json_t *head = json_array_get(section, 0);
    struct convert_found found = section_row(convert_word(head, 0));
    char what[160];
    (void)snprintf(what, sizeof what, "%s%s%s", convert_word(head, 0),
                   convert_word(head, 1)[0] != '\0' ? " " : "", convert_word(head, 1));
    if (found.row->as != CONVERT_READ)
        convert_take(c, found, what, NULL);
    else
        convert_note(c, CONVERT_NOT_NEEDED, what,
                     has(section, "disabled") ? "it is disabled"
                                              : "no engines are behind it: left out");
}

/* A file for several services has servers that are no engines. */
static void note_backends(struct convert_state *c, const json_t *all, bool by_default)
{
    char note[900] = "", names[600] = "";
    size_t i, count = 0;
    const json_t *section;
    json_array_foreach(all, i, section)
    {
        size_t len = strlen(names);
        if (is_used(section, by_default) && has_servers(section) && count++ < NAMES_MAX)
            (void)snprintf(names + len, sizeof names - len, "%s %.60s", count > 1 ? "," : "",
                           convert_word(json_array_get(section, 0), 1));
    }
    (void)snprintf(note, sizeof note,
                   "one set of replicas was made of those of%s%s: take out what is no engine. "
                   "Which models each serves is asked of it",
                   names, count > NAMES_MAX ? " and others" : "");
    if (count > 1)
        convert_note(c, CONVERT_HAND, "server", note);
}

/* Connections that are kept have the next of these that is there. */
static void set_idle(struct convert_state *c)
{
    static const char *const others[] = {"client-head-timeout", "client-body-timeout"};
    const char *time = "0ms";
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const json_t *values = json_object_get(c->settings, others[i]);
        if (strcmp(time, "0ms") == 0 && values != NULL)
            time = convert_word(values, 0);
    }
    if (json_object_get(c->settings, "client-idle-timeout") == NULL && strcmp(time, "0ms") != 0)
        convert_set(c, "client-idle-timeout", time, "no timeout http-keep-alive");
}

void convert_haproxy_text(struct convert_state *c, struct slice text)
{
    json_t *all = read_sections(text);
    bool by_default = false;
    size_t i;
    const json_t *section;
    c->special = special;
    json_array_foreach(all, i, section)
    {
        by_default =
            by_default || (is_head(section, "defaults") && has(section, "default_backend"));
    }
    const json_t *bind = find_bind(all, by_default);
    json_array_foreach(all, i, section)
    {
        bool other = is_head(section, "resolvers") || is_head(section, "peers");
        if (other || is_used(section, by_default))
            take_section(c, section, bind);
        else
            leave_out(c, section);
    }
    note_backends(c, all, by_default);
    set_idle(c);
    json_decref(all);
}

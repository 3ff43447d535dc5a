/* An HAProxy configuration: its sections. Those of engines count: frontends that lead to them,
 * their backends, and what is said of all. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/haproxy_internal.h"

enum { NAMES_MAX = 8 /* of backends, in a note */ };

enum use {
    USE_LINES,  /* what they say is of engines, or of all */
    USE_PROXY,  /* the same, if engines are behind it */
    USE_NAMES,  /* only who resolves names */
    USE_PEERS,  /* only who the others are */
    USE_NOTHING /* what stands in `note` */
};

static const struct {
    const char *name;
    enum use use;
    enum convert_kind kind;
    const char *note;
} kinds[] = {
    {"global", USE_LINES, CONVERT_DID, NULL},
    {"defaults", USE_LINES, CONVERT_DID, NULL},
    {"frontend", USE_PROXY, CONVERT_DID, NULL},
    {"listen", USE_PROXY, CONVERT_DID, NULL},
    {"backend", USE_LINES, CONVERT_DID, NULL},
    {"resolvers", USE_NAMES, CONVERT_DID, NULL},
    {"peers", USE_PEERS, CONVERT_DID, NULL},
    {"userlist", USE_NOTHING, CONVERT_HAND, "client-keys-file lists who may call"},
    {"mailers", USE_NOTHING, CONVERT_NONE, "deploy/prometheus has alerts"},
    {"cache", USE_NOTHING, CONVERT_NONE, "answers are not cached"},
    {"program", USE_NOTHING, CONVERT_NOT_NEEDED, "systemd or the container does that"},
    {"ring", USE_NOTHING, CONVERT_NOT_NEEDED, "the log goes to standard error"},
    {"log-forward", USE_NOTHING, CONVERT_NONE, "logs of others are not carried"},
    {"http-errors", USE_NOTHING, CONVERT_NONE, "errors have the form of the API that was asked"},
    {"crt-store", USE_NOTHING, CONVERT_HAND, "tls-cert: each certificate that it lists"},
    {"fcgi-app", USE_NOTHING, CONVERT_NONE, "replicas speak HTTP"},
};

static int kind_of(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(word, kinds[i].name) == 0)
            return (int)i;
    }
    return -1;
}

bool convert_is_haproxy(struct slice text)
{
    bool found = false;
    while (text.len > 0 && !found) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        const char *first = convert_word(words, 0);
        int kind = kind_of(first);
        found = kind >= 0 && (kinds[kind].use == USE_LINES || kinds[kind].use == USE_PROXY);
        json_decref(words);
    }
    return found;
}

/* [[head, line, ...], ...], each a list of words. What stands before the first one is of all. */
static json_t *read_sections(struct slice text)
{
    json_t *sections = json_array();
    json_t *section = NULL;
    while (text.len > 0) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        bool head = kind_of(convert_word(words, 0)) >= 0;
        if (head || section == NULL) {
            section = json_array();
            (void)json_array_append_new(sections, section);
            if (!head)
                (void)json_array_append_new(section, json_pack("[s]", "global"));
        }
        if (json_array_size(words) > 0)
            (void)json_array_append(section, words);
        json_decref(words);
    }
    return sections;
}

static int kind_of_section(const json_t *section)
{
    return kind_of(convert_word(json_array_get(section, 0), 0));
}

/* Whether it has a line that begins so; `second` may be NULL. */
static bool has(const json_t *section, const char *first, const char *second)
{
    size_t i;
    const json_t *line;
    json_array_foreach(section, i, line)
    {
        if (i > 0 && convert_is(line, 0, first) && (second == NULL || convert_is(line, 1, second)))
            return true;
    }
    return false;
}

static bool has_servers(const json_t *section)
{
    return has(section, "server", NULL) || has(section, "server-template", NULL);
}

/* Whether requests that come in there go to servers: statistics and redirections do not. */
static bool leads(const json_t *section, bool by_default)
{
    return has_servers(section) || has(section, "default_backend", NULL) ||
           has(section, "use_backend", NULL) ||
           (by_default && !has(section, "stats", NULL) && !has(section, "redirect", NULL));
}

static bool defaults_lead(const json_t *sections)
{
    size_t i;
    const json_t *section;
    json_array_foreach(sections, i, section)
    {
        if (convert_is(json_array_get(section, 0), 0, "defaults") &&
            has(section, "default_backend", NULL))
            return true;
    }
    return false;
}

static bool is_used(const json_t *section, bool by_default)
{
    int kind = kind_of_section(section);
    bool proxy = strcmp(kinds[kind].name, "backend") == 0 || kinds[kind].use == USE_PROXY;
    if (proxy && has(section, "disabled", NULL))
        return false;
    return kinds[kind].use == USE_LINES ||
           (kinds[kind].use == USE_PROXY && leads(section, by_default));
}

static bool is_tcp(const char *address)
{
    return address[0] != '/' && strncmp(address, "unix@", 5) != 0 &&
           strncmp(address, "abns@", 5) != 0 && strncmp(address, "fd@", 3) != 0;
}

/* The bind line that counts: the first with TLS, or the first of TCP. NULL: there is none. */
static const json_t *find_bind(const json_t *sections, bool by_default)
{
    size_t i, k, w;
    const json_t *section, *line, *word, *first = NULL;
    json_array_foreach(sections, i, section)
    {
        json_array_foreach(is_used(section, by_default) ? section : NULL, k, line)
        {
            if (!convert_is(line, 0, "bind"))
                continue;
            if (first == NULL || !is_tcp(convert_word(first, 1)))
                first = line;
            json_array_foreach(line, w, word)
            {
                if (w > 1 && convert_is(line, w, "ssl"))
                    return line;
            }
        }
    }
    return first;
}

static void take_lines(struct convert_state *c, const json_t *section, const json_t *bind)
{
    size_t i;
    const json_t *line;
    struct convert_servers servers = c->servers; /* a default-server of a backend is of it alone */
    bool all = convert_is(json_array_get(section, 0), 0, "defaults");
    enum use use = kinds[kind_of_section(section)].use;
    json_array_foreach(section, i, line)
    {
        bool wanted = use == USE_NAMES   ? convert_is(line, 0, "nameserver")
                      : use == USE_PEERS ? convert_is(line, 0, "peer")
                                         : true;
        if (i == 0 || !wanted)
            continue;
        if (convert_is(line, 0, "bind") && line != bind) {
            char note[400];
            (void)snprintf(note, sizeof note, "%s: clients connect at one address, %s",
                           convert_word(line, 1), convert_word(bind, 1));
            convert_note(c, CONVERT_NONE, "bind", note);
            continue;
        }
        json_t *words = json_copy((json_t *)line);
        convert_haproxy_line(c, words);
        json_decref(words);
    }
    if (!all)
        c->servers = servers;
}

static void leave_out(struct convert_state *c, const json_t *section)
{
    int kind = kind_of_section(section);
    const json_t *head = json_array_get(section, 0);
    char what[160];
    (void)snprintf(what, sizeof what, "%s%s%s", convert_word(head, 0),
                   convert_word(head, 1)[0] != '\0' ? " " : "", convert_word(head, 1));
    if (kinds[kind].use == USE_NOTHING)
        convert_note(c, kinds[kind].kind, what, kinds[kind].note);
    else
        convert_note(c, CONVERT_NOT_NEEDED, what,
                     has(section, "disabled", NULL) ? "it is disabled"
                                                    : "no engines are behind it: left out");
}

/* A file for several services has servers that are no engines. */
static void note_backends(struct convert_state *c, const json_t *sections, bool by_default)
{
    char note[600] = "one set of replicas was made of those of";
    size_t i, count = 0;
    const json_t *section;
    json_array_foreach(sections, i, section)
    {
        if (!is_used(section, by_default) || !has_servers(section))
            continue;
        size_t len = strlen(note);
        if (count++ < NAMES_MAX)
            (void)snprintf(note + len, sizeof note - len, "%s %.60s", count > 1 ? "," : "",
                           convert_word(json_array_get(section, 0), 1));
    }
    size_t len = strlen(note);
    (void)snprintf(note + len, sizeof note - len,
                   "%s: take out what is no engine. Which models each serves is asked of it",
                   count > NAMES_MAX ? " and others" : "");
    if (count > 1)
        convert_note(c, CONVERT_HAND, "server", note);
}

void convert_haproxy_text(struct convert_state *c, struct slice text)
{
    json_t *sections = read_sections(text);
    bool by_default = defaults_lead(sections);
    const json_t *bind = find_bind(sections, by_default);
    size_t i;
    const json_t *section;
    json_array_foreach(sections, i, section)
    {
        enum use use = kinds[kind_of_section(section)].use;
        if (use == USE_NAMES || use == USE_PEERS || is_used(section, by_default))
            take_lines(c, section, bind);
        else
            leave_out(c, section);
    }
    note_backends(c, sections, by_default);
    json_decref(sections);
}

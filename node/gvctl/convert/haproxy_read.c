/* Reads an HAProxy configuration: the sections, which of them serve engines, and limits on
 * clients. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert_internal.h"

const char *convert_haproxy_address(struct convert_state *c, const char *text, const char *any)
{
    static const char *const families[] = {"ipv4@", "ipv6@", "tcp4@", "tcp6@", "tcp@"};
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        text += strncmp(text, families[i], strlen(families[i])) == 0 ? strlen(families[i]) : 0;
    const char *port = strrchr(text, ':');
    if (port == NULL || port[1] == '\0' || text[0] == '/' || strchr(text, '@') != NULL)
        return NULL;
    const char *host = convert_text(c, "%.*s", (int)(port - text), text);
    if (host[0] == '\0' || strcmp(host, "*") == 0)
        host = any;
    bool bare = strchr(host, ':') != NULL && host[0] != '['; /* an IPv6 address */
    return convert_text(c, bare ? "[%s]%s" : "%s%s", host, port);
}

/* True for a line with a limit on clients by counters of a stick table, directly or through an
 * acl. */
static bool take_limit(struct convert_state *c, const json_t *line)
{
    static const char *const counters[] = {"_rate", "_cnt", "gpc", "track-sc"};
    const char *first = convert_word(line, 0), *text = convert_join(c, line, 1, " "), *acl;
    const char *by = strstr(text, "conn_cur") != NULL ? "a limit by conn_cur" : NULL;
    bool names = strcmp(first, "acl") == 0;
    json_t *other;
    if (!convert_is_one("acl stick-table http-request tcp-request", first))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(counters) && by == NULL; i++)
        by = strstr(text, counters[i]) != NULL ? "a limit by rate" : NULL;
    json_object_foreach(names ? NULL : c->limits, acl, other)
    {
        if (convert_is_one(text, acl) || convert_is_one(text, convert_text(c, "!%s", acl)))
            by = json_string_value(other);
    }
    if (by == NULL)
        return false;
    if (names)
        (void)json_object_set_new(c->limits, convert_word(line, 1), json_string(by));
    struct convert_found found = convert_find(c->router, CONVERT_DIRECTIVE, slice_of_cstr(by));
    convert_note(c, CONVERT_HAND, first, "%s: %s", text, found.row->note);
    return true;
}

/* Takes the first bind line with TLS; if there is none, the first with TCP; if none, the first. */
static void take_binds(struct convert_state *c, const json_t *lines)
{
    const json_t *line, *best = NULL;
    int most = 0;
    size_t i;
    json_array_foreach(lines, i, line)
    {
        bool tcp = convert_haproxy_address(c, convert_word(line, 1), "*") != NULL;
        int worth = !tcp ? 1 : convert_is_one(convert_join(c, line, 2, " "), "ssl") ? 3 : 2;
        best = worth > most ? line : best;
        most = worth > most ? worth : most;
    }
    json_array_foreach(lines, i, line)
    {
        if (line == best)
            convert_words(c, CONVERT_DIRECTIVE, line, 0);
        else
            convert_note(c, CONVERT_NONE, "bind",
                         "%s is left out: the router has one client address, %s",
                         convert_word(line, 1), convert_word(best, 1));
    }
}

/* --- sections, as [head, line, ...], each a list of words ------------------------------------ */

static const struct convert_row *section_row(struct convert_state *c, const json_t *head)
{
    return convert_find(c->router, CONVERT_SECTION, slice_of_cstr(convert_word(head, 0))).row;
}

/* Returns the sections of c->text. Lines before the first section apply to all sections. */
static json_t *read_sections(struct convert_state *c)
{
    json_t *section = json_pack("[[s]]", "global"),
           *all = convert_own(c, json_pack("[o]", section));
    for (struct slice text = buf_slice(&c->text); text.len > 0;) {
        json_t *words = convert_own(c, convert_split(slice_cut(&text, '\n')));
        if (section_row(c, words) != NULL)
            (void)json_array_append_new(all, section = json_array());
        if (json_array_size(words) > 0)
            (void)json_array_append(section, words);
    }
    return all;
}

/* True if the section's kind is among the names, which are separated by spaces. */
static bool is(const json_t *section, const char *names)
{
    return convert_is_one(names, convert_word(json_array_get(section, 0), 0));
}

/* True if any of the names begins a line of the section. */
static bool has(const json_t *section, const char *names)
{
    bool found = false;
    for (size_t i = 1; i < json_array_size(section); i++)
        found = found || convert_is_one(names, convert_word(json_array_get(section, i), 0));
    return found;
}

/* True for a section in front of engines: pages of statistics and redirections need no servers. */
static bool leads(const json_t *section, bool by_default)
{
    bool to = has(section, "server server-template default_backend use_backend") ||
              (by_default && !has(section, "stats redirect"));
    return !has(section, "disabled") &&
           (is(section, "backend") || (is(section, "frontend listen") && to));
}

static void take_section(struct convert_state *c, const json_t *section, json_t *binds)
{
    const json_t *head = json_array_get(section, 0);
    for (size_t i = 1; i < json_array_size(section); i++) {
        json_t *line = json_array_get(section, i);
        const char *first = convert_word(line, 0);
        if (is(section, "resolvers peers") && !convert_is_one("nameserver peer", first))
            convert_note(c, CONVERT_NOT_NEEDED, convert_word(head, 0), "%s",
                         section_row(c, head)->note);
        else if (strcmp(first, "bind") == 0)
            (void)json_array_append(binds, line);
        else if (strcmp(first, "no") == 0) /* no option X */
            convert_note(c, CONVERT_NOT_NEEDED, convert_join(c, line, 0, " "), "switched off");
        else if (!take_limit(c, line))
            convert_words(c, CONVERT_DIRECTIVE, line, 0);
    }
}

static void leave_out(struct convert_state *c, const json_t *section)
{
    const json_t *head = json_array_get(section, 0);
    const struct convert_row *row = section_row(c, head);
    const char *name = convert_word(head, 1);
    name = convert_text(c, "%s%s%s", convert_word(head, 0), name[0] != '\0' ? " " : "", name);
    if (row->kind != CONVERT_READ)
        convert_note(c, row->kind, name, "%s", row->note);
    else
        convert_note(c, CONVERT_NOT_NEEDED, name, "%s",
                     has(section, "disabled") ? "disabled" : "left out: no engines behind it");
}

/* If the timeout of idle connections is missing, HAProxy uses the next of these timeouts. */
static void set_idle(struct convert_state *c)
{
    const char *time = convert_setting(c, "client-head-timeout");
    if (time == NULL || strcmp(time, "0ms") == 0)
        time = convert_setting(c, "client-body-timeout");
    if (convert_setting(c, "client-idle-timeout") == NULL && time != NULL &&
        strcmp(time, "0ms") != 0)
        (void)convert_set(c, "client-idle-timeout", time, "no timeout http-keep-alive");
}

void convert_haproxy_text(struct convert_state *c)
{
    const json_t *all = read_sections(c), *section;
    json_t *names = convert_own(c, json_array()), *binds = convert_own(c, json_array());
    bool by_default = false;
    size_t i;
    json_array_foreach(all, i, section)
    {
        bool of_all = is(section, "global defaults");
        json_t *parts = c->parts; /* a backend's default-server applies to this backend alone */
        by_default = by_default || (of_all && has(section, "default_backend"));
        c->parts = of_all ? parts : convert_own(c, json_copy(parts));
        if (of_all || leads(section, by_default) || is(section, "resolvers peers"))
            take_section(c, section, binds);
        else
            leave_out(c, section);
        if (leads(section, by_default) && has(section, "server server-template"))
            (void)json_array_append(names, json_array_get(json_array_get(section, 0), 1));
        c->parts = parts;
    }
    take_binds(c, binds);
    if (json_array_size(names) > 1) /* several services: some servers may not be engines */
        convert_note(
            c, CONVERT_HAND, "server",
            "the servers of %s became one set of replicas: remove those that are no engines. "
            "The router asks each engine for its models",
            convert_join(c, names, 0, ", "));
    set_idle(c);
}

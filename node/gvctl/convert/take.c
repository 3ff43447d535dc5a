/* Applies the rows of tables to words: settings, parts of settings, notes. */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"

/* --- state ------------------------------------------------------------------------------------ */

json_t *convert_own(struct convert_state *c, json_t *value)
{
    (void)json_array_append_new(c->owned, value);
    return value;
}

static const char *text_of(struct convert_state *c, const char *format, va_list args)
{
    const char *text = json_string_value(convert_own(c, json_vsprintf(format, args)));
    return text != NULL ? text : ""; /* not UTF-8 */
}

const char *convert_text(struct convert_state *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = text_of(c, format, args);
    va_end(args);
    return text;
}

const char *convert_word(const json_t *words, size_t i)
{
    const char *text = json_string_value(json_array_get(words, i));
    return text != NULL ? text : "";
}

const char *convert_join(struct convert_state *c, const json_t *words, size_t from, const char *by)
{
    struct buf all = {0};
    for (size_t i = from; i < json_array_size(words); i++)
        DISCARD(buf_printf(&all, "%s%s", i > from ? by : "", convert_word(words, i)));
    const char *text = convert_text(c, "%.*s", SLICE_ARG(buf_slice(&all)));
    buf_free(&all);
    return text;
}

bool convert_is_one(const char *names, const char *word)
{
    for (struct slice rest = slice_of_cstr(names); rest.len > 0;) {
        if (slice_equal(slice_cut(&rest, ' '), slice_of_cstr(word)))
            return true;
    }
    return false;
}

void convert_note(struct convert_state *c, enum convert_kind kind, const char *label,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *note = text_of(c, format, args);
    va_end(args);
    (void)json_object_set_new(c->notes[kind], convert_text(c, "%s: %s", label, note), json_null());
}

void convert_add(json_t *map, const char *name, const char *key, const char *value)
{
    if (json_object_get(map, name) == NULL)
        (void)json_object_set_new(map, name, json_object());
    (void)json_object_set_new(json_object_get(map, name), key, json_string(value));
}

static enum node_option_type type_of(const char *setting)
{
    int row = node_option_find(slice_of_cstr(setting));
    CHECK(row >= 0);
    return node_option_at((unsigned)row)->type;
}

bool convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin)
{
    struct node_options_error error;
    if (node_options_set(&c->options, slice_of_cstr(setting), slice_of_cstr(value),
                         (struct node_option_origin){0}, &error) != 0) {
        convert_note(c, CONVERT_HAND, origin, "set %s: the value %s is invalid: %s", setting, value,
                     error.text);
        return false;
    }
    if (type_of(setting) != NODE_TYPE_LIST) {
        (void)json_object_del(c->settings, setting);
        (void)json_object_del(c->origins, setting);
    }
    convert_add(c->settings, setting, value, "");
    convert_add(c->origins, setting, origin, "");
    return true;
}

const char *convert_setting(const struct convert_state *c, const char *setting)
{
    return json_object_iter_key(json_object_iter(json_object_get(c->settings, setting)));
}

const char *convert_part(const struct convert_state *c, const char *part, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(c->parts, part));
    return text != NULL ? text : otherwise;
}

/* --- values by the setting's type ------------------------------------------------------------- */

/* Converts "5000", "5s", "1d" or "1m30s" to a time in Grapevine's form. */
static bool set_time(struct convert_state *c, const char *setting, const char *value,
                     const char *label)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"us", 0.001}, {"ms", 1}, {"s", 1000}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    double ms = 0;
    bool good = value[0] != '\0';
    while (good && value[0] != '\0') {
        size_t digits = strspn(value, "0123456789."), i = 0;
        const char *unit = value + digits;
        size_t len = strcspn(unit, "0123456789");
        struct slice name = len > 0 ? slice_of(unit, len) : slice_of_cstr(c->router->time);
        while (i < ARRAY_LEN(units) && !slice_equal(slice_of_cstr(units[i].unit), name))
            i++;
        good = digits > 0 && i < ARRAY_LEN(units);
        ms += good ? strtod(value, NULL) * units[i].ms : 0;
        value = unit + len;
    }
    ms = ms > 0 && ms < 1 ? 1 : ms;
    bool whole = ms >= 1000 && ms == 1000 * (double)(long long)(ms / 1000);
    if (!good)
        convert_note(c, CONVERT_HAND, label, "the value is no time");
    return good &&
           convert_set(c, setting,
                       convert_text(c, whole ? "%.0fs" : "%.0fms", whole ? ms / 1000 : ms), label);
}

/* Sets a setting to a path. A relative path begins at the folder that HAProxy's global section
 * gives for this kind of file. */
static bool set_path(struct convert_state *c, const char *setting, const char *path,
                     const char *label)
{
    struct stat status;
    const char *base = convert_part(c, convert_text(c, "%s.base", setting), "");
    if (path[0] == '@') /* @system-ca is the default here */
        return false;
    if (path[0] != '/' && base[0] != '\0')
        path = convert_text(c, "%s/%s", base, path);
    if (!slice_ends_with(slice_of_cstr(path), SLICE("/")) &&
        (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)))
        return convert_set(c, setting, path, label);
    convert_note(c, CONVERT_HAND, label, "set %s: one entry for each file in %s", setting, path);
    return false;
}

/* Takes URLs separated by commas. An engine's URL may lack the scheme; a router's address may have
 * one. */
static bool set_urls(struct convert_state *c, const char *setting, const char *value,
                     const char *label)
{
    bool did = false, engine = strcmp(setting, "replica") == 0;
    for (struct slice rest = slice_of_cstr(value); rest.len > 0;) {
        struct slice one = slice_trim(slice_cut(&rest, ','));
        one.len -= slice_ends_with(one, SLICE("/v1")) ? 3 : 0;
        const char *url = convert_text(c, "%.*s", SLICE_ARG(one)), *scheme = strstr(url, "://");
        if (engine && scheme == NULL)
            url = convert_text(c, "http://%s", url);
        else if (!engine && scheme != NULL)
            url = scheme + 3;
        did = (one.len > 0 && convert_set(c, setting, url, label)) || did;
    }
    return did;
}

static bool set_value(struct convert_state *c, const char *setting, const char *value,
                      const char *label)
{
    enum node_option_type type = type_of(setting);
    const char *dash;
    while (strcmp(setting, "health-statuses") == 0 && (dash = strchr(value, '-')) != NULL)
        value = convert_text(c, "%.*s..%s", (int)(dash - value), value, dash + 1);
    if (type == NODE_TYPE_MS)
        return set_time(c, setting, value, label);
    if (type == NODE_TYPE_PATH || strcmp(setting, "tls-cert") == 0)
        return set_path(c, setting, value, label);
    if (type == NODE_TYPE_LIST)
        return set_urls(c, setting, value, label);
    if (value[0] != '-' || (type != NODE_TYPE_INTEGER && type != NODE_TYPE_BYTES))
        return convert_set(c, setting, value, label);
    convert_note(c, CONVERT_NOT_NEEDED, label, "0 means no limit there; here the default applies");
    return false;
}

/* --- rows ------------------------------------------------------------------------------------ */

const struct convert_place_words convert_places[CONVERT_PLACES] = {
    [CONVERT_FLAG] = {"--", "unknown flag"},
    [CONVERT_MESH] = {"--", NULL},
    [CONVERT_PLUGIN] = {"", "unknown plugin"},
    [CONVERT_SECTION] = {"section ", "unknown section"},
    [CONVERT_DIRECTIVE] = {"", "unknown directive"},
    [CONVERT_BIND] = {"bind: ", "unknown word of a bind line"},
    [CONVERT_SERVER] = {"server: ", "unknown word of a server line"},
};

/* Takes the next of a row's names; returns false after the last. */
static bool next_name(struct slice *names, struct convert_found *found)
{
    struct slice name = slice_trim(slice_cut(names, ','));
    bool several = slice_ends_with(name, SLICE("=..."));
    bool one = slice_ends_with(name, SLICE("="));
    name.len -= several ? 4 : one ? 1 : 0;
    found->values = several ? SIZE_MAX : one ? 1 : 0;
    found->name = name;
    return name.len > 0;
}

/* True if the given words match the name. "*" in the name stands for any characters of one word. */
static bool fits(struct slice name, struct slice given)
{
    size_t star = slice_find(name, '*');
    struct slice end = slice_skip(name, star + 1), rest = slice_skip(given, star);
    if (star == name.len)
        return slice_equal(name, given);
    return slice_starts_with(given, slice_of(name.at, star)) && slice_ends_with(rest, end) &&
           slice_find(rest, ' ') == rest.len;
}

struct convert_found convert_find(const struct convert_router *router, enum convert_place place,
                                  struct slice name)
{
    for (size_t i = 0; router->tables[i].rows != NULL; i++) {
        const struct convert_row *row = router->tables[i].rows;
        for (; row->names != NULL && router->tables[i].place == place; row++) {
            struct slice names = slice_of_cstr(row->names);
            struct convert_found found = {.row = row};
            while (next_name(&names, &found)) {
                if (fits(found.name, name))
                    return found;
            }
        }
    }
    return (struct convert_found){.values = SIZE_MAX};
}

/* Finds the row for a name: with the two words after it, with one word, with that word up to its
 * bracket, and alone. */
static struct convert_found find_words(struct convert_state *c, enum convert_place place,
                                       const char *name, const json_t *words, size_t i)
{
    const char *second = convert_word(words, i + 1), *third = convert_word(words, i + 2);
    const char *all = convert_text(c, "%s %s %s", name, second, third);
    size_t one = strlen(name) + 1;
    const struct {
        size_t len;
        unsigned words;
    } tries[] = {
        {strlen(all), 3}, {one + strlen(second), 2}, {one + strcspn(second, "("), 1}, {one - 1, 1}};
    struct convert_found found = {0};
    for (size_t k = 0; k < ARRAY_LEN(tries) && found.row == NULL; k++) {
        struct slice given = slice_of(all, tries[k].len);
        found = convert_find(c->router, place, given);
        found.words = tries[k].words;
        found.name = found.words > 1 ? given : found.name;
    }
    return found;
}

static void take(struct convert_state *c, const struct convert_row *row, const char *label,
                 const json_t *values)
{
    struct slice rest = slice_of_cstr(row->ours != NULL ? row->ours : ""), fixed = rest;
    rest = slice_cut(&fixed, ':');
    const char *value = fixed.len > 0 ? fixed.at + 1 : NULL;
    size_t n = json_array_size(values);
    bool did = row->kind != CONVERT_DID;
    while (rest.len > 0) {
        struct slice one = slice_cut(&rest, ' ');
        const char *ours = convert_text(c, "%.*s", SLICE_ARG(one));
        if (slice_find(one, '.') < one.len) {
            const char *all = n > 0 ? convert_join(c, values, 0, ",") : "on";
            (void)json_object_set_new(c->parts, ours, json_string(value != NULL ? value : all));
            did = true;
            continue;
        }
        for (size_t i = 0; i < n && row->kind == CONVERT_DID && value == NULL; i++)
            did = set_value(c, ours, convert_word(values, i), label) || did;
        if (row->kind == CONVERT_DID && value != NULL)
            did = convert_set(c, ours, value, label) || did;
    }
    if (did && row->note != NULL && row->kind != CONVERT_READ)
        convert_note(c, row->kind, label, "%s", row->note);
}

/* --- words ----------------------------------------------------------------------------------- */

bool convert_is_flag(const char *word)
{
    size_t dashes = strspn(word, "-");
    return dashes > 0 && dashes < 3 && strchr("0123456789", word[dashes]) == NULL;
}

/* Notes an unknown word. The note names another router with the same flag: forks adopt each other's
 * flags before documenting them. */
static void note_unknown(struct convert_state *c, enum convert_place place, const char *label,
                         const char *name)
{
    const char *note = convert_places[place].unknown;
    for (size_t i = 0; c->routers[i] != NULL && place == CONVERT_FLAG; i++) {
        struct slice flag = slice_of_cstr(name);
        const struct convert_row *row = convert_find(c->routers[i], CONVERT_MESH, flag).row;
        if (row == NULL)
            row = convert_find(c->routers[i], place, flag).row;
        if (row != NULL && row->ours != NULL) {
            struct slice rest = slice_of_cstr(row->ours), ours = slice_cut(&rest, '.');
            convert_note(c, CONVERT_NONE, label, "%s; a flag of %s with this name sets %.*s", note,
                         c->routers[i]->name, SLICE_ARG(ours));
            return;
        }
    }
    convert_note(c, CONVERT_NONE, label, "%s", note);
}

/* Returns the name used in notes: flags and balance without their values. */
static const char *label_of(struct convert_state *c, enum convert_place place,
                            struct convert_found found, const char *word)
{
    const char *prefix = place >= CONVERT_BIND ? convert_places[place].prefix : "";
    if (found.row == NULL || place < CONVERT_DIRECTIVE || strcmp(word, "balance") == 0)
        return convert_text(c, "%s%s", prefix, word);
    return convert_text(c, "%s%.*s", prefix, SLICE_ARG(found.name));
}

static struct convert_found find_row(struct convert_state *c, enum convert_place place,
                                     const char *name, const json_t *words, size_t i)
{
    struct convert_found found = {0};
    if (place == CONVERT_FLAG && convert_part(c, "cluster-key-file.mesh", NULL) != NULL)
        found = find_words(c, CONVERT_MESH, name, words, i);
    return found.row != NULL ? found : find_words(c, place, name, words, i);
}

/* Takes a word by the row of a table, with the values that follow. Returns the index of the next
 * word. */
static size_t take_word(struct convert_state *c, enum convert_place place, const json_t *words,
                        size_t i)
{
    bool flag = place == CONVERT_FLAG, line = place >= CONVERT_BIND;
    const char *word = convert_word(words, i), *next = convert_word(words, i + 1);
    const char *name = flag ? word + strspn(word, "-") : word;
    struct convert_found found = find_row(c, place, name, words, i);
    json_t *values = convert_own(c, json_array());
    if (found.row == NULL && flag && strncmp(name, "router-", 7) == 0) { /* from launch_server */
        name += 7;
        word = convert_text(c, "--%s", name);
        found = find_row(c, place, name, words, i);
    }
    const char *label = label_of(c, place, found, word);
    size_t most = flag || line ? found.values : SIZE_MAX; /* for others the rest of the line */
    for (i += found.words; i < json_array_size(words) && json_array_size(values) < most; i++) {
        const char *value = convert_word(words, i);
        struct slice text = slice_of_cstr(value);
        if (flag ? convert_is_flag(value)
                 : line && most > 1 && convert_find(c->router, place, text).row != NULL)
            break;
        (void)json_array_append_new(values, json_string(value));
    }
    bool is_switch = flag && most == 0 && found.words == 1;
    bool off = is_switch && convert_is_one("false 0", next);
    bool on = is_switch && convert_is_one("true 1", next);
    if (found.row == NULL)
        note_unknown(c, place, label, name);
    else if (off)
        convert_note(c, CONVERT_NOT_NEEDED, label, "switched off");
    else if (found.values > 0 && json_array_size(values) == 0 && found.row->kind == CONVERT_DID)
        convert_note(c, CONVERT_HAND, label, "the value is missing");
    else if (found.row->take != NULL)
        found.row->take(c, label, values);
    else
        take(c, found.row, label, values);
    return i + (off || on ? 1 : 0);
}

void convert_words(struct convert_state *c, enum convert_place place, const json_t *words,
                   size_t from)
{
    while (from < json_array_size(words)) {
        const char *word = convert_word(words, from);
        if (place != CONVERT_FLAG || convert_is_flag(word)) {
            from = take_word(c, place, words, from);
        } else {
            convert_note(c, CONVERT_NONE, word, "unknown word: not a flag");
            from++;
        }
    }
}

/* --- settings from several words -------------------------------------------------------------- */

/* Sets an address, if host and port are known. Adds the brackets to an IPv6 host. */
static void set_address(struct convert_state *c, const char *setting, const char *host,
                        const char *port, const char *origin)
{
    bool bare = host != NULL && strchr(host, ':') != NULL && host[0] != '[';
    if (host != NULL && port != NULL)
        (void)convert_set(c, setting, convert_text(c, bare ? "[%s]:%s" : "%s:%s", host, port),
                          origin);
}

static void set_listen(struct convert_state *c)
{
    const char *host = convert_part(c, "admin-listen.host", NULL);
    const char *port = convert_part(c, "admin-listen.port", host != NULL ? "9090" : NULL);
    bool given = convert_part(c, "listen.host", convert_part(c, "listen.port", NULL)) != NULL;
    set_address(c, "listen", convert_part(c, "listen.host", c->router->host),
                convert_part(c, "listen.port", c->router->port),
                given ? "--host, --port" : "default address");
    set_address(c, "admin-listen", host != NULL ? host : "127.0.0.1", port,
                "address of the metrics: /metrics is on the admin port");
    const char *listen = convert_setting(c, "listen");
    if (listen != NULL && slice_ends_with(slice_of_cstr(listen), SLICE(":9090")) &&
        convert_setting(c, "admin-listen") == NULL)
        (void)convert_set(c, "admin-listen", "127.0.0.1:9091", "listen uses 9090, the default");
}

/* A mesh becomes a cluster of Grapevine. The key needs manual work. */
static void set_mesh(struct convert_state *c)
{
    struct node_options_error error;
    const char *port = convert_part(c, "gossip-listen.port", "39527");
    set_address(c, "gossip-listen", convert_part(c, "gossip-listen.host", "0.0.0.0"), port,
                "--mesh-host, --mesh-port");
    set_address(c, "gossip-advertise", convert_part(c, "gossip-advertise.host", NULL), port,
                "--mesh-advertise-host, --mesh-port");
    convert_note(c, CONVERT_DID, "--mesh-port", "the port needs UDP and TCP, not only TCP");
    DISCARD(node_options_set(&c->options, SLICE("cluster-key-file"), SLICE("FILE"),
                             (struct node_option_origin){0}, &error));
}

static void set_kubernetes(struct convert_state *c)
{
    const char *ns = convert_part(c, "replica-kubernetes.namespace", "");
    const char *port = convert_part(c, "replica-kubernetes.port", "");
    const char *name = convert_text(c, "%s%sengines%s%s", ns, ns[0] != '\0' ? "/" : "",
                                    port[0] != '\0' ? ":" : "", port);
    (void)convert_set(c, "replica-kubernetes", name, "Kubernetes discovery");
    convert_note(
        c, CONVERT_HAND, "replica-kubernetes",
        "the router finds pods by a Service: create one named \"engines\" with the selector "
        "\"%s\", or write the name of an existing one",
        convert_part(c, "replica-kubernetes.selector", "of the engines' pods"));
}

void convert_finish(struct convert_state *c)
{
    struct node_options_error error;
    set_listen(c);
    if (convert_part(c, "cluster-key-file.mesh", NULL) != NULL)
        set_mesh(c);
    if (convert_part(c, "replica-kubernetes.on", NULL) != NULL)
        set_kubernetes(c);
    if (c->router->body_bytes != NULL && convert_setting(c, "body-bytes-max") == NULL)
        (void)convert_set(c, "body-bytes-max", c->router->body_bytes, "default limit of a body");
    if (node_options_finish(&c->options, &error) != 0)
        convert_note(c, CONVERT_HAND, "all settings", "%s", error.text);
}

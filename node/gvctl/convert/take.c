/* What is gathered from one input: rows, and what becomes of values by them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/err.h"
#include "base/version.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/settings/options.h"

void convert_begin(struct convert_state *c, const struct convert_router *router)
{
    *c = (struct convert_state){.router = router,
                                .settings = json_object(),
                                .origins = json_object(),
                                .left = json_object(),
                                .servers = json_object(),
                                .limits = json_object(),
                                .notes = json_array()};
}

void convert_free(struct convert_state *c)
{
    json_decref(c->settings);
    json_decref(c->origins);
    json_decref(c->left);
    json_decref(c->servers);
    json_decref(c->limits);
    json_decref(c->notes);
    for (size_t i = 0; i < CONVERT_AS_COUNT; i++)
        json_decref(c->kept[i]);
}

const char *convert_word(const json_t *words, size_t i)
{
    const char *text = json_string_value(json_array_get(words, i));
    return text != NULL ? text : "";
}

/* --- rows ------------------------------------------------------------------------------------ */

/* The next of a row's names; false: there is none. */
static bool next_name(struct slice *names, struct convert_found *found)
{
    struct slice name = slice_trim(slice_cut(names, ','));
    found->several = slice_ends_with(name, SLICE("=..."));
    found->value = found->several || slice_ends_with(name, SLICE("="));
    name.len -= found->several ? 4 : found->value ? 1 : 0;
    found->name = name;
    return name.len > 0;
}

static bool is_general(struct slice name, struct slice given)
{
    if (name.at[0] == '*')
        return slice_ends_with(given, slice_skip(name, 1));
    return slice_ends_with(name, SLICE("*")) &&
           slice_starts_with(given, slice_of(name.at, name.len - 1));
}

struct convert_found convert_find(const struct convert_router *router, struct slice name)
{
    struct convert_found general = {0};
    for (size_t i = 0; i < ARRAY_LEN(router->tables) && router->tables[i] != NULL; i++) {
        for (const struct convert_row *row = router->tables[i]; row->names != NULL; row++) {
            struct slice names = slice_of_cstr(row->names);
            struct convert_found found = {.row = row};
            while (next_name(&names, &found)) {
                if (slice_equal(found.name, name))
                    return found;
                if (general.row == NULL && is_general(found.name, name))
                    general = found;
            }
        }
    }
    return general;
}

struct convert_found convert_find_value(const struct convert_router *router, struct slice name,
                                        const char *value)
{
    char two[256];
    (void)snprintf(two, sizeof two, "%.*s %s", SLICE_ARG(name), value);
    struct convert_found found = convert_find(router, slice_of_cstr(two));
    return found.row != NULL && found.name.len > name.len ? found : convert_find(router, name);
}

/* --- what is gathered ------------------------------------------------------------------------ */

void convert_note(struct convert_state *c, enum convert_kind kind, const char *flag,
                  const char *note)
{
    size_t i;
    const json_t *other;
    if (note == NULL)
        return;
    json_t *one = json_pack("{s:i,s:s,s:s}", "kind", (int)kind, "flag", flag, "note", note);
    bool again = false;
    json_array_foreach(c->notes, i, other)
    {
        again = again || json_equal(other, one) != 0;
    }
    if (!again)
        (void)json_array_append(c->notes, one);
    json_decref(one);
}

/* Appends to an array in `map`, which it makes. */
static void append(json_t *map, const char *key, json_t *value)
{
    if (json_object_get(map, key) == NULL)
        (void)json_object_set_new(map, key, json_array());
    (void)json_array_append_new(json_object_get(map, key), value);
}

/* Whether it can be written; else that is noted. */
static bool check(struct convert_state *c, const char *setting, const char *value,
                  const char *origin)
{
    char text[NODE_ERROR_BYTES + 512];
    struct node_options options;
    struct node_options_error error;
    bool known = node_option_find(slice_of_cstr(setting)) >= 0;
    if (node_options_init(&options) != 0)
        abort();
    int err = known ? node_options_set(&options, slice_of_cstr(setting), slice_of_cstr(value),
                                       (struct node_option_origin){0}, &error)
                    : ERR_NOT_FOUND;
    if (err != 0)
        (void)snprintf(text, sizeof text, "would be %s: %s, which %s%s", setting, value,
                       known ? "is refused: " : "grapevine " GRAPEVINE_VERSION " does not have",
                       known ? error.text : "");
    if (err != 0)
        convert_note(c, known ? CONVERT_HAND : CONVERT_NONE, origin, text);
    node_options_free(&options);
    return err == 0;
}

void convert_leave(struct convert_state *c, const char *setting, const char *value,
                   const char *origin, const char *why)
{
    char note[600];
    if (why[0] == '\0')
        convert_set(c, setting, value, origin);
    if (why[0] == '\0' || !check(c, setting, value, origin))
        return;
    append(c->left, setting, json_pack("{s:s,s:s}", "value", value, "why", why));
    (void)snprintf(note, sizeof note, "%s: %s", value, why);
    convert_note(c, CONVERT_HAND, origin, note);
}

void convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin)
{
    unsigned count;
    if (!check(c, setting, value, origin))
        return;
    int row = node_option_find(slice_of_cstr(setting));
    if (node_option_table(&count)[row].type != NODE_TYPE_LIST) {
        (void)json_object_del(c->settings, setting);
        (void)json_object_del(c->origins, setting);
    }
    append(c->settings, setting, json_string(value));
    const json_t *origins = json_object_get(c->origins, setting);
    size_t n = json_array_size(origins);
    if (n == 0 || strcmp(convert_word(origins, n - 1), origin) != 0)
        append(c->origins, setting, json_string(origin));
}

void convert_keep(struct convert_state *c, enum convert_as as, const char *value)
{
    if (c->kept[as] == NULL)
        c->kept[as] = json_array();
    (void)json_array_append_new(c->kept[as], json_string(value));
}

static void keep_all(struct convert_state *c, enum convert_as as, const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        convert_keep(c, as, convert_word(values, i));
}

const char *convert_kept(const struct convert_state *c, enum convert_as as, const char *otherwise)
{
    size_t n = json_array_size(c->kept[as]);
    return n > 0 ? convert_word(c->kept[as], n - 1) : otherwise;
}

/* --- values ---------------------------------------------------------------------------------- */

/* "5000", "5s", "1d", "1m30s" as a time of ours. */
static void take_time(struct convert_state *c, const char *setting, const char *flag,
                      const char *value, const char *unit)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1},     {"us", 0.001}, {"ms", 1},     {"s", 1000},
                 {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    char text[64], *at = text;
    double ms = 0;
    bool good = true;
    (void)snprintf(text, sizeof text, "%s%s", value, unit);
    do {
        size_t i = 0;
        bool digit = at[0] >= '0' && at[0] <= '9';
        double part = strtod(at, &at);
        size_t len = strcspn(at, "0123456789");
        while (i < ARRAY_LEN(units) &&
               !slice_equal(slice_of_cstr(units[i].unit), slice_of(at, len)))
            i++;
        good = digit && i < ARRAY_LEN(units);
        ms += good ? part * units[i].ms : 0;
        at += len;
    } while (good && at[0] != '\0');
    ms = ms > 0 && ms < 1 ? 1 : ms;
    bool whole = ms >= 1000 && ms == 1000 * (double)(long long)(ms / 1000);
    (void)snprintf(text, sizeof text, whole ? "%.0fs" : "%.0fms", whole ? ms / 1000 : ms);
    if (good)
        convert_set(c, setting, text, flag);
    else
        convert_note(c, CONVERT_HAND, flag, "its value is no time");
}

static void take_urls(struct convert_state *c, const char *setting, const char *flag,
                      const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        struct slice rest = slice_of_cstr(convert_word(values, i));
        while (rest.len > 0) {
            char one[512], url[520];
            struct slice text = slice_trim(slice_cut(&rest, ','));
            if (slice_ends_with(text, SLICE("/v1")))
                text.len -= 3;
            (void)slice_to_cstr(text, one, sizeof one);
            (void)snprintf(url, sizeof url, "%s%s", strstr(one, "://") == NULL ? "http://" : "",
                           one);
            if (text.len > 0)
                convert_set(c, setting, url, flag);
        }
    }
}

/* By the folder that the global section names for those of its kind. */
static void take_file(struct convert_state *c, const char *setting, const char *flag,
                      const char *path)
{
    char whole[600], note[800];
    struct stat status;
    bool ca = strcmp(setting, "replica-ca-file") == 0;
    const char *base = convert_kept(c, ca ? CONVERT_CA_BASE : CONVERT_CRT_BASE, "");
    bool under = path[0] != '/' && base[0] != '\0';
    (void)snprintf(whole, sizeof whole, "%s%s%s", under ? base : "", under ? "/" : "", path);
    if (slice_ends_with(slice_of_cstr(whole), SLICE("/")) ||
        (stat(whole, &status) == 0 && S_ISDIR(status.st_mode))) {
        (void)snprintf(note, sizeof note, "%s: the name of each file in %s, one an entry", setting,
                       whole);
        convert_note(c, CONVERT_HAND, flag, note);
    } else if (path[0] != '@') { /* @system-ca is what is taken without a setting */
        convert_set(c, setting, whole, flag);
    }
}

static void take_setting(struct convert_state *c, enum convert_as as, const char *setting,
                         const char *flag, const json_t *values)
{
    const char *value = convert_word(values, 0);
    switch (as) {
    case CONVERT_SECONDS:
        take_time(c, setting, flag, value, "s");
        break;
    case CONVERT_DURATION:
        take_time(c, setting, flag, value, "");
        break;
    case CONVERT_URLS:
        take_urls(c, setting, flag, values);
        break;
    case CONVERT_FILE:
        take_file(c, setting, flag, value);
        break;
    case CONVERT_NUMBER: /* -1 says that there is none */
        if (value[0] == '-') {
            convert_note(c, CONVERT_NOT_NEEDED, flag, "no limit is said: the default holds");
            break;
        }
        convert_set(c, setting, value, flag);
        break;
    default:
        convert_set(c, setting, value, flag);
    }
}

void convert_take(struct convert_state *c, struct convert_found found, const char *flag,
                  const json_t *values)
{
    const struct convert_row *row = found.row;
    struct slice rest = slice_of_cstr(row->settings != NULL ? row->settings : "");
    char name[128];
    bool did = row->as >= CONVERT_HOST && row->as < CONVERT_MESH;
    if (row->as <= CONVERT_BY_HAND) {
        convert_note(c,
                     row->as == CONVERT_NEEDLESS  ? CONVERT_NOT_NEEDED
                     : row->as == CONVERT_MISSING ? CONVERT_NONE
                                                  : CONVERT_HAND,
                     flag, row->note);
    } else if (row->as == CONVERT_SPECIAL) {
        (void)slice_to_cstr(found.name, name, sizeof name);
        c->special(c, name, values);
    } else if (row->as >= CONVERT_HOST) {
        keep_all(c, row->as, values);
        if (json_array_size(values) == 0) /* a switch */
            convert_keep(c, row->as, "");
    } else if (row->as == CONVERT_FIXED) {
        (void)slice_to_cstr(slice_cut(&rest, ':'), name, sizeof name);
        convert_set(c, name, rest.at + 1, flag);
        did = json_object_get(c->settings, name) != NULL;
    }
    while (rest.len > 0 && row->as >= CONVERT_TEXT && row->as < CONVERT_FIXED) {
        (void)slice_to_cstr(slice_cut(&rest, ' '), name, sizeof name);
        take_setting(c, row->as, name, flag, values);
        did = did || json_object_get(c->settings, name) != NULL;
    }
    if (did)
        convert_note(c, CONVERT_DID, flag, row->note);
}

/* --- command lines --------------------------------------------------------------------------- */

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] < '0' || word[1] > '9');
}

/* Forks take flags over from each other before it is written down. */
static void note_unknown(struct convert_state *c, const char *word, struct slice name)
{
    const struct convert_router *other;
    char note[200] = "this flag is not known here";
    for (unsigned i = 0; (other = c->router_at(i)) != NULL; i++) {
        struct convert_found found = convert_find(other, name);
        if (other->is_config || found.row == NULL || found.row->settings == NULL)
            continue;
        (void)snprintf(note, sizeof note, "this flag is not known here; that of %s is %s",
                       other->name, found.row->settings);
        break;
    }
    convert_note(c, CONVERT_NONE, word, note);
}

/* One flag, with values[0] if it is joined; the words behind it are at words[i + 1]. Returns how
 * many of them are its values. */
static size_t take_flag(struct convert_state *c, const json_t *words, size_t i, json_t *values)
{
    const char *word = convert_word(words, i), *next = convert_word(words, i + 1);
    struct slice rest = slice_skip(slice_of_cstr(word), word[1] == '-' ? 2 : 1);
    bool joined = slice_find(rest, '=') < rest.len;
    struct slice name = slice_cut(&rest, '=');
    size_t taken = 0;
    char flag[128];
    if (joined)
        (void)json_array_append_new(values, json_stringn(rest.at, rest.len));
    const char *value = joined ? convert_word(values, 0) : next;
    struct convert_found found = convert_find_value(c->router, name, value);
    if (found.row == NULL && slice_starts_with(name, SLICE("router-"))) { /* by launch_server */
        name = slice_skip(name, strlen("router-"));
        found = convert_find_value(c->router, name, value);
    }
    bool fixed = found.row != NULL && found.name.len > name.len; /* by that value */
    size_t most = found.row == NULL || found.several ? SIZE_MAX : found.value || fixed ? 1 : 0;
    while (json_array_size(values) < most && i + 1 + taken < json_array_size(words) &&
           !is_flag(convert_word(words, i + 1 + taken)))
        (void)json_array_append(values, json_array_get(words, i + 1 + taken++));
    bool off = most == 0 && joined && (strcmp(value, "false") == 0 || strcmp(value, "0") == 0);
    (void)snprintf(flag, sizeof flag, "%s%.*s", name.len == 1 ? "-" : "--", SLICE_ARG(name));
    if (found.row == NULL)
        note_unknown(c, word, name);
    else if (off)
        convert_note(c, CONVERT_NOT_NEEDED, word, "it is off");
    else if (json_array_size(values) == 0 &&
             (most == 1 || (found.several && found.row->as >= CONVERT_TEXT)))
        convert_note(c, CONVERT_HAND, word, "its value is missing");
    else
        convert_take(c, found, flag, values);
    return taken;
}

void convert_words(struct convert_state *c, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        json_t *values = json_array();
        if (is_flag(convert_word(words, i)))
            i += take_flag(c, words, i, values);
        else
            convert_note(c, CONVERT_NONE, convert_word(words, i),
                         "no flag: what it says is not known here");
        json_decref(values);
    }
}

/* --- what several flags say together --------------------------------------------------------- */

/* An IPv6 host gets its brackets. */
static void set_address(struct convert_state *c, const char *setting, const char *host,
                        const char *port, const char *origin)
{
    char text[600];
    bool ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    (void)snprintf(text, sizeof text, "%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
    convert_set(c, setting, text, origin);
}

/* What the row of that kind says, or `why`. */
static void note_kept(struct convert_state *c, enum convert_kind kind, enum convert_as as,
                      const char *why)
{
    char flag[64];
    for (const struct convert_row *row = c->router->tables[1]; row->names != NULL; row++) {
        if (row->as != as)
            continue;
        (void)snprintf(flag, sizeof flag, "--%.*s", (int)strcspn(row->names, "="), row->names);
        convert_note(c, kind, flag, why != NULL ? why : row->note);
    }
}

/* The mesh of SMG and of the SGLang gateway, which is our cluster. */
static void set_mesh(struct convert_state *c)
{
    const char *port = convert_kept(c, CONVERT_MESH_PORT, "39527");
    const char *advertise = convert_kept(c, CONVERT_MESH_ADVERTISE, NULL);
    const char *name = convert_kept(c, CONVERT_MESH_NAME, NULL);
    const json_t *peers = c->kept[CONVERT_MESH_PEERS];
    note_kept(c, CONVERT_HAND, CONVERT_MESH, NULL);
    if (c->kept[CONVERT_MESH_PODS] != NULL)
        note_kept(c, CONVERT_HAND, CONVERT_MESH_PODS, NULL);
    note_kept(c, CONVERT_DID, CONVERT_MESH_PORT, NULL);
    set_address(c, "gossip-listen", convert_kept(c, CONVERT_MESH_HOST, "0.0.0.0"), port,
                "--mesh-host, --mesh-port");
    if (advertise != NULL)
        set_address(c, "gossip-advertise", advertise, port, "--mesh-advertise-host, --mesh-port");
    if (name != NULL)
        convert_set(c, "node-name", name, "--mesh-server-name");
    for (size_t i = 0; i < json_array_size(peers); i++) { /* some write "grpc://HOST:PORT" */
        const char *text = convert_word(peers, i), *scheme = strstr(text, "://");
        convert_set(c, "join", scheme != NULL ? scheme + 3 : text, "--mesh-peer-urls");
    }
    if (json_array_size(peers) > 1)
        note_kept(c, CONVERT_DID, CONVERT_MESH_PEERS, NULL);
}

static void set_kubernetes(struct convert_state *c)
{
    char text[300], note[600], selector[256] = "";
    const char *ns = convert_kept(c, CONVERT_NAMESPACE, "");
    const char *port = convert_kept(c, CONVERT_KUBERNETES_PORT, "");
    const json_t *labels = c->kept[CONVERT_SELECTOR];
    for (size_t i = 0; i < json_array_size(labels); i++) {
        size_t len = strlen(selector);
        (void)snprintf(selector + len, sizeof selector - len, "%s%s", i > 0 ? "," : "",
                       convert_word(labels, i));
    }
    (void)snprintf(text, sizeof text, "%s%sengines%s%s", ns, ns[0] != '\0' ? "/" : "",
                   port[0] != '\0' ? ":" : "", port);
    convert_set(c, "replica-kubernetes", text, "discovery by Kubernetes");
    (void)snprintf(
        note, sizeof note,
        "pods are found by a Service: make one of the name \"engines\" whose selector is "
        "\"%s\", or write the name of the one that is there",
        selector[0] != '\0' ? selector : "that of the engines' pods");
    convert_note(c, CONVERT_HAND, "replica-kubernetes", note);
}

/* What no setting shows alone: what a router would not start with is noted. */
static void check_together(struct convert_state *c)
{
    struct node_options options;
    struct node_options_error error;
    struct node_option_origin origin = {0};
    const char *name;
    json_t *values;
    if (node_options_init(&options) != 0)
        abort();
    json_object_foreach(c->settings, name, values)
    {
        for (size_t i = 0; i < json_array_size(values); i++)
            DISCARD(node_options_set(&options, slice_of_cstr(name),
                                     slice_of_cstr(convert_word(values, i)), origin, &error));
    }
    if (c->kept[CONVERT_MESH] != NULL) /* whose key is to be made by hand */
        DISCARD(
            node_options_set(&options, SLICE("cluster-key-file"), SLICE("FILE"), origin, &error));
    if (node_options_finish(&options, &error) != 0)
        convert_note(c, CONVERT_HAND, "all together", error.text);
    node_options_free(&options);
}

void convert_finish(struct convert_state *c)
{
    const struct convert_router *r = c->router;
    bool given = c->kept[CONVERT_HOST] != NULL || c->kept[CONVERT_PORT] != NULL;
    const char *host = convert_kept(c, CONVERT_HOST, r->host);
    const char *port = convert_kept(c, CONVERT_PORT, r->port);
    if (host != NULL && port != NULL)
        set_address(c, "listen", host, port,
                    given ? "--host, --port" : "where it listens by default");
    if (c->kept[CONVERT_ADMIN_HOST] != NULL || c->kept[CONVERT_ADMIN_PORT] != NULL)
        set_address(c, "admin-listen", convert_kept(c, CONVERT_ADMIN_HOST, "127.0.0.1"),
                    convert_kept(c, CONVERT_ADMIN_PORT, "9090"),
                    "where its metrics are: /metrics is at the admin port");
    if (c->kept[CONVERT_MESH] != NULL)
        set_mesh(c);
    for (int as = CONVERT_MESH_NAME; as < CONVERT_MESH_PODS; as++) {
        if (c->kept[as] != NULL && c->kept[CONVERT_MESH] == NULL)
            note_kept(c, CONVERT_NOT_NEEDED, (enum convert_as)as,
                      "without --enable-mesh it says nothing");
    }
    /* launch_server writes "--router-" before each flag: then these are the engines' pods. */
    if (c->kept[CONVERT_MESH] == NULL)
        keep_all(c, CONVERT_SELECTOR, c->kept[CONVERT_MESH_PODS]);
    if (c->kept[CONVERT_KUBERNETES] != NULL)
        set_kubernetes(c);
    if (r->body_bytes != NULL && json_object_get(c->settings, "body-bytes-max") == NULL)
        convert_set(c, "body-bytes-max", r->body_bytes, "the greatest body by default");
    const char *listen = convert_word(json_object_get(c->settings, "listen"), 0);
    if (slice_ends_with(slice_of_cstr(listen), SLICE(":9090")) &&
        json_object_get(c->settings, "admin-listen") == NULL)
        convert_set(c, "admin-listen", "127.0.0.1:9091", "9090, its default, is taken by listen");
    check_together(c);
}

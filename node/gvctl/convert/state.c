/* What is gathered from one command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                                .mesh = json_object(),
                                .notes = json_array()};
}

void convert_free(struct convert_state *c)
{
    json_decref(c->settings);
    json_decref(c->origins);
    json_decref(c->left);
    json_decref(c->mesh);
    json_decref(c->notes);
}

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

/* Whether the router takes it; else says what is wrong. */
static bool is_good(const char *setting, const char *value, char why[NODE_ERROR_BYTES])
{
    struct node_options options;
    struct node_options_error error;
    if (node_options_init(&options) != 0)
        abort();
    struct node_option_origin origin = {0};
    int err =
        node_options_set(&options, slice_of_cstr(setting), slice_of_cstr(value), origin, &error);
    if (err != 0)
        (void)snprintf(why, NODE_ERROR_BYTES, "%s", error.text);
    node_options_free(&options);
    return err == 0;
}

static bool is_list(const char *setting)
{
    int row = node_option_find(slice_of_cstr(setting));
    unsigned count;
    return row >= 0 && node_option_table(&count)[row].type == NODE_TYPE_LIST;
}

/* Whether it can be written; else that is noted. */
static bool check(struct convert_state *c, const char *setting, const char *value,
                  const char *origin)
{
    char why[NODE_ERROR_BYTES], text[NODE_ERROR_BYTES + 512];
    if (node_option_find(slice_of_cstr(setting)) < 0) {
        (void)snprintf(text, sizeof text,
                       "would be %s: %s, which grapevine " GRAPEVINE_VERSION " does not have",
                       setting, value);
        convert_note(c, CONVERT_NONE, origin, text);
        return false;
    }
    if (!is_good(setting, value, why)) {
        (void)snprintf(text, sizeof text, "would be %s: %s, which is refused: %s", setting, value,
                       why);
        convert_note(c, CONVERT_HAND, origin, text);
        return false;
    }
    return true;
}

void convert_leave(struct convert_state *c, const char *setting, const char *value,
                   const char *origin, const char *why)
{
    char note[600];
    if (!check(c, setting, value, origin))
        return;
    if (json_object_get(c->left, setting) == NULL)
        (void)json_object_set_new(c->left, setting, json_array());
    (void)json_array_append_new(json_object_get(c->left, setting),
                                json_pack("{s:s,s:s}", "value", value, "why", why));
    (void)snprintf(note, sizeof note, "%s: %s", value, why);
    convert_note(c, CONVERT_HAND, origin, note);
}

void convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin)
{
    if (!check(c, setting, value, origin))
        return;
    json_t *values = json_object_get(c->settings, setting);
    if (values == NULL || !is_list(setting)) {
        (void)json_object_set_new(c->settings, setting, json_array());
        (void)json_object_set_new(c->origins, setting, json_array());
        values = json_object_get(c->settings, setting);
    }
    (void)json_array_append_new(values, json_string(value));
    json_t *origins = json_object_get(c->origins, setting);
    size_t last = json_array_size(origins);
    const char *before = last > 0 ? json_string_value(json_array_get(origins, last - 1)) : "";
    if (strcmp(before, origin) != 0)
        (void)json_array_append_new(origins, json_string(origin));
}

static void fill(char *out, size_t size, const char *value)
{
    (void)snprintf(out, size, "%s", value);
}

static const char *first_of(const json_t *values)
{
    const char *value = json_string_value(json_array_get(values, 0));
    return value != NULL ? value : "";
}

static void take_policy(struct convert_state *c, const char *flag, const char *value)
{
    for (const struct convert_policy *p = c->router->policies; p->theirs != NULL; p++) {
        if (strcmp(p->theirs, value) != 0)
            continue;
        if (p->ours != NULL)
            convert_set(c, "policy", p->ours, flag);
        convert_note(c, p->ours != NULL ? CONVERT_DID : CONVERT_NONE, flag, p->note);
        return;
    }
    convert_note(c, CONVERT_NONE, flag, "no such policy is known here: cache_aware is used");
}

static void take_level(struct convert_state *c, const char *flag, const char *value)
{
    static const char *const levels[][2] = {
        {"warning", "warn"}, {"critical", "error"}, {"trace", "debug"}, {"fatal", "error"},
        {"WARNING", "warn"}, {"INFO", "info"},      {"DEBUG", "debug"}, {"ERROR", "error"}};
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        value = strcmp(value, levels[i][0]) == 0 ? levels[i][1] : value;
    convert_set(c, "log-level", value, flag);
}

/* A number and its unit from the front of `at`, in milliseconds; NULL: they are none. */
static const char *take_part(const char *at, double *ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1},     {"us", 0.001}, {"ms", 1},     {"s", 1000},
                 {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    char *end;
    if (at[0] < '0' || at[0] > '9')
        return NULL;
    double value = strtod(at, &end);
    size_t len = strcspn(end, "0123456789");
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strlen(units[i].unit) == len && strncmp(end, units[i].unit, len) == 0) {
            *ms += value * units[i].ms;
            return end + len;
        }
    }
    return NULL;
}

bool convert_duration(struct slice text, char *out, size_t size)
{
    char copy[64];
    if (!slice_to_cstr(text, copy, sizeof copy))
        return false;
    double ms = 0;
    const char *at = copy;
    do {
        at = take_part(at, &ms);
    } while (at != NULL && at[0] != '\0');
    if (at == NULL)
        return false;
    ms = ms > 0 && ms < 1 ? 1 : ms;
    if (ms >= 1000 && ms == 1000 * (double)(long long)(ms / 1000))
        (void)snprintf(out, size, "%.0fs", ms / 1000);
    else
        (void)snprintf(out, size, "%.0fms", ms);
    return true;
}

static void take_time(struct convert_state *c, const struct convert_row *row, const char *flag,
                      const char *value)
{
    char text[64], given[64];
    (void)snprintf(given, sizeof given, "%s%s", value,
                   row->as == CONVERT_SECONDS        ? "s"
                   : row->as == CONVERT_MILLISECONDS ? "ms"
                                                     : "");
    if (convert_duration(slice_of_cstr(given), text, sizeof text))
        convert_set(c, row->setting, text, flag);
    else
        convert_note(c, CONVERT_HAND, flag, "its value is no time");
}

static void take_urls(struct convert_state *c, const struct convert_row *row, const char *flag,
                      const json_t *values)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values, i, value)
    {
        struct slice rest = slice_of_cstr(json_string_value(value));
        while (rest.len > 0) {
            char url[512];
            struct slice one = slice_trim(slice_cut(&rest, ','));
            size_t scheme = one.len;
            for (size_t k = 0; k + 2 < one.len && scheme == one.len; k++)
                scheme = memcmp(one.at + k, "://", 3) == 0 ? k : one.len;
            if (one.len == 0)
                continue;
            if (slice_ends_with(one, SLICE("/v1")))
                one.len -= 3;
            (void)snprintf(url, sizeof url, "%s%.*s", scheme == one.len ? "http://" : "",
                           SLICE_ARG(one));
            convert_set(c, row->setting, url, flag);
        }
    }
}

void convert_address(const char *host, const char *port, char *out, size_t size)
{
    bool ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    (void)snprintf(out, size, "%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

void convert_selector(struct convert_state *c, const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        size_t len = strlen(c->selector);
        (void)snprintf(c->selector + len, sizeof c->selector - len, "%s%s", i > 0 ? "," : "",
                       json_string_value(json_array_get(values, i)));
    }
}

static void keep_mesh(struct convert_state *c, const char *flag, const json_t *values)
{
    if (json_object_get(c->mesh, flag) == NULL)
        (void)json_object_set_new(c->mesh, flag, json_array());
    (void)json_array_extend(json_object_get(c->mesh, flag), (json_t *)values);
}

/* What several flags say together is kept until convert_finish(). */
static void keep(struct convert_state *c, const struct convert_row *row, const char *value,
                 const json_t *values)
{
    switch (row->as) {
    case CONVERT_HOST:
        fill(c->host, sizeof c->host, value);
        break;
    case CONVERT_PORT:
        fill(c->port, sizeof c->port, value);
        break;
    case CONVERT_ADMIN_HOST:
        fill(c->admin_host, sizeof c->admin_host, value);
        break;
    case CONVERT_ADMIN_PORT:
        fill(c->admin_port, sizeof c->admin_port, value);
        break;
    case CONVERT_KUBERNETES:
        c->kubernetes = true;
        break;
    case CONVERT_KUBERNETES_NAMESPACE:
        fill(c->ns, sizeof c->ns, value);
        break;
    case CONVERT_KUBERNETES_PORT:
        fill(c->kubernetes_port, sizeof c->kubernetes_port, value);
        break;
    default:
        convert_selector(c, values);
    }
}

void convert_take(struct convert_state *c, const struct convert_row *row, const json_t *values)
{
    const char *value = first_of(values);
    char flag[128];
    (void)snprintf(flag, sizeof flag, "%s%s",
                   c->router->is_config   ? ""
                   : row->flag[1] == '\0' ? "-"
                                          : "--",
                   row->flag);
    switch (row->as) {
    case CONVERT_NEEDLESS:
        convert_note(c, CONVERT_NOT_NEEDED, flag, row->note);
        return;
    case CONVERT_MISSING:
        convert_note(c, CONVERT_NONE, flag, row->note);
        return;
    case CONVERT_BY_HAND:
        convert_note(c, CONVERT_HAND, flag, row->note);
        return;
    case CONVERT_MESH:
    case CONVERT_MESH_BY_HAND:
        keep_mesh(c, row->flag, values);
        return;
    case CONVERT_SPECIAL:
        c->router->special(c, row, values);
        return;
    case CONVERT_POLICY:
        take_policy(c, flag, value);
        return;
    case CONVERT_NUMBER: /* -1 says that there is none */
        if (value[0] == '-')
            convert_note(c, CONVERT_NOT_NEEDED, flag, "no limit is said: the default holds");
        else
            convert_set(c, row->setting, value, flag);
        break;
    case CONVERT_TEXT:
        convert_set(c, row->setting, value, flag);
        break;
    case CONVERT_SECONDS:
    case CONVERT_MILLISECONDS:
    case CONVERT_DURATION:
        take_time(c, row, flag, value);
        break;
    case CONVERT_URLS:
        take_urls(c, row, flag, values);
        break;
    case CONVERT_FIXED:
        convert_set(c, row->setting, row->fixed, flag);
        break;
    case CONVERT_LEVEL:
        take_level(c, flag, value);
        break;
    default:
        keep(c, row, value, values);
    }
    if (json_object_get(c->settings, row->setting != NULL ? row->setting : "") != NULL ||
        row->as >= CONVERT_HOST)
        convert_note(c, CONVERT_DID, flag, row->note);
}

const struct convert_row *convert_find(const struct convert_router *router, struct slice flag)
{
    const struct convert_row *general = NULL;
    for (unsigned i = 0; i < router->row_count; i++) {
        struct slice name = slice_of_cstr(router->rows[i].flag);
        if (slice_equal(name, flag))
            return &router->rows[i];
        if (name.at[0] == '*' && slice_ends_with(flag, slice_skip(name, 1)))
            general = general == NULL ? &router->rows[i] : general;
    }
    return general;
}

/* --- words ----------------------------------------------------------------------------------- */

/* The row of a flag; "router-" before it is what launch_server writes. */
static const struct convert_row *row_of(const struct convert_state *c, struct slice name)
{
    const struct convert_row *row = convert_find(c->router, name);
    if (row == NULL && slice_starts_with(name, SLICE("router-")))
        row = convert_find(c->router, slice_skip(name, strlen("router-")));
    return row;
}

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] < '0' || word[1] > '9');
}

/* The values behind words[i]; returns how many words they are. */
static size_t take_values(const json_t *words, size_t i, enum convert_arity arity, json_t *values)
{
    size_t taken = 0, most = arity == CONVERT_ONE ? 1 : arity == CONVERT_MANY ? 1000000 : 0;
    while (taken < most && i + 1 + taken < json_array_size(words) &&
           !is_flag(json_string_value(json_array_get(words, i + 1 + taken)))) {
        (void)json_array_append(values, json_array_get(words, i + 1 + taken));
        taken++;
    }
    return taken;
}

/* Forks take flags over from each other before it is written down. */
static void note_unknown(struct convert_state *c, const char *word, struct slice name)
{
    const struct convert_router *other;
    char note[200];
    for (unsigned i = 0; c->router_at != NULL && (other = c->router_at(i)) != NULL; i++) {
        const struct convert_row *row = other->is_config ? NULL : convert_find(other, name);
        if (row == NULL || row->setting == NULL)
            continue;
        (void)snprintf(note, sizeof note, "this flag is not known here; that of %s is %s",
                       other->name, row->setting);
        convert_note(c, CONVERT_NONE, word, note);
        return;
    }
    convert_note(c, CONVERT_NONE, word, "this flag is not known here");
}

void convert_words(struct convert_state *c, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (!is_flag(word)) {
            convert_note(c, CONVERT_NONE, word, "no flag: what it says is not known here");
            continue;
        }
        struct slice rest = slice_skip(slice_of_cstr(word), word[1] == '-' ? 2 : 1);
        bool joined = slice_find(rest, '=') < rest.len;
        struct slice name = slice_cut(&rest, '=');
        const struct convert_row *row = row_of(c, name);
        json_t *values = json_array();
        if (joined)
            (void)json_array_append_new(values, json_stringn(rest.at, rest.len));
        if (!joined || (row != NULL && row->arity == CONVERT_MANY))
            i += take_values(words, i, row != NULL ? row->arity : CONVERT_MANY, values);
        bool off = row != NULL && row->arity == CONVERT_SWITCH && joined &&
                   (slice_equal(rest, SLICE("false")) || slice_equal(rest, SLICE("0")));
        if (row == NULL)
            note_unknown(c, word, name);
        else if (off)
            convert_note(c, CONVERT_NOT_NEEDED, word, "it is off");
        else if (row->arity == CONVERT_ONE && json_array_size(values) == 0)
            convert_note(c, CONVERT_HAND, word, "its value is missing");
        else
            convert_take(c, row, values);
        json_decref(values);
    }
}

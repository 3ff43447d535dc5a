#include "node/gvctl/parse.h"

#include <math.h>
#include <string.h>

#include "node/replica/exposition.h"
#include "node/settings/options.h"

json_t *parse_ready(struct slice text)
{
    return json_loadb(text.at, text.len, JSON_DECODE_ANY, NULL);
}

json_t *parse_alive(struct slice text)
{
    return slice_starts_with(text, SLICE("ok")) ? json_pack("{s:b}", "alive", 1) : NULL;
}

/* --- /metrics -------------------------------------------------------------------------------- */

/* Returns a label's value without escapes: \n, and a backslash before anything else. */
static json_t *unescaped(struct slice text)
{
    char *plain = malloc(text.len + 1);
    size_t n = 0;
    if (plain == NULL)
        return NULL;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\\' && i + 1 < text.len)
            plain[n++] = text.at[++i] == 'n' ? '\n' : text.at[i];
        else
            plain[n++] = text.at[i];
    }
    json_t *out = json_stringn(plain, n);
    free(plain);
    return out;
}

static void take_label(void *context, struct slice name, struct slice value)
{
    json_t *labels = context;
    char key[128];
    json_t *text = unescaped(value);
    if (slice_to_cstr(name, key, sizeof key) && text != NULL)
        (void)json_object_set_new(labels, key, text);
    else
        json_decref(text);
}

json_t *parse_metrics(struct slice text)
{
    json_t *list = json_array();
    bool good = true;
    while (text.len > 0 && good) {
        struct slice line = node_exposition_line(slice_cut(&text, '\n'));
        if (line.len == 0)
            continue;
        struct slice name = node_exposition_name(&line);
        json_t *labels = json_object();
        double value = 0;
        good = name.len > 0 && node_exposition_sample(line, take_label, labels, &value) == 0;
        bool whole = fabs(value) < 1e15 && value == floor(value);
        json_t *figure =
            whole ? json_integer((json_int_t)value) : json_real(value); /* NULL: not a number */
        json_t *row = json_pack("{s:s%,s:o,s:o}", "name", name.at, name.len, "labels", labels,
                                "value", figure != NULL ? figure : json_null());
        good = good && row != NULL && json_array_append_new(list, row) == 0;
    }
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

/* --- /config --------------------------------------------------------------------------------- */

/* Cuts a scalar off the front: a quoted text, or a text up to a character of `ends`. NULL:
 * malformed. */
static json_t *take_scalar(struct slice *text, const char *ends)
{
    size_t n = 0;
    if (text->len == 0 || text->at[0] != '"') {
        while (n < text->len && strchr(ends, text->at[n]) == NULL)
            n++;
        struct slice plain = slice_trim(slice_of(text->at, n));
        *text = slice_skip(*text, n);
        return json_stringn(plain.at, plain.len);
    }
    for (n = 1; n < text->len && text->at[n] != '"'; n++)
        n += text->at[n] == '\\' ? 1 : 0;
    if (n >= text->len)
        return NULL;
    /* The quotes and escapes are valid JSON (node/settings/print.c). */
    json_t *out = json_loadb(text->at, n + 1, JSON_DECODE_ANY, NULL);
    *text = slice_skip(*text, n + 1);
    return out;
}

static json_t *take_list(struct slice *text)
{
    json_t *list = json_array();
    *text = slice_skip(*text, 1);
    while (text->len > 0 && text->at[0] != ']') {
        json_t *item = take_scalar(text, ",]");
        if (item == NULL || json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
        while (text->len > 0 && (text->at[0] == ',' || text->at[0] == ' '))
            *text = slice_skip(*text, 1);
    }
    *text = slice_skip(*text, 1);
    return list;
}

/* Cuts `text` before that mark, and returns what follows the mark; {NULL, 0} without the mark. */
static struct slice cut_mark(struct slice *text, struct slice mark)
{
    for (size_t at = 0; at < text->len; at++) {
        struct slice rest = slice_skip(*text, at);
        if (!slice_starts_with(rest, mark))
            continue;
        text->len = at;
        return slice_skip(rest, mark.len);
    }
    return slice_of(NULL, 0);
}

/* Returns {"from": ...}; for a value lowered at the start also "configured" and "lowered_by", for
 * one without effect "ignored". */
static json_t *origin_of(struct slice from)
{
    struct slice ignored = cut_mark(&from, SLICE(NODE_IGNORED_MARK));
    struct slice lowered = cut_mark(&from, SLICE(NODE_LOWERED_MARK));
    json_t *out = json_pack("{s:s%}", "from", from.at, from.len);
    if (ignored.at != NULL)
        (void)json_object_set_new(out, "ignored", json_stringn(ignored.at, ignored.len));
    if (lowered.at == NULL)
        return out;
    struct slice configured = slice_cut(&lowered, ':');
    lowered = slice_trim(lowered);
    (void)json_object_set_new(out, "configured", json_stringn(configured.at, configured.len));
    (void)json_object_set_new(out, "lowered_by", json_stringn(lowered.at, lowered.len));
    return out;
}

/* Parses "name: value   # from"; returns false for anything else. */
static bool take_setting(json_t *settings, struct slice line)
{
    char name[64];
    if (slice_starts_with(line, SLICE("# "))) /* a setting not valid in a file: an empty list */
        line = slice_skip(line, 2);
    if (line.len == 0)
        return true;
    bool named = slice_to_cstr(slice_cut(&line, ':'), name, sizeof name);
    line = slice_trim(line);
    bool list = slice_starts_with(line, SLICE("["));
    json_t *value = list ? take_list(&line) : take_scalar(&line, "#");
    line = slice_trim(line);
    if (!named || value == NULL || !slice_starts_with(line, SLICE("# "))) {
        json_decref(value);
        return false;
    }
    json_t *setting = json_pack("{s:o}", "value", value), *origin = origin_of(slice_skip(line, 2));
    bool good =
        json_object_update(setting, origin) == 0 && json_object_set(settings, name, setting) == 0;
    json_decref(origin);
    json_decref(setting);
    return good;
}

json_t *parse_config(struct slice text)
{
    json_t *settings = json_object(), *waits = NULL;
    bool good = text.len > 0;
    while (text.len > 0 && good) {
        struct slice line = slice_cut(&text, '\n');
        if (slice_equal(line, SLICE("# These wait for a restart:"))) {
            waits = json_object();
            good = json_object_set_new(settings, "waits for a restart", waits) == 0;
        } else {
            good = take_setting(waits != NULL ? waits : settings, line);
        }
    }
    if (good)
        return settings;
    json_decref(settings);
    return NULL;
}

#include "node/gvctl/completion.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"
#include "node/settings/options.h"

enum { EXIT_USAGE = 2 };

/* Returns the kind of completion for an argument, in all three shells. "words": from `values`;
 * "asked": names from the router's answer to the command in `values`; also "file", "any_command"
 * and "nothing". */
static const char *kind_of_argument(const struct command *c, const char **values)
{
    static const struct {
        const char *command, *kind, *values;
    } known[] = {
        {"completion", "words", "bash zsh fish"},
        {"log-level", "words", "error warn info debug"},
        {"key", "words", "new list revoke"},
        {"help", "any_command", ""},
        {"add", "nothing", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        *values = known[i].values;
        if (strcmp(c->name, known[i].command) == 0)
            return known[i].kind;
    }
    bool replica = strstr(command_argument(c), "HOST:PORT") != NULL;
    *values = replica ? "replicas" : "poison";
    if (replica || strstr(command_argument(c), "HASH") != NULL)
        return "asked";
    return strstr(command_argument(c), "FILE") != NULL ? "file" : "nothing";
}

static const char *kind_of_option(const struct given_option *o)
{
    if (o->argument == NULL || (o->values != NULL && o->values[0] == '\0'))
        return "nothing";
    return o->values == NULL ? "file" : "words";
}

static const char *kind_of_setting(const struct node_option *row, char *values, size_t size)
{
    bool path = row->type == NODE_TYPE_PATH || strcmp(row->unit, "FILE") == 0;
    (void)snprintf(values, size, "%s", row->type == NODE_TYPE_BOOL ? "on off" : "");
    for (const char *const *c = row->type == NODE_TYPE_CHOICE ? row->choices : NULL;
         c != NULL && *c != NULL; c++) {
        size_t len = strlen(values);
        (void)snprintf(values + len, size - len, "%s%s", len > 0 ? " " : "", *c);
    }
    return values[0] != '\0' ? "words" : path ? "file" : "nothing";
}

/* True for an option needed to reach the router: the shell passes it on when asking for names. */
static bool is_way(const struct given_option *o)
{
    static const char *const names[] = {"admin", "config", "ca-file", "insecure", "token-file"};
    bool way = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        way |= o->is_common && strcmp(o->name, names[i]) == 0;
    return way;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Quotes text for single quotes. In zsh, _arguments gives brackets and colons a meaning, so they
 * are escaped too. NULL: null. */
static json_t *quoted(const char *text, const char *shell)
{
    bool zsh = strcmp(shell, "zsh") == 0;
    struct buf out = {0};
    int err = 0;
    for (; text != NULL && *text != '\0' && err == 0; text++) {
        if (zsh && *text == '\'')
            err = buf_append_cstr(&out, "'\\'");
        else if (strchr(zsh ? "[]:\\" : "'\\", *text) != NULL)
            err = buf_append_char(&out, '\\');
        err = err == 0 ? buf_append_char(&out, *text) : err;
    }
    json_t *plain =
        text != NULL ? json_stringn(out.at != NULL ? out.at : "", out.len) : json_null();
    buf_free(&out);
    return plain;
}

/* Makes a row for a command, an option or a setting: name, help and argument (null: none). The row
 * has a field for each kind: that of `kind` is the string `values`, the others are false. */
static json_t *row(const char *shell, const char *name, const char *help, const char *argument,
                   const char *kind, const char *values)
{
    static const char *const kinds[] = {"words", "asked", "file", "any_command", "nothing"};
    json_t *row = json_pack("{s:s,s:o,s:o,s:n}", "name", name, "help", quoted(help, shell),
                            "argument", quoted(argument, shell), "short");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        (void)json_object_set_new(row, kinds[i],
                                  strcmp(kind, kinds[i]) != 0 ? json_false() : json_string(values));
    return row;
}

/* Appends a row. The field `first` marks the first row of the list. */
static void add(json_t *list, json_t *row)
{
    (void)json_object_set_new(row, "first",
                              json_array_size(list) == 0 ? json_string("") : json_null());
    (void)json_array_append_new(list, row);
}

enum list { LIST_ALL, LIST_COMMON, LIST_OWN, LIST_WAYS_WITH, LIST_WAYS_WITHOUT };

/* True if the option is in the list; LIST_OWN has the options of the command `own`. */
static bool is_in(enum list list, const struct given_option *o, const struct command *own)
{
    switch (list) {
    case LIST_COMMON:
        return o->is_common;
    case LIST_OWN:
        return command_has_option(own, o);
    case LIST_WAYS_WITH: /* options with an argument */
    case LIST_WAYS_WITHOUT:
        return is_way(o) && (o->argument != NULL) == (list == LIST_WAYS_WITH);
    default:
        return true;
    }
}

/* Returns the rows of the options in the list `which`; the field `short` is the letter, if any. */
static json_t *options(const char *shell, enum list which, const struct command *own)
{
    json_t *list = json_array();
    const struct given_option *o;
    for (unsigned i = 0; (o = given_option_at(i)) != NULL; i++) {
        if (!is_in(which, o, own))
            continue;
        json_t *one = row(shell, o->name, o->help, o->argument, kind_of_option(o),
                          o->values != NULL ? o->values : "");
        if (o->letter != 0)
            (void)json_object_set_new(one, "short", json_pack("s#", (const char[]){o->letter}, 1));
        add(list, one);
    }
    return list;
}

/* Returns the rows of the commands, with their own `options`. The field `command` repeats the name,
 * because rows of options have another `name`. */
static json_t *commands(const char *shell)
{
    json_t *list = json_array();
    const struct command *c;
    const char *values;
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++) {
        const char *kind = kind_of_argument(c, &values);
        json_t *one = row(shell, c->name, c->help, NULL, kind, values);
        (void)json_object_set_new(one, "command", json_string(c->name));
        (void)json_object_set_new(one, "options", options(shell, LIST_OWN, c));
        add(list, one);
    }
    return list;
}

static json_t *settings(const char *shell)
{
    json_t *list = json_array();
    const struct node_option *o;
    char values[512];
    for (unsigned i = 0; (o = node_option_at(i)) != NULL; i++) {
        const char *kind = kind_of_setting(o, values, sizeof values);
        add(list, row(shell, o->name, o->help, o->unit, kind, values));
    }
    return list;
}

/* --- templates ------------------------------------------------------------------------------- */

/* A row, and the enclosing row. */
struct scope {
    const char *shell;
    const json_t *row;
    const struct scope *outer;
};

static json_t *find(const struct scope *s, struct slice name)
{
    json_t *found = NULL;
    for (; s != NULL && found == NULL; s = s->outer)
        found = json_object_getn(s->row, name.at, name.len);
    CHECK(found != NULL);
    return found;
}

static const char *template(const char *name, const char *shell)
{
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted, "%s.%s", name, shell);
    const struct completion_file *f = completion_files;
    while (f->name != NULL && strcmp(f->name, wanted) != 0)
        f++;
    return f->text;
}

/* Cuts `text` after the first `end`. Returns the text before `end`. */
static struct slice take(struct slice *text, const char *end)
{
    const char *at = memmem(text->at, text->len, end, strlen(end));
    CHECK(at != NULL);
    struct slice before = slice_of(text->at, (size_t)(at - text->at));
    *text = slice_skip(*text, before.len + strlen(end));
    return before;
}

static void fill(struct slice text, const struct scope *s, FILE *to)
{
    const char *tag;
    while ((tag = memmem(text.at, text.len, "{{", 2)) != NULL) {
        (void)fwrite(text.at, 1, (size_t)(tag - text.at), to);
        (void)take(&text, "{{");
        struct slice name = take(&text, "}}"), body;
        char kind = name.at[0], cstr[64], end[72];
        if (strchr("#^>", kind) != NULL)
            name = slice_skip(name, 1);
        CHECK(slice_to_cstr(name, cstr, sizeof cstr));
        if (kind == '>') {
            const char *part = template(cstr, s->shell);
            fill(slice_of(part, strlen(part) - 1), s, to);
            continue;
        }
        json_t *value = find(s, name), *one;
        if (kind != '#' && kind != '^') {
            (void)fputs(json_string_value(value), to);
            continue;
        }
        (void)snprintf(end, sizeof end, "{{/%s}}", cstr);
        body = take(&text, end);
        if (slice_starts_with(body, SLICE("\n"))) {
            body = slice_skip(body, 1);
            text = slice_skip(text, 1);
        }
        size_t i;
        json_array_foreach(value, i, one)
        {
            struct scope inner = {.shell = s->shell, .row = one, .outer = s};
            fill(body, &inner, to);
        }
        if (!json_is_array(value) && json_is_string(value) == (kind == '#'))
            fill(body, s, to);
    }
    (void)fwrite(text.at, 1, text.len, to);
}

int completion(const char *shell, const char *program, FILE *to)
{
    bool known = strcmp(program, "gvctl") == 0 || strcmp(program, "grapevine") == 0;
    const char *text = known ? template(program, shell) : NULL;
    if (text == NULL) {
        (void)fprintf(
            stderr,
            "gvctl: no completion of \"%s\" for \"%s\": gvctl or grapevine, for bash, zsh or "
            "fish\n",
            program, shell);
        return EXIT_USAGE;
    }
    json_t *all = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "commands", commands(shell), "settings",
                            settings(shell), "options", options(shell, LIST_ALL, NULL), "common",
                            options(shell, LIST_COMMON, NULL), "ways_with",
                            options(shell, LIST_WAYS_WITH, NULL), "ways_without",
                            options(shell, LIST_WAYS_WITHOUT, NULL));
    CHECK(all != NULL);
    fill(slice_of_cstr(text), &(struct scope){.shell = shell, .row = all}, to);
    json_decref(all);
    return EXIT_SUCCESS;
}

/* The option table as text for people: --help, --check-config, docs/options.md. */
#include "node/settings/change.h"
#include "node/settings/options.h"

#include "base/check.h"
#include "base/err.h"
#include "node/settings/value.h"

enum { HELP_COLUMN = 33, HELP_WIDTH = 80 };

/* --- --help ----------------------------------------------------------------------------------- */

static const char help_head[] =
    "Usage: grapevine --replica URL [--replica URL ...] [SETTINGS]\n"
    "\n"
    "A cache-aware router for LLM engines: clients connect to --listen, requests go\n"
    "to the replica where they cost the least time.\n";

static const char help_tail[] =
    "\n"
    "Commands:\n"
    "  -h, --help       this text\n"
    "  -V, --version    print the version\n"
    "  --check-config   print the effective settings and where each comes from\n"
    "\n"
    "Each setting is also GRAPEVINE_NAME in the environment (GRAPEVINE_LISTEN) and a\n"
    "key in the YAML file (listen:). Flags override the environment, which overrides\n"
    "the file. Times need a unit (500ms, 4s, 2m, 1h), sizes may have one (32KiB).\n"
    "\n"
    "Examples:\n"
    "  grapevine --replica http://10.0.0.1:8000 --replica http://10.0.0.2:8000\n"
    "  grapevine --config /etc/grapevine.yaml --log-level debug\n"
    "  GRAPEVINE_POLICY=round_robin grapevine --config /etc/grapevine.yaml\n";

static int help_row(const struct node_option *row, struct buf *out)
{
    size_t start = out->len;
    int err = buf_printf(out, "  --%s %s", row->name, row->unit);
    if (err == 0 && out->len - start + 2 > HELP_COLUMN) {
        err = buf_append_char(out, '\n'); /* a long name has a line to itself */
        start = out->len;
    }
    while (err == 0 && out->len - start < HELP_COLUMN)
        err = buf_append_char(out, ' ');
    if (err == 0)
        err = buf_append_cstr(out, row->help);
    if (err != 0 || row->fallback[0] == '\0')
        return err != 0 ? err : buf_append_char(out, '\n');
    bool fits = out->len - start + strlen(row->fallback) + 3 <= HELP_WIDTH;
    if (!fits)
        err = buf_printf(out, "\n%*s", HELP_COLUMN - 1, "");
    return err == 0 ? buf_printf(out, " [%s]\n", row->fallback) : err;
}

int node_options_help(struct buf *out)
{
    const struct node_option *row;
    int err = buf_append_cstr(out, help_head);
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++) {
        if (row->group != NULL)
            err = buf_printf(out, "\n%s:\n", row->group);
        if (err == 0)
            err = help_row(row, out);
    }
    return err == 0 ? buf_append_cstr(out, help_tail) : err;
}

/* --- --check-config --------------------------------------------------------------------------- */

static bool yaml_plain(struct slice text)
{
    static const char safe[] = "./:_-+#|";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool inside = i > 0 && i + 1 < text.len; /* ":", "-" and "#" have a meaning at the ends */
        if (!alnum && !(c == '/' || (inside && c != '\0' && strchr(safe, c) != NULL)))
            return false;
    }
    return text.len > 0;
}

/* Returns the length of a leading character that a YAML reader takes for a line break or refuses:
 * NEL and the other C1 controls, U+2028, U+2029, the byte order mark. 0: there is none. `code` is
 * the character's number. */
static size_t yaml_break(struct slice text, unsigned *code)
{
    const unsigned char *at = (const unsigned char *)text.at;
    if (text.len >= 2 && at[0] == 0xc2 && at[1] < 0xa0) {
        *code = at[1];
        return 2;
    }
    if (text.len >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) {
        *code = 0x2000u + (at[2] & 0x3fu);
        return 3;
    }
    if (text.len >= 3 && at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf) {
        *code = 0xfeff;
        return 3;
    }
    return 0;
}

/* Appends a YAML scalar, in quotes if the plain text would have another meaning. No control
 * characters occur in our values. */
static int append_yaml(struct buf *out, struct slice text)
{
    if (yaml_plain(text))
        return buf_append_slice(out, text);
    int err = buf_append_char(out, '"');
    while (text.len > 0 && err == 0) {
        char c = text.at[0];
        unsigned code = 0;
        size_t escaped = yaml_break(text, &code);
        if (escaped > 0)
            err = buf_printf(out, "\\u%04x", code);
        else
            err = buf_printf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
        text = slice_skip(text, escaped > 0 ? escaped : 1);
    }
    return err == 0 ? buf_append_char(out, '"') : err;
}

/* True if the entry continues the split of the alias before (node/settings/aliases.h). */
static bool continues(const struct node_option *row, const struct node_strings *list, unsigned i)
{
    return i > 0 && i < list->count && strcmp(row->name, "model-alias") == 0 &&
           strchr(list->at[i], '=') == NULL;
}

static int effective_list(const struct node_option *row, const struct node_strings *list,
                          struct buf *out)
{
    struct buf item = {0};
    int err = buf_append_char(out, '[');
    for (unsigned i = 0; i < list->count && err == 0; i++) {
        err = buf_printf(&item, "%s%s", item.len > 0 ? "," : "", list->at[i]);
        if (err != 0 || continues(row, list, i + 1))
            continue;
        err = append_yaml(out, buf_slice(&item));
        buf_clear(&item);
        if (err == 0)
            err = buf_append_cstr(out, i + 1 < list->count ? ", " : "");
    }
    buf_free(&item);
    return err == 0 ? buf_append_char(out, ']') : err;
}

static int effective_value(const struct node_options *o, const struct node_option *row,
                           struct buf *out)
{
    struct buf text = {0};
    if (row->type == NODE_TYPE_LIST)
        return effective_list(row, (const void *)((const char *)o + row->offset), out);
    int err = node_option_format(o, row, &text);
    if (err == 0)
        err = append_yaml(out, buf_slice(&text));
    buf_free(&text);
    return err;
}

static bool is_empty_list(const struct node_options *o, const struct node_option *row)
{
    const struct node_strings *list = (const void *)((const char *)o + row->offset);
    return row->type == NODE_TYPE_LIST && list->count == 0;
}

/* Appends the configured value and the reason, if the machine's limit lowered this row's value. */
static int append_lowered(const struct node_option_lowered *l, const struct node_option *row,
                          struct buf *out)
{
    if (l->name == NULL || strcmp(l->name, row->name) != 0)
        return 0;
    int err = buf_append_cstr(out, NODE_LOWERED_MARK);
    if (err == 0)
        err = node_option_number_format(row, (double)l->configured, out);
    return err == 0 ? buf_printf(out, ": %s", l->why) : err;
}

/* Appends a line: name: value    # source */
static int effective_row(const struct node_options *o, unsigned index, const char *comment,
                         struct buf *out)
{
    const struct node_option *row = node_option_at(index);
    size_t start = out->len;
    int err = buf_printf(out, "%s%s: ", comment, row->name);
    if (err == 0)
        err = effective_value(o, row, out);
    while (err == 0 && out->len - start < 45)
        err = buf_append_char(out, ' ');
    if (err == 0)
        err = buf_append_cstr(out, " # ");
    if (err == 0)
        err = node_option_origin_append(out, row->name, o->origins[index]);
    if (err == 0)
        err = append_lowered(&o->lowered, row, out);
    const char *ignored = node_option_ignored(o, row);
    if (err == 0 && ignored != NULL)
        err = buf_printf(out, NODE_IGNORED_MARK "%s", ignored);
    return err == 0 ? buf_append_char(out, '\n') : err;
}

int node_options_effective(const struct node_options *o, struct buf *out)
{
    const struct node_option *row;
    int err = 0;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++) {
        /* `config` and empty lists are invalid in a file, so they are written as comments. */
        bool told = strcmp(row->name, "config") == 0 || is_empty_list(o, row);
        err = effective_row(o, i, told ? "# " : "", out);
    }
    return err;
}

int node_options_waiting(const struct node_options *o, const struct node_options *wanted,
                         struct buf *out)
{
    const struct node_option *row;
    unsigned waiting = 0;
    int err = 0;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++) {
        bool same = true;
        if (!row->live)
            err = node_option_same(o, wanted, row, &same);
        if (err == 0 && !same && waiting++ == 0)
            err = buf_append_cstr(out, "# These wait for a restart:\n");
        if (err == 0 && !same)
            err = effective_row(wanted, i, "# ", out);
    }
    return err;
}

/* --- docs/options.md -------------------------------------------------------------------------- */

static const char markdown_head[] =
    "# Settings\n"
    "\n"
    "<!-- Made by `make docs` from node/settings/table.c: change that, not this. -->\n"
    "\n"
    "Each setting is a flag (`--listen 0.0.0.0:8080` or `--listen=0.0.0.0:8080`), an environment\n"
    "variable (`GRAPEVINE_LISTEN`; dashes become underscores) and a key of the YAML file that\n"
    "`--config` names (`listen: 0.0.0.0:8080`). Flags override the environment, which overrides\n"
    "the file. `grapevine --check-config` prints the effective settings and their sources.\n"
    "\n"
    "- Times need a unit: `500ms`, `4s`, `2m`, `1h`.\n"
    "- Sizes: `64MiB` and `64M` are the same (powers of 1024), `64MB` counts in thousands.\n"
    "- On or off: also `true`, `false`, `yes`, `no`; as flags `--replica-header` and\n"
    "  `--no-replica-header`.\n"
    "- Lists: repeat the flag, separate by commas, or write a YAML sequence. A list of a stronger\n"
    "  source replaces the whole list of a weaker one.\n"
    "- An empty environment variable counts as unset.\n"
    "\n"
    "An invalid setting stops the start with status 2. The error line says what is valid.\n"
    "If the file changes, its settings take effect at once ([how](how-to/settings.md)), except\n"
    "for those marked *Restart*.\n";

static int markdown_values(const struct node_option *row, struct buf *out)
{
    if (row->type == NODE_TYPE_CHOICE) {
        int err = 0;
        for (unsigned i = 0; row->choices[i] != NULL && err == 0; i++)
            err = buf_printf(out, "%s`%s`", i == 0 ? "" : ", ", row->choices[i]);
        return err;
    }
    if (row->type == NODE_TYPE_BOOL)
        return buf_append_cstr(out, "`on`, `off`");
    bool number = row->type == NODE_TYPE_INTEGER || row->type == NODE_TYPE_MS ||
                  row->type == NODE_TYPE_BYTES || row->type == NODE_TYPE_FLOAT;
    if (!number)
        return buf_append_cstr(out, row->unit);
    if (row->max == 0)
        return buf_append_cstr(out, "a whole number");
    int err = row->automatic ? buf_append_cstr(out, "`auto`, ") : 0;
    if (err == 0)
        err = node_option_number_format(row, row->min, out);
    if (err == 0)
        err = buf_append_cstr(out, " to ");
    return err == 0 ? node_option_number_format(row, row->max, out) : err;
}

/* Appends `words` with a capital first letter, unless they begin with a name. */
static int append_sentence(const char *words, struct buf *out)
{
    bool name = words[strcspn(words, " _")] == '_' || words[0] < 'a' || words[0] > 'z';
    int err = buf_append_char(out, name ? words[0] : (char)(words[0] - 'a' + 'A'));
    return err == 0 ? buf_append_cstr(out, words + 1) : err;
}

static int markdown_row(const struct node_option *row, struct buf *out)
{
    int err = buf_printf(out, "- `%s` (", row->name);
    if (err == 0)
        err = markdown_values(row, out);
    if (err == 0 && row->fallback[0] != '\0')
        err = buf_printf(out, ", default `%s`", row->fallback);
    if (err == 0)
        err = buf_append_cstr(out, "): ");
    if (err == 0)
        err = append_sentence(row->help, out);
    if (err == 0)
        err = buf_printf(out, ".%s%s%s\n", row->more != NULL ? " " : "",
                         row->more != NULL ? row->more : "", row->live ? "" : " *Restart.*");
    return err;
}

int node_options_markdown(struct buf *out)
{
    const struct node_option *row;
    int err = buf_append_cstr(out, markdown_head);
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++) {
        if (row->group != NULL)
            err = buf_printf(out, "\n## %s\n\n", row->group);
        if (err == 0)
            err = markdown_row(row, out);
    }
    return err;
}

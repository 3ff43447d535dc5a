/* Prints docs/from-other-routers.md, from the tables. */
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "node/gvctl/convert/convert.h"
#include "node/gvctl/convert/convert_internal.h"

static const char head[] =
    "# From other routers\n"
    "\n"
    "<!-- Made by `make docs` from the tables in node/gvctl/convert: change those, not this. -->\n"
    "\n"
    "`gvctl convert` turns another router's command line or configuration into a YAML file of\n"
    "settings. Comments in that file, and standard error, list what was not converted, and why.\n"
    "With `--strict` the exit status is then 1. `--from ROUTER` names the other router.\n"
    "[Migrate](how-to/migrate.md) has the steps.\n"
    "\n"
    "```text\n"
    "gvctl convert -- vllm-router --worker-urls http://10.0.0.1:8000 --policy cache_aware\n"
    "gvctl convert FILE             # with a command line; - or nothing: standard input\n"
    "gvctl convert deployment.yaml  # Kubernetes or Compose: the first container that is a router\n"
    "gvctl convert epp-config.yaml  # llm-d's EndpointPickerConfig, also in a ConfigMap\n"
    "gvctl convert haproxy.cfg >g.yaml && grapevine --config g.yaml --check-config\n"
    "```\n"
    "\n"
    "- **Converted**: a setting has the same effect.\n"
    "- **By hand**: a setting exists, but you must write it (for example an API key).\n"
    "- **Not needed**: Grapevine does this by default.\n"
    "- **No counterpart**: Grapevine cannot do this.\n"
    "\n"
    "Clients' API keys go on to the engines, unless `client-keys-file` is set. Log levels are\n"
    "converted by name.\n";

static const char *const titles[] = {
    [CONVERT_PLUGIN] = "Plugins of an EndpointPickerConfig (`*` stands for any name)",
    [CONVERT_SECTION] = "Sections",
    [CONVERT_DIRECTIVE] = "Directives",
    [CONVERT_BIND] = "Words of a bind line",
    [CONVERT_SERVER] = "Words of a server line",
    [CONVERT_FLAG] = "Flags",
    [CONVERT_MESH] = "Flags that count with `--enable-mesh`",
};

/* The groups of a table, in the order of the page. Words handled by code count as converted. */
static const struct {
    const char *title;
    enum convert_kind kind;
} groups[] = {
    {"Converted", CONVERT_DID},
    {"By hand", CONVERT_HAND},
    {"Not needed", CONVERT_NOT_NEEDED},
    {"No counterpart", CONVERT_NONE},
};

static bool is_in(const struct convert_row *row, size_t group)
{
    bool converted = row->kind == CONVERT_READ || (row->kind == CONVERT_NONE && row->ours != NULL);
    /* Rows for single log levels are left out: the flag for levels has a row. */
    bool level = row->ours != NULL && strncmp(row->ours, "log-level: ", 11) == 0;
    return (converted ? CONVERT_DID : row->kind) == groups[group].kind && !level;
}

/* Prints the names of a row as code: `--flag=X` with a value, `--flag=...` with several. */
static void print_names(enum convert_place place, const struct convert_row *row, FILE *to)
{
    const char *before = "";
    bool dashes = place == CONVERT_FLAG || place == CONVERT_MESH;
    for (struct slice names = slice_of_cstr(row->names); names.len > 0; before = ", ") {
        struct slice name = slice_trim(slice_cut(&names, ','));
        struct slice bare = slice_cut(&name, '=');
        bool several = name.len > 0, value = bare.at + bare.len < name.at, brief = bare.len < 3;
        (void)fprintf(to, "%s`%s%.*s%s`", before,
                      !dashes ? ""
                      : brief ? "-"
                              : "--",
                      SLICE_ARG(bare),
                      !dashes || !value ? ""
                      : several         ? "=..."
                      : brief           ? " X"
                                        : "=X");
    }
}

/* True if the note of a manual setting contains the setting's name. */
static bool note_names(const struct convert_row *row, struct slice setting)
{
    return row->kind == CONVERT_HAND &&
           memmem(row->note, strlen(row->note), setting.at, setting.len) != NULL;
}

/* Appends a row's result: the settings as code, then the note. */
static int append_result(const struct convert_row *row, struct buf *out)
{
    bool fixed = row->ours != NULL && strstr(row->ours, ": ") != NULL;
    const char *before = "";
    struct slice rest = slice_of_cstr(row->ours != NULL ? row->ours : "");
    int err = 0;
    while (rest.len > 0 && err == 0) {
        struct slice one = slice_cut(&rest, fixed ? '\0' : ' ');
        one.len = slice_find(one, '.');
        if (note_names(row, one))
            continue;
        err = buf_printf(out, "%s`%.*s`", before, SLICE_ARG(one));
        before = ", ";
    }
    if (err == 0 && row->note != NULL)
        err = buf_printf(out, "%s%s", before[0] != '\0' ? "; " : "", row->note);
    return err;
}

static bool have_one_result(const struct convert_row *a, const struct convert_row *b)
{
    struct buf one = {0}, other = {0};
    bool same = append_result(a, &one) == 0 && append_result(b, &other) == 0 &&
                slice_equal(buf_slice(&one), buf_slice(&other));
    buf_free(&one);
    buf_free(&other);
    return same;
}

/* Prints the rows of a group. Rows with the same result share a line. */
static void print_list(enum convert_place place, const struct convert_row *rows, size_t group,
                       FILE *to)
{
    struct buf result = {0};
    for (const struct convert_row *row = rows; row->names != NULL; row++) {
        bool first = is_in(row, group);
        for (const struct convert_row *other = rows; other < row && first; other++)
            first = !is_in(other, group) || !have_one_result(other, row);
        if (!first)
            continue;
        (void)fputs("- ", to);
        print_names(place, row, to);
        for (const struct convert_row *other = row + 1; other->names != NULL; other++) {
            if (is_in(other, group) && have_one_result(other, row)) {
                (void)fputs(", ", to);
                print_names(place, other, to);
            }
        }
        buf_clear(&result);
        DISCARD(append_result(row, &result));
        (void)fprintf(to, ": %.*s\n", SLICE_ARG(buf_slice(&result)));
    }
    buf_free(&result);
}

static void print_groups(enum convert_place place, const struct convert_row *rows, FILE *to)
{
    for (size_t group = 0; group < ARRAY_LEN(groups); group++) {
        bool some = false;
        for (const struct convert_row *row = rows; row->names != NULL; row++)
            some = some || is_in(row, group);
        if (!some)
            continue;
        (void)fprintf(to, "\n%s:\n\n", groups[group].title);
        print_list(place, rows, group, to);
    }
}

/* --- sections -------------------------------------------------------------------------------- */

static bool has(const struct convert_router *router, const struct convert_row *rows)
{
    for (size_t k = 0; router->tables[k].rows != NULL; k++) {
        if (router->tables[k].rows == rows)
            return true;
    }
    return false;
}

/* Appends a heading: the table's contents and routers. */
static int append_title(enum convert_place place, const struct convert_row *rows, struct buf *out)
{
    const char *before = " of ";
    int err = buf_append_cstr(out, titles[place]);
    for (size_t i = 0; convert_routers[i] != NULL && err == 0; i++) {
        if (!has(convert_routers[i], rows))
            continue;
        err = buf_printf(out, "%s%s", before, convert_routers[i]->name);
        before = ", ";
    }
    return err;
}

/* Prints GitHub's anchor of a heading. */
static void print_anchor(struct slice title, FILE *to)
{
    for (; title.len > 0; title = slice_skip(title, 1)) {
        char c = title.at[0];
        bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        else if (!kept && c != ' ')
            continue;
        (void)fputc(c == ' ' ? '-' : c, to);
    }
}

void convert_page(FILE *to)
{
    struct buf title = {0};
    (void)fputs(head, to);
    for (size_t i = 0; convert_routers[i] != NULL; i++) {
        const struct convert_router *r = convert_routers[i];
        (void)fprintf(to, "\n## %s\n\n`--from %s`. Source: %s.\n", r->title, r->name, r->source);
        for (size_t k = 0; r->tables[k].rows != NULL; k++) {
            const struct convert_row *rows = r->tables[k].rows;
            bool printed = false; /* an earlier router has the same table */
            for (size_t other = 0; other < i && !printed; other++)
                printed = has(convert_routers[other], rows);
            buf_clear(&title);
            DISCARD(append_title(r->tables[k].place, rows, &title));
            if (!printed) {
                (void)fprintf(to, "\n### %.*s\n", SLICE_ARG(buf_slice(&title)));
                print_groups(r->tables[k].place, rows, to);
                continue;
            }
            (void)fprintf(to, "\nSee [%.*s](#", SLICE_ARG(buf_slice(&title)));
            print_anchor(buf_slice(&title), to);
            (void)fputs(").\n", to);
        }
    }
    buf_free(&title);
}

/* docs/from-other-routers.md, from the tables. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert.h"
#include "node/gvctl/convert/convert_internal.h"

static const char head[] =
    "# From other routers\n"
    "\n"
    "<!-- Made by `make docs` from the tables in node/gvctl/convert: change those, not this. -->\n"
    "\n"
    "`gvctl convert` reads what starts another router, and writes settings of this one, with "
    "comments. What is\n"
    "to be done by hand and what has no counterpart it names, also on standard error, and why; "
    "with `--strict` it\n"
    "exits with 1 then. A flag or a directive that no table knows ends in a line that says so.\n"
    "\n"
    "```text\n"
    "gvctl convert -- vllm-router --worker-urls http://10.0.0.1:8000 http://10.0.0.2:8000 --policy "
    "cache_aware\n"
    "gvctl convert -- python -m sglang_router.launch_router --worker-urls http://10.0.0.1:30000\n"
    "gvctl convert FILE                   # with a command line; - or nothing: standard "
    "input\n"
    "gvctl convert deployment.yaml        # Kubernetes or Compose: the first container that is a "
    "router\n"
    "gvctl convert epp-config.yaml        # llm-d's EndpointPickerConfig, also in a ConfigMap\n"
    "gvctl convert haproxy.cfg >grapevine.yaml && grapevine --config grapevine.yaml "
    "--check-config\n"
    "```\n"
    "\n"
    "The names in it show which router it is of; `--from ROUTER` says so otherwise. Each flag is "
    "one of four kinds:\n"
    "\n"
    "- **converted**: a setting says the same;\n"
    "- **not needed**: the router does so by itself, or without;\n"
    "- **by hand**: it can, and a person has to say how (such as a key that stands on the command "
    "line);\n"
    "- **no counterpart**: it cannot.\n"
    "\n"
    "Two more things are different for all of them. Several routers share what they know: give "
    "each the same\n"
    "`cluster-key-file` and one another's name in `join` "
    "([operations.md](operations.md#several-routers)).\n"
    "And clients' API keys pass through to the engines, unless `client-keys-file` is set.\n";

/* One of its names. */
static void print_name(const struct convert_router *r, const struct convert_row *row,
                       struct slice name, FILE *to)
{
    bool several = slice_ends_with(name, SLICE("=...")), value = slice_ends_with(name, SLICE("="));
    bool hand =
        row->as == CONVERT_BY_HAND || row->as == CONVERT_MESH || row->as == CONVERT_MESH_PODS;
    name.len -= several ? 4 : value ? 1 : 0;
    (void)fprintf(to, "| `%s%.*s%s` | ",
                  r->is_config    ? ""
                  : name.len == 1 ? "-"
                                  : "--",
                  SLICE_ARG(name),
                  several ? " VALUE..."
                  : value ? " VALUE"
                          : "");
    if (row->settings != NULL) {
        struct slice rest = slice_of_cstr(row->settings);
        for (char by = row->as == CONVERT_FIXED ? '\0' : ' '; rest.len > 0;) {
            struct slice one = slice_cut(&rest, by);
            (void)fprintf(to, "`%.*s`%s", SLICE_ARG(one), rest.len > 0 ? " " : "");
        }
    }
    (void)fprintf(to, "%s%s%s | ",
                  row->as == CONVERT_NEEDLESS                           ? "not needed"
                  : row->as == CONVERT_MISSING && row->settings == NULL ? "no counterpart"
                                                                        : "",
                  hand && row->settings != NULL ? ", " : "", hand ? "by hand" : "");
    for (const char *text = row->note != NULL ? row->note : ""; *text != '\0'; text++)
        (void)fprintf(to, "%s%c", *text == '|' ? "\\" : "", *text);
    (void)fputs(" |\n", to);
}

static void print_tables(const struct convert_router *r, FILE *to)
{
    for (size_t i = 0; i < ARRAY_LEN(r->tables) && r->tables[i] != NULL; i++) {
        for (const struct convert_row *row = r->tables[i]; row->names != NULL; row++) {
            struct slice names = slice_of_cstr(row->names);
            while (names.len > 0)
                print_name(r, row, slice_trim(slice_cut(&names, ',')), to);
        }
    }
}

void convert_page(FILE *to)
{
    const struct convert_router *r;
    (void)fputs(head, to);
    for (unsigned i = 0; (r = convert_router_at(i)) != NULL; i++) {
        const char *what = r->is_config ? "directive" : "flag";
        (void)fprintf(to,
                      "\n## %s\n\n`--from %s`; its %ss are those of %s.\n\n| %s | here | |\n"
                      "|---|---|---|\n",
                      r->title, r->name, what, r->source, what);
        print_tables(r, to);
        if (r != &convert_llmd)
            continue;
        (void)fprintf(to, "\nIts EndpointPickerConfig, by the types of its plugins and by its "
                          "sections (`*-scorer`: all others that\nend so):\n\n"
                          "| plugin | here | |\n|---|---|---|\n");
        print_tables(&convert_llmd_plugins, to);
    }
}

/* docs/from-other-routers.md, from the tables. */
#include <string.h>

#include "node/gvctl/convert/convert.h"
#include "node/gvctl/convert/convert_internal.h"

static const char head[] =
    "# From other routers\n"
    "\n"
    "<!-- Made by `make docs` from the tables in node/gvctl/convert: change those, not this. -->\n"
    "\n"
    "`gvctl convert` reads what starts another router, and writes settings of this one, with\n"
    "comments. What is to be done by hand and what has no counterpart it names, also on standard\n"
    "error, and why; with `--strict` it exits with 1 then. A flag or a directive that no table\n"
    "knows ends in a line that says so.\n"
    "\n"
    "```text\n"
    "gvctl convert -- vllm-router --worker-urls http://10.0.0.1:8000 --policy cache_aware\n"
    "gvctl convert -- python -m sglang_router.launch_router --worker-urls http://10.0.0.1:30000\n"
    "gvctl convert FILE             # with a command line; - or nothing: standard input\n"
    "gvctl convert deployment.yaml  # Kubernetes or Compose: the first container that is a router\n"
    "gvctl convert epp-config.yaml  # llm-d's EndpointPickerConfig, also in a ConfigMap\n"
    "gvctl convert haproxy.cfg >g.yaml && grapevine --config g.yaml --check-config\n"
    "```\n"
    "\n"
    "The names in it show which router it is of; `--from ROUTER` says so otherwise. Each flag is\n"
    "one of four kinds:\n"
    "\n"
    "- **converted**: a setting says the same;\n"
    "- **not needed**: the router does so by itself, or without;\n"
    "- **by hand**: it can, and a person has to say how (a key that stands on the command line);\n"
    "- **no counterpart**: it cannot.\n"
    "\n"
    "Two more things are different for all of them. Several routers share what they know: give\n"
    "each the same `cluster-key-file` and one another's name in `join`\n"
    "([operations.md](operations.md#several-routers)). And clients' API keys pass through to the\n"
    "engines, unless `client-keys-file` is set.\n";

/* One of its names. */
static void print_name(enum convert_place place, const struct convert_row *row, struct slice name,
                       FILE *to)
{
    bool several = slice_ends_with(name, SLICE("=...")), value = slice_ends_with(name, SLICE("="));
    bool fixed = row->ours != NULL && strstr(row->ours, ": ") != NULL;
    struct slice rest = slice_of_cstr(row->ours != NULL ? row->ours : "");
    name.len -= several ? 4 : value ? 1 : 0;
    (void)fprintf(to, "| `%s%.*s%s` |",
                  place == CONVERT_FLAG && name.len < 3 ? "-" : convert_places[place].prefix,
                  SLICE_ARG(name),
                  several ? " VALUE..."
                  : value ? " VALUE"
                          : "");
    while (rest.len > 0) {
        struct slice one = slice_cut(&rest, fixed ? '\0' : ' ');
        one.len = slice_find(one, '.');
        (void)fprintf(to, " `%.*s`", SLICE_ARG(one));
    }
    (void)fprintf(to, "%s%s | ", row->kind == CONVERT_HAND && row->ours != NULL ? "," : "",
                  row->kind == CONVERT_NOT_NEEDED                  ? " not needed"
                  : row->kind == CONVERT_NONE && row->ours == NULL ? " no counterpart"
                  : row->kind == CONVERT_HAND                      ? " by hand"
                                                                   : "");
    (void)fprintf(to, "%s |\n", row->note != NULL ? row->note : "");
}

void convert_page(FILE *to)
{
    (void)fputs(head, to);
    for (size_t i = 0; convert_routers[i] != NULL; i++) {
        const struct convert_router *r = convert_routers[i];
        const char *what = r->tables[0].place == CONVERT_FLAG ? "flag" : "directive";
        (void)fprintf(to,
                      "\n## %s\n\n`--from %s`; its %ss are those of %s.\n\n| %s | here | |\n"
                      "|---|---|---|\n",
                      r->title, r->name, what, r->source, what);
        for (size_t k = 0; r->tables[k].rows != NULL; k++) {
            if (r->tables[k].place == CONVERT_PLUGIN)
                (void)fputs("\nIts EndpointPickerConfig, by the types of its plugins and by its "
                            "sections (`*-scorer`: all others that\nend so):\n\n"
                            "| plugin | here | |\n|---|---|---|\n",
                            to);
            for (const struct convert_row *row = r->tables[k].rows; row->names != NULL; row++) {
                for (struct slice names = slice_of_cstr(row->names); names.len > 0;)
                    print_name(r->tables[k].place, row, slice_trim(slice_cut(&names, ',')), to);
            }
        }
    }
}

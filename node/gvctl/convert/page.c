/* docs/from-other-routers.md, from the tables. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/gvctl/convert/detect_internal.h"

static const char head[] =
    "# From other routers\n"
    "\n"
    "<!-- Made by `make docs` from the tables in node/gvctl/convert: change those, not this. -->\n"
    "\n"
    "`gvctl convert` reads what starts another router, and writes settings of this one, with "
    "comments. What is\n"
    "to be done by hand and what has no counterpart it names, also on standard error, and why; "
    "with `--strict` it\n"
    "exits with 1 then.\n"
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

static void print_text(const char *text, FILE *to)
{
    for (; *text != '\0'; text++)
        (void)fprintf(to, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void print_row(const struct convert_router *r, const struct convert_row *row, FILE *to)
{
    static const char *const ours[] = {
        [CONVERT_HOST] = "listen",
        [CONVERT_PORT] = "listen",
        [CONVERT_ADMIN_HOST] = "admin-listen",
        [CONVERT_ADMIN_PORT] = "admin-listen",
        [CONVERT_KUBERNETES] = "replica-kubernetes",
        [CONVERT_KUBERNETES_NAMESPACE] = "replica-kubernetes",
        [CONVERT_KUBERNETES_PORT] = "replica-kubernetes",
        [CONVERT_KUBERNETES_SELECTOR] = "replica-kubernetes",
        [CONVERT_SPECIAL] = NULL,
    };
    const char *setting = row->setting != NULL ? row->setting : ours[row->as];
    (void)fprintf(to, "| `%s%s%s` | ",
                  r->is_config           ? ""
                  : row->flag[1] == '\0' ? "-"
                                         : "--",
                  row->flag,
                  r->is_config || row->arity == CONVERT_SWITCH ? ""
                  : row->arity == CONVERT_ONE                  ? " VALUE"
                                                               : " VALUE...");
    if (row->as == CONVERT_NEEDLESS)
        (void)fputs("not needed", to);
    else if (row->as == CONVERT_MISSING)
        (void)fputs("no counterpart", to);
    else if (setting != NULL)
        (void)fprintf(to, "`%s%s%s`%s", setting, row->fixed != NULL ? ": " : "",
                      row->fixed != NULL ? row->fixed : "",
                      row->as == CONVERT_BY_HAND || row->as == CONVERT_MESH_BY_HAND ? ", by hand"
                                                                                    : "");
    (void)fputs(" | ", to);
    print_text(row->note != NULL ? row->note : "", to);
    (void)fputs(" |\n", to);
}

static void print_router(const struct convert_router *r, FILE *to)
{
    (void)fprintf(
        to, "\n## %s\n\n`--from %s`; its %ss are those of %s.\n\n| %s | here | |\n|---|---|---|\n",
        r->title, r->name, r->is_config ? "directive" : "flag", r->source,
        r->is_config ? "directive" : "flag");
    for (unsigned i = 0; i < r->row_count; i++)
        print_row(r, &r->rows[i], to);
    for (const struct convert_policy *p = r->policies; p->theirs != NULL; p++) {
        if (p == r->policies)
            (void)fputs("\n| its policy | here | |\n|---|---|---|\n", to);
        (void)fprintf(to, "| `%s` | %s%s%s | ", p->theirs, p->ours != NULL ? "`policy: " : "",
                      p->ours != NULL ? p->ours : "no counterpart", p->ours != NULL ? "`" : "");
        print_text(p->note != NULL ? p->note : "", to);
        (void)fputs(" |\n", to);
    }
}

void convert_page(FILE *to)
{
    const struct convert_router *r;
    (void)fputs(head, to);
    for (unsigned i = 0; (r = convert_router_at(i)) != NULL; i++) {
        print_router(r, to);
        if (r != &convert_llmd)
            continue;
        (void)fprintf(
            to, "\nIts EndpointPickerConfig, by the types of its plugins and by its sections "
                "(`*-scorer`: all others that\nend so):\n\n| plugin | here | |\n|---|---|---|\n");
        for (unsigned k = 0; k < convert_llmd_plugins.row_count; k++)
            print_row(&convert_llmd_plugins, &convert_llmd_plugins.rows[k], to);
    }
}

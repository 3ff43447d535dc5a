#include "node/gvctl/command.h"

#include <string.h>

#include "base/check.h"
#include "node/gvctl/given.h"
#include "node/gvctl/parse.h"

#define CALL(name) ADMIN_CALL_##name

/* `name` is NULL for the heading of a group. */
static const struct command rows[] = {
    {.help = "The cluster:"},
    {.name = "status",
     .run = COMMAND_STATUS,
     .call = CALL(ATTENTION),
     .options = "check",
     .help = "summary: problems, routers, replicas, load, cache hits",
     .more =
         "Problems come first. Red: clients get errors. Amber: something is out or wrong, but\n"
         "clients are served. Grey: old members. Exit status: 1 if the router at --admin is not\n"
         "ready; with --check 1 for red problems, 3 for amber ones, else 0. The counts of\n"
         "requests and cached tokens are of all routers whose admin ports gvctl can reach,\n"
         "each since its start."},
    {.name = "top",
     .run = COMMAND_TOP,
     .options = "once interval",
     .forms = COMMAND_FORMS_TEXT,
     .help = "live view of the cluster; q quits",
     .more = "Rates are since the last frame. Without a terminal, top prints one frame, as with\n"
             "--once."},
    {.name = "members",
     .call = CALL(MEMBERS),
     .show = show_members,
     .forms = COMMAND_FORMS_NAMES,
     .help = "the routers: state, address, version, lag",
     .more = "-v also shows which deltas each router has applied, and what its packets carried."},
    {.name = "forget-member",
     .argument = "NAME",
     .call = CALL(MEMBER_FORGET),
     .help = "no longer show a dead or former router",
     .more =
         "Without this command, a router that left disappears after a minute, and a dead one\n"
         "after ten minutes or when another router has its address. A router that comes back is\n"
         "shown again."},
    {.name = "convergence",
     .run = COMMAND_CONVERGENCE,
     .call = CALL(CONVERGENCE),
     .options = "wait members",
     .help = "exit 0 if all routers hold the same state, 1 if not",
     .more =
         "If the states differ, the command says in what, and since when, as far as a router or\n"
         "gvctl has compared them. -v shows the digests. With --wait it asks until the states\n"
         "are equal, even if the router does not listen yet.\n"
         "\n"
         "  gvctl convergence --wait --members 3 --timeout 10"},
    {.name = "shadow",
     .call = CALL(SHADOW),
     .show = show_shadow,
     .help = "compare the policy with a plain one (shadow mode)",
     .more =
         "Shows, for both policies, the share of prompt tokens from cache and the time to first\n"
         "token in the last hour, of all routers. In shadow mode the values of the router's own\n"
         "policy are predictions. With control-share, both are measured."},
    {.name = "events",
     .run = COMMAND_EVENTS,
     .options = "interval follow last local router",
     .help = "what happened lately in the cluster; --follow",
     .more =
         "Deaths, joins, drains, retries, settings, keys and certificates, in order of time, of\n"
         "all routers. gvctl names each router that does not answer. --follow shows the last\n"
         "events, then each new one; with -o json each is one line.\n"
         "\n"
         "  gvctl events --last 10\n"
         "  gvctl events --follow --router r2"},

    {.help = "\nOne router:"},
    {.name = "replicas",
     .call = CALL(REPLICAS),
     .show = show_replicas,
     .options = "model",
     .forms = COMMAND_FORMS_NAMES,
     .help = "what the router believes of every replica"},
    {.name = "sources",
     .call = CALL(SOURCES),
     .show = show_sources,
     .help = "where replicas come from: files, DNS, Kubernetes"},
    {.name = "queue",
     .call = CALL(QUEUE),
     .show = show_queue,
     .help = "requests in flight and waiting"},
    {.name = "explain",
     .argument = "[FILE]",
     .call = CALL(EXPLAIN),
     .show = show_explain,
     .options = "session all",
     .help = "what a request would cost at each replica",
     .more =
         "FILE has the request's JSON body. If FILE is - or missing, gvctl reads standard input.\n"
         "Nothing is sent to a replica.\n"
         "\n"
         "  gvctl explain --all request.json"},
    {.name = "decisions",
     .run = COMMAND_DECISIONS,
     .options = "interval follow last failed slow model replica reason",
     .help = "the last choices of a replica, with reason and result; --follow",
     .more =
         "--follow shows the last requests that have ended, then each further one when it ends;\n"
         "with -o json each is one line. With several filters, a decision must match all.\n"
         "\n"
         "  gvctl decisions --failed --replica 10.0.0.1:8000\n"
         "  gvctl decisions --slow 500ms --model llama --last 100"},
    {.name = "ready",
     .call = CALL(READYZ),
     .parse = parse_ready,
     .help = "exit 0 if the router can serve, 1 if not"},
    {.name = "alive",
     .call = CALL(HEALTHZ),
     .parse = parse_alive,
     .help = "exit 0 if the router's process is alive (liveness probe)"},
    {.name = "metrics",
     .call = CALL(METRICS),
     .parse = parse_metrics,
     .help = "Prometheus text (-o json: a list of samples)"},
    {.name = "config",
     .call = CALL(CONFIG),
     .parse = parse_config,
     .help = "the settings in force and their sources"},
    {.name = "log-level",
     .argument = "LEVEL",
     .call = CALL(LOG_LEVEL),
     .help = "set it to error, warn, info or debug until the next start"},

    {.help = "\nReplicas, for all routers:"},
    {.name = "drain",
     .argument = "HOST:PORT",
     .call = CALL(DRAIN),
     .options = "wait",
     .help = "send nothing new to a replica; --wait",
     .more =
         "Requests in flight at the replica end normally. With --wait, gvctl returns when no\n"
         "router has a request in flight there; then you can stop the engine. If that takes\n"
         "longer than --timeout, the exit status is 1. HOST:PORT@RANK drains one data-parallel\n"
         "rank.\n"
         "\n"
         "  gvctl drain --wait --timeout 120 10.0.0.1:8000"},
    {.name = "undrain",
     .argument = "HOST:PORT",
     .call = CALL(UNDRAIN),
     .help = "send requests to a drained replica again"},
    {.name = "add",
     .argument = "HOST:PORT",
     .call = CALL(ADD),
     .options = "engine",
     .help = "add a replica, until it is removed",
     .more =
         "Routers use the replica when its health check succeeds. A router's address is refused.\n"
         "The label #engine=NAME may follow; other labels belong into the settings.\n"
         "\n"
         "  gvctl add '10.0.0.3:8000#engine=vllm'"},
    {.name = "remove",
     .argument = "HOST:PORT",
     .call = CALL(REMOVE),
     .help = "remove a replica, even if the settings list it",
     .more =
         "Requests in flight at the replica end normally; gvctl prints their number. To wait for\n"
         "them, run gvctl drain --wait first."},
    {.name = "reset-cache",
     .argument = "[HOST:PORT]",
     .call = CALL(RESET_CACHE),
     .options = "model",
     .help = "empty the prefix caches of all engines, of one, or of a model's",
     .more = "The router asks each engine (vLLM: /reset_prefix_cache, which needs\n"
             "VLLM_SERVER_DEV_MODE=1; SGLang: /flush_cache). When an engine confirms, all routers\n"
             "forget its cache. The exit status is 1 if an engine did not confirm.\n"
             "\n"
             "  gvctl reset-cache --model llama"},
    {.name = "poison",
     .call = CALL(POISON),
     .show = show_poison,
     .forms = COMMAND_FORMS_NAMES,
     .help = "requests that routers refuse because engines died after them"},
    {.name = "forget",
     .argument = "HASH",
     .call = CALL(FORGET),
     .help = "serve a request of gvctl poison again"},

    {.help = "\nWithout a router:"},
    {.name = "keygen",
     .run = COMMAND_KEYGEN,
     .options = "out next promote finish kubernetes-secret",
     .forms = COMMAND_FORMS_TEXT,
     .help = "make or change the cluster's key",
     .more =
         "Give the file to all routers (--cluster-key-file). To change the key without downtime,\n"
         "take three steps: --next, --promote, --finish. Each step changes FILE. Give FILE to all\n"
         "routers, which read it within a second. Wait for cluster_key_read in each router's log\n"
         "before the next step."},
    {.name = "key",
     .argument = "new|list|revoke [NAME]",
     .run = COMMAND_KEY,
     .options = "file add hash models requests-per-minute tokens-per-minute in-flight control",
     .help = "make, list and revoke clients' API keys",
     .more =
         "`new` prints a new key, this once, and a line for client-keys-file. With --file it\n"
         "appends the line to that file. `list` shows the file. `revoke` removes all keys of a\n"
         "name, or with --hash one of them. Routers read the file within a second.\n"
         "\n"
         "  gvctl key new alice --file client.keys --models m,llama-* --in-flight 4\n"
         "  gvctl key list --file client.keys\n"
         "  gvctl key revoke alice --file client.keys --hash cab67c04"},
    {.name = "convert",
     .argument = "[FILE|COMMAND...]",
     .run = COMMAND_CONVERT,
     .options = "from strict print-page",
     .forms = COMMAND_FORMS_YAML,
     .help = "convert another router's configuration to settings",
     .more =
         "From vLLM Router, production-stack, SGLang router, SMG, llm-d and HAProxy. FILE is a\n"
         "command line, a Kubernetes or Compose manifest, an EndpointPickerConfig or an HAProxy\n"
         "configuration. A command line may also follow --. Without FILE, gvctl reads standard\n"
         "input. The YAML and standard error name what you must set by hand and what has no\n"
         "counterpart. All flags: docs/from-other-routers.md.\n"
         "\n"
         "  gvctl convert -- vllm-router --worker-urls http://10.0.0.1:8000 --policy random\n"
         "  gvctl convert haproxy.cfg >grapevine.yaml"},
    {.name = "completion",
     .argument = "SHELL",
     .run = COMMAND_COMPLETION,
     .options = "for",
     .forms = COMMAND_FORMS_TEXT,
     .help = "completion script for bash, zsh or fish",
     .more = "  source <(gvctl completion bash)\n"
             "  source <(gvctl completion bash --for grapevine)\n"
             "  gvctl completion zsh >\"${fpath[1]}/_gvctl\"\n"
             "  gvctl completion fish >~/.config/fish/completions/gvctl.fish"},
    {.name = "help",
     .argument = "[COMMAND] [VERB]",
     .run = COMMAND_HELP,
     .forms = COMMAND_FORMS_TEXT,
     .help = "show this help, or a command's help and options"},
    {.name = "version",
     .run = COMMAND_VERSION,
     .help = "show the version of gvctl, and of the router if it answers"},
};

static const struct command *row_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *own = rows[i].name;
        if (own != NULL && strcmp(name, own) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Returns the command name of a call without a row here: the path. NULL: not a command. */
static const char *plain_name(enum admin_call call)
{
    const struct admin_call_row *row = admin_call_row(call);
    bool named = row->about != NULL && row->about[0] != '\0' &&
                 (row->flags & (ADMIN_PROBED | ADMIN_STREAM)) == 0;
    for (size_t i = 0; i < ARRAY_LEN(rows) && named; i++)
        named = rows[i].call != call &&
                (rows[i].name == NULL || strcmp(rows[i].name, row->path + 1) != 0);
    return named ? row->path + 1 : NULL;
}

/* Returns the command for a call without a row here. */
static const struct command *plain_command(enum admin_call call)
{
    static struct command plain[ADMIN_CALL_COUNT];
    const struct admin_call_row *row = admin_call_row(call);
    plain[call] = (struct command){.name = plain_name(call),
                                   .argument = row->argument != NULL            ? row->argument
                                               : (row->flags & ADMIN_BODY) != 0 ? "[FILE]"
                                                                                : NULL,
                                   .call = call,
                                   .help = row->about};
    return plain[call].name != NULL ? &plain[call] : NULL;
}

const struct command *command_at(unsigned i)
{
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        if (rows[row].name != NULL && i-- == 0)
            return &rows[row];
    }
    for (unsigned call = 0; call < ADMIN_CALL_COUNT; call++) {
        if (plain_name((enum admin_call)call) != NULL && i-- == 0)
            return plain_command((enum admin_call)call);
    }
    return NULL;
}

const struct command *command_find(const char *name)
{
    const struct command *found = row_find(name);
    for (unsigned i = 0; found == NULL && command_at(i) != NULL; i++)
        found = strcmp(command_at(i)->name, name) == 0 ? command_at(i) : NULL;
    return found;
}

enum command_run command_runs(const struct command *c)
{
    bool changes = (admin_call_row(c->call)->flags & ADMIN_CHANGES) != 0;
    return changes ? COMMAND_CHANGE : c->run;
}

const char *command_argument(const struct command *c)
{
    return c->argument != NULL ? c->argument : "";
}

void command_arguments(const struct command *c, int *least, int *most)
{
    struct slice rest = slice_of_cstr(command_argument(c));
    *least = *most = 0;
    while (rest.len > 0) {
        struct slice word = slice_cut(&rest, ' ');
        bool optional = slice_starts_with(word, SLICE("["));
        bool many = slice_ends_with(word, SLICE("...")) || slice_ends_with(word, SLICE("...]"));
        *least += optional ? 0 : 1;
        *most += many ? 1000000 : 1;
    }
}

bool command_reads_body(const struct command *c)
{
    return (admin_call_row(c->call)->flags & ADMIN_BODY) != 0;
}

bool command_has_form(const struct command *c, enum show_format format)
{
    switch (format) {
    case SHOW_TABLE:
        return true;
    case SHOW_JSON:
        return c->forms == COMMAND_FORMS_ALL || c->forms == COMMAND_FORMS_NAMES;
    case SHOW_YAML:
        return c->forms != COMMAND_FORMS_TEXT;
    case SHOW_NAME:
        return c->forms == COMMAND_FORMS_NAMES;
    }
    return false;
}

const char *command_forms_text(const struct command *c)
{
    static const char *const texts[] = {
        [COMMAND_FORMS_ALL] = "table, wide, json or yaml",
        [COMMAND_FORMS_NAMES] = "table, wide, json, yaml or name",
        [COMMAND_FORMS_TEXT] = "table or wide",
        [COMMAND_FORMS_YAML] = "table, wide or yaml",
    };
    return texts[c->forms];
}

/* --- help ------------------------------------------------------------------------------------ */

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* Prints "  what   help", with the help wrapped. */
static void print_row(FILE *to, const char *what, const char *help)
{
    (void)fprintf(to, "  %-*s", HELP_COLUMN - 3, what);
    size_t at = strlen(what) + 2 < HELP_COLUMN - 1 ? HELP_COLUMN - 1 : strlen(what) + 2;
    struct slice rest = slice_of_cstr(help);
    while (rest.len > 0) {
        struct slice word = slice_cut(&rest, ' ');
        if (at + 1 + word.len > HELP_WIDTH) {
            (void)fprintf(to, "\n%*s", HELP_COLUMN - 1, "");
            at = HELP_COLUMN - 1;
        }
        (void)fprintf(to, " %.*s", SLICE_ARG(word));
        at += 1 + word.len;
    }
    (void)fputc('\n', to);
}

static void print_command(FILE *to, const struct command *c)
{
    char what[64];
    (void)snprintf(what, sizeof what, "%s %s", c->name, command_argument(c));
    print_row(to, what, c->help);
}

static void print_option(FILE *to, const struct given_option *o)
{
    char what[64];
    (void)snprintf(what, sizeof what, "%s%c%s--%s%s%s", o->letter != 0 ? "-" : "",
                   o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ", " : "   ", o->name,
                   o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
    print_row(to, what, o->help);
}

bool command_has_option(const struct command *c, const struct given_option *o)
{
    struct slice names = slice_of_cstr(c->options != NULL ? c->options : "");
    while (names.len > 0) {
        if (slice_equal(slice_cut(&names, ' '), slice_of_cstr(o->name)))
            return true;
    }
    return false;
}

/* Prints the common options; for a command, with the command's output formats. */
static void print_common(const struct command *c, FILE *to)
{
    const struct given_option *o;
    for (unsigned i = 0; (o = given_option_at(i)) != NULL; i++) {
        struct given_option shown = *o;
        if (c != NULL && strcmp(o->name, "output") == 0)
            shown.help = command_forms_text(c);
        if (o->is_common)
            print_option(to, &shown);
    }
}

static const char usage_tail[] =
    "\n"
    "Environment: GRAPEVINE_ADMIN, GRAPEVINE_ADMIN_TOKEN_FILE, GRAPEVINE_ADMIN_CA_FILE and\n"
    "GRAPEVINE_CONFIG are defaults for --admin, --token-file, --ca-file and --config. If none\n"
    "of them gives an address, gvctl reads the router's variables (GRAPEVINE_ADMIN_LISTEN,\n"
    "...). Output on a terminal has colours unless NO_COLOR is set.\n"
    "Exit status: 0 success; 1 failure, no answer, or a check that fails (not ready, states\n"
    "differ); 2 the command line is wrong.\n"
    "\n"
    "examples: gvctl status\n"
    "          gvctl explain --all request.json\n"
    "          gvctl drain --wait 10.0.0.1:8000\n"
    "          gvctl --admin http://10.0.0.7:9090 convergence --wait --timeout 10\n";

void command_usage(FILE *to)
{
    (void)fputs("usage: gvctl [OPTIONS] COMMAND [ARGUMENT]\n"
                "       gvctl help COMMAND\n\n",
                to);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].name != NULL)
            print_command(to, &rows[i]);
        else
            (void)fprintf(to, "%s\n", rows[i].help);
    }
    for (unsigned i = 0; i < ADMIN_CALL_COUNT; i++) {
        if (plain_name((enum admin_call)i) != NULL)
            print_command(to, plain_command((enum admin_call)i));
    }
    (void)fputs("\nOptions of all commands:\n", to);
    print_common(NULL, to);
    (void)fputs(usage_tail, to);
}

void command_help(const struct command *c, FILE *to)
{
    (void)fprintf(to,
                  "usage: gvctl %s%s%s [OPTIONS]\n"
                  "\n"
                  "%s\n",
                  c->name, c->argument != NULL ? " " : "", command_argument(c), c->help);
    if (c->more != NULL)
        (void)fprintf(to, "\n%s\n", c->more);
    bool any = false;
    const struct given_option *o;
    for (unsigned i = 0; (o = given_option_at(i)) != NULL; i++) {
        if (!command_has_option(c, o))
            continue;
        (void)fputs(any ? "" : "\nOptions:\n", to);
        print_option(to, o);
        any = true;
    }
    (void)fputs("\nOptions of all commands:\n", to);
    print_common(c, to);
}

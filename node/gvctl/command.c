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
     .help = "in short: problems, routers, replicas, load, cache",
     .more = "Problems come first: red hurts clients, amber is out while clients are served, grey\n"
             "are old members. Exit status 1 if the router that is asked is not ready; with\n"
             "--check 1 if clients are hurt, 3 if something is out, else 0. What it counts of\n"
             "requests and of the cache is its own since its start, plus that of the other\n"
             "routers whose admin ports can be reached from here."},
    {.name = "top",
     .run = COMMAND_TOP,
     .options = "once interval",
     .forms = COMMAND_FORMS_TEXT,
     .help = "the same as a live view; q quits",
     .more = "Rates are those since the last frame. Without a terminal it prints one frame, as\n"
             "with --once."},
    {.name = "members",
     .call = CALL(MEMBERS),
     .show = show_members,
     .forms = COMMAND_FORMS_NAMES,
     .help = "the routers: state, address, version, lag",
     .more = "-v adds which deltas each router has applied, and what the packets carried."},
    {.name = "forget-member",
     .argument = "NAME",
     .call = CALL(MEMBER_FORGET),
     .help = "no longer show a router that is gone",
     .more = "A router that left in order goes from the list after a minute, a dead one after ten\n"
             "minutes, or when another router has its address. One that comes back is shown."},
    {.name = "convergence",
     .run = COMMAND_CONVERGENCE,
     .call = CALL(CONVERGENCE),
     .options = "wait members",
     .help = "exit 0 if all routers hold the same state, 1 if not",
     .more = "If they do not, it says about what, and since when as far as somebody has asked.\n"
             "-v adds digests. With --wait it asks again until they do, also a router that does\n"
             "not listen yet.\n"
             "\n"
             "  gvctl convergence --wait --members 3 --timeout 10"},
    {.name = "shadow",
     .call = CALL(SHADOW),
     .show = show_shadow,
     .help = "shadow mode: the policy against a plain one",
     .more = "The share of prompt tokens from cache and the time to the first token, of all\n"
             "routers, in the last hour. With shadow: on the policy's are predictions. With\n"
             "control-share both are measured."},
    {.name = "events",
     .run = COMMAND_EVENTS,
     .options = "interval follow last local router",
     .help = "what happened lately, in words; --follow",
     .more = "Deaths, joins, drains, retries, settings, keys and certificates, as all routers saw\n"
             "them, by time; a router that does not answer is named. With --follow the last ones\n"
             "are shown, then each as it happens; with -o json a line each.\n"
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
     .help = "requests in flight, and those that wait"},
    {.name = "explain",
     .argument = "[FILE]",
     .call = CALL(EXPLAIN),
     .show = show_explain,
     .options = "session all",
     .help = "what each replica would cost for a request body",
     .more = "FILE is - or left out: standard input. Nothing is sent to a replica.\n"
             "\n"
             "  gvctl explain --all request.json"},
    {.name = "decisions",
     .run = COMMAND_DECISIONS,
     .options = "interval follow last failed slow model replica reason",
     .help = "the last choices, why, and how they ended; --follow",
     .more =
         "With --follow the last that have ended are shown, then each once its request has ended;\n"
         "with -o json a line each. Several filters hold together.\n"
         "\n"
         "  gvctl decisions --failed --replica 10.0.0.1:8000\n"
         "  gvctl decisions --slow 5 --model llama --last 100"},
    {.name = "ready",
     .call = CALL(READYZ),
     .parse = parse_ready,
     .help = "exit 0 if the router can serve, 1 if not"},
    {.name = "alive",
     .call = CALL(HEALTHZ),
     .parse = parse_alive,
     .help = "exit 0 if the process lives: for containers"},
    {.name = "metrics",
     .call = CALL(METRICS),
     .parse = parse_metrics,
     .help = "Prometheus text (-o json: a list of samples)"},
    {.name = "config",
     .call = CALL(CONFIG),
     .parse = parse_config,
     .help = "the settings in force, and where each comes from"},
    {.name = "log-level",
     .argument = "LEVEL",
     .call = CALL(LOG_LEVEL),
     .help = "error, warn, info or debug, until the next start"},

    {.help = "\nReplicas, for all routers:"},
    {.name = "drain",
     .argument = "HOST:PORT",
     .call = CALL(DRAIN),
     .options = "wait",
     .help = "nothing new for a replica; --wait",
     .more = "What is under way there ends by itself. With --wait it returns when nothing is, of\n"
             "all routers (exit 1 if that takes longer than --timeout): then the engine may be\n"
             "stopped. HOST:PORT@RANK is one of its data-parallel ranks.\n"
             "\n"
             "  gvctl drain --wait --timeout 120 10.0.0.1:8000"},
    {.name = "undrain", .argument = "HOST:PORT", .call = CALL(UNDRAIN), .help = "undo that"},
    {.name = "add",
     .argument = "HOST:PORT",
     .call = CALL(ADD),
     .options = "engine",
     .help = "a replica, until it is removed",
     .more = "It is used when its health check succeeds. A router in place of an engine is\n"
             "refused. The engine may stand behind it, as in the settings, but no other label.\n"
             "\n"
             "  gvctl add '10.0.0.3:8000#engine=vllm'"},
    {.name = "remove",
     .argument = "HOST:PORT",
     .call = CALL(REMOVE),
     .help = "it is not used, whatever a configuration says",
     .more = "What is under way there ends by itself; gvctl says how much that is. To wait for\n"
             "it, drain --wait first."},
    {.name = "reset-cache",
     .argument = "[HOST:PORT]",
     .call = CALL(RESET_CACHE),
     .options = "model",
     .help = "empty engines' prefix caches: of all, of one, of a model",
     .more =
         "Each engine is asked (vLLM: /reset_prefix_cache, which needs VLLM_SERVER_DEV_MODE=1;\n"
         "SGLang: /flush_cache). All routers forget what those held that confirm it. Exit\n"
         "status 1 if one did not.\n"
         "\n"
         "  gvctl reset-cache --model llama"},
    {.name = "poison",
     .call = CALL(POISON),
     .show = show_poison,
     .forms = COMMAND_FORMS_NAMES,
     .help = "requests after which engines died, as all routers hold"},
    {.name = "forget", .argument = "HASH", .call = CALL(FORGET), .help = "serve one of them again"},

    {.help = "\nWithout a router:"},
    {.name = "keygen",
     .run = COMMAND_KEYGEN,
     .options = "out next promote finish kubernetes-secret",
     .forms = COMMAND_FORMS_TEXT,
     .help = "the cluster's key: a new one, and its change",
     .more = "Give the file to all routers (--cluster-key-file). To change the key without a\n"
             "pause there are three steps, --next, --promote, --finish. Each changes FILE; give\n"
             "it to all routers, which read it within a second, and wait for cluster_key_read in\n"
             "the log of each before the next step."},
    {.name = "key",
     .argument = "new|list|revoke [NAME]",
     .run = COMMAND_KEY,
     .options = "file add hash models requests-per-minute tokens-per-minute in-flight control",
     .help = "clients' API keys: new ones, shown once; the file of them",
     .more = "`new` prints a key, and its line for client-keys-file or, with --file, appends the\n"
             "line there. `list` shows the file. `revoke` removes the keys of a name, or one of\n"
             "them by its hash. Routers read the file within a second.\n"
             "\n"
             "  gvctl key new alice --file client.keys --models m,llama-* --in-flight 4\n"
             "  gvctl key list --file client.keys\n"
             "  gvctl key revoke alice --file client.keys --hash cab67c04"},
    {.name = "convert",
     .argument = "[FILE|COMMAND...]",
     .run = COMMAND_CONVERT,
     .options = "from strict print-page",
     .forms = COMMAND_FORMS_YAML,
     .help = "settings from what starts another router",
     .more =
         "Of vLLM Router, production-stack, SGLang router, SMG, llm-d and HAProxy. FILE has a\n"
         "command line (one may also stand behind --), a manifest of Kubernetes or Compose, an\n"
         "EndpointPickerConfig or HAProxy's configuration; standard input without it. What is\n"
         "to be done by hand, and what has no counterpart, is named in the YAML and on standard\n"
         "error. All flags: docs/from-other-routers.md.\n"
         "\n"
         "  gvctl convert -- vllm-router --worker-urls http://10.0.0.1:8000 --policy random\n"
         "  gvctl convert haproxy.cfg >grapevine.yaml"},
    {.name = "completion",
     .argument = "SHELL",
     .run = COMMAND_COMPLETION,
     .options = "for",
     .forms = COMMAND_FORMS_TEXT,
     .help = "a script for bash, zsh or fish",
     .more = "  source <(gvctl completion bash)\n"
             "  source <(gvctl completion bash --for grapevine)\n"
             "  gvctl completion zsh >\"${fpath[1]}/_gvctl\"\n"
             "  gvctl completion fish >~/.config/fish/completions/gvctl.fish"},
    {.name = "help",
     .argument = "[COMMAND] [VERB]",
     .run = COMMAND_HELP,
     .forms = COMMAND_FORMS_TEXT,
     .help = "this, or a command with its options"},
    {.name = "version",
     .run = COMMAND_VERSION,
     .help = "of gvctl, and of the router if it is reached"},
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

/* Returns the command name of a call without a row here: its path. NULL: not a command. */
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

/* Returns the command for such a call. */
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

/* Prints the common options; for a command, with its output formats. */
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
    "Variables: GRAPEVINE_ADMIN, GRAPEVINE_ADMIN_TOKEN_FILE, GRAPEVINE_ADMIN_CA_FILE and\n"
    "GRAPEVINE_CONFIG as --admin, --token-file, --ca-file and --config. Where no address is\n"
    "given, the router's own variables (GRAPEVINE_ADMIN_LISTEN, ...) count as well.\n"
    "Colour is used on a terminal, unless NO_COLOR is set.\n"
    "Exit status: 0 done, and it is so; 1 it is not so (not ready, not equal, refused, no\n"
    "answer); 2 the command line is wrong.\n"
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
    (void)fprintf(to, "usage: gvctl %s%s%s [OPTIONS]\n\n%s\n", c->name,
                  c->argument != NULL ? " " : "", command_argument(c), c->help);
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

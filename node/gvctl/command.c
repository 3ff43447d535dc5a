#include "node/gvctl/command.h"

#include <string.h>

#include "base/check.h"
#include "node/gvctl/parse.h"

#define CALL(name) ADMIN_CALL_##name
#define NO_CALL    ADMIN_CALL_COUNT

/* `name` is NULL for the head of a group. */
static const struct command rows[] = {
    {.help = "The cluster:"},
    {.name = "status",
     .argument = "",
     .run = COMMAND_STATUS,
     .call = NO_CALL,
     .help = "in short: routers, replicas, load, share from cache",
     .more = "Exit status 1 if the router that is asked is not ready. What it counts of requests\n"
             "and of the cache is its own since its start, plus that of the other routers whose\n"
             "admin ports can be reached from here."},
    {.name = "top",
     .argument = "",
     .run = COMMAND_TOP,
     .call = NO_CALL,
     .options = OF_TOP,
     .forms = COMMAND_FORMS_TEXT,
     .help = "the same as a live view; q quits",
     .more = "Rates are those since the last frame. Without a terminal it prints one frame, as\n"
             "with --once."},
    {.name = "members",
     .argument = "",
     .call = CALL(MEMBERS),
     .show = show_members,
     .forms = COMMAND_FORMS_NAMES,
     .help = "the routers: state, address, version, lag",
     .more = "-v adds which deltas each router has applied, and what the packets carried."},
    {.name = "convergence",
     .argument = "",
     .run = COMMAND_CONVERGENCE,
     .call = CALL(CONVERGENCE),
     .options = OF_CONVERGENCE,
     .help = "exit 0 if all routers hold the same state, 1 if not",
     .more = "With --wait it asks again until they do, also a router that does not listen yet.\n"
             "\n"
             "  gvctl convergence --wait --members 3 --timeout 10"},
    {.name = "events",
     .argument = "",
     .run = COMMAND_EVENTS,
     .call = NO_CALL,
     .options = OF_RING | OF_EVENTS,
     .help = "what happened lately, in words; --follow",
     .more = "Deaths, joins, drains, retries, settings, keys and certificates, as all routers saw\n"
             "them, by time; a router that does not answer is named. With --follow the last ones\n"
             "are shown, then each as it happens; with -o json a line each.\n"
             "\n"
             "  gvctl events --last 10\n"
             "  gvctl events --follow --router r2"},

    {.help = "\nOne router:"},
    {.name = "replicas",
     .argument = "",
     .call = CALL(REPLICAS),
     .show = show_replicas,
     .forms = COMMAND_FORMS_NAMES,
     .help = "what the router believes of every replica"},
    {.name = "sources",
     .argument = "",
     .call = CALL(SOURCES),
     .show = show_sources,
     .help = "where replicas come from: files, DNS, Kubernetes"},
    {.name = "queue",
     .argument = "",
     .call = CALL(QUEUE),
     .show = show_queue,
     .help = "requests in flight, and those that wait"},
    {.name = "explain",
     .argument = "[FILE]",
     .call = CALL(EXPLAIN),
     .show = show_explain,
     .options = OF_EXPLAIN,
     .help = "what each replica would cost for a request body",
     .more = "FILE is - or left out: standard input. Nothing is sent to a replica.\n"
             "\n"
             "  gvctl explain --all request.json"},
    {.name = "decisions",
     .argument = "",
     .run = COMMAND_DECISIONS,
     .call = NO_CALL,
     .options = OF_RING,
     .help = "the last choices, why, and how they ended; --follow",
     .more =
         "With --follow the last that have ended are shown, then each once its request has ended;\n"
         "with -o json a line each."},
    {.name = "ready",
     .argument = "",
     .call = CALL(READYZ),
     .parse = parse_ready,
     .help = "exit 0 if the router can serve, 1 if not"},
    {.name = "alive",
     .argument = "",
     .call = CALL(HEALTHZ),
     .parse = parse_alive,
     .help = "exit 0 if the process lives: for containers"},
    {.name = "metrics",
     .argument = "",
     .call = CALL(METRICS),
     .parse = parse_metrics,
     .help = "Prometheus text (-o json: a list of samples)"},
    {.name = "config",
     .argument = "",
     .call = CALL(CONFIG),
     .parse = parse_config,
     .help = "the settings in force, and where each comes from"},
    {.name = "log-level",
     .argument = "LEVEL",
     .run = COMMAND_CHANGE,
     .call = CALL(LOG_LEVEL),
     .help = "error, warn, info or debug, until the next start"},

    {.help = "\nReplicas, for all routers:"},
    {.name = "drain",
     .argument = "HOST:PORT",
     .run = COMMAND_CHANGE,
     .call = CALL(DRAIN),
     .options = OF_DRAIN,
     .help = "nothing new for a replica; --wait",
     .more = "What is under way there ends by itself. With --wait it returns when nothing is, of\n"
             "all routers (exit 1 if that takes longer than --timeout): then the engine may be\n"
             "stopped. HOST:PORT@RANK is one of its data-parallel ranks.\n"
             "\n"
             "  gvctl drain --wait --timeout 120 10.0.0.1:8000"},
    {.name = "undrain",
     .argument = "HOST:PORT",
     .run = COMMAND_CHANGE,
     .call = CALL(UNDRAIN),
     .help = "undo that"},
    {.name = "add",
     .argument = "HOST:PORT",
     .run = COMMAND_CHANGE,
     .call = CALL(ADD),
     .options = OF_ADD,
     .help = "a replica, until it is removed",
     .more = "It is used when its health check succeeds. A router in place of an engine is\n"
             "refused. The engine may stand behind it, as in the settings, but no other label.\n"
             "\n"
             "  gvctl add '10.0.0.3:8000#engine=vllm'"},
    {.name = "remove",
     .argument = "HOST:PORT",
     .run = COMMAND_CHANGE,
     .call = CALL(REMOVE),
     .help = "it is not used, whatever a configuration says",
     .more = "What is under way there ends by itself; gvctl says how much that is. To wait for\n"
             "it, drain --wait first."},
    {.name = "reset-cache",
     .argument = "[HOST:PORT]",
     .run = COMMAND_CHANGE,
     .call = CALL(RESET_CACHE),
     .options = OF_RESET,
     .help = "empty engines' prefix caches: of all, of one, of a model",
     .more =
         "Each engine is asked (vLLM: /reset_prefix_cache, which needs VLLM_SERVER_DEV_MODE=1;\n"
         "SGLang: /flush_cache). All routers forget what those held that confirm it. Exit\n"
         "status 1 if one did not.\n"
         "\n"
         "  gvctl reset-cache --model llama"},
    {.name = "poison",
     .argument = "",
     .call = CALL(POISON),
     .show = show_poison,
     .forms = COMMAND_FORMS_NAMES,
     .help = "requests after which engines died, as all routers hold"},
    {.name = "forget",
     .argument = "HASH",
     .run = COMMAND_CHANGE,
     .call = CALL(FORGET),
     .help = "serve one of them again"},

    {.help = "\nWithout a router:"},
    {.name = "keygen",
     .argument = "",
     .run = COMMAND_KEYGEN,
     .call = NO_CALL,
     .options = OF_KEYGEN,
     .forms = COMMAND_FORMS_TEXT,
     .help = "the cluster's key: a new one, and its change",
     .more = "Give the file to all routers (--cluster-key-file). To change the key without a\n"
             "pause there are three steps, --next, --promote, --finish. Each changes FILE; give\n"
             "it to all routers, which read it within a second, and wait for cluster_key_read in\n"
             "the log of each before the next step."},
    {.name = "key",
     .argument = "new NAME",
     .run = COMMAND_KEY,
     .call = NO_CALL,
     .options = OF_KEY,
     .help = "an API key for a client, shown once",
     .more = "Prints the key, and its line for client-keys-file or, with --file, appends the line\n"
             "there.\n"
             "\n"
             "  gvctl key new alice --file client.keys --models m,llama-* --in-flight 4"},
    {.name = "convert",
     .argument = "[FILE|COMMAND...]",
     .run = COMMAND_CONVERT,
     .call = NO_CALL,
     .options = OF_CONVERT,
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
     .call = NO_CALL,
     .options = OF_COMPLETION,
     .forms = COMMAND_FORMS_TEXT,
     .help = "a script for bash, zsh or fish",
     .more = "  source <(gvctl completion bash)\n"
             "  source <(gvctl completion bash --for grapevine)\n"
             "  gvctl completion zsh >\"${fpath[1]}/_gvctl\"\n"
             "  gvctl completion fish >~/.config/fish/completions/gvctl.fish"},
    {.name = "help",
     .argument = "[COMMAND] [VERB]",
     .run = COMMAND_HELP,
     .call = NO_CALL,
     .forms = COMMAND_FORMS_TEXT,
     .help = "this, or a command with its options"},
    {.name = "version",
     .argument = "",
     .run = COMMAND_VERSION,
     .call = NO_CALL,
     .help = "of gvctl, and of the router if it is reached"},
};

static const struct command_option options[] = {
    {'a', false, "admin", "URL", (unsigned)OF_EVERY,
     "the router's admin port; default $GRAPEVINE_ADMIN, or that of --config", ""},
    {'C', false, "config", "FILE", (unsigned)OF_EVERY,
     "settings of the router on this machine: they say where its admin port is, whether it "
     "speaks TLS, and the token; default $GRAPEVINE_CONFIG, and without any "
     "http://127.0.0.1:9090",
     NULL},
    {'c', false, "ca-file", "FILE", (unsigned)OF_EVERY,
     "the CA of an admin port at https://; default $GRAPEVINE_ADMIN_CA_FILE or the system's", NULL},
    {'k', false, "insecure", NULL, (unsigned)OF_EVERY, "believe whoever answers at https://", NULL},
    {'t', false, "token-file", "FILE", (unsigned)OF_EVERY,
     "the admin token, for calls that change something where the router has one; without it "
     "they must come from the router's machine; default $GRAPEVINE_ADMIN_TOKEN_FILE",
     NULL},
    {'T', false, "timeout", "SECONDS", (unsigned)OF_EVERY,
     "how long a router may take to answer (default 10)", ""},
    {'o', true, "output", "FORMAT", (unsigned)OF_EVERY,
     "table, wide, json, yaml or name: what the command has of these", "table wide json yaml name"},
    {'j', false, "json", NULL, (unsigned)OF_EVERY,
     "the same as --output json, where the command has that", NULL},
    {'v', true, "verbose", NULL, (unsigned)OF_EVERY,
     "all columns, and what they mean below the table", NULL},
    {'h', true, "help", NULL, (unsigned)OF_EVERY, "this; behind a command, that one's", NULL},
    {'V', true, "version", NULL, (unsigned)OF_EVERY, "of gvctl", NULL},
    {'s', false, "session", "KEY", OF_EXPLAIN, "as if the request's session header held this", ""},
    {'A', false, "all", NULL, OF_EXPLAIN, "as each router of the cluster sees it, side by side",
     NULL},
    {'w', false, "wait", NULL, OF_CONVERGENCE | OF_DRAIN,
     "until it is so, for --timeout at most (default 60 s; drain: 600 s)", NULL},
    {'M', false, "members", "N", OF_CONVERGENCE, "and there are so many routers", ""},
    {'e', false, "engine", "NAME", OF_ADD, "vllm, sglang or other, where it is known beforehand",
     "vllm sglang other"},
    {'1', false, "once", NULL, OF_TOP, "one frame, then the end", NULL},
    {'i', false, "interval", "SECONDS", OF_TOP | OF_RING,
     "between two frames or two questions (default 1)", ""},
    {'W', false, "follow", NULL, OF_RING, "the last ones, then those that come, until Ctrl-C",
     NULL},
    {'l', false, "last", "N", OF_RING, "so many (default 32)", ""},
    {'L', false, "local", NULL, OF_EVENTS, "as the router saw it that is asked, alone", NULL},
    {'R', false, "router", "NAME", OF_EVENTS, "as that one of the cluster saw it, alone", ""},
    {'O', false, "out", "FILE", OF_KEYGEN, "a new key", NULL},
    {'n', false, "next", "FILE", OF_KEYGEN, "a second key, that is accepted already", NULL},
    {'p', false, "promote", "FILE", OF_KEYGEN, "that is used; the old one is still accepted", NULL},
    {'f', false, "finish", "FILE", OF_KEYGEN, "the old key is gone", NULL},
    {'K', false, "kubernetes-secret", "NAME", OF_KEYGEN,
     "a new one as a Secret, made from a pod that may create Secrets", ""},
    {'u', false, "file", "FILE", OF_KEY, "the line is appended there, and not printed", NULL},
    {'m', false, "models", "A,B", OF_KEY, "the key may use these alone; M* is all that begin so",
     ""},
    {'q', false, "requests-per-minute", "N", OF_KEY, "over all routers, nearly", ""},
    {'g', false, "tokens-per-minute", "N", OF_KEY, "the same, of prompts and answers", ""},
    {'G', false, "in-flight", "N", OF_KEY, "so many requests at once", ""},
    {'E', false, "model", "NAME", OF_RESET, "of the replicas that serve it", ""},
    {'X', false, "control", NULL, OF_KEY,
     "the key may use engines' control paths (engine-control-paths=all)", NULL},
    {'r', false, "from", "ROUTER", OF_CONVERT,
     "vllm-router, production-stack, sglang-router, smg, llm-d or haproxy (default: it is seen)",
     "vllm-router production-stack sglang-router smg llm-d haproxy"},
    {'S', false, "strict", NULL, OF_CONVERT, "exit 1 if something is by hand or has no counterpart",
     NULL},
    {'P', false, "print-page", NULL, OF_CONVERT, "the page docs/from-other-routers.md", NULL},
    {'F', false, "for", "PROGRAM", OF_COMPLETION, "gvctl (the default) or grapevine",
     "gvctl grapevine"},
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

/* The name under which a call that has no row here is a command all the same: its path. NULL: it is
 * none. */
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

/* The command that such a call is. */
static const struct command *plain_command(enum admin_call call)
{
    static struct command plain[ADMIN_CALL_COUNT];
    const struct admin_call_row *row = admin_call_row(call);
    bool changes = (row->flags & ADMIN_CHANGES) != 0;
    plain[call] = (struct command){.name = plain_name(call),
                                   .argument = row->argument != NULL            ? row->argument
                                               : (row->flags & ADMIN_BODY) != 0 ? "[FILE]"
                                                                                : "",
                                   .run = changes ? COMMAND_CHANGE : COMMAND_ASK,
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

const struct command_option *command_option_at(unsigned i)
{
    return i < ARRAY_LEN(options) ? &options[i] : NULL;
}

const struct command *command_find(const char *name)
{
    const struct command *found = row_find(name);
    for (unsigned i = 0; found == NULL && command_at(i) != NULL; i++)
        found = strcmp(command_at(i)->name, name) == 0 ? command_at(i) : NULL;
    return found;
}

void command_arguments(const struct command *c, int *least, int *most)
{
    struct slice rest = slice_of_cstr(c->argument);
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
    return c->call != NO_CALL && (admin_call_row(c->call)->flags & ADMIN_BODY) != 0;
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

/* "  what   help", the help broken into lines. */
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
    (void)snprintf(what, sizeof what, "%s %s", c->name, c->argument);
    print_row(to, what, c->help);
}

static void print_option(FILE *to, const struct command_option *o)
{
    char what[64];
    (void)snprintf(what, sizeof what, "%s%c%s--%s%s%s", o->is_short ? "-" : "",
                   o->is_short ? o->letter : ' ', o->is_short ? ", " : "   ", o->name,
                   o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
    print_row(to, what, o->help);
}

static bool is_common(const struct command_option *o)
{
    return o->of == (unsigned)OF_EVERY;
}

/* Of all commands, or of one with the forms that its output has. */
static void print_common(const struct command *c, FILE *to)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        struct command_option o = options[i];
        if (c != NULL && o.letter == 'o')
            o.help = command_forms_text(c);
        if (is_common(&o))
            print_option(to, &o);
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
                  c->argument[0] != '\0' ? " " : "", c->argument, c->help);
    if (c->more != NULL)
        (void)fprintf(to, "\n%s\n", c->more);
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (is_common(&options[i]) || (options[i].of & c->options) == 0)
            continue;
        (void)fputs(any ? "" : "\nOptions:\n", to);
        print_option(to, &options[i]);
        any = true;
    }
    (void)fputs("\nOptions of all commands:\n", to);
    print_common(c, to);
}

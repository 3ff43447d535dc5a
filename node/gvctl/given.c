#include "node/gvctl/given.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "node/gvctl/plain.h"
#include "node/io/read_file.h"
#include "node/settings/value.h"

int given_file(const char *path, struct buf *out)
{
    const struct io_file file = {.setting = "gvctl: cannot read",
                                 .path = path,
                                 .bytes_max = GIVEN_FILE_BYTES_MAX,
                                 .long_advice = "want at most 256 MiB",
                                 .pipes = true};
    char message[IO_FILE_MESSAGE];
    int err = strcmp(path, "-") == 0 ? io_file_read_fd(&file, dup(STDIN_FILENO), out, NULL, message)
                                     : io_file_read(&file, out, NULL, message);
    if (err != 0)
        plain_printf(stderr, "%s\n", message);
    return err;
}

bool given_token(struct given *g, const char *path)
{
    struct buf text = {0};
    if (given_file(path, &text) != 0 || buf_append_char(&text, '\0') != 0) {
        buf_free(&text);
        return false;
    }
    text.at[strcspn(text.at, "\r\n")] = '\0';
    free(g->token);
    g->token = text.at;
    return true;
}

/* --- options by row --------------------------------------------------------------------------- */

static void *field_of(struct given *g, const struct given_option *o)
{
    return (char *)g + o->where;
}

static bool take_flag(struct given *g, const struct given_option *o, const char *text)
{
    (void)text;
    return *(bool *)field_of(g, o) = true;
}

static bool take_text(struct given *g, const struct given_option *o, const char *text)
{
    *(const char **)field_of(g, o) = text;
    return true;
}

static bool take_number(struct given *g, const struct given_option *o, const char *text)
{
    uint64_t value;
    bool good = slice_to_u64(slice_of_cstr(text), &value) == 0 && value >= 1 && value <= 1000000;
    if (good)
        *(unsigned *)field_of(g, o) = (unsigned)value;
    else
        (void)fprintf(stderr, "gvctl: --%s \"%s\": want a number from 1 on\n", o->name, text);
    return good;
}

/* A setting's time; a number without a unit is in seconds. */
static bool take_time(struct given *g, const struct given_option *o, const char *text)
{
    char with_unit[40]; /* as long as the numbers of settings */
    uint64_t ms = 0;
    bool bare = text[0] != '\0' && text[strspn(text, "0123456789.")] == '\0';
    int len = snprintf(with_unit, sizeof with_unit, "%s%s", text, bare ? "s" : "");
    if (len < (int)sizeof with_unit && node_option_time_read(slice_of_cstr(with_unit), &ms) == 0 &&
        ms > 0) {
        *(uint64_t *)field_of(g, o) = ms;
        return true;
    }
    (void)fprintf(stderr, "gvctl: --%s \"%s\": want a time from 1ms on, such as 0.5, 500ms or 2s\n",
                  o->name, text);
    return false;
}

static bool take_limit(struct given *g, const struct given_option *o, const char *text)
{
    uint64_t *out = field_of(g, o);
    if (slice_to_u64(slice_of_cstr(text), out) == 0 && *out > 0 && *out <= ACCESS_LIMIT_MAX)
        return true;
    (void)fprintf(stderr, "gvctl: --%s: want a number from 1 to 1000000000\n", o->name);
    return false;
}

static bool take_models(struct given *g, const struct given_option *o, const char *text)
{
    g->key.line.models = slice_of_cstr(text);
    const char *wrong = access_models_wrong(g->key.line.models);
    if (wrong != NULL)
        (void)fprintf(stderr, "gvctl: --%s: %s\n", o->name, wrong);
    return wrong == NULL;
}

static bool take_token_file(struct given *g, const struct given_option *o, const char *text)
{
    (void)o;
    return given_token(g, text);
}

static bool take_verbose(struct given *g, const struct given_option *o, const char *text)
{
    (void)o, (void)text;
    return g->show.wide = g->show.verbose = true;
}

static bool take_output(struct given *g, const struct given_option *o, const char *text)
{
    bool wide = strcmp(text, "wide") == 0;
    (void)o;
    for (unsigned f = SHOW_TABLE; f <= SHOW_NAME; f++) {
        if (strcmp(wide ? "table" : text, show_format_text((enum show_format)f)) == 0) {
            g->show.format = (enum show_format)f;
            g->show.wide = g->show.wide || wide;
            return true;
        }
    }
    (void)fprintf(stderr, "gvctl: no output \"%s\": table, wide, json, yaml or name\n", text);
    return false;
}

static bool take_json(struct given *g, const struct given_option *o, const char *text)
{
    (void)text;
    return take_output(g, o, "json");
}

static bool take_step(struct given *g, const struct given_option *o, const char *text)
{
    if (g->key_file != NULL) {
        (void)fputs("gvctl: keygen takes only one of --out, --next, --promote, --finish and "
                    "--kubernetes-secret\n",
                    stderr);
        return false;
    }
    g->step = (enum keygen_step)o->where;
    g->key_file = text;
    return true;
}

#define AT(field) offsetof(struct given, field)

static const struct given_option options[] = {
    {"admin", 0, "URL", true, take_text, AT(admin),
     "the router's admin port; default $GRAPEVINE_ADMIN, or the port that --config names", ""},
    {"config", 0, "FILE", true, take_text, AT(config),
     "settings file of the router on this machine, with its admin address, TLS and token; default "
     "$GRAPEVINE_CONFIG; without a file: http://127.0.0.1:9090",
     NULL},
    {"ca-file", 0, "FILE", true, take_text, AT(trust.ca_file),
     "CA that signed the certificate of an https:// admin port; default $GRAPEVINE_ADMIN_CA_FILE "
     "or the system's CAs",
     NULL},
    {"insecure", 0, NULL, true, take_flag, AT(trust.insecure),
     "do not check the certificate of an https:// admin port", NULL},
    {"token-file", 0, "FILE", true, take_token_file, 0,
     "file with the admin token, which a router with a token requires for changes; a router "
     "without one takes changes from its own machine only; default $GRAPEVINE_ADMIN_TOKEN_FILE",
     NULL},
    {"timeout", 0, "SECONDS", true, take_number, AT(timeout_s),
     "how long a router may take to answer (default 10)", ""},
    {"output", 'o', "FORMAT", true, take_output, 0,
     "table, wide, json, yaml or name; not every command has all of them",
     "table wide json yaml name"},
    {"json", 0, NULL, true, take_json, 0, "short for --output json", NULL},
    {"verbose", 'v', NULL, true, take_verbose, 0,
     "show all columns, and explain them below the table", NULL},
    {"help", 'h', NULL, true, take_flag, AT(help),
     "show this help; after a command: the command's help", NULL},
    {"version", 'V', NULL, true, take_flag, AT(version), "show gvctl's version", NULL},
    {"session", 0, "KEY", false, take_text, AT(session),
     "explain the request as if its session header were KEY", ""},
    {"all", 0, NULL, false, take_flag, AT(all),
     "ask every router of the cluster and show the answers side by side", NULL},
    {"wait", 0, NULL, false, take_flag, AT(wait),
     "wait until the routers agree, or the drained replica is idle; at most --timeout (default 60 "
     "s; drain: 600 s)",
     NULL},
    {"members", 0, "N", false, take_number, AT(members),
     "exit 0 only if at least N routers are alive", ""},
    {"engine", 0, "NAME", false, take_text, AT(engine),
     "the replica's engine, if you know it: vllm, sglang or other", "vllm sglang other"},
    {"check", 0, NULL, false, take_flag, AT(check),
     "exit 1 if there are red problems, 3 if only amber ones, else 0", NULL},
    {"once", 0, NULL, false, take_flag, AT(once), "show one frame and exit", NULL},
    {"interval", 0, "SECONDS", false, take_number, AT(interval_s),
     "time between two frames or two queries (default 1)", ""},
    {"follow", 0, NULL, false, take_flag, AT(follow),
     "show the last entries, then each new one, until Ctrl-C", NULL},
    {"last", 0, "N", false, take_number, AT(last), "show the last N entries (default 32)", ""},
    {"local", 0, NULL, false, take_flag, AT(local), "show only what the router at --admin saw",
     NULL},
    {"router", 0, "NAME", false, take_text, AT(router), "show only what router NAME saw", ""},
    {"out", 0, "FILE", false, take_step, KEYGEN_NEW, "write a new key to FILE", NULL},
    {"next", 0, "FILE", false, take_step, KEYGEN_NEXT,
     "add a second key to FILE: routers accept it, but do not use it yet", NULL},
    {"promote", 0, "FILE", false, take_step, KEYGEN_PROMOTE,
     "start to use the second key; the old one is still accepted", NULL},
    {"finish", 0, "FILE", false, take_step, KEYGEN_FINISH, "remove the old key from FILE", NULL},
    {"kubernetes-secret", 0, "NAME", false, take_step, KEYGEN_SECRET,
     "write a new key to a new Kubernetes Secret NAME, from a pod that may create Secrets", ""},
    {"file", 0, "FILE", false, take_text, AT(key.path),
     "the router's client-keys-file; without --file, `new` prints the line for it", NULL},
    {"add", 0, NULL, false, take_flag, AT(key.add), "make another key for a name that has one",
     NULL},
    {"hash", 0, "HEX", false, take_text, AT(key.hash),
     "revoke only the key whose hash begins with HEX", ""},
    {"models", 0, "A,B", false, take_models, 0,
     "models that the key may use; M* stands for all that begin with M", ""},
    {"requests-per-minute", 0, "N", false, take_limit, AT(key.line.limits.requests),
     "limit for the key's requests per minute at all routers together (approximate)", ""},
    {"tokens-per-minute", 0, "N", false, take_limit, AT(key.line.limits.tokens),
     "limit for the key's prompt and answer tokens per minute at all routers together "
     "(approximate)",
     ""},
    {"in-flight", 0, "N", false, take_limit, AT(key.line.limits.in_flight),
     "at most N requests of the key at once", ""},
    {"model", 0, "NAME", false, take_text, AT(model),
     "only replicas that serve model NAME, or decisions about it", ""},
    {"replica", 0, "HOST:PORT", false, take_text, AT(replica),
     "only decisions that chose this replica", ""},
    {"reason", 0, "WHY", false, take_text, AT(reason),
     "only decisions for this reason: cached, cheaper, cold, only, load, maker, due or plain",
     "cached cheaper cold only load maker due plain"},
    {"failed", 0, NULL, false, take_flag, AT(failed),
     "only attempts that failed, even if a retry hid the failure from the client", NULL},
    {"slow", 0, "TIME", false, take_time, AT(slow_ms),
     "only requests whose first token (without a stream: answer) took longer than 0.5, 500ms or 2s",
     ""},
    {"control", 0, NULL, false, take_flag, AT(key.line.control),
     "the key may use engines' control paths (engine-control-paths=all)", NULL},
    {"from", 0, "ROUTER", false, take_text, AT(from),
     "vllm-router, production-stack, sglang-router, smg, llm-d or haproxy (default: detected from "
     "FILE)",
     "vllm-router production-stack sglang-router smg llm-d haproxy"},
    {"strict", 0, NULL, false, take_flag, AT(strict),
     "exit 1 if a setting has no counterpart or must be set by hand", NULL},
    {"print-page", 0, NULL, false, take_flag, AT(print_page),
     "print the page docs/from-other-routers.md", NULL},
    {"for", 0, "PROGRAM", false, take_text, AT(program),
     "program to complete: gvctl (the default) or grapevine", "gvctl grapevine"},
};

const struct given_option *given_option_at(unsigned i)
{
    return i < ARRAY_LEN(options) ? &options[i] : NULL;
}

bool given_read(struct given *g, int argc, char **argv)
{
    enum { LONG = 256 }; /* after all letters */
    struct option wanted[GIVEN_OPTIONS_MAX] = {{NULL}};
    char letters[2 * GIVEN_OPTIONS_MAX] = "";
    int of_letter[LONG] = {0};
    const struct given_option *o;
    size_t n = 0;
    for (unsigned i = 0; (o = given_option_at(i)) != NULL; i++) {
        CHECK(i + 1 < GIVEN_OPTIONS_MAX);
        int has = o->argument != NULL ? required_argument : no_argument;
        wanted[i] = (struct option){.name = o->name, .has_arg = has, .val = LONG + (int)i};
        of_letter[(unsigned char)o->letter] = LONG + (int)i;
        if (o->letter != 0)
            letters[n++] = o->letter;
        if (o->letter != 0 && o->argument != NULL)
            letters[n++] = ':';
    }
    const char *no_colour = getenv("NO_COLOR");
    *g = (struct given){0};
    g->show.colour = isatty(STDOUT_FILENO) != 0 && (no_colour == NULL || no_colour[0] == '\0');
    int which;
    while ((which = getopt_long(argc, argv, letters, wanted, NULL)) != -1) {
        int i = (which < LONG ? of_letter[which] : which) - LONG;
        if (i < 0)
            (void)fputs("gvctl: see gvctl --help\n", stderr);
        if (i < 0 || !given_option_at((unsigned)i)->take(g, given_option_at((unsigned)i), optarg))
            return false;
        g->used[i] = true;
    }
    g->argc = argc - optind;
    g->argv = argv + optind;
    bool admins = g->admin != NULL && g->config != NULL, routers = g->local && g->router != NULL;
    if (admins || routers)
        (void)fprintf(stderr, "gvctl: --%s and --%s both name a router: give only one of them\n",
                      admins ? "admin" : "local", admins ? "config" : "router");
    return !admins && !routers;
}

void given_free(struct given *g)
{
    free(g->token);
    free(g->own_cert);
    g->token = g->own_cert = NULL;
}

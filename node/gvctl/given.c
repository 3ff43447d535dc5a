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
        (void)fputs("gvctl: keygen takes one step at a time\n", stderr);
        return false;
    }
    g->step = (enum keygen_step)o->where;
    g->key_file = text;
    return true;
}

#define AT(field) offsetof(struct given, field)

static const struct given_option options[] = {
    {"admin", 0, "URL", true, take_text, AT(admin),
     "the router's admin port; default $GRAPEVINE_ADMIN, or that of --config", ""},
    {"config", 0, "FILE", true, take_text, AT(config),
     "settings of the router on this machine: they say where its admin port is, whether it speaks "
     "TLS, and the token; default $GRAPEVINE_CONFIG, and without any http://127.0.0.1:9090",
     NULL},
    {"ca-file", 0, "FILE", true, take_text, AT(trust.ca_file),
     "the CA of an admin port at https://; default $GRAPEVINE_ADMIN_CA_FILE or the system's", NULL},
    {"insecure", 0, NULL, true, take_flag, AT(trust.insecure),
     "do not check the certificate at https://", NULL},
    {"token-file", 0, "FILE", true, take_token_file, 0,
     "the admin token, for calls that change something where the router has one; without it they "
     "must come from the router's machine; default $GRAPEVINE_ADMIN_TOKEN_FILE",
     NULL},
    {"timeout", 0, "SECONDS", true, take_number, AT(timeout_s),
     "how long a router may take to answer (default 10)", ""},
    {"output", 'o', "FORMAT", true, take_output, 0,
     "table, wide, json, yaml or name: what the command has of these", "table wide json yaml name"},
    {"json", 0, NULL, true, take_json, 0, "the same as --output json, where the command has that",
     NULL},
    {"verbose", 'v', NULL, true, take_verbose, 0, "all columns, and what they mean below the table",
     NULL},
    {"help", 'h', NULL, true, take_flag, AT(help), "this; behind a command, that one's", NULL},
    {"version", 'V', NULL, true, take_flag, AT(version), "of gvctl", NULL},
    {"session", 0, "KEY", false, take_text, AT(session),
     "as if the request's session header held this", ""},
    {"all", 0, NULL, false, take_flag, AT(all),
     "as each router of the cluster sees it, side by side", NULL},
    {"wait", 0, NULL, false, take_flag, AT(wait),
     "until it is so, for --timeout at most (default 60 s; drain: 600 s)", NULL},
    {"members", 0, "N", false, take_number, AT(members), "and there are so many routers", ""},
    {"engine", 0, "NAME", false, take_text, AT(engine),
     "vllm, sglang or other, where it is known beforehand", "vllm sglang other"},
    {"check", 0, NULL, false, take_flag, AT(check),
     "exit 1 if clients are hurt, 3 if something is out, else 0", NULL},
    {"once", 0, NULL, false, take_flag, AT(once), "one frame, then the end", NULL},
    {"interval", 0, "SECONDS", false, take_number, AT(interval_s),
     "between two frames or two questions (default 1)", ""},
    {"follow", 0, NULL, false, take_flag, AT(follow),
     "the last ones, then those that come, until Ctrl-C", NULL},
    {"last", 0, "N", false, take_number, AT(last), "so many (default 32)", ""},
    {"local", 0, NULL, false, take_flag, AT(local), "as the router saw it that is asked, alone",
     NULL},
    {"router", 0, "NAME", false, take_text, AT(router), "as that one of the cluster saw it, alone",
     ""},
    {"out", 0, "FILE", false, take_step, KEYGEN_NEW, "a new key", NULL},
    {"next", 0, "FILE", false, take_step, KEYGEN_NEXT, "a second key, that is accepted already",
     NULL},
    {"promote", 0, "FILE", false, take_step, KEYGEN_PROMOTE,
     "that is used; the old one is still accepted", NULL},
    {"finish", 0, "FILE", false, take_step, KEYGEN_FINISH, "the old key is gone", NULL},
    {"kubernetes-secret", 0, "NAME", false, take_step, KEYGEN_SECRET,
     "a new one as a Secret, made from a pod that may create Secrets", ""},
    {"file", 0, "FILE", false, take_text, AT(key.path),
     "the file of client keys; without it a new line is printed", NULL},
    {"add", 0, NULL, false, take_flag, AT(key.add), "a second key of that name", NULL},
    {"hash", 0, "HEX", false, take_text, AT(key.hash), "revoke only the key whose hash begins so",
     ""},
    {"models", 0, "A,B", false, take_models, 0,
     "the key may use these alone; M* is all that begin so", ""},
    {"requests-per-minute", 0, "N", false, take_limit, AT(key.line.limits.requests),
     "over all routers, nearly", ""},
    {"tokens-per-minute", 0, "N", false, take_limit, AT(key.line.limits.tokens),
     "the same, of prompts and answers", ""},
    {"in-flight", 0, "N", false, take_limit, AT(key.line.limits.in_flight),
     "so many requests at once", ""},
    {"model", 0, "NAME", false, take_text, AT(model), "of the replicas that serve it", ""},
    {"replica", 0, "HOST:PORT", false, take_text, AT(replica), "only what went there", ""},
    {"reason", 0, "WHY", false, take_text, AT(reason),
     "only what was chosen for it: cached, cheaper, cold, only, load, maker or due",
     "cached cheaper cold only load maker due"},
    {"failed", 0, NULL, false, take_flag, AT(failed),
     "only attempts that failed, even if a retry hid that from the client", NULL},
    {"slow", 0, "SECONDS", false, take_number, AT(slow_s),
     "only what had no first token (without a stream: no answer) for longer", ""},
    {"control", 0, NULL, false, take_flag, AT(key.line.control),
     "the key may use engines' control paths (engine-control-paths=all)", NULL},
    {"from", 0, "ROUTER", false, take_text, AT(from),
     "vllm-router, production-stack, sglang-router, smg, llm-d or haproxy (default: it is seen)",
     "vllm-router production-stack sglang-router smg llm-d haproxy"},
    {"strict", 0, NULL, false, take_flag, AT(strict),
     "exit 1 if something is by hand or has no counterpart", NULL},
    {"print-page", 0, NULL, false, take_flag, AT(print_page), "the page docs/from-other-routers.md",
     NULL},
    {"for", 0, "PROGRAM", false, take_text, AT(program), "gvctl (the default) or grapevine",
     "gvctl grapevine"},
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
        (void)fprintf(stderr, "gvctl: --%s and --%s both name a router; want one of them\n",
                      admins ? "admin" : "local", admins ? "config" : "router");
    return !admins && !routers;
}

void given_free(struct given *g)
{
    free(g->token);
    free(g->own_cert);
    g->token = g->own_cert = NULL;
}

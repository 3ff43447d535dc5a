/* gvctl: queries a running grapevine over the admin port. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/version.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/command.h"
#include "node/gvctl/completion.h"
#include "node/gvctl/convert/convert.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/given.h"
#include "node/gvctl/key.h"
#include "node/gvctl/keygen.h"
#include "node/gvctl/local.h"
#include "node/gvctl/plain.h"
#include "node/gvctl/print.h"
#include "node/gvctl/run.h"
#include "node/io/standard.h"
#include "node/settings/value.h"

enum { EXIT_USAGE = 2, WAIT_S = 60 };

/* True for an explanation without a replica to choose: gvctl shows the explanation and fails. */
static bool chooses_none(const struct given *g, const struct command *c, struct slice text)
{
    json_t *answer = c->call == ADMIN_CALL_EXPLAIN ? ask_parse(g, text) : NULL;
    bool none = json_is_object(answer) && !show_explain_chooses(answer);
    json_decref(answer);
    return none;
}

/* Explains at a terminal why the command waits. */
static void tell_that_it_waits(const struct command *c, const char *argument)
{
    bool standard = argument == NULL || strcmp(argument, "-") == 0;
    if (command_reads_body(c) && standard && isatty(STDIN_FILENO) != 0)
        (void)fprintf(
            stderr, "gvctl: %s reads a JSON request body from standard input; end it with Ctrl-D\n",
            c->name);
}

static int ask(const struct given *g, const struct command *c, const char *argument)
{
    struct buf body = {0};
    struct buf out = {0};
    int status = EXIT_FAILURE;
    tell_that_it_waits(c, argument);
    if (!command_reads_body(c) || given_file(argument != NULL ? argument : "-", &body) == 0) {
        int answer = ask_command(g, c, argument, buf_slice(&body), &out);
        bool not_ready = answer == 503 && c->call == ADMIN_CALL_READYZ;
        if (not_ready && g->show.format != SHOW_TABLE) /* the JSON contains the reason */
            DISCARD(ask_show(g, c, buf_slice(&out), NULL));
        else if (answer == 200)
            status = ask_show(g, c, buf_slice(&out), NULL);
        else if (answer > 0)
            ask_error(answer, buf_slice(&out));
        if (answer == 200 && chooses_none(g, c, buf_slice(&out)))
            status = EXIT_FAILURE;
    }
    buf_free(&body);
    buf_free(&out);
    return status;
}

/* Shows the last answer to `convergence`. */
static void show_equality(const struct given *g, const struct command *c, struct slice text,
                          const json_t *answer)
{
    if (g->show.format != SHOW_TABLE)
        DISCARD(ask_show(g, c, text, NULL));
    else if (show_convergence(&g->show, answer, g->members) != 0)
        ask_other(g);
}

/* Asks once, or with --wait repeatedly until all routers hold equal states. */
static int convergence(const struct given *g, const struct command *c)
{
    unsigned limit_s = g->timeout_s > 0 ? g->timeout_s : g->wait ? WAIT_S : ASK_TIMEOUT_S;
    double end = call_seconds() + limit_s;
    /* Each call has at least this time, even the last. */
    double least = limit_s < ASK_TIMEOUT_S ? limit_s : ASK_TIMEOUT_S;
    struct buf out = {0};
    json_t *said = NULL;
    bool equal = false;
    int answer;
    for (;;) {
        double left = end - call_seconds();
        struct call call = ask_call(g, admin_call_row(ADMIN_CALL_CONVERGENCE)->path);
        call.timeout_s = left > least ? left : least;
        call.awaited = g->wait && left > 0;
        buf_clear(&out);
        json_decref(said);
        answer = call_admin(g->admin, &call, &out);
        said = answer == 200 ? ask_parse(g, buf_slice(&out)) : NULL;
        equal = show_convergence_equal(said, g->members);
        bool may_become = answer == 200 || answer == 503 || answer == CALL_REFUSED;
        if (equal || !call.awaited || !may_become)
            break;
        call_pause(0.1);
    }
    if (answer == 200)
        show_equality(g, c, buf_slice(&out), said);
    else if (answer > 0)
        ask_error(answer, buf_slice(&out));
    if (answer == 200 && !equal && g->wait)
        (void)fprintf(stderr, "gvctl: gave up after %u s\n", limit_s);
    json_decref(said);
    buf_free(&out);
    return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Prints the versions. The router's version is on the first line of the list of calls. A running
 * router without that line is reported like any failed call. */
static int version(const struct given *g)
{
    struct buf out = {0};
    struct call call = ask_call(g, admin_call_row(ADMIN_CALL_INDEX)->path);
    call.timeout_s = g->timeout_s > 0 ? g->timeout_s : 2;
    call.awaited = true;
    int answer = call_admin(g->admin, &call, &out);
    struct slice text = buf_slice(&out);
    struct slice line = slice_cut(&text, '\n');
    bool known = answer == 200 && slice_starts_with(line, SLICE("grapevine "));
    char router[64] = "";
    if (known)
        (void)slice_to_cstr(slice_skip(line, strlen("grapevine ")), router, sizeof router);
    json_t *both =
        json_pack("{s:s,s:s?}", "gvctl", version_text, "grapevine", known ? router : NULL);
    if (g->show.format != SHOW_TABLE)
        print_as(g->show.format, both, stdout);
    else
        plain_printf(stdout, "gvctl %s\ngrapevine %s (%s)\n", version_text,
                     known        ? router
                     : answer > 0 ? "not told"
                                  : "not reached",
                     g->admin);
    json_decref(both);
    (void)fflush(stdout);
    if (answer > 0 && answer != 200)
        ask_error(answer, buf_slice(&out));
    else if (answer == 200 && !known)
        ask_other(g);
    buf_free(&out);
    return known || answer == CALL_REFUSED ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns the command of this name; NULL after printing that there is none. */
static const struct command *find(const char *name)
{
    const struct command *c = command_find(name), *other;
    if (c != NULL)
        return c;
    struct node_option_nearest nearest = {.name = slice_of_cstr(name)};
    for (unsigned i = 0; (other = command_at(i)) != NULL; i++)
        node_option_nearest_offer(&nearest, other->name);
    (void)fprintf(stderr, "gvctl: no command \"%s\"; %s%s%ssee gvctl --help\n", name,
                  nearest.best != NULL ? "did you mean " : "",
                  nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "? Or " : "");
    return NULL;
}

/* True if `verb` is among the verbs that the command takes as the first argument. */
static bool has_verb(const struct command *c, const char *verb)
{
    struct slice argument = slice_of_cstr(command_argument(c)), verbs = slice_cut(&argument, ' ');
    while (verbs.len > 0) {
        if (slice_equal(slice_cut(&verbs, '|'), slice_of_cstr(verb)))
            return true;
    }
    return false;
}

/* Prints the help of gvctl, or of the command `name`. `verb` is NULL, or a verb of that command:
 * `help key new`. */
static int help(const char *name, const char *verb)
{
    const struct command *c = name != NULL ? find(name) : NULL;
    if (c != NULL && verb != NULL && !has_verb(c, verb)) {
        (void)fprintf(stderr, "gvctl: %s takes no \"%s\"; see gvctl help %s\n", name, verb, name);
        return EXIT_USAGE;
    }
    if (name == NULL)
        command_usage(stdout);
    else if (c != NULL)
        command_help(c, stdout);
    return name == NULL || c != NULL ? EXIT_SUCCESS : EXIT_USAGE;
}

/* Converts a configuration. A single argument is a file, if such a file exists; otherwise the
 * arguments are a command line. */
static int convert_given(const struct given *g)
{
    if (g->print_page) {
        convert_page(stdout);
        return EXIT_SUCCESS;
    }
    struct buf text = {0};
    const char *path = g->argc > 1 ? g->argv[1] : "-";
    bool file = g->argc <= 2 && (strcmp(path, "-") == 0 || access(path, R_OK) == 0);
    struct convert_input input = {
        .from = g->from,
        .words = (const char *const *)g->argv + 1,
        .word_count = file ? 0 : (unsigned)(g->argc - 1),
        .file = strcmp(path, "-") == 0 ? "standard input" : path,
        .strict = g->strict,
    };
    int status = EXIT_FAILURE;
    if (!file || given_file(path, &text) == 0) {
        input.text = buf_slice(&text);
        status = convert(&input, stdout);
    }
    buf_free(&text);
    return status;
}

/* Returns an option on the command line that the command does not have; NULL: none. */
static const char *misfit_of(const struct given *g, const struct command *c)
{
    const struct given_option *o;
    for (unsigned i = 0; (o = given_option_at(i)) != NULL; i++) {
        if (g->used[i] && !o->is_common && !command_has_option(c, o))
            return o->name;
    }
    return NULL;
}

static bool fits(const struct given *g, const struct command *c)
{
    int least, most, given = g->argc - 1;
    const char *misfit = misfit_of(g, c);
    command_arguments(c, &least, &most);
    if (misfit != NULL) {
        (void)fprintf(stderr, "gvctl: %s has no option --%s; see gvctl help %s\n", c->name, misfit,
                      c->name);
        return false;
    }
    if (!command_has_form(c, g->show.format)) {
        (void)fprintf(stderr, "gvctl: %s has no output %s: %s%s\n", c->name,
                      show_format_text(g->show.format), command_forms_text(c),
                      c->run == COMMAND_TOP ? " (gvctl status has json and yaml)" : "");
        return false;
    }
    if (given >= least && given <= most)
        return true;
    (void)fprintf(stderr, "gvctl: %s takes %s%s%s; see gvctl help %s\n", c->name,
                  most == 0    ? "no argument"
                  : least == 0 ? (most == 1 ? "at most one argument" : "at most these arguments")
                  : least > 1  ? "these arguments"
                               : "one argument",
                  most == 0 ? "" : ", ", command_argument(c), c->name);
    return false;
}

static bool asks_a_router(const struct command *c)
{
    return c->run != COMMAND_KEY && c->run != COMMAND_KEYGEN && c->run != COMMAND_CONVERT &&
           c->run != COMMAND_COMPLETION && c->run != COMMAND_HELP;
}

static int run(struct given *g)
{
    if (g->help)
        return help(g->argc > 0 ? g->argv[0] : NULL, NULL);
    if (g->version) {
        (void)printf("gvctl %s\n", version_text);
        return EXIT_SUCCESS;
    }
    if (g->argc == 0) {
        command_usage(stderr);
        return EXIT_USAGE;
    }
    const struct command *c = find(g->argv[0]);
    if (c == NULL || !fits(g, c) ||
        (asks_a_router(c) && (!local_find(g, c) || !call_address_good(g->admin))))
        return EXIT_USAGE;
    const char *argument = g->argc > 1 ? g->argv[1] : NULL;
    switch (command_runs(c)) {
    case COMMAND_ASK:
        return ask(g, c, argument);
    case COMMAND_CHANGE:
        return change(g, c, argument);
    case COMMAND_CONVERGENCE:
        return convergence(g, c);
    case COMMAND_STATUS:
        return status(g);
    case COMMAND_TOP:
        return top(g);
    case COMMAND_DECISIONS:
        return decisions(g);
    case COMMAND_EVENTS:
        return events(g);
    case COMMAND_KEY:
        return key_command(&g->key, &g->show, argument, g->argc > 2 ? g->argv[2] : NULL);
    case COMMAND_KEYGEN:
        return keygen(g->step, g->key_file);
    case COMMAND_CONVERT:
        return convert_given(g);
    case COMMAND_COMPLETION:
        return completion(argument, g->program != NULL ? g->program : "gvctl", stdout);
    case COMMAND_HELP:
        return help(argument, g->argc > 2 ? g->argv[2] : NULL);
    case COMMAND_VERSION:
        return version(g);
    }
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    standard_open();
    struct given g;
    int status = given_read(&g, argc, argv) ? run(&g) : EXIT_USAGE;
    given_free(&g);
    return status;
}

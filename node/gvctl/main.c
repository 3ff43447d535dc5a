/* gvctl: asks a running grapevine over its admin port. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "base/version.h"
#include "node/gvctl/call.h"
#include "node/gvctl/command.h"
#include "node/gvctl/keygen.h"
#include "node/gvctl/show.h"

enum { EXIT_USAGE = 2, TIMEOUT_S = 10, WAIT_S = 60 };

struct settings {
    const char *admin;
    char *token;
    const char *session;
    const char *engine;
    bool json;
    bool all;
    bool wait;
    unsigned timeout_s; /* 0: not given */
    unsigned members;
    const char *key_file;
    enum keygen_step step;
};

static int read_file(const char *path, struct buf *out)
{
    FILE *f = path == NULL || strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (f == NULL) {
        (void)fprintf(stderr, "gvctl: cannot read \"%s\"\n", path);
        return ERR_NOT_FOUND;
    }
    int err = 0;
    char chunk[65536];
    size_t n;
    while (err == 0 && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        err = buf_append(out, chunk, n);
    if (f != stdin)
        (void)fclose(f);
    return err;
}

static char *read_token(const char *path)
{
    struct buf text;
    buf_init(&text, 0);
    if (read_file(path, &text) != 0 || buf_append_char(&text, '\0') != 0) {
        buf_free(&text);
        return NULL;
    }
    text.at[strcspn(text.at, "\r\n")] = '\0';
    return text.at;
}

/* Appends it for a query string: what is not a plain character is encoded. */
static int append_encoded(struct buf *out, const char *text)
{
    int err = 0;
    for (const char *c = text; *c != '\0' && err == 0; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= 'A' && *c <= 'Z') || strchr("-._~:/", *c) != NULL;
        err = plain ? buf_append_char(out, *c) : buf_printf(out, "%%%02X", (unsigned char)*c);
    }
    return err;
}

static int write_target(const struct settings *s, const struct command *c, const char *argument,
                        struct buf *out)
{
    const struct admin_call_row *call = admin_call_row(c->call);
    int err = buf_append_cstr(out, call->path);
    if (err == 0 && call->argument != NULL) /* replica=HOST:PORT: its name */
        err = buf_printf(out, "?%.*s=", (int)strcspn(call->argument, "="), call->argument);
    if (err == 0 && call->argument != NULL)
        err = append_encoded(out, argument);
    if (err == 0 && s->engine != NULL)
        err = buf_append_cstr(out, "&engine=");
    if (err == 0 && s->engine != NULL)
        err = append_encoded(out, s->engine);
    if (err == 0 && s->all)
        err = buf_append_cstr(out, "?all=1");
    return err == 0 ? buf_append_char(out, '\0') : err;
}

static void print_raw(struct slice text)
{
    printf("%.*s%s", SLICE_ARG(text), slice_ends_with(text, SLICE("\n")) ? "" : "\n");
}

/* ERR_SYNTAX of a show function: JSON that is none, or other JSON. */
static void print_other(const struct settings *s)
{
    (void)fprintf(
        stderr,
        "gvctl: the answer of %s is not what this command shows: is it grapevine " GRAPEVINE_VERSION
        "?\n       --json shows it as it came.\n",
        s->admin);
}

static int carry_out(const struct settings *s, const struct command *c, const char *argument)
{
    struct buf target;
    struct buf body;
    struct buf out;
    buf_init(&target, 0);
    buf_init(&body, 0);
    buf_init(&out, 0);
    int status = EXIT_FAILURE;
    if ((!command_reads_body(c) || read_file(argument, &body) == 0) &&
        write_target(s, c, argument, &target) == 0) {
        struct call call = {.method = admin_call_row(c->call)->method,
                            .target = target.at,
                            .body = buf_slice(&body),
                            .token = s->token,
                            .session = s->session,
                            .timeout_s = s->timeout_s > 0 ? s->timeout_s : TIMEOUT_S};
        int answer = call_admin(s->admin, &call, &out);
        int (*show)(struct slice) = s->all ? show_explain_all : c->show;
        if (answer == 200) {
            status = EXIT_SUCCESS;
            if (s->json || show == NULL)
                print_raw(buf_slice(&out));
            else if (show(buf_slice(&out)) != 0) {
                print_other(s);
                status = EXIT_FAILURE;
            }
        } else if (answer > 0) {
            show_error(answer, buf_slice(&out));
        }
    }
    buf_free(&target);
    buf_free(&body);
    buf_free(&out);
    return status;
}

/* Asks once, or again and again until all are equal. */
static int convergence(const struct settings *s)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    unsigned limit_s = s->timeout_s > 0 ? s->timeout_s : s->wait ? WAIT_S : TIMEOUT_S;
    double end = call_seconds() + limit_s;
    double least = limit_s < TIMEOUT_S ? limit_s : TIMEOUT_S; /* for the last question too */
    struct buf out;
    buf_init(&out, 0);
    bool equal = false;
    int answer;
    for (;;) {
        double left = end - call_seconds();
        struct call call = {.method = "GET",
                            .target = admin_call_row(ADMIN_CALL_CONVERGENCE)->path,
                            .token = s->token,
                            .timeout_s = left > least ? left : least,
                            .awaited = s->wait && left > 0};
        buf_clear(&out);
        answer = call_admin(s->admin, &call, &out);
        equal = answer == 200 && show_convergence_equal(buf_slice(&out), s->members);
        bool may_become = answer == 200 || answer == 503 || answer == CALL_REFUSED;
        if (equal || !call.awaited || !may_become)
            break;
        (void)nanosleep(&pause, NULL);
    }
    if (answer == 200 && s->json)
        print_raw(buf_slice(&out));
    else if (answer == 200) {
        if (show_convergence(buf_slice(&out), s->members) != 0)
            print_other(s);
    } else if (answer > 0)
        show_error(answer, buf_slice(&out));
    if (answer == 200 && !equal && s->wait)
        (void)fprintf(stderr, "gvctl: gave up after %u s\n", limit_s);
    buf_free(&out);
    return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct settings *s, unsigned given, int argc, char **argv)
{
    if (argc == 0) {
        command_usage(stderr);
        return EXIT_USAGE;
    }
    const struct command *c = command_find(argv[0]);
    if (c == NULL) {
        (void)fprintf(stderr, "gvctl: no command \"%s\"; see gvctl --help\n", argv[0]);
        return EXIT_USAGE;
    }
    bool argument = command_wants_argument(c), body = command_reads_body(c);
    int wanted = argument ? 2 : 1;
    int most = body ? 2 : wanted;
    if (argc < wanted || argc > most || (given & ~c->options) != 0) {
        (void)fprintf(stderr, "gvctl: %s takes %s%s; see gvctl --help\n", c->name,
                      argument ? "one argument"
                      : body   ? "at most one argument"
                               : "no argument",
                      (given & ~c->options) != 0 ? ", and not that option" : "");
        return EXIT_USAGE;
    }
    if (c->call == ADMIN_CALL_CONVERGENCE)
        return convergence(s);
    if (c->call == ADMIN_CALL_COUNT)
        return keygen(s->step, s->key_file);
    return carry_out(s, c, argc > 1 ? argv[1] : "-");
}

/* A number of an option, from 1 on. */
static unsigned read_number(const char *text)
{
    uint64_t value;
    return slice_to_u64(slice_of_cstr(text), &value) == 0 && value <= 1000000 ? (unsigned)value : 0;
}

static const struct option long_options[] = {
    {"admin", required_argument, NULL, 'a'},   {"token-file", required_argument, NULL, 't'},
    {"session", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
    {"all", no_argument, NULL, 'A'},           {"wait", no_argument, NULL, 'w'},
    {"timeout", required_argument, NULL, 'T'}, {"members", required_argument, NULL, 'M'},
    {"engine", required_argument, NULL, 'e'},  {"out", required_argument, NULL, 'o'},
    {"next", required_argument, NULL, 'n'},    {"promote", required_argument, NULL, 'p'},
    {"finish", required_argument, NULL, 'f'},  {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0}};

/* One option; false: it cannot be used, which is printed. */
static bool take(struct settings *s, unsigned *given, int letter)
{
    switch (letter) {
    case 'a':
        s->admin = optarg;
        return true;
    case 't':
        free(s->token);
        s->token = read_token(optarg);
        return s->token != NULL;
    case 'j':
        s->json = true;
        return true;
    case 's':
    case 'A':
        *given |= OF_EXPLAIN;
        s->session = letter == 's' ? optarg : s->session;
        s->all = s->all || letter == 'A';
        return true;
    case 'e':
        *given |= OF_ADD;
        s->engine = optarg;
        return true;
    case 'w':
        *given |= OF_CONVERGENCE;
        s->wait = true;
        return true;
    case 'T':
    case 'M': {
        *given |= letter == 'M' ? OF_CONVERGENCE : 0;
        unsigned *number = letter == 'T' ? &s->timeout_s : &s->members;
        *number = read_number(optarg);
        if (*number == 0)
            (void)fprintf(stderr, "gvctl: \"%s\" is no number from 1 on\n", optarg);
        return *number > 0;
    }
    case 'o':
    case 'n':
    case 'p':
    case 'f':
        if ((*given & OF_KEYGEN) != 0) {
            (void)fputs("gvctl: keygen takes one step at a time\n", stderr);
            return false;
        }
        *given |= OF_KEYGEN;
        s->step = letter == 'o'   ? KEYGEN_NEW
                  : letter == 'n' ? KEYGEN_NEXT
                  : letter == 'p' ? KEYGEN_PROMOTE
                                  : KEYGEN_FINISH;
        s->key_file = optarg;
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    struct settings s = {.admin = getenv("GRAPEVINE_ADMIN")};
    unsigned given = 0;
    if (s.admin == NULL)
        s.admin = "http://127.0.0.1:9090";
    int letter;
    while ((letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (letter == 'h') {
            command_usage(stdout);
            return EXIT_SUCCESS;
        }
        if (letter == 'v') {
            (void)puts("gvctl " GRAPEVINE_VERSION);
            return EXIT_SUCCESS;
        }
        if (!take(&s, &given, letter))
            return EXIT_USAGE;
    }
    int status = run(&s, given, argc - optind, argv + optind);
    free(s.token);
    return status;
}

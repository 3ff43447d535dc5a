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
#include "node/gvctl/keygen.h"
#include "node/gvctl/show.h"

enum { EXIT_USAGE = 2, TIMEOUT_S = 10, WAIT_S = 60 };

static const char usage_text[] =
    "usage: gvctl [--admin URL] [--token-file FILE] [--json] COMMAND [ARGUMENT] [OPTIONS]\n"
    "\n"
    "One router:\n"
    "  replicas              what the router believes of every replica\n"
    "  explain [FILE]        what each replica would cost for a request body (default: stdin)\n"
    "    --session KEY       as if the request's session header held this\n"
    "    --all               as each router of the cluster sees it, side by side\n"
    "  ready                 exit 0 if the router can serve, 1 if not\n"
    "  metrics               Prometheus text\n"
    "  config                the settings in force\n"
    "  log-level LEVEL       error, warn, info or debug, until the next start\n"
    "\n"
    "The cluster:\n"
    "  members               the routers, what is known of each, and what passed between\n"
    "  convergence           exit 0 if all routers hold the same state, 1 if not\n"
    "    --wait              until they do, also for a router that does not listen yet\n"
    "    --timeout SECONDS   how long (default 60)\n"
    "    --members N         and there are so many\n"
    "  drain HOST:PORT       no router sends a replica anything new\n"
    "  undrain HOST:PORT     undo that\n"
    "  add HOST:PORT         a replica for all routers, until it is removed\n"
    "    --engine NAME       vllm, sglang or other, where it is known beforehand\n"
    "  remove HOST:PORT      no router uses the replica, whatever its configuration says\n"
    "\n"
    "The cluster's key (needs no router):\n"
    "  keygen --out FILE     a new one; give the file to all routers (--cluster-key-file)\n"
    "  keygen --next FILE    to change it without a pause, in three steps. Each changes FILE;\n"
    "  keygen --promote FILE give it to all routers and send each a SIGHUP before the\n"
    "  keygen --finish FILE  next step\n"
    "\n"
    "  --admin URL           default $GRAPEVINE_ADMIN or http://127.0.0.1:9090\n"
    "  --token-file FILE     the admin token: for calls that change something, where the router\n"
    "                        has one; without it they must come from the router's machine\n"
    "  --timeout SECONDS     how long a router may take to answer (default 10)\n"
    "  --json                the answer as it came\n"
    "  --help, --version\n"
    "\n"
    "examples: gvctl explain --all request.json\n"
    "          gvctl --admin http://10.0.0.7:9090 convergence --wait --timeout 10\n";

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

/* Options that not every command has; `given` is a set of them. */
enum { OF_EXPLAIN = 1, OF_CONVERGENCE = 2, OF_ADD = 4, OF_KEYGEN = 8 };

struct command {
    const char *name;
    const char *method;
    const char *target;
    const char *query;              /* the argument goes behind it; NULL: no argument */
    int (*show)(struct slice json); /* NULL: as it came */
    bool reads_body;
    unsigned options;
};

static const struct command commands[] = {
    {"replicas", "GET", "/replicas", NULL, show_replicas, false, 0},
    {"explain", "POST", "/explain", NULL, show_explain, true, OF_EXPLAIN},
    {"ready", "GET", "/readyz", NULL, NULL, false, 0},
    {"metrics", "GET", "/metrics", NULL, NULL, false, 0},
    {"config", "GET", "/config", NULL, NULL, false, 0},
    {"members", "GET", "/members", NULL, show_members, false, 0},
    {"drain", "POST", "/drain", "?replica=", NULL, false, 0},
    {"undrain", "POST", "/undrain", "?replica=", NULL, false, 0},
    {"add", "POST", "/replicas", "?replica=", NULL, false, OF_ADD},
    {"remove", "DELETE", "/replicas", "?replica=", NULL, false, 0},
    {"log-level", "POST", "/log-level", "?level=", NULL, false, 0},
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
    int err = buf_append_cstr(out, c->target);
    if (err == 0 && c->query != NULL)
        err = buf_append_cstr(out, c->query);
    if (err == 0 && c->query != NULL)
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

static int carry_out(const struct settings *s, const struct command *c, const char *argument)
{
    struct buf target;
    struct buf body;
    struct buf out;
    buf_init(&target, 0);
    buf_init(&body, 0);
    buf_init(&out, 0);
    int status = EXIT_FAILURE;
    if ((!c->reads_body || read_file(argument, &body) == 0) &&
        write_target(s, c, argument, &target) == 0) {
        struct call call = {.method = c->method,
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
            else if (show(buf_slice(&out)) != 0)
                status = EXIT_FAILURE;
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
                            .target = "/convergence",
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
    else if (answer == 200)
        equal = show_convergence(buf_slice(&out), s->members) == 0 && equal;
    else if (answer > 0)
        show_error(answer, buf_slice(&out));
    if (answer == 200 && !equal && s->wait)
        (void)fprintf(stderr, "gvctl: gave up after %u s\n", limit_s);
    buf_free(&out);
    return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct settings *s, unsigned given, int argc, char **argv)
{
    if (argc == 0) {
        (void)fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    static const struct command alone[] = {
        {"convergence", NULL, NULL, NULL, NULL, false, OF_CONVERGENCE},
        {"keygen", NULL, NULL, NULL, NULL, false, OF_KEYGEN},
    };
    const struct command *c = NULL;
    for (size_t i = 0; i < ARRAY_LEN(commands) && c == NULL; i++)
        c = strcmp(argv[0], commands[i].name) == 0 ? &commands[i] : NULL;
    for (size_t i = 0; i < ARRAY_LEN(alone) && c == NULL; i++)
        c = strcmp(argv[0], alone[i].name) == 0 ? &alone[i] : NULL;
    if (c == NULL) {
        (void)fprintf(stderr, "gvctl: no command \"%s\"; see gvctl --help\n", argv[0]);
        return EXIT_USAGE;
    }
    int wanted = c->query != NULL ? 2 : 1;
    int most = c->reads_body ? 2 : wanted;
    if (argc < wanted || argc > most || (given & ~c->options) != 0) {
        (void)fprintf(stderr, "gvctl: %s takes %s%s; see gvctl --help\n", c->name,
                      c->query != NULL ? "one argument"
                      : c->reads_body  ? "at most one argument"
                                       : "no argument",
                      (given & ~c->options) != 0 ? ", and not that option" : "");
        return EXIT_USAGE;
    }
    if (c == &alone[0])
        return convergence(s);
    if (c == &alone[1])
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

/* One option; false: it cannot be used, which is told. */
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
            (void)fputs(usage_text, stdout);
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

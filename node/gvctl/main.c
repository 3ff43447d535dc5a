/* gvctl: asks a running grapevine over its admin port. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/core/version.h"
#include "node/gvctl/call.h"
#include "node/gvctl/show.h"

enum { EXIT_USAGE = 2 };

static const char usage_text[] =
    "usage: gvctl [--admin URL] [--token-file FILE] [--session KEY] [--json] COMMAND [ARGUMENT]\n"
    "\n"
    "  replicas              what the router believes of every replica\n"
    "  explain [FILE]        what each replica would cost for a request body (default: stdin)\n"
    "  ready                 exit 0 if the router can serve, 1 if not\n"
    "  metrics               Prometheus text\n"
    "  config                the settings in force\n"
    "  drain HOST:PORT       send a replica nothing new\n"
    "  undrain HOST:PORT     undo that\n"
    "  log-level LEVEL       error, warn, info or debug, until the next start\n"
    "\n"
    "  --admin URL           default $GRAPEVINE_ADMIN or http://127.0.0.1:9090\n"
    "  --token-file FILE     for calls that change something, where the router asks for a token\n"
    "  --session KEY         explain: as if the request's session header held this\n"
    "  --json                the answer as it came\n"
    "  --help, --version\n"
    "\n"
    "example: gvctl explain request.json\n";

struct settings {
    const char *admin;
    char *token;
    const char *session;
    bool json;
};

struct command {
    const char *name;
    const char *method;
    const char *target;
    const char *query;              /* the argument goes behind it; NULL: no argument */
    int (*show)(struct slice json); /* NULL: as it came */
    bool reads_body;
};

static const struct command commands[] = {
    {"replicas", "GET", "/replicas", NULL, show_replicas, false},
    {"explain", "POST", "/explain", NULL, show_explain, true},
    {"ready", "GET", "/readyz", NULL, NULL, false},
    {"metrics", "GET", "/metrics", NULL, NULL, false},
    {"config", "GET", "/config", NULL, NULL, false},
    {"drain", "POST", "/drain", "?replica=", NULL, false},
    {"undrain", "POST", "/undrain", "?replica=", NULL, false},
    {"log-level", "POST", "/log-level", "?level=", NULL, false},
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

static int carry_out(const struct settings *s, const struct command *c, const char *argument)
{
    char target[512];
    (void)snprintf(target, sizeof target, "%s%s%s", c->target, c->query != NULL ? c->query : "",
                   c->query != NULL ? argument : "");
    struct buf body;
    struct buf out;
    buf_init(&body, 0);
    buf_init(&out, 0);
    int status = EXIT_FAILURE;
    if (!c->reads_body || read_file(argument, &body) == 0) {
        struct call call = {c->method, target, buf_slice(&body), s->token, s->session};
        int answer = call_admin(s->admin, &call, &out);
        if (answer == 200) {
            status = EXIT_SUCCESS;
            if (s->json || c->show == NULL)
                printf("%.*s%s", SLICE_ARG(buf_slice(&out)),
                       slice_ends_with(buf_slice(&out), SLICE("\n")) ? "" : "\n");
            else if (c->show(buf_slice(&out)) != 0)
                status = EXIT_FAILURE;
        } else if (answer > 0) {
            show_error(answer, buf_slice(&out));
        }
    }
    buf_free(&body);
    buf_free(&out);
    return status;
}

static int run(const struct settings *s, int argc, char **argv)
{
    if (argc == 0) {
        (void)fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const struct command *c = &commands[i];
        if (strcmp(argv[0], c->name) != 0)
            continue;
        int wanted = c->query != NULL ? 2 : 1;
        int most = c->reads_body ? 2 : wanted;
        if (argc < wanted || argc > most) {
            (void)fprintf(stderr, "gvctl: %s takes %s; see gvctl --help\n", c->name,
                          c->query != NULL ? "one argument"
                          : c->reads_body  ? "at most one argument"
                                           : "no argument");
            return EXIT_USAGE;
        }
        return carry_out(s, c, argc > 1 ? argv[1] : NULL);
    }
    (void)fprintf(stderr, "gvctl: no command \"%s\"; see gvctl --help\n", argv[0]);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"admin", required_argument, NULL, 'a'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"session", required_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    struct settings s = {.admin = getenv("GRAPEVINE_ADMIN")};
    if (s.admin == NULL)
        s.admin = "http://127.0.0.1:9090";
    int letter;
    while ((letter = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
        switch (letter) {
        case 'a':
            s.admin = optarg;
            break;
        case 't':
            free(s.token);
            s.token = read_token(optarg);
            if (s.token == NULL)
                return EXIT_USAGE;
            break;
        case 's':
            s.session = optarg;
            break;
        case 'j':
            s.json = true;
            break;
        case 'h':
            (void)fputs(usage_text, stdout);
            return EXIT_SUCCESS;
        case 'v':
            (void)puts("gvctl " GRAPEVINE_VERSION);
            return EXIT_SUCCESS;
        default:
            return EXIT_USAGE;
        }
    }
    int status = run(&s, argc - optind, argv + optind);
    free(s.token);
    return status;
}

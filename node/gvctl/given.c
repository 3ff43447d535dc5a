#include "node/gvctl/given.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "node/gvctl/command.h"
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
    struct buf text;
    buf_init(&text, 0);
    if (given_file(path, &text) != 0 || buf_append_char(&text, '\0') != 0) {
        buf_free(&text);
        return false;
    }
    text.at[strcspn(text.at, "\r\n")] = '\0';
    free(g->token);
    g->token = text.at;
    return true;
}

/* Which option a letter is; -1: none. */
static int option_of(int letter)
{
    const struct command_option *o;
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->letter == letter)
            return (int)i;
    }
    return -1;
}

/* The number of an option, from 1 on. */
static bool take_number(unsigned *out, int letter, const char *text)
{
    uint64_t value;
    bool good = slice_to_u64(slice_of_cstr(text), &value) == 0 && value >= 1 && value <= 1000000;
    if (good)
        *out = (unsigned)value;
    else
        (void)fprintf(stderr, "gvctl: --%s \"%s\": want a number from 1 on\n",
                      command_option_at((unsigned)option_of(letter))->name, text);
    return good;
}

static bool take_format(struct show *show, const char *text)
{
    static const struct {
        const char *name;
        enum show_format format;
    } formats[] = {{"table", SHOW_TABLE},
                   {"wide", SHOW_TABLE},
                   {"json", SHOW_JSON},
                   {"yaml", SHOW_YAML},
                   {"name", SHOW_NAME}};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(text, formats[i].name) == 0) {
            show->format = formats[i].format;
            show->wide = show->wide || strcmp(text, "wide") == 0;
            return true;
        }
    }
    (void)fprintf(stderr, "gvctl: no output \"%s\": table, wide, json, yaml or name\n", text);
    return false;
}

static bool take_step(struct given *g, int letter)
{
    if (g->key_file != NULL) {
        (void)fputs("gvctl: keygen takes one step at a time\n", stderr);
        return false;
    }
    g->step = letter == 'O'   ? KEYGEN_NEW
              : letter == 'n' ? KEYGEN_NEXT
              : letter == 'p' ? KEYGEN_PROMOTE
              : letter == 'K' ? KEYGEN_SECRET
                              : KEYGEN_FINISH;
    g->key_file = optarg;
    return true;
}

/* One option; false: it cannot be used, which is printed. */
static bool take(struct given *g, int letter)
{
    switch (letter) {
    case 'a':
        g->admin = optarg;
        return true;
    case 'C':
        return (g->config = optarg) != NULL;
    case 't':
        return given_token(g, optarg);
    case 'c':
        return (g->trust.ca_file = optarg) != NULL;
    case 'k':
        return g->trust.insecure = true;
    case 'T':
        return take_number(&g->timeout_s, letter, optarg);
    case 'o':
        return take_format(&g->show, optarg);
    case 'j':
        return take_format(&g->show, "json");
    case 'v':
        return g->show.verbose = true;
    case 'h':
        return g->help = true;
    case 'V':
        return g->version = true;
    case 's':
        return (g->session = optarg) != NULL;
    case 'A':
        return g->all = true;
    case 'w':
        return g->wait = true;
    case 'M':
        return take_number(&g->members, letter, optarg);
    case 'e':
        return (g->engine = optarg) != NULL;
    case 'E':
        return (g->model = optarg) != NULL;
    case '1':
        return g->once = true;
    case 'W':
        return g->follow = true;
    case 'l':
        return take_number(&g->last, letter, optarg);
    case 'i':
        return take_number(&g->interval_s, letter, optarg);
    case 'L':
        return g->local = true;
    case 'R':
        return (g->router = optarg) != NULL;
    case 'r':
        return (g->from = optarg) != NULL;
    case 'S':
        return g->strict = true;
    case 'P':
        return g->print_page = true;
    case 'F':
        return (g->program = optarg) != NULL;
    case 'O':
    case 'n':
    case 'p':
    case 'f':
    case 'K':
        return take_step(g, letter);
    default:
        return key_option(&g->key, letter, optarg);
    }
}

const char *given_misfit(const struct given *g, const struct command *c)
{
    const struct command_option *o;
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        bool common = o->of == (unsigned)OF_EVERY;
        if (g->used[i] && !common && (o->of & c->options) == 0)
            return o->name;
    }
    return NULL;
}

bool given_read(struct given *g, int argc, char **argv)
{
    struct option wanted[GIVEN_OPTIONS_MAX] = {{NULL}};
    char letters[2 * GIVEN_OPTIONS_MAX] = "";
    const struct command_option *o;
    size_t n = 0;
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        CHECK(i + 1 < GIVEN_OPTIONS_MAX);
        int has = o->argument != NULL ? required_argument : no_argument;
        wanted[i] = (struct option){.name = o->name, .has_arg = has, .val = o->letter};
        if (o->is_short)
            letters[n++] = (char)o->letter;
        if (o->is_short && o->argument != NULL)
            letters[n++] = ':';
    }
    const char *no_colour = getenv("NO_COLOR");
    *g = (struct given){0};
    g->show.colour = isatty(STDOUT_FILENO) != 0 && (no_colour == NULL || no_colour[0] == '\0');
    int letter;
    while ((letter = getopt_long(argc, argv, letters, wanted, NULL)) != -1) {
        int i = option_of(letter);
        if (i < 0 || !take(g, letter)) {
            (void)fputs(i < 0 ? "gvctl: see gvctl --help\n" : "", stderr);
            return false;
        }
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

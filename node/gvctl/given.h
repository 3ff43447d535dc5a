/* What the command line says. */
#ifndef NODE_GVCTL_GIVEN_H
#define NODE_GVCTL_GIVEN_H

#include "base/buf.h"
#include "node/gvctl/key.h"
#include "node/gvctl/keygen.h"
#include "node/gvctl/secure.h"
#include "node/gvctl/show.h"
#include "node/settings/address.h"

enum { GIVEN_OPTIONS_MAX = 48, GIVEN_FILE_BYTES_MAX = 256 << 20 };

struct given {
    const char *admin;                  /* NULL until local_find() */
    const char *config;                 /* settings of the router to ask; NULL: not given */
    char address[NODE_HOST_BYTES + 24]; /* by those settings */
    char *own_cert;                     /* owned */
    char *token;                        /* owned; NULL: none */
    struct secure_trust trust;
    struct show show;
    bool help, version;
    unsigned timeout_s; /* 0: not given */
    const char *session;
    const char *engine;
    const char *model;
    bool all;
    bool wait;
    unsigned members;
    bool once, follow, check;
    unsigned last;       /* 0: not given */
    unsigned interval_s; /* 0: not given */
    const char *key_file;
    enum keygen_step step;
    struct key_wanted key;
    bool local;         /* what the router that is asked saw, alone */
    const char *router; /* what that one saw; NULL: all */
    const char *from;
    bool strict, print_page;
    const char *program;          /* whose completion is wanted; NULL: gvctl's */
    bool used[GIVEN_OPTIONS_MAX]; /* by given_option_at(): it was given */
    int argc;                     /* the command and its arguments */
    char **argv;
};

/* Written as --name. */
struct given_option {
    const char *name;
    char letter;          /* its short form; 0: it has none */
    const char *argument; /* NULL: it has none */
    bool is_common;       /* all commands have it; else those whose row names it */
    /* Takes it; false: it cannot be used, which is printed. */
    bool (*take)(struct given *g, const struct given_option *o, const char *text);
    size_t where; /* the field of struct given, or what `take` makes of it */
    const char *help;
    const char *values; /* that completion offers, by blanks; NULL: files, if its argument is one */
};

/* The i-th; NULL: there are no more. */
const struct given_option *given_option_at(unsigned i);

/* False: it cannot be used, which is printed. What it owns is freed by given_free(). */
bool given_read(struct given *g, int argc, char **argv);
void given_free(struct given *g);

/* Takes the token of a file. False: it cannot be read, which is printed. */
bool given_token(struct given *g, const char *path);
/* Appends a whole file ("-": standard input); prints why it cannot be read. */
MUST_USE int given_file(const char *path, struct buf *out);

#endif

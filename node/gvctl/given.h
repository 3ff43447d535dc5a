/* What the command line says. */
#ifndef NODE_GVCTL_GIVEN_H
#define NODE_GVCTL_GIVEN_H

#include "base/buf.h"
#include "node/gvctl/key.h"
#include "node/gvctl/keygen.h"
#include "node/gvctl/secure.h"
#include "node/gvctl/show.h"
#include "node/settings/address.h"

struct command;

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
    bool once, follow;
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
    bool used[GIVEN_OPTIONS_MAX]; /* by command_option_at(): it was given */
    int argc;                     /* the command and its arguments */
    char **argv;
};

/* False: it cannot be used, which is printed. What it owns is freed by given_free(). */
bool given_read(struct given *g, int argc, char **argv);
/* An option that was given and that the command does not have; NULL: there is none. */
const char *given_misfit(const struct given *g, const struct command *c);
void given_free(struct given *g);

/* Takes the token of a file. False: it cannot be read, which is printed. */
bool given_token(struct given *g, const char *path);
/* Appends a whole file ("-": standard input); prints why it cannot be read. */
MUST_USE int given_file(const char *path, struct buf *out);

#endif

/* The command line of gvctl, read into a struct. */
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
    char address[NODE_HOST_BYTES + 24]; /* address of the admin port, from the router's settings */
    char *own_cert;                     /* certificate file of this machine's router; owned */
    char *token;                        /* owned; NULL: none */
    struct secure_trust trust;
    struct show show;
    bool help, version;
    unsigned timeout_s; /* 0: not given */
    const char *session;
    const char *engine;
    const char *model;
    const char *replica, *reason;
    bool failed;
    uint64_t slow_ms; /* 0: not given */
    bool all;
    bool wait;
    unsigned members;
    bool once, follow, check;
    unsigned last;       /* 0: not given */
    unsigned interval_s; /* 0: not given */
    const char *key_file;
    enum keygen_step step;
    struct key_wanted key;
    bool local;         /* only events seen by the asked router */
    const char *router; /* only events seen by this router; NULL: all */
    const char *from;
    bool strict, print_page;
    const char *program;          /* program for completion; NULL: gvctl */
    bool used[GIVEN_OPTIONS_MAX]; /* by index of given_option_at(): is on the command line */
    int argc;                     /* number of words: the command and the arguments */
    char **argv;
};

/* An option, written as --name. */
struct given_option {
    const char *name;
    char letter;          /* short form; 0: none */
    const char *argument; /* NULL: none */
    bool is_common; /* all commands have the option; if not, rows of commands name the option */
    /* Stores the value; returns false after printing an error. */
    bool (*take)(struct given *g, const struct given_option *o, const char *text);
    size_t where; /* offset of the field in struct given, or as `take` defines */
    const char *help;
    const char *values; /* words for completion, separated by blanks; "": none; NULL: file
                         * names */
};

/* Returns the i-th option; NULL: no more. */
const struct given_option *given_option_at(unsigned i);

/* Reads the command line. Returns false after printing an error. Call given_free() in any case. */
bool given_read(struct given *g, int argc, char **argv);
void given_free(struct given *g);

/* Reads the token from a file. Returns false after printing an error. */
bool given_token(struct given *g, const char *path);
/* Appends a whole file ("-": standard input); prints the error on failure. */
MUST_USE int given_file(const char *path, struct buf *out);

#endif

/* The form of the routers' tables, and the state of a conversion. */
#ifndef NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H
#define NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "node/io/read_file.h"
#include "node/settings/options.h"

/* --- tables ---------------------------------------------------------------------------------- */

enum convert_kind {
    CONVERT_DID,        /* expressed by a setting */
    CONVERT_NOT_NEEDED, /* automatic in this router, or unnecessary */
    CONVERT_HAND,       /* to be set by an operator */
    CONVERT_NONE,       /* no such feature */
    CONVERT_READ,       /* handled by other rows together, or by code: the note is for the page
                         * alone */
};

/* Places where a word may stand. Places from CONVERT_DIRECTIVE on are HAProxy's. */
enum convert_place {
    CONVERT_FLAG,
    CONVERT_MESH, /* a flag without effect unless --enable-mesh is given */
    CONVERT_PLUGIN,
    CONVERT_SECTION,
    CONVERT_DIRECTIVE,
    CONVERT_BIND, /* words of a bind line */
    CONVERT_SERVER,
    CONVERT_PLACES
};

struct convert_state;

struct convert_row {
    /* Names, separated by commas. A final "=" means a value, "=..." several values. Names of
     * several words, "policy random", are matched first. "*" stands for any characters; the first
     * row that matches counts. */
    const char *names;
    enum convert_kind kind;
    /* "SETTING", or several, separated by spaces: the setting's type defines how to read the value.
     * "SETTING: VALUE": a fixed value. "SETTING.PART": kept until other words complete the setting.
     * NULL: none. */
    const char *ours;
    const char *note; /* reason for a missing counterpart, or a difference; NULL: none */
    /* Handles cases beyond a row's means; NULL: none. */
    void (*take)(struct convert_state *c, const char *label, const json_t *values);
};

#define ROW(names, kind, ours, note, take)                                                         \
    {                                                                                              \
        names, CONVERT_##kind, ours, note, take                                                    \
    }
#define SAME(names, ours)             ROW(names, DID, ours, NULL, NULL)
#define NEARLY(names, ours, note)     ROW(names, DID, ours, note, NULL)
#define NEEDLESS(names, note)         ROW(names, NOT_NEEDED, NULL, note, NULL)
#define BY_HAND(names, ours, note)    ROW(names, HAND, ours, note, NULL)
#define MISSING(names, note)          ROW(names, NONE, NULL, note, NULL)
#define OTHERWISE(names, ours, note)  ROW(names, NONE, ours, note, NULL)
#define READ(names, ours, note)       ROW(names, READ, ours, note, NULL)
#define CALL(names, ours, take, note) ROW(names, READ, ours, note, take)

/* Log levels in the words of Python, Rust and Go. */
#define LEVELS(flag)                                                                               \
    SAME(flag "=", "log-level"), SAME(flag " INFO", "log-level: info"),                            \
        SAME(flag " warning, " flag " WARNING", "log-level: warn"),                                \
        SAME(flag " critical, " flag " fatal, " flag " ERROR", "log-level: error"),                \
        SAME(flag " trace, " flag " DEBUG", "log-level: debug")

#define NOTE_PD   "prefill/decode disaggregation is not supported"
#define NOTE_CODE "the router runs no third-party code"
#define NOTE_COST "one cost in seconds weighs cached tokens, queue and evictions"

struct convert_router {
    const char *name, *title, *source;
    const char *programs; /* program names on a command line, separated by spaces */
    const char *marks;    /* flags that identify the router without a program name */
    struct {
        enum convert_place place;
        const struct convert_row *rows; /* ends with a row of zeros */
    } tables[6];
    const char *time;                        /* the unit of times without a unit */
    const char *host, *port;                 /* the default address to listen on; NULL: none */
    const char *body_bytes;                  /* the default limit of a body; NULL: not written */
    void (*finish)(struct convert_state *c); /* called after the flags; may be NULL */
};

extern const struct convert_router convert_vllm, convert_production_stack, convert_sglang,
    convert_smg, convert_llmd, convert_haproxy;
/* In the order of the page; the first of equal matches wins. Ends with NULL. */
extern const struct convert_router *const convert_routers[];

/* --- state of a conversion -------------------------------------------------------------------- */

struct convert_state {
    const struct convert_router *router;
    const struct convert_router *const *routers;
    struct node_options options;       /* the settings, checked */
    json_t *settings, *origins, *left; /* by Grapevine's setting: values; origins; commented-out
                                        * values -> reasons */
    json_t *parts;                     /* "SETTING.PART" -> last value */
    json_t *notes[CONVERT_READ];       /* "label: note" -> null */
    json_t *limits;  /* HAProxy: acl that limits clients -> name of the row for the limit */
    struct buf text; /* contents of files */
    char unread[IO_FILE_MESSAGE]; /* error in reading the configuration's file, or "" */
    json_t *docs;                 /* llm-d: the surrounding documents, or NULL */
    const json_t *config;         /* llm-d: the EndpointPickerConfig, or NULL */
    json_t *owned;                /* values from convert_own() and convert_text() */
};

/* Keeps the value until the state is freed. */
json_t *convert_own(struct convert_state *c, json_t *value);
/* Returns a formatted text, valid until the state is freed. */
__attribute__((format(printf, 2, 3))) const char *convert_text(struct convert_state *c,
                                                               const char *format, ...);
/* Joins the words from index `from` on, with `by` between them. */
const char *convert_join(struct convert_state *c, const json_t *words, size_t from, const char *by);
/* Returns the word at `i`, or "". */
const char *convert_word(const json_t *words, size_t i);
/* True if the word is among the names, which are separated by spaces. */
bool convert_is_one(const char *names, const char *word);
/* Records a note; duplicates are dropped. */
__attribute__((format(printf, 4, 5))) void convert_note(struct convert_state *c,
                                                        enum convert_kind kind, const char *label,
                                                        const char *format, ...);
/* Sets a setting of Grapevine; a second value extends a list and replaces any other value. Returns
 * false after noting a refused value. */
bool convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin);
/* Returns the first value of a setting, or NULL. */
const char *convert_setting(const struct convert_state *c, const char *setting);
/* Adds a pair to the object under `name` in `map`. */
void convert_add(json_t *map, const char *name, const char *key, const char *value);
const char *convert_part(const struct convert_state *c, const char *part, const char *otherwise);

/* --- rows ------------------------------------------------------------------------------------ */

/* A row, and the matching name. */
struct convert_found {
    const struct convert_row *row; /* NULL: none */
    struct slice name;             /* without the part for values */
    size_t values;                 /* greatest number of values */
    unsigned words;                /* words in the name; not set by convert_find() */
};

/* For each place: the prefix of names in notes, and the note for unknown names. */
extern const struct convert_place_words {
    const char *prefix, *unknown;
} convert_places[CONVERT_PLACES];

struct convert_found convert_find(const struct convert_router *router, enum convert_place place,
                                  struct slice name);
/* True if the word begins with dashes and is not a number. */
bool convert_is_flag(const char *word);
/* Applies the rows of the place's tables to the words from index `from` on; unknown words are
 * noted. */
void convert_words(struct convert_state *c, enum convert_place place, const json_t *words,
                   size_t from);
/* Completes the settings that several words define together. */
void convert_finish(struct convert_state *c);

/* --- routers and texts ------------------------------------------------------------------------ */

/* Returns an EndpointPickerConfig in a document, or in a ConfigMap there; NULL: none. */
const json_t *convert_find_config(struct convert_state *c, json_t *docs);

/* Converts c->text, an HAProxy configuration. */
void convert_haproxy_text(struct convert_state *c);
/* Returns "HOST:PORT" as a setting requires; NULL: not a TCP address. A missing host, or "*",
 * becomes `any`. */
const char *convert_haproxy_address(struct convert_state *c, const char *text, const char *any);

/* Appends a file. Returns false with a message of IO_FILE_MESSAGE bytes. */
bool convert_file(const char *path, struct buf *text, char *message);
/* Splits text like a shell; skips lines with # at the beginning. */
json_t *convert_split(struct slice text);
/* Reads YAML as JSON, with scalars as text. NULL: not YAML. Several documents become an array. */
json_t *convert_yaml(struct slice text);
/* Calls `look` for each object in the value, from the top down. Returns the first result that is
 * not NULL. */
const json_t *convert_search(struct convert_state *c, json_t *value,
                             const json_t *(*look)(struct convert_state *c, json_t *object));

#endif

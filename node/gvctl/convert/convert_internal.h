/* What the tables of routers are made of, and what is gathered from one input. */
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
    CONVERT_DID,        /* a setting says it */
    CONVERT_NOT_NEEDED, /* the router does this itself, or does not need it */
    CONVERT_HAND,       /* an operator must set it */
    CONVERT_NONE,       /* the router has no such feature */
    CONVERT_READ,       /* others say it together, or code: the note is for the page alone */
};

/* Where words stand. From CONVERT_DIRECTIVE on they are HAProxy's. */
enum convert_place {
    CONVERT_FLAG,
    CONVERT_MESH, /* a flag that counts with --enable-mesh */
    CONVERT_PLUGIN,
    CONVERT_SECTION,
    CONVERT_DIRECTIVE,
    CONVERT_BIND, /* words of such a line */
    CONVERT_SERVER,
    CONVERT_PLACES
};

struct convert_state;

struct convert_row {
    /* Names by commas. Behind one "=" stands for a value, "=..." for several. Those of several
     * words, "policy random", are asked first. "*" stands for anything: behind other rows. */
    const char *names;
    enum convert_kind kind;
    /* "SETTING", by spaces: its type says how a value is read. "SETTING: VALUE", which it has then.
     * "SETTING.PART" is kept: other words say the rest. NULL: none. */
    const char *ours;
    const char *note; /* why there is none, or what is different; NULL: nothing to say */
    /* What no row can say; NULL: it says all. */
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

/* Levels of logs in the words of Python, Rust and Go. */
#define LEVELS(flag)                                                                               \
    SAME(flag "=", "log-level"), SAME(flag " INFO", "log-level: info"),                            \
        SAME(flag " warning, " flag " WARNING", "log-level: warn"),                                \
        SAME(flag " critical, " flag " fatal, " flag " ERROR", "log-level: error"),                \
        SAME(flag " trace, " flag " DEBUG", "log-level: debug")

#define NOTE_PD   "prefill/decode disaggregation is not supported: each engine does both"
#define NOTE_CODE "the router runs no third-party code"
#define NOTE_COST "one cost in seconds weighs cached tokens, queue and evictions"

struct convert_router {
    const char *name, *title, *source;
    const char *programs; /* names of it on a command line, by spaces */
    const char *marks;    /* flags that show it without such */
    struct {
        enum convert_place place;
        const struct convert_row *rows; /* the last one is of zeros */
    } tables[6];
    const char *time;        /* the unit of times without one */
    const char *host, *port; /* where it listens if nothing is said; NULL: nowhere */
    const char *body_bytes;  /* the greatest body then; NULL: not written */
    void (*finish)(struct convert_state *c); /* behind its flags; NULL: nothing is */
};

extern const struct convert_router convert_vllm, convert_production_stack, convert_sglang,
    convert_smg, convert_llmd, convert_haproxy;
/* In the order of the page; of those that fit as well the first counts. NULL behind the last. */
extern const struct convert_router *const convert_routers[];

/* --- what is gathered ------------------------------------------------------------------------ */

struct convert_state {
    const struct convert_router *router;
    const struct convert_router *const *routers;
    struct node_options options;       /* the settings, checked */
    json_t *settings, *origins, *left; /* ours -> its values, origins, or comments -> why */
    json_t *parts;                     /* "SETTING.PART" -> what was said last */
    json_t *notes[CONVERT_READ];       /* "label: note" -> null */
    json_t *limits;                    /* of HAProxy: acls that limit clients -> their row */
    struct buf text;                   /* of files */
    char unread[IO_FILE_MESSAGE];      /* why a file of it could not be read, or "" */
    json_t *docs;                      /* of llm-d: what it stands among, or NULL */
    const json_t *config;              /* its EndpointPickerConfig, or NULL */
    json_t *owned;                     /* what convert_own() and convert_text() gave out */
};

/* Freed with the state. */
json_t *convert_own(struct convert_state *c, json_t *value);
/* So is this text. */
__attribute__((format(printf, 2, 3))) const char *convert_text(struct convert_state *c,
                                                               const char *format, ...);
/* Words from one on, with `by` between them. */
const char *convert_join(struct convert_state *c, const json_t *words, size_t from, const char *by);
/* The word at `i`, or "". */
const char *convert_word(const json_t *words, size_t i);
/* Whether one of the names, by spaces, is the word. */
bool convert_is_one(const char *names, const char *word);
/* None twice. */
__attribute__((format(printf, 4, 5))) void convert_note(struct convert_state *c,
                                                        enum convert_kind kind, const char *label,
                                                        const char *format, ...);
/* A value of ours; a second one is added to a list and replaces any other. False: it is refused,
 * which is noted. */
bool convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin);
/* The first value of a setting, or NULL. */
const char *convert_setting(const struct convert_state *c, const char *setting);
/* Adds a pair to what `map` has of a name. */
void convert_add(json_t *map, const char *name, const char *key, const char *value);
const char *convert_part(const struct convert_state *c, const char *part, const char *otherwise);

/* --- rows ------------------------------------------------------------------------------------ */

/* A row, and the one of its names that fitted. */
struct convert_found {
    const struct convert_row *row; /* NULL: there is none */
    struct slice name;             /* without what stands for values */
    size_t values;                 /* that it takes at most */
    unsigned words;                /* that it is; convert_find() leaves that out */
};

/* What stands before names of a place, and what is noted of those without a row. */
extern const struct convert_place_words {
    const char *prefix, *unknown;
} convert_places[CONVERT_PLACES];

struct convert_found convert_find(const struct convert_router *router, enum convert_place place,
                                  struct slice name);
/* Whether it begins with dashes and is no number. */
bool convert_is_flag(const char *word);
/* Words from one on, each by its row; what no row knows is noted. */
void convert_words(struct convert_state *c, enum convert_place place, const json_t *words,
                   size_t from);
/* What several words say together. */
void convert_finish(struct convert_state *c);

/* --- the routers', and texts ----------------------------------------------------------------- */

/* An EndpointPickerConfig in a document, also one in a ConfigMap; NULL: there is none. */
const json_t *convert_find_config(struct convert_state *c, json_t *docs);

/* All of its sections and lines. */
void convert_haproxy_text(struct convert_state *c);
/* "HOST:PORT" as a setting writes it; NULL: it is no address of TCP. A host that is left out, or
 * "*", is `any`. */
const char *convert_haproxy_address(struct convert_state *c, const char *text, const char *any);

/* Appends a file; false: it cannot be read, and a message of IO_FILE_MESSAGE bytes says why. */
bool convert_file(const char *path, struct buf *text, char *message);
/* As a shell splits it; lines that begin with # are none. */
json_t *convert_split(struct slice text);
/* YAML as JSON: scalars are text. NULL: it is none. Several documents are in an array. */
json_t *convert_yaml(struct slice text);
/* The first that `look` finds in an object, from the top down. */
const json_t *convert_search(struct convert_state *c, json_t *value,
                             const json_t *(*look)(struct convert_state *c, json_t *object));

#endif

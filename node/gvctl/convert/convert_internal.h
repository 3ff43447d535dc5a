/* What the tables of routers are made of, and what is gathered from one input. */
#ifndef NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H
#define NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* How a value becomes a setting's. */
enum convert_as {
    CONVERT_NEEDLESS, /* the router does so by itself, or without */
    CONVERT_MISSING,  /* it cannot do that */
    CONVERT_BY_HAND,  /* it can, and an operator has to say how */
    CONVERT_TEXT,
    CONVERT_NUMBER,
    CONVERT_SECONDS,
    CONVERT_DURATION, /* 5000 (ms), 5s, 1d */
    CONVERT_URLS,     /* words, or by commas */
    CONVERT_FILE,     /* of HAProxy: a path, or one in crt-base or ca-base */
    CONVERT_FIXED,    /* the setting has its value: "log-format: json" */
    CONVERT_SPECIAL,  /* the router's own code */
    CONVERT_READ,     /* its reader has done it */
    /* Kept until convert_finish(): several say it together. */
    CONVERT_HOST,
    CONVERT_PORT,
    CONVERT_ADMIN_HOST,
    CONVERT_ADMIN_PORT,
    CONVERT_KUBERNETES,
    CONVERT_NAMESPACE,
    CONVERT_KUBERNETES_PORT,
    CONVERT_SELECTOR,
    CONVERT_CRT_BASE,
    CONVERT_CA_BASE,
    CONVERT_MESH,
    CONVERT_MESH_NAME,
    CONVERT_MESH_HOST,
    CONVERT_MESH_PORT,
    CONVERT_MESH_ADVERTISE,
    CONVERT_MESH_PEERS,
    CONVERT_MESH_PODS,
    CONVERT_AS_COUNT
};

struct convert_row {
    /* Names by commas. Behind one "=" stands for a value, "=..." for several. A name and a value,
     * "policy random", goes before the name alone. "*" at an end stands for anything. */
    const char *names;
    enum convert_as as;
    const char *settings; /* ours, by spaces, or NULL */
    const char *note;     /* why there is none, or what is different; NULL: nothing to say */
};

struct convert_state;

struct convert_router {
    const char *name, *title, *source;
    const char *programs;                /* names of it on a command line, by spaces */
    const struct convert_row *tables[3]; /* each ends with a row of zeros */
    const char *host, *port;             /* where it listens if nothing is said; NULL: nowhere */
    const char *body_bytes;              /* the greatest body then; NULL: not written */
    bool is_config;                      /* names are no flags: they do not begin with -- */
};

extern const struct convert_router convert_vllm, convert_production_stack, convert_sglang,
    convert_smg, convert_llmd, convert_llmd_plugins, convert_haproxy;

/* A row, and the one of its names that fitted. */
struct convert_found {
    const struct convert_row *row; /* NULL: there is none */
    struct slice name;             /* without what stands for values */
    bool value, several;           /* it takes a value; several */
};

enum convert_kind { CONVERT_DID, CONVERT_NOT_NEEDED, CONVERT_HAND, CONVERT_NONE };

struct convert_state {
    const struct convert_router *router;
    void (*special)(struct convert_state *c, const char *name, const json_t *values);
    /* Flags that another router has are known of that. */
    const struct convert_router *(*router_at)(unsigned i);
    json_t *settings;               /* ours -> [value, ...] */
    json_t *origins;                /* ours -> [what it comes from, ...] */
    json_t *left;                   /* ours -> [{value, why}, ...], written as comments */
    json_t *notes;                  /* [{kind, flag, note}, ...], none twice */
    json_t *kept[CONVERT_AS_COUNT]; /* values, or NULL */
    json_t *servers;                /* of HAProxy: what default-server says, word -> value */
    json_t *limits;                 /* of HAProxy: acls that limit clients, name -> its row */
    json_t *beside; /* of llm-d: documents that its command line stands among; NULL: none */
};

void convert_begin(struct convert_state *c, const struct convert_router *router);
void convert_free(struct convert_state *c);
/* A value of ours; a second one is added to a list and replaces any other. */
void convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin);
/* A value of a list which is not to be in use: written as a comment, with the reason; "": it is. */
void convert_leave(struct convert_state *c, const char *setting, const char *value,
                   const char *origin, const char *why);
/* NULL as its note: there is nothing to say. */
void convert_note(struct convert_state *c, enum convert_kind kind, const char *flag,
                  const char *note);
void convert_keep(struct convert_state *c, enum convert_as as, const char *value);
/* The last one that was kept, or the other. */
const char *convert_kept(const struct convert_state *c, enum convert_as as, const char *otherwise);
/* By its row, as `flag`. */
void convert_take(struct convert_state *c, struct convert_found found, const char *flag,
                  const json_t *values);
struct convert_found convert_find(const struct convert_router *router, struct slice name);
/* "NAME VALUE", else NAME. */
struct convert_found convert_find_value(const struct convert_router *router, struct slice name,
                                        const char *value);
/* A command line, from its first flag on. */
void convert_words(struct convert_state *c, const json_t *words);
/* What several flags say together. */
void convert_finish(struct convert_state *c);

/* In the order of the page; NULL: there are no more. */
const struct convert_router *convert_router_at(unsigned i);
const struct convert_router *convert_router_find(const char *name);
/* By the program's name or the flags; NULL: it is none. */
const struct convert_router *convert_router_of(const json_t *words);
/* The command line of the first container of a manifest that is a router's; NULL: there is none.
 * The caller has it. */
json_t *convert_manifest_words(json_t *docs);
/* An EndpointPickerConfig in a document, also one in a ConfigMap. NULL: there is none. */
const json_t *convert_find_config(json_t *docs);

/* A text of HAProxy's, and whether one is. */
bool convert_is_haproxy(struct slice text);
void convert_haproxy_text(struct convert_state *c, struct slice text);
/* A row of llm-d's, CONVERT_SPECIAL; plugins and sections. */
void convert_llmd_special(struct convert_state *c, const char *name, const json_t *values);
void convert_llmd_config(struct convert_state *c, const json_t *config);
/* Of documents beside it: which pods are in its InferencePool. */
void convert_llmd_pool(struct convert_state *c, json_t *docs);

/* YAML as JSON: scalars are text. NULL: it is none. Several documents are in an array. */
json_t *convert_yaml(struct slice text);
/* Appends a file; false: it cannot be read, and a message of IO_FILE_MESSAGE bytes says why. */
bool convert_file(const char *path, struct buf *text, char *message);
/* The first that `look` finds in an object, from the top down; it is the caller's. */
json_t *convert_walk(json_t *value, unsigned depth, json_t *(*look)(json_t *object));
/* As a shell splits it; lines that begin with # are none. */
json_t *convert_split(struct slice text);
/* The word at `i`, or "". */
const char *convert_word(const json_t *words, size_t i);

#endif

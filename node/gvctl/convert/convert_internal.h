/* What the tables of routers are made of, and what is gathered from one command line. */
#ifndef NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H
#define NODE_GVCTL_CONVERT_CONVERT_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

enum convert_arity { CONVERT_SWITCH, CONVERT_ONE, CONVERT_MANY };

/* How a flag's value becomes a setting's. */
enum convert_as {
    CONVERT_NEEDLESS, /* it does so by itself, or without */
    CONVERT_MISSING,  /* it cannot do that */
    CONVERT_BY_HAND,  /* it can, and a person has to say how */
    CONVERT_TEXT,
    CONVERT_NUMBER,
    CONVERT_SECONDS,
    CONVERT_MILLISECONDS,
    CONVERT_DURATION, /* 5000 (ms), 5s, 1d */
    CONVERT_URLS,     /* words, or by commas */
    CONVERT_FIXED,    /* `fixed` */
    CONVERT_POLICY,
    CONVERT_LEVEL, /* of the log */
    CONVERT_HOST,  /* with the next: listen */
    CONVERT_PORT,
    CONVERT_ADMIN_HOST, /* with the next: admin-listen */
    CONVERT_ADMIN_PORT,
    CONVERT_KUBERNETES, /* with the next three: replica-kubernetes */
    CONVERT_KUBERNETES_NAMESPACE,
    CONVERT_KUBERNETES_PORT,
    CONVERT_KUBERNETES_SELECTOR,
    CONVERT_MESH, /* with all of it: gossip-listen, gossip-advertise, node-name, join */
    CONVERT_MESH_BY_HAND,
    CONVERT_SPECIAL, /* the router's own code */
};

struct convert_row {
    const char *flag; /* without dashes; of HAProxy a directive, of llm-d also a plugin */
    enum convert_arity arity;
    enum convert_as as;
    const char *setting; /* ours, or NULL */
    const char *note;    /* why there is none, or what is different; NULL: nothing to say */
    const char *fixed;
};

struct convert_policy {
    const char *theirs, *ours, *note;
};

struct convert_state;

struct convert_router {
    const char *name, *title, *source;
    const struct convert_row *rows;
    unsigned row_count;
    const struct convert_policy *policies; /* the last has NULL */
    const char *host, *port;               /* where it listens if nothing is said; NULL: nowhere */
    const char *body_bytes;                /* the greatest body then; NULL: not written */
    bool is_config;                        /* rows are no flags: words do not begin with -- */
    /* A word of a row, CONVERT_SPECIAL; NULL: there is none. */
    void (*special)(struct convert_state *c, const struct convert_row *row, const json_t *values);
};

extern const struct convert_router convert_vllm, convert_production_stack, convert_sglang,
    convert_smg, convert_llmd, convert_llmd_plugins, convert_haproxy;

enum convert_kind { CONVERT_DID, CONVERT_NOT_NEEDED, CONVERT_HAND, CONVERT_NONE };

/* What default-server says, of HAProxy. */
struct convert_servers {
    bool tls, disabled, backup;
};

struct convert_state {
    const struct convert_router *router;
    json_t *settings; /* ours -> [value, ...] */
    json_t *origins;  /* ours -> [what it comes from, ...] */
    json_t *left;     /* ours -> [{value, why}, ...], written as comments */
    json_t *notes;    /* [{kind, flag, note}, ...], none twice */
    json_t *mesh;     /* their flags of it -> values */
    char host[256], port[16], admin_host[256], admin_port[16];
    bool kubernetes, listen_given;
    char ns[128], kubernetes_port[64], selector[256];
    char crt_base[256], ca_base[256]; /* of HAProxy: folders of files that have no whole path */
    struct convert_servers servers;
    /* All routers, NULL behind the last: flags that one has are known of others. NULL: none are. */
    const struct convert_router *(*router_at)(unsigned i);
    json_t *beside; /* of llm-d: documents that its command line stands among; NULL: none */
};

void convert_begin(struct convert_state *c, const struct convert_router *router);
void convert_free(struct convert_state *c);
/* A value of ours; a second one is added to a list and replaces any other. */
void convert_set(struct convert_state *c, const char *setting, const char *value,
                 const char *origin);
/* A value of a list which is not to be in use: written as a comment, with the reason. */
void convert_leave(struct convert_state *c, const char *setting, const char *value,
                   const char *origin, const char *why);
/* NULL as its note: there is nothing to say. */
void convert_note(struct convert_state *c, enum convert_kind kind, const char *flag,
                  const char *note);
/* By its table. */
void convert_take(struct convert_state *c, const struct convert_row *row, const json_t *values);
/* NULL: it has no such row. A row "*-scorer" stands for all that end so. */
const struct convert_row *convert_find(const struct convert_router *router, struct slice flag);
/* A command line, from its first flag on. */
void convert_words(struct convert_state *c, const json_t *words);
/* "HOST:PORT"; an IPv6 host gets its brackets. */
void convert_address(const char *host, const char *port, char *out, size_t size);
/* Labels of engines' pods. */
void convert_selector(struct convert_state *c, const json_t *values);
/* Of its flags of a mesh. */
void convert_mesh(struct convert_state *c);
/* What several flags say together (together.c). */
void convert_finish(struct convert_state *c);
/* "5000", "5s", "1d", "1m30s" as a time of ours; false: it is none. */
bool convert_duration(struct slice text, char *out, size_t size);

/* A text of HAProxy's (haproxy_sections.c), and whether one is. */
bool convert_is_haproxy(struct slice text);
void convert_haproxy_text(struct convert_state *c, struct slice text);
/* An EndpointPickerConfig in a document, also one in a ConfigMap. NULL: there is none. */
const json_t *convert_find_config(json_t *value, unsigned depth);
/* Its plugins and sections. */
void convert_llmd_config(struct convert_state *c, const json_t *config);
/* Of documents beside it: which pods are in its InferencePool. */
void convert_llmd_pool(struct convert_state *c, json_t *docs);

/* YAML as JSON: scalars are text. NULL: it is none. Several documents are in an array. */
json_t *convert_yaml(struct slice text);
/* Appends a file; false: it cannot be read. */
bool convert_file(const char *path, struct buf *text);
/* As a shell splits it; lines that begin with # are none. */
json_t *convert_split(struct slice text);

#endif

/* What engines make of the prompts of each kind of client, learned from what they report as cached
 * (docs/adr/0051).
 *
 * A kind is a model, the form of an API and the product that the client's User-Agent names. Each
 * has a rendering (base/rendering.h), believed until answers speak for another one.
 *
 * While a kind is watched its prompts are kept as *prints*: digests of their segments, not joined.
 * So for any rendering it can be said how much of a prompt an earlier one at the same replica
 * shares, between two checkpoints. An answer says how much was cached. The difference is a
 * rendering's loss: in full where more was cached than it explains, by half where less was, for
 * caches forget. A rendering that loses clearly less than the present one replaces it. Only answers
 * count for which no engine can have held the prompt from before this router came.
 *
 * A kind is watched when it is new, when a late system message comes for the first time, when its
 * rendering changed, and when answers are at odds with what was predicted. All else costs a
 * look-up.
 *
 * Bounds: NODE_KINDS_MAX kinds, of which the one used longest ago gives way; NODE_PRINTS_MAX prints
 * of all kinds together, in a ring.
 */
#ifndef NODE_REPLICA_RENDERINGS_H
#define NODE_REPLICA_RENDERINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/rendering.h"
#include "base/slice.h"
#include "http/prompt.h"
#include "node/replica/limits.h"

/* From where a rendering is believed. */
enum node_rendering_from {
    NODE_RENDERING_KNOWN,   /* of the engine, or nothing was learned */
    NODE_RENDERING_ANSWERS, /* this router's */
    NODE_RENDERING_ROUTER,  /* another router's answers */
};

/* What was decided of one prompt. All zero: nothing, for there is nothing to decide. */
struct node_rendered {
    struct rendering rendering;
    uint64_t key;   /* of its kind */
    uint32_t stamp; /* of its print; 0: it has none */
    uint64_t late;  /* the id of its late system messages; 0: it has none */
    bool late_new;  /* the replica that it went to had not been sent them */
};

struct node_client_kind {
    uint64_t key; /* 0: free */
    uint64_t used_ms, looked_ms;
    struct rendering rendering;
    uint8_t from;        /* enum node_rendering_from */
    uint32_t generation; /* of the index, when it was told to others, or by them */
    uint16_t replica;    /* whose answer taught it */
    uint32_t answers;    /* that told renderings apart since, */
    uint32_t taught;     /* and those that it was learned from */
    float loss[RENDERING_CODES];
    bool had_late;                      /* a prompt had a late system message once */
    uint32_t heads_changed, heads_kept; /* from turn to turn of a conversation, while watched */
    uint32_t watch;                     /* requests that are still kept */
    uint32_t quiet;                     /* answers until the next watch may begin */
    uint32_t patience;                  /* how many that will be after the next one in vain */
    float surprise;                     /* how often answers were at odds lately */
    float margin, margin_late; /* that a change asks for: of anything; of late messages alone */
    uint8_t agent_len;
    char agent[NODE_KIND_AGENT_MAX]; /* cut */
    uint64_t model;                  /* a hash of its name */
    const char *form;                /* a literal */
};

struct node_renderings;

/* ERR_NOMEM. `secret` is borrowed until node_renderings_destroy(). */
MUST_USE int node_renderings_create(struct node_renderings **out, const struct hash_secret *secret);
void node_renderings_destroy(struct node_renderings *r);
void node_renderings_check(const struct node_renderings *r);

/* The kind, made if it is new; never NULL. `form` is a literal; no two
 * forms begin with the same letter. */
struct node_client_kind *node_renderings_kind(struct node_renderings *r, struct slice agent,
                                              const char *form, struct slice model,
                                              uint64_t now_ms);
struct node_client_kind *node_renderings_kind_at(struct node_renderings *r, unsigned number);
/* The one of this model that was used last; NULL: none was. */
const struct node_client_kind *node_renderings_latest(const struct node_renderings *r,
                                                      struct slice model);
/* The kind of this key; NULL: it has given way to another one. */
struct node_client_kind *node_renderings_find(struct node_renderings *r, uint64_t key);
/* For a prompt of that kind, which has no print yet. */
static inline struct node_rendered node_renderings_of(const struct node_client_kind *k)
{
    return (struct node_rendered){.rendering = k->rendering, .key = k->key};
}
/* Another rendering is believed from now on. */
void node_renderings_set(struct node_renderings *r, struct node_client_kind *k,
                         struct rendering rendering, enum node_rendering_from from);

/* Keeps the prompt, whose points in `chain` are not joined yet, if its kind is watched. */
void node_renderings_print(struct node_renderings *r, struct node_client_kind *k,
                           const struct http_prompt_form *form, const struct chain *chain,
                           struct node_rendered *out);
/* It was sent there. */
void node_renderings_sent(struct node_renderings *r, const struct node_rendered *what,
                          unsigned replica);
/* It was not computed after all. */
void node_renderings_void(struct node_renderings *r, const struct node_rendered *what);
/* The replica lost its cache, or is another one. */
void node_renderings_forget(struct node_renderings *r, unsigned replica);

/* An answer to it. */
struct node_rendered_answer {
    double prompt_tokens, cached_tokens; /* as the engine reports */
    double predicted_tokens; /* that were recorded there, all of which could be cached */
    bool sure;               /* they were used so lately that they are there */
    double block_tokens;     /* of the engine's cache */
};
/* Whether its kind has another rendering now. */
bool node_renderings_answered(struct node_renderings *r, const struct node_rendered *what,
                              const struct node_rendered_answer *answer);

/* Calls `each` with the chain of each prompt of the kind that a replica was sent, as its rendering
 * is now; the newest first, at most `max`. */
void node_renderings_each(struct node_renderings *r, const struct node_client_kind *k, unsigned max,
                          void (*each)(void *context, const struct chain *chain, unsigned replica),
                          void *context);

struct node_renderings_stats {
    uint64_t kinds, watched; /* now */
    uint64_t learned;        /* renderings that changed by this router's answers */
    uint64_t adopted;        /* and by another's */
    uint64_t displaced;      /* kinds that gave way to new ones */
};
struct node_renderings_stats node_renderings_stats(const struct node_renderings *r);

/* What does not count, and what stands elsewhere, as a phrase; empty: all counts as it is sent. A
 * header that engines are known to drop is not mentioned. Returns `out`. */
const char *node_rendering_text(struct rendering rendering, char *out, size_t size);

#endif

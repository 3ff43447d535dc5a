/* How engines render the prompts of each kind of client, learned from the reported cached tokens
 * (docs/adr/0051).
 *
 * A kind is a model, an API form and the product in the client's User-Agent. Each kind has a
 * rendering (base/rendering.h), believed until answers support another rendering.
 *
 * While a kind is watched, the prompts are kept as *prints*: digests of the segments, not joined.
 * For any rendering, two prints give the prefix shared with an earlier prompt at the same replica,
 * as a range between two checkpoints. An answer reports the cached tokens. The difference is a
 * rendering's loss: the full difference if more was cached than predicted, half of it if less was,
 * because caches forget. A rendering with clearly less loss replaces the present one. An answer
 * does not count if the engine may have cached the prompt before this router started.
 *
 * A kind is watched when it is new, when a late system message comes for the first time, when the
 * rendering changed, and when answers contradict the prediction. Otherwise a prompt costs a
 * look-up.
 *
 * Bounds: NODE_KINDS_MAX kinds, and a new kind replaces the least recently used; NODE_PRINTS_MAX
 * prints of all kinds together, in a ring. */
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

/* The source of a believed rendering. */
enum node_rendering_from {
    NODE_RENDERING_KNOWN,   /* the engine's type, or nothing was learned */
    NODE_RENDERING_ANSWERS, /* this router's answers */
    NODE_RENDERING_ROUTER,  /* another router's answers */
};

/* The rendering chosen for a prompt, to be compared with the answer. All zero: none was chosen. */
struct node_rendered {
    struct rendering rendering;
    uint64_t key;   /* key of the prompt's kind */
    uint32_t stamp; /* stamp of the prompt's print; 0: none */
    uint64_t late;  /* id of the prompt's late system messages; 0: none */
    bool late_new;  /* the replica had not received the late messages before */
};

struct node_client_kind {
    uint64_t key; /* 0: free */
    uint64_t used_ms, looked_ms;
    struct rendering rendering;
    uint8_t from;        /* enum node_rendering_from */
    uint32_t generation; /* the index's generation when the rendering was last shared by or with
                          * other routers */
    uint16_t replica;    /* replica with the answer that taught the rendering */
    uint32_t answers;    /* informative answers since the rendering was set */
    uint32_t taught;     /* answers from which the rendering was learned */
    float loss[RENDERING_CODES];
    bool had_late;                      /* a prompt had a late system message once */
    uint32_t heads_changed, heads_kept; /* numbers of conversation turns with a changed, and with an
                                         * unchanged head, while watched */
    uint32_t watch;                     /* number of further requests to be kept as prints */
    uint32_t quiet;                     /* answers until the next watch may begin */
    uint32_t patience;                  /* value of `quiet` after the next watch without a change */
    float surprise;                     /* fading share of answers in contradiction to the
                                         * prediction */
    float margin, margin_late; /* loss by which another rendering must be better to replace the
                                * present one; margin_late: if it differs in the place of late
                                * messages alone */
    uint8_t agent_len;
    char agent[NODE_KIND_AGENT_MAX]; /* product of the User-Agent, cut */
    uint64_t model;                  /* hash of the model's name */
    const char *form;                /* a literal */
};

struct node_renderings;

/* ERR_NOMEM. `secret` is borrowed until node_renderings_destroy(). */
MUST_USE int node_renderings_create(struct node_renderings **out, const struct hash_secret *secret);
void node_renderings_destroy(struct node_renderings *r);
void node_renderings_check(const struct node_renderings *r);

/* The kind, made if new; never NULL. `form` is a literal; no two forms begin with the same
 * letter. */
struct node_client_kind *node_renderings_kind(struct node_renderings *r, struct slice agent,
                                              const char *form, struct slice model,
                                              uint64_t now_ms);
struct node_client_kind *node_renderings_kind_at(struct node_renderings *r, unsigned number);
/* The most recently used kind of this model; NULL: none. */
const struct node_client_kind *node_renderings_latest(const struct node_renderings *r,
                                                      struct slice model);
/* The kind with this key; NULL: replaced by another kind. */
struct node_client_kind *node_renderings_find(struct node_renderings *r, uint64_t key);
/* The rendering chosen for a prompt of this kind, without a print yet. */
static inline struct node_rendered node_renderings_of(const struct node_client_kind *k)
{
    return (struct node_rendered){.rendering = k->rendering, .key = k->key};
}
/* Sets the believed rendering of a kind. */
void node_renderings_set(struct node_renderings *r, struct node_client_kind *k,
                         struct rendering rendering, enum node_rendering_from from);

/* Keeps the prompt as a print if the kind is watched, and sets out->stamp. The prompt's points in
 * `chain` are not joined yet. */
void node_renderings_print(struct node_renderings *r, struct node_client_kind *k,
                           const struct http_prompt_form *form, const struct chain *chain,
                           struct node_rendered *out);
/* The prompt was sent to the replica. */
void node_renderings_sent(struct node_renderings *r, const struct node_rendered *what,
                          unsigned replica);
/* The prompt was not computed after all, so later prompts cannot have its prefix from the cache. */
void node_renderings_void(struct node_renderings *r, const struct node_rendered *what);
/* The replica lost the cache, or the number belongs to another replica: drops the replica from all
 * prints. */
void node_renderings_forget(struct node_renderings *r, unsigned replica);

/* An answer to the prompt. */
struct node_rendered_answer {
    double prompt_tokens, cached_tokens; /* as reported by the engine */
    double predicted_tokens; /* tokens recorded at the replica: an upper bound of the cached
                              * tokens */
    bool sure;               /* the predicted tokens were used so lately that they are surely
                              * cached */
    double block_tokens;     /* block size of the engine's cache */
};
/* Learns from an answer. Returns true if the prompt's kind has a new rendering. */
bool node_renderings_answered(struct node_renderings *r, const struct node_rendered *what,
                              const struct node_rendered_answer *answer);

/* Calls `each` for the kind's remembered prompts sent to a replica, with their chains in the
 * present rendering. The newest come first, at most `max`. */
void node_renderings_each(struct node_renderings *r, const struct node_client_kind *k, unsigned max,
                          void (*each)(void *context, const struct chain *chain, unsigned replica),
                          void *context);

struct node_renderings_stats {
    uint64_t kinds, watched; /* present numbers */
    uint64_t learned;        /* changes of a rendering by this router's answers */
    uint64_t adopted;        /* changes of a rendering by another router's answers */
    uint64_t displaced;      /* kinds dropped for new kinds */
};
struct node_renderings_stats node_renderings_stats(const struct node_renderings *r);

/* Writes a phrase that names the parts of a prompt that do not count and those that are moved;
 * empty: everything counts as sent. A header known to be dropped by engines is not mentioned.
 * Returns `out`. */
const char *node_rendering_text(struct rendering rendering, char *out, size_t size);

#endif

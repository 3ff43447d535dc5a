/* Which replica serves which model, and what is learned of a model.
 *
 * A replica has *listed* its models once the router has read its list (_listed in names below). A
 * replica that has not (not asked yet, or it refuses the router's questions) may serve everything.
 * Clients' requests teach what it serves:
 *   - A successful answer for a model: it serves that one. It may still serve all others.
 *   - A 404 that names the model as unknown: it does not serve it, for NODE_MODELS_DENIED_MS.
 *   - Any other 404 where a peer answers well, or there is no peer: it may be another engine by
 *     now, and whether it serves the model is not known.
 *
 * The first counts only while the replica has not listed its models. A list is as old as it is: a
 * 404 of a replica that has listed the model counts until the replica has listed its models again,
 * as an answer to a question that came after the 404. If it then denies the model once more within
 * that time, this counts for NODE_MODELS_DENIED_MS whatever it lists.
 *
 * A replica that denies a model, lists it anew and denies it again, with no success in between:
 * that is *held* against it. It ends once the model is off the list, by a success
 * NODE_MODELS_DENIED_MS after the last denial, or by one after a list lifted that denial.
 *
 * A replica may load adapters on demand. It may be asked for adapters of its base that others list,
 * and for names that nobody lists; a 404 counts there as well.
 *
 * Rows are made for models that engines list or answer well, never for names that clients merely
 * ask for. A row is kept until its place is needed; a listed model takes the place of one that was
 * learned from clients. Of NODE_MODELS_DENIALS denials a new one takes the place of the oldest of
 * eight. Names without a row learn together, in row 0. No replica serves that one.
 *
 * Invariants (node_models_check): every row but 0 is found under its name, and row 0 is empty.
 */
#ifndef NODE_REPLICA_MODEL_H
#define NODE_REPLICA_MODEL_H

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"
#include "node/replica/learn.h"
#include "node/replica/terms.h"
#include "node/replica/tokens.h"

enum { NODE_MODELS_DENIED_MS = 60000 };

struct node_model {
    struct node_replica_set serving;
    struct node_tokens tokens;         /* of prompts, by what they are made of */
    struct node_ratio bytes_per_token; /* of the same, whatever they are made of */
    struct node_ratio output_tokens;   /* per answer */
    uint64_t bytes_samples;            /* own ones, also of an earlier life */
    bool listed;                       /* a replica has listed it: no client made the name up */
    uint16_t name_len;                 /* 0: row 0 */
    bool adapter;                      /* a LoRA adapter, as a list or an engine's metrics say */
    uint16_t parent;                   /* the row of an adapter's base; 0: not known */
    char name[NODE_MODEL_NAME_MAX];
};

struct node_models;

/* A ratio that was not learned from the model's own prompts. It replaces its samples. */
void node_model_bytes_believe(struct node_model *row, double bytes_per_token);
/* An answer reported the tokens of its prompt (> 0), and those of its media (0 or less: it did
 * not). */
void node_model_bytes_add(struct node_model *row, uint64_t bytes,
                          const struct chain_content *content, double tokens,
                          const int64_t media_tokens[CHAIN_MEDIA]);

/* ERR_NOMEM. `bytes_per_token` and `output_tokens` are believed until they are learned. */
MUST_USE int node_models_create(struct node_models **out, const struct hash_secret *secret,
                                double bytes_per_token, double output_tokens);
void node_models_destroy(struct node_models *m);
/* What was learned, over all models that are served; as believed at first where none is listed. */
struct node_models_range {
    double bytes_per_token_min, bytes_per_token_max;
    double image_tokens_min, image_tokens_max;
    double output_tokens_min, output_tokens_max;
};
struct node_models_range node_models_range(const struct node_models *m);

void node_models_check(const struct node_models *m);

/* Replaces what the replica serves. Names that are empty or too long are passed over. ERR_FULL if
 * the table has no place for all of them: those that fitted are known. */
MUST_USE int node_models_set(struct node_models *m, unsigned replica, const struct slice *ids,
                             unsigned count);

/* One more than it listed; as node_models_set(). */
MUST_USE int node_models_also(struct node_models *m, unsigned replica, struct slice id);

/* The model is an adapter of that base, if both are known. */
void node_models_adapter(struct node_models *m, struct slice name, struct slice parent);
bool node_models_is_adapter(const struct node_models *m, struct slice name);
/* The replica loads adapters that it has not listed when it is asked for them, or no longer. */
void node_models_on_demand(struct node_models *m, unsigned replica, bool loads);
bool node_models_any_on_demand(const struct node_models *m);

/* Another replica has this number from now on: nothing is known of it. */
void node_models_forget(struct node_models *m, unsigned replica);
/* The replica refuses to list its models from now on: what it listed counts as learned. */
void node_models_unlist(struct node_models *m, unsigned replica);
/* What it listed, and what it answered for, was another engine's: it may serve any model. */
void node_models_unknow(struct node_models *m, unsigned replica);
bool node_models_listed(const struct node_models *m, unsigned replica);

/* What a client's request taught of a replica: it answered for the model, or (`by_list`) gave the
 * client a list with it. That it serves it is ignored of one that has listed its models. */
void node_models_learn(struct node_models *m, unsigned replica, struct slice name, bool by_list);
/* True: from now on it is held against the replica, which lists the model. */
bool node_models_deny(struct node_models *m, unsigned replica, struct slice name, uint64_t now_ms);
/* The replica accepted a request for the model that was sent at `sent_ms`. True: its denial was
 * held against it, and is no longer. Says nothing before anything was denied (_denied_any). */
bool node_models_accepted(struct node_models *m, unsigned replica, struct slice name,
                          uint64_t sent_ms, uint64_t now_ms);
bool node_models_denied_any(const struct node_models *m);
/* The list is complete: what is not on it is no longer held against the replica. */
void node_models_unlisted_let_go(struct node_models *m, unsigned replica);
/* The denials that are held against a replica. */
struct node_denials {
    unsigned held;
    uint64_t until_ms; /* it is not asked for one of them until then; past: it may be asked */
};
struct node_denials node_models_denials(const struct node_models *m, unsigned replica);
/* It may be another engine than the one that answered for the model: that no longer counts. Ignored
 * of one that has listed its models. */
void node_models_doubt(struct node_models *m, unsigned replica, struct slice name);
/* The replica has listed its models, asked at that time: what it denied before counts no more. */
void node_models_listed_anew(struct node_models *m, unsigned replica, uint64_t asked_ms);
/* Whether it lately denied the model. */
bool node_models_denied(const struct node_models *m, unsigned replica, struct slice name,
                        uint64_t now_ms);

/* The models that the replica listed or is known to serve: call with *at = 0 first; false behind
 * the last one, and `name` is as before. */
bool node_models_next(const struct node_models *m, unsigned replica, unsigned *at,
                      struct slice *name);

/* The replicas that may be asked for the model: those that serve it, all that have not listed
 * their models, and of those that load on demand the ones that may load it. An empty name is served
 * by all. */
void node_models_serving(const struct node_models *m, struct slice name,
                         struct node_replica_set *out);
/* The replicas that are known to serve it; good until a row is made. */
const struct node_replica_set *node_models_surely(const struct node_models *m, struct slice name);
bool node_models_known(const struct node_models *m, struct slice name);

/* SGLang names an adapter in the request's model, `base:adapter`, and lists only the base. Returns
 * the base of a name that no replica serves as a whole, if the base is known; else empty. */
struct slice node_models_base(const struct node_models *m, struct slice name);

/* The row of a name, of its base (node_models_base), or row 0. The pointer is good until the next
 * node_models_set or node_models_learn. */
struct node_model *node_models_row(struct node_models *m, struct slice name);
/* The same by number, which a booking keeps: a row may have changed its name in between, then a
 * sample goes to the wrong model, which does no harm. */
unsigned node_models_row_number(const struct node_models *m, const struct node_model *row);
struct node_model *node_models_row_at(struct node_models *m, unsigned number);
/* That of the name itself, made if there was none; row 0 of an empty one. NULL: it is too long, or
 * the table has no place. */
struct node_model *node_models_row_made(struct node_models *m, struct slice name);
/* The last row that has a name; 0: none has. */
unsigned node_models_last(const struct node_models *m);

#endif

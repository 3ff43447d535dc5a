/* The models served by each replica, and figures learned for each model.
 *
 * A replica has *listed* its models once the router has read the list (_listed in names below). A
 * replica without a list (not asked yet, or refusing the router's questions) may serve everything.
 * Clients' requests teach the router more:
 *   - A successful answer for a model: the replica serves it, and perhaps all others.
 *   - A 404 naming the model as unknown: not served, for NODE_MODELS_DENIED_MS.
 *   - Any other 404, if a peer answers well or there is no peer: the engine may have been replaced,
 *     so the router no longer knows whether the model is served.
 *
 * A successful answer counts only while the replica has not listed its models. A list may be
 * outdated: a 404 for a listed model counts until the replica has listed the models again, in
 * answer to a question sent after the 404. A second 404 for the model within that time counts for
 * NODE_MODELS_DENIED_MS, whatever the replica lists.
 *
 * If a replica denies a model, lists the model again and denies a request again, with no success in
 * between, the denial is *held* against the replica. This ends when the model is off the list, by a
 * success NODE_MODELS_DENIED_MS after the last denial, or by a success after a list lifted the
 * denial.
 *
 * A replica may load adapters on demand. The router may ask such a replica for other replicas'
 * adapters of the same base, and for names in no list; a 404 counts there as well.
 *
 * A model has a row if an engine listed it or answered well; names merely requested by clients have
 * none. A row stays until the place is needed; a listed model may replace a model learned from
 * clients. A denial beyond NODE_MODELS_DENIALS replaces the oldest of 8. Names without a row share
 * the figures of row 0, which no replica serves.
 *
 * Invariants (node_models_check): every row but 0 is found by name, and no replica serves row 0.
 * */
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
    struct node_tokens tokens;         /* tokens of the model's prompts, by content */
    struct node_ratio bytes_per_token; /* ratio over the model's prompts, whatever their content */
    struct node_ratio output_tokens;   /* tokens per answer */
    uint64_t bytes_samples;            /* samples from this router's answers, over restarts */
    bool listed;                       /* a replica has listed the model, so no client invented the
                                        * name */
    uint16_t name_len;                 /* 0: the row has no name (row 0) */
    bool adapter;                      /* a LoRA adapter, as a list or an engine's metrics say */
    uint16_t parent;                   /* the row of an adapter's base; 0: not known */
    char name[NODE_MODEL_NAME_MAX];
};

struct node_models;

/* Sets a ratio from the settings or from a replica, in place of samples from earlier prompts. */
void node_model_bytes_believe(struct node_model *row, double bytes_per_token);
/* An answer reported the prompt's tokens (> 0), and the media's tokens (0 or less: not
 * reported). */
void node_model_bytes_add(struct node_model *row, uint64_t bytes,
                          const struct chain_content *content, double tokens,
                          const int64_t media_tokens[CHAIN_MEDIA]);

/* ERR_NOMEM. The two figures are believed until answers teach others. */
MUST_USE int node_models_create(struct node_models **out, const struct hash_secret *secret,
                                double bytes_per_token, double output_tokens);
void node_models_destroy(struct node_models *m);
/* Ranges of the learned figures over all served models; the figures of row 0 if no model is
 * served. */
struct node_models_range {
    double bytes_per_token_min, bytes_per_token_max;
    double image_tokens_min, image_tokens_max;
    double output_tokens_min, output_tokens_max;
};
struct node_models_range node_models_range(const struct node_models *m);

void node_models_check(const struct node_models *m);

/* Replaces the replica's list of models. Empty and too long names are skipped. ERR_FULL: the table
 * has no place for all names; the others are known. */
MUST_USE int node_models_set(struct node_models *m, unsigned replica, const struct slice *ids,
                             unsigned count);

/* Adds a model to the replica's list. Errors as node_models_set(). */
MUST_USE int node_models_also(struct node_models *m, unsigned replica, struct slice id);

/* Marks a known model as an adapter, of the base `parent` if the base is known. */
void node_models_adapter(struct node_models *m, struct slice name, struct slice parent);
bool node_models_is_adapter(const struct node_models *m, struct slice name);
/* Sets if the replica loads unlisted adapters on request (`loads`). */
void node_models_on_demand(struct node_models *m, unsigned replica, bool loads);
bool node_models_any_on_demand(const struct node_models *m);

/* Forgets everything about number `replica`: the number now belongs to another replica, whose
 * models are unknown. */
void node_models_forget(struct node_models *m, unsigned replica);
/* From now on the replica refuses to list models. The last list counts as learned from answers. */
void node_models_unlist(struct node_models *m, unsigned replica);
/* The list and the answers were another engine's: the replica may serve any model. */
void node_models_unknow(struct node_models *m, unsigned replica);
bool node_models_listed(const struct node_models *m, unsigned replica);

/* A client's request shows that the replica serves a model: the replica answered for the model, or
 * (`by_list`) gave the client a list with the model. Ignored if the replica has listed its
 * models. */
void node_models_learn(struct node_models *m, unsigned replica, struct slice name, bool by_list);
/* The replica denied a client's request for the model. Returns true if the denial is held against
 * the replica from now on. */
bool node_models_deny(struct node_models *m, unsigned replica, struct slice name, uint64_t now_ms);
/* The replica accepted a request for the model, sent at `sent_ms`. Returns true if a denial of the
 * model was held against the replica until now. Does nothing before the first denial
 * (_denied_any). */
bool node_models_accepted(struct node_models *m, unsigned replica, struct slice name,
                          uint64_t sent_ms, uint64_t now_ms);
bool node_models_denied_any(const struct node_models *m);
/* The replica's new list is complete: denials of models that it lacks are no longer held against
 * the replica. */
void node_models_unlisted_let_go(struct node_models *m, unsigned replica);
/* The denials held against a replica. */
struct node_denials {
    unsigned held;
    uint64_t until_ms; /* no requests for a denied model until then; a past time: the replica may be
                        * asked */
};
struct node_denials node_models_denials(const struct node_models *m, unsigned replica);
/* The engine may have been replaced since it answered for the model, so that answer no longer
 * counts. Ignored if the replica has listed its models. */
void node_models_doubt(struct node_models *m, unsigned replica, struct slice name);
/* The replica listed its models, asked at `asked_ms`: earlier denials no longer count. */
void node_models_listed_anew(struct node_models *m, unsigned replica, uint64_t asked_ms);
/* True if the replica lately denied the model. */
bool node_models_denied(const struct node_models *m, unsigned replica, struct slice name,
                        uint64_t now_ms);

/* Iterates over the models listed by the replica, or known to be served by it. Call with *at = 0
 * first. False after the last model; `name` is then unchanged. */
bool node_models_next(const struct node_models *m, unsigned replica, unsigned *at,
                      struct slice *name);

/* The replicas to ask for the model: replicas serving the model, replicas without a list of models,
 * and replicas loading models on demand. All replicas serve an empty name. */
void node_models_serving(const struct node_models *m, struct slice name,
                         struct node_replica_set *out);
/* The replicas known to serve the model. Valid until a row is made. */
const struct node_replica_set *node_models_surely(const struct node_models *m, struct slice name);
bool node_models_known(const struct node_models *m, struct slice name);

/* In SGLang a request's model may name an adapter, `base:adapter`; lists have only the base.
 * Returns the base of such a name if no replica serves the whole name and the base is known;
 * otherwise empty. */
struct slice node_models_base(const struct node_models *m, struct slice name);

/* The row of a name; if it has none, the row of the name's base (node_models_base), else row 0. Any
 * call that makes a row may give the row to another model. */
struct node_model *node_models_row(struct node_models *m, struct slice name);
/* node_models_row_number() returns a row's number, to be stored in a booking; node_models_row_at()
 * returns the row of a number. If the row has another name by the booking's end, a sample goes to
 * the wrong model, which does no harm. */
unsigned node_models_row_number(const struct node_models *m, const struct node_model *row);
struct node_model *node_models_row_at(struct node_models *m, unsigned number);
/* The row of the name itself, made if missing; row 0 for an empty name. NULL: the name is too long,
 * or the table is full. */
struct node_model *node_models_row_made(struct node_models *m, struct slice name);
/* Number of the last row with a name; 0: none. */
unsigned node_models_last(const struct node_models *m);

#endif

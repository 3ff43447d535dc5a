/* The tokens of answered prompts, summed up per replica and model since the start: all tokens, and
 * tokens from the cache. Only answers with both numbers count, so the share served from cache is
 * never above 1.
 *
 * Each pair of replica and model has a row, if a replica has listed the model, to the router or to
 * a client (`listed` in node/replica/model.h). There are at most NODE_ANSWERED_ROWS_MAX rows; they
 * are freed with their replica. Each replica also has a row without a name, which always has room.
 * That row counts all other answers: those beyond the limit, and those for names used only by
 * clients. */
#ifndef NODE_REPLICA_ANSWERED_H
#define NODE_REPLICA_ANSWERED_H

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"
#include "node/replica/limits.h"

struct node_answered;

struct node_answered_row {
    unsigned replica;
    struct slice model;     /* empty: the row without a name. Points into the table; valid until
                             * node_answered_forget() */
    uint64_t prompt_tokens; /* cached tokens included */
    uint64_t cached_tokens; /* at most prompt_tokens */
};

/* ERR_NOMEM. */
MUST_USE int node_answered_create(struct node_answered **out, const struct hash_secret *secret);
void node_answered_destroy(struct node_answered *a);

/* Counts an answer that reported both figures. At most `prompt_tokens` of the cached tokens count.
 * `replica` is below NODE_REPLICAS_MAX. */
void node_answered_add(struct node_answered *a, unsigned replica, struct slice model,
                       uint64_t prompt_tokens, uint64_t cached_tokens);

/* Removes the rows of replica number `replica`: the number now belongs to another replica. */
void node_answered_forget(struct node_answered *a, unsigned replica);

/* Iterates over all rows with answers: call with *at = 0 first; false after the last row. */
bool node_answered_next(const struct node_answered *a, unsigned *at, struct node_answered_row *out);

#endif

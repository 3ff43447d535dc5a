/* Who may call, and how much: the keys of clients.
 *
 * The shell hands in tables as it reads the file (access_take()); the proxy asks who a key belongs
 * to and whether it may go on; the replication carries what keys with limits use to the other
 * routers and brings what those count (node/cluster/replication.h).
 *
 *   access_take()     a file was read
 *   access_find()     whose key is it?
 *   access_begin()    one request more: may it?
 *   access_tokens()   it used so many
 *   access_end()      exactly once after each access_begin() that said ACCESS_GOOD
 *
 * Limits over several routers are approximate: each adds up its own count and what the others
 * published last. What all let in between two messages of theirs may be too much.
 *
 * `now_ms` is the monotonic clock; access_clock() says how far cluster time is from it. Pure.
 */
#ifndef NODE_ACCESS_ACCESS_H
#define NODE_ACCESS_ACCESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/prometheus.h"
#include "node/access/table.h"

struct access;

/* Without a key in it, nobody may call. ERR_NOMEM. */
MUST_USE int access_create(struct access **out);
/* Whoever holds a key has dropped it. NULL is fine. */
void access_destroy(struct access *a);
void access_check(const struct access *a);

/* From now on these keys; it owns the table. What names used that it has too stays counted. */
void access_take(struct access *a, struct access_table *table);
/* The file cannot be used any more; or (false) it can. For metrics alone. */
void access_refused(struct access *a, bool refused);
/* NULL: nobody's. Hold it to keep it longer than for the call. */
struct access_key *access_find(const struct access *a, struct slice secret);

/* Counts the request if it may go on (ACCESS_GOOD), else the refusal; `wait_s`: when to ask again.
 */
enum access_verdict access_begin(struct access *a, struct access_key *k, uint64_t now_ms,
                                 unsigned *wait_s);
/* The same of a request that was not even asked about: it is for a model that the key may not use,
 * or its like. */
void access_note_refusal(struct access *a, struct access_key *k, enum access_verdict v);
/* What a request used. */
struct access_tokens {
    uint64_t prompt, cached, completion;
};
void access_tokens(struct access *a, struct access_key *k, const struct access_tokens *tokens,
                   uint64_t now_ms);
void access_end(struct access *a, struct access_key *k);

/* --- with other routers ----------------------------------------------------------------------- */

/* Cluster time is so far ahead of the monotonic clock. */
void access_clock(struct access *a, int64_t ahead_ms);
/* Appends what changed, at most ACCESS_NEWS_BYTES; the rest comes with the next call. What is
 * active is published again every few seconds, for routers that missed it. Nothing where there is
 * none. ERR_NOMEM. */
MUST_USE int access_news_write(struct access *a, uint64_t now_ms, struct buf *out);
/* What another router wrote. ERR_SYNTAX: malformed, what came before that is taken. */
MUST_USE int access_news_read(struct access *a, uint64_t router, struct slice news,
                              uint64_t now_ms);

/* Keys, requests, refusals, tokens, by name (metrics.c). NULL: no keys are asked for. */
void access_metrics(const struct access *a, struct prometheus *p);

#endif

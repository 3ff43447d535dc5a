/* The keys of clients: which clients may call, and how much.
 *
 * The shell passes a table each time it reads the file (access_take()). The proxy looks up a key
 * and asks if a request may go on. The replication sends the use of limited keys to the other
 * routers, and passes on the counts that they publish (node/cluster/replication.h).
 *
 *   access_take()     a file was read
 *   access_find()     look up a key
 *   access_begin()    may another request go on?
 *   access_tokens()   count a request's tokens
 *   access_end()      exactly once after each ACCESS_GOOD from access_begin()
 *
 * Limits over several routers are approximate: each router adds the other routers' latest published
 * counts to the local count. Together the routers may exceed a limit by the requests admitted
 * between two messages.
 *
 * `now_ms` is the monotonic clock; access_clock() sets the offset to cluster time. Pure.
 */
#ifndef NODE_ACCESS_ACCESS_H
#define NODE_ACCESS_ACCESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/prometheus.h"
#include "node/access/table.h"

struct access;

/* Until a table is set, no client may call. ERR_NOMEM. */
MUST_USE int access_create(struct access **out);
/* All holders must have dropped their keys. NULL is fine. */
void access_destroy(struct access *a);
void access_check(const struct access *a);

/* Replaces the table and owns it. The counts of names in both tables stay. */
void access_take(struct access *a, struct access_table *table);
/* Sets whether the file is unusable now (`refused`). Only for metrics. */
void access_refused(struct access *a, bool refused);
/* Returns the key with this secret; NULL: unknown. Hold the key to use it after the call. */
struct access_key *access_find(const struct access *a, struct slice secret);

/* Counts the request if it may go on (ACCESS_GOOD). If not, counts the refusal and sets `wait_s`:
 * when to retry. */
enum access_verdict access_begin(struct access *a, struct access_key *k, uint64_t now_ms,
                                 unsigned *wait_s);
/* Counts a refusal without access_begin(): e.g. the key may not use the model. */
void access_note_refusal(struct access *a, struct access_key *k, enum access_verdict v);
/* The tokens of a request; `cached` is a part of `prompt`. */
struct access_tokens {
    uint64_t prompt, cached, completion;
};
void access_tokens(struct access *a, struct access_key *k, const struct access_tokens *tokens,
                   uint64_t now_ms);
void access_end(struct access *a, struct access_key *k);

/* --- with other routers ----------------------------------------------------------------------- */

/* Sets the offset of cluster time to the monotonic clock. */
void access_clock(struct access *a, int64_t ahead_ms);
/* Appends the changed use of keys with limits, at most ACCESS_NEWS_BYTES; the next call appends the
 * rest. Active keys are published again every few seconds, for routers that missed a message.
 * Appends nothing if nothing changed. ERR_NOMEM. */
MUST_USE int access_news_write(struct access *a, uint64_t now_ms, struct buf *out);
/* Reads another router's message. ERR_SYNTAX: malformed; the rows before the fault are taken. */
MUST_USE int access_news_read(struct access *a, uint64_t router, struct slice news,
                              uint64_t now_ms);

/* Writes the number of keys, and the requests, refusals and tokens by name (metrics.c). `a` is NULL
 * if keys are not required. */
void access_metrics(const struct access *a, struct prometheus *p);

#endif

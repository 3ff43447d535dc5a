/* What a router keeps on disk, so that it starts warm: one file, of which this is the bytes.
 *
 *   "GRAPEVINE-STATE\n"  then frames: kind 1 | length 4 | body | check 8
 *
 *   HEAD    what it is of: version, cluster time, settings, and the secret of a router alone
 *   PATHS   checkpoints of prompts, and where they stand (node/kv/paths.h)
 *   FEED    what one engine holds, by its KV events (node/kv/reader.h)
 *   STATE   a chunk of the shared state (crdt/state.h)
 *   LEARNED what this router learned of replicas (crdt/learned.h)
 *   TOLD    what answers told of models and prompts (node/route/recall.h)
 *   END     nothing; no byte follows
 *
 * The check of a frame is a hash of it and of the check before, so that each byte, and the order,
 * is covered: a file that was cut, or has one wrong bit, is refused as a whole before anything of
 * it is believed. It shows accidents. Against an attacker the file's mode protects.
 *
 * The state is written while it changes, as for a router that joins. What must not come back is not
 * taken in: reports are of routers that lived then, and are passed over, as is what has expired
 * meanwhile, or is of the future. What this router learned of replicas it takes for another's word.
 * The order of joins does not matter: a router that reads its file and then joins others has what
 * both know.
 *
 * Pure: bytes come out in pieces of less than a millisecond each, but for one tree of blocks.
 */
#ifndef NODE_CLUSTER_KEEP_H
#define NODE_CLUSTER_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"
#include "node/cluster/state.h"

struct crdt_learned;
struct kv_readers;

enum {
    NODE_KEEP_VERSION = 2,
    /* A longer file is refused. One that is written ends before that, with a part of the state. */
    NODE_KEEP_BYTES_MAX = 256 << 20,
    NODE_KEEP_FUTURE_MS = 60000, /* so far may a file be ahead of this machine's clock */
};

/* --- writing --- */

struct node_keep;

/* All borrowed until node_keep_end(). */
struct node_keep_source {
    const struct node_state *state;
    const struct kv_readers *readers; /* NULL: none */
    /* What was learned of the replica; false: nothing. */
    bool (*learned)(void *context, unsigned slot, struct crdt_learned *out);
    /* Appends the next piece of what answers told: 1, or 0 and nothing. `at` begins as zeroes.
     * NULL: there is none. ERR_NOMEM. */
    int (*told)(void *context, unsigned at[2], struct buf *out);
    void *context;
};

/* ERR_NOMEM. */
MUST_USE int node_keep_begin(struct node_keep **out, const struct node_keep_source *source,
                             uint64_t now_ms);
/* Appends the next piece: 1, or 0: the file is whole. ERR_STALE: the clock was set back meanwhile,
 * begin anew; ERR_NOMEM. */
MUST_USE int node_keep_next(struct node_keep *k, struct buf *out);
void node_keep_end(struct node_keep *k);

/* --- reading --- */

/* A file whose every byte was checked. */
struct node_kept {
    struct slice file; /* borrowed */
    uint64_t cluster_ms;
    struct node_agreement agreement;
    bool alone; /* written by a router alone, so it has the secret */
    struct hash_secret secret;
};

/* `why` says why not, in a few words that follow "the file": ERR_SYNTAX, ERR_VERSION. */
MUST_USE int node_kept_read(struct node_kept *out, struct slice file, const char **why);
/* Joins it. `s` has its secret and the present time, and has heard of nobody else. `readers` may be
 * NULL, and copies what it keeps. ERR_DENIED: it is of another cluster; ERR_RANGE: of other
 * settings; ERR_STALE: too old; ERR_RANGE too: of the future. Then nothing was joined. */
MUST_USE int node_kept_join(const struct node_kept *k, struct node_state *s,
                            struct kv_readers *readers, uint64_t now_ms, const char **why);
/* What was learned of those replicas that `s` knows, after node_kept_join(). */
void node_kept_learned(const struct node_kept *k, const struct node_state *s,
                       void (*learned)(void *context, unsigned slot,
                                       const struct crdt_learned *learned),
                       void *context);
/* What answers told, piece by piece. */
void node_kept_told(const struct node_kept *k, void (*told)(void *context, struct slice piece),
                    void *context);

#endif

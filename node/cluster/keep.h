/* Writes and reads the bytes of the state file, from which a router starts with a warm index.
 *
 *   "GRAPEVINE-STATE\n"  then frames: kind 1 | length 4 | body | check 8
 *
 *   HEAD    version, cluster time, settings, and the secret if the router has no cluster
 *   PATHS   checkpoints of prompts, and their positions (node/kv/paths.h)
 *   FEED    an engine's cache, by KV-cache events (node/kv/reader.h)
 *   STATE   a chunk of the shared state (crdt/state.h)
 *   LEARNED measurements of replicas (crdt/learned.h)
 *   TOLD    facts from answers about models and prompts (node/route/recall.h)
 *   END     nothing; no byte follows
 *
 * A frame's check is a hash of the frame and of the previous frame's check, so it covers each byte
 * and the order. A truncated file, or a file with a wrong bit, is refused as a whole before any of
 * it is used. The check detects accidents. The file's mode protects against attackers.
 *
 * The state is written while it changes, as for a joining router. Reading leaves out reports of
 * routers, expired entries, and entries of the future. The router treats measurements of replicas
 * from the file like another router's. The order does not matter: a router that reads the file and
 * then joins others has the union of both.
 *
 * Pure: each piece takes less than a millisecond, except for an engine's tree of blocks.
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
    /* A longer file is refused. Writing stops before that, with only a part of the state. */
    NODE_KEEP_BYTES_MAX = 256 << 20,
    NODE_KEEP_FUTURE_MS = 60000, /* maximum by which a file may be ahead of cluster time */
};

/* --- writing --- */

struct node_keep;

/* The data to write, borrowed until node_keep_end(). */
struct node_keep_source {
    const struct node_state *state;
    const struct kv_readers *readers; /* NULL: no KV-cache events are read */
    /* Gives the measurements of a replica; false: no measurements. */
    bool (*learned)(void *context, unsigned slot, struct crdt_learned *out);
    /* Appends the next piece of facts from answers: 1, or 0 at the end. `at` is the position, and
     * begins as zeroes. ERR_NOMEM. The pointer may be NULL. */
    int (*told)(void *context, unsigned at[2], struct buf *out);
    void *context;
};

/* ERR_NOMEM. */
MUST_USE int node_keep_begin(struct node_keep **out, const struct node_keep_source *source,
                             uint64_t now_ms);
/* Appends the next piece. Returns 1, or 0 if the file is complete. ERR_STALE: the clock was set
 * back meanwhile, so start again. ERR_NOMEM. */
MUST_USE int node_keep_next(struct node_keep *k, struct buf *out);
void node_keep_end(struct node_keep *k);

/* --- reading --- */

/* A file whose bytes were all checked. */
struct node_kept {
    struct slice file; /* borrowed */
    uint64_t cluster_ms;
    struct node_agreement agreement;
    bool alone; /* the file is from a router without a cluster, so it contains the secret */
    struct hash_secret secret;
};

/* Checks a file. ERR_SYNTAX, ERR_VERSION: `why` gets the reason, in words that continue "the
 * file". */
MUST_USE int node_kept_read(struct node_kept *out, struct slice file, const char **why);
/* Joins the file into `s`, which must have the secret and the current time, and no state from other
 * routers yet. `readers` may be NULL, and copies the data to keep. On an error nothing is joined.
 * ERR_DENIED: another cluster's file; ERR_RANGE: other settings, or from the future; ERR_STALE: too
 * old. */
MUST_USE int node_kept_join(const struct node_kept *k, struct node_state *s,
                            struct kv_readers *readers, uint64_t now_ms, const char **why);
/* Calls `learned` with the file's measurements of each replica that has a slot in `s`. To be called
 * after node_kept_join(). */
void node_kept_learned(const struct node_kept *k, const struct node_state *s,
                       void (*learned)(void *context, unsigned slot,
                                       const struct crdt_learned *learned),
                       void *context);
/* Calls `told` with each piece of the file's facts from answers. */
void node_kept_told(const struct node_kept *k, void (*told)(void *context, struct slice piece),
                    void *context);

#endif

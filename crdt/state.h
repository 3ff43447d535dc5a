/* The replicated state of a router: several small lattices, with deltas, a digest, anti-entropy and
 * a snapshot. It holds everything on which routers must agree.
 *
 *   registry     replica name -> last listing, cache, operators' wishes          crdt/registry.h
 *   index        (prefix, replica incarnation) -> time slice of last use              crdt/index.h
 *   reports      (router, replica) -> load, view, learned figures                  crdt/reports.h
 *   poison       hash of a request -> engines that died after it                     crdt/poison.h
 *
 * A change by this router is queued for the others (crdt_state_produce); the others' deltas are
 * joined (crdt_state_apply). Joins are commutative, associative and idempotent, so deltas may be
 * repeated and reordered. If a delta is lost, anti-entropy brings the contents.
 *
 * A *slot* is this router's number of a replica, the same in the registry, the index and
 * node/route. When a name is forgotten, all data under the slot is forgotten too. The slot may then
 * get another name, unless it is held. On the wire a replica is a 48-bit hash of the name, and the
 * replica's cache a 31-bit *rkey*, a hash of name and incarnation. A restarted engine has a new
 * rkey, and observations of the old rkey no longer count.
 */
#ifndef CRDT_STATE_H
#define CRDT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/chain.h"
#include "base/err.h"
#include "base/slice.h"
#include "crdt/index.h"
#include "crdt/poison.h"
#include "crdt/registry.h"
#include "crdt/reports.h"

struct crdt_state_config {
    struct crdt_index_config index; /* if not `replicated`, nothing is queued */
    uint64_t self;                  /* this router's id */
    uint64_t outbox_bytes;          /* 0: 1 MiB; observations beyond it are left to anti-entropy */
    uint32_t generation_ms;         /* length of a generation of the index; 0: 15 s */
    unsigned names_max;             /* this, rows_max, names_ttl_s and is_name: as in struct
                                     * crdt_registry_config */
    unsigned rows_max;
    uint32_t names_ttl_s;
    bool (*is_name)(struct slice name);
};

struct crdt_origin {
    uint64_t router;
    uint64_t epoch;
    uint64_t seq;
};

struct crdt_state;

/* ERR_RANGE, ERR_LIMIT (as crdt_index_create), ERR_NOMEM. */
MUST_USE int crdt_state_create(struct crdt_state **out, const struct crdt_state_config *config);
void crdt_state_destroy(struct crdt_state *s);
void crdt_state_check(const struct crdt_state *s);

/* Advances index, registry and poison list to this cluster time; they ignore an earlier time.
 * Repeats the names of this router's replicas before they expire, and forgets names that no router
 * has repeated for names_ttl_s. Cheap when less than a second has passed. */
void crdt_state_clock(struct crdt_state *s, uint64_t cluster_ms);
/* The clock was set by `by_ms`, and `s` has the new time: moves the times of early observations
 * (crdt/early.h). */
void crdt_state_clock_moved(struct crdt_state *s, int64_t by_ms);
/* Copies the registry and slots of `from`, whose clock was ahead, and this router's reports as last
 * sent, so that later changes count as changes. `s` is new. */
void crdt_state_copy_own(struct crdt_state *s, const struct crdt_state *from);
/* To be called after crdt_state_copy_own(). Copies the observations of `from` that lie in the
 * future of `s`, moved back by the difference of the clocks. They are news, because routers with a
 * correct clock refused them. Also copies observations waiting for a start time, with unchanged
 * times: crdt_state_clock_moved() must follow. */
void crdt_state_copy_future(struct crdt_state *s, const struct crdt_state *from);

struct crdt_index *crdt_state_index(struct crdt_state *s); /* for look-ups and memory counts */
const struct crdt_registry *crdt_state_registry(const struct crdt_state *s);
const struct crdt_reports *crdt_state_reports(const struct crdt_state *s);
const struct crdt_poison *crdt_state_poison(const struct crdt_state *s);

/* --- what this router does and sees --------------------------------------------------------- */

/* The slot of the replica with this name; makes the row if it is new. From now on this router lists
 * the replica, so that no router forgets the name. ERR_AGAIN: the row waits for a slot; ERR_FULL:
 * there is no room to wait; ERR_RANGE: the name is empty or too long. */
MUST_USE int crdt_state_name(struct crdt_state *s, struct slice name);
void crdt_state_unname(struct crdt_state *s, struct slice name);
/* This router saw the replica up, or down. If slots are short, a replica seen up keeps the slot,
 * and a replica only reported by others loses it. A replica added by operators and seen up is also
 * named again. */
void crdt_state_seen(struct crdt_state *s, unsigned slot, bool up);
/* An operator's wish (crdt/registry.h); 1 if it was news, else 0. */
MUST_USE int crdt_state_wish(struct crdt_state *s, unsigned slot, enum crdt_wish wish);
MUST_USE int crdt_state_drain(struct crdt_state *s, unsigned slot, bool draining);
/* An operator adds a replica, which ends the replica's drain. Returns the slot; errors as
 * crdt_state_name(). A waiting row is put in use later without another call. */
MUST_USE int crdt_state_add(struct crdt_state *s, struct slice name);
#ifdef GRAPEVINE_LAB
/* For BUG(LIES): as if operators had added the replica, and a router had last named it `ago_s`
 * ago. */
void crdt_state_lie(struct crdt_state *s, struct slice name, uint32_t ago_s);
#endif
/* An operator removes a replica. 1: the removal was news; 0: it was not; ERR_NOT_FOUND. */
MUST_USE int crdt_state_remove(struct crdt_state *s, struct slice name);
/* Holds or releases a slot. While a caller has data under a slot, no other name gets it. */
void crdt_state_hold(struct crdt_state *s, unsigned slot, bool held);
/* The replica lost the cache. `started`: the engine's start time in ms, or 0 if the engine shows
 * none (then the incarnation rises by 1). Returns whether this was news. */
bool crdt_state_restarted(struct crdt_state *s, unsigned slot, uint64_t started);

/* The functions below do nothing, or return ERR_NOT_FOUND, for a slot whose name was forgotten.
 *
 * Records a decision: joins the prompt's points for the replica in the present generation, and
 * queues the points that are news. Results as crdt_index_observe_chain(). */
MUST_USE int crdt_state_observe(struct crdt_state *s, const struct chain *chain, unsigned slot);
/* Records that the replica made something (a stored response, a session) with the keyed hash `id`.
 * Results as crdt_index_observe(). */
MUST_USE int crdt_state_bind(struct crdt_state *s, uint64_t id, unsigned slot);
/* Repeats observations from before an engine's start time was known, if it is known now and the
 * observations belong to that process (crdt/early.h). Cheap if there is nothing to repeat. */
void crdt_state_observe_again(struct crdt_state *s);
/* The replica that `id` is bound to by the newest observation, or -1. */
MUST_USE int crdt_state_bound(const struct crdt_state *s, uint64_t id);

/* This router's reports about a replica. A changed report is queued. */
void crdt_state_load(struct crdt_state *s, unsigned slot, const struct crdt_load *load);
void crdt_state_sight(struct crdt_state *s, unsigned slot, const struct crdt_sight *sight);
void crdt_state_learned(struct crdt_state *s, unsigned slot, const struct crdt_learned *learned);

/* Records a request after which the replica died (`slot` -1: no replica died), or a forgiven
 * request. Results as crdt_poison_set(). */
MUST_USE int crdt_state_poisoned(struct crdt_state *s, uint64_t hash, enum crdt_poison_level level,
                                 int slot, uint32_t ttl_s);
/* Counts a refusal of the request by this router. */
void crdt_state_poison_refused(struct crdt_state *s, uint64_t hash);

/* Sends the other routers a tiding, which no router stores (crdt/tidings.h): at most
 * CRDT_TIDING_MAX bytes. `kind` is opaque here. */
void crdt_state_tell(struct crdt_state *s, uint8_t kind, struct slice body);
/* `hear` is called with each tiding of another router, while the router's delta is joined. `hear`
 * must ignore unknown kinds, and bytes after the known part of a body. NULL: tidings are
 * dropped. */
typedef void (*crdt_tiding_fn)(void *context, uint64_t router, uint8_t kind, struct slice body);
void crdt_state_hear(struct crdt_state *s, crdt_tiding_fn hear, void *context);

/* --- deltas, out and in --------------------------------------------------------------------- */

/* Sets this router's epoch, by which peers order this router's reports. A higher epoch queues all
 * of them again. */
void crdt_state_epoch(struct crdt_state *s, uint64_t epoch);
/* Another router is alive with this epoch: from now on, reports of this epoch count. A later epoch
 * drops the router's earlier reports. */
void crdt_state_router(struct crdt_state *s, uint64_t router, uint64_t epoch);
/* A router is dead or has left: drops the router's reports. The router's observations stay until
 * they expire. */
void crdt_state_router_gone(struct crdt_state *s, uint64_t router);

/* Writes the next delta, at most `max` >= 512 bytes; 0: nothing is queued. `seq` is the delta's
 * number, which the delta's reports carry. Replicas come first, because the other records need
 * them; then loads, so that they are never late; tidings come last. */
size_t crdt_state_produce(struct crdt_state *s, uint64_t seq, uint8_t *out, size_t max);
bool crdt_state_has_news(const struct crdt_state *s);
/* Joins a delta. The whole delta is checked before anything is joined: ERR_SYNTAX leaves the state
 * unchanged. Items that are stale, in the future, or of unknown replicas or dead routers are
 * counted and skipped. */
MUST_USE int crdt_state_apply(struct crdt_state *s, const struct crdt_origin *origin,
                              struct slice delta);

/* --- agreeing ------------------------------------------------------------------------------- */

/* 64 bits per class, equal exactly if the states are equal (but for a chance of 2^-64). The index
 * counts from generation `from` on, so only digests with the same `from` can be compared. */
struct crdt_digest {
    uint64_t registry;
    uint64_t index;
    uint64_t reports;
    uint64_t poison;
};
void crdt_state_digest(const struct crdt_state *s, uint32_t from, struct crdt_digest *out);

/* Anti-entropy. A router sends a peer a summary now and then. crdt_state_message() takes a peer's
 * message (a summary or a later step), joins the contents, and appends the answer to `reply`; an
 * empty answer ends the round. `settled`: no delta on the way could explain a difference. A round
 * is
 *
 *   A  summary (digests, estimate)          ->  B  done if equal
 *   A  <- cells of the sketch, as many as the estimate asks for
 *   A  decodes them, joins what A lacks, and sends what B lacks  ->  B
 *
 * and neither side keeps state between messages. ERR_SYNTAX: nothing was joined. */
struct crdt_reconciled {
    bool equal;        /* the message was a summary, and all classes are equal */
    bool incomparable; /* the message was a summary, and the indexes have no common generation */
    bool summary;      /* the message was a summary: peer_now and peer_floor describe the sender's
                        * index */
    uint32_t peer_now;
    uint32_t peer_floor;
    bool decoded;  /* cells were decoded: `differences` counts both directions */
    bool too_many; /* more differences than fit the sketch: take a snapshot */
    uint64_t differences;
    uint64_t joined;  /* observations that were news to this router */
    bool cut_walked;  /* the index was walked for a cut (crdt/reconcile.c) */
    bool cut_decoded; /* cells of a cut were decoded */
    bool cut_hard;    /* all cells of a cut were sent, or could not be decoded */
};
/* A cut (crdt/reconcile.c) needs a walk over the whole index, and a peer could request a cut in
 * each message. After this call the state makes at most one walk. The result serves all requests
 * until the next call, or until the cut proves to be hard. */
void crdt_state_cut_renew(struct crdt_state *s);
MUST_USE int crdt_state_summary(const struct crdt_state *s, struct buf *out);
MUST_USE int crdt_state_message(struct crdt_state *s, struct slice message, bool settled,
                                struct buf *reply, struct crdt_reconciled *out);

/* --- snapshot ------------------------------------------------------------------------------- */

/* The whole state in chunks of at most CRDT_CHUNK_MAX bytes, about 20 KiB for index entries; each
 * chunk can be joined separately. The state may change meanwhile: a router that joins all chunks
 * and all deltas since the first chunk has everything. `from`: the oldest generation to include. */
struct crdt_snapshot {
    uint32_t from;
    uint32_t stage;
    uint64_t position;
    struct crdt_index_cursor cursor;
};
void crdt_snapshot_begin(struct crdt_snapshot *c, uint32_t from);
/* Appends the next chunk and returns 1, or returns 0 at the end. ERR_NOMEM. To be short, a call
 * scans a limited number of index buckets. If all of them are empty, so is the chunk.
 */
MUST_USE int crdt_snapshot_next(const struct crdt_state *s, struct crdt_snapshot *c,
                                struct buf *out);
/* ERR_SYNTAX: malformed; nothing was joined. */
MUST_USE int crdt_snapshot_apply(struct crdt_state *s, struct slice chunk);

struct crdt_state_stats {
    uint64_t observations_in;              /* other routers' observations, news or known */
    uint64_t observations_new;             /* other routers' observations, only news */
    uint64_t observations_out;             /* own observations queued for other routers */
    uint64_t unknown_replica;              /* skipped items about an unknown replica */
    uint64_t unknown_router;               /* skipped reports of a router that is not alive */
    uint64_t stale, future, full;          /* skipped items: too old, too far ahead, no room */
    uint64_t outbox_bytes, outbox_dropped; /* bytes of queued observations; observations dropped,
                                            * left to anti-entropy */
    uint64_t tidings_in, tidings_out;      /* received; queued for other routers */
    uint64_t tidings_dropped;              /* dropped from the queue, because it was full */
    uint64_t malformed;
    uint64_t records_skipped, sections_skipped; /* of kinds unknown to this build */
};
void crdt_state_stats(const struct crdt_state *s, struct crdt_state_stats *out);

#endif

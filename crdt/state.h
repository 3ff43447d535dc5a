/* The replicated state of one router: a product of small lattices, its deltas, its digest, its
 * repair and its snapshot. Everything that two routers must agree on is in here.
 *
 *   registry     replica name -> last listing, cache, operators' wishes          crdt/registry.h
 *   index        (prefix, replica incarnation) -> time slice of last use              crdt/index.h
 *   reports      (router, replica) -> load, view, learned figures                  crdt/reports.h
 *   poison       hash of a request -> engines that died after it                     crdt/poison.h
 *
 * A change here is queued for the others (crdt_state_produce); their deltas are joined
 * (crdt_state_apply). Joins are commutative, associative and idempotent, so deltas may be lost,
 * repeated and reordered as long as each arrives once or anti-entropy brings what it said.
 *
 * A *slot* is this router's number of a replica, the same in the registry, the index and
 * node/route. When a name is forgotten all that is known under its slot is too, and the slot may
 * get another name, unless it is held. On the wire a replica is a 48-bit hash of its name, and its
 * cache a 31-bit *rkey*, a hash of name and incarnation: a restarted engine has a new rkey, and
 * observations of the old one count no more.
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
    struct crdt_index_config index; /* `replicated` decides whether anything is queued at all */
    uint64_t self;                  /* this router */
    uint64_t outbox_bytes;          /* 0: 1 MiB; what exceeds it is left to anti-entropy */
    uint32_t generation_ms;         /* of the index; 0: 15 s */
    unsigned names_max;             /* as in struct crdt_registry_config, and so are */
    unsigned rows_max;
    uint32_t names_ttl_s;
    bool (*is_name)(struct slice name); /* and this */
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

/* Cluster time (never back): moves the index to the present generation, and the registry. What this
 * router looks after is named again in time, and names that nobody named are forgotten. Cheap when
 * less than a second has passed. */
void crdt_state_clock(struct crdt_state *s, uint64_t cluster_ms);
/* The clock was set, and s has the new time: own observations were made at another one than it
 * seemed (crdt/early.h). */
void crdt_state_clock_moved(struct crdt_state *s, int64_t by_ms);
/* The registry of `from`, which had a clock ahead of time, slots and all, and what this router
 * reported: as last sent, so that later changes are seen as changes. `s` is new. */
void crdt_state_copy_own(struct crdt_state *s, const struct crdt_state *from);
/* Then: what was observed in the time of `from` that is the future of `s`, as much earlier as `s`
 * is. That is news: no router with a right clock took it. And what waits for a start time, with its
 * times as they were: crdt_state_clock_moved() follows. */
void crdt_state_copy_future(struct crdt_state *s, const struct crdt_state *from);

struct crdt_index *crdt_state_index(struct crdt_state *s); /* for asking and memory */
const struct crdt_registry *crdt_state_registry(const struct crdt_state *s);
const struct crdt_reports *crdt_state_reports(const struct crdt_state *s);
const struct crdt_poison *crdt_state_poison(const struct crdt_state *s);

/* --- what this router does and sees --------------------------------------------------------- */

/* The slot of a replica by name, made if new. From now on this router names the replica, so that
 * no router forgets the name. ERR_AGAIN: the row waits for a slot; ERR_FULL: there is no room to
 * wait; ERR_RANGE (name). */
MUST_USE int crdt_state_name(struct crdt_state *s, struct slice name);
void crdt_state_unname(struct crdt_state *s, struct slice name);
/* This router saw a replica with a slot up, or down. A replica seen up keeps its slot before
 * merely reported ones, and is named again if operators added it. */
void crdt_state_seen(struct crdt_state *s, unsigned slot, bool up);
/* An operator's wish (crdt/registry.h); 1 if it was news, else 0. */
MUST_USE int crdt_state_wish(struct crdt_state *s, unsigned slot, enum crdt_wish wish);
MUST_USE int crdt_state_drain(struct crdt_state *s, unsigned slot, bool draining);
/* The slot of a replica that an operator adds, no longer drained; errors as crdt_state_name():
 * what waits comes into use by itself. */
MUST_USE int crdt_state_add(struct crdt_state *s, struct slice name);
#ifdef GRAPEVINE_LAB
/* For BUG(LIES): as if operators had added the replica, and a router had last named it that long
 * ago. */
void crdt_state_lie(struct crdt_state *s, struct slice name, uint32_t ago_s);
#endif
/* An operator removes it: 1 if that was news, 0, or ERR_NOT_FOUND. */
MUST_USE int crdt_state_remove(struct crdt_state *s, struct slice name);
/* The caller has data under this slot: no other name gets the slot until release. */
void crdt_state_hold(struct crdt_state *s, unsigned slot, bool held);
/* The replica lost its cache. `started`: the engine's own start time in ms, or 0 where it shows
 * none (then the incarnation is raised by one). Returns whether that was news. */
bool crdt_state_restarted(struct crdt_state *s, unsigned slot, uint64_t started);

/* A slot with a forgotten name keeps nothing (ERR_NOT_FOUND, or nothing happens).
 *
 * A decision: joins the prompt's points for the replica in the present generation and queues those
 * that were news. */
MUST_USE int crdt_state_observe(struct crdt_state *s, const struct chain *chain, unsigned slot);
/* The replica made the thing (a stored response, a session) with the keyed hash `id`. */
MUST_USE int crdt_state_bind(struct crdt_state *s, uint64_t id, unsigned slot);
/* Repeats observations from before an engine's start time was known, if that time is known now
 * and they belong to that process (crdt/early.h). Cheap without news. */
void crdt_state_observe_again(struct crdt_state *s);
/* The replica that it is bound to, by the newest observation, or -1. */
MUST_USE int crdt_state_bound(const struct crdt_state *s, uint64_t id);

/* This router's reports; each queues itself if it changed. */
void crdt_state_load(struct crdt_state *s, unsigned slot, const struct crdt_load *load);
void crdt_state_sight(struct crdt_state *s, unsigned slot, const struct crdt_sight *sight);
void crdt_state_learned(struct crdt_state *s, unsigned slot, const struct crdt_learned *learned);

/* A request after which the replica died (`slot` -1: none did), or that is forgiven; as
 * crdt_poison_set(). */
MUST_USE int crdt_state_poisoned(struct crdt_state *s, uint64_t hash, enum crdt_poison_level level,
                                 int slot, uint32_t ttl_s);
/* This router refused it. */
void crdt_state_poison_refused(struct crdt_state *s, uint64_t hash);

/* Tells the other routers what is no state (crdt/tidings.h): at most CRDT_TIDING_MAX bytes, of a
 * kind of the caller's. */
void crdt_state_tell(struct crdt_state *s, uint8_t kind, struct slice body);
/* `hear` is called with each tiding of another router, while its delta is joined. What a router
 * does not know, of kinds or behind a body, it passes over. NULL: nobody hears them. */
typedef void (*crdt_tiding_fn)(void *context, uint64_t router, uint8_t kind, struct slice body);
void crdt_state_hear(struct crdt_state *s, crdt_tiding_fn hear, void *context);

/* --- deltas, out and in --------------------------------------------------------------------- */

/* The life of this router as peers must order its reports. Raising it queues all own reports. */
void crdt_state_epoch(struct crdt_state *s, uint64_t epoch);
/* Another router is alive in this life: from now on its reports count. A later life drops those of
 * the earlier one. */
void crdt_state_router(struct crdt_state *s, uint64_t router, uint64_t epoch);
/* It is dead or left: its reports are dropped. Its observations stay until they expire. */
void crdt_state_router_gone(struct crdt_state *s, uint64_t router);

/* Writes the next delta, at most `max` >= 512 bytes; 0: nothing is queued. `seq` is the number that
 * it will have: reports carry it. News of replicas first (rare; the rest is not understood
 * without them), then loads, so that they are never late; tidings last. */
size_t crdt_state_produce(struct crdt_state *s, uint64_t seq, uint8_t *out, size_t max);
bool crdt_state_has_news(const struct crdt_state *s);
/* Joins a delta. Checked wholly before anything is joined: ERR_SYNTAX leaves the state as it was.
 * Items that are stale, of the future, of unknown replicas or of routers that are gone are counted
 * and passed over. */
MUST_USE int crdt_state_apply(struct crdt_state *s, const struct crdt_origin *origin,
                              struct slice delta);

/* --- agreeing ------------------------------------------------------------------------------- */

/* 64 bits per class, equal exactly when the states are (but for a chance of 2^-64). The index
 * counts from generation `from` on, which two routers must choose alike. */
struct crdt_digest {
    uint64_t registry;
    uint64_t index;
    uint64_t reports;
    uint64_t poison;
};
void crdt_state_digest(const struct crdt_state *s, uint32_t from, struct crdt_digest *out);

/* Anti-entropy. A summary goes to a peer now and then. crdt_state_message() takes a peer's message
 * (a summary or a later step), joins its contents, and appends the answer to `reply`; an empty
 * answer ends the round. `settled`: no remaining difference is in flight. A round is
 *
 *   A  summary (digests, estimate)          ->  B  equal: done
 *   A  <- cells of the sketch, as many as the estimate asks for
 *   A  decodes, joins what B has more, and sends what B lacks  ->  B
 *
 * and has no state on either side except in the messages. ERR_SYNTAX: nothing was joined. */
struct crdt_reconciled {
    bool equal;        /* it was a summary, and all classes are equal */
    bool incomparable; /* it was one, and no generation of the index is kept by both */
    bool summary;      /* it was a summary: peer_now and peer_floor are the sender's index's */
    uint32_t peer_now;
    uint32_t peer_floor;
    bool decoded;  /* cells were decoded: `differences` counts both directions */
    bool too_many; /* differences beyond what the sketch can show: take a snapshot */
    uint64_t differences;
    uint64_t joined;  /* of them, news to us */
    bool cut_walked;  /* the index was walked for what a floor has left of a span */
    bool cut_decoded; /* cells of such a cut came apart */
    bool cut_hard;    /* all cells of one were sent, or did not come apart */
};
/* A cut needs a walk over the whole index, and a peer could request one in each message. After
 * this call the state makes at most one walk. Its result serves all requests until the next
 * call, or until the cut proves to be hard. */
void crdt_state_cut_renew(struct crdt_state *s);
MUST_USE int crdt_state_summary(const struct crdt_state *s, struct buf *out);
MUST_USE int crdt_state_message(struct crdt_state *s, struct slice message, bool settled,
                                struct buf *reply, struct crdt_reconciled *out);

/* --- snapshot ------------------------------------------------------------------------------- */

/* The whole state in chunks of some 32 KiB (CRDT_CHUNK_MAX at most), each of which can be joined
 * alone, while the state goes on changing: a router that joins all chunks and all deltas since the
 * start has everything. `from`: only generations from there on. */
struct crdt_snapshot {
    uint32_t from;
    uint32_t stage;
    uint64_t position;
    struct crdt_index_cursor cursor;
};
void crdt_snapshot_begin(struct crdt_snapshot *c, uint32_t from);
/* Appends the next chunk; returns 1, or 0 if there was none left. ERR_NOMEM. A chunk may be empty:
 * so that a call is short, it looks at some buckets of the index only, and they may hold nothing.
 */
MUST_USE int crdt_snapshot_next(const struct crdt_state *s, struct crdt_snapshot *c,
                                struct buf *out);
/* ERR_SYNTAX: malformed, nothing of the chunk was joined. */
MUST_USE int crdt_snapshot_apply(struct crdt_state *s, struct slice chunk);

struct crdt_state_stats {
    uint64_t observations_in;  /* of others, joined or known */
    uint64_t observations_new; /* of them, news */
    uint64_t observations_out; /* queued for others */
    uint64_t unknown_replica;  /* items that were passed over, by reason */
    uint64_t unknown_router;
    uint64_t stale, future, full;
    uint64_t outbox_bytes, outbox_dropped; /* observations left to anti-entropy */
    uint64_t tidings_in, tidings_out;      /* of others, queued for others, */
    uint64_t tidings_dropped;              /* and of these, too many to send at once */
    uint64_t malformed;
    uint64_t records_skipped, sections_skipped; /* of kinds that this build does not know */
};
void crdt_state_stats(const struct crdt_state *s, struct crdt_state_stats *out);

#endif

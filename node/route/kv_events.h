/* KV-cache events at the router (docs/adr/0074). One router *reads* an engine's feed (node/kv) and
 * reports news for the index: a checkpoint is gone at the replica, or present although believed
 * gone. All routers use these reports while the replica's events are *live*: a living router
 * reports that it reads the events and that they count.
 *
 * All routers, including the reader's own, send the reader the placed prompts and their outcomes
 * (node/kv/told.h), so that the reader can locate checkpoints in the engine's cache. Nothing is
 * sent while no replica's events are live.
 *
 *   this router's prompts and answers  -->  user, tidings of the shared state
 *   tidings of the others              -->  user
 *   the reader's reports               -->  marks of the shared state (crdt/marks.h) */
#ifndef NODE_ROUTE_KV_EVENTS_H
#define NODE_ROUTE_KV_EVENTS_H

#include "base/json_write.h"
#include "node/kv/asked.h"
#include "node/kv/readers.h"
#include "node/kv/told.h"
#include "node/route/router.h"

/* The reader's callbacks. `path` and `told` get the tidings of all routers; a path may come more
 * than once. Both are called from node_router_place(), node_router_finish() and while deltas are
 * joined. From within them the reader may call only node_router_events_gone() and
 * node_router_events_present(). Arguments are borrowed for the call. */
struct node_events_user {
    void (*path)(void *context, const struct kv_path *path);
    void (*told)(void *context, const struct kv_told *told);
    void *context;
    /* Gets the reader's state; false: this router does not read the replica's feed. NULL: this
     * router reads no feeds. */
    bool (*row)(void *context, unsigned replica, struct kv_reading_row *out);
};
/* Sets the reader's callbacks. NULL: this router has no reader any more. */
void node_router_events_watch(struct node_router *r, const struct node_events_user *user);

/* `live`: this router reads the replica's feed, and the router's reports count. Stays in effect
 * until the next call, even if the engine restarts. */
void node_router_events_live(struct node_router *r, unsigned replica, bool live);
/* The role that this router offers for the replica's feed. */
enum node_reads {
    NODE_READS_NOT,  /* does not read; the initial role */
    NODE_READS_TURN, /* reads when this router's turn comes */
    /* Goes before all routers in another role: the engine connected to this router, or this router
     * knows the contents of the engine's cache. */
    NODE_READS_AHEAD,
};
void node_router_events_reads(struct node_router *r, unsigned replica, enum node_reads reads);
/* Number of this router's answers for which the engine must have stored a block, and the feed had
 * to report a block. If the engine's block size is unknown, no answer counts. */
uint64_t node_router_events_stored(const struct node_router *r, unsigned replica);
/* True if the replica's events are live, read by this router or another. */
bool node_router_events_are_live(const struct node_router *r, unsigned replica);

/* True if some vLLM replica's events are live, so that the router can ask the engine for a prompt's
 * tokens. */
bool node_router_events_can_ask(const struct node_router *r);

/* Tokens per block, if the router can ask the chosen replica for the prompt's tokens
 * (node/kv/asked.h). This requires live events, a vLLM engine and a prompt without a name space, as
 * far as known. 0: cannot ask. The booking is open. */
uint32_t node_router_events_asks(const struct node_router *r, const struct node_decision *decision);

/* The engine listed all tokens of the prompt on request; the booking keeps what `asked` shows.
 * `cached_tokens` of these tokens were in the engine's cache; -1: not reported. */
void node_router_events_tokens(struct node_router *r, const struct node_decision *decision,
                               const struct chain *chain, const struct kv_asked *asked,
                               int64_t cached_tokens);

/* Writes the state of this router's reader of the replica's events, as an object; null: no
 * reader. */
void node_router_events_write(const struct node_router *r, unsigned replica, uint64_t now_ms,
                              struct json_writer *w);

/* This router's reader reports to all routers that a checkpoint is gone, or present: see
 * crdt_state_mark_gone() and crdt_state_mark_present(). A present checkpoint does not count if
 * older than the oldest generation that the router believes to be cached. */
MUST_USE int node_router_events_gone(struct node_router *r, unsigned replica, uint64_t id48,
                                     uint8_t code);
MUST_USE int node_router_events_present(struct node_router *r, unsigned replica, uint64_t id48,
                                        uint8_t code);

#endif

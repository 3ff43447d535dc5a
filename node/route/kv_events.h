/* KV-cache events at the router (docs/adr/0074). One router *reads* an engine's feed (node/kv) and
 * says what the index does not know: a checkpoint is gone at the replica, or present though it
 * should be gone. All routers choose by that, as long as the replica's events are *live*: a living
 * router says that it reads them and that they count.
 *
 * For the reader to know which checkpoints stand where in the engine's cache, all routers tell it
 * which prompts they placed and what became of them (node/kv/told.h), their own it hears too. All
 * of that happens only while the events of some replica are live.
 *
 *   this router's prompts and answers  -->  user, tidings of the shared state
 *   tidings of the others              -->  user
 *   the reader's word                  -->  marks of the shared state (crdt/marks.h)
 */
#ifndef NODE_ROUTE_KV_EVENTS_H
#define NODE_ROUTE_KV_EVENTS_H

#include "base/json_write.h"
#include "node/kv/asked.h"
#include "node/kv/readers.h"
#include "node/kv/told.h"
#include "node/route/router.h"

/* Tidings of this router and the others; a path may come more than once. Out of
 * node_router_place(), node_router_finish() and while deltas are joined: the user may say gone and
 * present from there, and nothing else. Borrowed for the call. */
struct node_events_user {
    void (*path)(void *context, const struct kv_path *path);
    void (*told)(void *context, const struct kv_told *told);
    void *context;
    /* What the reader says of itself; false: this router does not read there. NULL: never. */
    bool (*row)(void *context, unsigned replica, struct kv_reading_row *out);
};
/* NULL: nobody reads here any more. */
void node_router_events_watch(struct node_router *r, const struct node_events_user *user);

/* This router reads the feed of the replica, and what it says counts, or no longer does. Holds
 * until the next call, also where the engine restarts. */
void node_router_events_live(struct node_router *r, unsigned replica, bool live);
/* How the others count on this router for the replica's feed. */
enum node_reads {
    NODE_READS_NOT,  /* at first */
    NODE_READS_TURN, /* where it is its turn */
    /* It goes before all that do not say so: the engine connected to it, or it knows what is
     * there. */
    NODE_READS_AHEAD,
};
void node_router_events_reads(struct node_router *r, unsigned replica, enum node_reads reads);
/* Answers through this router for which the engine must have stored a block, so its feed had to
 * tell of it. Without the engine's block size none counts. */
uint64_t node_router_events_stored(const struct node_router *r, unsigned replica);
/* Whether its events are live, read by this router or another. */
bool node_router_events_are_live(const struct node_router *r, unsigned replica);

/* Whether some vLLM's are. */
bool node_router_events_can_ask(const struct node_router *r);

/* Tokens of a block, if the replica that was chosen can be asked for the tokens of that prompt
 * (node/kv/asked.h): its events are live, it is a vLLM, and the prompt has no name space, as far as
 * the router knows. 0: it cannot. The booking is open. */
uint32_t node_router_events_asks(const struct node_router *r, const struct node_decision *decision);

/* The engine was asked and listed all tokens of that prompt. `cached_tokens` of these were in its
 * cache; -1: it does not say. */
void node_router_events_tokens(struct node_router *r, const struct node_decision *decision,
                               const struct chain *chain, const struct kv_asked *asked,
                               int64_t cached_tokens);

/* What this router's reader of the replica's events knows, as an object; null: it reads none. */
void node_router_events_write(const struct node_router *r, unsigned replica, uint64_t now_ms,
                              struct json_writer *w);

/* The word of this router's reader on one checkpoint, for all routers: as crdt_state_mark_gone()
 * and crdt_state_mark_present(). What is older than the router believes to be there counts as not
 * present. */
MUST_USE int node_router_events_gone(struct node_router *r, unsigned replica, uint64_t id48,
                                     uint8_t code);
MUST_USE int node_router_events_present(struct node_router *r, unsigned replica, uint64_t id48,
                                        uint8_t code);

#endif

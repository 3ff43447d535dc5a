/* The router: chooses the replica that should serve a request.
 *
 * The router owns the replica table, the bookings, the learned figures and the policies. The code
 * is pure: time comes in as an argument, randomness from the configured seed. README.md shows how
 * to use the router.
 *
 * Invariants (node_router_check):
 * 1. A replica's load is the sum of the open bookings there; without bookings the load is 0.
 * 2. A booking is released exactly once; the use of a released handle aborts.
 * 3. No policy ever returns an excluded replica, a replica that is down or draining, or a replica
 *      without the model.
 *
 * Times are milliseconds of a monotonic clock.
 *
 * The state shared by all routers is in the borrowed struct node_state (node/cluster/state.h). A
 * replica has the same index here and there. A replica is in use if a router names it
 * (node/route/share.h) or an operator added the name. A replica removed by operators is not in use.
 * After a replica has left, the index stays reserved until the name is forgotten (crdt/registry.h)
 * and nothing here refers to the index. Then the index belongs to another replica, or is free: an
 * absent replica. */
#ifndef NODE_ROUTE_ROUTER_H
#define NODE_ROUTE_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/chain.h"
#include "base/err.h"
#include "base/prometheus.h"
#include "base/slice.h"
#include "node/cluster/state.h"
#include "node/replica/health.h"
#include "node/replica/reject.h"
#include "node/replica/renderings.h"
#include "node/replica/scrape.h"
#include "node/replica/standing.h"
#include "node/replica/terms.h"
#include "node/route/reason.h"

/* Settings. node/settings/table.c has the defaults, docs/routing.md the explanations. */
struct node_router_config {
    const char *policy;        /* a name of node_policy_names */
    const char *plain_policy;  /* a name of node_policy_plain_names, for shadow mode and control */
    bool shadow;               /* the plain policy routes; the choices that `policy` would make are
                                * only counted (shadow.h) */
    double control_share;      /* share of the conversations that the plain policy routes */
    uint64_t seed;             /* for random choices among near-equal candidates */
    double displaced_weight;   /* weight W of the displaced cost (docs/routing.md) */
    double decode_weight;      /* weight V of the decode cost */
    uint32_t reuse_horizon_ms; /* age at which a cached token's chance of reuse is 37 % of that of a
                                * new token */
    double near_tie;           /* costs above the least cost by at most this share, or by at most
                                * 1 ms, count as equal to the least */
    uint64_t cache_tokens;     /* believed cache size if the engine reports none */
    double load_bound;         /* prefix_hash: limit of a replica's requests in flight, as a
                                * multiple of the mean */
    uint32_t replica_requests_max;    /* this router's limit of requests in flight per replica; 0:
                                       * none */
    struct node_replica_config prior; /* initial beliefs about each replica */
    bool all_down_refuse;             /* if all replicas are down, refuses the request instead of
                                       * trying one */
    bool probes_have_key;             /* true if probes carry an API key; only for display to
                                       * operators */
    const char *name;                 /* this router's name, borrowed; NULL: no peers */
    bool apart;                       /* the settings show that the routers are on several
                                       * machines */
};

/* Requirements about other requests under way at the replica that gets a request. */
enum node_company {
    NODE_COMPANY_ANY,
    NODE_COMPANY_RATHER_ALONE, /* prefer a replica without other requests; if there is none, a
                                * replica without other suspects */
    NODE_COMPANY_ALONE, /* only a replica without requests of any router, as far as known. Never the
                         * last replica with the model, unless no request was sent there for a
                         * while */
};

/* A request, as far as policies may know it. Slices are borrowed for the call. */
struct node_request {
    struct slice model;         /* empty: any replica */
    struct slice alias;         /* the alias that the client sent in place of the model, for display
                                 * only; empty: none */
    bool fell_back;             /* `model` is not the alias's first model, because no replica of the
                                 * first was up; display only */
    struct slice lora;          /* adapter from a separate field of the request; empty: none */
    struct slice session;       /* empty: none (the session policy falls back to round robin) */
    uint64_t conversation;      /* hash, the same at all routers; 0: not known */
    const struct chain *chain;  /* NULL or empty: no prompt was understood, route by load */
    uint64_t body_bytes;        /* replaces the prompt's size if there is no chain */
    uint32_t output_tokens_max; /* 0: not given by the client */
    int replica_wanted;         /* >= 0: only this replica (stored responses); -1: any */
    bool sent;                  /* the request was sent to a replica before. If all replicas are
                                 * down, it is not sent again */
    bool model_likely; /* a replica denied the model for this request. Leave out all replicas that
                        * denied the model lately, even if no replica remains */
    bool continues;    /* continues a stored response: the engine puts the conversation before the
                        * prompt */
    bool several;      /* several answers (n > 1); the usage adds up their tokens */
    uint32_t context_over; /* an engine reported that the prompt exceeds this context. Leave out
                            * replicas with a known context of at most this length */
    bool too_long;         /* an engine reported that the prompt is too long, without a length:
                            * prefer the longest context */
    unsigned unpinned;     /* set of engines, bits 1 << enum node_engine, that cannot be told a rank
                            * for this request. There the router chooses an address instead of a
                            * rank */
    bool no_guess;         /* the request failed before, or waited for lists of models. No guesses
                            * (node_router_is_guess) while a replica that lists the model can be
                            * chosen */
    bool answer_whole;     /* no stream: the first byte comes with the end, which hides the end of
                            * prefill */
    uint8_t kind;          /* kind of the request (node/replica/reject.h), below
                            * NODE_REJECT_KINDS */
    bool again;            /* the request can be sent again if a replica rejects it */
    bool rejected;         /* a replica rejected the request, and the router asks another replica */
    enum node_company company;
    int kept_for_it;               /* the replica kept for this request (node_router_keep), or -1 */
    bool may_wait;                 /* if only replicas kept for other requests remain, the request
                                    * waits: ERR_EXISTS */
    struct node_rendered rendered; /* the rendering of `chain` */
    struct slice id;               /* request id for operators, for display only (decisions.h);
                                    * empty: none */
    unsigned attempt;              /* number of the attempt, from 1; 0 means the first */
};

struct node_decision {
    unsigned replica;
    unsigned server; /* the replica of the address: the same replica, except for a rank */
    int rank;        /* pinned rank at `server`; -1: none */
    struct node_booking booking;
    uint64_t prompt_tokens; /* estimated */
    uint64_t cached_tokens; /* predicted for the replica */
    enum node_reason reason;
    double ttft_s;   /* predicted; 0: no figures for the replica or the request yet */
    bool listed;     /* the replica had listed models when chosen */
    uint64_t number; /* number of the entry in the ring of decisions (decisions.h); 0: not kept */
};

struct node_router;
struct node_policy;
struct node_models;
struct json_writer;
struct node_shadow;

/* Creates a router in `*out`. `state` is borrowed, and made for NODE_REPLICAS_MAX replicas.
 * ERR_NOMEM; ERR_NOT_FOUND: `config` names an unknown policy. */
MUST_USE int node_router_create(struct node_router **out, const struct node_router_config *config,
                                struct node_state *state);
void node_router_destroy(struct node_router *r);
/* Applies the new settings from the next request on. `name`, and settings that are not live
 * (node/settings/change.h), keep the values from the start. */
void node_router_renew(struct node_router *r, const struct node_router_config *config);
/* Checks the invariants of the router and of the state. */
void node_router_check(const struct node_router *r);

/* The names of all policies, NULL-terminated. */
extern const char *const node_policy_names[];
/* The names of the policies without costs, NULL-terminated. */
extern const char *const node_policy_plain_names[];

/* True if all replicas in use are vLLM or SGLang, which report the usage of streams on request.
 * Updated once a second. */
bool node_router_engines_tell_usage(const struct node_router *r);
/* The policy in use (policy.h). */
const struct node_policy *node_router_policy(const struct node_router *r);
/* True if the policies in use need a request's session or conversation. */
bool node_router_wants_session(const struct node_router *r);
bool node_router_wants_conversation(const struct node_router *r);

/* --- replicas ------------------------------------------------------------------------------- */

/* From now on this router names the replica ("host:port"), also if the name had vanished. Returns
 * the index. ERR_RANGE: the name is empty or longer than NODE_NAME_MAX. ERR_FULL: the name waits
 * for a free slot, and the replica comes into use once a slot is free. `engine` becomes the
 * replica's type if the type is not known yet. */
MUST_USE int node_router_name(struct node_router *r, struct slice name, enum node_engine engine);
/* `vanishing`: true if the source removed the replica, false if the source lists the replica again.
 * While true: this router sends no new requests there, unless operators added the replica. Other
 * routers no longer count the replica as named by this router. No effect on a replica that this
 * router does not name. */
void node_router_vanish(struct node_router *r, unsigned replica, bool vanishing);
/* This router no longer names the replica. The replica is no longer in use, unless another router
 * names the replica or operators added the name. A name that waits for a slot is dropped too. */
void node_router_unname(struct node_router *r, struct slice name);
/* True if an operator removed the replica with this name, whatever sources say. */
bool node_router_replica_removed(const struct node_router *r, struct slice name);
/* True if a replica with exactly this name is listed, or waits for a slot. */
bool node_router_replica_listed(const struct node_router *r, struct slice name);
/* True if the replica is in use although no living router names it and no operator added the
 * name. */
bool node_router_replica_unnamed(const struct node_router *r, unsigned replica);
unsigned node_router_replica_count(const struct node_router *r);
struct slice node_router_replica_name(const struct node_router *r, unsigned replica);
/* The replica's row, read-only. */
const struct node_replica *node_router_replica(const struct node_router *r, unsigned replica);
/* The replica's answers have a content coding that the router cannot read. The mark stays while the
 * replica is in use. */
void node_router_replica_packs_set(struct node_router *r, unsigned replica);
enum node_health node_router_replica_health(const struct node_router *r, unsigned replica);
/* True if the replica failed lately and has begun no answer since. The router avoids such a replica
 * if others can be chosen (node/replica/standing.h). */
bool node_router_replica_backing_off(const struct node_router *r, unsigned replica,
                                     uint64_t now_ms);
enum node_engine node_router_replica_engine(const struct node_router *r, unsigned replica);
void node_router_replica_engine_set(struct node_router *r, unsigned replica, enum node_engine e);
/* The replica's answers show this type of engine: see node_replica_engine_found(). */
bool node_router_engine_found(struct node_router *r, unsigned replica, enum node_engine e);
/* An operator drains the replica for all routers, or ends the drain. */
void node_router_replica_drain(struct node_router *r, unsigned replica, bool draining);

/* An operator's wish for all routers, at run time. The last wish wins. */
enum node_replica_wish {
    NODE_REPLICA_ADD,    /* in use, whatever the configurations say */
    NODE_REPLICA_REMOVE, /* not in use, whatever the configurations say */
};
/* Returns the index; 0 if the removed name only waited for a slot. ERR_RANGE: as for
 * node_router_name(); ERR_AGAIN: the name waits for a slot; ERR_FULL: too many names wait;
 * ERR_NOT_FOUND: the replica to remove is not known; ERR_EXISTS: no change. `engine` is the type
 * of a new replica. */
MUST_USE int node_router_replica_wish(struct node_router *r, struct slice name,
                                      enum node_replica_wish wish, enum node_engine engine);
/* The replica of the address: `replica`, except for a data-parallel rank (node/replica/rank.h).
 * Health, probes, models and connections belong to the address. */
unsigned node_router_server(const struct node_router *r, unsigned replica);
/* The number of the rank; -1: not a rank. */
MUST_USE int node_router_rank(const struct node_router *r, unsigned replica);
/* The metrics of each rank of an address were read. Call after node_router_scraped(). `count` below
 * 2: the address has no ranks. */
void node_router_ranks_scraped(struct node_router *r, unsigned server,
                               const struct node_scrape *ranks, unsigned count, uint64_t now_ms);
/* The engine at the address has emptied the cache. All routers forget the believed contents, as
 * after a restart. */
void node_router_cache_reset(struct node_router *r, unsigned server, uint64_t now_ms);
/* True if a list or an answer shows that the replica serves the model. */
bool node_router_replica_serves(const struct node_router *r, unsigned replica, struct slice model);
/* True if the replica is in use. Replicas not in use are never chosen and appear in no table. */
bool node_router_replica_present(const struct node_router *r, unsigned replica);
/* The name of the only router that can use the replica. Empty: this router can use the replica, or
 * no router uses the replica. */
struct slice node_router_only_at(const struct node_router *r, unsigned slot);
/* The index of the replica with this name, in use or not; -1: none. */
MUST_USE int node_router_replica_find(const struct node_router *r, struct slice name);
/* From now on `replica` is called when a replica comes into use (`present`) or is no longer in use:
 * the caller begins or ends probes. Never called from within node_router_place(). `forgotten` (or
 * NULL) is called for a replica with a forgotten name, again and again until the function returns
 * true. The caller then no longer refers to the index, which another replica may get. */
void node_router_watch(struct node_router *r,
                       void (*replica)(void *context, unsigned replica, bool present),
                       bool (*forgotten)(void *context, unsigned replica), void *context);

/* `full`: this router cannot open a connection to the server now, because of a limit of the router.
 * The server counts as full until the next call. */
void node_router_replica_full(struct node_router *r, unsigned server, bool full);

/* A health check of the replica ended with this result. */
void node_router_probed(struct node_router *r, unsigned replica, struct node_check check,
                        uint64_t now_ms);
/* A health check answered with an error status: the replica is leaving. The router avoids the
 * replica until a check succeeds. */
void node_router_health_no(struct node_router *r, unsigned replica);
/* An answer said that the engine is dead. The router avoids the replica until a health check
 * succeeds, and reports this to the other routers. */
void node_router_core_dead(struct node_router *r, unsigned replica, uint64_t now_ms);
/* The number of other routers that use replicas of this router, as far as known. */
unsigned node_router_others(const struct node_router *r);
/* A router answered a probe. `who` is that router's name for operators, cut to
 * NODE_ROUTER_NAME_MAX. The replica gets no request until a probe finds an engine there. */
void node_router_found_router(struct node_router *r, unsigned replica, struct slice who,
                              uint64_t now_ms);
/* The replica's metrics were read, or SGLang's /server_info, which has only sizes. A later start
 * time or decreased counters mean a restarted engine: the believed cache is forgotten at once.
 * Returns true after such a restart. */
bool node_router_scraped(struct node_router *r, unsigned replica, const struct node_scrape *s,
                         uint64_t now_ms);
/* The table of the models of each replica. The rows are addresses (node_router_server()). */
struct node_models *node_router_model_table(const struct node_router *r);
/* Replaces the replica's list of models, base names and adapters. Until the first call a replica is
 * believed to serve everything (node/replica/model.h). */
MUST_USE int node_router_models(struct node_router *r, unsigned replica, const struct slice *ids,
                                unsigned count);
/* Sets the replica's context length in tokens, as reported by the list of models (listed) or by
 * SGLang's /server_info (told); 0: not reported. A label takes precedence over both. The first
 * returns true if the list showed another length before. */
bool node_router_context_listed(struct node_router *r, unsigned replica, uint32_t tokens);
void node_router_context_told(struct node_router *r, unsigned replica, uint32_t tokens);
/* The replica's context length from the label or these reports; 0: unknown. */
uint32_t node_router_context(const struct node_router *r, unsigned replica);
/* The replica reported that the request exceeds the context. Says if another replica for the
 * request, up or not, has a longer context. MAYBE: the length is unknown for this replica or the
 * other. IF_ANEW: no other replica listed a longer context, but a replica that is up may list
 * another length by now. */
enum node_longer { NODE_LONGER_NONE, NODE_LONGER_IF_ANEW, NODE_LONGER_MAYBE, NODE_LONGER_SURELY };
enum node_longer node_router_longer(struct node_router *r, const struct node_request *request,
                                    unsigned replica, uint64_t now_ms);
/* True if the replica reported that the request exceeds its context, although the known context
 * fits the request. Then the context has changed, or was shorter all the time. */
bool node_router_context_doubted(const struct node_router *r, const struct node_request *request,
                                 unsigned replica);
/* Sets the time when the router asked the replica for the list of models. Call before
 * node_router_models(). */
void node_router_models_asked(struct node_router *r, unsigned replica, uint64_t asked_ms);
/* `stale`: the list of models may be from an engine that is gone. The router avoids the replica if
 * possible, until the replica has answered the question for models, or failed to. */
void node_router_models_stale(struct node_router *r, unsigned replica, bool stale);
/* The replica answered the question for models with this status and no list, unlike an engine. From
 * now on any model is possible there, unless a label names the model. Forgets a former list, which
 * came from another engine, and after a list or a possible restart also what former answers showed.
 * Returns true if this is news, and no label names the model. */
bool node_router_models_none(struct node_router *r, unsigned replica, unsigned status);
/* True if a replica outside `excluded` may get new requests and serves the request's model, as far
 * as known: it lists the model, or lists no models. */
bool node_router_model_up(struct node_router *r, const struct node_request *request,
                          const struct node_replica_set *excluded, uint64_t now_ms);
/* True if a list or an answer shows that a replica in use, up or not, serves the model. */
bool node_router_model_known(const struct node_router *r, struct slice model);
/* True if the model exists although no replica known to serve the model is up. Then a label names
 * the model, a replica with the model is down, or a source of replicas has not answered yet. */
bool node_router_model_away(const struct node_router *r, struct slice model);
/* True if the choice of this replica is a guess (`server` is the replica, or the address of a
 * rank): the replica has listed no models, and no replica is known to serve the request's model.
 * But another replica is up with a known list, and may serve the model by now. The guess ends when
 * the replica answers a request for the model. */
bool node_router_is_guess(const struct node_router *r, const struct node_request *request,
                          unsigned server);

/* A probe was answered with this status. 401 and 403 mean a refusal, until another status comes.
 * After a refused list of models, the replica no longer counts as having listed models. */
void node_router_probe_answered(struct node_router *r, unsigned replica, enum node_probe probe,
                                unsigned status);

/* The replica served a client's request for the model. This counts only for a replica without a
 * list, and is not reported to other routers. SGLang's answers do not count, because SGLang accepts
 * any name. */
void node_router_model_served(struct node_router *r, unsigned replica, struct slice model);
/* The replica denied a listed model, and the request was tried at a second replica. True
 * `accepted`: the second replica answered the request. False: the second replica denied the model
 * too. */
void node_router_model_tried(struct node_router *r, unsigned replica, bool accepted);
/* Takes in this router's requests under way at the replica, and the replica's signs of life
 * (node/replica/health.h). Called a few times a second. */
void node_router_watched(struct node_router *r, unsigned replica, const struct node_watched *w,
                         uint64_t watchdog_ms, uint64_t now_ms);
/* The reason for the replica's stall. A rank may be stalled alone, or with the whole process. */
enum node_stall node_router_replica_stall(const struct node_router *r, unsigned replica);
/* The row of the replica's process: borrowed until the next call that changes anything. */
const struct node_replica *node_router_process(const struct node_router *r, unsigned replica);
/* True for a stalled rank of a process that is not stalled. */
bool node_router_rank_stalled(const struct node_router *r, unsigned replica);
/* True if the engine's tokens and counters show work. */
bool node_router_replica_moves(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* Time of the replica's last sign of work, to any router (node/replica/work.h); 0: never. For a
 * rank of an engine whose metrics report single steps, the time of the rank, otherwise of the
 * process. */
uint64_t node_router_replica_worked(const struct node_router *r, unsigned replica);
/* True if the replica's metrics report single steps. */
bool node_router_replica_tells(const struct node_router *r, unsigned replica);
/* True if an answer that has begun at the replica is lost (node_signs_lost()). */
bool node_router_answer_lost(const struct node_router *r, unsigned replica, uint64_t since_ms,
                             uint64_t heard_ms, uint64_t stall_cut_ms, uint64_t now_ms);
/* True if a replica that is down should be probed often, because of a recent failure or because no
 * replica is up. */
bool node_router_replica_awaited(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* True if the request would go to another replica, not in `excluded`, that is up and not avoided.
 * With `failing` the other replica may be in back-off or slow start, or at this router's limit of
 * requests. */
bool node_router_has_other(struct node_router *r, const struct node_request *request,
                           const struct node_replica_set *excluded, unsigned replica, bool failing,
                           uint64_t now_ms);

/* True if a request that was booked at the replica a while ago may still be sent: the replica is
 * not leaving. If the replica went down or into trouble since, there must also be no better
 * replica. */
bool node_router_still_fits(struct node_router *r, const struct node_request *request,
                            const struct node_replica_set *excluded, unsigned replica,
                            uint64_t now_ms);

/* True if at least one replica is up by a probe, not draining and not asleep. Before the first
 * probes the router uses replicas anyway, but an orchestrator should wait. */
bool node_router_ready(const struct node_router *r);

/* --- one request ---------------------------------------------------------------------------- */

/* Chooses among the replicas that may serve the model and are not in `excluded` (or NULL), books
 * the work and records the prompt's checkpoints there. The router uses replicas that were not
 * probed yet only if there is no healthy replica, and avoided replicas only if there is no other.
 * If all are down, the router chooses the replica with the fewest failures and the oldest attempt,
 * if the settings allow this and the request was sent nowhere before.
 *
 * - ERR_NOT_FOUND: no replica serves the model.
 * - ERR_UNREACHABLE: replicas serve the model, but none can be chosen now.
 * - ERR_AGAIN: all eligible replicas are full (replica_requests_max). There is room when a booking
 *   is released. An avoided replica is not chosen instead.
 * - ERR_FULL: too many bookings.
 * - ERR_EXISTS: no replica meets request->company (enum node_company) now; one may soon.
 * - ERR_LIMIT: no replica will meet request->company soon, because the last replica is in use.
 *
 * The checkpoints stay recorded if the request then fails to reach the engine. This is a small
 * error: the next predictions correct the belief, and a probe with a refused connection forgets the
 * replica's cache. */
MUST_USE int node_router_place(struct node_router *r, const struct node_request *request,
                               const struct node_replica_set *excluded, uint64_t now_ms,
                               struct node_decision *out);
/* Places a request without a readable prompt at the replica with the fewest requests in flight.
 * Records nothing. Errors as node_router_place(). */
MUST_USE int node_router_place_by_load(struct node_router *r, const struct node_request *request,
                                       const struct node_replica_set *excluded, uint64_t now_ms,
                                       struct node_decision *out);

/* Keeps the replica for a request that may be poison (`kept`), or ends this reservation. Each call
 * with true needs a call with false. Other requests are placed at a kept replica only if no other
 * replica can serve them. */
void node_router_keep(struct node_router *r, unsigned replica, bool kept);
/* Number of calls with true that still need a call with false. */
unsigned node_router_kept(const struct node_router *r);
/* Returns the index of the replica with the fewest requests under way, among the replicas that
 * node_router_place() could choose for the request; for a rank, the index of the rank's address.
 * Errors as node_router_place(). */
MUST_USE int node_router_quietest(struct node_router *r, const struct node_request *request,
                                  const struct node_replica_set *excluded, uint64_t now_ms);

/* The client of a prompt: the product in the User-Agent, and the form of the API, a literal. */
struct node_client {
    struct slice agent;
    const char *form;
};
/* Sets `*out` to the believed rendering by the engines of a prompt of this client. Call before
 * http_prompt_join(), while the points are not joined yet. Keeps the prompt if its answer can teach
 * the rendering. */
void node_router_render(struct node_router *r, const struct node_client *client, struct slice model,
                        const struct http_prompt_form *form, const struct chain *points,
                        uint64_t now_ms, struct node_rendered *out);
/* The rendering for display: that of the kind of client that asked for this model last. Stores
 * nothing. */
void node_router_render_shown(struct node_router *r, struct slice model, struct node_rendered *out);

/* The first byte of the answer's body that shows work (the first token) arrived. Releases the
 * prefill and learns from the duration. At most once per booking; later calls do nothing. */
void node_router_first_byte(struct node_router *r, struct node_booking b, uint64_t now_ms);
/* The engine frees the prompt's blocks now: this is the time of their last use. The blocks are
 * recorded again if the answer began, and a generation began since the choice. Call before
 * node_router_finish(), for a request that the engine computed and that did not break. */
void node_router_used(struct node_router *r, struct node_booking b, const struct chain *chain,
                      uint64_t now_ms);
/* Ends the booking: releases the load, counts the outcome, and learns from the answer. `usage` is
 * NULL if the engine computed nothing (a rejection, or no connection): then the router learns
 * nothing from the timing. Otherwise give a usage, with -1 for missing figures. */
void node_router_finish(struct node_router *r, struct node_booking b, enum node_outcome outcome,
                        const struct node_usage *usage, uint64_t now_ms);

/* A late outcome of work that was finished IN_DOUBT. `life` is the replica's life at that time
 * (struct node_replica.life). The outcome says nothing about a later life. */
void node_router_blame(struct node_router *r, unsigned replica, uint32_t life,
                       enum node_outcome outcome, uint64_t now_ms);
/* Only counts an error at the replica. The outcome, not this count, affects routing. */
void node_router_error(struct node_router *r, unsigned replica, enum node_error error);

/* --- rejections (node/replica/reject.h) --- */

/* The chance, as believed at present, that the replica is at fault for the rejection. Changes
 * nothing. */
enum node_reject_guilt node_router_reject_guilt(const struct node_router *r,
                                                const struct node_rejection *x);
/* The model's hash for node_rejection.model. */
uint64_t node_router_reject_model(const struct node_router *r, const struct node_request *request);
/* The client gets the rejection, and no other replica was asked. */
void node_router_reject_passed(struct node_router *r, const struct node_rejection *x);
/* `open`: true if the router asks another replica now, false when the answer of the other replica
 * is known. Each call with true is followed by a call with false. */
void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open);
/* Another replica accepted the same bytes. Returns true if the replica is now avoided for the kind
 * of request, and was not before. */
bool node_router_reject_contradicted(struct node_router *r, const struct node_rejection *x,
                                     uint64_t now_ms);
/* Another replica, `by`, rejected the same bytes. */
void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by);
/* A good answer began to a request sent at `sent_ms`. The request's model matters only if there is
 * evidence against the replica. Returns true if nothing counts against the replica any more. */
bool node_router_accepted(struct node_router *r, unsigned replica,
                          const struct node_request *request, struct node_reject_from from,
                          uint64_t sent_ms);

/* Number of open bookings, which is the number of requests under way. */
uint32_t node_router_booked(const struct node_router *r);

/* --- stored responses ------------------------------------------------------------------------ */

/* The replica made the stored response with this id. The binding is published to the other routers
 * and kept as long as observations are, or until the replica restarts. */
void node_router_bind(struct node_router *r, struct slice id, unsigned replica);
/* The replica that made the response, as published by any router, or -1. */
MUST_USE int node_router_bound(const struct node_router *r, struct slice id);

/* --- explanations --------------------------------------------------------------------------- */

/* Writes the request's cost table as JSON, and the replica that the router would choose. Changes
 * nothing. */
MUST_USE int node_router_explain(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms, struct buf *out);
/* The standing of a replica (node/replica/standing.h). For a rank of a well process, the rank's own
 * standing. */
struct node_standing node_router_replica_standing(const struct node_router *r, unsigned replica,
                                                  uint64_t now_ms);
/* Writes all beliefs about the replicas as a JSON array, as a request would find them at this
 * moment. */
MUST_USE int node_router_replicas_json(struct node_router *r, uint64_t now_ms, struct buf *out);
/* The comparison of the policy with a plain policy (shadow.h). */
const struct node_shadow *node_router_shadow(const struct node_router *r);
/* Writes the comparison of node_router_shadow() as a member of an object, or nothing if neither
 * shadow mode nor control was on since the start. */
void node_router_shadow_write(const struct node_router *r, const char *key, uint64_t now_ms,
                              struct json_writer *w);
/* Metrics of replicas, predictions, models and the index. */
void node_router_metrics(const struct node_router *r, uint64_t now_ms, struct prometheus *p);

/* Called about once a second: moves the generation, sweeps a part of the index, and lets learned
 * figures decay. */
void node_router_tick(struct node_router *r, uint64_t now_ms);

#endif

/* The router: chooses the replica that should serve a request.
 *
 * The router owns the replica table, the bookings, the learned figures and the policies. It is
 * pure: time and randomness come in as arguments or from the seed of its configuration. README.md
 * shows how to drive it.
 *
 * Invariants (node_router_check):
 * 1. The load of a replica is the sum of its open bookings; no bookings, no load.
 * 2. A booking is released exactly once; using a released handle is a bug and aborts.
 * 3. No policy ever returns an excluded replica, a replica that is down or draining, or a
 *      replica that does not serve the model.
 *
 * Times are milliseconds of a monotonic clock.
 *
 * The state shared by all routers is in the borrowed struct node_state (node/cluster/state.h). A
 * replica's index here is its slot there. A replica is in use if a router names it
 * (node/route/share.h) or an operator added the name. A replica that operators removed is not in
 * use. A replica that left keeps its index until its name is forgotten (crdt/registry.h) and
 * nothing here refers to the index. Then the index belongs to another replica, or is free: an
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

/* Settings; their defaults are in node/settings/table.c, their meaning in docs/routing.md. */
struct node_router_config {
    const char *policy;        /* a name of node_policy_names */
    const char *plain_policy;  /* a name of node_policy_plain_names, for shadow mode and control */
    bool shadow;               /* the plain policy routes; `policy` is only counted (shadow.h) */
    double control_share;      /* share of the conversations that the plain policy routes */
    uint64_t seed;             /* for random choices among near-equal candidates */
    double displaced_weight;   /* W */
    double decode_weight;      /* V */
    uint32_t reuse_horizon_ms; /* R */
    double near_tie;           /* costs within this share of the least cost, or within 1 ms, are
                                * equal */
    uint64_t cache_tokens;     /* believed cache size if the engine reports none */
    double load_bound;         /* prefix_hash: a replica takes at most this times the mean load */
    uint32_t replica_requests_max;    /* this router's limit of requests in flight at one replica;
                                       * 0: none */
    struct node_replica_config prior; /* initial beliefs about each replica */
    bool all_down_refuse;             /* if all replicas are down, refuses the request instead of
                                       * trying one */
    bool probes_have_key;             /* probes carry an API key: only shown to operators */
    const char *name;                 /* this router's name, borrowed; NULL: no peers */
    bool apart;                       /* the settings show that the routers are on several
                                       * machines */
};

/* Which other requests may be under way at the replica that gets a request. */
enum node_company {
    NODE_COMPANY_ANY,
    NODE_COMPANY_RATHER_ALONE, /* none, if such a replica can be chosen now; if not, at least no
                                * other suspect */
    NODE_COMPANY_ALONE, /* none of any router, as far as known. The last replica that serves the
                         * model is left out, unless unused for a while */
};

/* A request, as far as policies may know it. Slices are borrowed for the call. */
struct node_request {
    struct slice model;         /* empty: any replica */
    struct slice alias;         /* named by the client in place of the model, for display only;
                                 * empty: none */
    bool fell_back;             /* no replica of the alias's first model was up; display only */
    struct slice lora;          /* an adapter named in a field of its own; empty: none */
    struct slice session;       /* empty: none (session policy falls back to round robin) */
    uint64_t conversation;      /* hash, the same at all routers; 0: not known */
    const struct chain *chain;  /* NULL or empty: no prompt was understood, route by load */
    uint64_t body_bytes;        /* replaces the prompt's size if there is no chain */
    uint32_t output_tokens_max; /* 0: not given by the client */
    int replica_wanted;         /* >= 0: only this replica (stored responses); -1: any */
    bool sent;                  /* was sent to a replica before, so it is not sent again if all are
                                 * down */
    bool model_likely; /* a replica denied the model for this request: leave out all that lately
                        * did, even if no other is left */
    bool continues;    /* a stored response: the engine puts its conversation before the prompt */
    bool several;      /* several answers (n > 1); the usage adds up their tokens */
    uint32_t context_over; /* an engine reported that the prompt exceeds this context: leave out
                            * replicas with a known context that is no longer */
    bool too_long;         /* an engine reported that the prompt is too long, without a length:
                            * prefer the longest context */
    unsigned unpinned;     /* engines that take no rank from a request, so it goes to their address;
                            * bits 1 << enum node_engine */
    bool no_guess;         /* failed before, or waited for lists: no guesses while a replica that
                            * lists the model can be chosen */
    bool answer_whole;     /* not streamed: the first byte comes with the end, so the end of prefill
                            * is not visible */
    uint8_t kind;          /* kind of the request (node/replica/reject.h), below
                            * NODE_REJECT_KINDS */
    bool again;            /* can be sent again if a replica rejects it */
    bool rejected;         /* was rejected: the router asks whether another replica accepts this
                            * request */
    enum node_company company;
    int kept_for_it; /* the replica kept for this request (node_router_keep), or -1 */
    bool may_wait;   /* if only replicas kept for others are left, ERR_EXISTS instead of one of
                      * these */
    struct node_rendered rendered; /* the rendering of its chain */
    struct slice id;               /* request id for operators, for display only (decisions.h);
                                    * empty: none */
    unsigned attempt;              /* number of the attempt, from 1; 0 means the first */
};

struct node_decision {
    unsigned replica;
    unsigned server; /* the replica of its address: itself, except for a rank */
    int rank;        /* pinned rank there; -1: none */
    struct node_booking booking;
    uint64_t prompt_tokens; /* estimated */
    uint64_t cached_tokens; /* predicted on that replica */
    enum node_reason reason;
    double ttft_s;   /* predicted; 0: nothing was learned of the replica, or of the request */
    bool listed;     /* the replica had listed its models when chosen */
    uint64_t number; /* among the kept decisions (decisions.h); 0: not kept */
};

struct node_router;
struct node_policy;
struct node_models;
struct json_writer;
struct node_shadow;

/* `state` is borrowed, made for NODE_REPLICAS_MAX replicas. ERR_NOMEM; ERR_NOT_FOUND for an unknown
 * policy. */
MUST_USE int node_router_create(struct node_router **out, const struct node_router_config *config,
                                struct node_state *state);
void node_router_destroy(struct node_router *r);
/* Applies other settings from the next request on. Settings that are not live
 * (node/settings/change.h) stay as at the start; `name` stays too, whatever `config` says. */
void node_router_renew(struct node_router *r, const struct node_router_config *config);
/* Checks its invariants, and the state's. */
void node_router_check(const struct node_router *r);

/* The names of all policies, NULL-terminated. */
extern const char *const node_policy_names[];
/* The names of those that weigh no costs. */
extern const char *const node_policy_plain_names[];

/* True if all replicas are vLLM or SGLang, which report the usage of streams on request. Updated
 * once a second. */
bool node_router_engines_tell_usage(const struct node_router *r);
/* The policy in use (policy.h). */
const struct node_policy *node_router_policy(const struct node_router *r);
/* True if the policies in use need a request's session, or its conversation. */
bool node_router_wants_session(const struct node_router *r);
bool node_router_wants_conversation(const struct node_router *r);

/* --- replicas ------------------------------------------------------------------------------- */

/* This router names the replica ("host:port") from now on, also if the name had vanished. Returns
 * its index; ERR_RANGE: the name is empty or longer than NODE_NAME_MAX; ERR_FULL: the name waits
 * for a free slot and then comes into use by itself. `engine` counts if the type is unknown. */
MUST_USE int node_router_name(struct node_router *r, struct slice name, enum node_engine engine);
/* `vanishing`: the replica's source removed it. This router sends no new requests there, unless
 * operators added the replica. Other routers no longer count the replica as named by this router.
 * No effect on a replica that this router does not name. */
void node_router_vanish(struct node_router *r, unsigned replica, bool vanishing);
/* This router no longer names the replica. The replica goes unless another router names it or
 * operators added the name. A name that waits for a slot goes too. */
void node_router_unname(struct node_router *r, struct slice name);
/* True if an operator removed the replica of that name, whatever sources say. */
bool node_router_replica_removed(const struct node_router *r, struct slice name);
/* True if a replica of exactly that name is listed, or waits to be. */
bool node_router_replica_listed(const struct node_router *r, struct slice name);
/* True if the replica is in use without a living namer, and no operator added the name. */
bool node_router_replica_unnamed(const struct node_router *r, unsigned replica);
unsigned node_router_replica_count(const struct node_router *r);
struct slice node_router_replica_name(const struct node_router *r, unsigned replica);
/* The replica's row, read-only. */
const struct node_replica *node_router_replica(const struct node_router *r, unsigned replica);
/* The replica's answers use a content coding that the router cannot read. Holds while the replica
 * is in use. */
void node_router_replica_packs_set(struct node_router *r, unsigned replica);
enum node_health node_router_replica_health(const struct node_router *r, unsigned replica);
/* True if the replica failed lately, with no answer begun since. Such a replica is avoided if
 * others can be chosen (node/replica/standing.h). */
bool node_router_replica_backing_off(const struct node_router *r, unsigned replica,
                                     uint64_t now_ms);
enum node_engine node_router_replica_engine(const struct node_router *r, unsigned replica);
void node_router_replica_engine_set(struct node_router *r, unsigned replica, enum node_engine e);
/* The replica's answers show this type of engine: see node_replica_engine_found(). */
bool node_router_engine_found(struct node_router *r, unsigned replica, enum node_engine e);
/* An operator drains the replica for all routers, or ends the drain. */
void node_router_replica_drain(struct node_router *r, unsigned replica, bool draining);

/* An operator's wish for all routers, at run time; the last one wins. */
enum node_replica_wish {
    NODE_REPLICA_ADD,    /* in use, whatever the configurations say */
    NODE_REPLICA_REMOVE, /* not in use, whatever the configurations say */
};
/* Returns the index. ERR_RANGE as node_router_name(); ERR_AGAIN: the name waits for a slot;
 * ERR_FULL: too many names wait; ERR_NOT_FOUND: the replica to remove is not known; ERR_EXISTS: no
 * change. `engine` counts for a new replica. */
MUST_USE int node_router_replica_wish(struct node_router *r, struct slice name,
                                      enum node_replica_wish wish, enum node_engine engine);
/* The replica of the address: itself, except for a data-parallel rank (node/replica/rank.h).
 * Health, probes, models and connections belong to that replica. */
unsigned node_router_server(const struct node_router *r, unsigned replica);
/* The number of the rank; -1: not a rank. */
MUST_USE int node_router_rank(const struct node_router *r, unsigned replica);
/* The metrics of each rank of an address were read. Call after node_router_scraped(). `count` below
 * 2: the address has no ranks. */
void node_router_ranks_scraped(struct node_router *r, unsigned server,
                               const struct node_scrape *ranks, unsigned count, uint64_t now_ms);
/* The engine at that address has emptied its cache. All routers forget its believed contents, as
 * after a restart. */
void node_router_cache_reset(struct node_router *r, unsigned server, uint64_t now_ms);
/* True if the replica is known to serve the model, by its list or by an answer. */
bool node_router_replica_serves(const struct node_router *r, unsigned replica, struct slice model);
/* True if the replica is in use. Others are never chosen and appear in no table. */
bool node_router_replica_present(const struct node_router *r, unsigned replica);
/* The only router that uses the replica, if that is another router. If not, empty. */
struct slice node_router_only_at(const struct node_router *r, unsigned slot);
/* The index by name, present or not, or -1. */
MUST_USE int node_router_replica_find(const struct node_router *r, struct slice name);
/* `replica` is called when a replica appears, goes or comes back: its probes begin or end. Never
 * from within node_router_place(). `forgotten` (or NULL) is called for a replica with a forgotten
 * name, again and again until it returns true. The caller then no longer refers to the index, which
 * may become another replica's. */
void node_router_watch(struct node_router *r,
                       void (*replica)(void *context, unsigned replica, bool present),
                       bool (*forgotten)(void *context, unsigned replica), void *context);

/* `full`: this router cannot open a connection to the server now, for a reason of its own. The
 * server counts as full until the next call. */
void node_router_replica_full(struct node_router *r, unsigned server, bool full);

/* A health check ended. */
void node_router_probed(struct node_router *r, unsigned replica, struct node_check check,
                        uint64_t now_ms);
/* The replica's health check says no: the replica is avoided until a check says yes. */
void node_router_health_no(struct node_router *r, unsigned replica);
/* An answer said that the engine is dead. The replica is avoided until its health check says yes,
 * and the other routers learn of it. */
void node_router_core_dead(struct node_router *r, unsigned replica, uint64_t now_ms);
/* The number of other routers that use replicas of this one, as far as known. */
unsigned node_router_others(const struct node_router *r);
/* A router answered a probe. `who` is its name for operators, cut to NODE_ROUTER_NAME_MAX. The
 * replica gets no request until a probe finds an engine there. */
void node_router_found_router(struct node_router *r, unsigned replica, struct slice who,
                              uint64_t now_ms);
/* The replica's metrics were read, or SGLang's /server_info, which has only sizes. A later start
 * time or counters that went back mean a restarted engine: its entries are forgotten at once.
 * Returns true if that happened. */
bool node_router_scraped(struct node_router *r, unsigned replica, const struct node_scrape *s,
                         uint64_t now_ms);
/* The table of the models that each replica serves. Its rows are addresses
 * (node_router_server()). */
struct node_models *node_router_model_table(const struct node_router *r);
/* Sets the replica's models, base names and adapters, in place of the last list. Until the first
 * call a replica is believed to serve everything (node/replica/model.h). */
MUST_USE int node_router_models(struct node_router *r, unsigned replica, const struct slice *ids,
                                unsigned count);
/* Sets the replica's context length in tokens, as its list of models or SGLang's /server_info
 * reports it; 0: not reported. A label takes precedence over both. Returns true if the list showed
 * another length before. */
bool node_router_context_listed(struct node_router *r, unsigned replica, uint32_t tokens);
void node_router_context_told(struct node_router *r, unsigned replica, uint32_t tokens);
/* The replica's context length from its label or these reports; 0: unknown. */
uint32_t node_router_context(const struct node_router *r, unsigned replica);
/* The replica reported that the request exceeds its context. Says if another replica that serves
 * the request, up or not, has a longer one. MAYBE: one of the two lengths is not known. IF_ANEW: no
 * other replica had one when it last listed its models, but one that is up may list another length
 * by now. */
enum node_longer { NODE_LONGER_NONE, NODE_LONGER_IF_ANEW, NODE_LONGER_MAYBE, NODE_LONGER_SURELY };
enum node_longer node_router_longer(struct node_router *r, const struct node_request *request,
                                    unsigned replica, uint64_t now_ms);
/* True if the replica reported that the request exceeds its context, although the known context
 * fits the request. Then the context has changed, or was never that long. */
bool node_router_context_doubted(const struct node_router *r, const struct node_request *request,
                                 unsigned replica);
/* Sets the time when the router asked the replica for its models. Call before
 * node_router_models(). */
void node_router_models_asked(struct node_router *r, unsigned replica, uint64_t asked_ms);
/* `stale`: its list may be from an engine that is gone. The replica is avoided if others will do,
 * until it has answered, or failed to answer, the question for its models. */
void node_router_models_stale(struct node_router *r, unsigned replica, bool stale);
/* The replica answered the question for its models with this status and no list, unlike an engine.
 * It may serve any model from now on. Its former list was another engine's; so were its former
 * answers, if its process may be another one. Returns true if this is news, and no label names its
 * model. */
bool node_router_models_none(struct node_router *r, unsigned replica, unsigned status);
/* True if a replica outside `excluded` serves the request's model and may get new requests, as far
 * as known: one that lists the model, or that lists no models. */
bool node_router_model_up(struct node_router *r, const struct node_request *request,
                          const struct node_replica_set *excluded, uint64_t now_ms);
/* True if a replica in use, up or not, is known to serve the model, by its list or by an answer. */
bool node_router_model_known(const struct node_router *r, struct slice model);
/* True if the model exists although no replica known to serve the model is up. Then a label
 * names the model, a replica that serves the model is down, or a source of replicas has not
 * answered yet. */
bool node_router_model_away(const struct node_router *r, struct slice model);
/* True if the choice of this replica (the server of its ranks) is a guess: the replica has not
 * listed its models, and no replica is known to serve the request's model. But another replica
 * that is up has a known list, and may serve the model by now. An answer of the replica for the
 * model ends the guess. */
bool node_router_is_guess(const struct node_router *r, const struct node_request *request,
                          unsigned server);

/* A probe was answered with that status. 401 and 403 mean a refusal, until another status comes. A
 * replica that refuses to list its models no longer counts as having listed them. */
void node_router_probe_answered(struct node_router *r, unsigned replica, enum node_probe probe,
                                unsigned status);

/* The replica served a client's request for the model: counts only for a replica without a list.
 * Other routers do not learn of this. SGLang's answers teach nothing, because it accepts any
 * name. */
void node_router_model_served(struct node_router *r, unsigned replica, struct slice model);
/* The replica denied a model that it lists, and the request was tried at another replica.
 * `accepted`: that one answered the request; if not, it denied the model too. */
void node_router_model_tried(struct node_router *r, unsigned replica, bool accepted);
/* Hands in this router's requests under way at the replica, and signs of life from there
 * (node/replica/health.h). Called a few times a second. */
void node_router_watched(struct node_router *r, unsigned replica, const struct node_watched *w,
                         uint64_t watchdog_ms, uint64_t now_ms);
/* The reason for the replica's stall. A rank may be stalled by itself, or with its process. */
enum node_stall node_router_replica_stall(const struct node_router *r, unsigned replica);
/* The row of the replica's process: borrowed until the next call that changes anything. */
const struct node_replica *node_router_process(const struct node_router *r, unsigned replica);
/* True for a rank that is stalled while its process is not. */
bool node_router_rank_stalled(const struct node_router *r, unsigned replica);
/* True if the engine is at work, by its tokens and counters. */
bool node_router_replica_moves(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* Time of the replica's last sign of work, to any router (node/replica/work.h). A rank has its own
 * if its metrics report single steps. 0: never. */
uint64_t node_router_replica_worked(const struct node_router *r, unsigned replica);
/* True if its metrics report single steps. */
bool node_router_replica_tells(const struct node_router *r, unsigned replica);
/* True if an answer that has begun there is lost (node_signs_lost()). */
bool node_router_answer_lost(const struct node_router *r, unsigned replica, uint64_t since_ms,
                             uint64_t heard_ms, uint64_t stall_cut_ms, uint64_t now_ms);
/* True if a replica that is down should be probed often: because of a recent failure, or because
 * none is up. */
bool node_router_replica_awaited(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* True if the request would go to another replica, not in `excluded`, that is up and not avoided.
 * With `failing` that replica may be in a back-off or in slow start, or may be full of this
 * router's requests for now. */
bool node_router_has_other(struct node_router *r, const struct node_request *request,
                           const struct node_replica_set *excluded, unsigned replica, bool failing,
                           uint64_t now_ms);

/* True if a request that was booked there a while ago may still be sent there: the replica is not
 * leaving. If the replica went down or got into trouble since, there must also be no better one. */
bool node_router_still_fits(struct node_router *r, const struct node_request *request,
                            const struct node_replica_set *excluded, unsigned replica,
                            uint64_t now_ms);

/* True if at least one replica is up by a probe, not draining and not asleep. Before the first
 * probes the router uses replicas all the same, but an orchestrator should wait. */
bool node_router_ready(const struct node_router *r);

/* --- one request ---------------------------------------------------------------------------- */

/* Chooses among the replicas that may serve the model and are not in `excluded` (or NULL), books
 * the work and records the prompt's checkpoints there. Replicas not probed yet are used only when
 * no healthy one is left, avoided ones only when no other is. If all are down, the replica that
 * failed least and was tried longest ago is chosen, if the settings allow this and the request was
 * sent to none before.
 *
 * - ERR_NOT_FOUND: no replica serves the model.
 * - ERR_UNREACHABLE: some do, but none can be chosen now.
 * - ERR_AGAIN: all that would be considered are full (replica_requests_max). There is room when a
 *   booking is released. An avoided replica is not chosen instead.
 * - ERR_FULL: too many bookings.
 * - ERR_EXISTS: no replica has the required company (enum node_company) now, but one may soon.
 * - ERR_LIMIT: none will have it soon, because only one replica is left, which is in use.
 *
 * The checkpoints stay recorded if the request then fails to reach the engine. That is a small
 * error: the next predictions correct the belief, and a probe that finds the port refused forgets
 * the replica's cache. */
MUST_USE int node_router_place(struct node_router *r, const struct node_request *request,
                               const struct node_replica_set *excluded, uint64_t now_ms,
                               struct node_decision *out);
/* Places a request without a readable prompt at the replica with the fewest requests in flight.
 * Records nothing. Errors as node_router_place(). */
MUST_USE int node_router_place_by_load(struct node_router *r, const struct node_request *request,
                                       const struct node_replica_set *excluded, uint64_t now_ms,
                                       struct node_decision *out);

/* The replica is kept for a request that may be poison. Each call with true needs one with false.
 * Other requests are placed there only if no other replica will do. */
void node_router_keep(struct node_router *r, unsigned replica, bool kept);
/* Number of calls with true that still need one with false. */
unsigned node_router_kept(const struct node_router *r);
/* The replica with the fewest requests under way among those that the request may go to; errors as
 * node_router_place(). */
MUST_USE int node_router_quietest(struct node_router *r, const struct node_request *request,
                                  const struct node_replica_set *excluded, uint64_t now_ms);

/* The client of a prompt: the product in its User-Agent, and the form of the API, a literal. */
struct node_client {
    struct slice agent;
    const char *form;
};
/* Sets the engines' rendering of a prompt of this client before http_prompt_join(), when its points
 * are not joined yet. Keeps prompts that the router can learn from. */
void node_router_render(struct node_router *r, const struct node_client *client, struct slice model,
                        const struct http_prompt_form *form, const struct chain *points,
                        uint64_t now_ms, struct node_rendered *out);
/* The rendering for display: that of the kind of client that asked for this model last. Stores
 * nothing. */
void node_router_render_shown(struct node_router *r, struct slice model, struct node_rendered *out);

/* The first byte of the answer's body with work (the first token): prefill is released, and the
 * router learns from its duration. At most once per booking; later calls do nothing. */
void node_router_first_byte(struct node_router *r, struct node_booking b, uint64_t now_ms);
/* The engine frees the prompt's blocks now, so this is their last use. They are recorded again if a
 * generation began since the choice, and the answer began. Call before node_router_finish(), for a
 * request that the engine computed and that did not break. */
void node_router_used(struct node_router *r, struct node_booking b, const struct chain *chain,
                      uint64_t now_ms);
/* `usage` is NULL if the engine computed nothing (a rejection, or no connection): then the router
 * learns nothing from the timing. Any other answer has a usage, with -1 for missing figures. */
void node_router_finish(struct node_router *r, struct node_booking b, enum node_outcome outcome,
                        const struct node_usage *usage, uint64_t now_ms);

/* An outcome that is known only now, of work that was finished IN_DOUBT. `life` is the replica's
 * life then (struct node_replica.life): the outcome says nothing of a later one. */
void node_router_blame(struct node_router *r, unsigned replica, uint32_t life,
                       enum node_outcome outcome, uint64_t now_ms);
/* Counts an error at the replica, and does nothing else (the outcome is what matters). */
void node_router_error(struct node_router *r, unsigned replica, enum node_error error);

/* --- rejections (node/replica/reject.h) --- */

/* The chance that the rejection is the replica's own fault, by the present belief. Changes
 * nothing. */
enum node_reject_guilt node_router_reject_guilt(const struct node_router *r,
                                                const struct node_rejection *x);
/* The model's hash for node_rejection.model. */
uint64_t node_router_reject_model(const struct node_router *r, const struct node_request *request);
/* The rejection goes to its client, and no other replica was asked. */
void node_router_reject_passed(struct node_router *r, const struct node_rejection *x);
/* `open`: another replica is asked now. If false, the result is known. Each call with true is
 * followed by one with false. */
void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open);
/* Another replica accepted the same bytes. Returns true if the replica is now avoided for that
 * kind, and was not before. */
bool node_router_reject_contradicted(struct node_router *r, const struct node_rejection *x,
                                     uint64_t now_ms);
/* Another replica, `by`, rejected the same bytes. */
void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by);
/* A good answer began to a request that was sent at `sent_ms`; its model matters only if there is
 * evidence against the replica. Returns true if nothing counts against the replica any more. */
bool node_router_accepted(struct node_router *r, unsigned replica,
                          const struct node_request *request, struct node_reject_from from,
                          uint64_t sent_ms);

/* Number of open bookings: as many as requests under way. */
uint32_t node_router_booked(const struct node_router *r);

/* --- stored responses ------------------------------------------------------------------------ */

/* The replica made the stored response with this id; published to the other routers. Kept as long
 * as observations are, and until the replica restarts. */
void node_router_bind(struct node_router *r, struct slice id, unsigned replica);
/* The replica that made the response, by any router's publication, or -1. */
MUST_USE int node_router_bound(const struct node_router *r, struct slice id);

/* --- explanations --------------------------------------------------------------------------- */

/* The cost table of a request as JSON, and the replica that would be chosen. Changes nothing. */
MUST_USE int node_router_explain(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms, struct buf *out);
/* The standing of a replica (node/replica/standing.h): a rank's own, if its process is well. */
struct node_standing node_router_replica_standing(const struct node_router *r, unsigned replica,
                                                  uint64_t now_ms);
/* All beliefs about the replicas as a JSON array, as a request at this moment would find them. */
MUST_USE int node_router_replicas_json(struct node_router *r, uint64_t now_ms, struct buf *out);
/* The comparison of the policy with a plain one (shadow.h). */
const struct node_shadow *node_router_shadow(const struct node_router *r);
/* Writes that comparison as a member of an object, or nothing if neither shadow mode nor control
 * was on since the start. */
void node_router_shadow_write(const struct node_router *r, const char *key, uint64_t now_ms,
                              struct json_writer *w);
/* Metrics of replicas, predictions, models and the index. */
void node_router_metrics(const struct node_router *r, uint64_t now_ms, struct prometheus *p);

/* Called about once a second: moves the generation, sweeps the index a little, decays. */
void node_router_tick(struct node_router *r, uint64_t now_ms);

#endif

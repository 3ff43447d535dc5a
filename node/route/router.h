/* Which replica should serve this request?
 *
 * The router owns the replica table, the bookings, what was learned and the policies. It is pure:
 * time and randomness come in as arguments or from the seed of its configuration. README.md shows
 * how it is driven.
 *
 * Invariants (node_router_check):
 *   1. The load of a replica is the sum of its open bookings; no bookings, no load.
 *   2. A booking is released exactly once; using a released handle is a bug and aborts.
 *   3. No policy ever returns an excluded replica, one that is down or draining, or one that does
 *      not serve the model.
 *
 * Times are milliseconds of a monotonic clock.
 *
 * What all routers share is in the struct node_state that it borrows (node/cluster/state.h). A
 * replica's index here is its slot there. In use are those that this router or another names
 * (node/route/share.h), and those added at run time, without those removed at run time. One that
 * went keeps its index until its name is forgotten (crdt/registry.h) and nothing hangs on it here;
 * then the index is another replica's, or nobody's: an absent one.
 */
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
    uint64_t seed;             /* for drawing among near-equal choices */
    double displaced_weight;   /* W */
    double decode_weight;      /* V */
    uint32_t reuse_horizon_ms; /* R */
    double near_tie;           /* costs within this share (or 1 ms) of the least are equal */
    uint64_t cache_tokens;     /* believed cache size where the engine reports none */
    double load_bound;         /* prefix_hash: a replica takes at most this times the mean load */
    uint32_t replica_requests_max;    /* in flight from here at one replica; 0: no limit */
    struct node_replica_config prior; /* believed of each until it is learned */
    bool all_down_refuse;             /* where all are down: nobody is tried */
    bool probes_have_key;             /* probes carry an API key: said to operators, nothing else */
    const char *name;                 /* of this router among others, borrowed; NULL: it is alone */
    bool apart;                       /* its settings show that they are on several machines */
};

/* What may be under way where a request is placed. */
enum node_company {
    NODE_COMPANY_ANY,
    NODE_COMPANY_RATHER_ALONE, /* nothing, where that can be had at once; else no other suspect */
    NODE_COMPANY_ALONE, /* nothing, of any router, as far as is known; and it is not the last one
                           that serves, unless nobody has used that for a while */
};

/* What a policy may know of a request. Slices are borrowed for the call. */
struct node_request {
    struct slice model;         /* empty: any replica */
    struct slice alias;         /* that the client named in place of the model; empty: none. Only
                                   shown, as the next */
    bool fell_back;             /* to the model: no replica of the alias's first one was up */
    struct slice lora;          /* an adapter named beside the model; empty: none is */
    struct slice session;       /* empty: none (session policy falls back to round robin) */
    const struct chain *chain;  /* NULL or empty: no prompt was understood, route by load */
    uint64_t body_bytes;        /* stands in for the prompt's size when there is no chain */
    uint32_t output_tokens_max; /* 0: the client did not say */
    int replica_wanted;         /* >= 0: only this one will do (stored responses); -1: any */
    bool sent;         /* another replica got it: where all are down it is not sent again */
    bool model_likely; /* leave out those that lately denied the model, even if no other
                          is left (the request was denied already) */
    bool continues;    /* a stored response: the engine puts its conversation before the prompt */
    bool several;      /* answers, whose tokens the usage adds up */
    uint32_t context_over; /* an engine said that it is too long for this context: leave out those
                              whose context is known to be no longer */
    bool too_long;         /* the same, whatever is known: the longest context is wanted */
    unsigned unpinned;     /* engines that cannot be told its rank: it goes to their address; bits
                          1 << enum node_engine */
    bool no_guess;         /* it failed before, or waited for lists: while one that lists the model
                              can be chosen, none is tried on a guess */
    bool answer_whole;     /* not streamed: the first byte comes with the end, so it does not
                          show when prefill was over */
    uint8_t kind;          /* of the request (node/replica/reject.h), below NODE_REJECT_KINDS */
    bool again;            /* it can be sent again if it is rejected, */
    bool rejected;         /* and was: it is to be known whether another replica accepts it */
    enum node_company company;
    int kept_for_it; /* with ALONE: the replica that is kept for it (node_router_keep), or -1 */
    bool may_wait;   /* where only those that are kept for others are left: ERR_AGAIN */
    struct node_rendered rendered; /* what its chain was made for */
    struct slice id;  /* as operators know it, and only shown (decisions.h); empty: none */
    unsigned attempt; /* the number of the attempt, from 1; 0: of the first */
};

struct node_decision {
    unsigned replica;
    unsigned server; /* the replica at whose address it is: itself, but for a rank */
    int rank;        /* to which the request is pinned there; -1: to none */
    struct node_booking booking;
    uint64_t prompt_tokens; /* estimated */
    uint64_t cached_tokens; /* predicted on that replica */
    enum node_reason reason;
    double ttft_s;   /* predicted; 0: nothing was learned of it, or of the request */
    bool listed;     /* its models, when it was chosen */
    uint64_t number; /* among those that are kept (decisions.h); 0: it is not */
};

struct node_router;
struct node_policy;
struct node_models;

/* `state` is borrowed, made for NODE_REPLICAS_MAX replicas. ERR_NOMEM; ERR_NOT_FOUND for an unknown
 * policy. */
MUST_USE int node_router_create(struct node_router **out, const struct node_router_config *config,
                                struct node_state *state);
void node_router_destroy(struct node_router *r);
/* Other settings from the next request on. Those that are not live (node/settings/change.h) are as
 * at the start; `name` stays, whatever `config` says. */
void node_router_renew(struct node_router *r, const struct node_router_config *config);
/* Its invariants, and those of the state. */
void node_router_check(const struct node_router *r);

/* The names of all policies, NULL-terminated. */
extern const char *const node_policy_names[];

/* Whether all replicas are vLLM or SGLang, which tell the usage of streams where they are asked. Up
 * to a second late. */
bool node_router_engines_tell_usage(const struct node_router *r);
/* Its policy (policy.h). */
const struct node_policy *node_router_policy(const struct node_router *r);

/* --- replicas ------------------------------------------------------------------------------- */

/* This router names the replica ("host:port") from now on; a name that vanished is back. Returns
 * its index; ERR_RANGE for a name that is empty or longer than NODE_NAME_MAX; ERR_FULL: it waits,
 * and comes into use by itself when room is there. `engine` counts if none is known yet. */
MUST_USE int node_router_name(struct node_router *r, struct slice name, enum node_engine engine);
/* Its source says that it goes: it gets no new requests from here, unless operators added it, and
 * others no longer count it as named by this router. Nothing happens to one that it does not name.
 */
void node_router_vanish(struct node_router *r, unsigned replica, bool vanishing);
/* This router names it no longer: it goes, unless another router names it or operators added it.
 * One that waits goes too. */
void node_router_unname(struct node_router *r, struct slice name);
/* Whether an operator removed the replica of that name, whatever sources say. */
bool node_router_replica_removed(const struct node_router *r, struct slice name);
/* Whether the replica of that name is listed, or waits to be, as it is spelled. */
bool node_router_replica_listed(const struct node_router *r, struct slice name);
/* Whether it is in use although no living router names it and no operator added it. */
bool node_router_replica_unnamed(const struct node_router *r, unsigned replica);
unsigned node_router_replica_count(const struct node_router *r);
struct slice node_router_replica_name(const struct node_router *r, unsigned replica);
/* All that is known of it, to be read. */
const struct node_replica *node_router_replica(const struct node_router *r, unsigned replica);
/* Its answers come in a coding that the router cannot read, as long as it is in use. */
void node_router_replica_packs_set(struct node_router *r, unsigned replica);
enum node_health node_router_replica_health(const struct node_router *r, unsigned replica);
/* Whether it failed so lately, with no answer begun since, that it is avoided where others will do
 * (node/replica/standing.h). */
bool node_router_replica_backing_off(const struct node_router *r, unsigned replica,
                                     uint64_t now_ms);
enum node_engine node_router_replica_engine(const struct node_router *r, unsigned replica);
void node_router_replica_engine_set(struct node_router *r, unsigned replica, enum node_engine e);
/* Its answers are those of this kind: node_replica_engine_found(). */
bool node_router_engine_found(struct node_router *r, unsigned replica, enum node_engine e);
/* An operator's wish for all routers, until it is undone. */
void node_router_replica_drain(struct node_router *r, unsigned replica, bool draining);

/* An operator's wish for all routers, at run time; the last one wins. */
enum node_replica_wish {
    NODE_REPLICA_ADD,    /* in use, whatever the configurations say */
    NODE_REPLICA_REMOVE, /* not in use, whatever they say */
};
/* Returns the index. ERR_RANGE as node_router_name(); ERR_AGAIN: it waits for room; ERR_FULL: no
 * room even to wait; ERR_NOT_FOUND: it is to be removed and not known; ERR_EXISTS: it is so
 * already. `engine` counts for a replica that is new. */
MUST_USE int node_router_replica_wish(struct node_router *r, struct slice name,
                                      enum node_replica_wish wish, enum node_engine engine);
/* The replica at whose address it is: itself, but for a data-parallel rank (node/replica/rank.h).
 * Health, probes, models and connections are that one's. */
unsigned node_router_server(const struct node_router *r, unsigned replica);
/* The number of the rank; -1: it is none. */
MUST_USE int node_router_rank(const struct node_router *r, unsigned replica);
/* What the metrics of an address said of each of its ranks: after node_router_scraped(). `count`
 * below 2: there are none. */
void node_router_ranks_scraped(struct node_router *r, unsigned server,
                               const struct node_scrape *ranks, unsigned count, uint64_t now_ms);
/* The engine at that address has emptied its cache: what this router, and all others, believe is
 * there is forgotten, as after a restart. */
void node_router_cache_reset(struct node_router *r, unsigned server, uint64_t now_ms);
/* Whether the replica is known to serve the model: it listed it, or answered for it. */
bool node_router_replica_serves(const struct node_router *r, unsigned replica, struct slice model);
/* Whether it is in use at all. One that is not is never chosen and stands in no table. */
bool node_router_replica_present(const struct node_router *r, unsigned replica);
/* The router that alone uses it, if that is another one; else empty. */
struct slice node_router_only_at(const struct node_router *r, unsigned slot);
/* The index by name, present or not, or -1. */
MUST_USE int node_router_replica_find(const struct node_router *r, struct slice name);
/* `replica` is called when one appears, goes or comes back: probing it begins or ends. Never out of
 * node_router_place(). `forgotten` (or NULL) is called for one whose name is forgotten, again and
 * again until it returns true: nothing hangs on its index any more, which may become another's. */
void node_router_watch(struct node_router *r,
                       void (*replica)(void *context, unsigned replica, bool present),
                       bool (*forgotten)(void *context, unsigned replica), void *context);

/* Whether this router can open no connection to the server now, for a reason of its own: it counts
 * as full until it can. */
void node_router_replica_full(struct node_router *r, unsigned server, bool full);

/* A health check ended. */
void node_router_probed(struct node_router *r, unsigned replica, struct node_check check,
                        uint64_t now_ms);
/* Its health check says no: it is avoided until one says yes. */
void node_router_health_no(struct node_router *r, unsigned replica);
/* An answer said that its engine is dead. It is avoided until its health check says yes, and the
 * others hear of it. */
void node_router_core_dead(struct node_router *r, unsigned replica, uint64_t now_ms);
/* How many other routers use replicas of this one, as far as is known. */
unsigned node_router_others(const struct node_router *r);
/* A probe was answered by a router, `who`: its name as operators know it, cut to
 * NODE_ROUTER_NAME_MAX. The replica gets no request until a probe finds an engine there. */
void node_router_found_router(struct node_router *r, unsigned replica, struct slice who,
                              uint64_t now_ms);
/* The replica's metrics were read, or SGLang's /server_info, which has nothing but sizes. A start
 * time that moved or counters that went back mean a restarted engine: its entries are forgotten at
 * once. Returns whether that happened. */
bool node_router_scraped(struct node_router *r, unsigned replica, const struct node_scrape *s,
                         uint64_t now_ms);
/* Which replica serves which model; by the row of an address (node_router_server()). */
struct node_models *node_router_model_table(const struct node_router *r);
/* The models that it serves, base names and adapters; replaces what was known. Until the first
 * call a replica is believed to serve everything (node/replica/model.h). */
MUST_USE int node_router_models(struct node_router *r, unsigned replica, const struct slice *ids,
                                unsigned count);
/* Its context length in tokens by its list of models, and by SGLang's /server_info; 0: they do not
 * say. A label stands above both. True: it listed another one before. */
bool node_router_context_listed(struct node_router *r, unsigned replica, uint32_t tokens);
void node_router_context_told(struct node_router *r, unsigned replica, uint32_t tokens);
/* What is known of all that; 0: nothing. */
uint32_t node_router_context(const struct node_router *r, unsigned replica);
/* The replica said that the request is longer than its context: whether another one that serves it,
 * up or not, has a longer one; MAYBE: one of the two is not known; IF_ANEW: none had when it listed
 * its models last, but one is up that may list another context by now. */
enum node_longer { NODE_LONGER_NONE, NODE_LONGER_IF_ANEW, NODE_LONGER_MAYBE, NODE_LONGER_SURELY };
enum node_longer node_router_longer(struct node_router *r, const struct node_request *request,
                                    unsigned replica, uint64_t now_ms);
/* The replica said that the request is longer than its context. Its context is known, and by all
 * that is known the request fits: the context is another one by now, or was never that long. */
bool node_router_context_doubted(const struct node_router *r, const struct node_request *request,
                                 unsigned replica);
/* Before node_router_models(): when the replica was asked for that list. */
void node_router_models_asked(struct node_router *r, unsigned replica, uint64_t asked_ms);
/* Its list may be of an engine that is gone: it is avoided where others will do until it has
 * answered, or failed to answer, the question for its models. */
void node_router_models_stale(struct node_router *r, unsigned replica, bool stale);
/* It answered the question for its models with this status and no list, as what is no engine does.
 * It may serve any model from now on. What it had listed was another engine's; so was what it had
 * answered for, if its process may be another one. Whether this is news, and no label names its
 * model. */
bool node_router_models_none(struct node_router *r, unsigned replica, unsigned status);
/* Whether a replica that is not in `excluded` serves the request's model and may get new requests,
 * as far as is known: one that lists it, or that lists no models. */
bool node_router_model_up(struct node_router *r, const struct node_request *request,
                          const struct node_replica_set *excluded, uint64_t now_ms);
/* Whether a replica in use, up or not, is known to serve it: it listed it, or answered for it. */
bool node_router_model_known(const struct node_router *r, struct slice model);
/* Whether the model exists though no replica that is known to serve it is up: a label names it, one
 * that serves it is down, or a source of replicas has not answered yet. */
bool node_router_model_away(const struct node_router *r, struct slice model);
/* Whether the choice of this replica (the server of its ranks) is a guess: it has not listed its
 * models and none is known to serve the request's, but another is up whose list is known. That one
 * may serve the model by now. An answer of the replica for the model ends that. */
bool node_router_is_guess(const struct node_router *r, const struct node_request *request,
                          unsigned server);

/* An answer of that status came to a probe. 401 and 403 refuse it, until another status comes. A
 * replica that refuses to list its models no longer counts as having listed them. */
void node_router_probe_answered(struct node_router *r, unsigned replica, enum node_probe probe,
                                unsigned status);

/* A client's request for the model went well there: counts where it has not listed its models. Only
 * this router learns of it, and nothing of SGLang, which takes any name. */
void node_router_model_served(struct node_router *r, unsigned replica, struct slice model);
/* It denied a model that it lists, and another replica answered the request. */
void node_router_model_tried(struct node_router *r, unsigned replica, bool accepted);
/* What this router has under way there, and hears of it (node/replica/health.h). Called a few times
 * a second. */
void node_router_watched(struct node_router *r, unsigned replica, const struct node_watched *w,
                         uint64_t watchdog_ms, uint64_t now_ms);
/* Why it counts as standing still: a rank by its own signs, or by those of its process. */
enum node_stall node_router_replica_stall(const struct node_router *r, unsigned replica);
/* What is known of its process: borrowed until the next call that changes anything. */
const struct node_replica *node_router_process(const struct node_router *r, unsigned replica);
/* Whether it is a rank that stands still while its process does not. */
bool node_router_rank_stalled(const struct node_router *r, unsigned replica);
/* Whether the engine is at work, by its tokens and counters. */
bool node_router_replica_moves(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* When it last showed work, to any router (node/replica/work.h): of a rank its own, where its
 * figures tell single steps. 0: never. */
uint64_t node_router_replica_worked(const struct node_router *r, unsigned replica);
/* Whether its metrics tell single steps. */
bool node_router_replica_tells(const struct node_router *r, unsigned replica);
/* Whether an answer that has begun there is lost (node_signs_lost()). */
bool node_router_answer_lost(const struct node_router *r, unsigned replica, uint64_t since_ms,
                             uint64_t heard_ms, uint64_t stall_cut_ms, uint64_t now_ms);
/* Whether one that is down is to be probed often: it went down lately, or none is up. */
bool node_router_replica_awaited(const struct node_router *r, unsigned replica, uint64_t now_ms);
/* Whether the request would go to another replica, not in `excluded`, that is up and not avoided.
 * With `failing` it may be in a back-off or warm up, or have no place yet for one more request of
 * this router. */
bool node_router_has_other(struct node_router *r, const struct node_request *request,
                           const struct node_replica_set *excluded, unsigned replica, bool failing,
                           uint64_t now_ms);

/* Whether a request that was booked there a while ago may still be sent there: the replica does not
 * leave, and there is no better one if it went down or came into trouble since. */
bool node_router_still_fits(struct node_router *r, const struct node_request *request,
                            const struct node_replica_set *excluded, unsigned replica,
                            uint64_t now_ms);

/* Whether at least one replica is up, not draining and not asleep: a probe has found it so. Before
 * the first probes choose() uses the others all the same; an orchestrator should wait. */
bool node_router_ready(const struct node_router *r);

/* --- one request ---------------------------------------------------------------------------- */

/* Chooses among the replicas that may serve the model and are not in `excluded` (or NULL), books
 * the work and records the prompt's checkpoints there. Those not probed yet are used only when no
 * healthy one is left, those that are avoided only when no other is. Where all are down, the one
 * that failed least and was tried longest ago is chosen all the same, if the settings say so and
 * the request was sent to none before. ERR_NOT_FOUND: no replica serves the model. ERR_UNREACHABLE:
 * some do, none can be chosen now. ERR_AGAIN: all that would be chosen among are full
 * (replica_requests_max): there is room when a booking is released. One that is avoided is not
 * chosen instead. ERR_FULL: too many bookings. See enum node_company: ERR_EXISTS: others are there
 * now, but maybe not for long; ERR_LIMIT: they are, for only one replica is left, which is in use.
 *
 * The checkpoints stay recorded if the request then fails to reach the engine. That is a small
 * error: the next predictions correct the belief, and a probe that finds the port refused forgets
 * the replica's cache. */
MUST_USE int node_router_place(struct node_router *r, const struct node_request *request,
                               const struct node_replica_set *excluded, uint64_t now_ms,
                               struct node_decision *out);
/* The same for traffic without a prompt: least requests in flight, nothing recorded. */
MUST_USE int node_router_place_by_load(struct node_router *r, const struct node_request *request,
                                       const struct node_replica_set *excluded, uint64_t now_ms,
                                       struct node_decision *out);

/* The replica is kept for a request that may be poison; each call with true wants one with false.
 * Others are placed there only where no other will do. */
void node_router_keep(struct node_router *r, unsigned replica, bool kept);
/* How many calls with true still want one with false. */
unsigned node_router_kept(const struct node_router *r);
/* The replica that the request may go to with the fewest requests under way; errors as
 * node_router_place(). */
MUST_USE int node_router_quietest(struct node_router *r, const struct node_request *request,
                                  const struct node_replica_set *excluded, uint64_t now_ms);

/* The client of a prompt: the product that its User-Agent names, and the form of the API, a
 * literal. */
struct node_client {
    struct slice agent;
    const char *form;
};
/* How engines see a prompt of this client, whose points are not joined yet; before
 * http_prompt_join(). Keeps what is to be learned from. */
void node_router_render(struct node_router *r, const struct node_client *client, struct slice model,
                        const struct http_prompt_form *form, const struct chain *points,
                        uint64_t now_ms, struct node_rendered *out);
/* The same to look at: of the kind of client that asked for this model last. Nothing is kept. */
void node_router_render_shown(struct node_router *r, struct slice model, struct node_rendered *out);

/* First byte of the answer's body that carries work (the first token): prefill is released and
 * its duration is learned from. At most once per booking; later calls do nothing. */
void node_router_first_byte(struct node_router *r, struct node_booking b, uint64_t now_ms);
/* The engine lets go of the prompt's blocks now, so their last use is now: they are recorded again
 * if a generation began since the choice and the answer began. Before node_router_finish(), for
 * a request that the engine computed and that did not break. */
void node_router_used(struct node_router *r, struct node_booking b, const struct chain *chain,
                      uint64_t now_ms);
/* `usage` is NULL if the engine computed nothing (it refused, or was not reached): then nothing is
 * learned from the timing. Any other answer has one, with -1 for what it did not report. */
void node_router_finish(struct node_router *r, struct node_booking b, enum node_outcome outcome,
                        const struct node_usage *usage, uint64_t now_ms);

/* An outcome that is known only now, of work that was finished IN_DOUBT. `life` is that of the
 * replica then (struct node_replica.life): of a later one it says nothing. */
void node_router_blame(struct node_router *r, unsigned replica, uint32_t life,
                       enum node_outcome outcome, uint64_t now_ms);
/* Something went wrong at the replica: counted, and nothing else (the outcome is what counts). */
void node_router_error(struct node_router *r, unsigned replica, enum node_error error);

/* --- rejections (node/replica/reject.h) --- */

/* Whether the rejection is the replica's own fault, as far as is believed. Changes nothing. */
enum node_reject_guilt node_router_reject_guilt(const struct node_router *r,
                                                const struct node_rejection *x);
/* For node_rejection.model. */
uint64_t node_router_reject_model(const struct node_router *r, const struct node_request *request);
/* The rejection goes to its client, and no other replica was asked. */
void node_router_reject_passed(struct node_router *r, const struct node_rejection *x);
/* Another replica is asked now, or it is known what came of it: each call with true is followed by
 * one with false. */
void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open);
/* Another replica accepted the same bytes. True: from now on the replica is avoided for that kind,
 * which it was not. */
bool node_router_reject_contradicted(struct node_router *r, const struct node_rejection *x,
                                     uint64_t now_ms);
/* Another one, `by`, rejected them as well. */
void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by);
/* A good answer began to a request that was sent at `sent_ms`; its model matters only where
 * something speaks against the replica. True: nothing is held against it any more, which was. */
bool node_router_accepted(struct node_router *r, unsigned replica,
                          const struct node_request *request, struct node_reject_from from,
                          uint64_t sent_ms);

/* Bookings that are open: as many as requests are under way. */
uint32_t node_router_booked(const struct node_router *r);

/* --- stored responses ------------------------------------------------------------------------ */

/* The replica made the stored response of this id; this is published to the other routers. Kept as
 * long as observations are, and until the replica restarts. */
void node_router_bind(struct node_router *r, struct slice id, unsigned replica);
/* The replica that made it, by what any router published, or -1. */
MUST_USE int node_router_bound(const struct node_router *r, struct slice id);

/* --- seeing why ----------------------------------------------------------------------------- */

/* Cost table of a request as JSON, and which one it would choose. Changes nothing. */
MUST_USE int node_router_explain(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms, struct buf *out);
/* Whether it gets requests, and why not (node/replica/standing.h): of a rank its own standing,
 * where its process is well. */
struct node_standing node_router_replica_standing(const struct node_router *r, unsigned replica,
                                                  uint64_t now_ms);
/* Everything believed of the replicas as a JSON array, as a request that came now would find it. */
MUST_USE int node_router_replicas_json(struct node_router *r, uint64_t now_ms, struct buf *out);
/* Metrics of replicas, predictions, models and the index. */
void node_router_metrics(const struct node_router *r, uint64_t now_ms, struct prometheus *p);

/* Called about once a second: moves the generation, sweeps the index a little, decays. */
void node_router_tick(struct node_router *r, uint64_t now_ms);

#endif

/* What the files of the router share. No two of them need each other (the lint looks). */
#ifndef NODE_ROUTE_ROUTER_INTERNAL_H
#define NODE_ROUTE_ROUTER_INTERNAL_H

#include "base/err.h"
#include "base/json_write.h"
#include "crdt/state.h"
#include "node/cluster/state.h"
#include "node/replica/adapters.h"
#include "node/replica/answered.h"
#include "node/replica/booking.h"
#include "node/replica/fleet.h"
#include "node/replica/model.h"
#include "node/replica/replica.h"
#include "node/replica/ruler.h"
#include "node/route/discovered.h"
#include "node/route/followers.h"
#include "node/route/kv_events.h"
#include "node/route/policy.h"
#include "node/route/router.h"
#include "node/route/share.h"

/* Which replicas serve a request's model, at whose addresses. */
struct node_servers {
    struct node_replica_set surely; /* known to serve it, or its base */
    struct node_replica_set may;    /* these, and those that may */
    struct node_replica_set asked;  /* those to ask now */
};

/* By whom this router knows that a replica is in use (node/route/share.c has the transitions). */
enum node_naming_state {
    NODE_NAMING_NONE,  /* by no other router, ever */
    NODE_NAMING_LOST,  /* by none any more */
    NODE_NAMING_NAMED, /* another one names it. From here on it is in use, from the next on *held*:
                          no living router names it. */
    NODE_NAMING_LENT,  /* another one uses it, and that is all that is known */
    NODE_NAMING_AWAY,  /* the last that named it no longer reports, or did not for a while */
    NODE_NAMING_LENDER_AWAY, /* the same of the one that used it */
};
struct node_naming {
    enum node_naming_state state;
    uint64_t router;    /* that named it last, or used it */
    uint64_t silent_ms; /* since when it is back and does not name it; 0: it is not */
    uint64_t down_ms;   /* since when its probes fail; 0: they do not */
};
static inline bool node_naming_in_use(const struct node_naming *n)
{
    return n->state >= NODE_NAMING_NAMED;
}
static inline bool node_naming_held(const struct node_naming *n)
{
    return n->state > NODE_NAMING_NAMED;
}

/* KV-cache events: kv_events.c. */
enum { NODE_EVENTS_TOLD_BUCKETS = 16384, NODE_EVENTS_TOLD_WAYS = 4 };
struct node_events_bucket {
    uint64_t id_stamp[NODE_EVENTS_TOLD_WAYS]; /* a checkpoint's low 48 bits, when it was told 16 */
    uint32_t next;                            /* that gives way */
};
struct node_events {
    struct node_events_user user;    /* zeroes: nobody reads here */
    bool any;                        /* of some replica they are live, */
    bool others;                     /* read by another router, which gets tidings */
    bool can_ask;                    /* some that are live are a vLLM's */
    struct node_events_bucket *told; /* NODE_EVENTS_TOLD_BUCKETS; NULL until some are live */
    uint64_t passed_over;            /* tidings of others that said nothing here */
};

/* What this router keeps of a slot of the table beside what is known of the engine (struct
 * node_replica). Zeroed with each name. */
struct node_slot {
    struct node_naming naming; /* by others: share.c */
    bool adopted; /* this router names it because its own sources have not spoken yet: share.c */
    unsigned ranks_read; /* in the metrics that this router read; 0: none were. ranks.c */

    /* Restarts: restarts.c, share.c */
    uint32_t rkey_scraped, rkey_probed; /* of its cache at the last scrape, the last good probe */
    uint64_t start_early_ms; /* a start time read before this router had joined; 0: none */

    struct node_fading placed_tokens; /* of prompts, by this router, lately (due.c) */
    struct {                          /* KV-cache events: kv_events.c, share.c */
        bool live;                    /* this router reads them, and they count, */
        enum node_reads reads;
        uint64_t stored;     /* answers of this router that the engine must have stored blocks of */
        uint32_t rkey_heard; /* the cache of which another one says so; 0: none does, */
        uint32_t floor_heard; /* and how old is what gave way there */
        struct node_events_floor {
            uint32_t now, before; /* the oldest generation, in this turn and the last; 0: none */
            uint64_t turn;        /* in which something gave way last */
        } floor;
    } events;

    struct { /* as it went out last: share.c */
        uint8_t breaker, still;
        uint64_t rejects;
        struct crdt_learned learned;
    } told;

    /* Requests: book.c, state.c, serving.c, adapters.c */
    uint64_t used_ms;      /* when one was placed there last, or others had some there; 0: never */
    uint64_t guessed_ms;   /* when it was chosen on a guess last; 0: never */
    uint32_t adapter_last; /* that this router used there; 0: none */
    uint32_t adapter_uses; /* by this router; begins anew at CRDT_LOAD_USES_MAX */
    uint32_t adapter_uses_heard; /* sum of the same of all others */

    /* Counted since the name has the slot, whether in use or not: book.c, learning.c */
    uint64_t chosen;
    uint64_t prompt_tokens, cached_tokens; /* of these: estimated, predicted */
    uint64_t outcomes[NODE_OUTCOMES];
    uint64_t failed[NODE_ERRORS];
    uint64_t ttft_count;
    double ttft_predicted_s, ttft_actual_s, ttft_off_s;
};

struct node_router {
    struct node_router_config config;
    const struct node_policy *policy;
    struct prng prng;
    uint64_t turn;
    struct node_state *state;               /* borrowed, */
    const struct node_state_config *common; /* with its settings, */
    struct crdt_state *crdt;                /* and its parts, until it is rewound */
    struct crdt_index *index;
    uint32_t generation; /* of the index, when the beliefs were last marked stale for it */
    struct node_adapters *adapters;
    uint64_t now_ms;         /* at the last call that said the time */
    uint64_t adapters_taken; /* version of the loads */
    /* What a router reported last of a replica, so that each use counts once. Two that share a
     * place count some uses twice. */
    uint32_t adapters_told[4096];
    struct node_models *models;
    struct node_bookings *bookings;
    struct node_answered *answered;
    struct node_renderings *renderings;
    struct node_decay decay;
    uint64_t ticked_ms;
    uint64_t decisions[NODE_REASONS];
    uint64_t unroutable;     /* first attempts without a replica, */
    uint64_t first_attempts; /* and with one */
    uint64_t last_resorts;   /* choices of one that is down, because all are */

    void (*watch)(void *context, unsigned replica, bool present);
    bool (*watch_forgotten)(void *context, unsigned replica);
    void *watch_context;
    const struct node_replication *names; /* of routers, and round trips; NULL: none are known */
    const struct discover *sources;       /* NULL: there are none */
    /* Versions (crdt/registry.h, crdt/reports.h) that were taken in. */
    uint64_t registry_taken, reports_taken, loads_taken;
    uint64_t learned_ms;             /* when what was learned was reported last */
    bool apart;                      /* routers are on several machines, for good */
    bool starts_wait;                /* start times were read before this router had joined */
    bool adopts;                     /* some replica is adopted (node/route/share.c) */
    bool names_held;                 /* some replica is in use although no living router names it */
    struct node_replica_set touched; /* load or sight may be other than reported */
    struct node_replica_set lined;   /* which may have prefill going on */
    struct node_replica_set backing_off; /* what is reported of them changes by time alone */

    /* Of the routers that are alive: how many, and the place of this one in their order. */
    unsigned routers, place;
    uint16_t places[NODE_REPLICAS_MAX]; /* of replicas in use, in the order of their hashes */
    unsigned placed;                    /* how many */
    struct node_fading placed_s;        /* work that this one placed, until others hear of it */
    double unseen_ms;                   /* how old what is known of others' work is, about */

    unsigned kept; /* how often replicas are kept for requests that may be poison */
    unsigned replica_count;
    struct node_replica *replicas; /* NODE_REPLICAS_MAX, */
    struct node_slot *slots;       /* and as many */
    bool fleet_stale;              /* something was learned since the beliefs were set */
    uint64_t fleet_ms;             /* when that was */

    struct node_decisions *decisions_kept; /* NULL: none are */

    uint32_t context_least; /* of the context lengths that are known, in tokens; 0: none is */

    bool engines_tell_usage;   /* all of them */
    struct node_ratio restore; /* of a token from a tier, in tokens that could be computed */

    struct node_followers followers;
    struct node_events events;
    struct node_ruler *ruler;
    struct node_recalled { /* what an earlier life learned of a replica, until it is in use */
        bool any;
        struct crdt_learned learned;
    } * recalled; /* by slot; NULL: nothing */

    struct node_reject_clients clients; /* whose requests are rejected */

    /* Scratch of one decision. */
    struct node_deepest {
        uint64_t id;   /* of the last checkpoint of the prompt that some candidate holds; 0: none */
        double blocks; /* up to it */
    } deepest;
    struct node_candidate candidates[NODE_REPLICAS_MAX];
    struct node_under_way under_way[NODE_REPLICAS_MAX]; /* at each of these */
    unsigned candidate_count;
    bool has_costs;                   /* what they are computed from is known */
    struct node_servers servers;      /* of the request's model */
    struct node_replica_set guesses;  /* candidates that would be a guess */
    bool rejected_any;                /* some replica is avoided for this request, as it rejects */
    struct node_replica_set rejected; /* what others accept: these */
    uint32_t floors[NODE_REPLICAS_MAX];
    uint16_t lengths[NODE_REPLICAS_MAX];     /* points of the prompt's start; of chunks none */
    uint32_t held_blocks[NODE_REPLICAS_MAX]; /* of the prompt: at its start, or of its chunks */
    uint32_t generations[NODE_REPLICAS_MAX];
    struct node_vote votes[NODE_REPLICAS_MAX + 1];
};

/* The size of a request in tokens, by what was learned of its model. */
struct node_size {
    unsigned model; /* row */
    double prompt_tokens;
    double output_tokens;
    double block_tokens;      /* of a block of its text, */
    double mean_block_tokens; /* and of any block */
    double medium_tokens;     /* of an image or the like, the mean; 0: it has none */
    uint32_t adapter;         /* 0: none */
    bool adapter_held;        /* by some candidate */
};

/* Moves the index to the present generation; what depends on it is counted again. */
void node_router_clock(struct node_router *r, uint64_t now_ms);

/* --- rows.c --- */

struct node_replica *node_router_replica_at(const struct node_router *r, unsigned replica);
/* Of the process where it is: for a rank the row of its address, else its own. */
struct node_replica *node_router_process_at(const struct node_router *r, unsigned replica);
static inline struct node_slot *node_router_slot(const struct node_router *r,
                                                 const struct node_replica *k)
{
    return &r->slots[k - r->replicas];
}
/* Whether a decision may look at it: it stands for itself, its process is one of `serving`, and
 * neither is excluded. */
bool node_router_is_asked(const struct node_router *r, unsigned replica,
                          const struct node_replica_set *serving,
                          const struct node_request *request,
                          const struct node_replica_set *excluded);
/* Whether no replica was tried for the request before. */
static inline bool node_router_is_first_attempt(const struct node_replica_set *excluded)
{
    return excluded == NULL || !node_replica_set_any(excluded);
}
/* Of which address each row is a rank; after the registry changed. */
void node_router_ranks_follow(struct node_router *r);
/* What settings and models say of an address holds for its ranks. */
static inline void node_router_ranks_inherit(struct node_router *r)
{
    r->fleet_stale |= node_ranks_inherit(r->replicas, r->replica_count);
}

/* As all routers call a replica that this one calls so; what is made of it is in `out`, of
 * NODE_NAME_MAX bytes. And the other way round, for a replica of this router. */
struct slice node_router_shared_name(const struct node_router *r, struct slice name, char *out);
struct slice node_router_source_name(const struct node_router *r, struct slice name);

/* --- state.c, replicas.c --- */

/* Something of the replica changed that is reported to the others. */
static inline void node_router_touch(struct node_router *r, unsigned replica)
{
    node_replica_set_add(&r->touched, replica);
}
/* What probes say of a replica, for the order in which names have slots (crdt/registry.h). */
void node_router_saw(struct node_router *r, unsigned replica);
/* node_load_advance, which may change the load by itself. */
void node_router_load_advance(struct node_router *r, struct node_replica *k, uint64_t now_ms);
/* What the others have in flight, if that has changed; at one replica or at all. */
void node_router_load_take(struct node_router *r, unsigned replica, uint64_t now_ms);
void node_router_loads_take(struct node_router *r, uint64_t now_ms);
/* What the others report of its cache, which corrects the belief here too. */
/* The replica has come into use. */
void node_router_recalled_take(struct node_router *r, unsigned replica);
void node_router_others_take(struct node_router *r, unsigned replica, uint64_t now_ms);
/* Its state is another one. */
void node_router_state_take(struct node_router *r);
/* Whether the replica's address means the same here as at those that name it. */
bool node_router_may_use(const struct node_router *r, unsigned slot);
/* What the registry says of a replica; NULL: its name is forgotten, or it has none. */
const struct crdt_replica *node_router_row(const struct node_router *r, unsigned replica);
/* Of that the operators' wish, REMOVED where there is no row, and whether this router names it. */
enum crdt_wish node_router_wish(const struct node_router *r, unsigned replica);
bool node_router_is_ours(const struct node_router *r, unsigned replica);
/* Its cache is another one, which is empty. */
void node_router_cache_renewed(struct node_router *r, unsigned replica, uint32_t rkey);
/* The replica table follows the registry. */
void node_router_registry_take(struct node_router *r);
/* Which replicas are in use, by the registry as it is now; calls the watcher where that changed. */
void node_router_presence_update(struct node_router *r);
void node_router_presence_check(const struct node_router *r);
/* Whether routers have been met on other machines, and what follows: replicas of the loopback or a
 * link get the name of their router (rows.c). */
void node_router_apart_follow(struct node_router *r);
/* Slots of forgotten names on which nothing hangs any more are given back. */
void node_router_slots_leave(struct node_router *r);
/* What the settings say of a replica beside its address; replaces what was said before. Only this
 * router counts with it: labels are not reported to others. */
void node_router_labels(struct node_router *r, unsigned replica, const struct node_labels *labels);

/* --- ranks.c --- */

/* Names those that there are. Once a second. */
void node_router_ranks_tick(struct node_router *r, uint64_t now_ms);

/* --- held.c --- */

/* Tokens in a block of the index there, over all models and kinds of prompts that it is sent. */
double node_router_block_tokens(const struct node_replica *replica);
/* Counts what is believed to be held again where something has changed: what is shown is what a
 * request would find (node_router_evaluate()). */
void node_router_beliefs_now(struct node_router *r, uint64_t now_ms);
/* Asks for the memory that node_router_match() reads first, while there is other work to do. */
void node_router_match_ahead(const struct node_router *r, const struct chain *chain);
/* The prompts that share their first blocks share this key. */
uint64_t node_router_prefix_key(const struct chain *chain);
/* Looks the prompt up in the index, for all replicas: lengths and generations. Beliefs are counted
 * again first: a request without a chain needs that, too. */
void node_router_match(struct node_router *r, const struct node_request *request);
/* After it: what one replica holds of the prompt, as far as is believed. */
struct node_holding {
    double blocks;           /* of the index, that are believed to be there */
    double matched_tokens;   /* the same as tokens of the prompt */
    double cached_tokens;    /* that the engine will find, */
    double tier_tokens;      /* of them in a tier behind its own memory */
    double displaced_tokens; /* of others, still wanted, that the prompt would push out */
};
struct node_holding node_router_holding(const struct node_router *r, unsigned k,
                                        const struct node_request *request,
                                        const struct node_size *size);
/* After it: the size of the prompt, by what is known of its beginning. */
void node_router_measure(const struct node_router *r, const struct node_request *request,
                         struct node_size *size);
/* What an answer told of where checkpoints stand in tokens. */
void node_router_measured(struct node_router *r, const struct node_work *work,
                          const struct node_usage *usage, bool complete);
/* The prompt is sent where the work is booked. It counts as held there from now on: the next router
 * that has the same prompt should know at once. */
void node_router_record(struct node_router *r, const struct chain *chain,
                        const struct node_size *size, struct node_work *work);
/* It ended. `computed`: its prompt was, as far as is known; else it was refused or given up, and
 * what it brought does not count. */
void node_router_recorded_end(struct node_router *r, const struct node_work *work, bool computed);
/* Its metrics were read: what they say of evictions. */
void node_router_evictions_take(struct node_router *r, unsigned k, uint64_t now_ms);

/* The oldest generation of which most is believed to be there. */
uint32_t node_router_belief_floor(struct node_router *r, unsigned k);

/* --- kv_events.c --- */

/* Whether the replica's events are live. */
static inline bool node_router_has_events(const struct node_router *r, unsigned k)
{
    const struct node_slot *s = &r->slots[k];
    return s->events.live ||
           (s->events.rkey_heard != 0 && s->events.rkey_heard == r->replicas[k].rkey);
}
/* The oldest generation of what gave way there lately; 0: nothing did. What was used last before it
 * counts as gone, though no mark says so. */
static inline uint32_t node_router_events_floor(const struct node_router *r, unsigned k)
{
    const struct node_slot *s = &r->slots[k];
    const struct node_events_floor *f = &s->events.floor;
    if (!s->events.live)
        return s->events.floor_heard;
    return f->before > 0 && f->before < f->now ? f->before : f->now;
}
/* In a word, where what is believed of its cache comes from: its events; its size as answers or
 * counters corrected it; or nothing but what was recorded. */
const char *node_router_cache_source(const struct node_router *r, unsigned k);
/* Whose are live has changed, or may have. */
void node_router_events_follow(struct node_router *r);
/* A prompt was recorded for some replica. */
void node_router_events_recorded(struct node_router *r, const struct chain *chain);
/* An answer ended, and this is what is known of its tokens. */
void node_router_events_answered(struct node_router *r, const struct node_booking_entry *e,
                                 const struct node_usage *usage, bool well, uint64_t now_ms);
/* The shared state is another one. */
void node_router_events_hear(struct node_router *r);

/* --- rendering.c --- */

/* A kind that is watched takes over what others told, though no client of it asks: so what its
 * replicas were sent is recorded for the others as they read it. */
void node_router_renderings_tick(struct node_router *r, uint64_t now_ms);
/* Notes that the replica is sent the prompt's late system messages, for all routers to see, and
 * whether it had been before. */
void node_router_late_sent(struct node_router *r, struct node_rendered *what, unsigned k);
/* What an answer says of how its prompt was rendered. */
void node_router_rendering_learn(struct node_router *r, const struct node_work *work,
                                 const struct node_rendered_answer *answer);

/* --- health.c --- */

/* The one to try where all are down becomes the only candidate. ERR_UNREACHABLE: there is none, or
 * none is to be tried; ERR_AGAIN: all of them are at their limit. */
MUST_USE int node_router_last_resort(struct node_router *r, const struct node_replica_set *serving,
                                     const struct node_request *request,
                                     const struct node_replica_set *excluded);

/* --- reject.c --- */

/* Which replicas are avoided for this request, as they rejected such ones: r->rejected. */
void node_router_reject_find(struct node_router *r, const struct node_replica_set *serving,
                             const struct node_request *request, uint64_t now_ms);
/* Whether this one is. After the call above. */
static inline bool node_router_reject_avoids(const struct node_router *r, unsigned server)
{
    return r->rejected_any && node_replica_set_has(&r->rejected, server);
}
/* Of a replica that rejects: whether it is avoided for each model that it is known to serve, as no
 * more than half of any model's replicas are. */
bool node_router_reject_within(const struct node_router *r, unsigned server);
/* Whether it rejects, and is avoided so. */
bool node_router_reject_is_avoided(const struct node_router *r, unsigned server);
/* All that speaks against it, for this request too (node/replica/standing.h). After
 * node_router_reject_find(). */
unsigned node_router_against(const struct node_router *r, unsigned replica, uint64_t now_ms);

/* --- ties.c --- */

/* The order of replicas and routers, which shares follow. Once a second. */
void node_router_shares_find(struct node_router *r);
/* The place of the router whose share it is now; as many as there are routers: nobody's. */
unsigned node_router_owner(const struct node_router *r, unsigned k);
/* This one placed so much work. */
void node_router_placed(struct node_router *r, double work_s, uint64_t now_ms);
/* What the others may have placed since they were heard of: as much as this one, each. */
double node_router_unseen_s(const struct node_router *r);

/* --- adapters.c --- */

/* The adapter that the request wants; 0: none. */
uint32_t node_router_adapter_of(struct node_router *r, const struct node_request *request);
/* Reports of other routers were joined: takes in what they used. At once, for a report has the last
 * adapter alone. */
void node_router_adapters_joined(struct node_router *r);
/* What it costs to use it there (node/route/cost.h). */
struct node_adapter_cost {
    double load_s;
    double unloaded_s;
};
struct node_adapter_cost node_router_adapter_cost(const struct node_router *r, unsigned k,
                                                  const struct node_size *size, uint64_t now_ms);
/* Whether some candidate holds it. */
bool node_router_adapter_held(const struct node_router *r, uint32_t adapter);
/* A request of it is placed there; node_adapters_release() ends it. */
void node_router_adapter_use(struct node_router *r, unsigned replica, uint32_t adapter,
                             uint64_t now_ms);
void node_router_adapters_scraped(struct node_router *r, unsigned replica,
                                  const struct node_scrape *s, uint64_t now_ms);
void node_router_adapters_tick(struct node_router *r, uint64_t now_ms);

/* --- restarts.c --- */

/* Start times that were read before this router had joined count from now on, if it has. */
void node_router_starts_take(struct node_router *r);

/* --- serving.c --- */

/* Sets r->servers, for the calls below. To be asked are those that serve the model, or have neither
 * listed their models nor denied it; else SGLang, which takes any name; else those that denied it,
 * in case that has changed. */
void node_router_servers_find(struct node_router *r, const struct node_request *request,
                              uint64_t now_ms);
/* None of the set can be chosen: adds those that list the model and lately denied it. False: there
 * are none. */
bool node_router_denied_too(const struct node_router *r, const struct node_request *request,
                            struct node_replica_set *set);
/* None of those to be asked can be chosen: whether there is no reason to believe that a replica
 * would serve the model, now or when it is back. */
bool node_router_is_unknown(const struct node_router *r, const struct node_request *request);
/* Whether the replica may serve the model, now or when it is back. One that has never listed its
 * models may serve any, but for one that is down while another is up whose list is known: it is no
 * reason to make clients wait for a name that they may have misspelt. */
bool node_router_may_come(const struct node_router *r, unsigned replica);
/* Tokens of a request with its answer. All 0: it fits every context that is known. */
struct node_need {
    uint32_t least; /* it has surely so many, */
    uint32_t most;  /* and hardly more than these */
    uint32_t over;  /* an engine said that it has more than these; 0: none did */
};
struct node_need node_router_need(const struct node_router *r, const struct node_request *request);
enum node_fit { NODE_FIT_NOT, NODE_FIT_MAYBE, NODE_FIT_UNKNOWN, NODE_FIT_WELL };
enum node_fit node_router_fit(const struct node_router *r, unsigned replica,
                              const struct node_need *need);
/* Leaves those of the set that the request may fit; false: it does not change it, for it fits all,
 * or none that is present. */
bool node_router_fit_keep(const struct node_router *r, const struct node_need *need,
                          struct node_replica_set *set);
/* If some candidate lists the model: leaves those that are known to serve it, and of those that
 * have not listed their models the ones whose turn it is to be tried on a guess. */
void node_router_candidates_sure(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms);
/* Whether the replica (the server of its ranks) may serve the model, as it may any, while some
 * candidate lists it. */
bool node_router_is_unsure(const struct node_router *r, unsigned server);
/* Leaves the candidates that it fits; else those of unknown context; else the longest. */
void node_router_candidates_fit(struct node_router *r, const struct node_need *need);
/* Context lengths have changed. */
void node_router_contexts_follow(struct node_router *r);

/* --- eligible.c, company.c --- */

/* Finds the candidates; errors as node_router_place(). */
MUST_USE int node_router_candidates_find(struct node_router *r, const struct node_request *request,
                                         const struct node_need *need,
                                         const struct node_replica_set *excluded, uint64_t now_ms);
/* Leaves those with the company that the request wants. ERR_EXISTS: there is none now. ERR_LIMIT:
 * nor will there be one soon. */
MUST_USE int node_router_candidates_by_company(struct node_router *r,
                                               const struct node_request *request, uint64_t now_ms);

/* --- candidate.c --- */

/* Until all that routers booked there is computed, at this rate. */
double node_router_queue_s(struct node_router *r, struct node_replica *replica, double rate,
                           uint64_t now_ms);
/* Fills the candidates and what they hold of the prompt; with `costs` what node_router_choose()
 * computes costs from. Errors as node_router_place(). */
MUST_USE int node_router_evaluate(struct node_router *r, const struct node_request *request,
                                  const struct node_need *need,
                                  const struct node_replica_set *excluded, bool costs,
                                  uint64_t now_ms, struct node_size *size);

/* --- choose.c --- */

/* After node_router_evaluate(): the candidate that the request goes to. */
unsigned node_router_choose(struct node_router *r, const struct node_request *request,
                            const struct node_policy *policy);

/* Sets what is believed of all replicas' speed (node/replica/fleet.h). */
void node_router_fleet_believe(struct node_router *r, uint64_t now_ms);

/* Models with few samples here take the ratio of the replicas that serve them, which may have been
 * learned by other routers, or of another model. */
void node_router_models_believe(struct node_router *r);

/* --- decisions.c --- */

/* Keeps what was decided, of the candidates as they are now. `costs`: theirs are known. */
void node_router_decision_keep(struct node_router *r, const struct node_request *request,
                               const struct node_size *size, unsigned chosen, bool costs,
                               uint64_t now_ms, struct node_decision *out);

/* Members of an object: what it found, and (`costs`: they are known) what it costs there: of
 * decisions to the microsecond, and with `all` exactly and in more detail, for explain.c. */
void node_candidate_write(const struct node_candidate *c, bool costs, bool all,
                          struct json_writer *w);

#endif

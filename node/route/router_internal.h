/* Shared by the router's files. None of those files depends on another (a lint checks this). */
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
#include "node/route/shadow.h"
#include "node/route/share.h"

/* The replicas that serve a request's model, as rows of their addresses. */
struct node_servers {
    struct node_replica_set surely; /* known to serve the model, or the model's base */
    struct node_replica_set may;    /* known to serve the model, or may serve it */
    struct node_replica_set asked;  /* to be asked for the model now */
};

/* Evidence from other routers that a replica is in use (node/route/share.c has the transitions). */
enum node_naming_state {
    NODE_NAMING_NONE,        /* no other router ever named or used the replica */
    NODE_NAMING_LOST,        /* no router names or uses the replica any more */
    NODE_NAMING_NAMED,       /* another router names the replica. From this state on the replica is
                              * in use. From the next state on it is *held*: in use although no
                              * living router names it */
    NODE_NAMING_LENT,        /* another router uses the replica; no router is known to name it */
    NODE_NAMING_AWAY,        /* the last router that named the replica no longer reports, or
                              * returned without the name */
    NODE_NAMING_LENDER_AWAY, /* the last router that used the replica no longer reports, or returned
                              * and does not use the replica */
};
struct node_naming {
    enum node_naming_state state;
    uint64_t router;    /* router that last named or used the replica */
    uint64_t silent_ms; /* time since when `router` has been back without naming the replica; 0: not
                         * back */
    uint64_t down_ms;   /* time since when the replica has been down; 0: not down */
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
    uint64_t id_stamp[NODE_EVENTS_TOLD_WAYS]; /* low 48 bits of a checkpoint's id, then 16 bits of
                                               * the time of the tiding */
    uint32_t next;                            /* entry to replace next */
};
struct node_events {
    struct node_events_user user;    /* the reader's callbacks; zeroes: no reader here */
    bool any;                        /* some replica's events are live */
    bool others;                     /* other routers read live events and get tidings */
    bool can_ask;                    /* some vLLM replica's events are live */
    struct node_events_bucket *told; /* checkpoints reported to readers lately, in
                                      * NODE_EVENTS_TOLD_BUCKETS buckets; NULL: none yet */
    uint64_t passed_over;            /* other routers' tidings that were invalid or about an unknown
                                      * replica */
};

/* This router's state of a slot, besides the engine's (struct node_replica). Zeroed for new
 * names. */
struct node_slot {
    struct node_naming naming; /* evidence from other routers: share.c */
    bool adopted; /* named by this router while the configured sources have not answered: share.c */
    unsigned ranks_read; /* ranks in the metrics that this router read; 0: none. ranks.c */

    /* Restarts: restarts.c, share.c */
    uint32_t rkey_scraped, rkey_probed; /* rkey of the cache at the last scrape; at the last good
                                         * probe */
    uint64_t start_early_ms; /* engine's start time read before this router had joined; 0: none */

    struct node_fading placed_tokens; /* prompt tokens placed by this router lately (due.c) */
    struct {                          /* KV-cache events: kv_events.c, share.c */
        bool live;                    /* this router reads the replica's events, and they count */
        enum node_reads reads;
        uint64_t stored;      /* answers that must have made the engine store blocks */
        uint32_t rkey_heard;  /* rkey of the cache with events live at another router; 0: none */
        uint32_t floor_heard; /* oldest generation evicted lately, as reported by the router that
                               * reads the events; 0: none */
        struct node_events_floor {
            uint32_t now, before; /* oldest generation evicted in the present turn (a minute,
                                   * kv_events.c), and in the turn before; 0: none */
            uint64_t turn;        /* turn of the last eviction */
        } floor;
    } events;

    struct { /* figures as last reported to the other routers: share.c */
        uint8_t breaker, still;
        uint64_t rejects;
        struct crdt_learned learned;
    } told;

    /* Requests: book.c, state.c, serving.c, adapters.c */
    uint64_t used_ms;      /* time when this router last placed a request, or saw another router's
                            * requests there; 0: never */
    uint64_t guessed_ms;   /* time when the replica was last chosen on a guess; 0: never */
    uint32_t adapter_last; /* adapter that this router used last at the replica; 0: none */
    uint32_t adapter_uses; /* uses of adapters there by this router, modulo CRDT_LOAD_USES_MAX */
    uint32_t adapter_uses_heard; /* sum of adapter_uses that the other routers report */

    /* Counts since the slot got the name, in use or not: book.c, learning.c */
    uint64_t chosen;
    uint64_t prompt_tokens, cached_tokens; /* sums over the chosen requests: estimated prompt
                                            * tokens, predicted cached ones */
    uint64_t outcomes[NODE_OUTCOMES];
    uint64_t failed[NODE_ERRORS];
    uint64_t ttft_count;
    double ttft_predicted_s, ttft_actual_s, ttft_off_s;
};

struct node_router {
    struct node_router_config config;
    const struct node_policy *policy, *plain;
    struct node_shadow shadow;
    struct node_shade *shade; /* loads in shadow mode; NULL: shadow mode was never on */
    struct node_apart_seen {  /* numbers of entries made in the index, at the last reading */
        uint64_t inserted, apart;
    } apart_seen;
    struct prng prng;
    uint64_t turn;
    struct node_state *state;               /* borrowed */
    const struct node_state_config *common; /* settings of `state` */
    struct crdt_state *crdt;                /* part of `state`, like the index, until the state is
                                             * rewound */
    struct crdt_index *index;
    uint32_t generation; /* generation of the index when all beliefs were last marked as stale */
    struct node_adapters *adapters;
    uint64_t now_ms;         /* time given by the last call with a time */
    uint64_t adapters_taken; /* version of the load reports that `adapters` includes */
    /* Hash of each router's last report about a replica, to count each use once. If two pairs of
     * router and replica share an entry, some uses count twice. */
    uint32_t adapters_told[4096];
    struct node_models *models;
    struct node_bookings *bookings;
    struct node_answered *answered;
    struct node_renderings *renderings;
    struct node_decay decay;
    uint64_t ticked_ms;
    uint64_t decisions[NODE_REASONS];
    uint64_t unroutable;     /* first attempts that found no replica */
    uint64_t first_attempts; /* first attempts that found a replica */
    uint64_t last_resorts;   /* choices of a replica that is down, because all are */

    void (*watch)(void *context, unsigned replica, bool present);
    bool (*watch_forgotten)(void *context, unsigned replica);
    void *watch_context;
    const struct node_replication *names; /* the routers' names and round trips; NULL: unknown */
    const struct discover *sources;       /* sources of replicas; NULL: none */
    /* Versions (crdt/registry.h, crdt/reports.h) already taken in. */
    uint64_t registry_taken, reports_taken, loads_taken;
    uint64_t learned_ms;                 /* time of the last report of learned figures */
    bool apart;                          /* routers are on several machines; stays true */
    bool starts_wait;                    /* start times were read before this router had joined */
    bool adopts;                         /* some replica is adopted (node/route/share.c) */
    bool names_held;                     /* some replica is in use without a living namer */
    struct node_replica_set touched;     /* replicas with a load or health that may differ from the
                                          * last report */
    struct node_replica_set lined;       /* replicas that may have prefill under way */
    struct node_replica_set backing_off; /* replicas with reports that change with time alone */

    /* Living routers: the number, and this router's place in their order. */
    unsigned routers, place;
    uint16_t places[NODE_REPLICAS_MAX]; /* each used replica's place in the order of hashes */
    unsigned placed;                    /* number of replicas in the order of `places` */
    struct node_fading placed_s;        /* seconds of prefill that this router placed lately */
    double unseen_ms;                   /* approximate delay of the news of other routers' work */

    unsigned kept; /* number of replicas kept for requests that may be poison, with repetitions */
    unsigned replica_count;
    struct node_replica *replicas; /* NODE_REPLICAS_MAX rows */
    struct node_slot *slots;       /* NODE_REPLICAS_MAX rows */
    bool fleet_stale;              /* samples came since the believed speeds were computed */
    uint64_t fleet_ms;             /* time when the believed speeds were last computed */

    struct node_decisions *decisions_kept; /* the last decisions; NULL: none are kept */

    uint32_t context_least; /* least of the known context lengths, in tokens; 0: none */

    bool engines_tell_usage;   /* all engines report the usage of streams on request */
    struct node_ratio restore; /* cost of a token from a tier, in tokens that could be computed */

    struct node_followers followers;
    struct node_events events;
    struct node_ruler *ruler;
    struct node_recalled { /* a replica's figures from an earlier life, until used */
        bool any;
        struct crdt_learned learned;
    } * recalled; /* rows by slot; NULL: none */

    struct node_reject_clients clients; /* clients with rejected requests */

    /* Scratch of one decision. */
    struct node_deepest {
        uint64_t id;   /* id of the prompt's last checkpoint that some candidate has; 0: none */
        double blocks; /* blocks of the prompt up to `id` */
    } deepest;
    struct node_candidate candidates[NODE_REPLICAS_MAX];
    struct node_under_way under_way[NODE_REPLICAS_MAX]; /* the load at each candidate */
    unsigned candidate_count;
    bool has_costs;                   /* the candidates have the inputs of costs */
    struct node_servers servers;      /* the replicas that serve the request's model */
    struct node_replica_set guesses;  /* candidates that would be a guess */
    bool rejected_any;                /* some replica is avoided because of rejections */
    struct node_replica_set rejected; /* the replicas that are avoided for rejections */
    uint32_t floors[NODE_REPLICAS_MAX];
    uint16_t lengths[NODE_REPLICAS_MAX];     /* matching points of the prompt's start; 0 for
                                              * chunks */
    uint32_t held_blocks[NODE_REPLICAS_MAX]; /* matching blocks, at the start or of the chunks */
    uint32_t generations[NODE_REPLICAS_MAX];
    struct node_vote votes[NODE_REPLICAS_MAX + 1];
    struct chain shadow_chain;
    const struct chain *shadow_of; /* the prompt with the real ids, between
                                    * node_router_shadow_enter() and node_router_shadow_leave();
                                    * NULL at other times */
};

/* The size of a request in tokens, estimated from the figures learned for the model. */
struct node_size {
    unsigned model; /* row */
    double prompt_tokens;
    double output_tokens;
    double block_tokens;      /* tokens per block of the prompt's text */
    double mean_block_tokens; /* tokens per block of any content */
    double medium_tokens;     /* mean tokens of an image, sound or film; 0: none */
    uint32_t adapter;         /* 0: none */
    bool adapter_held;        /* some candidate has the adapter */
};

/* Moves the index to the present generation. After a change, marks all beliefs as stale. */
void node_router_clock(struct node_router *r, uint64_t now_ms);

/* --- rows.c --- */

struct node_replica *node_router_replica_at(const struct node_router *r, unsigned replica);
/* The row of the replica's process: a rank's address, or the replica itself. */
struct node_replica *node_router_process_at(const struct node_router *r, unsigned replica);
static inline struct node_slot *node_router_slot(const struct node_router *r,
                                                 const struct node_replica *k)
{
    return &r->slots[k - r->replicas];
}
/* True if a decision may consider the row: the request takes a row of this kind (a rank or an
 * address), `serving` has the row's process, and `excluded` has neither the row nor the process. */
bool node_router_is_asked(const struct node_router *r, unsigned replica,
                          const struct node_replica_set *serving,
                          const struct node_request *request,
                          const struct node_replica_set *excluded);
/* True if the request was sent to no replica before. */
static inline bool node_router_is_first_attempt(const struct node_replica_set *excluded)
{
    return excluded == NULL || !node_replica_set_any(excluded);
}
/* Sets the address of each rank's row, after a change of the registry. */
void node_router_ranks_follow(struct node_router *r);
/* Copies an address's settings and models to the ranks. */
static inline void node_router_ranks_inherit(struct node_router *r)
{
    r->fleet_stale |= node_ranks_inherit(r->replicas, r->replica_count);
}

/* The first gives the shared name that all routers use for a replica with this name here; a new
 * name is written to `out`, of NODE_NAME_MAX bytes. The second gives this router's name of a
 * replica with that shared name. */
struct slice node_router_shared_name(const struct node_router *r, struct slice name, char *out);
struct slice node_router_source_name(const struct node_router *r, struct slice name);

/* --- state.c, replicas.c --- */

/* Marks the replica for the next report to the other routers. */
static inline void node_router_touch(struct node_router *r, unsigned replica)
{
    node_replica_set_add(&r->touched, replica);
}
/* Reports the replica's health by probes, for the order in which names get slots
 * (crdt/registry.h). */
void node_router_saw(struct node_router *r, unsigned replica);
/* Calls node_load_advance(), and marks a changed load for the next report. */
void node_router_load_advance(struct node_router *r, struct node_replica *k, uint64_t now_ms);
/* The first takes in the load that other routers report at the replica. The second does so for all
 * replicas, if any report changed. */
void node_router_load_take(struct node_router *r, unsigned replica, uint64_t now_ms);
void node_router_loads_take(struct node_router *r, uint64_t now_ms);
/* Takes in the figures of an earlier life, if any. Called when the replica comes into use. */
void node_router_recalled_take(struct node_router *r, unsigned replica);
/* Takes in other routers' reports about the replica's cache, which correct the belief here. */
void node_router_others_take(struct node_router *r, unsigned replica, uint64_t now_ms);
/* Finds the parts of the shared state, at the start and after a replacement of the state. */
void node_router_state_take(struct node_router *r);
/* True if the replica's address means the same server here as at the routers that name it. */
bool node_router_may_use(const struct node_router *r, unsigned slot);
/* The registry's row of a replica; NULL: the name is forgotten, or missing. */
const struct crdt_replica *node_router_row(const struct node_router *r, unsigned replica);
/* The first: the operators' wish in the row; REMOVED if there is no row. The second: true if this
 * router names the replica. */
enum crdt_wish node_router_wish(const struct node_router *r, unsigned replica);
bool node_router_is_ours(const struct node_router *r, unsigned replica);
/* The replica's cache is a new, empty one, which is named `rkey`. */
void node_router_cache_renewed(struct node_router *r, unsigned replica, uint32_t rkey);
/* Updates the replica table from the registry. */
void node_router_registry_take(struct node_router *r);
/* Updates the replicas in use by the present registry; calls the watcher for changes. */
void node_router_presence_update(struct node_router *r);
void node_router_presence_check(const struct node_router *r);
/* Checks if routers have been met on other machines. If so, replicas at a loopback or link-local
 * address get their router's name added (rows.c). */
void node_router_apart_follow(struct node_router *r);
/* Frees the slots of forgotten names to which nothing refers any more. */
void node_router_slots_leave(struct node_router *r);
/* Replaces the replica's labels. Labels are not reported to other routers. */
void node_router_labels(struct node_router *r, unsigned replica, const struct node_labels *labels);

/* --- ranks.c --- */

/* Names the ranks that exist and unnames others. Called once a second. */
void node_router_ranks_tick(struct node_router *r, uint64_t now_ms);

/* --- held.c --- */

/* The index's counters for the replica's believed cache, from the prompts sent there. In shadow
 * mode's look-ups, they come from the prompts that the router's own policy would have sent
 * there. */
static inline struct crdt_index_ring node_router_ring(const struct node_router *r, unsigned k)
{
    return crdt_index_ring_part(r->index, k, r->shadow_of != NULL);
}

/* Tokens in a block of the index there, over all models and kinds of prompts sent there. */
double node_router_block_tokens(const struct node_replica *replica);
/* Recounts the believed contents after a change, so that operators see them as a request would
 * (node_router_evaluate()). */
void node_router_beliefs_now(struct node_router *r, uint64_t now_ms);
/* Prefetches the memory that node_router_match() reads first, to overlap with other work. */
void node_router_match_ahead(const struct node_router *r, const struct chain *chain);
/* The key of the prompt's first blocks, for prefix_hash; 0: no prompt. */
uint64_t node_router_prefix_key(const struct chain *chain);
/* Looks the prompt up in the index, for all replicas: lengths and generations. Recounts stale
 * beliefs first, even for a request without a chain. */
void node_router_match(struct node_router *r, const struct node_request *request);
/* After the look-up: the believed part of the prompt at one replica. */
struct node_holding {
    double blocks;           /* blocks of the index, believed to be cached */
    double matched_tokens;   /* the prompt's tokens in these blocks */
    double cached_tokens;    /* cached tokens that the engine is expected to find */
    double tier_tokens;      /* cached tokens in a tier outside the engine's memory */
    double displaced_tokens; /* other, still needed tokens that the prompt would evict */
};
struct node_holding node_router_holding(const struct node_router *r, unsigned k,
                                        const struct node_request *request,
                                        const struct node_size *size);
/* After the look-up: corrects the size by the measured tokens of the longest known beginning. */
void node_router_measure(const struct node_router *r, const struct node_request *request,
                         struct node_size *size);
/* Learns the token positions of checkpoints from the usage of an answer. */
void node_router_measured(struct node_router *r, const struct node_work *work,
                          const struct node_usage *usage, bool complete);
/* The prompt is sent to the replica of `work`. From now on the prompt counts as cached there, so
 * that the next router with the same prompt knows at once. */
void node_router_record(struct node_router *r, const struct chain *chain,
                        const struct node_size *size, struct node_work *work);
/* The request ended. `computed`: the engine computed the prompt, as far as known. If not, the
 * prompt was rejected or given up, and the new blocks do not count. */
void node_router_recorded_end(struct node_router *r, const struct node_work *work, bool computed);
/* The replica's metrics were read: learns the cache size from the metrics of evictions. */
void node_router_evictions_take(struct node_router *r, unsigned k, uint64_t now_ms);

/* The oldest generation believed to be mostly present. */
uint32_t node_router_belief_floor(struct node_router *r, unsigned k);

/* --- kv_events.c --- */

/* True if the replica's events are live and are about the present caches, not shadow mode's. */
static inline bool node_router_has_events(const struct node_router *r, unsigned k)
{
    const struct node_slot *s = &r->slots[k];
    return r->shadow_of == NULL &&
           (s->events.live ||
            (s->events.rkey_heard != 0 && s->events.rkey_heard == r->replicas[k].rkey));
}
/* The oldest generation evicted lately at the replica; 0: none. Blocks last used before that
 * generation count as gone, even without a mark. */
static inline uint32_t node_router_events_floor(const struct node_router *r, unsigned k)
{
    const struct node_slot *s = &r->slots[k];
    const struct node_events_floor *f = &s->events.floor;
    if (!s->events.live)
        return s->events.floor_heard;
    return f->before > 0 && f->before < f->now ? f->before : f->now;
}
/* The source of the belief about the replica's cache. "events": live events; "answers": the cache
 * size, corrected by answers or counters; "inferred": only the recorded prompts. */
const char *node_router_cache_source(const struct node_router *r, unsigned k);
/* Call when replicas may have got or lost live events. */
void node_router_events_follow(struct node_router *r);
/* A prompt was recorded for some replica: reports the checkpoints to the feeds' readers. */
void node_router_events_recorded(struct node_router *r, const struct chain *chain);
/* An answer ended with this usage; `well`: with outcome OK. Reports this to the feeds' readers. */
void node_router_events_answered(struct node_router *r, const struct node_booking_entry *e,
                                 const struct node_usage *usage, bool well, uint64_t now_ms);
/* Asks the shared state for tidings. Call after a replacement of the state or the reader. */
void node_router_events_hear(struct node_router *r);

/* --- rendering.c --- */

/* Adopts the other routers' renderings for watched kinds of clients, even without requests, to
 * record prompts the way other routers read them. Called once a second. */
void node_router_renderings_tick(struct node_router *r, uint64_t now_ms);
/* Notes, for all routers, that the replica gets the prompt's late system messages, and whether
 * these are new to the replica. */
void node_router_late_sent(struct node_router *r, struct node_rendered *what, unsigned k);
/* Learns the rendering of a prompt from the answer. */
void node_router_rendering_learn(struct node_router *r, const struct node_work *work,
                                 const struct node_rendered_answer *answer);

/* --- health.c --- */

/* Call if all replicas of `serving` are down: makes the replica to try the only candidate.
 * ERR_UNREACHABLE: none may be tried. ERR_AGAIN: all that may be tried are full
 * (node_router_place). */
MUST_USE int node_router_last_resort(struct node_router *r, const struct node_replica_set *serving,
                                     const struct node_request *request,
                                     const struct node_replica_set *excluded);

/* --- reject.c --- */

/* Finds the replicas to avoid for this request because of rejections: r->rejected. */
void node_router_reject_find(struct node_router *r, const struct node_replica_set *serving,
                             const struct node_request *request, uint64_t now_ms);
/* True if this replica is avoided for the request. Call after node_router_reject_find(). */
static inline bool node_router_reject_avoids(const struct node_router *r, unsigned server)
{
    return r->rejected_any && node_replica_set_has(&r->rejected, server);
}
/* True if a rejecting replica is avoided for each of the replica's known models. At most half of
 * any model's replicas are avoided. */
bool node_router_reject_within(const struct node_router *r, unsigned server);
/* True if the replica rejects, and is avoided because of that. */
bool node_router_reject_is_avoided(const struct node_router *r, unsigned server);
/* All reasons against a replica, including those for this request only (node/replica/standing.h).
 * Call after node_router_reject_find(). */
unsigned node_router_against(const struct node_router *r, unsigned replica, uint64_t now_ms);

/* --- ties.c --- */

/* Sets the orders of replicas and of routers, from which node_router_owner() computes each router's
 * share of the replicas. Called once a second. */
void node_router_shares_find(struct node_router *r);
/* The place of the router in whose share the replica is now: the router prefers the replica among
 * equals. If the replica is in no share, returns the number of routers. */
unsigned node_router_owner(const struct node_router *r, unsigned k);
/* Adds to the work that this router placed lately. */
void node_router_placed(struct node_router *r, double work_s, uint64_t now_ms);
/* Estimates the work that other routers may have placed since their last reports: as much for each
 * router as this router placed. */
double node_router_unseen_s(const struct node_router *r);

/* --- adapters.c --- */

/* The number of the request's adapter, a hash of the name; 0: none. */
uint32_t node_router_adapter_of(struct node_router *r, const struct node_request *request);
/* After a join of other routers' reports: takes in the adapters used there. Called at once, because
 * a report names only the last adapter. */
void node_router_adapters_joined(struct node_router *r);
/* The cost of using the adapter at the replica (node/route/cost.h). */
struct node_adapter_cost {
    double load_s;
    double unloaded_s;
};
struct node_adapter_cost node_router_adapter_cost(const struct node_router *r, unsigned k,
                                                  const struct node_size *size, uint64_t now_ms);
/* True if some candidate has the adapter in a slot. False if `adapter` is 0. */
bool node_router_adapter_held(const struct node_router *r, uint32_t adapter);
/* A request for the adapter is placed at the replica, until node_adapters_release(). */
void node_router_adapter_use(struct node_router *r, unsigned replica, uint32_t adapter,
                             uint64_t now_ms);
void node_router_adapters_scraped(struct node_router *r, unsigned replica,
                                  const struct node_scrape *s, uint64_t now_ms);
void node_router_adapters_tick(struct node_router *r, uint64_t now_ms);

/* --- restarts.c --- */

/* After the join: compares the start times that were read before the join. */
void node_router_starts_take(struct node_router *r);

/* --- serving.c --- */

/* Sets r->servers, for the calls below. The router asks the replicas with the model, and those that
 * have neither listed their models nor denied this model. If there are none, the router asks
 * SGLang, which accepts any name. If there is no SGLang either, the router asks the replicas that
 * denied the model, because this may have changed. */
void node_router_servers_find(struct node_router *r, const struct node_request *request,
                              uint64_t now_ms);
/* Call if no replica of the set can be chosen: adds replicas that list the model but lately denied
 * it. False: there are none. */
bool node_router_denied_too(const struct node_router *r, const struct node_request *request,
                            struct node_replica_set *set);
/* Call if none of the asked replicas can be chosen. True if nothing suggests that a replica would
 * serve the model, now or after coming back. */
bool node_router_is_unknown(const struct node_router *r, const struct node_request *request);
/* True if the replica may serve the model, now or after coming back. A replica without any list so
 * far may serve any model, unless that replica is down while a replica with a known list is up.
 * Clients should not wait for a name that may be misspelt. */
bool node_router_may_come(const struct node_router *r, unsigned replica);
/* Tokens of a request and answer together. All 0: fits every known context. */
struct node_need {
    uint32_t least; /* tokens that the request has at least */
    uint32_t most;  /* tokens that the request hardly exceeds */
    uint32_t over;  /* an engine reported that the request exceeds this number of tokens; 0: no
                     * report */
};
struct node_need node_router_need(const struct node_router *r, const struct node_request *request);
enum node_fit { NODE_FIT_NOT, NODE_FIT_MAYBE, NODE_FIT_UNKNOWN, NODE_FIT_WELL };
enum node_fit node_router_fit(const struct node_router *r, unsigned replica,
                              const struct node_need *need);
/* Keeps only replicas of the set that the request may fit. False: the set is unchanged, because the
 * request fits all replicas, or none that is present. */
bool node_router_fit_keep(const struct node_router *r, const struct node_need *need,
                          struct node_replica_set *set);
/* If some candidate lists the model, keeps the candidates known to serve the model, and those
 * without a list and due for a guess. */
void node_router_candidates_sure(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms);
/* True if the replica (`server`: the replica, or the address of a rank) may serve the model only
 * because any model is possible there, while some candidate lists the name. */
bool node_router_is_unsure(const struct node_router *r, unsigned server);
/* Keeps the candidates that the request fits. If there are none, keeps candidates of unknown
 * context; without these too, the candidates with the longest context. */
void node_router_candidates_fit(struct node_router *r, const struct node_need *need);
/* Updates the least known context length after a change. */
void node_router_contexts_follow(struct node_router *r);

/* --- eligible.c, company.c --- */

/* Finds the candidates; errors as node_router_place(). */
MUST_USE int node_router_candidates_find(struct node_router *r, const struct node_request *request,
                                         const struct node_need *need,
                                         const struct node_replica_set *excluded, uint64_t now_ms);
/* Keeps the candidates that meet request->company. ERR_EXISTS: none now. ERR_LIMIT: none soon. */
MUST_USE int node_router_candidates_by_company(struct node_router *r,
                                               const struct node_request *request, uint64_t now_ms);

/* --- candidate.c --- */

/* Time until all prefill booked at the replica by any router is computed, at this rate. */
double node_router_queue_s(struct node_router *r, struct node_replica *replica, double rate,
                           uint64_t now_ms);
/* Fills the candidates, with their cached parts of the prompt. `costs`: also fills the input of
 * node_router_choose() for costs. Errors as node_router_place(). */
MUST_USE int node_router_evaluate(struct node_router *r, const struct node_request *request,
                                  const struct node_need *need,
                                  const struct node_replica_set *excluded, bool costs,
                                  uint64_t now_ms, struct node_size *size);

/* --- choose.c --- */

/* The policy's choice among the candidates. Call after node_router_evaluate(). */
unsigned node_router_choose(struct node_router *r, const struct node_request *request,
                            const struct node_policy *policy);

/* Sets the believed speeds of all replicas (node/replica/fleet.h). */
void node_router_fleet_believe(struct node_router *r, uint64_t now_ms);

/* Sets the believed bytes per token of models with few samples at this router: takes the figure of
 * a replica that serves the model, which other routers or other models may have taught. */
void node_router_models_believe(struct node_router *r);

/* --- decisions.c --- */

/* Stores the policy's decision and the candidates, if the ring takes it. Sets out->number. */
void node_router_decision_keep(struct node_router *r, const struct node_request *request,
                               const struct node_size *size, const struct node_policy *policy,
                               unsigned chosen, uint64_t now_ms, struct node_decision *out);
/* Adds the replica `own` to a stored decision: the choice of the router's own policy in shadow
 * mode. */
void node_router_decision_shadow(struct node_router *r, uint64_t number, unsigned own);

/* Writes a candidate's conditions and costs as members of an object. For decisions, costs are
 * rounded to the microsecond, or null if not known (`costs`). With `all`, for explain.c, costs are
 * exact and more detailed. */
void node_candidate_write(const struct node_candidate *c, bool costs, bool all,
                          struct json_writer *w);

#endif

/* One replica as the router sees it: whether it may be used, what it is doing, what was learned of
 * it. Owns the replica's load, belief and figures. Its health is a small state machine:
 *
 *            probe ok                     3 probes failed, port refused, or
 *   UNKNOWN -----------> UP <----------.  5 requests in a row that could not connect or broke
 *      |                  |             \
 *      '---------------> DOWN ----------- probe ok, or a token of a request sent since
 *
 * A probe that a router answers takes it to ROUTER, from any state: requests that are sent there
 * would go in a circle. The next good probe takes it to UP, bad ones to DOWN.
 *
 * Draining and asleep are flags beside it: an operator's wish, and what the engine says of itself.
 *
 * One that is DOWN is sent a request only where all that serve the model are, as a last resort.
 *
 * Answers never take a replica down, because a client could provoke them at a whole fleet. But they
 * make it *avoided*: requests go there only where no other replica that serves the model will do.
 *   - Its health check said no (leaving), until one says yes: it drains, or its engine is dead.
 *   - It stands still (node/replica/health.h).
 *   - It went down because requests broke, and is up again: for a back-off.
 *   - A full queue (503 of a healthy engine): for a second.
 *   - 3 answers of 5xx with no success between: for a back-off. A server that drains answers its
 *     health check while it fails each request at once, and its empty queue would attract them all.
 *   - A share of its connections breaks, far more than at others (node/replica/breaker.h): for a
 *     back-off, and then it starts slowly.
 *   - It rejected requests that others then accepted (node/replica/reject.h): for such requests.
 * A back-off is 1 s at first and doubles up to 30 s when it comes again soon, for whichever of
 * these reasons. When it is over, one request at a time may go there (the trial) until an answer
 * has begun. Routers know of each other's back-offs, and make one trial for all
 * (node/replica/breaker.h).
 */
#ifndef NODE_REPLICA_REPLICA_H
#define NODE_REPLICA_REPLICA_H

#include "crdt/reports.h"
#include "node/replica/belief.h"
#include "node/replica/booking.h"
#include "node/replica/breaker.h"
#include "node/replica/evidence.h"
#include "node/replica/foreign.h"
#include "node/replica/health.h"
#include "node/replica/labels.h"
#include "node/replica/learn.h"
#include "node/replica/reject.h"
#include "node/replica/room.h"
#include "node/replica/scrape.h"
#include "node/replica/scraped.h"
#include "node/replica/terms.h"
#include "node/replica/whole.h"

enum {
    NODE_PROBE_FAILURES_MAX = 3, /* unless configured */
    NODE_ANSWER_FAILURES_MAX = 5,
    NODE_ERROR_ANSWERS_MAX = 3,
    NODE_BUSY_AVOID_MS = 1000,     /* after it said that it is full */
    NODE_BUSY_AGAIN_MS = 250,      /* but where requests would wait it is asked again after this */
    NODE_WINDOW_SHARED_MS = 15000, /* least length of a window while there are other routers */
    NODE_OUTCOMES = NODE_OUTCOME_REJECTED + 1,
};

/* Predictions against what turned out, since the start. */
struct node_prediction_sums {
    uint64_t predicted;
    uint64_t actual;
    uint64_t off; /* sum of absolute differences, per answer or per scrape */
};

/* Sums since the start, of requests whose answers began. */
struct node_predicted {
    uint64_t prompt_tokens;
    uint64_t cached_tokens; /* as predicted */
    uint64_t told;          /* answers that reported their cached tokens */
};

/* What the others report of the cache, summed up: differences mean something while they are the
 * same routers in the same lives. */
struct node_others {
    uint64_t who; /* names those routers and lives; 0: nobody */
    unsigned count;
    struct node_predicted predicted;
    uint64_t void_blocks;
    uint32_t work; /* how often they saw the engine work */
    double size_log,
        size_weight; /* of the cache, by their evidence; the first weighed, summed up */
};

/* The sums at the scrape that began this window. The engine's counters count the requests of all
 * routers, so they are compared with what all routers predicted in the window. The others' sums are
 * a few seconds late, so a window is longer while there are others. */
struct node_scrape_window {
    double queries, hits; /* -1: not known */
    struct node_predicted predicted;
    uint64_t who;
    uint64_t since_ms;
    /* Of this router's requests that began in it: a stand-in for all. */
    uint64_t own_prompt_tokens;
    unsigned own_requests;
    float own_expected[NODE_SIZES];
};

/* What other routers knew of the size of the cache when this one began, or what the engine shows of
 * it; it fades. */
struct node_size_held {
    double log, weight;
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

/* Rows of the router's table. Each part names the files that write it, of node/route where nothing
 * else is said. */
struct node_replica {
    /* Read at each decision, and so side by side: a cache line holds 64 bytes of them. By many:
     * health by node/replica/replica.c; which is in use by replicas.c, ranks by rows.c; the load by
     * router.c, learning.c and state.c; beliefs by node/replica/fleet.c and held.c. */
    enum node_health health; /* UNKNOWN, UP, DOWN or ROUTER; draining is a flag */
    enum node_health hint;   /* what most others see, while it is UNKNOWN here */
    bool absent;             /* in use by no router, or a free slot: in no table */
    bool draining;           /* operators wish it, or it vanishes and they did not add it */
    bool asleep;
    bool no_place;     /* no connection can be opened to it from here now */
    bool models_stale; /* its list of models may be that of another process */
    /* Data-parallel ranks (node/replica/rank.h): what is kept for the whole process is in the row
     * of the address. */
    bool is_rank;
    uint8_t rank;    /* where it is one */
    uint8_t ranks;   /* of this address that are in use; 0: it is chosen itself */
    uint16_t server; /* the slot of that row: its own, but for a rank */
    enum node_engine engine;
    uint32_t rank_requests; /* under way at them, of this router, */
    unsigned kept;          /* for requests that may be poison (node_router_keep) */
    double weight;          /* its share of the work, as this router's settings say; else 1 */
    uint64_t busy_until_ms;
    uint64_t back_ms; /* when it came back, empty: slow start (standing.h); 0: it did not */
    uint64_t used_ms; /* when a request was placed there last, or others had some there; 0: never */
    struct node_backoff failing;   /* answers of 5xx, a share of failures, or, as `broke` says: */
    bool broke;                    /* connections failed or broke, and it went down */
    struct node_reject reject;     /* what it rejects and others accept: of a process */
    struct node_signs signs;       /* of life, or of none */
    struct node_breaker breaker;   /* the same between routers */
    struct node_tally tally;       /* of this router's attempts */
    uint64_t rank_requests_remote; /* as rank_requests, of others */
    unsigned ranks_read;           /* in the metrics that this router read; 0: none were */
    uint64_t busy_requests; /* of this router's, were in flight when it said that it is full */
    uint64_t name_hash;
    struct node_load load;
    struct node_room room;       /* that contexts have there, by what prompts waited */
    struct node_foreign foreign; /* what else it does, and what it has no room for */
    uint64_t cache_tokens;       /* by the engine itself; 0: unknown */
    uint64_t cache_tokens_heard; /* the same, reported by another router; 0: by none */
    struct node_belief belief;
    /* Believed, by its own samples and by the fleet (node/replica/fleet.h). */
    uint64_t fleet;           /* which replicas it is like: a key of its model; 0: unknown */
    double tokens_per_s;      /* of prefill */
    double idle_tokens_per_s; /* the same while nothing is under way there */
    double step_base_s;       /* of a decode step without context */
    double idle_step_base_s;
    /* Of all prompts sent there, whatever model and form: blocks of the index to tokens of cache.
     */
    struct node_ratio bytes_per_token;
    struct node_fading placed_tokens; /* of prompts, by this router, lately (node/route/due.c) */

    /* Speeds: node/replica/speed.c. */
    struct node_speed rate; /* tokens of prefill per second */
    struct node_speed pace; /* decode steps per second, were there no context */
    struct node_paced {     /* when its last sample came */
        uint64_t samples;
        uint32_t ended; /* answers of all like it, sent from here */
    } paced;
    struct node_whole whole;       /* whole answers, where nothing better tells */
    double short_tokens, short_s;  /* prefills too short to be timed one by one, added up */
    uint64_t streamed_ms, told_ms; /* when streams, and the metrics, last taught; 0: never */
    /* The cache: node/replica/replica.c and learned.c, learning.c. */
    uint64_t bytes_samples; /* taken here or by other routers, each once */
    bool belief_held;       /* the belief's factor is of this cache (learned by any router) */
    struct node_evidence evidence; /* of its size, by this router's requests */
    struct node_size_held size_held;
    double evicted_seen, evicted_idle_seen_s; /* what was made use of; -1: nothing */
    bool tells_cached[2];     /* streamed and whole answers said what was cached: none said is 0 */
    unsigned ranks_missing;   /* readings in a row without some rank's counters */
    unsigned told_block;      /* what divides all that they said; 0: nothing said */
    unsigned told_block_seen; /* how often they said something else than before */
    uint64_t told_last;

    /* Probes and answers: node/replica/replica.c, replicas.c, restarts.c; contexts by serving.c. */
    unsigned probe_failures; /* in a row */
    unsigned probe_failures_max;
    uint64_t probe_failures_total;
    unsigned answer_failures; /* in a row, for want of a connection or of its end */
    unsigned error_answers;   /* 5xx in a row */
    unsigned probes_refused;  /* bit 1 << enum node_probe: its last answer was 401 or 403 */
    uint16_t check_status;    /* of its last health check; 0: it had no answer */
    uint16_t list_status;     /* of its last answer to /v1/models that was no list; 0: it lists */
    uint64_t guessed_ms;      /* when it was chosen on a guess last (route/serving.c); 0: never */
    bool gone;                /* its port refused, and no probe succeeded since */
    uint64_t refused_ms;      /* when its port refused a check last */
    bool refuses, tls_fails;  /* so its last probe failed; */
    int unresolved;           /* or for want of an address, by this ERR_*; 0: it has one */
    bool packs;               /* it answered in a coding that is not decoded here */
    uint32_t context_listed;  /* by its list of models, and */
    uint32_t context_told;    /* by SGLang's /server_info; 0: they do not say */
    uint32_t adapter_slots;   /* by the engine itself; 0: unknown */
    uint32_t adapter_slots_heard; /* the same, reported by another router; 0: by none */

    /* adapters.c */
    uint32_t adapter_last;       /* that this router used there; 0: none */
    uint32_t adapter_uses;       /* by this router; begins anew at CRDT_LOAD_USES_MAX */
    uint32_t adapter_uses_heard; /* sum of the same of all others */

    /* Metrics, and what was predicted: node/replica/replica.c and scraped.c, held.c. */
    struct node_scrape scrape;
    uint64_t scraped_ms;         /* 0: never */
    struct node_scraped scraped; /* by whom */
    uint64_t start_early_ms;     /* that this router read before it had joined; 0: none */
    struct node_scrape_window window;
    struct node_predicted predicted; /* own */
    uint32_t work;                   /* how often this router saw the engine work: scraped.h */
    uint64_t void_blocks;            /* sum, of prompts of this router that were never computed */
    struct node_others others;

    /* Counters: router.c, learning.c. They stay when it goes out of use. */
    uint64_t chosen;
    uint64_t usage_impossible; /* answers whose usage cannot be true (node/replica/usage.h) */
    uint64_t outcomes[NODE_OUTCOMES];
    uint64_t failed[NODE_ERRORS];
    uint64_t restarts;
    uint64_t prompt_tokens, cached_tokens; /* chosen: estimated, predicted */
    struct node_prediction_sums by_usage, by_scrape;
    double ttft_predicted_s, ttft_actual_s, ttft_off_s;
    uint64_t ttft_count;

    /* Between routers (share.h): share.c, replicas.c, restarts.c. */
    bool adopted;   /* this router names it because its own sources have not spoken yet */
    bool vanishing; /* its source says that it goes: no new requests from here */
    struct node_naming naming; /* by others */
    uint16_t era;              /* which name in turn has this slot */
    uint32_t life;             /* which engine in turn: a name, one added again, a restart */
    uint32_t rkey;             /* of its present cache (crdt/registry.h) */
    uint32_t rkey_scraped, rkey_probed; /* at the last scrape, the last good probe */
    struct crdt_learned reported;

    /* What it is called, and what the settings say of it: replicas.c. */
    uint16_t name_len;   /* 0: a free slot */
    uint16_t router_len; /* name of the router that answers there, while its health is ROUTER */
    char name[NODE_NAME_MAX];
    char router[NODE_ROUTER_NAME_MAX];
    struct node_labels said; /* by this router's settings; its slices are of these: */
    char model_said[NODE_MODEL_ID_MAX];
    char health_said[NODE_HEALTH_PATH_MAX];
};

/* What is believed of any engine before something was learned of it, and when it counts as down. */
struct node_replica_config {
    double prefill_tokens_per_s;
    double decode_step_ms;
    double bytes_per_token;
    uint32_t probe_failures_max; /* 0: NODE_PROBE_FAILURES_MAX */
};

/* `name` has at most NODE_NAME_MAX bytes. */
void node_replica_init(struct node_replica *k, struct slice name, enum node_engine engine,
                       uint64_t name_hash, const struct node_replica_config *config);
struct slice node_replica_name(const struct node_replica *k);

/* Its context length: of a prompt with its answer, in tokens; 0: nobody knows. */
static inline uint32_t node_replica_context(const struct node_replica *k)
{
    if (k->said.context_tokens > 0)
        return k->said.context_tokens;
    bool told_less =
        k->context_told > 0 && (k->context_listed == 0 || k->context_told < k->context_listed);
    return told_less ? k->context_told : k->context_listed;
}

/* How many adapters the engine holds at a time; 0: nobody knows. */
static inline uint32_t node_replica_adapter_slots(const struct node_replica *k)
{
    return k->adapter_slots > 0 ? k->adapter_slots : k->adapter_slots_heard;
}

/* As an operator sees it: a draining replica that is not down, nor a router, is DRAINING. */
enum node_health node_replica_health(const struct node_replica *k);

/* May get new requests while in this health (UP or UNKNOWN; DOWN as a last resort). */
static inline bool node_replica_usable(const struct node_replica *k, enum node_health health)
{
    enum node_health seen = k->health != NODE_HEALTH_UNKNOWN ? k->health : k->hint;
    return seen == health && !k->absent && !k->draining && !k->asleep;
}

/* In flight there, ranks included, of this router. */
static inline uint32_t node_replica_own_requests(const struct node_replica *k)
{
    return k->load.requests + k->rank_requests;
}
/* And of all routers. */
static inline uint64_t node_replica_requests(const struct node_replica *k)
{
    return node_replica_own_requests(k) + k->load.remote.requests + k->rank_requests_remote;
}

/* No more may be booked there: it has `max`, or this router cannot open a connection to it now. */
static inline bool node_replica_is_full(const struct node_replica *k, uint32_t max)
{
    return k->no_place || node_replica_own_requests(k) >= max;
}

/* Why it is avoided is in node/replica/standing.h. */

/* One active probe. Returns true if the engine must have lost its cache: its port refused, so the
 * process is gone. True only once, not at each probe while it stays away. */
bool node_replica_probed(struct node_replica *k, bool ok, bool refused, uint64_t now_ms);
/* So many failed probes in a row take it down; 0: NODE_PROBE_FAILURES_MAX. */
void node_replica_failures_max(struct node_replica *k, uint32_t max);
/* It is out of use: if it comes back it is as if it were new, but for counters and its name. What
 * is in flight there stays booked. */
void node_replica_renew(struct node_replica *k, const struct node_replica_config *config);
/* One active probe that a router answered. */
void node_replica_found_router(struct node_replica *k, struct slice who);
/* One answer has begun, to a request that was sent at `chosen_ms`: it is no longer on trial, and no
 * longer down if it went down before that. */
void node_replica_answering(struct node_replica *k, uint64_t chosen_ms, uint64_t now_ms);
/* Its requests fail: it backs off, if it does not yet. */
void node_replica_fails(struct node_replica *k, bool broke, uint64_t now_ms);
/* One answer ended. */
void node_replica_answered(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms);
/* Whether the last metrics lacked ranks that those before had, which may come back. */
bool node_replica_misses_ranks(const struct node_replica *k);
/* New metrics. Returns true if the engine has lost its cache since the last ones. */
bool node_replica_scraped(struct node_replica *k, const struct node_scrape *s, uint64_t now_ms);

/* Size of the cache, as the settings say of this replica, by the engine, or configured for all;
 * without the learned factor. */
double node_replica_cache_tokens(const struct node_replica *k, double configured);
/* That of the engine's own memory, by itself; 0: unknown. */
double node_replica_near_tokens(const struct node_replica *k);

/* Tokens in a block of its cache, by the engine or by what its answers say; 0: unknown. */
double node_replica_block_tokens(const struct node_replica *k);
/* Of the tokens that match those that it can use: whole blocks, and never the prompt's last. */
double node_replica_whole_tokens(const struct node_replica *k, double prompt, double matched);

/* A request began there: what of it would be held, at each size of the cache. The engine's counters
 * will show it. `times` -1: they will not, after all. */
void node_replica_began(struct node_replica *k, const struct node_work *work, int times);
/* A finished answer said what came from the cache; `predicted` is of the same prompt. `expected`:
 * what would have, at each size; `counted`: what did, but for the grain of both. */
void node_replica_cached_reported(struct node_replica *k, uint64_t prompt, uint64_t predicted,
                                  uint64_t actual, double counted,
                                  const float expected[NODE_SIZES]);
/* The belief in the size moves towards what all routers know. Called where one of them learned
 * something, and with each tick: evidence fades. */
void node_replica_size_believe(struct node_replica *k);
void node_replica_size_fade(struct node_replica *k, double seconds);
/* What this router knows of the size, to be shared: the size in units of the reported one, and by
 * how many prompts that is better. */
void node_replica_size_known(const struct node_replica *k, double *size, double *weight);
/* The engine shows for how long blocks had not been used when they gave way, so long ago is what
 * its cache reaches back to. Seconds, once enough of them did since the last answer; else 0. */
double node_replica_evicted_after(struct node_replica *k);
/* And that is so much, in units of the reported size: it is believed before anything else. */
void node_replica_size_shown(struct node_replica *k, double size);
/* Nothing is known of its cache: it is another one, or its engine another process. */
void node_replica_cache_forget(struct node_replica *k);
/* The others' sums as they are now: what their answers taught since counts here too, in the present
 * generation. What they saw of the engine's work is a sign of it here. */
void node_replica_others(struct node_replica *k, const struct node_others *others,
                         uint32_t generation, uint64_t now_ms);
/* Another figure, which rests on so many samples. */
void node_replica_bytes_believe(struct node_replica *k, double bytes_per_token, uint64_t samples);

#endif

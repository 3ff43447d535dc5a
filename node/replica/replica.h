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
 * make it *avoided*: requests go there only where no other replica that serves the model will do
 * (node/replica/standing.h has all reasons). So do 3 answers of 5xx with no success between: a
 * server that drains answers its health check while it fails each request at once, and its empty
 * queue would attract them all.
 *
 * A back-off is 1 s at first and doubles up to 30 s when it comes again soon, for whichever reason.
 * When it is over, one request at a time may go there (the trial) until an answer has begun.
 * Routers know of each other's back-offs, and make one trial for all (node/replica/breaker.h).
 */
#ifndef NODE_REPLICA_REPLICA_H
#define NODE_REPLICA_REPLICA_H

#include "node/replica/belief.h"
#include "node/replica/booking.h"
#include "node/replica/breaker.h"
#include "node/replica/cache.h"
#include "node/replica/fleet.h"
#include "node/replica/foreign.h"
#include "node/replica/health.h"
#include "node/replica/labels.h"
#include "node/replica/rank.h"
#include "node/replica/reject.h"
#include "node/replica/room.h"
#include "node/replica/scrape.h"
#include "node/replica/scraped.h"
#include "node/replica/speed.h"
#include "node/replica/terms.h"
#include "node/replica/turn.h"

enum {
    NODE_PROBE_FAILURES_MAX = 3, /* unless configured */
    NODE_ANSWER_FAILURES_MAX = 5,
    NODE_ERROR_ANSWERS_MAX = 3,
    NODE_BUSY_AVOID_MS = 1000, /* after it said that it is full */
    NODE_BUSY_AGAIN_MS = 250,  /* but where requests would wait it is asked again after this */
};

/* What became of one health check. */
struct node_check {
    bool ok;
    bool refused; /* its port does: the process is gone */
    bool tls_fails;
    int unresolved;  /* its name has no address, by this ERR_*; 0: it has one */
    uint16_t status; /* of the answer; 0: there was none */
};

/* What the engine says of its sizes, to this router or to another one. 0: it does not. */
struct node_sizes_told {
    uint64_t cache_tokens, cache_tokens_heard;   /* of its own memory */
    uint32_t adapter_slots, adapter_slots_heard; /* adapters that it holds at a time */
    uint32_t context_listed;                     /* context by its list of models, and */
    uint32_t context_info;                       /* by SGLang's /server_info */
};

/* How it failed lately, and why it is avoided for that. */
struct node_trouble {
    unsigned probe_failures; /* in a row */
    unsigned probe_failures_max;
    uint64_t probe_failures_total;
    unsigned answer_failures;    /* in a row, for want of a connection or of its end */
    unsigned error_answers;      /* 5xx in a row */
    bool gone;                   /* its port refused, and no probe succeeded since */
    uint64_t refused_ms;         /* when its port refused a check last */
    struct node_check check;     /* the last one */
    struct node_backoff failing; /* answers of 5xx, a share of failures, or, as `broke` says: */
    bool broke;                  /* connections failed or broke, and it went down */
    struct node_tally tally;     /* of this router's attempts */
    uint64_t busy_until_ms;      /* it said that it is full, */
    uint64_t busy_requests;      /* with so many of this router's in flight */
    uint64_t back_ms; /* when it came back, empty: slow start (standing.h); 0: it did not */
};

/* What the proxy says of its server, by node/route/replicas.c. */
struct node_server {
    bool no_place;           /* no connection can be opened to it from here now */
    bool packs;              /* it answered in a coding that is not decoded here */
    bool models_stale;       /* its list of models may be that of another process */
    uint16_t list_status;    /* of its last answer to /v1/models that was no list; 0: it lists */
    unsigned probes_refused; /* bit 1 << enum node_probe: its last answer was 401 or 403 */
};

/* A row of the router's table. Each struct in it is written by the file that it is named for, the
 * rest by replica.c. */
struct node_replica {
    /* Read at each decision, and so side by side: a cache line holds 64 bytes of them. */
    enum node_health health; /* UNKNOWN, UP, DOWN or ROUTER; draining is a flag */
    enum node_health hint;   /* what most others see, while it is UNKNOWN here */
    bool absent;             /* in use by no router, or a free slot: in no table */
    bool draining;           /* operators wish it, or it vanishes and they did not add it */
    bool vanishing;          /* its source says that it goes: no new requests from here */
    bool asleep;
    enum node_engine engine;
    unsigned kept; /* for requests that may be poison (node_router_keep) */
    struct node_rank rank;
    struct node_server server;
    uint64_t name_hash; /* keyed; the same at all routers */
    struct node_sizes_told told;
    struct node_trouble trouble;
    struct node_reject reject;   /* what it rejects and others accept: of a process */
    struct node_signs signs;     /* of life, or of none: health.c */
    struct node_breaker breaker; /* its back-offs between routers */
    double weight;               /* its share of the work, as this router's settings say; else 1 */
    struct node_load load;       /* booking.c */
    struct node_room room;       /* that contexts have there, by what prompts waited */
    struct node_foreign foreign; /* what else it does, and what it has no room for */
    struct node_belief belief;
    struct node_believed believed; /* fleet.c */
    struct node_cache cache;

    struct node_shown shown;      /* speed.c */
    struct node_scrape scrape;    /* the last metrics */
    uint64_t scraped_ms;          /* 0: never */
    struct node_turn turn;        /* to read it for all, */
    struct node_turn turn_events; /* and its KV events */
    struct node_scraped scraped;  /* by whom */
    uint64_t restarts;

    /* Which one it is. */
    uint16_t era;        /* which name in turn has this slot */
    uint32_t life;       /* which engine in turn: a name, one added again, a restart */
    uint32_t rkey;       /* of its present cache (crdt/registry.h) */
    uint16_t name_len;   /* 0: a free slot */
    uint16_t router_len; /* name of the router that answers there, while its health is ROUTER */
    char name[NODE_NAME_MAX];
    char router[NODE_ROUTER_NAME_MAX];
    struct node_labels said; /* by this router's settings; its slices are of these: labels.c */
    char model_said[NODE_MODEL_ID_MAX];
    char health_said[NODE_HEALTH_PATH_MAX];
    char kv_events_said[KV_NAMED_MAX];
};

/* What is believed of any engine before something was learned of it, and when it counts as down. */
struct node_replica_config {
    double prefill_tokens_per_s;
    double decode_step_ms;
    double bytes_per_token;
    uint32_t probe_failures_max; /* 0: NODE_PROBE_FAILURES_MAX */
};

/* `name` has at most NODE_NAME_MAX bytes; empty: none has this row. */
void node_replica_init(struct node_replica *k, struct slice name, enum node_engine engine,
                       uint64_t name_hash, const struct node_replica_config *config);
/* Of row `slot`, which had another name or none: all is as after init, but it is absent. */
void node_replica_anew(struct node_replica *k, unsigned slot, struct slice name, uint64_t name_hash,
                       const struct node_replica_config *config);
/* Whether it is in use. One that no longer is counts as new if it comes back, but for counters and
 * its name. What is in flight there stays booked. */
void node_replica_present(struct node_replica *k, bool present,
                          const struct node_replica_config *config);
/* Its source drops it, operators wish to drain it, or `added` it: then no source does. */
void node_replica_drain(struct node_replica *k, bool vanishing, bool wished, bool added);
struct slice node_replica_name(const struct node_replica *k);
/* Kept for a request that may be poison; each call with true wants one with false. */
void node_replica_keep(struct node_replica *k, bool kept);

/* Somebody says which engine it is: counts if nothing is known yet. Returns whether it does. */
bool node_replica_engine_hear(struct node_replica *k, enum node_engine e);
/* Its answers are those of this kind (AUTO: they do not say). It may be another engine than before;
 * what the settings say stands above, and OTHER is what somebody said. Whether it is news. */
bool node_replica_engine_found(struct node_replica *k, enum node_engine e);

/* Its context length: of a prompt with its answer, in tokens; 0: nobody knows. */
uint32_t node_replica_context(const struct node_replica *k);
/* By its list of models; 0: it does not say. True: it listed another one before, so it was started
 * anew, and what /server_info said no longer counts. */
bool node_replica_context_listed(struct node_replica *k, uint32_t tokens);
/* By SGLang's /server_info; 0: it does not say. */
void node_replica_context_info(struct node_replica *k, uint32_t tokens);

/* How many adapters the engine holds at a time; 0: nobody knows. */
static inline uint32_t node_replica_adapter_slots(const struct node_replica *k)
{
    return k->told.adapter_slots > 0 ? k->told.adapter_slots : k->told.adapter_slots_heard;
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
    return k->load.requests + k->rank.requests;
}
/* And of all routers. */
static inline uint64_t node_replica_requests(const struct node_replica *k)
{
    return node_replica_own_requests(k) + k->load.remote.requests + k->rank.requests_remote;
}

/* No more may be booked there: it has `max`, or this router cannot open a connection to it now. */
static inline bool node_replica_is_full(const struct node_replica *k, uint32_t max)
{
    return k->server.no_place || node_replica_own_requests(k) >= max;
}

/* Why it is avoided is in node/replica/standing.h. */

/* One active probe. Returns true if the engine must have lost its cache: its port refused, so the
 * process is gone. True only once, not at each probe while it stays away. */
bool node_replica_probed(struct node_replica *k, struct node_check check, uint64_t now_ms);
/* So many failed probes in a row take it down; 0: NODE_PROBE_FAILURES_MAX. */
void node_replica_failures_max(struct node_replica *k, uint32_t max);
/* Its health check says no: it is avoided until one says yes. */
void node_replica_leaves(struct node_replica *k);
/* One active probe that a router answered. */
void node_replica_found_router(struct node_replica *k, struct slice who);

/* A request is sent to this process, or to a rank of it. */
void node_replica_sent(struct node_replica *k, bool to_rank, uint64_t now_ms);
/* One answer has begun, to a request that was sent at `chosen_ms`: it is no longer on trial, and no
 * longer down if it went down before that. */
void node_replica_answering(struct node_replica *k, uint64_t chosen_ms, uint64_t now_ms);
/* One that was sent has ended: released, and judged as below. */
void node_replica_ended(struct node_replica *k, bool at_rank, enum node_outcome outcome,
                        uint64_t now_ms);
/* One answer ended, maybe a while ago. */
void node_replica_answered(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms);
/* Its engine is dead, or its requests fail: it backs off, if it does not yet. */
void node_replica_fails(struct node_replica *k, bool broke, uint64_t now_ms);
/* An attempt ended, whole or by a failure (struct node_tally): too many failures, held against
 * those of all `count` replicas, begin a back-off and a slow start after it. */
void node_replica_tally(struct node_replica *k, bool failed, const struct node_replica *replicas,
                        unsigned count, uint64_t now_ms);

/* Whether the last metrics lacked ranks that those before had, which may come back. */
bool node_replica_misses_ranks(const struct node_replica *k);
/* New metrics. Returns true if the engine has lost its cache since the last ones. */
bool node_replica_scraped(struct node_replica *k, const struct node_scrape *s, uint64_t now_ms);

#endif

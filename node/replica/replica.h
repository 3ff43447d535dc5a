/* A replica as the router sees it: health, load, learned figures. Owns the replica's load, belief
 * and figures. The health is a small state machine:
 *
 *            probe ok                     3 probes failed, port refused, or
 *   UNKNOWN -----------> UP <----------.  5 requests in a row that could not connect or broke
 *      |                  |             \
 *      '---------------> DOWN ----------- probe ok, or a token of a request sent since
 *
 * If a router answers a probe, the state becomes ROUTER, from any state: requests sent there
 * would go in a circle. The next good probe leads to UP, bad ones to DOWN.
 *
 * Two flags are independent of the state: draining (by an operator) and asleep (by the engine).
 *
 * A DOWN replica gets requests only if all replicas of the model are DOWN, as a last resort.
 *
 * Answers never take a replica down, because a client could provoke them at a whole fleet. But bad
 * answers make the replica *avoided*: requests go there only if no other replica of the model will
 * do (node/replica/standing.h has all reasons). Three 5xx answers with no success between do so. A
 * draining server, for example, passes the health check but fails each request at once, and the
 * empty queue would attract all requests.
 *
 * A back-off is 1 s at first and doubles up to 30 s if another back-off follows soon, for any
 * reason. After the back-off a single request at a time may go there (the trial) until an answer
 * has begun. Routers share their back-offs, and make a single trial for all
 * (node/replica/breaker.h). */
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
    NODE_PROBE_FAILURES_MAX = 3, /* default of the setting */
    NODE_ANSWER_FAILURES_MAX = 5,
    NODE_ERROR_ANSWERS_MAX = 3,
    NODE_BUSY_AVOID_MS = 1000, /* time for which a replica counts as full after the answer "queue
                                * full" */
    NODE_BUSY_AGAIN_MS = 250,  /* a full replica is tried again this long after the last request
                                * there, if requests would otherwise wait in the router */
};

/* The result of a health check. */
struct node_check {
    bool ok;
    bool refused; /* the replica's port refuses connections: the process is gone */
    bool tls_fails;
    int unresolved;  /* why the replica's name has no address: an ERR_*; 0: resolved */
    uint16_t status; /* status of the answer; 0: no answer */
};

/* Sizes reported by the engine, to this router or to another. 0: not reported. */
struct node_sizes_told {
    uint64_t cache_tokens, cache_tokens_heard;   /* the engine's own memory */
    uint32_t adapter_slots, adapter_slots_heard; /* adapters that the engine holds at a time */
    uint32_t context_listed;                     /* context length by the list of models */
    uint32_t context_info;                       /* context length by SGLang's /server_info */
};

/* Recent failures, and the resulting back-offs. */
struct node_trouble {
    unsigned probe_failures; /* failed probes in a row */
    unsigned probe_failures_max;
    uint64_t probe_failures_total;
    unsigned answer_failures;    /* requests in a row without a connection, or with a broken
                                  * answer */
    unsigned error_answers;      /* number of 5xx answers in a row */
    bool gone;                   /* the replica's port refused, and no probe succeeded since */
    uint64_t refused_ms;         /* when the replica's port last refused a check */
    struct node_check check;     /* the last health check */
    struct node_backoff failing; /* back-off for 5xx answers, for a share of failures, or (`broke`)
                                  * for lost connections */
    bool broke;                  /* the back-off is for failed or broken connections, and the
                                  * replica went down */
    struct node_tally tally;     /* this router's recent attempts */
    uint64_t busy_until_ms;      /* until when the replica counts as full, after the answer "queue
                                  * full" */
    uint64_t busy_requests;      /* this router's requests in flight at the replica when "queue
                                  * full" came */
    uint64_t back_ms;            /* start of slow start after the return (standing.h); 0: none */
};

/* The proxy's view of the server, set by node/route/replicas.c. */
struct node_server {
    bool no_place;           /* this router cannot open a connection there now */
    bool packs;              /* the answers use a content coding which the router cannot decode */
    bool models_stale;       /* the list of models may be another process's */
    uint16_t list_status;    /* status of the last answer to /v1/models without a list; 0: there is
                              * a list */
    unsigned probes_refused; /* bits 1 << enum node_probe: the last answer was 401 or 403 */
};

/* A row of the router's table. Each struct is written by the file of the same name, the rest by
 * replica.c. */
struct node_replica {
    /* Read at each decision, and so close together: a cache line holds 64 bytes of them. */
    enum node_health health; /* UNKNOWN, UP, DOWN or ROUTER; draining is a flag */
    enum node_health hint;   /* health by most other routers' reports, while UNKNOWN here */
    bool absent;             /* a free slot, or an unused name: in no table */
    bool draining;           /* drained by an operator, or vanishing and not added by an operator */
    bool vanishing;          /* removed from the source: this router sends no new requests */
    bool asleep;
    enum node_engine engine;
    unsigned kept; /* number of requests for which the replica is kept, because they may be poison
                    * (node_router_keep) */
    struct node_rank rank;
    struct node_server server;
    uint64_t name_hash; /* keyed; the same at all routers */
    struct node_sizes_told told;
    struct node_trouble trouble;
    struct node_reject reject;   /* contradicted rejections of the process */
    struct node_signs signs;     /* signs of life or of a stall: health.c */
    struct node_breaker breaker; /* back-offs shared between routers */
    double weight;               /* share of the work by this router's settings; default 1 */
    struct node_load load;       /* booking.c */
    struct node_room room;       /* room for contexts, learned from the load seen running */
    struct node_foreign foreign; /* foreign load, and limits of room */
    struct node_belief belief;
    struct node_believed believed; /* fleet.c */
    struct node_cache cache;

    struct node_shown shown;      /* speed.c */
    struct node_scrape scrape;    /* the last metrics */
    uint64_t scraped_ms;          /* when the metrics were read; 0: never */
    struct node_turn turn;        /* this router's turn to read the metrics for all routers */
    struct node_turn turn_events; /* this router's turn to read the KV-cache events */
    struct node_scraped scraped;  /* the source of the metrics in `scrape` */
    uint64_t restarts;

    /* Identity. */
    uint16_t era;        /* counts the names of this slot */
    uint32_t life;       /* counts the engines: +1 for a new name, a return, a restart */
    uint32_t rkey;       /* key of the present cache (crdt/registry.h) */
    uint16_t name_len;   /* 0: the row is free */
    uint16_t router_len; /* name of the answering router, while `health` is ROUTER */
    char name[NODE_NAME_MAX];
    char router[NODE_ROUTER_NAME_MAX];
    struct node_labels said; /* labels by this router's settings; the slices point to model_said,
                              * health_said, kv_events_said: labels.c */
    char model_said[NODE_MODEL_ID_MAX];
    char health_said[NODE_HEALTH_PATH_MAX];
    char kv_events_said[KV_NAMED_MAX];
};

/* Initial beliefs about any engine, and the threshold for going down. */
struct node_replica_config {
    double prefill_tokens_per_s;
    double decode_step_ms;
    double bytes_per_token;
    uint32_t probe_failures_max; /* 0: NODE_PROBE_FAILURES_MAX */
};

/* `name` has at most NODE_NAME_MAX bytes; empty: a free row. */
void node_replica_init(struct node_replica *k, struct slice name, enum node_engine engine,
                       uint64_t name_hash, const struct node_replica_config *config);
/* Row `slot` had another name or none. Resets everything as after init; the row is absent. */
void node_replica_anew(struct node_replica *k, unsigned slot, struct slice name, uint64_t name_hash,
                       const struct node_replica_config *config);
/* Sets `absent`, by `present`. A returning replica counts as new, except for the counters and the
 * name. Bookings in flight stay. */
void node_replica_present(struct node_replica *k, bool present,
                          const struct node_replica_config *config);
/* `vanishing`: the source removed the replica. `wished`: an operator drains it. `added`: an
 * operator added the replica, so no source can remove the replica. */
void node_replica_drain(struct node_replica *k, bool vanishing, bool wished, bool added);
struct slice node_replica_name(const struct node_replica *k);
/* The replica is kept for a request which may be poison. Each call with true needs a call with
 * false. */
void node_replica_keep(struct node_replica *k, bool kept);

/* Another router or a list reports the engine's type: counts only while the type is unknown.
 * Returns true if the report counted. */
bool node_replica_engine_hear(struct node_replica *k, enum node_engine e);
/* The engine's answers show the engine's type (AUTO: they do not). The engine may have been
 * replaced since. A type set by a label takes precedence, and the type OTHER is kept. Returns true
 * if the type changes. */
bool node_replica_engine_found(struct node_replica *k, enum node_engine e);

/* Returns the context length, the limit on the tokens of a prompt with its answer; 0: unknown. */
uint32_t node_replica_context(const struct node_replica *k);
/* Sets the context length by the list of models; 0: not listed. Returns true if the list showed
 * another length before: then the engine restarted, and the last /server_info no longer counts. */
bool node_replica_context_listed(struct node_replica *k, uint32_t tokens);
/* Sets the context length by SGLang's /server_info; 0: not reported. */
void node_replica_context_info(struct node_replica *k, uint32_t tokens);

/* Number of adapters which the engine holds at a time; 0: unknown. */
static inline uint32_t node_replica_adapter_slots(const struct node_replica *k)
{
    return k->told.adapter_slots > 0 ? k->told.adapter_slots : k->told.adapter_slots_heard;
}

/* The health for operators: DRAINING for a draining replica, unless it is down or a router. */
enum node_health node_replica_health(const struct node_replica *k);

/* True if the replica may get new requests while in this health (UP or UNKNOWN; DOWN as a last
 * resort). */
static inline bool node_replica_usable(const struct node_replica *k, enum node_health health)
{
    enum node_health seen = k->health != NODE_HEALTH_UNKNOWN ? k->health : k->hint;
    return seen == health && !k->absent && !k->draining && !k->asleep;
}

/* This router's requests in flight at the replica, and at all ranks if the row is an address. */
static inline uint32_t node_replica_own_requests(const struct node_replica *k)
{
    return k->load.requests + k->rank.requests;
}
/* All routers' requests in flight at the replica, and at all ranks if the row is an address. */
static inline uint64_t node_replica_requests(const struct node_replica *k)
{
    return node_replica_own_requests(k) + k->load.remote.requests + k->rank.requests_remote;
}

/* True if no more may be booked there: the replica has `max` requests, or this router cannot open a
 * connection now. */
static inline bool node_replica_is_full(const struct node_replica *k, uint32_t max)
{
    return k->server.no_place || node_replica_own_requests(k) >= max;
}

/* Reasons to avoid a replica are in node/replica/standing.h. */

/* An active probe ended. Returns true if the engine must have lost its cache: the port refused, so
 * the process is gone. True only once, not at each probe while the process is away. */
bool node_replica_probed(struct node_replica *k, struct node_check check, uint64_t now_ms);
/* Sets the number of failed probes in a row until the replica is down; 0:
 * NODE_PROBE_FAILURES_MAX. */
void node_replica_failures_max(struct node_replica *k, uint32_t max);
/* The health check says no: the replica is avoided until a check says yes. */
void node_replica_leaves(struct node_replica *k);
/* A router named `who` answered an active probe. */
void node_replica_found_router(struct node_replica *k, struct slice who);

/* A request is sent to this process, or (`to_rank`) to a rank of the process. */
void node_replica_sent(struct node_replica *k, bool to_rank, uint64_t now_ms);
/* An answer has begun, to a request sent at `chosen_ms`. Ends a trial, and takes the replica up if
 * it went down before `chosen_ms`. */
void node_replica_answering(struct node_replica *k, uint64_t chosen_ms, uint64_t now_ms);
/* A request sent by node_replica_sent() has ended, at a rank of the process if `at_rank`. Judges
 * the outcome as node_replica_answered() does, and ends a trial. */
void node_replica_ended(struct node_replica *k, bool at_rank, enum node_outcome outcome,
                        uint64_t now_ms);
/* Judges the outcome of an answer that ended, maybe a while ago. */
void node_replica_answered(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms);
/* The engine is dead, or requests fail there: begins a back-off unless a back-off is running.
 * `broke`: connections failed or broke. */
void node_replica_fails(struct node_replica *k, bool broke, uint64_t now_ms);
/* An attempt ended, whole or by a failure (struct node_tally). Too many failures, compared with all
 * `count` replicas' failures, begin a back-off, and a slow start after the back-off. */
void node_replica_tally(struct node_replica *k, bool failed, const struct node_replica *replicas,
                        unsigned count, uint64_t now_ms);

/* True if the last metrics lacked ranks of earlier metrics. The ranks may come back. */
bool node_replica_misses_ranks(const struct node_replica *k);
/* The metrics were read. Returns true if the engine has lost its cache since the last reading. */
bool node_replica_scraped(struct node_replica *k, const struct node_scrape *s, uint64_t now_ms);

#endif

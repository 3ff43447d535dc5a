/* The reasons why a replica gets no requests, or only requests that no other replica can take.
 * node_replica_against() returns all reasons against a replica: decisions use sets of these
 * reasons, and operators see the weightiest in a word.
 *
 * Slow start is among the reasons. The engine of a returning replica is cold (memory to map,
 * kernels to compile, an empty cache), and the empty queue would attract everything at once. For
 * some seconds the replica's requests in flight are bounded, over all routers together: 4, 8, 16,
 * ..., twice as many each second. The bound does not change the believed speed, which is learned
 * only from answers. */
#ifndef NODE_REPLICA_STANDING_H
#define NODE_REPLICA_STANDING_H

#include "node/replica/replica.h"

enum {
    NODE_WARM_REQUESTS = 4, /* most requests in flight at first */
    NODE_WARM_MS = 8000,    /* time until there is no bound: 512 requests in flight by then */
};

/* In the order of their weight, the weightiest first. */
enum node_standing_why {
    NODE_STANDING_WELL,
    /* The replica gets no requests: */
    NODE_STANDING_ROUTER,         /* a router answers at the replica's address */
    NODE_STANDING_NO_ADDRESS,     /* the replica's name has no address */
    NODE_STANDING_DNS_SILENT,     /* no DNS server answers for the replica's name */
    NODE_STANDING_DNS_FAILS,      /* the look-up of the replica's name fails in another way */
    NODE_STANDING_REFUSES,        /* down: the replica's port refuses connections */
    NODE_STANDING_TLS,            /* down: TLS with the replica fails */
    NODE_STANDING_FAILS_CHECKS,   /* down: health checks fail */
    NODE_STANDING_FAILS_REQUESTS, /* down: requests could not connect, or broke */
    NODE_STANDING_DRAINED,        /* drained by an operator */
    NODE_STANDING_VANISHES,       /* removed from the source */
    NODE_STANDING_ASLEEP,
    /* The replica is avoided: */
    NODE_STANDING_LEAVING,  /* the replica's health check says no */
    NODE_STANDING_STALLED,  /* the replica makes no progress with requests; the kind of stall is in
                             * struct node_signs */
    NODE_STANDING_QUIET,    /* the replica has shown no sign of life for longer than usual */
    NODE_STANDING_FOUND,    /* another router found the replica without progress */
    NODE_STANDING_BROKE,    /* a back-off: connections failed or broke */
    NODE_STANDING_ERRORS,   /* a back-off: answers of 5xx, or a share of failures */
    NODE_STANDING_TRIED,    /* after a stall, while a request is the trial */
    NODE_STANDING_TRIAL,    /* after a back-off, while a request is the trial */
    NODE_STANDING_REPORTED, /* another router has the replica in a back-off, or on trial */
    NODE_STANDING_REJECTS,  /* the replica rejects all or some requests accepted by others. If too
                             * many replicas of the model are avoided already, this replica still
                             * gets requests */
    NODE_STANDING_FULL,     /* the replica answered "queue full" */
    NODE_STANDING_KEPT,     /* kept for a request which may be poison */
    NODE_STANDING_SLOW_START,
    NODE_STANDINGS,
};

/* Sets of reasons: bit 1 << enum node_standing_why. */
enum {
    /* Lack of signs of life, judged for each data-parallel rank separately. */
    NODE_STANDS_STILL = 1U << NODE_STANDING_LEAVING | 1U << NODE_STANDING_STALLED |
                        1U << NODE_STANDING_QUIET | 1U << NODE_STANDING_FOUND |
                        1U << NODE_STANDING_TRIED,
    NODE_BACKS_OFF =
        1U << NODE_STANDING_BROKE | 1U << NODE_STANDING_ERRORS | 1U << NODE_STANDING_TRIAL,
    NODE_IN_TROUBLE = NODE_STANDS_STILL | NODE_BACKS_OFF | 1U << NODE_STANDING_REPORTED,
};

/* The set of reasons to avoid an UP replica for all requests: requests go there only if no other
 * replica can be chosen. 0: none. */
unsigned node_replica_against(const struct node_replica *k, uint64_t now_ms);
static inline bool node_replica_avoided(const struct node_replica *k, uint64_t now_ms)
{
    return node_replica_against(k, now_ms) != 0;
}
/* True if no answer has begun since the replica failed or stood still. */
static inline bool node_replica_on_trial(const struct node_replica *k)
{
    return k->trouble.failing.trial || k->signs.stalls.trial;
}
/* True in a back-off or a stall by the replica's own failures, or on trial after such a time. Other
 * routers' reports and rejections do not count. */
static inline bool node_replica_backing_off(const struct node_replica *k, uint64_t now_ms)
{
    return node_replica_on_trial(k) ||
           (node_replica_against(k, now_ms) & (NODE_STANDS_STILL | NODE_BACKS_OFF)) != 0;
}

struct node_standing {
    enum node_standing_why why;
    bool drained;      /* gets no requests for another reason, and is drained by an operator too */
    bool avoided;      /* up, but avoided; false: in full use, or in slow start with room */
    uint64_t until_ms; /* when the reason ends by time alone; 0: not known */
    unsigned status;   /* REJECTS: node_reject_status() */
    uint64_t kinds;    /* REJECTS: node_reject_kinds() */
    bool one_model;    /* REJECTS: the kinds count for a single model only */
    unsigned denied;   /* REJECTS: number of listed but denied models, if there is no other
                        * reason */
    bool beyond;       /* REJECTS: half of a model's replicas are avoided already, so this replica
                        * is still used */
};
/* The weightiest reason against the replica, for operators. Leaves `denied` and `beyond` to
 * node/route. */
struct node_standing node_replica_standing(const struct node_replica *k, uint64_t now_ms);

/* node_standing_word() returns the reason in a word: "errors", "stalled", ...; "" for none.
 * node_standing_text() returns the reason in a phrase, which may be written to `room`. */
enum { NODE_STANDING_TEXT_BYTES = NODE_REJECT_TEXT_BYTES + 80 };
const char *node_standing_word(enum node_standing_why why);
const char *node_standing_text(const struct node_standing *s, char room[NODE_STANDING_TEXT_BYTES]);

#endif

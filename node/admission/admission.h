/* Decides if a request may go to a replica now.
 *
 *   GO      a replica is booked for the request
 *   WAIT    the request is queued: for room, or for a replica with permitted company (enum
 *           node_company)
 *   REFUSE  with the reason, and when to retry
 *
 *   admission_ask()     before each attempt, and for each request found by a look at the queue:
 *                       books a replica, or enters or leaves the queue
 *   admission_leave()   the request stops waiting: the time is up, or the request has ended
 *   admission_alone()   the request no longer needs a replica to itself
 *   admission_settle()  between events
 *
 * The checks, in this order:
 *
 * 1. The limits of the tenant (a client's key: node/access), once per request.
 * 2. The caller's objection: the request is poison.
 * 3. requests-max; and earlier waiters for the same replicas go first.
 * 4. The replicas (node_router_place()).
 * 5. If no replica can be chosen now: may the request wait, and has the queue a place?
 *
 * The class is what the request waits for (enum queue_class). The deadline is the limit of the
 * class, less the time already waited. A suspect (node/proxy/exchange/suspect.h) waits for a
 * replica to itself: the replica with the fewest requests takes no more until those have ended.
 * Meanwhile other requests go elsewhere, or wait too if there is no other replica.
 *
 * The caller sends the answer, and arms the deadline. This module knows neither HTTP nor
 * connections nor the clock. */
#ifndef NODE_ADMISSION_ADMISSION_H
#define NODE_ADMISSION_ADMISSION_H

#include "base/deadline.h"
#include "base/hash.h"
#include "node/access/access.h"
#include "node/admission/budget.h"
#include "node/admission/queue.h"
#include "node/admission/refusal.h"
#include "node/route/router.h"
#include "node/settings/options.h"

enum {
    ADMISSION_ALONE_MS = 4000,  /* longest wait of a suspect for a replica to itself */
    ADMISSION_OPEN_MS = 9500,   /* longest wait since the suspect came: the client has waited for
                                 * the engine's death, too */
    ADMISSION_APART_MS = 3000,  /* longest wait of a request that finds only kept replicas */
    ADMISSION_KEEP_MS = 5000,   /* longest wait of others for a placed suspect without a token
                                 * yet */
    ADMISSION_PAUSE_MS = 30000, /* time without kept replicas after a replica was kept in vain */
};

struct admission {
    struct node_router *router;         /* borrowed, like the next two */
    struct access *access;              /* NULL: keys are not required */
    const struct node_options *options; /* requests-max */
    struct hash_secret secret;
    struct queue queue;
    bool due;                 /* a queued request may go now */
    struct budget budget;     /* budget of retries */
    unsigned kept;            /* the replica kept for waiting suspects, + 1; 0: none */
    uint64_t pause_until_ms;  /* no replica is kept until then */
    unsigned placed;          /* suspects with a replica to themselves and no token yet */
    uint64_t placed_until_ms; /* other requests wait for placed suspects until then */
};

/* The state of a request until it has ended; all 0 at first. */
struct admission_request {
    uint64_t came_ms;
    bool asked;                /* not refused at once, so the retry budget has counted the
                                * request */
    bool counted;              /* counted for the tenant: access_end() is due */
    enum node_company company; /* permitted company; ALONE: the request is a suspect */
    enum node_company kept;    /* company for which a replica is kept for this request; ANY: none is
                                * kept */
    struct queue_waiter waiter;
    struct deadline deadline;          /* deadline of the wait, if the caller arms it */
    uint64_t waited_ms[QUEUE_CLASSES]; /* time spent in earlier waits, by class */
};

struct admission_question {
    struct access_key *tenant;    /* NULL: none */
    enum refusal against;         /* the caller's objection; REFUSED_NONE: none */
    struct node_request *request; /* NULL: the request goes to no particular replica, and does not
                                     wait */
    const struct node_replica_set *excluded; /* replicas not to choose (node_router_place()) */
    bool by_load;                            /* place by node_router_place_by_load() */
    bool prompt;                             /* the request may wait for a replica with other
                                              * company */
};

enum admission_verdict { ADMISSION_GO, ADMISSION_WAIT, ADMISSION_REFUSE };

struct admission_answer {
    enum admission_verdict verdict;
    struct node_decision decision; /* GO: the booking */
    enum queue_class class;        /* WAIT: what the request waits for */
    uint64_t waited_ms;            /* WAIT: time already spent in this class */
    /* REFUSE: */
    int err; /* error of the choice if no replica can be chosen; 0: `why` says the reason */
    enum refusal why;
    enum access_verdict over; /* REFUSED_KEY_LIMIT: which limit */
    const char *text;         /* text for the client; NULL: the caller makes it */
    unsigned retry_after_s;   /* 0: unknown */
};

void admission_init(struct admission *a, struct node_router *router, struct access *access,
                    const struct node_options *options, const struct hash_secret *secret);
void admission_ask(struct admission *a, struct admission_request *r,
                   const struct admission_question *question, uint64_t now_ms,
                   struct admission_answer *out);
void admission_leave(struct admission *a, struct admission_request *r, uint64_t now_ms);
/* The request's first token came from the replica `server`, or the booking there ended: the replica
 * is no longer kept for the request. */
void admission_alone(struct admission *a, struct admission_request *r, unsigned server);
/* Returns true if a waiting request may go now. */
bool admission_settle(struct admission *a);
/* Returns the next waiting request for admission_ask(); NULL: none. */
struct admission_request *admission_next(const struct admission *a, const struct queue_look *look);
/* True if requests-max requests are in flight. */
bool admission_is_full(const struct admission *a);

#endif

/* Whether a request may go to a replica now: one question, three answers.
 *
 *   GO      a replica is booked for it
 *   WAIT    it stands in the queue: for room, or for the company that it may have
 *   REFUSE  why, and when it may ask again
 *
 *   admission_ask()     before each attempt, and for each request that a look at the queue finds:
 *                       books a replica, takes a place in the queue or leaves it
 *   admission_leave()   it waits no longer: its time there is up, or it has ended
 *   admission_alone()   its replica need not be kept for it any longer
 *   admission_settle()  between events
 *
 * What decides, in this order:
 *
 *   1. The limits of its tenant (a client's key: node/access), once.
 *   2. What the caller knows against it: it is poison.
 *   3. requests-max, and whether others wait for the same: those go first.
 *   4. The replicas (node_router_place()).
 *   5. Where none will do now: whether it may wait for one, and whether the queue has a place.
 *
 * Its class is what it waits for (enum queue_class), its deadline the limit of the class, less what
 * it has waited. For a suspect (node/proxy/exchange/suspect.h) that waits for a replica to itself
 * the quietest is kept until what runs there has ended; others are placed elsewhere meanwhile, or
 * wait too where there is nothing else.
 *
 * The caller answers, and arms the deadline. Nothing here knows HTTP, connections or the clock. */
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
    ADMISSION_ALONE_MS = 4000, /* of a suspect, for a replica to itself */
    ADMISSION_OPEN_MS = 9500,  /* since it came, at most: its client has waited for the death too */
    ADMISSION_APART_MS = 3000, /* of what finds only replicas that are kept */
    ADMISSION_KEEP_MS = 5000,  /* others wait for a suspect that is placed and has no token */
    ADMISSION_PAUSE_MS = 30000, /* after one was kept in vain, none is kept */
};

struct admission {
    struct node_router *router;         /* borrowed, as are these until the end: */
    struct access *access;              /* NULL: no keys are asked for */
    const struct node_options *options; /* requests-max */
    struct hash_secret secret;
    struct queue queue;
    bool due;                 /* one of the queue may go now */
    struct budget budget;     /* of retries */
    unsigned kept;            /* the replica that is kept for those that wait, + 1; 0: none */
    uint64_t pause_until_ms;  /* until then none is */
    unsigned placed;          /* requests that have one to themselves, and no token yet */
    uint64_t placed_until_ms; /* others wait until then */
};

/* What is kept of a request until it has ended; all 0 at first. */
struct admission_request {
    uint64_t came_ms;
    bool asked;                /* and not refused at once: the budget has its share */
    bool counted;              /* for its tenant: access_end() is due */
    enum node_company company; /* that it may have: ALONE is a suspect */
    enum node_company kept;    /* for which its replica is kept for it; ANY: it is not */
    struct queue_waiter waiter;
    struct deadline deadline;          /* while it waits, if the caller arms it */
    uint64_t waited_ms[QUEUE_CLASSES]; /* before */
};

struct admission_question {
    struct access_key *tenant;    /* NULL: none */
    enum refusal against;         /* what is known against it; REFUSED_NONE: nothing */
    struct node_request *request; /* NULL: it goes to no replica in particular, nor waits */
    const struct node_replica_set *excluded; /* replicas (node_router_place()) */
    bool by_load;                            /* node_router_place_by_load() */
    bool prompt;                             /* it may wait for other company */
};

enum admission_verdict { ADMISSION_GO, ADMISSION_WAIT, ADMISSION_REFUSE };

struct admission_answer {
    enum admission_verdict verdict;
    struct node_decision decision; /* GO: what is booked */
    enum queue_class class;        /* WAIT: what for, */
    uint64_t waited_ms;            /* and how much of its time for that is over */
    /* REFUSE: */
    int err; /* of the choice, where no replica will do; else 0, and: */
    enum refusal why;
    enum access_verdict over; /* REFUSED_KEY_LIMIT: which limit */
    const char *text;         /* for its client; NULL: the caller knows */
    unsigned retry_after_s;   /* 0: nobody knows */
};

void admission_init(struct admission *a, struct node_router *router, struct access *access,
                    const struct node_options *options, const struct hash_secret *secret);
void admission_ask(struct admission *a, struct admission_request *r,
                   const struct admission_question *question, uint64_t now_ms,
                   struct admission_answer *out);
void admission_leave(struct admission *a, struct admission_request *r, uint64_t now_ms);
/* Its first token came from there, or its booking ended. */
void admission_alone(struct admission *a, struct admission_request *r, unsigned server);
/* True: one of those that wait may go now. */
bool admission_settle(struct admission *a);
/* The next one to be asked about; NULL: none. */
struct admission_request *admission_next(const struct admission *a, const struct queue_look *look);
/* All that may be in flight are. */
bool admission_is_full(const struct admission *a);

#endif

/* Rejections: answers of 4xx, and whose fault each is. A rejection is evidence against a replica
 * only if another replica then accepted the same bytes: it is *contradicted*. If another one
 * rejects them as well it is *confirmed*, and the request is to blame.
 *
 * Before anybody else was asked, two beliefs say how likely a contradiction is (docs/adr/0049):
 *
 *   own      of a replica: that it rejects what it should serve. Low once it accepted something, or
 *            another one agreed with it; a rejection multiplies its odds, the more the less the
 *            client is known for bad requests.
 *   bad      of a client: the share of its requests that are rejected for what they are.
 *
 * A rejection is tried elsewhere where own is 5 % or more (node_reject_is_worth()). Of a replica of
 * which nothing is known, and of a status that mostly depends on the replica, more is feared, as
 * long as trying elsewhere pays: where all reject alike it soon does not.
 *
 * A contradiction holds one *kind* of request against the replica (API, with tools or media, or
 * streamed), as one without a tool parser serves all that has no tools. Two kinds without anything
 * accepted in between are taken for all of them. It is avoided for these kinds: for a back-off,
 * then until one request that can be sent again has tried it and was accepted. While another
 * replica is asked about its rejection it is avoided for that kind, too: it answers at once, so it
 * would have room for everything.
 *
 * Routers report the kinds that they hold against a replica, and the others avoid it for them. One
 * of those that found out at the same moment keeps the back-off, and tries it for all. If it has no
 * request to try it with, it reports nothing any more NODE_REJECT_BACKOFF_MS after that, and the
 * others try. A router tries itself after NODE_REJECT_HEED_MS, and then its own eyes count.
 */
#ifndef NODE_REPLICA_REJECT_H
#define NODE_REPLICA_REJECT_H

#include <stdbool.h>
#include <stdint.h>

struct node_replica;

enum {
    NODE_REJECT_KINDS = 64,
    NODE_REJECT_BACKOFF_MS = 5000, /* at first, then twice as long up to NODE_BACKOFF_MAX_MS: what
                                      rejects is set up wrongly, and that takes somebody to mend. As
                                      long again the router that found it has for its trial */
    NODE_REJECT_PACE_MS = 250,     /* beyond half of the replicas it is tried so often */
    NODE_REJECT_HEED_MS = 60000,   /* others' reports are heeded so long without own evidence */
};

/* A rejection, as it is judged. */
struct node_rejection {
    unsigned replica;     /* whose it is: the row of its address */
    uint8_t kind;         /* of the request, below NODE_REJECT_KINDS */
    unsigned status;      /* 4xx */
    uint64_t client;      /* a hash of whom it is from; 0: of nobody known */
    uint64_t sent_ms;     /* when the request was sent there */
    uint64_t rejected_ms; /* when the answer came */
};

/* What is known of all together, when a rejection is judged. */
struct node_reject_prior {
    double bad; /* the share of bad requests that is believed of its client */
    double
        pays; /* how many of the rejections that were tried elsewhere were accepted there, 0..1 */
};

/* Part of struct node_replica. Starts by node_reject_init(). */
struct node_reject {
    double own;      /* belief that its next rejection is its own fault */
    bool known;      /* since its start it accepted something, or a rejection was confirmed */
    bool agreed;     /* since it accepted something, or was caught, a rejection was confirmed */
    unsigned doubts; /* its rejections that another replica is asked about now, */
    uint64_t doubt_kinds;
    uint64_t doubt_ms;  /* since when */
    uint64_t kinds;     /* that are held against it; bit 1 << kind */
    uint64_t told;      /* of them, those that were contradicted */
    unsigned status;    /* that it rejected with last */
    uint64_t since_ms;  /* when the first contradiction of these came */
    uint64_t last_ms;   /* and the last one */
    uint64_t until_ms;  /* the next trial may be made then */
    uint32_t length_ms; /* of the last back-off; 0: none yet */
    uint64_t tried_ms;  /* a request of these kinds was sent there */
    uint64_t worked_ms; /* when the last request that it accepted was sent */
    /* Of the other routers. */
    uint64_t heard;    /* kinds that some hold against it */
    uint64_t heard_ms; /* since when, without a break */
    uint64_t reported; /* kinds, as they went out last */
    /* Since the start. */
    uint64_t contradicted, confirmed, backoffs;
};

void node_reject_init(struct node_reject *j);
/* Its engine is another one: nothing is known of it, and nothing held against it. */
void node_reject_renew(struct node_reject *j);

/* The belief that it is the replica's own fault. */
double node_reject_own(const struct node_reject *j, const struct node_rejection *x,
                       const struct node_reject_prior *prior);
/* Whether another replica is to be asked with that belief. */
bool node_reject_is_worth(double own);
/* It goes to the client without another replica being asked. */
void node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                        const struct node_reject_prior *prior);
/* Another one is asked, or has answered: each call with true wants one with false. */
void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open);
/* True: from now on it is avoided for that kind, which it was not. */
bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms);
void node_reject_confirmed(struct node_reject *j);
/* It confirmed another one's, which says the same of both. */
void node_reject_agreed(struct node_reject *j);
/* It accepted a request. True: nothing of what was held against it is any more. */
bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t sent_ms);
/* A request is sent there: it may be a trial. */
void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t now_ms);

/* Whether requests of that kind go there only where no other will do; `again`: whether this one can
 * be sent again, and so be the trial. */
bool node_reject_avoids(const struct node_reject *j, uint8_t kind, bool again, uint64_t now_ms);
/* The same where more than half of all would be avoided. */
bool node_reject_paces(const struct node_reject *j, uint64_t now_ms);
/* Since when; those that were so before others stay avoided where not all can be. */
uint64_t node_reject_since(const struct node_reject *j);
/* Whether anything speaks against it: else nothing above needs to be asked. */
static inline bool node_reject_any(const struct node_reject *j)
{
    return (j->kinds | j->heard) != 0 || j->doubts > 0;
}

/* Whether requests of some kind go elsewhere though they could be the trial. */
bool node_reject_avoids_any(const struct node_reject *j, uint64_t now_ms);

/* The kinds that this router reports to the others: none once it had a back-off's time for its
 * trial, and no request to make it with. */
uint64_t node_reject_report(const struct node_reject *j, uint64_t now_ms);
/* What other routers report of it, gathered. Starts zeroed. */
struct node_reject_heard {
    uint64_t kinds; /* of all */
    uint64_t ahead; /* of those whose order is before this router's */
};
void node_reject_heard_add(struct node_reject_heard *h, uint64_t kinds, bool ahead);
void node_reject_hear(struct node_reject *j, const struct node_reject_heard *h, uint64_t now_ms);

/* --- clients --------------------------------------------------------------------------------- */

enum { NODE_REJECT_CLIENTS_MAX = 4096 };

/* Those that had a request rejected. All zero is valid. A client has two rows to choose from; of
 * their owners the one that was rejected last stays, and the other is as unknown as at first. */
struct node_reject_clients {
    double first_rejected, first_accepted; /* fading: of clients that have no row */
    double contradicted, confirmed;        /* fading: of rejections that were tried elsewhere */
    uint64_t clock;
    unsigned count; /* rows in use */
    struct node_reject_client {
        uint64_t id;
        uint64_t at;              /* by the clock */
        float rejected, accepted; /* fading */
    } rows[NODE_REJECT_CLIENTS_MAX];
};

struct node_reject_prior node_reject_prior_of(const struct node_reject_clients *c, uint64_t id);
/* Another replica was asked about a rejection, and answered. */
void node_reject_tried(struct node_reject_clients *c, bool contradicted);
void node_reject_client_accepted(struct node_reject_clients *c, uint64_t id);
/* One was rejected, and another replica rejected it too. */
void node_reject_client_confirmed(struct node_reject_clients *c, uint64_t id);
/* One was rejected, and no other replica was asked. It says something of the client if that was not
 * worth it with that belief; nothing if there was nobody to ask, or nothing left of the budget. */
void node_reject_client_passed(struct node_reject_clients *c, uint64_t id, double own);

#endif

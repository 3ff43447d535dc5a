/* Rejections: answers of 4xx, and whose fault each is (docs/adr/0049). A rejection is evidence
 * against a replica only if another replica then accepted the same bytes: it is *contradicted*. If
 * another one rejects them as well it is *confirmed*, and the request is to blame.
 *
 * Before any other replica was asked, two beliefs say how likely a contradiction is:
 *
 *   own      of a replica: that it rejects what it should serve. Low once it accepted something, or
 *            another one agreed with it; a rejection multiplies its odds.
 *   bad      of a client: the share of its requests that are rejected, with that status, for what
 *            they are; of a prompt that it sends again and again the same for itself.
 *
 * A contradiction holds one *kind* of request against the replica (API, with tools or media, or
 * streamed), and those that ask for more of the same API; two stand for all, or for the widest
 * group in which nothing was accepted since. It is avoided for these kinds: for a back-off, then
 * until one request that can be sent again has tried it and was accepted. While another replica is
 * asked about its rejection it is avoided for them, too: it answers at once, so it would have room
 * for everything. Of a replica that serves several models the first contradiction holds kinds of
 * one *model* only, and goes to no other router.
 *
 * Routers report the kinds that they hold against a replica, and the others avoid it for them. One
 * of those that found out at the same moment keeps the back-off, and tries it for all. Of a model's
 * replicas at most half are avoided for this (node/route/reject.c).
 */
#ifndef NODE_REPLICA_REJECT_H
#define NODE_REPLICA_REJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/health.h"

enum {
    NODE_REJECT_KINDS = 64,
    NODE_REJECT_SORTS = 6,         /* of statuses: 400, 401, 403, 404, 422, all others */
    NODE_REJECT_BACKOFF_MS = 5000, /* at first, then twice as long up to NODE_BACKOFF_MAX_MS: what
                                      rejects is set up wrongly, and that takes somebody to mend. As
                                      long again the router that found it has for its trial */
    NODE_REJECT_HEED_MS = 60000,   /* others' reports are heeded so long without own evidence */
};

/* A kind of request is the number of its API, times NODE_REJECT_API, and these. */
enum { NODE_REJECT_STREAM = 1, NODE_REJECT_MEDIA = 2, NODE_REJECT_TOOLS = 4, NODE_REJECT_API = 8 };
enum node_reject_api {
    NODE_REJECT_OTHERS,
    NODE_REJECT_CHAT,
    NODE_REJECT_COMPLETIONS,
    NODE_REJECT_RESPONSES,
    NODE_REJECT_MESSAGES,
    NODE_REJECT_GENERATE,
    NODE_REJECT_PROMPT, /* no tokens are answered: embeddings, scores */
    NODE_REJECT_MEDIA_API,
};

/* Where a request comes from. */
struct node_reject_from {
    uint64_t client; /* a hash of its key or address, and its program; 0: not known */
    uint64_t prompt; /* of that and of how its prompt begins; 0: it is short, or there is none */
};

/* A rejection, as it is judged. */
struct node_rejection {
    unsigned replica; /* that rejected: the row of its address */
    uint8_t kind;     /* of the request, below NODE_REJECT_KINDS */
    uint64_t model;   /* a hash of what it is for; 0: not known, or no matter */
    unsigned status;  /* 4xx */
    struct node_reject_from from;
    uint64_t sent_ms; /* when the request was sent there */
};

/* What is known of all together, when a rejection is judged. */
struct node_reject_prior {
    double bad;  /* the share of such bad requests that is believed of its client */
    double pays; /* of the rejections that were tried elsewhere: accepted there, 0..1 */
    bool peers;  /* another replica accepts such a kind of request */
};

/* Part of struct node_replica. Starts by node_reject_init(). */
struct node_reject {
    /* Read at each decision. */
    uint64_t kinds;  /* that are held against it; bit 1 << kind */
    uint64_t heard;  /* the same, by some other router */
    unsigned doubts; /* its rejections that another replica is asked about now, */

    uint64_t doubt_kinds; /* of these kinds */
    double own;           /* belief that its next rejection is its own fault */
    bool known;           /* since its start it accepted something, or a rejection was confirmed */
    bool agreed;       /* its last rejection was confirmed: such a status is the client's fault */
    uint64_t told;     /* of them, those that were contradicted */
    uint64_t about;    /* the only model that these are held for; 0: all */
    uint64_t accepts;  /* kinds that it accepted since its start, or since it was caught */
    unsigned status;   /* that it rejected with last */
    uint64_t since_ms; /* when the first contradiction of these came */
    uint64_t last_ms;  /* and the last one */
    struct node_backoff backoff; /* until the next trial may be made */
    uint64_t tried_ms;     /* a trial was sent then, and nothing is known of it; 0: there is none */
    unsigned heard_status; /* that it rejected the others with; 0: they do not tell */
    uint64_t heard_ms;     /* since when, without a break */
    uint64_t contradicted, confirmed; /* since the start */
};

void node_reject_init(struct node_reject *j);
/* Its engine is another one: nothing is known of it, and nothing held against it. */
void node_reject_renew(struct node_reject *j);

/* Whose fault it is, by the belief that it is the replica's own. */
enum node_reject_guilt {
    NODE_REJECT_UNLIKELY,
    NODE_REJECT_WORTH,  /* another replica is to be asked, */
    NODE_REJECT_LIKELY, /* at least as likely its own fault as the request's, */
    NODE_REJECT_CAUGHT, /* or it is known to reject what others accept, here or by another router */
};
enum node_reject_guilt node_reject_guilt(const struct node_reject *j,
                                         const struct node_rejection *x,
                                         const struct node_reject_prior *prior);
/* It goes to the client without another replica being asked. Returns that belief. */
double node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                          const struct node_reject_prior *prior);
/* Another one is asked (`open`), or has answered: each call with true is followed by one with
 * false. */
void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open);
/* True: from now on it is avoided for that kind, which it was not. */
bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms);
/* Another one confirmed its rejection, or it another one's: that says the same of both. */
void node_reject_agreed(struct node_reject *j);
/* It accepted a request. True: nothing of what was held against it is any more. */
bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t sent_ms);
/* A request is sent there: it may be a trial. */
void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t now_ms);

/* Whether requests of that kind go there only where no other will do; `again`: whether this one can
 * be sent again, and so be the trial. */
bool node_reject_avoids(const struct node_reject *j, uint8_t kind, uint64_t model, bool again,
                        uint64_t now_ms);
/* Whether it accepts requests of that kind, as far as anything is known of it. */
bool node_reject_proven(const struct node_reject *j, uint8_t kind);
/* The kinds that are held against it, here or elsewhere; and the status that it answers, 0 where
 * nobody tells. */
uint64_t node_reject_kinds(const struct node_reject *j);
unsigned node_reject_status(const struct node_reject *j);
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
    unsigned status;
};
void node_reject_heard_add(struct node_reject_heard *h, uint64_t kinds, unsigned status,
                           bool ahead);
void node_reject_hear(struct node_reject *j, const struct node_reject_heard *h, uint64_t now_ms);

/* Which requests and what is wrong with its answer to them, in words: "answers 401 to chat requests
 * where its peers accept the key". `kinds` as above, not 0; they may be `one_model`'s alone. */
enum { NODE_REJECT_TEXT_BYTES = 160 };
const char *node_reject_text(unsigned status, uint64_t kinds, bool one_model,
                             char room[NODE_REJECT_TEXT_BYTES]);

/* --- clients --------------------------------------------------------------------------------- */

enum { NODE_REJECT_CLIENTS_MAX = 4096 };

/* Those that had a request rejected. All zero is valid. Each is believed to be like the clients
 * before it until it has shown otherwise, and each prompt that a client sends again like the rest
 * that comes from that client. So one bad prompt, sent again and again, says nothing of the others:
 * it may be of another program behind the same address.
 *
 * A row is of a client, or of a prompt of one. One whose place another one takes is as unknown as
 * at first. */
struct node_reject_clients {
    struct node_reject_share { /* fading */
        float seen;            /* requests, */
        float rejected[NODE_REJECT_SORTS];
    } first;                        /* of clients that have no row */
    double contradicted, confirmed; /* fading: of rejections that were tried elsewhere */
    unsigned count;                 /* rows in use */
    struct node_reject_client {
        uint64_t id;
        uint64_t prompt; /* of its last rejection without a row of its own; 0: none */
        struct node_reject_share share;
    } rows[NODE_REJECT_CLIENTS_MAX];
};

struct node_reject_prior node_reject_prior_of(const struct node_reject_clients *c,
                                              struct node_reject_from from, unsigned status);
/* Another replica was asked about a rejection, and answered. */
void node_reject_tried(struct node_reject_clients *c, bool contradicted);
void node_reject_client_accepted(struct node_reject_clients *c, struct node_reject_from from);
/* One was rejected, and another replica rejected it too (`own` 0), or none was asked: that says
 * something of the client if it was not worth it with that belief; nothing if there was none to
 * ask, or nothing left of the budget. */
void node_reject_client_rejected(struct node_reject_clients *c, struct node_reject_from from,
                                 unsigned status, double own);

#endif

/* Rejections: 4xx answers, and for each the party at fault (docs/adr/0049). A rejection is evidence
 * against a replica only if another replica then accepted the same bytes: the rejection is
 * *contradicted*. If the other replica rejects them as well, the rejection is *confirmed*, and the
 * request is to blame.
 *
 * Before the router asks another replica, two beliefs predict the chance of a contradiction:
 *
 *   own      of a replica: the chance that it rejects good requests. Low once the replica accepted
 *            a request, or another replica agreed with a rejection; a rejection multiplies the
 *            odds.
 *   bad      of a client: the share of requests deserving a rejection with this status. A prompt
 *            sent again and again by the client has a separate share.
 *
 * A contradiction counts against the *kind* of request at the replica (API, with tools or media, or
 * streamed), and against kinds that use more of the same API. Two contradictions count against all
 * kinds, or against the widest group without a success since. The router avoids the replica for
 * these kinds: for a back-off, then until a repeatable request has tried the replica and was
 * accepted. The router also avoids the replica for these kinds while asking another replica: a
 * rejecting replica answers at once, and would seem to have room for everything. If the replica
 * serves several models, the first contradiction counts for the requested *model* only, and is not
 * reported to other routers.
 *
 * Routers report these kinds, and the others avoid the replica for them. If several routers found
 * out at the same moment, a single router keeps the back-off and tries the replica for all. At most
 * half of a model's replicas are avoided for rejections (node/route/reject.c). */
#ifndef NODE_REPLICA_REJECT_H
#define NODE_REPLICA_REJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/health.h"

enum {
    NODE_REJECT_KINDS = 64,
    NODE_REJECT_SORTS = 6,         /* groups of statuses: 400, 401, 403, 404, 422, all others */
    NODE_REJECT_BACKOFF_MS = 5000, /* first back-off; doubles up to NODE_BACKOFF_MAX_MS, because a
                                    * person has to fix a wrongly set up replica. After it, the
                                    * router that found the fault has 5 s for a trial before the
                                    * others may send requests */
    NODE_REJECT_HEED_MS = 60000,   /* time for which other routers' reports count if this router has
                                    * no evidence */
};

/* A kind of request is the API's number, times NODE_REJECT_API, plus these flags. */
enum { NODE_REJECT_STREAM = 1, NODE_REJECT_MEDIA = 2, NODE_REJECT_TOOLS = 4, NODE_REJECT_API = 8 };
enum node_reject_api {
    NODE_REJECT_OTHERS,
    NODE_REJECT_CHAT,
    NODE_REJECT_COMPLETIONS,
    NODE_REJECT_RESPONSES,
    NODE_REJECT_MESSAGES,
    NODE_REJECT_GENERATE,
    NODE_REJECT_PROMPT, /* answers without tokens: embeddings, scores */
    NODE_REJECT_MEDIA_API,
};

/* The source of a request. */
struct node_reject_from {
    uint64_t client; /* a hash of the client's key or address, and of the program; 0: not known */
    uint64_t prompt; /* hash of the client and the prompt's beginning; 0: too short, or none */
};

/* A rejection to be judged. */
struct node_rejection {
    unsigned replica; /* the rejecting replica: the row of the address */
    uint8_t kind;     /* kind of the request, below NODE_REJECT_KINDS */
    uint64_t model;   /* hash of the requested model; 0: not known, or irrelevant */
    unsigned status;  /* 4xx */
    struct node_reject_from from;
    uint64_t sent_ms; /* when the request was sent to the replica */
};

/* Knowledge about all replicas and clients at the time when a rejection is judged. */
struct node_reject_prior {
    double bad;  /* believed share of the client's requests deserving this status */
    double pays; /* share of rejected requests that another replica, when asked, accepted, 0..1 */
    bool peers;  /* another replica accepts this kind of request */
};

/* Part of struct node_replica. Starts by node_reject_init(). */
struct node_reject {
    /* Read at each decision. */
    uint64_t kinds;  /* avoided for these kinds; bit 1 << kind */
    uint64_t heard;  /* kinds for which another router avoids the replica */
    unsigned doubts; /* number of rejections for which another replica is being asked now */

    uint64_t doubt_kinds; /* kinds of the requests in doubt */
    double own;           /* belief that the next rejection is the replica's fault */
    bool known;           /* since the engine's start a request was accepted, or a rejection
                           * confirmed */
    bool agreed;          /* the last rejection was confirmed, so such a status is the client's
                           * fault */
    uint64_t told;        /* kinds of contradicted rejections; `kinds` has implied kinds, too */
    uint64_t about;       /* hash of the only model for which `kinds` count; 0: all models */
    uint64_t accepts;     /* kinds accepted since the engine's start, or since the first
                           * contradiction */
    unsigned status;      /* status of the last contradicted rejection */
    uint64_t since_ms;    /* when the first contradiction in `told` came */
    uint64_t last_ms;     /* when the last contradiction in `told` came */
    struct node_backoff backoff;      /* until the next trial may be made */
    uint64_t tried_ms;                /* when the present trial was sent; 0: none */
    unsigned heard_status;            /* status of the rejections reported by other routers; 0: not
                                       * reported */
    uint64_t heard_ms;                /* since when other routers have reported rejections without a
                                       * break */
    uint64_t contradicted, confirmed; /* numbers of the replica's rejections since the router's
                                       * start, by result */
};

void node_reject_init(struct node_reject *j);
/* The replica's engine was replaced: clears everything. */
void node_reject_renew(struct node_reject *j);

/* How likely a rejection is the replica's own fault. */
enum node_reject_guilt {
    NODE_REJECT_UNLIKELY,
    NODE_REJECT_WORTH,  /* worth asking another replica */
    NODE_REJECT_LIKELY, /* at least as likely the replica's fault as the request's */
    NODE_REJECT_CAUGHT, /* the replica's rejections were contradicted, here or at another router */
};
enum node_reject_guilt node_reject_guilt(const struct node_reject *j,
                                         const struct node_rejection *x,
                                         const struct node_reject_prior *prior);
/* The rejection goes to the client, and no other replica is asked. Returns the believed chance that
 * the replica is at fault. */
double node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                          const struct node_reject_prior *prior);
/* Another replica is asked about the rejection (`open`), or has answered. Each call with true is
 * followed by a call with false. */
void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open);
/* Another replica accepted the same request. Returns true if the replica is now avoided for this
 * kind, and was not before. */
bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms);
/* Two replicas rejected the same request. Called for both replicas. */
void node_reject_agreed(struct node_reject *j);
/* The replica accepted a request. Returns true if nothing counts against the replica any more. */
bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t sent_ms);
/* A request is sent to the replica, and may be a trial. */
void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t now_ms);

/* True if requests of this kind go there only if no other replica will do. `again`: this request
 * can be repeated, and so may be the trial. */
bool node_reject_avoids(const struct node_reject *j, uint8_t kind, uint64_t model, bool again,
                        uint64_t now_ms);
/* True if the replica is known to accept requests of this kind. */
bool node_reject_proven(const struct node_reject *j, uint8_t kind);
/* The kinds for which the replica is avoided, found by this router or by others; and the status of
 * these rejections; 0: unknown. */
uint64_t node_reject_kinds(const struct node_reject *j);
unsigned node_reject_status(const struct node_reject *j);
/* False if nothing counts against the replica: then the functions above need no call. */
static inline bool node_reject_any(const struct node_reject *j)
{
    return (j->kinds | j->heard) != 0 || j->doubts > 0;
}

/* True if the replica is avoided now for some kind of repeatable requests. */
bool node_reject_avoids_any(const struct node_reject *j, uint64_t now_ms);

/* The kinds to report to other routers. None if the kinds count for a single model only, or if the
 * trial is overdue by a back-off's time because no request came for it. */
uint64_t node_reject_report(const struct node_reject *j, uint64_t now_ms);
/* The other routers' reports about a replica, merged. Starts zeroed. */
struct node_reject_heard {
    uint64_t kinds; /* kinds reported by any router */
    uint64_t ahead; /* kinds reported by routers ordered before this router */
    unsigned status;
};
void node_reject_heard_add(struct node_reject_heard *h, uint64_t kinds, unsigned status,
                           bool ahead);
void node_reject_hear(struct node_reject *j, const struct node_reject_heard *h, uint64_t now_ms);

/* Describes the requests and the error in words: "answers 401 to chat requests where its peers
 * accept the key". `kinds` is not 0; `one_model`: they count for a single model only. */
enum { NODE_REJECT_TEXT_BYTES = 160 };
const char *node_reject_text(unsigned status, uint64_t kinds, bool one_model,
                             char room[NODE_REJECT_TEXT_BYTES]);

/* --- clients --------------------------------------------------------------------------------- */

enum { NODE_REJECT_CLIENTS_MAX = 4096 };

/* Clients with rejected requests. All zero is valid. Each client is believed to be like earlier
 * clients until the client's requests show otherwise. Each repeated prompt is believed to be like
 * the client's other requests. So a bad prompt, sent again and again, says nothing about the
 * client's other prompts: another program behind the same address may send it.
 *
 * A row belongs to a client, or to a prompt of a client. A client without a row is unknown
 * again. */
struct node_reject_clients {
    struct node_reject_share { /* fading counts */
        float seen;            /* fading number of requests */
        float rejected[NODE_REJECT_SORTS];
    } first;                        /* the requests of clients without a row */
    double contradicted, confirmed; /* fading numbers of rejections after which another replica was
                                     * asked, by that replica's answer */
    unsigned count;                 /* rows in use */
    struct node_reject_client {
        uint64_t id;
        uint64_t prompt; /* hash of the last rejected prompt without a row; 0: none */
        struct node_reject_share share;
    } rows[NODE_REJECT_CLIENTS_MAX];
};

struct node_reject_prior node_reject_prior_of(const struct node_reject_clients *c,
                                              struct node_reject_from from, unsigned status);
/* Another replica was asked about a rejection, and answered. */
void node_reject_tried(struct node_reject_clients *c, bool contradicted);
void node_reject_client_accepted(struct node_reject_clients *c, struct node_reject_from from);
/* A request was rejected. Either another replica rejected the request too (`own` 0), or no replica
 * was asked. In the second case the rejection counts for the client only if asking was not worth
 * the cost at the belief `own`. It does not count if no other replica could be asked, or the budget
 * was spent. */
void node_reject_client_rejected(struct node_reject_clients *c, struct node_reject_from from,
                                 unsigned status, double own);

#endif

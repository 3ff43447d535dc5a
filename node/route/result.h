/* How a request ended: the one definition of a *failed* request (docs/glossary.md). The counters,
 * /figures, /live, /decisions, gvctl and the page all show what node_result_of() says.
 *
 * A request failed if its client got a status of 5xx, found the router's queue full (whatever the
 * status of that is), or got an answer that was cut: begun, and not brought to its proper end. An
 * error event in the answer is no proper end. Other 4xx are the client's own, as is a client that
 * is too slow, and a head that no router would take (501, 505); a client that left cancelled its
 * request. None of these is a failure.
 */
#ifndef NODE_ROUTE_RESULT_H
#define NODE_ROUTE_RESULT_H

#include <stdbool.h>

enum node_result {
    NODE_RESULT_OK,
    NODE_RESULT_CLIENT_ERROR, /* 4xx, or the client was too slow, or the rest of its request bad */
    NODE_RESULT_CLIENT_GONE,  /* it left before the end */
    NODE_RESULT_STATUS_5XX,   /* failed, as the next two: */
    NODE_RESULT_QUEUE_FULL,
    NODE_RESULT_CUT,
    NODE_RESULTS,
};

/* How the answer ended, as the client sees it. */
enum node_answer_end {
    NODE_ANSWER_WHOLE,       /* or there was none, and nothing of it was begun */
    NODE_ANSWER_LEFT,        /* the client left */
    NODE_ANSWER_BY_CLIENT,   /* cut, and the client is the cause */
    NODE_ANSWER_CUT,         /* cut, and it is not: the replica broke off, a limit of time passed */
    NODE_ANSWER_ERROR_EVENT, /* it has all its framing, and an error in place of the rest */
};

struct node_ending {
    enum node_answer_end answer;
    unsigned status;       /* that the client got; 0: none */
    unsigned event_status; /* that the error event names; 0: none */
    bool queue_full;       /* the router refused it for that */
    bool invalid;          /* the router refused it for a mistake of its client: 501, 505 too */
    /* The router's own health, asked on the client port: 503 says that it is not ready, and no
     * request failed. */
    bool health;
};

enum node_result node_result_of(const struct node_ending *ending);
/* In a word: "ok", "client_error", "client_gone", "status_5xx", "queue_full", "cut". */
const char *node_result_text(enum node_result result);

static inline bool node_result_failed(enum node_result result)
{
    return result >= NODE_RESULT_STATUS_5XX;
}

#endif

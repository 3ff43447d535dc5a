/* The result of a request: the only definition of a *failed* request (docs/glossary.md). The
 * counters, /figures, /live, /decisions, gvctl and the page all show results of node_result_of().
 *
 * A request failed if the client got a 5xx status, found the router's queue full (with any status),
 * or got a cut answer: begun, but not properly ended. An error event is no proper end. Other 4xx
 * are the client's fault, and so are a slow client and a request head that no router accepts (501,
 * 505). A client that left cancelled the request. None of these is a failure. */
#ifndef NODE_ROUTE_RESULT_H
#define NODE_ROUTE_RESULT_H

#include <stdbool.h>

enum node_result {
    NODE_RESULT_OK,
    NODE_RESULT_CLIENT_ERROR, /* 4xx, a slow client, or an invalid rest of the request's body */
    NODE_RESULT_CLIENT_GONE,  /* the client left before the end */
    NODE_RESULT_STATUS_5XX,   /* the client got a 5xx status; this result and the later ones count
                               * as failed */
    NODE_RESULT_QUEUE_FULL,
    NODE_RESULT_CUT,
    NODE_RESULTS,
};

/* The end of the answer, as the client sees it. */
enum node_answer_end {
    NODE_ANSWER_WHOLE,       /* complete, or no answer was begun */
    NODE_ANSWER_LEFT,        /* the client left */
    NODE_ANSWER_BY_CLIENT,   /* cut because of the client */
    NODE_ANSWER_CUT,         /* not ended: the replica broke off, or a time limit passed */
    NODE_ANSWER_ERROR_EVENT, /* complete in framing, but an error event replaces the rest */
};

struct node_ending {
    enum node_answer_end answer;
    unsigned status;       /* status sent to the client; 0: none */
    unsigned event_status; /* status in the error event; 0: none */
    bool queue_full;       /* the router's queue was full, and the router refused the request */
    bool invalid;          /* the router refused the request because of a client's mistake,
                            * including 501 and 505 */
    /* A health check of the router on the client port: 503 means that the router is not ready, and
     * no request failed. */
    bool health;
};

enum node_result node_result_of(const struct node_ending *ending);
/* One word: "ok", "client_error", "client_gone", "status_5xx", "queue_full", "cut". */
const char *node_result_text(enum node_result result);

static inline bool node_result_failed(enum node_result result)
{
    return result >= NODE_RESULT_STATUS_5XX;
}

#endif

/* Whose failure it is when a replica does not answer well, by what it said: the request's own,
 * which no other replica would answer better, or the replica's. Pure: it judges words and numbers.
 */
#ifndef NODE_PROXY_LIMIT_VERDICT_H
#define NODE_PROXY_LIMIT_VERDICT_H

#include <stdbool.h>

#include "base/slice.h"
#include "node/replica/terms.h"

enum verdict {
    VERDICT_CLIENT,    /* the answer belongs to the client */
    VERDICT_ELSEWHERE, /* another replica may serve the request */
    VERDICT_IN_DOUBT,  /* one try elsewhere decides: who fails alike fails by the request */
};

/* Why a request was sent again: the label of grapevine_retries_total. */
enum verdict_reason {
    RETRY_CONNECT,   /* refused, unreachable, connect timeout, no connection left */
    RETRY_BROKEN,    /* closed or reset before the first token */
    RETRY_MALFORMED, /* no HTTP that can be trusted */
    RETRY_TIMEOUT,   /* silent for too long */
    RETRY_BUSY,      /* 429, 503, a full queue */
    RETRY_GATEWAY,   /* 502, 504: something between the router and the engine */
    RETRY_ERROR,     /* 500 and its like, of an engine whose core has died, or in doubt */
    RETRY_DRAINS,    /* 500 of an engine that was told to end: it refuses what is new */
    RETRY_MODEL,     /* the replica does not know the model */
    RETRY_STORED,    /* nor the stored response */
    RETRY_ABORTED,   /* the engine gave the request up (finish reason "abort") */
    RETRY_RANK,      /* it has no rank of the number that was asked for, any more */
    RETRY_REJECTED,  /* 4xx that may be the replica's own fault */
    RETRY_REASONS,
};
/* In a word: "connect", ... */
const char *verdict_reason_name(enum verdict_reason reason);

struct verdict_judgement {
    enum verdict verdict;
    enum node_outcome outcome; /* towards the replica, if the verdict stands */
    enum verdict_reason reason;
    bool core_dead; /* the engine said that its core has died */
};

/* Whether the status alone says enough; else the body of such an answer is worth waiting for. */
bool verdict_needs_body(unsigned status, bool stored_responses);

/* Whether a 400 says that the engine has no data-parallel rank of the number that it was given. */
bool verdict_rank_is_unknown(struct slice message);

/* Of an answer, or of an error event in place of one (then with the status that it names; 0: it
 * names none). `message`: what the engine says of it; empty: nothing. */
struct verdict_judgement verdict_of_answer(unsigned status, struct slice message);

/* Of an answer that finishes with "abort" and names no status. Its client did not ask for that: the
 * engine ends so what is under way when it is about to end, or when another part of it has died. */
struct verdict_judgement verdict_of_abort(void);

#endif

/* Judges a replica's error by status and message. Either the request is at fault, and no other
 * replica would answer better, or the replica is. */
#ifndef NODE_PROXY_LIMIT_VERDICT_H
#define NODE_PROXY_LIMIT_VERDICT_H

#include <stdbool.h>

#include "base/slice.h"
#include "node/replica/terms.h"

enum verdict {
    VERDICT_CLIENT,    /* the client gets the answer */
    VERDICT_ELSEWHERE, /* another replica may serve the request */
    /* Another attempt decides: after a similar failure the request is at fault. */
    VERDICT_IN_DOUBT,
};

/* The reason why a request was sent again: the label of grapevine_retries_total. */
enum verdict_reason {
    RETRY_CONNECT,   /* no connection: refused, unreachable, timed out, or no memory for it */
    RETRY_BROKEN,    /* the connection closed or was reset before the first token */
    RETRY_MALFORMED, /* the answer is not valid HTTP */
    RETRY_TIMEOUT,   /* the replica was silent for too long */
    RETRY_BUSY,      /* 429, 503, or a message about the engine's full queue */
    RETRY_GATEWAY,   /* 502, 504: from a proxy between the router and the engine */
    RETRY_ERROR,     /* 500 and similar: the engine's core is dead, or may be */
    RETRY_DRAINS,    /* 500: the engine is shutting down and refuses new requests */
    RETRY_MODEL,     /* the replica does not know the model */
    RETRY_STORED,    /* the replica does not have the stored response */
    RETRY_ABORTED,   /* the engine aborted the request (finish reason "abort") */
    RETRY_CONTEXT,   /* the replica's context is too short for the request */
    RETRY_RANK,      /* the replica no longer has the requested rank */
    RETRY_REJECTED,  /* a 4xx that may be the replica's fault */
    RETRY_REASONS,
};
/* The reason's name: "connect", ... */
const char *verdict_reason_name(enum verdict_reason reason);

struct verdict_judgement {
    enum verdict verdict;
    enum node_outcome outcome; /* how the attempt counts for the replica, unless another replica's
                                * answer decides */
    enum verdict_reason reason;
    bool core_dead; /* the engine reported a dead core */
};

/* Returns true if the status alone does not decide. Then the caller needs the answer's body. */
bool verdict_needs_body(unsigned status, bool stored_responses);

/* Returns true if a 400 says the engine has no data-parallel rank of the given number. */
bool verdict_rank_is_unknown(struct slice message);

/* Returns true if an error (400) says the request exceeds the engine's context. */
bool verdict_context_is_short(struct slice message);
/* Returns true if a 400 of SGLang says the LoRA adapter is not loaded. */
bool verdict_adapter_is_unknown(struct slice message);

/* Judges an answer, or an error event of a stream. `status`: the status of the answer or the event;
 * 0: none. `message`: the engine's error message; empty: none. */
struct verdict_judgement verdict_of_answer(unsigned status, struct slice message);

/* Judges an answer with the finish reason "abort" and without an error status. The client did not
 * request the abort. An engine aborts requests before a shutdown, or after another part of the
 * engine died. */
struct verdict_judgement verdict_of_abort(void);

#endif

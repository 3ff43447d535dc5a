/* Terms for replicas, shared by all parts of a node: types of engines, health, probes, and the
 * outcomes of requests. */
#ifndef NODE_REPLICA_TERMS_H
#define NODE_REPLICA_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "node/replica/limits.h"

/* A set of replicas. */
enum { NODE_REPLICA_WORDS = NODE_REPLICAS_MAX / 64 };
struct node_replica_set {
    uint64_t words[NODE_REPLICA_WORDS];
};

static inline bool node_replica_set_has(const struct node_replica_set *s, unsigned replica)
{
    return s->words[replica / 64] >> (replica % 64) & 1;
}

static inline void node_replica_set_add(struct node_replica_set *s, unsigned replica)
{
    s->words[replica / 64] |= UINT64_C(1) << (replica % 64);
}

static inline void node_replica_set_remove(struct node_replica_set *s, unsigned replica)
{
    s->words[replica / 64] &= ~(UINT64_C(1) << (replica % 64));
}

static inline bool node_replica_set_any(const struct node_replica_set *s)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++)
        any |= s->words[i];
    return any != 0;
}

/* The first member of the set at or after `from`; `count` if there is none below `count`. */
static inline unsigned node_replica_set_next(const struct node_replica_set *s, unsigned from,
                                             unsigned count)
{
    for (unsigned word = from / 64; word < NODE_REPLICA_WORDS && from < count; word++) {
        uint64_t bits = s->words[word] & UINT64_MAX << from % 64;
        from = word * 64 + (bits != 0 ? (unsigned)__builtin_ctzll(bits) : 64);
        if (bits != 0)
            break;
    }
    return from < count ? from : count;
}

enum node_engine {
    NODE_ENGINE_AUTO, /* not known yet: found out by probing */
    NODE_ENGINE_VLLM,
    NODE_ENGINE_SGLANG,
    NODE_ENGINE_OTHER,
};

enum node_health {
    NODE_HEALTH_UNKNOWN, /* not probed yet: used only if no better replica can be chosen */
    NODE_HEALTH_UP,
    NODE_HEALTH_DOWN,
    NODE_HEALTH_DRAINING, /* finishes the requests under way, and gets no new requests */
    NODE_HEALTH_ROUTER,   /* no engine: a router answers the probes. Never used */
    NODE_HEALTHS,
};

/* The router's own questions to a replica. Sets of them have the bits 1 << enum node_probe. */
enum node_probe {
    NODE_PROBE_HEALTH,
    NODE_PROBE_METRICS,
    NODE_PROBE_MODELS,
    NODE_PROBE_SERVER_INFO,
    NODE_PROBE_PING,   /* SGLang only, because the health check is slow */
    NODE_PROBE_EVENTS, /* vLLM only: the address of the KV-cache events */
    NODE_PROBES,
};

/* The Host header of clients' requests to an engine. */
enum node_host_header {
    NODE_HOST_NOT_SAID, /* no label says: the setting counts */
    NODE_HOST_REPLICA,  /* the authority of the replica's URL */
    NODE_HOST_CLIENT,   /* as the client wrote it */
};

/* A request in flight at a replica (node/replica/booking.h). */
struct node_booking {
    uint32_t slot;
    uint32_t stamp; /* 0: no booking */
};

enum node_outcome {
    NODE_OUTCOME_OK,             /* the engine answered with a status below 400 */
    NODE_OUTCOME_CLIENT_GONE,    /* the client disconnected first: says nothing of the replica */
    NODE_OUTCOME_ENGINE_BUSY,    /* 429 or 503 of a healthy engine: the router retries elsewhere */
    NODE_OUTCOME_ENGINE_ERROR,   /* 5xx: never takes a replica down, but several make it avoided */
    NODE_OUTCOME_CONNECT_FAILED, /* refused, unreachable or connect timeout */
    NODE_OUTCOME_BROKEN,         /* the connection broke or went silent after the request was
                                  * sent */
    NODE_OUTCOME_IN_DOUBT, /* 5xx, perhaps caused by the request: says nothing of the replica */
    NODE_OUTCOME_SLOW,     /* a time limit passed while the engine worked: not the replica's
                            * failure */
    NODE_OUTCOME_STALLED,  /* the router moved the request away from a stalled replica: says nothing
                            * more of the replica */
    NODE_OUTCOME_NOT_SENT, /* the replica was chosen, but a limit of the router or a better replica
                            * intervened: says nothing of the replica */
    NODE_OUTCOME_REJECTED, /* 4xx other than for a full queue: the client's fault, unless another
                            * replica accepts the same request (node/replica/reject.h) */
};
enum { NODE_OUTCOMES = NODE_OUTCOME_REJECTED + 1 };

/* Errors at a replica, at most 1 per answer, for metrics. */
enum node_error {
    NODE_ERROR_CONNECT,     /* refused, unreachable or connect timeout */
    NODE_ERROR_TIMEOUT,     /* silent beyond the time limit */
    NODE_ERROR_BROKEN,      /* closed or reset in the middle */
    NODE_ERROR_MALFORMED,   /* the answer is no trustworthy HTTP */
    NODE_ERROR_STATUS,      /* 5xx */
    NODE_ERROR_EVENT,       /* 200, but with an error in the stream or in place of the answer */
    NODE_ERROR_ABORTED,     /* 200, but the engine ended the answer (finish reason "abort") */
    NODE_ERROR_NO_TERMINAL, /* 200, but the stream ended without the API's terminal event */
    NODE_ERRORS,
};

/* A word for operators: "up", "vllm", "ok", "connect". */
const char *node_health_text(enum node_health health);
const char *node_engine_text(enum node_engine engine);
const char *node_outcome_text(enum node_outcome outcome);
const char *node_error_text(enum node_error error);

/* The usage reported by an answer; -1: not reported. For a stream without completion_tokens, the
 * number of content events is a good substitute. */
struct node_usage {
    int64_t prompt_tokens;
    int64_t cached_tokens;
    int64_t completion_tokens;
    int64_t media_tokens[CHAIN_MEDIA]; /* tokens of the prompt's media; 0 or less: not reported */
};

#endif

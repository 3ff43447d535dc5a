/* All requests: this folder's part of struct proxy. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGES_H
#define NODE_PROXY_EXCHANGE_EXCHANGES_H

#include "base/deadline.h"
#include "node/kv/budget.h"

enum {
    PROXY_RETRY_WAITS = 4,            /* different back-offs: 20 to 150 ms, and up to 50 ms until a
                                       * tick */
    PROXY_FIRST_TOKEN_MIN_MS = 30000, /* minimum of upstream-first-token-timeout "auto" */
    /* Maximum of upstream-first-token-timeout "auto", unless the predicted wait is long
     * (patience.c). */
    PROXY_FIRST_TOKEN_MAX_MS = 300000,
    PROXY_IDLE_MS = 120000, /* upstream-idle-timeout "auto" */
    /* upstream-idle-timeout "auto" if the engine does not report steps. vLLM
     * (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS) and SGLang (--watchdog-timeout) end longer steps by
     * themselves. */
    PROXY_IDLE_BLIND_MS = 300000,
    PROXY_LOOK_MS = 1000,  /* time between two checks whether to wait longer for a byte */
    PROXY_LISTS_MS = 1000, /* longest wait for model lists before a model counts as unknown */
    /* Limits of a control request to all replicas: weights of hundreds of GB load from a disk in
     * minutes; each replica gets a copy of the body. */
    PROXY_CONTROL_MS = 600000,
    PROXY_CONTROL_BODY_BYTES_MAX = 64 * 1024,
    PROXY_IDS_OPEN_MAX = 8, /* most requests under way that ask an engine for token ids */
    /* Longest prompt to request token ids for: the ids fit HTTP_IDS_CUT_MAX. */
    PROXY_IDS_BYTES_MAX = 1 << 18,
    PROXY_IDS_PAUSE_MS = 3600000, /* pause after a replica was asked for ids and sent none */
};

struct proxy_exchanges {
    struct kv_budget ids_budget; /* limits the requests for token ids */
    unsigned ids_open;           /* requests for token ids under way */
    struct exchange *free;       /* exchanges kept for reuse */
    unsigned free_count;
    bool lists_due;                      /* all model lists for which requests wait have come */
    uint64_t back_offs;                  /* number of back-offs so far */
    uint64_t id_key[2];                  /* secret: request ids are `ids`, hashed with this key */
    uint64_t ids;                        /* number of request ids made so far */
    uint64_t loop_logged_ms;             /* last log line about a request in a circle; 0: never */
    unsigned loops_unlogged;             /* requests in a circle since `loop_logged_ms` */
    void (*expired)(struct deadline *d); /* proxy.c's function for the end of request-timeout */
};

#endif

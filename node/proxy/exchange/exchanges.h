/* All requests: this room's part of struct proxy. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGES_H
#define NODE_PROXY_EXCHANGE_EXCHANGES_H

#include "base/deadline.h"
#include "node/kv/budget.h"

enum {
    PROXY_RETRY_WAITS = 4,             /* 20 to 200 ms, with the tick */
    PROXY_FIRST_TOKEN_MIN_MS = 30000,  /* of upstream-first-token-timeout "auto" */
    PROXY_FIRST_TOKEN_MAX_MS = 300000, /* or longer, by the prediction (patience.c) */
    PROXY_IDLE_MS = 120000,            /* of upstream-idle-timeout "auto", */
    /* Or this if the engine does not report steps: vLLM (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS) and
     * SGLang (--watchdog-timeout) end longer steps by themselves. */
    PROXY_IDLE_BLIND_MS = 300000,
    PROXY_LOOK_MS = 1000,  /* between two checks if a byte may still come */
    PROXY_LISTS_MS = 1000, /* wait for lists before a model is unknown */
    /* Limits of a control request to all replicas: weights of hundreds of GB load from a disk in
     * minutes; each replica gets a copy of the body. */
    PROXY_CONTROL_MS = 600000,
    PROXY_CONTROL_BODY_BYTES_MAX = 64 * 1024,
    PROXY_IDS_OPEN_MAX = 8,        /* requests under way with a question for prompt tokens, */
    PROXY_IDS_BYTES_MAX = 1 << 18, /* and the longest such prompt: its ids fit HTTP_IDS_CUT_MAX */
    PROXY_IDS_PAUSE_MS = 3600000,  /* pause after a replica sent no ids */
};

struct proxy_exchanges {
    struct kv_budget ids_budget; /* of questions for prompt tokens, */
    unsigned ids_open;           /* and their number under way */
    struct exchange *free;       /* for reuse */
    unsigned free_count;
    bool lists_due;                      /* all lists have come for which requests wait */
    uint64_t back_offs;                  /* so far */
    uint64_t id_key[2];                  /* secret: an id is the counter, hashed with this key */
    uint64_t ids;                        /* so far */
    uint64_t loop_logged_ms;             /* 0: never */
    unsigned loops_unlogged;             /* since then */
    void (*expired)(struct deadline *d); /* request-timeout: the function of proxy.c */
};

#endif

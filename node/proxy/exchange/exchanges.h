/* All requests together: what struct proxy holds of them. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGES_H
#define NODE_PROXY_EXCHANGE_EXCHANGES_H

#include "base/deadline.h"
#include "node/kv/budget.h"

enum {
    PROXY_RETRY_WAITS = 4,             /* 20 to 200 ms, with the tick */
    PROXY_FIRST_TOKEN_MIN_MS = 30000,  /* of upstream-first-token-timeout "auto" */
    PROXY_FIRST_TOKEN_MAX_MS = 300000, /* or more, where more is predicted (patience.c) */
    PROXY_IDLE_MS = 120000,            /* of upstream-idle-timeout "auto", */
    PROXY_IDLE_BLIND_MS = 300000,      /* or this where the engine tells nothing of its steps: vLLM
                                     (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS) and SGLang
                                     (--watchdog-timeout) end one that takes longer by themselves */
    PROXY_LOOK_MS = 1000,              /* between two looks whether a byte may still come */
    PROXY_LISTS_MS = 1000,             /* a wait for lists, before a model is unknown */
    /* Of a request that steers an engine, and goes to all: weights of hundreds of GB are loaded
     * from a disk in minutes; of its body each replica gets a copy. */
    PROXY_CONTROL_MS = 600000,
    PROXY_CONTROL_BODY_BYTES_MAX = 64 * 1024,
    PROXY_IDS_OPEN_MAX = 8,        /* requests under way whose prompts' tokens are asked for, */
    PROXY_IDS_BYTES_MAX = 1 << 18, /* of prompts so long: their ids fit HTTP_IDS_CUT_MAX */
    PROXY_IDS_PAUSE_MS = 3600000,  /* until a replica that told none is asked again */
};

struct proxy_exchanges {
    struct kv_budget ids_budget; /* of prompts whose tokens engines are asked for, */
    unsigned ids_open;           /* and how many of these are under way */
    struct exchange *free;       /* for the next requests */
    unsigned free_count;
    bool lists_due;                      /* all lists of models have come that requests wait for */
    uint64_t back_offs;                  /* so far */
    uint64_t id_key[2];                  /* secret: ids are the counter, hashed with it */
    uint64_t ids;                        /* so far */
    uint64_t loop_logged_ms;             /* 0: never */
    unsigned loops_unlogged;             /* since then */
    void (*expired)(struct deadline *d); /* request-timeout: what proxy.c has for it */
};

#endif

/* Limits on a router's knowledge of engines. docs/limits.md says what happens at each limit. */
#ifndef NODE_REPLICA_LIMITS_H
#define NODE_REPLICA_LIMITS_H

#include "crdt/limits.h"

enum {
    NODE_REPLICAS_MAX = 2048,   /* slots for replicas */
    NODE_NAME_MAX = 256,        /* bytes of a replica's name */
    NODE_RANKS_MAX = 64,        /* data-parallel ranks of an address */
    NODE_ROUTER_NAME_MAX = 160, /* bytes of the name of a router found in place of an engine */
    NODE_BOOKINGS_MAX = 65536,  /* requests in flight */
    NODE_MODELS_MAX = 8192,     /* names of models and adapters, listed or learned */
    NODE_MODEL_NAME_MAX = 256,  /* bytes of a requested model's name */
    NODE_MODEL_ID_MAX = 255,    /* bytes of a listed model's name */
    NODE_HEALTH_PATH_MAX = 127, /* bytes of a health check's path */
    NODE_MODELS_DENIALS = 4096, /* pairs of a replica and a denied model; 96 KiB */
    NODE_CONTEXT_TOKENS_MAX = 1000000000, /* a longer context length counts as not reported */
    NODE_USAGE_TOKENS_MAX = 1 << 28, /* most believable tokens of an answer: 25 times the longest
                                      * context of any model; a larger count is ignored */
    NODE_ANSWERED_ROWS_MAX = 4096,   /* pairs of replica and model with token counts */
    NODE_KINDS_MAX = 64,             /* kinds of clients with a separate rendering */
    NODE_KIND_AGENT_MAX = 40,        /* bytes of a User-Agent's product; more is cut */
    NODE_PRINTS_MAX = 256,       /* remembered prompts of watched client kinds, over all kinds */
    NODE_PRINT_POINTS_MAX = 192, /* checkpoints of a remembered prompt: 300,000 tokens; later
                                  * checkpoints are left out */
};

_Static_assert((int)NODE_REPLICAS_MAX == (int)CRDT_REPLICAS_MAX,
               "a replica is a slot of the state");
_Static_assert((int)NODE_NAME_MAX <= (int)CRDT_NAME_MAX, "each name fits the state");
_Static_assert((int)NODE_MODEL_ID_MAX <= (int)NODE_MODEL_NAME_MAX,
               "what is listed can be asked for");
_Static_assert(NODE_REPLICAS_MAX % 64 == 0, "sets of replicas are whole words");

#endif

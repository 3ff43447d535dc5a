/* The limits of this folder. What happens at each: docs/limits.md. */
#ifndef CRDT_LIMITS_H
#define CRDT_LIMITS_H

#include <stdint.h>

enum {
    CRDT_REPLICAS_MAX = 2048,         /* replica slots; a slot number has 11 bits */
    CRDT_NAMES_MAX = 1536,            /* replica names with a slot at a time */
    CRDT_ROWS_MAX = 2048,             /* replica names with a slot or waiting for a slot */
    CRDT_TOLD_MAX = 64,               /* names per router; the router's further names rank below
                                       * other routers' names */
    CRDT_NAMES_TTL_S = 960,           /* seconds until a name that no router lists is forgotten */
    CRDT_ROUTERS_MAX = 512,           /* reporting routers, this one included */
    CRDT_NAME_MAX = 256,              /* bytes of a replica's name */
    CRDT_RAISES_MAX = 1 << 30,        /* lost caches per engine process: raising never wraps */
    CRDT_TTL_MAX = 3840,              /* generations: leaves 255 to sweep before stamps wrap */
    CRDT_RUN_MAX = 512,               /* observations in a run */
    CRDT_EARLY_SKEW_MS = 5000,        /* ms that cluster time may be ahead of an engine's clock */
    CRDT_EARLY_MAX = 8192,            /* own observations kept until start times are known */
    CRDT_REMAINS_MAX = 256,           /* entries of lost caches in a sketch that is compared */
    CRDT_CUT_BUCKETS_MAX = 1 << 20,   /* buckets of the largest table walked to repair a cut span */
    CRDT_LOAD_USES_MAX = UINT16_MAX,  /* adapter uses; beyond it, the count begins again at 0 */
    CRDT_LOAD_REQUESTS_MAX = 1 << 22, /* requests reported by a router: sums never wrap */
    CRDT_POISON_MAX = 256,            /* remembered requests after which engines died */
    CRDT_POISON_TTL_S = 3600,         /* seconds to remember a request if two engines died */
    CRDT_SUSPECT_TTL_S = 600,         /* seconds to remember a request if a single engine died */
    CRDT_LATER_MAX = 64,              /* bytes of a row's fields unknown to this version */
    CRDT_DELTA_MIN = 512,             /* bytes, the least `max` of crdt_state_produce() */
    CRDT_TIDING_MAX = 500,            /* bytes of a tiding: it fits any delta */
    CRDT_TIDINGS_BYTES = 1 << 18,     /* bytes of waiting tidings, each with a head of 3 */
    CRDT_SUMMARY_MAX = 1100,          /* bytes of a summary: one packet */
    CRDT_MESSAGE_MAX = 131062,        /* bytes of any other message: 128 KiB with the head */
    CRDT_CHUNK_MAX = 60000,           /* bytes of a chunk of a snapshot */
};

/* Limit of each load gauge in tokens; larger values are cut to it. */
#define CRDT_LOAD_TOKENS_MAX (UINT64_C(1) << 40)
/* Limit of delta numbers, epochs, versions and sums: adding two never wraps. */
#define CRDT_NUMBER_MAX (UINT64_MAX >> 1)

#endif

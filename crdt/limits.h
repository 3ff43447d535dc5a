/* The limits of this room. What happens at each: docs/limits.md. */
#ifndef CRDT_LIMITS_H
#define CRDT_LIMITS_H

#include <stdint.h>

enum {
    CRDT_REPLICAS_MAX = 2048,        /* slots; each has eleven bits */
    CRDT_NAMES_MAX = 1536,           /* names of replicas that have a slot at one time */
    CRDT_ROWS_MAX = 2048,            /* those that wait for one too */
    CRDT_TOLD_MAX = 64,              /* names of one router before the rest of its names wait */
    CRDT_NAMES_TTL_S = 960,          /* after which a name that nobody names is forgotten */
    CRDT_ROUTERS_MAX = 512,          /* that report, this one too; membership admits no more */
    CRDT_NAME_MAX = 256,             /* bytes of a replica's name */
    CRDT_RAISES_MAX = 1 << 30,       /* losses of one cache: raising never wraps */
    CRDT_TTL_MAX = 3840,             /* generations: the sweeper has 255 before stamps would wrap */
    CRDT_RUN_MAX = 512,              /* observations of one run */
    CRDT_EARLY_SKEW_MS = 5000,       /* by which the cluster's time may be ahead of an engine's */
    CRDT_EARLY_MAX = 8192,           /* own observations while a start time is not known */
    CRDT_REMAINS_MAX = 256,          /* entries of lost caches in a sketch that is compared */
    CRDT_CUT_BUCKETS_MAX = 1 << 20,  /* of a table that is walked to repair a span cut by a floor */
    CRDT_LOAD_USES_MAX = UINT16_MAX, /* of adapters, after which the count begins anew */
    CRDT_LOAD_REQUESTS_MAX = 1 << 22, /* that a router may claim: the sum over all never wraps */
    CRDT_POISON_MAX = 256,            /* requests after which engines died, that are remembered */
    CRDT_POISON_TTL_S = 3600,         /* for so long where two died, */
    CRDT_SUSPECT_TTL_S = 600,         /* and so long where it was one */
    CRDT_LATER_MAX = 64,              /* bytes of a row's fields that only a later version knows */
    CRDT_DELTA_MIN = 512,             /* bytes, least `max` of crdt_state_produce() */
    CRDT_TIDING_MAX = 500,            /* bytes of a tiding: it fits any delta */
    CRDT_TIDINGS_BYTES = 1 << 18,     /* of tidings that wait to be sent, 3 more for each */
    CRDT_SUMMARY_MAX = 1100,          /* bytes of a summary: one packet */
    CRDT_MESSAGE_MAX = 131062,        /* bytes of any other message: 128 KiB with its head */
    CRDT_CHUNK_MAX = 60000,           /* bytes of a chunk of a snapshot */
};

/* Limit of one load gauge; larger values are cut. */
#define CRDT_LOAD_TOKENS_MAX (UINT64_C(1) << 40)
/* Numbers of deltas, lives, versions and sums: far from where a sum would wrap. */
#define CRDT_NUMBER_MAX (UINT64_MAX >> 1)

#endif

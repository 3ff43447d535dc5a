/* Where one replica is, and the connections to it (node/proxy/engine/upstream.h). A name may have
 * several addresses: one is used until connecting to it fails, then the next. */
#ifndef NODE_PROXY_ENGINE_POOL_H
#define NODE_PROXY_ENGINE_POOL_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

struct upstream;

enum {
    /* The quickest of so many answers to probes, which come about once a second each, is about a
     * round trip: a few are slow because the engine is busy, all are if the way is long. */
    POOL_ANSWERS = 8,
    POOL_ANSWER_MS_MAX = 500, /* no way to an engine is longer: it is slow to answer */
};

/* The last time that connections to a replica ended under requests without a token
 * (node/proxy/exchange/suspect.h). */
struct pool_death {
    uint64_t at_ms;             /* 0: never */
    bool core, hang;            /* else it was abrupt */
    bool said;                  /* abrupt: the engine itself said that it is dead */
    bool told;                  /* a hang: its port was closed before, it was told to end */
    bool left;                  /* a hang: the router itself closes all that is under way there */
    bool shared;                /* other routers had requests there */
    unsigned suspects;          /* requests of this one that were there */
    uint64_t from_ms, until_ms; /* when those were sent; the first only of what is not streamed */
};

struct pool {
    struct proxy *proxy; /* NULL: not opened yet */
    struct net_host *host;
    struct node_address address;
    char *authority;        /* owned: under which requests ask, "HOST[:PORT]" (RFC 9110, 7.2) */
    unsigned address_count; /* 0: not looked up yet */
    unsigned address_at;    /* the one to connect to: moves on when connecting to it fails */
    uint32_t address_ids[NET_ADDRESSES_MAX]; /* of these addresses; no other one ever had it */
    uint32_t address_last_id;
    bool is_name; /* needs to be looked up */
    bool resolving;
    int unresolved; /* why no address is known (struct net_found); not answered yet: ERR_TIMEOUT */
    uint64_t resolved_ms;
    struct upstream *all;
    struct upstream *walked; /* the next one of a walk over all that may close some */
    struct upstream *idle;
    unsigned open_count;
    /* No connection is opened now (node/proxy/engine/shortage.h). */
    bool no_place;
    uint64_t place_ms;      /* not before then is one tried */
    uint64_t place_wait_ms; /* how long that was; grows */
    uint64_t unasked_ms;    /* when that kept probes from being sent last; 0: never */
    unsigned fetches;       /* questions under way (node/proxy/engine/fetch.h) */
    /* How long the last answers to probes took to begin; 0: fewer have come. */
    uint16_t answered_ms[POOL_ANSWERS];
    unsigned answered_at; /* the next one's place */
    /* What shows that the replica lives (node/proxy/guard/watch.h); 0: never. A data-parallel rank,
     * which has no connections of its own, has these but the first. */
    uint64_t heard_ms; /* its last byte, of whatever */
    uint64_t token_ms; /* its last byte behind the first token of an answer */
    uint64_t begun_ms; /* the last byte of that answer with tokens which is silent for longest */
    uint64_t busy_ms;  /* since when it has been waited for without a break; 0: it is not */
    uint64_t asked_ms; /* when a sign was asked for last, */
    uint64_t health_asked_ms; /* and a health check that costs the engine something */
    bool told_stalled;        /* in the log */
    /* What shows how it died (node/proxy/exchange/suspect.h); 0: never. */
    uint64_t answer_ms;      /* the last byte of an answer to a client */
    uint64_t first_token_ms; /* the last first token */
    uint64_t probed_ms;      /* the last answer to a probe */
    uint64_t refused_ms;     /* when its port refused last */
    uint64_t accepted_ms;    /* and when it took a connection of a request */
    struct pool_death death;
    uint64_t no_ids_ms; /* until then it is not asked for token ids: it tells none; 0: it may be */
    uint64_t spared_ms; /* the last death whose requests moved beyond the budget; 0: none */
};

/* IP addresses are ready at once, names after their first look-up, which begins. ERR_NOMEM. */
MUST_USE int pool_open(struct pool *pool, struct proxy *p, const struct node_address *address);
/* There are no connections any more. */
void pool_close(struct pool *pool);
/* Looks the name up again if it is one and the last look-up is older than `age_ms`. */
void pool_resolve(struct pool *pool, uint64_t age_ms);
/* Opens a connection to the address in use. Errors as net->connect, of which a shortage is noted;
 * ERR_UNREACHABLE too while no address is known. */
MUST_USE int pool_connect(struct pool *pool, struct net_stream **stream);
/* The answer to a probe began `ms` after the probe was sent. */
void pool_answered(struct pool *pool, uint64_t ms);
/* A round trip to the engine itself, by those answers; 0: not known. TCP measures no further than
 * to what ends its connection, which may be a load balancer, a sidecar or a tunnel. */
uint64_t pool_round_trip_ms(const struct pool *pool);
/* The address that pool_connect() connects to. */
static inline uint32_t pool_address(const struct pool *pool)
{
    return pool->address_ids[pool->address_at];
}

/* Whether the name still has that address. A connection to one that it has no more ends with its
 * request: another engine is there now, or none. */
bool pool_has_address(const struct pool *pool, uint32_t address);
/* Connecting to that one failed: the next one of the name, if it has several, is used from now. */
void pool_address_failed(struct pool *pool, uint32_t address);

#endif

/* A replica's addresses, and the connections to them (node/proxy/engine/upstream.h). A name may
 * have several addresses: each is used until connecting fails, then the next. */
#ifndef NODE_PROXY_ENGINE_POOL_H
#define NODE_PROXY_ENGINE_POOL_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

struct upstream;

enum {
    /* The round-trip time is the fastest of the last POOL_ANSWERS probe answers, about 1 per
     * second. A busy engine delays some answers, a slow network all. */
    POOL_ANSWERS = 8,
    POOL_ANSWER_MS_MAX = 500, /* a longer wait is due to the engine, not to the network */
};

/* A replica's last death: the connections ended during requests without a token
 * (node/proxy/exchange/suspect.h). */
struct pool_death {
    uint64_t at_ms;    /* 0: never */
    bool core, hang;   /* the engine's core died, or hung; neither: an abrupt death */
    bool said;         /* an abrupt death: the engine itself reported a dead core */
    bool told;         /* a hang: the port refused connections before, as in a shutdown */
    bool left;         /* a hang: the router itself closes all of the connections */
    bool shared;       /* other routers had requests at the replica */
    unsigned suspects; /* number of this router's requests that may be the cause */
    /* Start times of the suspects; streamed requests may be older. */
    uint64_t from_ms, until_ms;
};

struct pool {
    struct proxy *proxy; /* NULL: not opened yet */
    struct net_host *host;
    struct node_address address;
    char *authority;        /* owned: the Host field, "HOST[:PORT]" (RFC 9110, 7.2) */
    unsigned address_count; /* 0: no look-up yet */
    unsigned address_at;    /* number of the address in use; moves on after a failure */
    uint32_t address_ids[NET_ADDRESSES_MAX]; /* ids of the addresses; no id is used again */
    uint32_t address_last_id;
    bool is_name; /* `address` has a name, which must be looked up */
    bool resolving;
    int unresolved; /* why there is no address (net_found.err); ERR_TIMEOUT before an answer */
    uint64_t resolved_ms;
    struct upstream *all;
    struct upstream *walked; /* next connection of a walk over `all`, during which some may close */
    struct upstream *idle;
    unsigned open_count;
    /* A shortage allows no new connection now (node/proxy/engine/shortage.h). */
    bool no_place;
    uint64_t place_ms;      /* earliest time of the next try to connect */
    uint64_t place_wait_ms; /* length of the wait until `place_ms`, doubled after each failure */
    uint64_t unasked_ms;    /* last time a shortage kept probes from being sent; 0: never */
    unsigned fetches;       /* fetches under way (node/proxy/engine/fetch.h) */
    /* Waits for the first byte of the last POOL_ANSWERS answers to probes; 0: no answer yet. */
    uint16_t answered_ms[POOL_ANSWERS];
    unsigned answered_at; /* index at which the next answer is stored */
    /* Times of signs of life (node/proxy/guard/watch.h); 0: never. The pool of a data-parallel rank
     * has no connections, so `heard_ms` is unused there. */
    uint64_t heard_ms; /* the last byte of any kind */
    uint64_t token_ms; /* the last byte after the first token of an answer */
    uint64_t begun_ms; /* of the answers past their first token, the most silent one's last byte;
                        * 0: no such answer */
    uint64_t busy_ms;  /* since this time some request has always been waiting; 0: none waits */
    uint64_t asked_ms; /* the last time the watchdog asked for a sign of life */
    /* Last time the watchdog asked for a health check at the cost of a token. */
    uint64_t health_asked_ms;
    bool told_stalled; /* the replica is logged as stalled */
    /* Times of signs of a death (node/proxy/exchange/suspect.h); 0: never. */
    uint64_t answer_ms;      /* the last byte of an answer to a client */
    uint64_t first_token_ms; /* the last first token */
    uint64_t probed_ms;      /* the last answer to a probe */
    uint64_t refused_ms;     /* the last time the port refused a connection */
    uint64_t accepted_ms;    /* the last time the port accepted a connection for a request */
    struct pool_death death;
    uint64_t no_ids_ms; /* the engine is not asked for token ids before this time */
    uint64_t spared_ms; /* last death for which the retry budget was exceeded; 0: none */
};

/* Opens a pool. IP addresses are ready at once, names after their first look-up, which begins here.
 * ERR_NOMEM. */
MUST_USE int pool_open(struct pool *pool, struct proxy *p, const struct node_address *address);
/* Closes a pool without connections. */
void pool_close(struct pool *pool);
/* Looks up a name again if the last look-up is older than `age_ms`. No effect on an IP address. */
void pool_resolve(struct pool *pool, uint64_t age_ms);
/* Begins a connection to the address in use, and notes a shortage. Returns errors as net->connect,
 * and ERR_UNREACHABLE if no address is known. */
MUST_USE int pool_connect(struct pool *pool, struct net_stream **stream);
/* An answer to a probe began `ms` milliseconds after the request. */
void pool_answered(struct pool *pool, uint64_t ms);
/* Returns the round-trip time to the engine, measured by answers to probes; 0: unknown. TCP
 * measures only to the other end of the connection, which may be a load balancer, a sidecar or a
 * tunnel. */
uint64_t pool_round_trip_ms(const struct pool *pool);
/* Returns the id of the address used by pool_connect(). */
static inline uint32_t pool_address(const struct pool *pool)
{
    return pool->address_ids[pool->address_at];
}

/* Returns true if the name still has the address with this id. If not, a connection there ends
 * after the present request, because another engine, or none, may be at the address now. */
bool pool_has_address(const struct pool *pool, uint32_t address);
/* Connecting to the address failed: from now on the name's next address is used, if any. */
void pool_address_failed(struct pool *pool, uint32_t address);

#endif

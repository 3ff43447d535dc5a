/* A replica's addresses, and the connections to them (node/proxy/engine/upstream.h). A name may
 * have several addresses: each is used until connecting fails, then the next. */
#ifndef NODE_PROXY_ENGINE_POOL_H
#define NODE_PROXY_ENGINE_POOL_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

struct upstream;

enum {
    /* The fastest of so many probe answers, about one each second, takes about a round trip. Some
     * are slow if the engine is busy; all are slow if the network is. */
    POOL_ANSWERS = 8,
    POOL_ANSWER_MS_MAX = 500, /* a longer wait is the engine's, not the network's */
};

/* The last time connections to a replica ended during requests without a token
 * (node/proxy/exchange/suspect.h). */
struct pool_death {
    uint64_t at_ms;             /* 0: never */
    bool core, hang;            /* neither: abrupt */
    bool said;                  /* abrupt: the engine itself reported a dead core */
    bool told;                  /* a hang: the port was closed before, as in a shutdown */
    bool left;                  /* a hang: the router itself closes all connections there */
    bool shared;                /* other routers had requests there */
    unsigned suspects;          /* this router's suspects there */
    uint64_t from_ms, until_ms; /* when these were sent; `from_ms`: without streamed requests */
};

struct pool {
    struct proxy *proxy; /* NULL: not opened yet */
    struct net_host *host;
    struct node_address address;
    char *authority;        /* owned: the Host field, "HOST[:PORT]" (RFC 9110, 7.2) */
    unsigned address_count; /* 0: no look-up yet */
    unsigned address_at;    /* the address to connect to; moves on after a failure */
    uint32_t address_ids[NET_ADDRESSES_MAX]; /* ids of the addresses, never used again */
    uint32_t address_last_id;
    bool is_name; /* needs a look-up */
    bool resolving;
    int unresolved; /* the reason for no address (struct net_found); before the first answer
                       ERR_TIMEOUT */
    uint64_t resolved_ms;
    struct upstream *all;
    struct upstream *walked; /* the next connection of a walk, which may close some */
    struct upstream *idle;
    unsigned open_count;
    /* No connection is opened now (node/proxy/engine/shortage.h). */
    bool no_place;
    uint64_t place_ms;      /* earliest time of the next try */
    uint64_t place_wait_ms; /* length of the wait; grows */
    uint64_t unasked_ms;    /* last time a shortage kept probes from being sent; 0: never */
    unsigned fetches;       /* requests under way (node/proxy/engine/fetch.h) */
    /* Times until the last answers to probes began; 0: no answer yet. */
    uint16_t answered_ms[POOL_ANSWERS];
    unsigned answered_at; /* place of the next */
    /* Signs of life (node/proxy/guard/watch.h); 0: never. A data-parallel rank has no connections
     * of its own, and uses all but the first. */
    uint64_t heard_ms;        /* the last byte of any kind */
    uint64_t token_ms;        /* the last byte after the first token of an answer */
    uint64_t begun_ms;        /* the last byte of the answer with tokens and the longest silence */
    uint64_t busy_ms;         /* since when requests wait there without a break; 0: none do */
    uint64_t asked_ms;        /* last request for a sign, */
    uint64_t health_asked_ms; /* and last health check with a cost for the engine */
    bool told_stalled;        /* logged as stalled */
    /* Signs of a death (node/proxy/exchange/suspect.h); 0: never. */
    uint64_t answer_ms;      /* the last byte of an answer to a client */
    uint64_t first_token_ms; /* the last first token */
    uint64_t probed_ms;      /* the last answer to a probe */
    uint64_t refused_ms;     /* the last refusal by the port, */
    uint64_t accepted_ms;    /* and the last accepted connection for a request */
    struct pool_death death;
    uint64_t no_ids_ms; /* no requests for token ids until then; 0: allowed */
    uint64_t spared_ms; /* the last death after which requests moved beyond the budget; 0: none */
};

/* Opens a pool. IP addresses are ready at once, names after their first look-up, which begins here.
 * ERR_NOMEM. */
MUST_USE int pool_open(struct pool *pool, struct proxy *p, const struct node_address *address);
/* Closes a pool without connections. */
void pool_close(struct pool *pool);
/* Looks up a name again if the last look-up is older than `age_ms`. No effect on an IP address. */
void pool_resolve(struct pool *pool, uint64_t age_ms);
/* Opens a connection to the address in use. Returns errors as net->connect, and notes shortages;
 * ERR_UNREACHABLE also without a known address. */
MUST_USE int pool_connect(struct pool *pool, struct net_stream **stream);
/* Notes that a probe's answer began after `ms`. */
void pool_answered(struct pool *pool, uint64_t ms);
/* Returns the round-trip time to the engine itself, by probe answers; 0: unknown. TCP measures only
 * to the connection's other end, which may be a load balancer, a sidecar or a tunnel. */
uint64_t pool_round_trip_ms(const struct pool *pool);
/* Returns the id of the address for pool_connect(). */
static inline uint32_t pool_address(const struct pool *pool)
{
    return pool->address_ids[pool->address_at];
}

/* Returns true if the name still has the address. If not, a connection there ends after the present
 * request, because another engine, or none, is there now. */
bool pool_has_address(const struct pool *pool, uint32_t address);
/* Connecting to the address failed: the name's next address is used from now on, if there are
 * several. */
void pool_address_failed(struct pool *pool, uint32_t address);

#endif

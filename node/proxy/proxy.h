/* Requests on their way from clients to replicas and back: a state machine without sockets, clock
 * or randomness. Network events go in (node/proxy/net.h), network actions come out, and node/route
 * chooses the replica.
 *
 * Driven by the shell:
 *
 *   proxy_create()
 *   proxy_replica()      a replica was added or removed
 *   proxy_start()        begins to probe the replicas
 *   proxy_accept()       a client has connected; from now on the stream brings the events
 *   proxy_run()          before the loop sleeps: completes the work of the events
 *   proxy_tick()         when proxy_due_ms() says so: handles time limits and probes
 *   proxy_drain()        before the node ends: called twice, see below
 *   proxy_stop()         closes everything
 *   proxy_destroy()      after the last `closed` event
 *
 * README.md lists each file's purpose, and the life of a request. */
#ifndef NODE_PROXY_PROXY_H
#define NODE_PROXY_PROXY_H

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "node/access/access.h"
#include "node/cluster/replication.h"
#include "node/proxy/net.h"
#include "node/proxy/stats.h"
#include "node/route/affinity.h"
#include "node/route/decisions.h"
#include "node/route/router.h"
#include "node/settings/options.h"

struct exchange;
struct http_head;
struct json_writer;
struct kv_readers;
struct proxy;
struct proxy_timing;
struct trace;

enum {
    PROXY_TICK_MS = 50,         /* shortest time between two ticks */
    PROXY_TICK_IDLE_MS = 500,   /* longest time between two ticks, unless the process was stopped */
    PROXY_READ_BYTES = 65536,   /* most bytes read at once by the network */
    PROXY_IDENTITY_BYTES = 192, /* this router's name in probes of other routers, with NUL */
    PROXY_ADMIN_CONNECTIONS_MAX = 160, /* on the admin port and the probe port together */
};

/* The port of an accepted connection. */
enum proxy_port {
    PROXY_PORT_CLIENT,
    PROXY_PORT_ADMIN,
    PROXY_PORT_PROBE,  /* answers health probes as the admin port does, and nothing else */
    PROXY_PORT_EVENTS, /* for engines that publish KV events (node/proxy/engine/publishers.h) */
    PROXY_PORTS,
};

/* All pointers are borrowed until proxy_destroy(). node_create() fills in the node's parts. */
struct proxy_config {
    const struct node_options *options;
    struct node_router *router;
    struct node_affinity *affinity;
    struct node_decisions *decisions;     /* receives requests' results; may be NULL */
    struct node_replication *replication; /* NULL: no other routers */
    struct log *log;
    const struct net_actions *net;
    struct hash_secret secret; /* for hashes of prompts; `router` has the same */
    uint64_t random[3];        /* random bits for request ids and for this router's pseudonym */
    const char *name;          /* this router's name in the cluster; NULL: no other routers */
    struct access *access;     /* clients' keys; NULL: no key is required */
    /* Returns the API key for probes, valid until the event ends. `*version` rises with each new
     * key. The function is NULL if there is no key. With `access`, clients' requests are forwarded
     * with this key too. */
    struct slice (*replica_key)(void *context, unsigned *version);
    void *replica_key_context;
    struct trace *trace;           /* NULL: no tracing */
    struct kv_readers *kv_readers; /* NULL: no KV events are read */
    /* Lower than PROXY_ADMIN_CONNECTIONS_MAX if the process may open only few files. 0:
     * PROXY_ADMIN_CONNECTIONS_MAX. */
    unsigned admin_connections_max;
    /* Receives the head of a request to the admin port before the body arrives. Answers a forbidden
     * request. For other requests, calls exchange_skim_begin() if the body is needed; otherwise the
     * body is dropped. */
    void (*admin_head)(void *context, struct exchange *x, const struct http_head *head);
    /* Answers a whole request of the admin port with exchange_answer(), now or later. */
    void (*admin)(void *context, struct exchange *x, const struct http_head *head);
    void *admin_context;
};

/* ERR_NOMEM. */
MUST_USE int proxy_create(struct proxy **out, const struct proxy_config *config, uint64_t now_ms);
void proxy_destroy(struct proxy *p);
MUST_USE int proxy_start(struct proxy *p, uint64_t now_ms);

/* A replica was added to the router or returned (`present`), or was removed. Requests under way
 * there continue. */
void proxy_replica(struct proxy *p, unsigned replica, bool present, uint64_t now_ms);
/* Closes the pool of a removed replica, before the name is forgotten. Returns false if something is
 * still under way there; the caller calls again later. */
bool proxy_replica_forgotten(struct proxy *p, unsigned replica);

/* Takes the stream over. `peer`: the peer's IP address as text. After ERR_NOMEM the caller closes
 * the stream. */
MUST_USE int proxy_accept(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer, uint64_t now_ms);
/* Returns true if an accepted stream must begin with a PROXY header. */
bool proxy_header_awaited(const struct net_stream *stream);
/* Returns the client's IP address: from a PROXY header, otherwise the connection's address. */
const char *proxy_peer(const struct net_stream *stream);

void proxy_run(struct proxy *p, uint64_t now_ms);
void proxy_tick(struct proxy *p, uint64_t now_ms);
/* Returns the time of the next tick: PROXY_TICK_MS after the last tick if a request is open or
 * replicas are watched, otherwise the end of the next time limit. Each event may change this time.
 * O(1). */
uint64_t proxy_due_ms(const struct proxy *p);

/* The first call (`closed` is false) reports the node as not ready, and from now on answers close
 * their connections. The second (`closed` is true) reports a closed client port, and closes idle
 * connections. Neither can be undone. */
void proxy_drain(struct proxy *p, bool closed, uint64_t now_ms);
/* Called after the settings have changed: renews all values derived from them. Requests under way
 * keep their replicas but get the new time limits. */
void proxy_renew(struct proxy *p, uint64_t now_ms);
/* Returns the number of open connections on the client port. */
unsigned proxy_clients_open(const struct proxy *p);
/* Closes everything; open requests are cut. */
void proxy_stop(struct proxy *p, uint64_t now_ms);

/* Returns the time of the present event. */
uint64_t proxy_now_ms(const struct proxy *p);
/* Returns the limit of connections on the admin port and the probe port together. */
unsigned proxy_admin_connections_max(const struct proxy *p);
/* Returns the reason why clients should send this node no requests now; NULL: it is ready. */
const char *proxy_not_ready(const struct proxy *p);

/* Returns the counters. The network itself adds to accept_failures and accept_pauses. */
struct proxy_stats *proxy_stats(struct proxy *p);
/* Returns the histograms of request durations. */
const struct proxy_timing *proxy_timing(const struct proxy *p);
/* Returns the number of requests in the queue for a free replica. */
uint64_t proxy_waiting(const struct proxy *p);
/* Returns the bytes of memory in use for bodies in transit. */
uint64_t proxy_body_bytes(const struct proxy *p);
/* Writes a JSON object: the numbers of requests in flight and in the queue, with their limits. */
void proxy_queue_write(const struct proxy *p, struct json_writer *w);
void proxy_metrics(const struct proxy *proxy, struct prometheus *p);

/* Asserts the invariants between events: counters agree with the lists, and every booking has an
 * owner. */
void proxy_check(const struct proxy *p);

#endif

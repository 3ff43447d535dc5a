/* Requests on their way from clients to replicas and back: a state machine without sockets, clock
 * or randomness. Network events go in (node/proxy/net.h), network actions come out, and node/route
 * chooses the replica.
 *
 * Driven by the shell:
 *
 *   proxy_create()
 *   proxy_replica()      a replica comes into use, or leaves
 *   proxy_start()        probing begins
 *   proxy_accept()       a client has connected; from now on its stream brings the events
 *   proxy_run()          before the loop sleeps: completes the work of the events
 *   proxy_tick()         when proxy_due_ms() says so: time limits, probes
 *   proxy_drain()        the node ends: called twice, see below
 *   proxy_stop()         closes everything; after the last `closed` event:
 *   proxy_destroy()
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
    PROXY_TICK_MS = 50,         /* shortest time between two ticks, */
    PROXY_TICK_IDLE_MS = 500,   /* and longest: a longer gap shows that the process was stopped */
    PROXY_READ_BYTES = 65536,   /* the network's largest read */
    PROXY_IDENTITY_BYTES = 192, /* this router's name in probes of other routers, with NUL */
    PROXY_ADMIN_CONNECTIONS_MAX = 160, /* on the admin port and the probe port together */
};

/* The port that accepted a connection. */
enum proxy_port {
    PROXY_PORT_CLIENT,
    PROXY_PORT_ADMIN,
    PROXY_PORT_PROBE,  /* only the admin port's answers to probes */
    PROXY_PORT_EVENTS, /* engines that publish KV events (node/proxy/engine/publishers.h) */
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
    struct hash_secret secret; /* of prompts: the same as the router's */
    uint64_t random[3];        /* for ids of requests and this router's pseudonym */
    const char *name;          /* in the cluster; NULL: no other routers */
    struct access *access;     /* clients' keys; NULL: no key is required */
    /* Returns the API key of probes, valid for the call; `version` rises with each new key. NULL:
     * no key. With `access`, clients' requests carry this key too. */
    struct slice (*replica_key)(void *context, unsigned *version);
    void *replica_key_context;
    struct trace *trace;           /* NULL: no tracing */
    struct kv_readers *kv_readers; /* NULL: no KV events are read */
    /* Lower than PROXY_ADMIN_CONNECTIONS_MAX if files are short. 0: that many. */
    unsigned admin_connections_max;
    /* Sees the head of a request to the admin port while the body arrives. Answers a forbidden
     * request. Else begins to read the body (exchange_skim_begin()), or the body is dropped. */
    void (*admin_head)(void *context, struct exchange *x, const struct http_head *head);
    /* Answers a whole request of the admin port with exchange_answer(), now or later. */
    void (*admin)(void *context, struct exchange *x, const struct http_head *head);
    void *admin_context;
};

/* ERR_NOMEM. */
MUST_USE int proxy_create(struct proxy **out, const struct proxy_config *config, uint64_t now_ms);
void proxy_destroy(struct proxy *p);
MUST_USE int proxy_start(struct proxy *p, uint64_t now_ms);

/* A replica is new in the router, or has left or returned. Requests under way there continue. */
void proxy_replica(struct proxy *p, unsigned replica, bool present, uint64_t now_ms);
/* The name of a removed replica is forgotten: its pool is closed, unless something is under way
 * there. Returns false if the caller must ask again. */
bool proxy_replica_forgotten(struct proxy *p, unsigned replica);

/* Takes the stream over. `peer`: IP address as text. ERR_NOMEM: the caller closes the stream. */
MUST_USE int proxy_accept(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer, uint64_t now_ms);
/* Returns true if an accepted stream must begin with a PROXY header. */
bool proxy_header_awaited(const struct net_stream *stream);
/* Returns the client's IP address: from a PROXY header, else the address that connected. */
const char *proxy_peer(const struct net_stream *stream);

void proxy_run(struct proxy *p, uint64_t now_ms);
void proxy_tick(struct proxy *p, uint64_t now_ms);
/* Returns when the next tick is due: PROXY_TICK_MS after the last if a request is open or there are
 * replicas to watch, else at the end of the next time limit. Each event may bring it forward.
 * O(1). */
uint64_t proxy_due_ms(const struct proxy *p);

/* First (`closed` false): the node is not ready, and each answer closes its connection. Then
 * (`closed`): nothing more is accepted, and idle connections close. Both are final. */
void proxy_drain(struct proxy *p, bool closed, uint64_t now_ms);
/* Takes over borrowed settings that have changed and are not read at each use. Requests under way
 * keep their decisions; their time limits are the new ones. */
void proxy_renew(struct proxy *p, uint64_t now_ms);
/* Connections on the client port. */
unsigned proxy_clients_open(const struct proxy *p);
/* Closes everything; open requests are cut. */
void proxy_stop(struct proxy *p, uint64_t now_ms);

/* The time of the present event. */
uint64_t proxy_now_ms(const struct proxy *p);
/* The limit of the admin port and the probe port together. */
unsigned proxy_admin_connections_max(const struct proxy *p);
/* Returns the reason why this node should get no requests now; NULL: none. */
const char *proxy_not_ready(const struct proxy *p);

/* The counters; the network adds to accept_failures. */
struct proxy_stats *proxy_stats(struct proxy *p);
/* Durations of requests. */
const struct proxy_timing *proxy_timing(const struct proxy *p);
/* Requests waiting for room at a replica. */
uint64_t proxy_waiting(const struct proxy *p);
/* Bytes of memory for bodies in transit. */
uint64_t proxy_body_bytes(const struct proxy *p);
/* Requests in flight and in the queue, with their limits, as a JSON object. */
void proxy_queue_write(const struct proxy *p, struct json_writer *w);
void proxy_metrics(const struct proxy *proxy, struct prometheus *p);

/* Asserts the invariants between events: counters fit the lists, every booking has an owner. */
void proxy_check(const struct proxy *p);

#endif

/* Requests on their way from clients to replicas and back: a state machine without sockets, clock
 * or randomness. Events of the network go in (node/proxy/net.h), actions on the network come out,
 * and the brain (node/route) is asked which replica should serve.
 *
 * Driven by the shell:
 *
 *   proxy_create()
 *   proxy_replica()      a replica is in use, or not any more
 *   proxy_start()        probing begins
 *   proxy_accept()       a client has connected; from now on its stream brings the events
 *   proxy_run()          before the loop sleeps: works off what the events have left
 *   proxy_tick()         when proxy_due_ms() says so: time limits, probes
 *   proxy_drain()        the node ends: twice, see there
 *   proxy_stop()         everything is closed; after the last `closed` event:
 *   proxy_destroy()
 *
 * README.md lists which file does what, and has the life of a request.
 */
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
    PROXY_TICK_MS = 50,         /* between two ticks, at least */
    PROXY_TICK_IDLE_MS = 500,   /* and at most: a longer gap shows that the process stood still */
    PROXY_READ_BYTES = 65536,   /* what the network reads at once, at most */
    PROXY_IDENTITY_BYTES = 192, /* how a router names itself to the probes of another, with NUL */
    PROXY_ADMIN_CONNECTIONS_MAX = 160, /* on the admin port and the probe port together */
};

/* Which side of the node a connection came in on. */
enum proxy_port {
    PROXY_PORT_CLIENT,
    PROXY_PORT_ADMIN,
    PROXY_PORT_PROBE,  /* what the admin port has for probes, alone */
    PROXY_PORT_EVENTS, /* engines that publish KV events (node/proxy/engine/publishers.h) */
    PROXY_PORTS,
};

/* All pointers are borrowed until proxy_destroy(). node_create() fills in what the node has. */
struct proxy_config {
    const struct node_options *options;
    struct node_router *router;
    struct node_affinity *affinity;
    struct node_decisions *decisions;     /* hears how requests ended; may be NULL */
    struct node_replication *replication; /* NULL: this router runs alone */
    struct log *log;
    const struct net_actions *net;
    struct hash_secret secret; /* of prompts: the same as the router's */
    uint64_t random[3];        /* for ids of requests and this router's pseudonym */
    const char *name;          /* in the cluster; NULL: it runs alone */
    struct access *access;     /* clients' keys; NULL: everybody may call */
    /* The API key that probes carry, good for the call; `version` rises with each new one. NULL:
     * they carry none. With `access`, clients' requests carry it too. */
    struct slice (*replica_key)(void *context, unsigned *version);
    void *replica_key_context;
    struct trace *trace;           /* NULL: no request is recorded */
    struct kv_readers *kv_readers; /* NULL: no KV events are read */
    /* Fewer than PROXY_ADMIN_CONNECTIONS_MAX, where files are short. 0: that many. */
    unsigned admin_connections_max;
    /* Answers a request of the admin port by its head, if it may not be made, while its body comes;
     * else begins to read that body (exchange_skim_begin()), or it is dropped. */
    void (*admin_head)(void *context, struct exchange *x, const struct http_head *head);
    /* Answers a whole request of the admin port with exchange_answer(), now or later. */
    void (*admin)(void *context, struct exchange *x, const struct http_head *head);
    void *admin_context;
};

/* ERR_NOMEM. */
MUST_USE int proxy_create(struct proxy **out, const struct proxy_config *config, uint64_t now_ms);
void proxy_destroy(struct proxy *p);
MUST_USE int proxy_start(struct proxy *p, uint64_t now_ms);

/* The router has a replica that it did not have, or one went or came back. Requests that are under
 * way there go on. */
void proxy_replica(struct proxy *p, unsigned replica, bool present, uint64_t now_ms);
/* The name of one that went is forgotten: its pool is closed, if nothing is under way there. False:
 * ask again. */
bool proxy_replica_forgotten(struct proxy *p, unsigned replica);

/* Takes the stream over. `peer`: IP address as text. ERR_NOMEM: close it. */
MUST_USE int proxy_accept(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer, uint64_t now_ms);
/* Of a stream that proxy_accept() took: a PROXY header comes first. */
bool proxy_header_awaited(const struct net_stream *stream);
/* Whose such a stream is: the IP address of a PROXY header, else that it was accepted from. */
const char *proxy_peer(const struct net_stream *stream);

void proxy_run(struct proxy *p, uint64_t now_ms);
void proxy_tick(struct proxy *p, uint64_t now_ms);
/* When the next tick is needed: PROXY_TICK_MS after the last one where a request is open or there
 * are replicas to watch, else when a time limit ends. Each event may bring it forward. O(1). */
uint64_t proxy_due_ms(const struct proxy *p);

/* First (`closed` false): the node is not ready, and each answer closes its connection. Then
 * (`closed`): nothing is accepted any more, and what is idle is closed. Each stays so. */
void proxy_drain(struct proxy *p, bool closed, uint64_t now_ms);
/* The settings that it borrows have changed: takes over those that it does not read at each use.
 * Requests under way keep what they have; their time limits are the new ones. */
void proxy_renew(struct proxy *p, uint64_t now_ms);
/* Connections on the client port. */
unsigned proxy_clients_open(const struct proxy *p);
/* Closes everything; requests that are open are cut. */
void proxy_stop(struct proxy *p, uint64_t now_ms);

/* The time of the present event. */
uint64_t proxy_now_ms(const struct proxy *p);
/* Connections that the admin port and the probe port have together. */
unsigned proxy_admin_connections_max(const struct proxy *p);
/* Why this node should get no requests now; NULL: it should. */
const char *proxy_not_ready(const struct proxy *p);

/* The counters; a network adds to accept_failures. */
struct proxy_stats *proxy_stats(struct proxy *p);
/* How long requests took. */
const struct proxy_timing *proxy_timing(const struct proxy *p);
/* Requests that wait for room at a replica. */
uint64_t proxy_waiting(const struct proxy *p);
/* Bytes of memory that hold bodies on their way. */
uint64_t proxy_body_bytes(const struct proxy *p);
/* Requests in flight and in the queue, with their limits, as a JSON object. */
void proxy_queue_write(const struct proxy *p, struct json_writer *w);
void proxy_metrics(const struct proxy *proxy, struct prometheus *p);

/* Asserts what holds between events: counters fit the lists, nothing is booked by nobody. */
void proxy_check(const struct proxy *p);

#endif

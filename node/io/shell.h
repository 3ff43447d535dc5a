/* The libuv shell of one node: one process, one loop, no locks.
 *
 *   client.c     connections of clients (and of operators, on the admin port): heads, bodies, order
 *   exchange.c   one request from its head to its last byte; its parts are in request.c, attempt.c,
 *                response.c and answer.c (exchange_parts.h says which is which)
 *   upstream.c   pooled connections to replicas
 *   prober.c     health checks, /metrics, /v1/models of every replica
 *   key_file.c   the API key that the prober shows to replicas
 *   local.c      what the router answers itself on the client port, with model_list.c for models
 *   admin.c      the admin port, with admin_cluster.c for what several routers are asked, and
 *                admin_add.c for a replica that is added
 *   gossip.c     the other routers (gossip.h has its parts)
 *
 * struct shell is what they share. It lives as long as the process.
 */
#ifndef NODE_IO_SHELL_H
#define NODE_IO_SHELL_H

#include <uv.h>

#include "base/log.h"
#include "http/head.h"
#include "node/io/deadline.h"
#include "node/io/segment.h"
#include "node/route/affinity.h"
#include "node/route/router.h"
#include "node/settings/options.h"

enum {
    SHELL_READ_BYTES = 65536,
    SHELL_ROUTER_BYTES = 192, /* how a router names itself to the probes of another, with the NUL */
    SHELL_OUT_BYTES_HIGH = 256 * 1024, /* queued towards a slow client: stop reading the engine */
    SHELL_TICK_MS = 50,
    SHELL_PAUSE_MS = 1000,                   /* between two ticks: the process stood still */
    SHELL_ENGINE_HEAD_BYTES_MAX = 64 * 1024, /* of an answer; then it is malformed */
    SHELL_FRESH_MS = 500,      /* a drain waits so long for the first request of a connection */
    SHELL_LOOP_LOG_MS = 60000, /* between two lines on loops */
    SHELL_LINGER_MS = 2000,    /* after an error answer: how long a client may still talk */
};

/* Which side of the daemon a connection came in on. */
enum shell_port { SHELL_PORT_CLIENT, SHELL_PORT_ADMIN };

struct shell_listener {
    uv_tcp_t tcp;
    uv_tcp_t spare; /* takes a connection that there is no memory for, to close it */
    bool spare_busy;
    bool waiting; /* one more of those, until the spare is free */
    enum shell_port port;
    struct node_address bound; /* with the port that the kernel chose */
};

/* Why the router answered an error of its own. */
enum shell_refusal {
    SHELL_REFUSED_NONE,
    SHELL_REFUSED_MALFORMED,   /* 400, 414, 431, 501, 505 of the parser */
    SHELL_REFUSED_BODY_LIMIT,  /* 413 */
    SHELL_REFUSED_PATH,        /* 403, 404, 405 */
    SHELL_REFUSED_MODEL,       /* 404 of an unknown model */
    SHELL_REFUSED_API_KEY,     /* 401, 403 of the engines, to a client that asked for the models */
    SHELL_REFUSED_NO_REPLICA,  /* 503 */
    SHELL_REFUSED_MEMORY,      /* 503, buffered_bytes_max */
    SHELL_REFUSED_TIMEOUT,     /* 408 */
    SHELL_REFUSED_BAD_GATEWAY, /* 502, 504: no replica gave an answer */
    SHELL_REFUSED_LOOP,        /* 508: it came through this router before, or through too many */
    SHELL_REFUSED_INTERNAL,    /* 500 */
    SHELL_REFUSALS,
};

/* Counters of the data path; gauges are counted as they change. All exported by metrics.c. */
struct shell_stats {
    uint64_t connections_accepted;
    uint64_t connections_open;
    uint64_t clients_open;        /* the part of them that is on the client port */
    uint64_t connections_refused; /* beyond connections_max */
    uint64_t accept_failures;
    uint64_t requests;
    uint64_t requests_open;
    uint64_t requests_refused[SHELL_REFUSALS];
    uint64_t responses[6]; /* by class: 1xx..5xx, index 0 unused */
    uint64_t client_gone;
    uint64_t answers_cut[7];  /* begun and not finished, by enum client_end */
    uint64_t client_timeouts; /* slow heads, bodies, readers */
    uint64_t retries;
    uint64_t upstream_connects;
    uint64_t upstream_connect_failures;
    uint64_t upstream_timeouts;
    uint64_t upstream_broken; /* connections that broke in the middle of an answer */
    uint64_t upstream_reused;
    uint64_t upstream_full;    /* a replica not used because of upstream-connections-max */
    uint64_t probes_too_large; /* answers to probes that were not or not wholly used */
    uint64_t bytes_in;         /* request bodies */
    uint64_t bytes_out;        /* answers */
    uint64_t not_understood;   /* prompt bodies that the skimmer could not read: routed by load */
    uint64_t backpressure;     /* times an engine was held back for a slow client */
};

struct key_file;
struct prober;
struct upstream_pool;
struct io_gossip;
struct admin_ask;
struct admin_add;

struct shell {
    uv_loop_t *loop;
    const struct node_options *options;
    struct node_router *router;
    struct node_affinity *affinity; /* stored responses -> replica */
    struct node_log *log;
    struct segment_pool segments;
    struct shell_stats stats;
    struct http_limits limits;        /* of clients' heads */
    struct http_limits engine_limits; /* of engines' */
    struct hash_secret secret;        /* of prompts: the same as the router's */

    struct shell_listener listeners[2]; /* by enum shell_port */
    uv_timer_t tick;
    uv_signal_t signals[4]; /* TERM, INT, USR1, HUP */
    /* The end, step by step; each stays true. */
    bool draining;              /* not ready; answers close their connections */
    bool closed;                /* the delay is over: nothing new is accepted on the client port */
    bool leaving;               /* drained: the other routers are told */
    uint64_t drain_delay_at_ms; /* when it closes */
    uint64_t drain_timeout_at_ms; /* when what is open then is cut */
    uint64_t started_ms;
    uint64_t router_ticked_ms;
    uint64_t ticked_ms;
    bool paused; /* before the last tick the loop stood still */
    uint64_t log_flushed_ms;
    int exit_code;
    char *admin_token;            /* NULL: none is asked for */
    bool admin_on_loopback;       /* the admin port listens there, or on all addresses */
    struct key_file *replica_key; /* borrowed; NULL: probes carry no API key */

    /* Time limits, one queue each. */
    struct deadline_queue client_head;
    struct deadline_queue client_idle;
    struct deadline_queue client_body;
    struct deadline_queue client_write;
    struct deadline_queue client_linger;
    struct deadline_queue client_fresh;
    struct deadline_queue upstream_connect;
    struct deadline_queue upstream_first_byte;
    struct deadline_queue upstream_whole_answer;
    struct deadline_queue upstream_idle;
    struct deadline_queue upstream_keepalive;
    struct deadline_queue fetch;        /* probes of replicas */
    struct deadline_queue fetch_sglang; /* whose health check costs a token */
    struct deadline_queue fetch_failed; /* at once, but not from within the call */

    struct client *clients;      /* all open connections */
    struct upstream_pool *pools; /* by replica; NODE_REPLICAS_MAX, touched as they come */
    unsigned pool_count;         /* behind the last one that was ever in use */
    struct exchange *exchange_free;
    unsigned exchange_free_count;
    struct prober *prober;
    struct io_gossip *gossip; /* NULL: this router runs alone */
    unsigned model_asks;      /* clients for which replicas are asked for their models */
    struct admin_ask *asks;   /* questions to all routers that wait for their answers */
    struct admin_add *adds;   /* replicas that are probed before they are added */
    unsigned add_count;

    char via[32];                      /* this router in Via: HTTP_VIA_ROUTER and random digits */
    char identity[SHELL_ROUTER_BYTES]; /* the same, and its name in the cluster: for probes */
    uint64_t loop_logged_ms;           /* 0: never */
    unsigned loops_unlogged;           /* since then */

    uint64_t request_id_high; /* random per process; ids are high + counter */
    uint64_t request_id_low;

    /* Scratch for the duration of one callback. */
    struct http_head head;
    struct buf scratch;
    char read_buffer[SHELL_READ_BYTES];
};

static inline uint64_t shell_now_ms(const struct shell *shell)
{
    return uv_now(shell->loop);
}

/* Opens both ports, starts probing, the tick and the gossip (shell->gossip, if it is there). On an
 * error one line is logged and ERR_* returned; the options, router, affinity and log are borrowed
 * until shell_close() has run, which frees the gossip. */
int shell_start(struct shell *shell, uv_loop_t *loop, const struct node_options *options,
                struct node_router *router, struct node_affinity *affinity, struct node_log *log);

/* The beginning of the end. The router is not ready from now on and each answer closes its
 * connection, but it accepts and serves for `drain-delay` more, until load balancers have turned
 * away. Then the client port closes and what is open is finished; the loop ends when all is done or
 * at the drain limit. Not `delayed`, or called again: the delay is over. Called once more: it ends
 * at once. */
void shell_drain(struct shell *shell, bool delayed);

/* After the loop has ended: frees what is left. */
void shell_close(struct shell *shell);

/* The router has a replica that it did not have, or one went or came back: begins or ends probing
 * it. Requests that are under way there go on. */
void shell_replica(struct shell *shell, unsigned replica, bool present);
/* Why this node should get no requests now; NULL: it should. */
const char *shell_not_ready(const struct shell *shell);

/* One more request may be the last one that a drain waits for. */
void shell_drain_check(struct shell *shell);

#endif

/* The libuv shell of one node: one process, one loop, no locks (and a thread for the log). It does
 * what only a kernel can do: sockets, names, files, timers, signals. All decisions are made in the
 * pure rooms.
 *
 *   shell.c      the loop: ports, tick, signals, the end
 *   listener.c   the ports: connections that come in, and when none can
 *   files.c      how many files may be open, and what fits
 *   tcp.c        streams of clients and replicas, for the proxy (node/proxy/net.h)
 *   tls.c        TLS on them (tls.h lists its files)
 *   names.c      names of replicas, looked up, for the proxy
 *   gossip.c     the other routers (gossip.h lists its files)
 *   kv_feeds.c   KV events of engines; kv_feed.c is one feed
 *   watch_file.c  files that are read again and again; read_file.c reads one
 *   key_file.c   the API key that probes show to replicas
 *   client_keys.c  the keys of clients
 *   state_dir.c  what is kept over a restart
 *   trace_export.c  the way of traces to their collector; curl_loop.c drives libcurl
 *   metrics.c    what /metrics says
 *   config.c     the YAML file and the environment; config_yaml.c reads it
 *   reload.c     the same again while the router runs
 *   log_sink.c   the log's end
 *   service.c    what systemd hears
 *   random.c     randomness
 *   standard.c   standard streams that are missing
 *
 * struct shell lives as long as the process.
 */
#ifndef NODE_IO_SHELL_H
#define NODE_IO_SHELL_H

#include <time.h>
#include <uv.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/log.h"
#include "node/admin/admin.h"
#include "node/io/files.h"
#include "node/io/listener.h"
#include "node/io/service.h"
#include "node/io/tcp.h"
#include "node/io/watch_file.h"
#include "node/node.h"
#include "node/proxy/proxy.h"

struct client_keys;
struct dns;
struct key_file;
struct kv_feeds;
struct io_gossip;
struct reload;
struct sources;
struct state_dir;
struct tls;
struct trace_export;

struct shell {
    uv_loop_t *loop;
    const struct node_options *options;
    const struct io_files *files; /* how many may be open */
    struct node *node;
    struct log *log;
    struct io_watches watches;  /* files; its log is set */
    struct node_router *router; /* of the node, as all three */
    struct proxy *proxy;
    struct admin *admin;
    struct net_actions net;

    struct listener listeners[PROXY_PORTS];
    uv_timer_t tick;
    uint64_t ticked_ms, tick_at_ms; /* the last one and the next, by the loop's clock */
    uv_prepare_t prepare;
    uv_signal_t signals[4]; /* TERM, INT, USR1, HUP */
    /* The end, step by step; each stays true. */
    bool draining;              /* not ready; answers close their connections */
    bool closed;                /* the delay is over: nothing new is accepted on the client port */
    bool leaving;               /* drained: announces that it leaves */
    uint64_t drain_delay_at_ms; /* when it closes */
    uint64_t drain_timeout_at_ms; /* when what is open then is cut */
    uint64_t started_ms;
    uint64_t node_ticked_ms;
    uint64_t log_flushed_ms;
    bool reads_again; /* for SIGHUP */
    int exit_code;
    /* Borrowed, all four; NULL: none is asked for, and probes carry no API key. */
    struct key_file *admin_token, *admin_read_token, *replica_key;
    struct client_keys *client_keys; /* NULL: everybody may call */
    struct tls *tls;                 /* borrowed */
    struct sources *sources;         /* of replicas; NULL: the settings alone */
    struct dns *dns;           /* names of replicas and seeds, asked of the system's servers */
    struct kv_feeds *kv_feeds; /* KV events of engines (kv_feeds.h) */
    struct io_gossip *gossip;  /* NULL: this router runs alone */
    struct reload *reload;     /* borrowed; NULL: there is no --config */
    struct state_dir *state;   /* borrowed; NULL: nothing is kept over a restart */
    struct trace_export *trace_export; /* NULL: traces are off */
    struct service service;            /* which started this process */

    char read_buffer[PROXY_READ_BYTES]; /* scratch for the duration of one callback */
};

static inline uint64_t shell_now_ms(const struct shell *shell)
{
    if (BUG(WALL_TIME)) {
        struct timespec wall;
        (void)clock_gettime(CLOCK_REALTIME, &wall);
        return (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000;
    }
    return uv_now(shell->loop);
}

/* What the node needs of the place where it runs: the network, the log, secrets. The shell's loop,
 * options, log and secrets are set. */
void shell_config(struct shell *shell, struct node_config *config);

/* Opens both ports, starts probing, the tick and the gossip (shell->gossip, if it is there). On an
 * error one line is logged and ERR_* returned. The node is borrowed until shell_close() has run,
 * which frees the gossip. */
MUST_USE int shell_start(struct shell *shell, struct node *node);

/* The router begins to stop. From now on it is not ready and each answer closes its connection, but
 * it accepts and serves for `drain-delay` more, until load balancers have turned away. Then the
 * client port closes and open requests are finished. The loop ends when all is done, or at the
 * drain limit. Not `delayed`, or called again: no delay. Called once more: it ends at once. */
void shell_drain(struct shell *shell, bool delayed);

/* After the loop has ended: frees what is left. */
void shell_close(struct shell *shell);

/* Prometheus text of the whole node (metrics.c). */
MUST_USE int metrics_write(void *shell, struct buf *out);
/* For admin_config.files. */
void metrics_files_write(void *shell, struct json_writer *w);
/* For admin_config.attention. */
void metrics_attention(void *shell, struct admin_attention_list *list);

#endif

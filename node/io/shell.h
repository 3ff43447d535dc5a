/* A node's libuv shell: a process, a loop, no locks (and a thread for the log). The shell does all
 * that needs the kernel: sockets, names, files, timers, signals. The pure rooms make all decisions.
 *
 *   shell.c      the loop: ports, tick, signals, the end
 *   listener.c   the ports: incoming connections, and pauses without resources
 *   files.c      the number of open files, and the settings that fit
 *   tcp.c        streams of clients and replicas, for the proxy (node/proxy/net.h)
 *   tls.c        TLS on streams (tls.h lists its files)
 *   names.c      resolved names of replicas, for the proxy
 *   gossip.c     the other routers (gossip.h lists its files)
 *   kv_feeds.c   KV events of engines; kv_feed.c is a single feed
 *   watch_file.c  files read repeatedly; read_file.c reads a file
 *   key_file.c   the API key that probes send to replicas
 *   client_keys.c  the clients' keys
 *   state_dir.c  state kept over a restart
 *   trace_export.c  sends traces to their collector; curl_loop.c drives libcurl
 *   metrics.c    the text of /metrics
 *   config.c     the YAML file and the environment; config_yaml.c reads the file
 *   reload.c     settings while the router runs
 *   log_sink.c   writes the log
 *   service.c    messages to systemd
 *   random.c     randomness
 *   standard.c   missing standard streams
 *
 * struct shell lives as long as the process. */
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
    const struct io_files *files; /* limits on open files */
    struct node *node;
    struct log *log;
    struct io_watches watches;  /* files; the log is set */
    struct node_router *router; /* of the node, like the next two */
    struct proxy *proxy;
    struct admin *admin;
    struct net_actions net;

    struct listener listeners[PROXY_PORTS];
    uv_timer_t tick;
    uint64_t ticked_ms, tick_at_ms; /* the last tick and the next, by the loop's clock */
    uv_prepare_t prepare;
    uv_signal_t signals[4]; /* TERM, INT, USR1, HUP */
    /* The steps of the end; each stays true. */
    bool draining;                /* not ready; answers close their connections */
    bool closed;                  /* after the delay: the client port is closed */
    bool leaving;                 /* drained: announcing the leave */
    uint64_t drain_delay_at_ms;   /* when the client port closes */
    uint64_t drain_timeout_at_ms; /* when connections still open are cut */
    uint64_t started_ms;
    uint64_t node_ticked_ms;
    uint64_t log_flushed_ms;
    bool reads_again; /* after SIGHUP */
    int exit_code;
    /* Borrowed, like client_keys; NULL: no token is required, and probes send no API key. */
    struct key_file *admin_token, *admin_read_token, *replica_key;
    struct client_keys *client_keys;   /* NULL: no key is required */
    struct tls *tls;                   /* borrowed */
    struct sources *sources;           /* of replicas; NULL: only the settings */
    struct dns *dns;                   /* names of replicas and seeds, from the system's servers */
    struct kv_feeds *kv_feeds;         /* KV events of engines (kv_feeds.h) */
    struct io_gossip *gossip;          /* NULL: this router runs alone */
    struct reload *reload;             /* borrowed; NULL: no --config */
    struct state_dir *state;           /* borrowed; NULL: no state is kept over a restart */
    struct trace_export *trace_export; /* NULL: traces are off */
    struct service service;            /* the manager that started this process */

    char read_buffer[PROXY_READ_BYTES]; /* scratch space within a callback */
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

/* Fills in the node's environment: the network, the log, secrets. The shell's loop, options, log
 * and secrets are set. */
void shell_config(struct shell *shell, struct node_config *config);

/* Opens the ports, starts probing, the tick and the gossip (if shell->gossip exists). After an
 * error, logs a line and returns ERR_*. Borrows the node until shell_close() has run, which frees
 * the gossip. */
MUST_USE int shell_start(struct shell *shell, struct node *node);

/* Begins to stop. From now on the router is not ready and each answer closes its connection, but
 * the router accepts and serves for `drain-delay` more, until load balancers have turned away. Then
 * the client port closes and open requests are finished. The loop ends after the last request, or
 * at the drain limit. Without `delayed`, or on a second call, there is no delay. A further call
 * ends the loop at once. */
void shell_drain(struct shell *shell, bool delayed);

/* Frees the rest after the loop has ended. */
void shell_close(struct shell *shell);

/* Writes the Prometheus text of the whole node (metrics.c). */
MUST_USE int metrics_write(void *shell, struct buf *out);
/* For admin_config.files. */
void metrics_files_write(void *shell, struct json_writer *w);
/* For admin_config.attention. */
void metrics_attention(void *shell, struct admin_attention_list *list);

#endif

/* A node's libuv shell: a process with a single loop and no locks (and a thread for the log). The
 * shell does the kernel work: sockets, names, files, timers, signals. The folders with pure code
 * make all decisions.
 *
 *   shell.c      the loop: ports, tick, signals, the end
 *   listener.c   the ports: incoming connections, and pauses if resources are short
 *   files.c      the limit on open files, to which settings are adapted
 *   tcp.c        streams of clients and replicas, for the proxy (node/proxy/net.h)
 *   tls.c        TLS on streams (tls.h lists the files)
 *   names.c      addresses of replicas' names, for the proxy
 *   gossip.c     the other routers (gossip.h lists the files)
 *   kv_feeds.c   sockets for engines' KV events; kv_feed.c is a single feed
 *   watch_file.c  files read repeatedly; read_file.c reads a file
 *   key_file.c   the replicas' API key, and the admin port's tokens
 *   client_keys.c  the clients' keys
 *   state_dir.c  state kept over a restart
 *   trace_export.c  sends traces to the collector; curl_loop.c drives libcurl
 *   metrics.c    the text of /metrics
 *   config.c     the YAML file and the environment; config_yaml.c reads the file
 *   reload.c     changes of settings while the router runs
 *   log_sink.c   writes the log
 *   service.c    messages to systemd
 *   random.c     randomness
 *   standard.c   opens missing standard streams
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
    struct io_watches watches;  /* the watched files; watches.log is set before shell_start() */
    struct node_router *router; /* owned by `node`, as are `proxy` and `admin` */
    struct proxy *proxy;
    struct admin *admin;
    struct net_actions net;

    struct listener listeners[PROXY_PORTS];
    uv_timer_t tick;
    uint64_t ticked_ms, tick_at_ms; /* times of the last and the next tick, by the loop's clock */
    uv_prepare_t prepare;
    uv_signal_t signals[4]; /* TERM, INT, USR1, HUP */
    /* The steps of the shutdown; each stays true. */
    bool draining;                /* not ready; answers close their connections */
    bool closed;                  /* drain-delay is over: the client port is closed */
    bool leaving;                 /* all requests have ended: the router announces the leave */
    uint64_t drain_delay_at_ms;   /* time at which the client port closes */
    uint64_t drain_timeout_at_ms; /* time at which connections still open are cut */
    uint64_t started_ms;
    uint64_t node_ticked_ms;
    uint64_t log_flushed_ms;
    bool reads_again; /* files are being read again after SIGHUP */
    int exit_code;
    /* Borrowed, like client_keys; NULL: no token is required, and probes send no API key. */
    struct key_file *admin_token, *admin_read_token, *replica_key;
    struct client_keys *client_keys; /* NULL: no key is required */
    struct tls *tls;                 /* borrowed */
    struct sources *sources;         /* sources of replicas; NULL: only the settings */
    struct dns *dns;           /* for names of replicas and routers, by the system's servers */
    struct kv_feeds *kv_feeds; /* KV events of engines (kv_feeds.h) */
    struct io_gossip *gossip;  /* NULL: this router runs alone */
    struct reload *reload;     /* borrowed; NULL: no --config */
    struct state_dir *state;   /* borrowed; NULL: no state is kept over a restart */
    struct trace_export *trace_export; /* NULL: traces are off */
    struct service service;            /* messages to the service manager */

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
 * and secrets must be set. */
void shell_config(struct shell *shell, struct node_config *config);

/* Opens the ports, starts probing, the tick and the gossip (if shell->gossip exists). Logs errors
 * and returns ERR_*. Borrows the node until shell_close() has run, which frees the gossip. */
MUST_USE int shell_start(struct shell *shell, struct node *node);

/* Begins to stop. From now on the router is not ready and each answer closes the connection. For
 * `drain-delay` the router still accepts requests, to give load balancers time to notice. Then the
 * client port closes, and open requests are finished. The loop ends after the last request, or
 * after drain-timeout. If `delayed` is false, or on a second call, there is no delay. A further
 * call ends the loop at once. */
void shell_drain(struct shell *shell, bool delayed);

/* Stops and frees everything that is open. Call after the loop has ended; runs the loop once more
 * to close the handles. */
void shell_close(struct shell *shell);

/* Writes the Prometheus text of the whole node (metrics.c). */
MUST_USE int metrics_write(void *shell, struct buf *out);
/* The function for admin_config.files. */
void metrics_files_write(void *shell, struct json_writer *w);
/* The function for admin_config.attention. */
void metrics_attention(void *shell, struct admin_attention_list *list);

#endif

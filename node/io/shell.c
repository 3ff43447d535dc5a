#include "node/io/shell.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/client_keys.h"
#include "node/io/dns.h"
#include "node/io/gossip.h"
#include "node/io/key_file.h"
#include "node/io/kv_feeds.h"
#include "node/io/log_sink.h"
#include "node/io/names.h"
#include "node/io/random.h"
#include "node/io/reload.h"
#include "node/io/sources.h"
#include "node/io/state_dir.h"
#include "node/io/tls.h"
#include "node/io/trace_export.h"

enum {
    NODE_TICK_MS = 1000,
    LOG_FLUSH_MS = 60000,
};

static void drain_tick(struct shell *shell, uint64_t now);
static void leave_if_drained(struct shell *shell);

/* --- time ----------------------------------------------------------------------------------- */

static void tick_node(struct shell *shell, uint64_t now)
{
    if (now - shell->node_ticked_ms < NODE_TICK_MS)
        return;
    shell->node_ticked_ms = now;
    struct timespec wall;
    if (clock_gettime(CLOCK_REALTIME, &wall) == 0) {
        uint64_t wall_ms = (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000;
        node_state_wall(shell->node->state, wall_ms, now);
        if (shell->node->trace != NULL)
            trace_wall(shell->node->trace, wall_ms, now);
    }
    node_tick(shell->node, now);
    state_dir_tick(shell->state, shell);
}

static void on_tick(uv_timer_t *timer);

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns true if a part of the shell waits for a time checked only by ticks. */
static bool waits(const struct shell *shell)
{
    bool any = shell->draining || shell->reads_again || tls_waits(shell->tls) ||
               io_gossip_waits(shell) || service_waits(&shell->service);
    for (unsigned i = 0; i < ARRAY_LEN(shell->listeners); i++)
        any |= listener_waits(&shell->listeners[i]);
    return any;
}

/* Sets the timer of the next tick, if the tick must come earlier than planned. With replicas or
 * requests, the timer is set once per tick. */
static void arm_tick(struct shell *shell)
{
    uint64_t soonest = shell->ticked_ms + PROXY_TICK_MS;
    if (shell->tick_at_ms <= soonest)
        return;
    uint64_t now = shell_now_ms(shell), loop_ms = uv_now(shell->loop);
    uint64_t due = sooner(proxy_due_ms(shell->proxy), sources_due_ms(shell));
    due = sooner(due, shell->node_ticked_ms + NODE_TICK_MS);
    uint64_t at = loop_ms + (due > now ? sooner(due - now, PROXY_TICK_IDLE_MS) : 0);
    if (at < soonest || waits(shell))
        at = soonest;
    if (shell->tick_at_ms <= at)
        return;
    shell->tick_at_ms = at;
    CHECK(uv_timer_start(&shell->tick, on_tick, at > loop_ms ? at - loop_ms : 0, 0) == 0);
}

static void on_tick(uv_timer_t *timer)
{
    struct shell *shell = timer->data;
    uint64_t now = shell_now_ms(shell);
    shell->ticked_ms = uv_now(shell->loop);
    shell->tick_at_ms = UINT64_MAX;
    tick_node(shell, now);
    if (now - shell->log_flushed_ms >= LOG_FLUSH_MS) {
        shell->log_flushed_ms = now;
        log_flush(shell->log);
    }
    io_watches_tick(&shell->watches, shell->loop, now);
    sources_tick(shell);
    tls_tick(shell->tls, now);
    proxy_tick(shell->proxy, now);
    admin_tick(shell->admin);
    io_gossip_tick(shell);
    if (shell->reads_again && !reload_is_asked(shell->reload) && !io_gossip_is_asked(shell)) {
        shell->reads_again = false;
        service_reloaded(shell);
    }
    for (unsigned i = 0; i < ARRAY_LEN(shell->listeners); i++)
        listener_tick(&shell->listeners[i], now);
    drain_tick(shell, now);
    service_tick(shell, now);
    arm_tick(shell);
}

/* Runs once in each turn of the loop, before the loop sleeps, and after the gossip's handle. libuv
 * runs the handle first that started last. */
static void on_prepare(uv_prepare_t *handle)
{
    struct shell *shell = handle->data;
    proxy_run(shell->proxy, shell_now_ms(shell));
    leave_if_drained(shell);
    trace_export_run(shell->trace_export);
    io_log_sink_flush(shell->log);
    arm_tick(shell);
}

/* --- listening ------------------------------------------------------------------------------ */

/* Logs what others may do on the admin port without a token. Logs nothing if others cannot reach
 * the port. */
static void judge_admin_port(struct shell *shell)
{
    const struct listener *l = &shell->listeners[PROXY_PORT_ADMIN];
    const struct node_address *at = &l->bound;
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    char host[INET6_ADDRSTRLEN];
    bool read = getsockname(l->fd, (struct sockaddr *)&bound, &len) == 0 &&
                uv_ip_name((const struct sockaddr *)&bound, host, sizeof host) == 0;
    bool loopback = read && node_host_is_loopback(host);
    bool on_loopback = loopback || (read && node_host_is_any(host));
    admin_listens(shell->admin, on_loopback);
    if (shell->admin_token != NULL || loopback)
        return;
    const char *changes =
        on_loopback ? "it accepts changes from loopback only"
                    : "it accepts no changes at all, because it does not listen on loopback";
    char effect[160];
    (void)snprintf(
        effect, sizeof effect, "%s%s",
        shell->admin_read_token != NULL ? "" : "anyone who reaches it may read, except explain; ",
        changes);
    log_event(shell->log, LOG_WARN, "admin_without_token", LOG_CSTR("host", at->host),
              LOG_CSTR("effect", effect),
              LOG_CSTR("want",
                       on_loopback
                           ? "set admin-token-file, or set admin-listen to 127.0.0.1"
                           : "set admin-token-file, or set admin-listen to 127.0.0.1 or 0.0.0.0"));
}

/* --- the end -------------------------------------------------------------------------------- */

static void on_flushed(void *context)
{
    const struct shell *shell = context;
    uv_stop(shell->loop);
}

static void on_left(struct shell *shell)
{
    trace_export_flush(shell->trace_export, on_flushed, shell);
}

/* Leaves the cluster after the last request. Until then this router's load must count at other
 * routers. */
static void leave_if_drained(struct shell *shell)
{
    bool served = proxy_clients_open(shell->proxy) == 0 || BUG(DRAIN_IMPATIENT);
    if (!shell->closed || shell->leaving || !served)
        return;
    shell->leaving = true;
    io_gossip_leave(shell, on_left);
}

static void close_client_port(struct shell *shell)
{
    shell->closed = true;
    shell->drain_timeout_at_ms = shell_now_ms(shell) + shell->options->drain_timeout_ms;
    log_event(shell->log, LOG_INFO, "client_port_closed",
              LOG_UINT("requests_open", proxy_stats(shell->proxy)->requests_open),
              LOG_UINT("limit_ms", shell->options->drain_timeout_ms));
    listener_accept_waiting(&shell->listeners[PROXY_PORT_CLIENT]);
    listener_close(&shell->listeners[PROXY_PORT_CLIENT]);
    proxy_drain(shell->proxy, true, shell_now_ms(shell));
}

static void drain_tick(struct shell *shell, uint64_t now)
{
    if (!shell->draining)
        return;
    struct listener *port = &shell->listeners[PROXY_PORT_CLIENT];
    if (!shell->closed && now >= shell->drain_delay_at_ms && listener_retired(port, now))
        close_client_port(shell);
    if (shell->closed && now >= shell->drain_timeout_at_ms) {
        log_event(shell->log, LOG_WARN, "drain_timeout",
                  LOG_UINT("requests_cut", proxy_stats(shell->proxy)->requests_open));
        shell->exit_code = 1;
        uv_stop(shell->loop);
    }
}

void shell_drain(struct shell *shell, bool delayed)
{
    if (shell->closed) {
        admin_viewers_end(shell->admin);
        log_event(shell->log, LOG_WARN, "stopped",
                  LOG_UINT("requests_cut", proxy_stats(shell->proxy)->requests_open));
        shell->exit_code = proxy_stats(shell->proxy)->requests_open > 0;
        uv_stop(shell->loop);
        return;
    }
    uint64_t now = shell_now_ms(shell);
    uint64_t delay_ms = delayed && !shell->draining ? shell->options->drain_delay_ms : 0;
    shell->drain_delay_at_ms = now + delay_ms; /* after a second call: no delay */
    if (!shell->draining) {
        shell->draining = true;
        proxy_drain(shell->proxy, false, now);
        io_gossip_draining(shell);
        log_event(shell->log, LOG_INFO, "draining",
                  LOG_UINT("requests_open", proxy_stats(shell->proxy)->requests_open),
                  LOG_UINT("delay_ms", delay_ms));
    }
    drain_tick(shell, now);
}

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

/* Starts to read files again after SIGHUP. on_tick() notices the end. */
static void read_again(struct shell *shell)
{
    service_reloads(shell);
    shell->reads_again = true;
    bool config = reload_ask(shell->reload), keys = io_gossip_ask(shell);
    if (!config && !keys)
        log_event(shell->log, LOG_INFO, "nothing_to_read",
                  LOG_CSTR("why", "SIGHUP re-reads the file of --config and the cluster key file, "
                                  "but neither is set"));
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct shell *shell = handle->data;
    if (number == SIGUSR1) {
        io_log_cycle_level(shell->log);
        return;
    }
    if (number == SIGHUP) {
        read_again(shell);
        return;
    }
    shell_drain(shell, number == SIGTERM); /* after Ctrl-C the delay is left out */
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void shell_close(struct shell *shell)
{
    /* Without the handler a late second SIGTERM would kill the process in the last steps. */
    sigset_t late;
    (void)sigemptyset(&late);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        (void)sigaddset(&late, signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, &late, NULL);
    state_dir_stop(shell->state, shell);
    io_gossip_stop(shell);
    io_watches_stop(&shell->watches);
    sources_stop(shell);
    if (shell->admin != NULL)
        admin_stop(shell->admin);
    if (shell->proxy != NULL)
        proxy_stop(shell->proxy, shell_now_ms(shell));
    io_kv_feeds_stop(shell);
    trace_export_stop(shell->trace_export);
    if (shell->dns != NULL) /* after the users of DNS */
        dns_stop(shell->dns);
    for (unsigned i = 0; i < ARRAY_LEN(shell->listeners); i++)
        listener_close(&shell->listeners[i]);
    uv_walk(shell->loop, close_handle, NULL);
    /* The mask covers only this thread; threads of libuv's pool would still receive the signal. */
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        (void)signal(signals[i], SIG_IGN);
    (void)uv_run(shell->loop, UV_RUN_DEFAULT);
    sources_free(shell);
    io_kv_feeds_free(shell);
    trace_export_free(shell->trace_export);
    io_gossip_free(shell);
    dns_free(shell->dns);
    service_close(&shell->service);
}

/* --- start ------------------------------------------------------------------------------------ */

static void on_replica(void *context, unsigned replica, bool present)
{
    struct shell *shell = context;
    proxy_replica(shell->proxy, replica, present, shell_now_ms(shell));
}

static bool on_forgotten(void *context, unsigned replica)
{
    struct shell *shell = context;
    return proxy_replica_forgotten(shell->proxy, replica);
}

static void log_files(const struct shell *shell)
{
    const struct io_files *files = shell->files;
    if (files->is_short)
        log_event(shell->log, LOG_WARN, "files_short", LOG_UINT("files_max", files->max),
                  LOG_UINT("connections_max", files->connections_asked),
                  LOG_UINT("used", shell->options->connections_max),
                  LOG_CSTR("want",
                           "raise the limit of open files (ulimit -n): a request needs up to two"));
}

static struct slice replica_key(void *context, unsigned *version)
{
    const struct shell *shell = context;
    *version = key_file_version(shell->replica_key);
    return key_file_key(shell->replica_key);
}

static struct slice admin_token(void *context)
{
    const struct shell *shell = context;
    return key_file_key(shell->admin_token);
}

static struct slice admin_read_token(void *context)
{
    const struct shell *shell = context;
    return key_file_key(shell->admin_read_token);
}

void shell_config(struct shell *shell, struct node_config *config)
{
    shell->net = (struct net_actions){.context = shell,
                                      .open_host = names_open,
                                      .resolve = names_resolve,
                                      .ip = names_ip,
                                      .close_host = names_close,
                                      .connect = tcp_connect,
                                      .write = tcp_write,
                                      .queue = tcp_queue,
                                      .read = tcp_read,
                                      .round_trip_us = tcp_round_trip_us,
                                      .finish = tcp_finish,
                                      .close = tcp_close};
    config->proxy.net = &shell->net;
    config->kv = io_kv_feeds_shell(shell);
    config->proxy.log = shell->log;
    config->proxy.replica_key = shell->replica_key != NULL ? replica_key : NULL;
    config->proxy.replica_key_context = shell;
    if (shell->client_keys != NULL)
        config->proxy.access = client_keys_access(shell->client_keys);
    config->admin.log = shell->log;
    config->admin.token = shell->admin_token != NULL ? admin_token : NULL;
    config->admin.read_token = shell->admin_read_token != NULL ? admin_read_token : NULL;
    config->admin.token_context = shell;
    config->admin.metrics = metrics_write;
    config->admin.files = metrics_files_write;
    config->admin.attention = metrics_attention;
    config->admin.metrics_context = shell;
}

/* Must be called before any port opens: a supervisor may send SIGTERM as soon as a port answers.
 * on_signal() runs as soon as the loop does. */
static void catch_signals(struct shell *shell)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        CHECK(uv_signal_init(shell->loop, &shell->signals[i]) == 0);
        shell->signals[i].data = shell;
        CHECK(uv_signal_start(&shell->signals[i], on_signal, signals[i]) == 0);
    }
}

static void start_loop(struct shell *shell)
{
    CHECK(uv_timer_init(shell->loop, &shell->tick) == 0);
    shell->tick.data = shell;
    shell->ticked_ms = uv_now(shell->loop);
    shell->tick_at_ms = shell->ticked_ms + PROXY_TICK_MS;
    CHECK(uv_timer_start(&shell->tick, on_tick, PROXY_TICK_MS, 0) == 0);
    CHECK(uv_prepare_init(shell->loop, &shell->prepare) == 0);
    shell->prepare.data = shell;
    CHECK(uv_prepare_start(&shell->prepare, on_prepare) == 0);
}

/* Opens an optional port. */
static int open_more(struct shell *shell, enum proxy_port port, const char *listen)
{
    struct node_address at;
    if (listen[0] == '\0')
        return ERR_OK;
    CHECK(node_address_parse(slice_of_cstr(listen), &at) == 0); /* checked when it was set */
    return listener_open(&shell->listeners[port], shell, port, &at);
}

int shell_start(struct shell *shell, struct node *node)
{
    const struct node_options *options = shell->options;
    shell->node = node;
    shell->router = node->router;
    shell->proxy = node->proxy;
    shell->admin = node->admin;
    shell->started_ms = shell_now_ms(shell);
    catch_signals(shell);
    tls_start(shell->tls, shell);
    int err = dns_open(&shell->dns, shell->loop, &(struct node_strings){0});
    if (err != 0) {
        log_event(shell->log, LOG_ERROR, "dns_refused", LOG_CSTR("error", err_text(err)));
        return err;
    }
    if (node->trace != NULL)
        err =
            trace_export_open(&shell->trace_export, shell->loop, options, node->trace, shell->log);
    if (err != 0)
        return err;
    node_router_watch(shell->router, on_replica, on_forgotten, shell);
    shell->watches.now_ms = shell_now_ms(shell);
    err = sources_start(shell);
    if (err == 0)
        err = listener_open(&shell->listeners[PROXY_PORT_CLIENT], shell, PROXY_PORT_CLIENT,
                            &options->listen);
    if (err == 0)
        err = listener_open(&shell->listeners[PROXY_PORT_ADMIN], shell, PROXY_PORT_ADMIN,
                            &options->admin_listen);
    if (err == 0)
        err = open_more(shell, PROXY_PORT_PROBE, options->probe_listen);
    if (err == 0)
        err = open_more(shell, PROXY_PORT_EVENTS, options->kv_events_listen);
    if (err != 0)
        return err;
    judge_admin_port(shell);
    log_files(shell);
    service_open(&shell->service);
    start_loop(shell);
    err = proxy_start(shell->proxy, shell_now_ms(shell));
    return err == 0 ? io_gossip_start(shell) : err;
}

#include "node/io/shell.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "http/forward.h"
#include "node/io/client.h"
#include "node/io/exchange.h"
#include "node/io/gossip.h"
#include "node/io/key_file.h"
#include "node/io/local.h"
#include "node/io/log_sink.h"
#include "node/io/prober.h"
#include "node/io/random.h"
#include "node/io/upstream.h"

enum { LISTEN_BACKLOG = 4096, ROUTER_TICK_MS = 1000, LOG_FLUSH_MS = 60000, SPARE_FILES = 64 };

static void drain_tick(struct shell *shell, uint64_t now);

/* --- time ----------------------------------------------------------------------------------- */

/* After a pause (a stopped process, a machine that slept) the answers that came meanwhile are still
 * to be read: nobody was slow, so all time limits move by the pause, and no check begins on a
 * connection that may be closed by now. A loop that is late time after time is only slow. */
static void on_tick(uv_timer_t *timer)
{
    struct shell *shell = timer->data;
    uint64_t now = shell_now_ms(shell);
    uint64_t late = now - shell->ticked_ms;
    bool paused = late >= SHELL_PAUSE_MS && !shell->paused;
    shell->ticked_ms = now;
    shell->paused = paused;
    struct deadline_queue *queues[] = {
        &shell->client_head,      &shell->client_idle,         &shell->client_body,
        &shell->client_write,     &shell->client_linger,       &shell->client_fresh,
        &shell->upstream_connect, &shell->upstream_first_byte, &shell->upstream_whole_answer,
        &shell->upstream_idle,    &shell->upstream_keepalive,  &shell->fetch,
        &shell->fetch_sglang,     &shell->fetch_failed,
    };
    for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
        if (paused)
            deadline_shift(queues[i], late);
        deadline_run(queues[i], now);
    }
    if (now - shell->router_ticked_ms >= ROUTER_TICK_MS) {
        shell->router_ticked_ms = now;
        struct timespec wall;
        if (clock_gettime(CLOCK_REALTIME, &wall) == 0)
            node_router_wall(shell->router,
                             (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000, now);
        node_router_tick(shell->router, now);
    }
    if (now - shell->log_flushed_ms >= LOG_FLUSH_MS) {
        shell->log_flushed_ms = now;
        log_flush(shell->log);
    }
    if (shell->replica_key != NULL)
        key_file_tick(shell->replica_key, shell->loop, now);
    if (!paused)
        prober_tick(shell);
    admin_adds_tick(shell);
    io_gossip_tick(shell);
    drain_tick(shell, now);
}

static void init_queues(struct shell *shell)
{
    const struct node_options *o = shell->options;
    deadline_queue_init(&shell->client_head, o->client_head_timeout_ms);
    deadline_queue_init(&shell->client_idle, o->client_idle_timeout_ms);
    deadline_queue_init(&shell->client_body, o->client_body_timeout_ms);
    deadline_queue_init(&shell->client_write, o->client_write_timeout_ms);
    deadline_queue_init(&shell->client_linger, SHELL_LINGER_MS);
    deadline_queue_init(&shell->client_fresh, SHELL_FRESH_MS);
    deadline_queue_init(&shell->upstream_connect, o->upstream_connect_timeout_ms);
    deadline_queue_init(&shell->upstream_first_byte, o->upstream_first_byte_timeout_ms);
    deadline_queue_init(&shell->upstream_whole_answer, o->upstream_whole_answer_timeout_ms);
    deadline_queue_init(&shell->upstream_idle, o->upstream_idle_timeout_ms);
    deadline_queue_init(&shell->upstream_keepalive, o->upstream_keepalive_ms);
    deadline_queue_init(&shell->fetch, o->health_timeout_ms);
    deadline_queue_init(&shell->fetch_sglang, o->health_timeout_sglang_ms);
    deadline_queue_init(&shell->fetch_failed, 1);
}

/* --- listening ------------------------------------------------------------------------------ */

static void on_connection(uv_stream_t *stream, int status)
{
    struct shell_listener *listener = CONTAINER_OF((uv_tcp_t *)stream, struct shell_listener, tcp);
    struct shell *shell = stream->data;
    if (status < 0) {
        shell->stats.accept_failures++;
        log_event(shell->log, LOG_ERROR, "accept_failed", LOG_CSTR("error", uv_strerror(status)),
                  LOG_UINT("connections", shell->stats.connections_open));
    } else {
        client_accept(shell, listener);
    }
}

/* What others may do on the admin port without a token; nothing to say if they do not reach it. */
static void judge_admin_port(struct shell *shell, const struct sockaddr *bound,
                             const struct node_address *at)
{
    char host[INET6_ADDRSTRLEN];
    bool read = uv_ip_name(bound, host, sizeof host) == 0;
    bool loopback = read && node_host_is_loopback(host);
    shell->admin_on_loopback = loopback || (read && node_host_is_any(host));
    if (shell->admin_token != NULL || loopback)
        return;
    log_event(shell->log, LOG_WARN, "admin_without_token", LOG_CSTR("host", at->host),
              LOG_CSTR("effect", shell->admin_on_loopback
                                     ? "whoever reaches it may read; changes are taken from "
                                       "loopback alone"
                                     : "whoever reaches it may read; it takes no changes at all, "
                                       "for it does not listen on loopback"),
              LOG_CSTR("want", shell->admin_on_loopback
                                   ? "admin-token-file, or an admin-listen of 127.0.0.1"
                                   : "admin-token-file, or an admin-listen of 127.0.0.1 or "
                                     "0.0.0.0"));
}

static int listen_on(struct shell *shell, enum shell_port port, const struct node_address *address)
{
    struct shell_listener *l = &shell->listeners[port];
    l->port = port;
    l->bound = *address;
    char number[8];
    (void)snprintf(number, sizeof number, "%u", address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    uv_getaddrinfo_t request;
    int err = uv_getaddrinfo(shell->loop, &request, NULL, address->host, number, &hints);
    if (err == 0) {
        err = uv_tcp_init(shell->loop, &l->tcp);
        CHECK(err == 0);
        l->tcp.data = shell;
        err = uv_tcp_bind(&l->tcp, request.addrinfo->ai_addr, 0);
        uv_freeaddrinfo(request.addrinfo);
        if (err == 0)
            err = uv_listen((uv_stream_t *)&l->tcp, LISTEN_BACKLOG, on_connection);
    }
    if (err != 0) {
        log_event(shell->log, LOG_ERROR, "listen_failed",
                  LOG_CSTR("setting", port == SHELL_PORT_CLIENT ? "listen" : "admin-listen"),
                  LOG_CSTR("host", address->host), LOG_UINT("port", address->port),
                  LOG_CSTR("error", uv_strerror(err)));
        return ERR_UNREACHABLE;
    }
    struct sockaddr_storage name = {0};
    int len = sizeof name;
    if (uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&name, &len) == 0)
        l->bound.port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                                         : ((struct sockaddr_in *)&name)->sin_port);
    log_event(shell->log, LOG_INFO, "listening",
              LOG_CSTR("port_of", port == SHELL_PORT_CLIENT ? "clients" : "admin"),
              LOG_CSTR("host", l->bound.host), LOG_UINT("port", l->bound.port));
    if (port == SHELL_PORT_ADMIN)
        judge_admin_port(shell, (const struct sockaddr *)&name, &l->bound);
    return 0;
}

/* --- the end -------------------------------------------------------------------------------- */

static void on_left(struct shell *shell)
{
    uv_stop(shell->loop);
}

/* The other routers are told last: until then what is still under way here counts for them. */
void shell_drain_check(struct shell *shell)
{
    if (!shell->closed || shell->leaving)
        return;
    for (const struct client *c = shell->clients; c != NULL; c = c->next) {
        if (c->port == SHELL_PORT_CLIENT)
            return;
    }
    shell->leaving = true;
    io_gossip_leave(shell, on_left);
}

static void close_client_port(struct shell *shell)
{
    shell->closed = true;
    shell->drain_timeout_at_ms = shell_now_ms(shell) + shell->options->drain_timeout_ms;
    log_event(shell->log, LOG_INFO, "client_port_closed",
              LOG_UINT("requests_open", shell->stats.requests_open),
              LOG_UINT("limit_ms", shell->options->drain_timeout_ms));
    client_accept_waiting(shell, &shell->listeners[SHELL_PORT_CLIENT]);
    uv_close((uv_handle_t *)&shell->listeners[SHELL_PORT_CLIENT].tcp, NULL);
    for (struct client *c = shell->clients, *next; c != NULL; c = next) {
        next = c->next;
        client_drain(c);
    }
    shell_drain_check(shell);
}

static void drain_tick(struct shell *shell, uint64_t now)
{
    if (!shell->draining)
        return;
    if (!shell->closed && now >= shell->drain_delay_at_ms)
        close_client_port(shell);
    if (shell->closed && now >= shell->drain_timeout_at_ms) {
        log_event(shell->log, LOG_WARN, "drain_timeout",
                  LOG_UINT("requests_cut", shell->stats.requests_open));
        shell->exit_code = 1;
        uv_stop(shell->loop);
    }
}

void shell_drain(struct shell *shell, bool delayed)
{
    if (shell->closed) {
        log_event(shell->log, LOG_WARN, "stopped",
                  LOG_UINT("requests_cut", shell->stats.requests_open));
        shell->exit_code = shell->stats.requests_open > 0;
        uv_stop(shell->loop);
        return;
    }
    uint64_t delay_ms = delayed && !shell->draining ? shell->options->drain_delay_ms : 0;
    if (!shell->draining) {
        shell->draining = true;
        shell->drain_delay_at_ms = shell_now_ms(shell) + delay_ms;
        log_event(shell->log, LOG_INFO, "draining",
                  LOG_UINT("requests_open", shell->stats.requests_open),
                  LOG_UINT("delay_ms", delay_ms));
    }
    if (delay_ms == 0)
        close_client_port(shell);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct shell *shell = handle->data;
    if (number == SIGUSR1) {
        io_log_cycle_level(shell->log);
        return;
    }
    if (number == SIGHUP) {
        io_gossip_reload(shell);
        return;
    }
    shell_drain(shell, number == SIGTERM); /* who presses Ctrl-C wants it to end */
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void shell_close(struct shell *shell)
{
    /* Without its handler a late second SIGTERM would kill the process on its last steps. */
    sigset_t late;
    (void)sigemptyset(&late);
    (void)sigaddset(&late, SIGTERM);
    (void)sigaddset(&late, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &late, NULL);
    io_gossip_stop(shell);
    prober_stop(shell);
    if (shell->replica_key != NULL)
        key_file_stop(shell->replica_key);
    while (true) { /* each close may end an exchange, which may close others */
        struct client *c = shell->clients;
        while (c != NULL && c->state == CLIENT_CLOSING)
            c = c->next;
        if (c == NULL)
            break;
        client_close(c, CLIENT_END_STOPPED);
    }
    for (unsigned i = 0; i < shell->pool_count; i++) {
        upstream_pool_flush(&shell->pools[i]);
        if (shell->pools[i].resolving)
            (void)uv_cancel((uv_req_t *)&shell->pools[i].resolver);
    }
    admin_adds_stop(shell);
    uv_walk(shell->loop, close_handle, NULL);
    (void)uv_run(shell->loop, UV_RUN_DEFAULT);
    io_gossip_free(shell);
    admin_asks_free(shell);
    admin_adds_free(shell);
    exchange_pool_free(shell);
    segment_pool_free(&shell->segments);
    buf_free(&shell->scratch);
    free(shell->pools);
    shell->pools = NULL;
}

/* --- the beginning -------------------------------------------------------------------------- */

static void open_pool(struct shell *shell, unsigned replica, const struct node_address *address)
{
    struct upstream_pool *pool = &shell->pools[replica];
    if (pool->shell == NULL)
        upstream_pool_init(pool, shell, replica, address);
    if (shell->pool_count <= replica)
        shell->pool_count = replica + 1;
}

void shell_replica(struct shell *shell, unsigned replica, bool present)
{
    struct slice name = node_router_replica_name(shell->router, replica);
    struct node_address address;
    if (node_address_parse(name, &address) != 0 || address.port == 0) {
        log_event(shell->log, LOG_ERROR, "replica_refused", LOG_STR("replica", name),
                  LOG_CSTR("error", "its name, which another router told, is no HOST:PORT"));
        /* It is never probed; who is sent there all the same finds the port refused. */
        open_pool(shell, replica, &(struct node_address){.host = "0.0.0.0"});
        return;
    }
    log_event(shell->log, LOG_INFO, present ? "replica_added" : "replica_removed",
              LOG_STR("replica", name));
    if (present) {
        open_pool(shell, replica, &address);
        prober_begin(shell, replica);
    } else {
        prober_end(shell, replica);
        upstream_pool_flush(&shell->pools[replica]);
    }
}

static void on_replica(void *context, unsigned replica, bool present)
{
    shell_replica(context, replica, present);
}

static int open_pools(struct shell *shell)
{
    /* Pages that no replica needs are never touched. */
    shell->pools = calloc(NODE_REPLICAS_MAX, sizeof shell->pools[0]);
    if (shell->pools == NULL)
        return ERR_NOMEM;
    node_router_watch(shell->router, on_replica, shell);
    for (unsigned i = 0; i < shell->options->replica.count; i++) {
        struct node_replica_option replica;
        int err = node_replica_parse(slice_of_cstr(shell->options->replica.at[i]), &replica);
        CHECK(err == 0);
        int index =
            node_router_replica_add(shell->router, slice_of_cstr(replica.name), replica.engine);
        if (index < 0) {
            log_event(shell->log, LOG_ERROR, "replica_refused", LOG_CSTR("replica", replica.name),
                      LOG_CSTR("error", err_text(index)));
            return index;
        }
        open_pool(shell, (unsigned)index, &replica.address);
    }
    return 0;
}

const char *shell_not_ready(const struct shell *shell)
{
    if (shell->draining)
        return "draining";
    if (!io_gossip_ready(shell))
        return "joining: the state of the other routers is not here yet";
    if (!node_router_ready(shell->router))
        return "no replica is up";
    /* Who waits for it asks for the models next, or sends requests that name one. */
    return prober_models_asked(shell) ? NULL : "no replica has been asked for its models yet";
}

/* Beyond the limit on open files libuv closes what it accepts, and tells nobody. */
static void check_file_limit(const struct shell *shell)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
        files.rlim_cur < shell->options->connections_max + SPARE_FILES)
        log_event(shell->log, LOG_WARN, "files_short", LOG_UINT("files_max", files.rlim_cur),
                  LOG_UINT("connections_max", shell->options->connections_max),
                  LOG_CSTR("want", "a higher limit (ulimit -n): a request needs up to two files"));
}

int shell_start(struct shell *shell, uv_loop_t *loop, const struct node_options *options,
                struct node_router *router, struct node_affinity *affinity, struct node_log *log)
{
    shell->loop = loop;
    loop->data = shell;
    shell->options = options;
    shell->router = router;
    shell->affinity = affinity;
    shell->log = log;
    shell->limits = http_limits_default;
    shell->limits.head_bytes_max = options->head_bytes_max;
    shell->limits.fields_max = (unsigned)options->headers_max;
    shell->engine_limits = (struct http_limits){.head_bytes_max = SHELL_ENGINE_HEAD_BYTES_MAX,
                                                .target_bytes_max = SHELL_ENGINE_HEAD_BYTES_MAX,
                                                .fields_max = HTTP_FIELDS_MAX};
    shell->started_ms = shell_now_ms(shell);
    io_random_bytes(&shell->request_id_high, sizeof shell->request_id_high);
    io_random_bytes(&shell->request_id_low, sizeof shell->request_id_low);
    uint64_t pseudonym;
    io_random_bytes(&pseudonym, sizeof pseudonym);
    (void)snprintf(shell->via, sizeof shell->via, HTTP_VIA_ROUTER "%016" PRIx64, pseudonym);
    (void)snprintf(shell->identity, sizeof shell->identity, "%s%s%s", shell->via,
                   shell->gossip != NULL ? " " : "",
                   shell->gossip != NULL ? io_gossip_name(shell->gossip) : "");
    segment_pool_init(&shell->segments, options->buffered_bytes_max);
    buf_init(&shell->scratch, 0);
    init_queues(shell);
    int err = open_pools(shell);
    if (err == 0)
        err = listen_on(shell, SHELL_PORT_CLIENT, &options->listen);
    if (err == 0)
        err = listen_on(shell, SHELL_PORT_ADMIN, &options->admin_listen);
    if (err != 0)
        return err;
    check_file_limit(shell);
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        CHECK(uv_signal_init(loop, &shell->signals[i]) == 0);
        shell->signals[i].data = shell;
        CHECK(uv_signal_start(&shell->signals[i], on_signal, numbers[i]) == 0);
    }
    CHECK(uv_timer_init(loop, &shell->tick) == 0);
    shell->tick.data = shell;
    shell->ticked_ms = shell_now_ms(shell);
    CHECK(uv_timer_start(&shell->tick, on_tick, SHELL_TICK_MS, SHELL_TICK_MS) == 0);
    err = prober_start(shell);
    return err == 0 ? io_gossip_start(shell) : err;
}

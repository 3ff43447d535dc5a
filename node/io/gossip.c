#include "node/io/gossip.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "node/io/gossip_internal.h"
#include "node/io/random.h"

enum { PORT_TRIES = 32 };

/* --- the clock ------------------------------------------------------------------------------ */

/* Notes a late turn of the loop (after a stopped process, or on a busy machine), so that the other
 * routers do not count as silent for this time. */
static void check_late(struct io_gossip *g, uint64_t now)
{
    if (g->armed_us == 0 || now < g->armed_us + IO_GOSSIP_LATE_US)
        return;
    uint64_t late = now - g->armed_us;
    g->armed_us = 0;
    g->stats.late++;
    gossip_late(node_replication_gossip(g->replication), late, now);
}

static void leave_check(struct io_gossip *g, uint64_t now)
{
    if (!g->leaving || g->left == NULL)
        return;
    uint64_t due = node_replication_due_us(g->replication);
    if (due <= now + IO_GOSSIP_LEAVE_US && now < g->leave_until_us)
        return;
    void (*left)(struct shell *) = g->left;
    g->left = NULL;
    left(g->shell);
}

static void on_wake(uv_timer_t *timer)
{
    (void)timer; /* on_prepare follows */
}

/* Runs once in each turn of the loop, before the loop sleeps. Sends the turn's changes. */
static void on_prepare(uv_prepare_t *handle)
{
    struct io_gossip *g = handle->data;
    uint64_t now = io_now_us();
    check_late(g, now);
    node_replication_run(g->replication, now);
    leave_check(g, now);
    uint64_t due = node_replication_due_us(g->replication);
    if (g->left != NULL && due > g->leave_until_us)
        due = g->leave_until_us;
    /* The shell's tick wakes the loop at `tick` anyway, so the timer is needed only for an earlier
     * time. */
    uint64_t tick = g->shell->tick_at_ms * 1000;
    g->armed_us = due < tick ? due : tick;
    if (g->armed_us < now)
        g->armed_us = now;
    if (due >= tick) {
        (void)uv_timer_stop(&g->wake);
        return;
    }
    /* libuv's clock is io_now_us() in whole milliseconds. The time is rounded up, because the timer
     * must not be early. */
    uint64_t at_ms = (due + 999) / 1000;
    if (at_ms == g->wake_ms && uv_is_active((uv_handle_t *)&g->wake))
        return;
    uint64_t loop_ms = uv_now(g->loop);
    g->wake_ms = at_ms;
    (void)uv_timer_start(&g->wake, on_wake, at_ms > loop_ms ? at_ms - loop_ms : 0, 0);
}

void io_gossip_tick(struct shell *shell)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL || g->replication == NULL)
        return;
    uint64_t now = shell_now_ms(shell);
    io_calls_tick(g, now);
    io_seeds_tick(g, now);
}

bool io_gossip_waits(const struct shell *shell)
{
    return shell->gossip != NULL && shell->gossip->calls != NULL;
}

/* --- actions for the replication -------------------------------------------------------------- */

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    io_udp_send(context, to, bytes, len);
}

static void on_knock(void *context, const struct gossip_address *to, const uint8_t *bytes,
                     size_t len)
{
    io_udp_knock(context, to, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    io_random_bytes(out, len);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    return io_calls_begin(context, id, to, kind, request);
}

/* node/cluster names the events. This table has each event's level, and the names of member, value
 * and detail in the log line. NULL: none. */
static const struct event_line {
    enum log_level level;
    const char *member, *value, *detail;
} event_lines[NODE_REPLICATION_EVENTS] = {
    [NODE_REPLICATION_MEMBER_ALIVE] = {LOG_INFO, "member", NULL, NULL},
    [NODE_REPLICATION_MEMBER_DEAD] = {LOG_WARN, "member", NULL, NULL},
    [NODE_REPLICATION_MEMBER_LEFT] = {LOG_INFO, "member", NULL, NULL},
    [NODE_REPLICATION_READY] = {LOG_INFO, "from", "ms", "why"},
    [NODE_REPLICATION_SNAPSHOT_FAILED] = {LOG_WARN, "member", NULL, "error"},
    [NODE_REPLICATION_TCP_FILTERED] = {LOG_WARN, "member", NULL, "at"},
    [NODE_REPLICATION_LOST] = {LOG_INFO, "member", NULL, NULL},
    [NODE_REPLICATION_CLOCK_FORWARD] = {LOG_WARN, "member", "ms", NULL},
    [NODE_REPLICATION_CLOCK_BACK] = {LOG_WARN, "member", "ms", NULL},
    [NODE_REPLICATION_MISMATCH] = {LOG_ERROR, "member", NULL, "differs"},
    [NODE_REPLICATION_NAME_TAKEN] = {LOG_ERROR, "member", "signs", "at"},
    [NODE_REPLICATION_REFUSED_KEY] = {LOG_WARN, NULL, "count", "from"},
    [NODE_REPLICATION_OTHER_CLUSTER] = {LOG_WARN, NULL, "count", "from"},
    [NODE_REPLICATION_REPLICAS_FULL] = {LOG_ERROR, NULL, "limit", "waits"},
    [NODE_REPLICATION_ROUTERS_FULL] = {LOG_ERROR, NULL, "limit", "refused"},
    [NODE_REPLICATION_NOT_UNDERSTOOD] = {LOG_ERROR, "member", NULL, "why"},
    [NODE_REPLICATION_DIFFERS] = {LOG_INFO, "member", NULL, "differs"},
    [NODE_REPLICATION_NAME_REFUSED] = {LOG_WARN, "member", "count", "name"},
    [NODE_REPLICATION_ALONE] = {LOG_INFO, NULL, NULL, "why"},
};

static void on_event(void *context, enum node_replication_event event, struct slice member,
                     int64_t value, struct slice detail)
{
    struct io_gossip *g = context;
    const struct event_line *t = &event_lines[event];
    if (!log_heard(g->log, t->level))
        return;
    struct log_field fields[4];
    unsigned count = 0;
    if (event == NODE_REPLICATION_SNAPSHOT_FAILED)
        detail = slice_of_cstr(err_text((int)value));
    if (t->member != NULL && member.len > 0)
        fields[count++] = LOG_STR(t->member, member);
    if (event == NODE_REPLICATION_READY)
        fields[count++] = LOG_BOOL("alone", member.len == 0 && detail.len == 0);
    if (event == NODE_REPLICATION_NAME_TAKEN && member.len == 0)
        fields[count++] = LOG_CSTR("name", g->name);
    if (t->value != NULL)
        fields[count++] = LOG_INT(t->value, value);
    if (t->detail != NULL && detail.len > 0)
        fields[count++] = LOG_STR(t->detail, detail);
    log_event_write(g->log, t->level, node_replication_event_text(event), fields, count);
}

/* --- open ----------------------------------------------------------------------------------- */

static uint16_t port_of(const struct sockaddr_storage *name)
{
    return ntohs(name->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)name)->sin6_port
                                             : ((const struct sockaddr_in *)name)->sin_port);
}

static void set_port(struct sockaddr_storage *name, uint16_t port)
{
    if (name->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)name)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)name)->sin_port = htons(port);
}

static void close_now(struct io_gossip *g, uv_handle_t *handle)
{
    uv_close(handle, NULL);
    (void)uv_run(g->loop, UV_RUN_NOWAIT);
}

/* Binds UDP and TCP to the same port number. A number chosen by the kernel for one protocol may be
 * in use for the other. */
static int bind_both(struct io_gossip *g, struct sockaddr_storage *at)
{
    uint16_t wanted = port_of(at);
    int err = 0;
    for (unsigned i = 0; i < PORT_TRIES; i++) {
        set_port(at, wanted);
        err = io_udp_open(g, (struct sockaddr *)at);
        int len = sizeof *at;
        if (err == 0)
            err = uv_udp_getsockname(&g->udp, (struct sockaddr *)at, &len);
        if (err != 0) {
            close_now(g, (uv_handle_t *)&g->udp);
            return err;
        }
        err = io_calls_open(g, (struct sockaddr *)at);
        if (err == 0)
            err = io_calls_start(g); /* libuv reports a port in use only here */
        if (err == 0)
            return 0;
        close_now(g, (uv_handle_t *)&g->tcp);
        close_now(g, (uv_handle_t *)&g->udp);
        if (wanted != 0)
            return err;
    }
    return err;
}

static int resolve(struct io_gossip *g, const struct node_address *address,
                   struct sockaddr_storage *out)
{
    char port[8];
    (void)snprintf(port, sizeof port, "%u", address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE};
    uv_getaddrinfo_t request;
    int err = uv_getaddrinfo(g->loop, &request, NULL, address->host, port, &hints);
    if (err != 0)
        return err;
    memset(out, 0, sizeof *out);
    memcpy(out, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}

static void name_node(struct io_gossip *g)
{
    if (g->options->node_name[0] != '\0') {
        (void)slice_to_cstr(slice_of_cstr(g->options->node_name), g->name, sizeof g->name);
        return;
    }
    char host[GOSSIP_NAME_MAX - 8];
    if (gethostname(host, sizeof host) != 0)
        (void)snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    (void)snprintf(g->name, sizeof g->name, "%s:%u", host, g->bound.port);
}

int io_gossip_open(struct io_gossip **out, uv_loop_t *loop, const struct node_options *options,
                   struct gossip_keyring *keyring, struct log *log)
{
    struct node_address listen;
    *out = NULL;
    if (!node_options_gossip(options, &listen))
        return 0;
    struct io_gossip *g = calloc(1, sizeof *g);
    if (g == NULL)
        return ERR_NOMEM;
    g->loop = loop;
    g->options = options;
    g->keyring = keyring;
    g->log = log;
    g->bound = listen;
    struct sockaddr_storage at;
    int err = resolve(g, &listen, &at);
    if (err == 0)
        err = bind_both(g, &at);
    if (err != 0) {
        log_event(log, LOG_ERROR, "listen_failed", LOG_CSTR("setting", "gossip-listen"),
                  LOG_CSTR("host", listen.host), LOG_UINT("port", listen.port),
                  LOG_CSTR("error", uv_strerror(err)));
        free(g);
        return ERR_UNREACHABLE;
    }
    g->bound.port = port_of(&at);
    name_node(g);
    *out = g;
    return 0;
}

const char *io_gossip_name(const struct io_gossip *g)
{
    return g->name;
}

/* --- start ---------------------------------------------------------------------------------- */

static bool is_any(const char *host)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    return (uv_ip4_addr(host, 0, &v4) == 0 && v4.sin_addr.s_addr == INADDR_ANY) ||
           (uv_ip6_addr(host, 0, &v6) == 0 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr));
}

/* Sets `out` to the name's first address, and `also` to the first address of the other family.
 * Returns 0 or a libuv error. */
static int resolve_both(struct io_gossip *g, const struct node_address *address,
                        struct gossip_address *out, struct gossip_address *also)
{
    char port[8];
    (void)snprintf(port, sizeof port, "%u", address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    uv_getaddrinfo_t request;
    int err = uv_getaddrinfo(g->loop, &request, NULL, address->host, port, &hints);
    if (err != 0)
        return err;
    for (const struct addrinfo *a = request.addrinfo; a != NULL; a = a->ai_next) {
        struct gossip_address found;
        if (!io_address_from(&found, a->ai_addr))
            continue;
        if (out->port == 0)
            *out = found;
        else if (also->port == 0 && found.family != out->family)
            *also = found;
    }
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}

/* Finds the addresses at which peers reach this node. Port 0: peers use the source address of the
 * node's packets. */
static int own_addresses(struct io_gossip *g, struct gossip_address *out,
                         struct gossip_address *also)
{
    memset(out, 0, sizeof *out);
    memset(also, 0, sizeof *also);
    struct node_address address = g->bound;
    bool said = g->options->gossip_advertise[0] != '\0';
    if (said)
        CHECK(node_address_parse(slice_of_cstr(g->options->gossip_advertise), &address) == 0);
    else if (is_any(address.host))
        return 0;
    int err = resolve_both(g, &address, out, also);
    if (err == 0 && out->port != 0)
        return 0;
    log_event(g->log, LOG_ERROR, "address_unknown",
              LOG_CSTR("setting", said ? "gossip-advertise" : "gossip-listen"),
              LOG_CSTR("host", address.host),
              LOG_CSTR("error", err != 0 ? uv_strerror(err) : "no IP address"));
    return ERR_UNREACHABLE;
}

/* Sets the versions to speak from the environment's FUTURE_SPEAKS, such as 3-5, in builds for
 * tests. */
static void speak(struct gossip_versions *out)
{
    const char *text = getenv("FUTURE_SPEAKS");
    unsigned least, greatest;
    if (text != NULL && sscanf(text, "%u-%u", &least, &greatest) == 2)
        *out = (struct gossip_versions){(uint16_t)least, (uint16_t)greatest};
}

int io_gossip_config(struct io_gossip *g, struct node_config *config,
                     struct node_replication_io *io)
{
    *io = (struct node_replication_io){
        .context = g,
        .send = on_send,
        .knock = on_knock,
        .random = on_random,
        .call = on_call,
        .event = on_event,
    };
    struct gossip_config *gossip = &config->replication.gossip;
    config->keyring = g->keyring;
    gossip->name = g->name;
    gossip->port = g->bound.port;
    gossip->ipv4_only = !g->ipv6;
    if (FUTURE)
        speak(&gossip->speaks);
    return own_addresses(g, &gossip->address, &gossip->address_also);
}

/* Publishes the admin port's address to the other routers, for people. */
static void describe_admin(struct io_gossip *g)
{
    struct node_address at = g->shell->listeners[PROXY_PORT_ADMIN].bound;
    char admin[NODE_HOST_BYTES + 8];
    struct slice said = slice_of_cstr(g->options->admin_advertise);
    if (said.len > 0)
        CHECK(node_address_parse_bare(said, at.port, &at) == 0);
    else if (is_any(at.host) && gethostname(at.host, sizeof at.host) != 0)
        return;
    at.host[sizeof at.host - 1] = '\0';
    (void)snprintf(admin, sizeof admin, strchr(at.host, ':') != NULL ? "[%s]:%u" : "%s:%u", at.host,
                   at.port);
    node_replication_admin(g->replication, admin, io_now_us());
}

void io_gossip_draining(struct shell *shell)
{
    if (shell->gossip != NULL)
        node_replication_draining(shell->gossip->replication, io_now_us());
}

int io_gossip_start(struct shell *shell)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL)
        return 0;
    g->shell = shell;
    g->replication = shell->node->replication;
    describe_admin(g);
    int uv_err = io_udp_start(g);
    if (uv_err != 0) {
        log_event(g->log, LOG_ERROR, "gossip_failed", LOG_CSTR("error", uv_strerror(uv_err)));
        return ERR_UNREACHABLE;
    }
    if (g->options->insecure_gossip)
        log_event(
            g->log, LOG_WARN, "insecure_gossip",
            LOG_CSTR("danger", "there is no cluster key: anyone who can send to the gossip port "
                               "can read and change what this router believes"),
            LOG_CSTR(
                "want",
                "run gvctl keygen --out FILE, and start all routers with --cluster-key-file FILE"));
    log_event(g->log, LOG_INFO, "listening", LOG_CSTR("port_of", "gossip"),
              LOG_CSTR("host", g->bound.host), LOG_UINT("port", g->bound.port),
              LOG_CSTR("name", g->name));
    CHECK(uv_timer_init(g->loop, &g->wake) == 0);
    CHECK(uv_prepare_init(g->loop, &g->prepare) == 0);
    g->prepare.data = g;
    CHECK(uv_prepare_start(&g->prepare, on_prepare) == 0);
    io_keys_start(g);
    return io_seeds_start(g);
}

/* --- the end -------------------------------------------------------------------------------- */

void io_gossip_leave(struct shell *shell, void (*done)(struct shell *shell))
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL || g->replication == NULL || g->leaving) {
        done(shell);
        return;
    }
    uint64_t now = io_now_us();
    g->leaving = true;
    g->left = done;
    g->leave_until_us = now + IO_GOSSIP_LEAVE_US;
    gossip_leave(node_replication_gossip(g->replication), now);
}

void io_gossip_stop(struct shell *shell)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL)
        return;
    if (g->replication != NULL && !g->leaving)
        gossip_leave(node_replication_gossip(g->replication), io_now_us());
    g->stopped = true;
    io_calls_close(g);
    io_seeds_stop(g);
    if (g->prepare.data != NULL)
        (void)uv_prepare_stop(&g->prepare);
}

void io_gossip_free(struct shell *shell)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL)
        return;
    io_watch_free(&g->key_watch);
    explicit_bzero(&g->fresh_keys, sizeof g->fresh_keys);
    buf_free(&g->call_chunk);
    free(g->datagrams);
    free(g->seeds);
    free(g);
    shell->gossip = NULL;
}

/* --- metrics -------------------------------------------------------------------------------- */

void io_gossip_metrics(const struct shell *shell, struct prometheus *p)
{
    const struct io_gossip *g = shell->gossip;
    if (g == NULL || g->replication == NULL)
        return;
    const struct io_gossip_stats *s = &g->stats;
    const struct prometheus_figure figures[] = {
        {"gossip_send_errors_total", "Datagrams that the kernel refused.", (double)s->send_errors},
        {"gossip_send_queued_total", "Datagrams that waited for the kernel.",
         (double)s->send_queued},
        {"gossip_send_dropped_total", "Datagrams dropped because too many waited.",
         (double)s->send_dropped},
        {"gossip_receive_errors_total", "Errors of the gossip socket.", (double)s->receive_errors},
        {"gossip_calls_total", "Calls to other routers over TCP.", (double)s->calls_made},
        {"gossip_calls_failed_total", "Calls without a complete answer.", (double)s->calls_failed},
        {"gossip_calls_served_total", "Calls of other routers answered.", (double)s->calls_served},
        {"gossip_calls_refused_total",
         "Gossip connections refused: over the limit, or without the key.",
         (double)s->calls_refused},
        {"loop_late_total", "Times that the event loop was 50 ms late.", (double)s->late},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
    node_replication_metrics(g->replication, io_now_us(), p);
}

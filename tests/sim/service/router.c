#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/exchange/exchange.h"
#include "tests/sim/service/service.h"

enum { INDEX_BYTES = 16 << 20, LEAVE_US = 500000 };

/* --- actions --------------------------------------------------------------------------------- */

static struct service_end *end_of(struct net_stream *stream)
{
    return CONTAINER_OF(stream, struct service_end, net);
}

static struct service *service_of(const struct service_router *r)
{
    return (struct service *)(void *)r->node->world;
}

static int do_open_host(void *context, const struct node_address *address, struct net_host **out,
                        unsigned *count)
{
    struct service_router *r = context;
    struct service_host *h = calloc(1, sizeof *h);
    struct service *s = service_of(r);
    CHECK(h != NULL);
    h->service = s;
    h->router = r->node->number;
    h->engine = (unsigned)atoi(strrchr(address->host, '.') + 1) - 1;
    CHECK(h->engine < s->engine_count);
    s->field.hosts[h->router][h->engine] = h;
    *out = &h->host;
    *count = s->field.names ? 0 : 1;
    return 0;
}

static bool do_resolve(struct net_host *host)
{
    struct service_host *h = CONTAINER_OF(host, struct service_host, host);
    if (h->service->field.names)
        service_field_resolve(h);
    return h->service->field.names;
}

static void do_close_host(struct net_host *host)
{
    struct service_host *h = CONTAINER_OF(host, struct service_host, host);
    struct service_host **at = &h->service->field.hosts[h->router][h->engine];
    if (*at == h)
        *at = NULL;
    h->closed = true;
    if (h->asked_us == 0) /* otherwise the look-up owns the address */
        free(h);
}

static void told_short(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_end *e = event->object;
    if (s->world.closing)
        return;
    e->connect_err = (int)(intptr_t)event->b;
    e->connect_known = true;
    service_end_kick(e);
}

static int do_connect(void *context, struct net_host *host, unsigned address,
                      struct net_stream **out)
{
    struct service_host *h = CONTAINER_OF(host, struct service_host, host);
    struct service *s = h->service;
    (void)context;
    bool late;
    int err = service_field_short_of(s, h, &late);
    if (err != 0 && !late)
        return err;
    struct service_end *e = service_end_pair(s);
    e->router = h->router;
    e->peer->engine = h->engine;
    e->address = address < h->known.count ? h->known.ids[address] : 0;
    *out = &e->net;
    if (err == 0) {
        service_end_connect(e);
        return 0;
    }
    e->connecting = true;
    world_put(
        &s->world, 0,
        &(struct world_event){.happen = told_short, .b = (uint64_t)(int64_t)err, .object = e});
    return 0;
}

static ptrdiff_t do_write(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct service_end *e = end_of(stream);
    CHECK(e->open && e->queued_count == 0 && !e->finished);
    if (service_end_fails(e))
        return ERR_CLOSED;
    service_field_writes(e, pieces[0]);
    ptrdiff_t wrote = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t n = service_end_write(e, pieces[i]);
        wrote += (ptrdiff_t)n;
        if (n < pieces[i].len)
            break;
    }
    e->starved = false; /* the proxy queues the rest */
    return wrote;
}

static int do_queue(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct service_end *e = end_of(stream);
    CHECK(e->open && e->queued_count == 0 && count > 0 && count <= NET_PIECES_MAX);
    if (service_end_fails(e))
        return ERR_CLOSED;
    memcpy(e->queued, pieces, count * sizeof *pieces);
    e->queued_count = count;
    service_end_kick(e);
    return 0;
}

static void do_read(struct net_stream *stream, bool on)
{
    struct service_end *e = end_of(stream);
    CHECK(e->open);
    service_end_read(e, on);
}

static uint64_t do_round_trip_us(struct net_stream *stream)
{
    return service_end_round_trip_us(end_of(stream));
}

static void do_finish(struct net_stream *stream)
{
    service_end_finish(end_of(stream));
}

/* True if a client's connection closes because there are too many: this connection, or an idle
 * connection to make room. */
static bool is_turned_away(const struct service_end *e)
{
    struct service_router *r = &e->service->routers[e->router];
    const struct client *c = e->net.owner;
    uint64_t evicted = proxy_stats(r->node->node->proxy)->connections_evicted;
    if (e->peer->engine != SERVICE_NOBODY)
        return false;
    bool idle = evicted != r->evicted;
    r->evicted = evicted;
    return c->surplus || idle;
}

static void do_close(struct net_stream *stream, bool reset)
{
    struct service_end *e = end_of(stream);
    CHECK(!e->closing);
    e->turned_away = is_turned_away(e);
    service_end_close(e, reset);
}

/* --- time ------------------------------------------------------------------------------------ */

void service_router_touch(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    if (!service_router_up(r))
        return;
    proxy_run(r->node->node->proxy, world_mono_us(r->node) / 1000);
    world_touch(r->node);
    service_judge_router(s, router);
}

static void drain_step(struct service *s, struct service_router *r)
{
    struct proxy *p = r->node->node->proxy;
    uint64_t now = s->world.now_us;
    if (!r->closed && now >= r->close_us) {
        r->closed = true;
        r->listening = false;
        proxy_drain(p, true, world_mono_us(r->node) / 1000);
    }
    if (!r->closed)
        return;
    if (now >= r->cut_us)
        service_broken(s, "drain", "router %u: %llu requests after its limit", r->node->number,
                       (unsigned long long)proxy_stats(p)->requests_open);
    if (proxy_clients_open(p) == 0)
        service_router_kill(s, r->node->number);
}

static void again(void *context, struct world_event *event)
{
    struct service *s = context;
    if (!s->world.closing && !service_router_up(&s->routers[event->node]))
        service_router_start(s, event->node);
}

static void tick(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_router *r = &s->routers[event->node];
    struct world_node *n = r->node;
    if (s->world.closing || !n->up || n->life != event->a)
        return;
    if (world_runs(n)) {
        uint64_t now = world_mono_us(n) / 1000;
        discover_tick(n->node->discover, now);
        proxy_tick(n->node->proxy, now);
        admin_tick(n->node->admin);
        if (r->draining)
            drain_step(s, r);
        if (!service_router_up(r)) {
            service_later(s, service_between(s, 100, 2000) * SERVICE_MS, again, event->node, 0,
                          NULL);
            return;
        }
        service_router_touch(s, event->node);
    }
    world_put(&s->world, PROXY_TICK_MS * SERVICE_MS, event);
}

/* --- life ------------------------------------------------------------------------------------ */

static void on_log(void *context, struct slice line)
{
    struct service_router *r = context;
    service_say(service_of(r), "router %u: %.*s", r->node->number, (int)line.len - 1, line.at);
}

static uint64_t on_clock(void *context)
{
    const struct service_router *r = context;
    return world_wall_ms(r->node);
}

static int on_metrics(void *context, struct buf *out)
{
    (void)context;
    return buf_append_cstr(out, "# none\n");
}

static void on_replica(void *context, unsigned replica, bool present)
{
    struct service_router *r = context;
    proxy_replica(r->node->node->proxy, replica, present, world_mono_us(r->node) / 1000);
}

static bool on_forgotten(void *context, unsigned replica)
{
    struct service_router *r = context;
    return proxy_replica_forgotten(r->node->node->proxy, replica);
}

static void replicas_name(struct service *s, struct service_router *r)
{
    struct discover *d = r->node->node->discover;
    struct discover_entry entries[SERVICE_ENGINES_MAX];
    for (unsigned i = 0; i < s->engine_count; i++)
        entries[i] = (struct discover_entry){.name = slice_of_cstr(s->engines[i].name)};
    int source = discover_source(d, "settings", SLICE(""));
    CHECK(source >= 0);
    CHECK(discover_list(d, (unsigned)source, entries, s->engine_count,
                        world_mono_us(r->node) / 1000) == 0);
}

void service_router_start(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    world_start(&s->world, router);
    struct world_node *n = r->node;
    node_router_watch(n->node->router, on_replica, on_forgotten, r);
    replicas_name(s, r);
    CHECK(proxy_start(n->node->proxy, world_mono_us(n) / 1000) == 0);
    r->listening = true;
    r->draining = r->closed = false;
    r->evicted = r->forbidden = 0;
    memset(r->errs, 0, sizeof r->errs);
    r->began_us = s->world.now_us;
    service_say(s, "router %u starts", router);
    service_router_touch(s, router);
    world_put(&s->world, PROXY_TICK_MS * SERVICE_MS,
              &(struct world_event){.happen = tick, .node = router, .a = n->life});
}

void service_router_kill(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    if (!service_router_up(r))
        return;
    service_say(s, "router %u ends", router);
    r->listening = false;
    node_check(r->node->node);
    admin_stop(r->node->node->admin);
    proxy_stop(r->node->node->proxy, world_mono_us(r->node) / 1000);
    service_ends_of_router_drop(s, router);
    if (proxy_body_bytes(r->node->node->proxy) != 0)
        service_broken(s, "held bytes", "router %u: %llu bytes of bodies after its end", router,
                       (unsigned long long)proxy_body_bytes(r->node->node->proxy));
    if (node_router_booked(r->node->node->router) != 0)
        service_broken(s, "bookings", "router %u: %u after its end", router,
                       node_router_booked(r->node->node->router));
    for (struct service_ask *a = s->asks; a; a = a->next) {
        if (!a->ended && a->client->router == router)
            a->routers_ill = true;
    }
    world_kill(&s->world, router);
}

void service_router_drain(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    if (!service_router_up(r) || r->draining)
        return;
    service_say(s, "router %u drains", router);
    r->draining = true;
    r->close_us = s->world.now_us + service_below(s, 3 * SERVICE_S);
    r->cut_us = r->close_us + s->longest_us;
    proxy_drain(r->node->node->proxy, false, world_mono_us(r->node) / 1000);
    service_router_touch(s, router);
}

static void set(struct service *s, struct service_router *r, const char *name, uint64_t value,
                const char *unit)
{
    char text[32];
    struct node_options_error error;
    struct node_option_origin origin = {.source = NODE_SOURCE_FLAG};
    if (node_option_find(slice_of_cstr(name)) < 0)
        return; /* a setting of another build */
    (void)snprintf(text, sizeof text, "%llu%s", (unsigned long long)value, unit);
    if (node_options_set(&r->options, slice_of_cstr(name), slice_of_cstr(text), origin, &error) !=
        0) {
        (void)fprintf(stderr, "%s\n", error.text);
        abort();
    }
    service_say(s, "option %s %s", name, text);
}

/* The greatest limits that the router may compute itself (options.md). */
enum { AUTO_TOKEN_MS = 300000, AUTO_IDLE_MS = 300000 };

static uint64_t token_ms(const struct node_options *o)
{
    uint64_t ms = o->upstream_first_token_timeout_ms;
    return ms == NODE_OPTION_AUTO ? AUTO_TOKEN_MS : ms;
}

static uint64_t idle_ms(const struct node_options *o)
{
    return o->upstream_idle_timeout_ms == NODE_OPTION_AUTO ? AUTO_IDLE_MS
                                                           : o->upstream_idle_timeout_ms;
}

/* The same options for all routers of a run. Waits are short, otherwise a run would take too
 * long. */
static void options_draw(struct service *s)
{
    static const struct {
        const char *name, *unit;
        uint64_t least, most;
    } rows[] = {
        {"client-idle-timeout", "ms", 2000, 6000},
        {"client-head-timeout", "ms", 1000, 3000},
        {"client-body-timeout", "ms", 1000, 3000},
        {"client-body-total-timeout", "ms", 4000, 8000},
        {"client-write-timeout", "ms", 1500, 4000},
        {"upstream-connect-timeout", "ms", 300, 1000},
        {"upstream-first-token-timeout", "ms", 2000, 4000},
        {"upstream-whole-answer-timeout", "ms", 4000, 6000},
        {"upstream-idle-timeout", "ms", 1500, 3000},
        {"request-timeout", "ms", 15000, 25000},
        {"stream-hold", "ms", 500, 3000},
        {"health-interval", "ms", 300, 1000},
        {"health-timeout", "ms", 1500, 2000} /* SGLang's takes more than 1 s */,
        {"health-timeout-sglang", "ms", 1500, 2500},
        {"retries-max", "", 1, 3},
        {"connections-max", "", 8, 40},
        {"queue-timeout", "ms", 1000, 3000},
        {"stall-cut", "ms", 8000, 12000},
    };
    static const struct slice impatient[] = {SLICE("upstream-first-token-timeout"),
                                             SLICE("upstream-idle-timeout")};
    struct service_router *first = &s->routers[0];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool left = false; /* the default */
        for (size_t k = 0; k < ARRAY_LEN(impatient); k++)
            left |= s->patient && slice_equal(slice_of_cstr(rows[i].name), impatient[k]);
        if (!left)
            set(s, first, rows[i].name, service_between(s, rows[i].least, rows[i].most),
                rows[i].unit);
    }
    if (s->field.far) {
        set(s, first, "upstream-connect-timeout", service_between(s, 1000, 2000), "ms");
        set(s, first, "health-timeout", service_between(s, 2500, 3500), "ms");
        set(s, first, "health-timeout-sglang", service_between(s, 2500, 3500), "ms");
    }
    if (s->day == SERVICE_LONE)
        set(s, first, "connections-max", 60, "");
    set(s, first, "body-bytes-max", 65536, "");
    set(s, first, "buffered-bytes-max", service_chance(s, 0.2) ? 262144 : 4 << 20, "");
    if (service_chance(s, 0.7)) /* otherwise the default, which runs out on such days */
        set(s, first, "retry-budget", 1, "");
    if (service_chance(s, 0.3))
        set(s, first, "upstream-connections-max", service_between(s, 6, 16), "");
    if (service_chance(s, 0.2))
        set(s, first, "upstream-keepalive", 0, "");
    s->other_paths = true;
    first->options.other_paths = NODE_PATHS_PASS;
    const struct node_options *o = &first->options;
    s->longest_us =
        SERVICE_MS * (o->client_head_timeout_ms + o->client_write_timeout_ms +
                      8 * o->client_body_timeout_ms +
                      (o->retries_max + 1) * (o->upstream_connect_timeout_ms + token_ms(o) +
                                              o->upstream_whole_answer_timeout_ms + idle_ms(o))) +
        20 * SERVICE_S;
}

void service_routers_open(struct service *s)
{
    CHECK(node_options_init(&s->routers[0].options) == 0);
    options_draw(s);
    for (unsigned i = 0; i < s->router_count; i++) {
        struct service_router *r = &s->routers[i];
        struct world_node *n = r->node = &s->world.nodes[i];
        log_init(&r->log, on_log, on_clock, r);
        r->log.level = s->settings.verbose ? LOG_INFO : LOG_ERROR;
        r->net = (struct net_actions){.context = r,
                                      .open_host = do_open_host,
                                      .resolve = do_resolve,
                                      .close_host = do_close_host,
                                      .connect = do_connect,
                                      .write = do_write,
                                      .queue = do_queue,
                                      .read = do_read,
                                      .round_trip_us = do_round_trip_us,
                                      .finish = do_finish,
                                      .close = do_close};
        node_config_of(&n->config, &s->routers[0].options);
        n->config.state.index_bytes = INDEX_BYTES;
        n->config.router.seed = s->settings.seed * 31 + i + 1;
        n->config.stored_responses = 64;
        n->config.replication.has_seeds = i > 0;
        n->config.replication.admin = "127.0.0.1:9000";
        n->config.keyring = s->router_count > 1 ? &n->keyring : NULL;
        n->config.proxy.net = &r->net;
        n->config.proxy.log = n->config.admin.log = &r->log;
        n->config.admin.metrics = on_metrics;
    }
}

void service_routers_free(struct service *s)
{
    for (unsigned i = 0; i < s->router_count; i++)
        service_router_kill(s, i);
    node_options_free(&s->routers[0].options);
}

#include "tests/lib/proxy_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/exchange/exchange.h"
#include "tests/lib/proxy_hosts.h"
#include "tests/lib/proxy_trace.h"
#include "tests/lib/world/memory.h"

/* The world's memory is not under test. */
static void append(struct buf *out, struct slice bytes)
{
    world_spare(true);
    CHECK(buf_append_slice(out, bytes) == 0);
    world_spare(false);
}

#define NOTE(w, ...)                                                                               \
    do {                                                                                           \
        if ((w)->traced)                                                                           \
            CHECK(buf_printf(&(w)->trace, __VA_ARGS__) == 0);                                      \
    } while (0)

/* --- the trace ------------------------------------------------------------------------------- */

static void note_written(struct wire *wire, const char *verb, struct slice bytes)
{
    struct proxy_world *w = wire->world;
    NOTE(w, "%s %s:", verb, wire->name);
    if (w->traced)
        proxy_trace_message(&w->trace, bytes);
    NOTE(w, "\n");
}

/* Notes the booked replica of each client's request, and checks that there are no other
 * bookings. */
static void note_bookings(struct proxy_world *w)
{
    unsigned open = 0;
    for (unsigned i = 0; i < w->wire_count; i++) {
        const struct wire *wire = &w->wires[i];
        if (wire->replica >= 0)
            continue;
        const struct client *c = wire->closed ? NULL : wire->stream.owner;
        const struct exchange *x = c != NULL ? c->exchange : NULL;
        bool booked = x != NULL && x->now.booked;
        open += booked;
        char at = booked ? (char)('1' + x->now.decision.replica) : 0;
        uint64_t booking = 0;
        if (booked)
            booking = (uint64_t)x->now.decision.booking.slot << 32 | x->now.decision.booking.stamp;
        if (booking == w->booked[i].booking && at == w->booked[i].at)
            continue;
        if (w->booked[i].at != 0)
            NOTE(w, "release %s at %c\n", wire->name, w->booked[i].at);
        if (at != 0)
            NOTE(w, "book %s at %c\n", wire->name, at);
        w->booked[i].at = at;
        w->booked[i].booking = booking;
    }
    CHECK(node_router_booked(w->node->router) == open);
}

static void on_log(void *context, struct slice line)
{
    struct proxy_world *w = context;
    /* Time, level, event. The name is enough, except for the consequence of a failure, the reason
     * of a request's bad end, and the replicas of poison. */
    (void)slice_cut(&line, ' ');
    line = slice_trim(line);
    (void)slice_cut(&line, ' ');
    line = slice_trim(line);
    struct slice name = slice_of(line.at, slice_find(line, ' '));
    const char *then = memmem(line.at, line.len, " then=", strlen(" then="));
    struct slice rest = then != NULL ? slice_skip(line, (size_t)(then - line.at)) : slice_of("", 0);
    rest.len -= rest.len > 0; /* the newline */
    char end[128];
    proxy_trace_log_end(end, name, line);
    NOTE(w, "log %.*s%.*s%s\n", SLICE_ARG(name), SLICE_ARG(rest), end);
}

static uint64_t on_clock(void *context)
{
    const struct proxy_world *w = context;
    return w->now_ms;
}

/* --- actions --------------------------------------------------------------------------------- */

static struct wire *wire_of(struct net_stream *stream)
{
    return CONTAINER_OF(stream, struct wire, stream);
}

static struct wire *new_wire(struct proxy_world *w)
{
    if (w->wire_count == WORLD_WIRES_MAX)
        return NULL;
    struct wire *wire = &w->wires[w->wire_count++];
    *wire = (struct wire){.world = w, .used = true, .replica = -1, .room = SIZE_MAX};
    return wire;
}

static int do_connect(void *context, struct net_host *host, unsigned address,
                      struct net_stream **out)
{
    struct proxy_world *w = context;
    unsigned at = proxy_hosts_address(host, address);
    unsigned replica = proxy_hosts_replica(host);
    CHECK(replica < WORLD_REPLICAS_MAX);
    int err = w->connect_error != 0 ? w->connect_error : proxy_world_shortage(w, (int)replica);
    struct wire *wire = err != 0 ? NULL : new_wire(w);
    if (wire == NULL) {
        NOTE(w, "cannot connect to %u\n", replica + 1);
        w->connect_error = 0;
        return err != 0 ? err : ERR_FULL;
    }
    unsigned n = w->connects[replica]++;
    (void)snprintf(wire->name, sizeof wire->name, "%u%c", replica + 1, 'a' + (int)(n % 26));
    wire->replica = (int)replica;
    wire->connecting = true;
    *out = &wire->stream;
    NOTE(w, at > 1 ? "connect %s at address %u\n" : "connect %s\n", wire->name, at);
    return 0;
}

static ptrdiff_t do_write(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing && !wire->connecting && wire->queued_count == 0);
    if (wire->peer_broke || wire->deaf)
        return ERR_CLOSED;
    size_t before = wire->out.len;
    for (unsigned i = 0; i < count && wire->room > 0; i++) {
        size_t n = pieces[i].len < wire->room ? pieces[i].len : wire->room;
        append(&wire->out, slice_of(pieces[i].at, n));
        wire->room -= wire->room == SIZE_MAX ? 0 : n;
    }
    if (wire->out.len > before)
        note_written(wire, "to", slice_skip(buf_slice(&wire->out), before));
    return (ptrdiff_t)(wire->out.len - before);
}

static int do_queue(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing && wire->queued_count == 0 && count > 0 &&
          count <= ARRAY_LEN(wire->queued));
    if (wire->peer_broke || wire->deaf)
        return ERR_CLOSED;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        wire->queued[i] = pieces[i];
        bytes += pieces[i].len;
    }
    wire->queued_count = count;
    wire->late = wire->room != SIZE_MAX;
    if (wire->late)
        NOTE(wire->world, "queue for %s: %zu bytes\n", wire->name, bytes);
    return 0;
}

static void do_read(struct net_stream *stream, bool on)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing);
    if (wire->reading && !on)
        NOTE(wire->world, "pause %s\n", wire->name);
    else if (!wire->reading && on && (wire->in.len > 0 || wire->out.len > 0))
        NOTE(wire->world, "resume %s\n", wire->name);
    wire->reading = on;
}

static uint64_t do_round_trip_us(struct net_stream *stream)
{
    return wire_of(stream)->world->round_trip_us;
}

static void do_finish(struct net_stream *stream)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing && !wire->finished);
    wire->finished = true;
    NOTE(wire->world, "finish %s\n", wire->name);
}

static void do_close(struct net_stream *stream, bool reset)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing);
    wire->closing = true;
    wire->reset = reset;
    NOTE(wire->world, "%s %s\n", reset ? "reset" : "close", wire->name);
}

/* --- events ---------------------------------------------------------------------------------- */

static bool deliver_bytes(struct proxy_world *w, struct wire *wire)
{
    const struct net_events *events = wire->stream.events;
    struct slice room = slice_of(NULL, 0);
    if (events->room != NULL)
        room = events->room(wire->stream.owner);
    if (room.len == 0)
        room = slice_of(w->read_buffer, sizeof w->read_buffer);
    size_t n = wire->in.len < room.len ? wire->in.len : room.len;
    memcpy((char *)room.at, wire->in.at, n);
    buf_consume(&wire->in, n);
    events->received(wire->stream.owner, slice_of(room.at, n), w->now_ms);
    return true;
}

/* The kernel accepts queued bytes. False: none now. */
static bool deliver_queued(struct proxy_world *w, struct wire *wire)
{
    const struct net_events *events = wire->stream.events;
    if (wire->peer_broke || wire->deaf) {
        wire->queued_count = 0;
        events->written(wire->stream.owner, ERR_CLOSED, w->now_ms);
        return true;
    }
    size_t before = wire->out.len;
    unsigned taken = 0;
    for (; taken < wire->queued_count && wire->room > 0; taken++) {
        struct slice *piece = &wire->queued[taken];
        size_t n = piece->len < wire->room ? piece->len : wire->room;
        append(&wire->out, slice_of(piece->at, n));
        wire->room -= wire->room == SIZE_MAX ? 0 : n;
        *piece = slice_skip(*piece, n);
        if (piece->len > 0)
            break;
    }
    if (wire->out.len == before)
        return false;
    note_written(wire, wire->late ? "later to" : "to", slice_skip(buf_slice(&wire->out), before));
    wire->queued_count -= taken;
    memmove(wire->queued, wire->queued + taken, wire->queued_count * sizeof wire->queued[0]);
    if (wire->queued_count == 0)
        events->written(wire->stream.owner, 0, w->now_ms);
    return true;
}

/* Delivers the next event due on this wire. False: none. */
static bool deliver(struct proxy_world *w, struct wire *wire)
{
    if (!wire->used || wire->closed)
        return false;
    const struct net_events *events = wire->stream.events;
    if (wire->closing) {
        wire->closed = true;
        events->closed(wire->stream.owner);
        return true;
    }
    if (wire->connecting)
        return false;
    if (wire->queued_count > 0 && deliver_queued(w, wire))
        return true;
    if (!wire->reading)
        return false;
    if (wire->in.len > 0)
        return deliver_bytes(w, wire);
    if (!wire->peer_ended)
        return false;
    wire->peer_ended = false;
    events->ended(wire->stream.owner, wire->peer_broke ? ERR_CLOSED : 0, w->now_ms);
    return true;
}

void proxy_world_settle(struct proxy_world *w)
{
    bool any = true;
    while (any) {
        any = false;
        for (unsigned i = 0; i < w->wire_count; i++) {
            while (deliver(w, &w->wires[i]))
                any = true;
        }
        proxy_run(w->proxy, w->now_ms);
    }
    world_spare(true);
    note_bookings(w);
    proxy_check(w->proxy);
    enum { EVERY = 32 }; /* a check walks the whole index */
    if ((w->stopped && !w->strangers) || (w->traced && w->settled++ % EVERY == 0))
        node_router_check(w->node->router);
    world_spare(false);
}

struct wire *proxy_world_connect(struct proxy_world *w, enum proxy_port port)
{
    struct wire *wire = new_wire(w);
    if (wire == NULL)
        return NULL;
    unsigned n = 0;
    for (unsigned i = 0; i + 1 < w->wire_count; i++)
        n += w->wires[i].replica < 0;
    (void)snprintf(wire->name, sizeof wire->name, n < 26 ? "%c" : "%c%u", 'A' + (int)(n % 26),
                   n / 26);
    const char *peer = w->peer[0] != '\0'          ? w->peer
                       : port != PROXY_PORT_CLIENT ? "127.0.0.1"
                                                   : "192.0.2.7";
    if (proxy_accept(w->proxy, &wire->stream, port, peer, w->now_ms) != 0) {
        wire->used = false;
        wire->closed = true;
        return NULL;
    }
    proxy_world_settle(w);
    return wire;
}

void proxy_world_accept(struct proxy_world *w, struct wire *wire, int err)
{
    if (!wire->connecting || wire->closing)
        return;
    wire->connecting = false;
    wire->stream.events->connected(wire->stream.owner, err, w->now_ms);
    proxy_world_settle(w);
}

void proxy_world_send(struct proxy_world *w, struct wire *wire, struct slice bytes)
{
    append(&wire->in, bytes);
    proxy_world_settle(w);
}

void proxy_world_end(struct proxy_world *w, struct wire *wire, bool broke)
{
    wire->peer_ended = true;
    wire->peer_broke = broke;
    proxy_world_settle(w);
}

void proxy_world_deafen(struct proxy_world *w, struct wire *wire)
{
    wire->deaf = true;
    proxy_world_settle(w);
}

void proxy_world_room(struct proxy_world *w, struct wire *wire, size_t bytes)
{
    wire->room = bytes;
    proxy_world_settle(w);
}

static void tick(struct proxy_world *w, uint64_t ms)
{
    bool due = !w->strangers || (w->now_ms + ms) / 1000 != w->now_ms / 1000; /* as the shell does */
    w->now_ms += ms;
    if (due)
        node_router_tick(w->node->router, w->now_ms);
    if (w->now_ms >= proxy_due_ms(w->proxy) || ms < PROXY_TICK_MS)
        proxy_tick(w->proxy, w->now_ms);
    admin_tick(w->node->admin);
    proxy_world_settle(w);
}

void proxy_world_wait(struct proxy_world *w, uint64_t ms)
{
    uint64_t until = w->now_ms + ms;
    while (w->now_ms < until) {
        tick(w, until - w->now_ms < PROXY_TICK_MS ? until - w->now_ms : PROXY_TICK_MS);
    }
}

void proxy_world_stand_still(struct proxy_world *w, uint64_t ms)
{
    tick(w, ms);
}

void proxy_world_key(struct proxy_world *w, struct slice key)
{
    w->key = key;
    w->key_version++;
}

void proxy_world_drain(struct proxy_world *w, bool closed)
{
    proxy_drain(w->proxy, closed, w->now_ms);
    proxy_world_settle(w);
}

struct wire *proxy_world_find(struct proxy_world *w, struct slice name)
{
    for (unsigned i = w->wire_count; i-- > 0;) {
        if (w->wires[i].used && slice_equal(name, slice_of_cstr(w->wires[i].name)))
            return &w->wires[i];
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------ */

static int on_metrics(void *context, struct buf *out)
{
    (void)context;
    return buf_append_cstr(out, "# none\n");
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    memset(out, 0x5a, len); /* equal in each run */
}

static void set_options(struct proxy_world *w, const char *const *settings)
{
    struct node_options_error error;
    CHECK(node_options_init(&w->options) == 0);
    struct node_option_origin origin = {.source = NODE_SOURCE_FLAG};
    for (; settings != NULL && settings[0] != NULL; settings += 2) {
        if (node_options_set(&w->options, slice_of_cstr(settings[0]), slice_of_cstr(settings[1]),
                             origin, &error) != 0)
            fputs(error.text, stderr), abort();
    }
}

static struct slice on_key(void *context, unsigned *version)
{
    const struct proxy_world *w = context;
    *version = w->key_version;
    return w->key;
}

static void name_replica(const struct proxy_world *w, unsigned replica,
                         struct node_address *address, char name[NODE_HOST_BYTES + 8])
{
    *address = (struct node_address){.port = 8000};
    (void)snprintf(address->host, sizeof address->host, w->names ? "engine.%u" : "10.0.0.%u",
                   replica + 1);
    (void)snprintf(name, NODE_HOST_BYTES + 8, "%s:8000", address->host);
}

void proxy_world_wish(struct proxy_world *w, unsigned replica, bool present)
{
    struct node_address address;
    char name[NODE_HOST_BYTES + 8];
    name_replica(w, replica, &address, name);
    int at = node_router_replica_wish(w->node->router, slice_of_cstr(name),
                                      present ? NODE_REPLICA_ADD : NODE_REPLICA_REMOVE,
                                      NODE_ENGINE_VLLM);
    CHECK(at == (int)replica);
    proxy_replica(w->proxy, replica, present, w->now_ms);
    proxy_world_settle(w);
}

static void add_replicas(struct proxy_world *w, const struct proxy_world_config *config)
{
    CHECK(config->replicas <= WORLD_REPLICAS_MAX);
    enum log_level level = w->log.level;
    w->log.level = LOG_ERROR; /* the router's warnings say nothing new */
    for (unsigned i = 0; i < config->replicas; i++) {
        struct node_address address;
        char name[NODE_HOST_BYTES + 8];
        name_replica(w, i, &address, name);
        int replica = node_router_name(w->node->router, slice_of_cstr(name), config->engine);
        CHECK(replica == (int)i);
        proxy_replica(w->proxy, i, true, w->now_ms);
        if (!config->probes)
            node_router_probed(w->node->router, i, (struct node_check){.ok = true}, w->now_ms);
    }
    w->log.level = level;
    if (config->probes)
        CHECK(proxy_start(w->proxy, w->now_ms) == 0);
}

void proxy_world_open(struct proxy_world *w, const struct proxy_world_config *config)
{
    memset(w, 0, sizeof *w);
    w->now_ms = WORLD_NOW_MS;
    w->traced = !config->quiet;
    w->names = config->names;
    w->strangers = config->strangers;
    if (config->key != NULL)
        proxy_world_key(w, slice_of_cstr(config->key));
    set_options(w, config->settings);
    log_init(&w->log, on_log, on_clock, w);
    struct node_config node;
    node_config_of(&node, &w->options);
    node.state.index_bytes = 8 << 20; /* small, because each story has a separate world */
    node.state.now_ms = node.state.wall_ms = w->now_ms;
    node.router.seed = config->seed;
    node.stored_responses = 64;
    w->net = (struct net_actions){.context = w,
                                  .open_host = proxy_hosts_open,
                                  .resolve = proxy_hosts_resolve,
                                  .close_host = proxy_hosts_close,
                                  .connect = do_connect,
                                  .write = do_write,
                                  .queue = do_queue,
                                  .read = do_read,
                                  .round_trip_us = do_round_trip_us,
                                  .finish = do_finish,
                                  .close = do_close};
    node.proxy.net = &w->net;
    node.proxy.log = node.admin.log = &w->log;
    node.proxy.replica_key = config->key != NULL ? on_key : NULL;
    node.proxy.replica_key_context = w;
    if (config->client_keys != NULL) {
        struct access_table *table;
        char message[ACCESS_MESSAGE_BYTES];
        CHECK(access_create(&w->access) == 0);
        CHECK(access_table_create(&table, slice_of_cstr(config->client_keys), message) == 0);
        access_take(w->access, table);
    }
    node.proxy.access = w->access;
    node.proxy.admin_connections_max = config->admin_connections;
    node.admin.metrics = on_metrics;
    static struct gossip_keyring keyring;
    if (config->joins) {
        gossip_keyring_insecure(&keyring);
        node.keyring = &keyring;
        node.replication.gossip.name = "router-0";
        node.replication.has_seeds = true;
        node.state.index_bytes = 16 << 20; /* a shared state needs more */
    }
    struct node_replication_io io = {.context = w, .random = on_random};
    if (config->shape != NULL)
        config->shape(config->context, &node);
    CHECK(node_create(&w->node, &node, config->io != NULL ? config->io : &io, w->now_ms * 1000) ==
          0);
    w->proxy = w->node->proxy;
    add_replicas(w, config);
    proxy_world_settle(w);
}

void proxy_world_stop(struct proxy_world *w)
{
    if (!w->stopped) { /* in the shell's order */
        admin_stop(w->node->admin);
        proxy_stop(w->proxy, w->now_ms);
    }
    w->stopped = true;
    proxy_world_settle(w);
}

void proxy_world_close(struct proxy_world *w)
{
    proxy_world_stop(w);
    struct buf text = {0}; /* the counters can be shown, whatever happened */
    struct prometheus metrics = prometheus_of(&text, "grapevine_");
    proxy_metrics(w->proxy, &metrics);
    CHECK(prometheus_finish(&metrics) == 0 && text.len > 0);
    buf_free(&text);
    CHECK(proxy_body_bytes(w->proxy) == 0);
    for (unsigned i = 0; i < w->wire_count; i++) {
        CHECK(w->wires[i].closed);
        buf_free(&w->wires[i].in);
        buf_free(&w->wires[i].out);
    }
    node_destroy(w->node);
    access_destroy(w->access);
    node_options_free(&w->options);
    buf_free(&w->trace);
}

#include "tests/lib/proxy_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/exchange.h"

struct world_host {
    struct net_host host;
    unsigned replica;
};

#define NOTE(w, ...)                                                                               \
    do {                                                                                           \
        if ((w)->traced)                                                                           \
            CHECK(buf_printf(&(w)->trace, __VA_ARGS__) == 0);                                      \
    } while (0)

void proxy_world_escape(struct buf *out, struct slice bytes, size_t max)
{
    size_t n = bytes.len < max ? bytes.len : max;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes.at[i];
        int err = c == '\r'                         ? buf_append_cstr(out, "\\r")
                  : c == '\n'                       ? buf_append_cstr(out, "\\n")
                  : c == '"'                        ? buf_append_cstr(out, "\\\"")
                  : c < ' ' || c > '~' || c == '\\' ? buf_printf(out, "\\x%02x", c)
                                                    : buf_append_char(out, (char)c);
        CHECK(err == 0);
    }
    if (n < bytes.len)
        CHECK(buf_printf(out, "... %zu bytes", bytes.len) == 0);
}

/* --- the trace ------------------------------------------------------------------------------- */

/* A head is told by its first line and what frames it; a body as it is. */
static void note_bytes(struct proxy_world *w, struct slice bytes)
{
    static const char *const shown[] = {"content-length", "transfer-encoding", "connection",
                                        "retry-after", "allow"};
    struct slice line = slice_of(bytes.at, slice_find(bytes, '\r'));
    const char *end = memmem(bytes.at, bytes.len, "\r\n\r\n", 4);
    bool head = end != NULL && (slice_starts_with(line, SLICE("HTTP/1.1 ")) ||
                                slice_ends_with(line, SLICE(" HTTP/1.1")));
    if (head) {
        struct slice lines = slice_of(bytes.at, (size_t)(end - bytes.at));
        NOTE(w, " %.*s", SLICE_ARG(line));
        while (lines.len > 0) {
            struct slice field = slice_trim(slice_cut(&lines, '\n'));
            struct slice name = slice_of(field.at, slice_find(field, ':'));
            for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
                if (slice_equal_nocase(name, slice_of_cstr(shown[i])))
                    NOTE(w, "; %.*s", (int)slice_find(field, '\r'), field.at);
            }
        }
        bytes = slice_skip(bytes, (size_t)(end - bytes.at) + 4);
    }
    if (bytes.len == 0)
        return;
    NOTE(w, " \"");
    if (w->traced)
        proxy_world_escape(&w->trace, bytes, 200);
    NOTE(w, "\"");
}

static void note_written(struct wire *wire, const char *verb, struct slice bytes)
{
    struct proxy_world *w = wire->world;
    NOTE(w, "%s %s:", verb, wire->name);
    note_bytes(w, bytes);
    NOTE(w, "\n");
}

/* Which replica each client's request is booked at. */
static void note_bookings(struct proxy_world *w)
{
    for (unsigned i = 0; i < w->wire_count; i++) {
        const struct wire *wire = &w->wires[i];
        if (wire->replica >= 0)
            continue;
        const struct client *c = wire->closed ? NULL : wire->stream.owner;
        const struct exchange *x = c != NULL ? c->exchange : NULL;
        char at = x != NULL && x->booked ? (char)('1' + x->decision.replica) : 0;
        if (at == w->booked[i])
            continue;
        if (w->booked[i] != 0)
            NOTE(w, "release %s at %c\n", wire->name, w->booked[i]);
        if (at != 0)
            NOTE(w, "book %s at %c\n", wire->name, at);
        w->booked[i] = at;
    }
}

static void on_log(void *context, struct slice line)
{
    struct proxy_world *w = context;
    /* Time, level, event: the name is enough. */
    (void)slice_cut(&line, ' ');
    line = slice_trim(line);
    (void)slice_cut(&line, ' ');
    line = slice_trim(line);
    struct slice name = slice_of(line.at, slice_find(line, ' '));
    NOTE(w, "log %.*s\n", SLICE_ARG(name));
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

static int do_open_host(void *context, const struct node_address *address, struct net_host **out,
                        unsigned *count)
{
    (void)context;
    struct world_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return ERR_NOMEM;
    h->replica = (unsigned)atoi(strrchr(address->host, '.') + 1) - 1;
    *out = &h->host;
    *count = 1;
    return 0;
}

static bool do_resolve(struct net_host *host, unsigned used)
{
    (void)host, (void)used;
    return false;
}

static void do_close_host(struct net_host *host)
{
    free(CONTAINER_OF(host, struct world_host, host));
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
    CHECK(address == 0);
    unsigned replica = CONTAINER_OF(host, struct world_host, host)->replica;
    CHECK(replica < WORLD_REPLICAS_MAX);
    struct wire *wire = w->connect_fails ? NULL : new_wire(w);
    if (wire == NULL) {
        NOTE(w, "cannot connect to %u\n", replica + 1);
        w->connect_fails = false;
        return ERR_UNREACHABLE;
    }
    unsigned n = w->connects[replica]++;
    (void)snprintf(wire->name, sizeof wire->name, "%u%c", replica + 1, 'a' + (int)(n % 26));
    wire->replica = (int)replica;
    wire->connecting = true;
    *out = &wire->stream;
    NOTE(w, "connect %s\n", wire->name);
    return 0;
}

static ptrdiff_t do_write(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct wire *wire = wire_of(stream);
    CHECK(!wire->closing && !wire->connecting && wire->queued_count == 0);
    if (wire->peer_broke)
        return ERR_CLOSED;
    size_t before = wire->out.len;
    for (unsigned i = 0; i < count && wire->room > 0; i++) {
        size_t n = pieces[i].len < wire->room ? pieces[i].len : wire->room;
        CHECK(buf_append(&wire->out, pieces[i].at, n) == 0);
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
    if (wire->peer_broke)
        return ERR_CLOSED;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        wire->queued[i] = pieces[i];
        bytes += pieces[i].len;
    }
    wire->queued_count = count;
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

/* The next event that is due on this wire. False: there is none. */
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
    if (wire->peer_broke && wire->queued_count > 0) {
        wire->queued_count = 0;
        events->written(wire->stream.owner, ERR_CLOSED, w->now_ms);
        return true;
    }
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

static void settle(struct proxy_world *w)
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
    note_bookings(w);
    node_check(w->node);
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
    if (proxy_accept(w->proxy, &wire->stream, port, "192.0.2.7", w->now_ms) != 0) {
        wire->used = false;
        wire->closed = true;
        return NULL;
    }
    settle(w);
    return wire;
}

void proxy_world_accept(struct proxy_world *w, struct wire *wire, int err)
{
    if (!wire->connecting || wire->closing)
        return;
    wire->connecting = false;
    wire->stream.events->connected(wire->stream.owner, err, w->now_ms);
    settle(w);
}

void proxy_world_send(struct proxy_world *w, struct wire *wire, struct slice bytes)
{
    CHECK(buf_append_slice(&wire->in, bytes) == 0);
    settle(w);
}

void proxy_world_end(struct proxy_world *w, struct wire *wire, bool broke)
{
    wire->peer_ended = true;
    wire->peer_broke = broke;
    settle(w);
}

void proxy_world_room(struct proxy_world *w, struct wire *wire, size_t bytes)
{
    wire->room = bytes;
    size_t wanted = 0;
    for (unsigned i = 0; i < wire->queued_count; i++)
        wanted += wire->queued[i].len;
    if (wire->queued_count > 0 && wanted <= bytes && !wire->closing && !wire->peer_broke) {
        size_t before = wire->out.len;
        for (unsigned i = 0; i < wire->queued_count; i++)
            CHECK(buf_append_slice(&wire->out, wire->queued[i]) == 0);
        wire->queued_count = 0;
        wire->room -= wire->room == SIZE_MAX ? 0 : wanted;
        note_written(wire, "later to", slice_skip(buf_slice(&wire->out), before));
        wire->stream.events->written(wire->stream.owner, 0, w->now_ms);
    }
    settle(w);
}

void proxy_world_wait(struct proxy_world *w, uint64_t ms)
{
    uint64_t until = w->now_ms + ms;
    while (w->now_ms < until) {
        w->now_ms += until - w->now_ms < PROXY_TICK_MS ? until - w->now_ms : PROXY_TICK_MS;
        node_router_tick(w->node->router, w->now_ms);
        proxy_tick(w->proxy, w->now_ms);
        settle(w);
    }
}

void proxy_world_drain(struct proxy_world *w, bool closed)
{
    proxy_drain(w->proxy, closed, w->now_ms);
    settle(w);
}

struct wire *proxy_world_find(struct proxy_world *w, struct slice name)
{
    for (unsigned i = w->wire_count; i-- > 0;) {
        if (w->wires[i].used && slice_equal(name, slice_of_cstr(w->wires[i].name)))
            return &w->wires[i];
    }
    return NULL;
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    memset(out, 0x5a, len); /* the same in each run */
}

/* --- life ------------------------------------------------------------------------------------ */

static int on_metrics(void *context, struct buf *out)
{
    (void)context;
    return buf_append_cstr(out, "# none\n");
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

static void add_replicas(struct proxy_world *w, unsigned count, bool probes)
{
    CHECK(count <= WORLD_REPLICAS_MAX);
    for (unsigned i = 0; i < count; i++) {
        struct node_address address = {.port = 8000};
        char name[NODE_HOST_BYTES + 8];
        (void)snprintf(address.host, sizeof address.host, "10.0.0.%u", i + 1);
        (void)snprintf(name, sizeof name, "%s:8000", address.host);
        int replica =
            node_router_replica_add(w->node->router, slice_of_cstr(name), NODE_ENGINE_VLLM);
        CHECK(replica == (int)i);
        proxy_replica_configured(w->proxy, i, &address, w->now_ms);
        if (!probes)
            node_router_probed(w->node->router, i, true, false, w->now_ms);
    }
    if (probes)
        CHECK(proxy_start(w->proxy, w->now_ms) == 0);
}

void proxy_world_open(struct proxy_world *w, const struct proxy_world_config *config)
{
    memset(w, 0, sizeof *w);
    w->now_ms = WORLD_NOW_MS;
    w->traced = !config->quiet;
    set_options(w, config->settings);
    log_init(&w->log, on_log, on_clock, w);
    struct node_config node;
    node_config_of(&node, &w->options);
    node.state.index_bytes = 16 << 20; /* small: a world is made for each story */
    node.state.now_ms = node.state.wall_ms = w->now_ms;
    node.router.seed = config->seed;
    node.stored_responses = 64;
    w->net = (struct net_actions){.context = w,
                                  .open_host = do_open_host,
                                  .resolve = do_resolve,
                                  .close_host = do_close_host,
                                  .connect = do_connect,
                                  .write = do_write,
                                  .queue = do_queue,
                                  .read = do_read,
                                  .finish = do_finish,
                                  .close = do_close};
    node.proxy.net = &w->net;
    node.proxy.log = node.admin.log = &w->log;
    node.admin.metrics = on_metrics;
    struct node_replication_io io = {.context = w, .random = on_random};
    CHECK(node_create(&w->node, &node, &io, w->now_ms * 1000) == 0);
    w->proxy = w->node->proxy;
    add_replicas(w, config->replicas, config->probes);
    settle(w);
}

void proxy_world_close(struct proxy_world *w)
{
    proxy_stop(w->proxy, w->now_ms);
    settle(w);
    CHECK(proxy_body_bytes(w->proxy) == 0);
    for (unsigned i = 0; i < w->wire_count; i++) {
        CHECK(w->wires[i].closed);
        buf_free(&w->wires[i].in);
        buf_free(&w->wires[i].out);
    }
    node_destroy(w->node);
    node_options_free(&w->options);
    buf_free(&w->trace);
}

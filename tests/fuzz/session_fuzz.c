/* Whole sessions: clients, engines, operators and two routers in a process, over the pure core, in
 * virtual time. The input is a script: settings first, then steps. Clients connect, send requests
 * of every API (correct, changed or raw), stop reading, half-close, reset. Engines accept, refuse,
 * answer well or badly, also without a request. A second router joins through the real gossip, over
 * a network that loses, doubles, reorders and changes packets. Operators ask, add and remove; time
 * passes. The other targets check each piece; this target checks the pieces together.
 *
 *   1. The invariants of all parts are true after each step (proxy_check) and at the end
 *      (node_check).
 *   2. No client gets an engine's answer to another client's request, nor an unrequested answer. On
 *      a connection, an engine only gets prompts of the client being answered
 *      (tests/fuzz/lib/session.h, marks).
 *   3. When all peers fall silent, each connection ends within the time limits. By then a client
 *      has an answer if it sent a whole request and did nothing wrong.
 *   4. Then nothing is booked, waits or is in use, and no memory is left.
 *   5. Routers without changed packets agree in the end.
 *
 * Seeds: tests/fuzz/lib/session_seeds.py. */
#include "node/proxy/proxy_internal.h"
#include "node/route/router_internal.h"
#include "tests/fuzz/lib/session_answer.h"
#include "tests/fuzz/lib/session_cluster.h"
#include "tests/fuzz/lib/session_memory.h"
#include "tests/fuzz/lib/session_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the rules ------------------------------------------------------------------------------- */

static void look_at(struct router *r, struct peer *p)
{
    struct slice fresh = slice_skip(buf_slice(&p->wire->out), p->looked);
    int self = (int)(r->number * WORLD_WIRES_MAX) + (int)(p - r->peers);
    int owner = p->wire->replica < 0 ? self : owner_of(r, p->wire);
    if (fresh.len > 0 && p->port == PROXY_PORT_CLIENT && (p->wire->replica < 0 || owner != NOBODY))
        marks_check(fresh, owner, p->wire->replica < 0 ? self : p->owner_before);
    p->owner_before = owner;
    size_t keep = MARK_BYTES - 1; /* a mark cut by the end of the bytes */
    p->looked = p->wire->out.len - (fresh.len < keep ? fresh.len : keep);
}

static void look(struct session *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        struct router *r = &s->routers[k];
        for (unsigned i = 0; i < r->world.wire_count; i++) {
            struct peer *p = &r->peers[i];
            if (p->wire == NULL)
                *p = (struct peer){
                    .wire = &r->world.wires[i], .owner = NOBODY, .owner_before = NOBODY};
            if (p->wire->used && p->wire->out.len > p->looked)
                look_at(r, p);
        }
    }
}

/* --- steps ----------------------------------------------------------------------------------- */

static void go(struct router *r, struct peer *p, bool breaks)
{
    if (p->gone || p->wire->connecting || p->wire->closing)
        return;
    p->gone = true;
    proxy_world_end(&r->world, p->wire, breaks);
}

static void limit_room(struct session *s, struct router *r, struct peer *p)
{
    unsigned b = byte(s);
    p->slow = true;
    proxy_world_room(&r->world, p->wire, b < 40 ? 0 : b < 200 ? (size_t)b * b : SIZE_MAX);
}

static void send_raw(struct session *s, struct router *r, struct peer *p)
{
    struct slice raw = piece(s);
    size_t front = p->pending.len;
    CHECK(buf_append_slice(&p->pending, raw) == 0);
    for (size_t i = front; i + 1 < p->pending.len; i++) { /* remove marks other than this
                                                           * program's */
        if (p->pending.at[i] == 'Z' && p->pending.at[i + 1] == 'Q')
            p->pending.at[i] = 'z';
    }
    p->raw = p->raw || raw.len > 0;
    send_some(r, p, SIZE_MAX);
}

static struct peer *connect(struct session *s, struct router *r, enum proxy_port port,
                            unsigned address)
{
    (void)snprintf(r->world.peer, sizeof r->world.peer,
                   port == PROXY_PORT_CLIENT ? "192.0.2.%u" : "127.0.0.1", address);
    struct wire *wire = proxy_world_connect(&r->world, port);
    look(s);
    if (wire == NULL)
        return NULL;
    struct peer *p = &r->peers[wire - r->world.wires];
    p->port = port;
    return p;
}

/* Completes all open actions successfully. */
static void flow(struct session *s)
{
    cluster_flow(s);
    for (unsigned k = 0; k < s->router_count; k++) {
        struct router *r = &s->routers[k];
        for (unsigned i = 0; i < r->world.wire_count; i++) {
            struct peer *p = &r->peers[i];
            if (!p->wire->used || p->wire->closing)
                continue;
            if (p->wire->connecting)
                proxy_world_accept(&r->world, p->wire, 0);
            look(s);
            if (p->wire->replica >= 0)
                make_reply(s, r, p, 0, BY_LENGTH, REPLY_WHOLE);
            send_some(r, p, SIZE_MAX);
            look(s);
        }
    }
}

static void wait(struct session *s, uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < PROXY_TICK_MS ? ms : PROXY_TICK_MS;
        ms -= step;
        for (unsigned i = 0; i < s->router_count; i++) {
            struct router *r = &s->routers[i];
            uint64_t now = r->world.now_ms + step;
            node_state_wall(r->world.node->state, now + 1000, now);
            discover_tick(r->world.node->discover, now);
            proxy_world_wait(&r->world, step);
        }
        cluster_run(s);
        if (!s->held)
            cluster_flow(s);
    }
}

static void step_client(struct session *s, unsigned what)
{
    struct router *r;
    if (what == 0) {
        unsigned b = byte(s);
        (void)connect(s, &s->routers[b / 8 % s->router_count], PROXY_PORT_CLIENT, 1 + b % 4);
        return;
    }
    struct peer *c = pick(s, &r, true);
    if (c == NULL)
        return;
    switch (what) {
    case 1:
    case 2:
        if (c->port == PROXY_PORT_CLIENT)
            make_ask(s, r, c);
        else
            make_admin_ask(s, c);
        send_some(r, c, what == 1 ? SIZE_MAX : 0);
        break;
    case 3:
        send_some(r, c, amount(s));
        break;
    case 4:
        send_raw(s, r, c);
        break;
    case 5:
        limit_room(s, r, c);
        break;
    default:
        go(r, c, byte(s) % 2 == 0);
    }
}

static void step_engine(struct session *s, unsigned what)
{
    struct router *r;
    struct peer *p = pick(s, &r, false);
    if (p == NULL)
        return;
    static const enum reply_when whens[] = {REPLY_WHOLE, REPLY_WHOLE, REPLY_WHOLE, REPLY_WHOLE,
                                            REPLY_WHOLE, REPLY_WHOLE, REPLY_EARLY, REPLY_UNASKED};
    unsigned flags = what == 9 || what == 10 ? byte(s) : 0;
    switch (what) {
    case 7:
        proxy_world_accept(&r->world, p->wire, 0);
        break;
    case 8:
        proxy_world_accept(&r->world, p->wire, byte(s) % 2 == 0 ? ERR_CLOSED : ERR_UNREACHABLE);
        break;
    case 9:
    case 10:
        make_reply(s, r, p, flags, byte(s), whens[flags / 16 % ARRAY_LEN(whens)]);
        send_some(r, p, what == 9 ? SIZE_MAX : 0);
        break;
    case 11:
        send_some(r, p, amount(s));
        break;
    case 12:
        own(r, p);
        send_raw(s, r, p);
        break;
    case 13:
        limit_room(s, r, p);
        break;
    case 14:
        proxy_world_deafen(&r->world, p->wire);
        break;
    default:
        go(r, p, byte(s) % 2 == 0);
    }
}

static void step_operator(struct session *s)
{
    unsigned b = byte(s);
    struct router *r = &s->routers[b / 128 % s->router_count];
    struct peer *c = connect(s, r, b % 16 == 15 ? PROXY_PORT_PROBE : PROXY_PORT_ADMIN, 0);
    if (c == NULL)
        return;
    make_admin_ask(s, c);
    send_some(r, c, SIZE_MAX);
}

/* The list in the settings, with the present engines. */
static void list(struct session *s, struct router *r, unsigned engines)
{
    struct discover_entry entries[ENGINES];
    char names[ENGINES][32];
    unsigned count = 0;
    for (unsigned i = 0; i < ENGINES; i++) {
        if ((engines >> i & 1) == 0)
            continue;
        (void)snprintf(names[count], sizeof names[0], "10.0.0.%u:8000", i + 1);
        entries[count] = (struct discover_entry){.name = slice_of_cstr(names[count])};
        count++;
    }
    (void)s;
    (void)!discover_list(r->world.node->discover, (unsigned)r->source, entries, count,
                         r->world.now_ms);
}

static void join(struct session *s);

/* Makes the events of all engines live, or of none; with live events, engines may be asked for
 * tokens. */
static void events_live(struct proxy_world *w, bool live)
{
    struct node_router *router = w->node->router;
    for (unsigned i = 0; i < node_router_replica_count(router); i++) {
        router->replicas[i].scrape.block_tokens = 4;
        node_router_events_live(router, i, live);
    }
    w->proxy->exchanges.ids_budget.bytes = KV_BUDGET_BYTES;
}

static void step_world(struct session *s, unsigned what)
{
    static const int failures[] = {ERR_FULL, ERR_CLOSED, ERR_LIMIT, ERR_UNREACHABLE, ERR_NOMEM};
    unsigned b = byte(s);
    struct router *r = &s->routers[b / 128 % s->router_count];
    switch (what) {
    case 16:
        wait(s, b * 5);
        break;
    case 17:
        proxy_world_stand_still(&r->world, b % 128 * 20);
        break;
    case 18:
        r->world.connect_error = failures[b % ARRAY_LEN(failures)];
        break;
    case 19:
        join(s);
        break;
    case 20:
        list(s, r, b % 16);
        break;
    case 21:
        events_live(&r->world, change_option(s, &r->world) % 4 != 0);
        break;
    case 22:
        proxy_hosts_resolved(&r->world, b % ENGINES, (unsigned[]){1 + b / 4 % 2, 3}, b / 8 % 3,
                             b / 32 % 2 == 1);
        break;
    case 23:
        if (b % 8 == 0) {
            r->drained = true;
            proxy_world_drain(&r->world, b / 8 % 2 == 0);
        }
        break;
    default:
        flow(s);
    }
}

static void step(struct session *s)
{
    unsigned what = byte(s) % 32;
    if (what < 7)
        step_client(s, what);
    else if (what < 16)
        step_engine(s, what);
    else if (what < 24)
        step_world(s, what);
    else if (what < 26)
        step_operator(s);
    else if (what == 26)
        step_packet(s);
    else if (what == 27)
        step_call(s);
    else
        flow(s);
    look(s);
    cluster_run(s);
    look(s);
}

/* --- a run ----------------------------------------------------------------------------------- */

static int on_metrics(void *context, struct buf *out)
{
    struct router *r = context;
    struct prometheus p = prometheus_of(out, "grapevine_");
    proxy_metrics(r->world.proxy, &p);
    node_router_metrics(r->world.node->router, r->world.now_ms, &p);
    discover_metrics(r->world.node->discover, r->world.now_ms, &p);
    if (r->session->clustered)
        node_replication_metrics(r->world.node->replication, now_us(r), &p);
    return prometheus_finish(&p);
}

static void on_replica(void *context, unsigned replica, bool present)
{
    struct router *r = context;
    proxy_replica(r->world.proxy, replica, present, r->world.now_ms);
}

static bool on_forgotten(void *context, unsigned replica)
{
    struct router *r = context;
    return proxy_replica_forgotten(r->world.proxy, replica);
}

static void shape(void *context, struct node_config *node)
{
    static struct gossip_keyring keyring;
    static const char *const names[ROUTERS] = {"router-0", "router-1"};
    struct router *r = context;
    gossip_keyring_insecure(&keyring);
    node->keyring = r->session->clustered ? &keyring : NULL;
    node->replication.gossip.name = names[r->number];
    node->replication.gossip.address = address_of(r->number);
    node->replication.gossip.port = 7000;
    node->replication.gossip.ring_bytes = 64 << 10;
    node->replication.has_seeds = r->number > 0;
    node->replication.admin = "127.0.0.1:9000";
    node->state.index_bytes = 1 << 20;
    node->state.wall_ms = r->world.now_ms + 1000;
    node->admin.metrics = on_metrics;
    node->admin.metrics_context = r;
}

static void router_open(struct session *s, unsigned number, uint64_t now_ms)
{
    struct router *r = &s->routers[number];
    r->session = s;
    r->number = number;
    const struct node_replication_io io = {
        .context = r, .send = on_send, .random = on_random, .call = on_call};
    const struct proxy_world_config config = {.quiet = true,
                                              .settings = s->settings,
                                              .client_keys = s->keys ? client_keys() : NULL,
                                              .seed = number + 1,
                                              .shape = shape,
                                              .context = r,
                                              .io = &io,
                                              .strangers = true};
    proxy_world_open(&r->world, &config);
    r->world.now_ms = now_ms;
    r->up = true;
    s->router_count++;
    node_router_watch(r->world.node->router, on_replica, on_forgotten, r);
    r->source = discover_source(r->world.node->discover, "settings", SLICE(""));
    CHECK(r->source >= 0);
}

/* Starts the second router, with the first as the seed. */
static void join(struct session *s)
{
    if (!s->clustered || s->router_count == ROUTERS)
        return;
    router_open(s, 1, s->routers[0].world.now_ms);
    struct router *r = &s->routers[1];
    struct gossip_address seed = address_of(0);
    gossip_seeds(node_replication_gossip(r->world.node->replication), &seed, 1, now_us(r));
    CHECK(proxy_start(r->world.proxy, r->world.now_ms) == 0);
}

static void begin(struct session *s)
{
    unsigned b = byte(s), engines = 1 + b % 3;
    prng_seed(&s->random, 1);
    s->probes = b / 3 % 2 == 1;
    s->keys = b / 6 % 4 == 3;
    s->clustered = b / 24 % 2 == 1;
    draw_options(s);
    router_open(s, 0, WORLD_NOW_MS);
    struct router *r = &s->routers[0];
    list(s, r, (1u << engines) - 1);
    for (unsigned i = 0; i < engines && !s->probes; i++)
        node_router_probed(r->world.node->router, i, (struct node_check){.ok = true},
                           r->world.now_ms);
    CHECK(proxy_start(r->world.proxy, r->world.now_ms) == 0);
    proxy_world_settle(&r->world);
    look(s);
}

/* --- the end --------------------------------------------------------------------------------- */

enum { SILENT_TICKS = 1200, TALK_TICKS = 400 };

static bool is_open(const struct session *s)
{
    for (unsigned i = 0; i < s->router_count; i++) {
        if (proxy_stats(s->routers[i].world.proxy)->connections_open > 0)
            return true;
    }
    return false;
}

/* Peers do nothing from now on: time limits end open connections. */
static void fall_silent(struct session *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        struct router *r = &s->routers[k];
        for (unsigned i = 0; i < r->world.wire_count; i++) {
            if (r->peers[i].port != PROXY_PORT_CLIENT && r->world.wires[i].used)
                go(r, &r->peers[i], false); /* may examine an answer without an end */
        }
    }
    for (unsigned i = 0; i < SILENT_TICKS && is_open(s); i++) {
        wait(s, PROXY_TICK_MS);
        look(s);
    }
    CHECK(!is_open(s));
}

static void check_silence(struct router *r)
{
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        const struct peer *p = &r->peers[i];
        const struct wire *w = p->wire;
        if (!w->used || w->replica >= 0)
            continue;
        CHECK(w->closed);
        bool good = !p->raw && !p->gone && !p->slow && !r->drained && p->asked > 0 &&
                    !r->world.options.proxy_protocol;
        CHECK(!good || p->port != PROXY_PORT_CLIENT ||
              slice_starts_with(buf_slice(&w->out), SLICE("HTTP/1.1 ")));
    }
    CHECK(node_router_booked(r->world.node->router) == 0);
    CHECK(proxy_waiting(r->world.proxy) == 0 && proxy_body_bytes(r->world.proxy) == 0);
    CHECK(proxy_stats(r->world.proxy)->requests_open == 0);
    node_check(r->world.node);
}

static bool agree(struct session *s)
{
    struct crdt_digest digests[ROUTERS];
    uint32_t floor = 0;
    for (unsigned i = 0; i < ROUTERS; i++) {
        const struct node *n = s->routers[i].world.node;
        uint32_t own_floor = crdt_index_floor(node_state_index(n->state));
        floor = own_floor > floor ? own_floor : floor;
        if (!node_replication_ready(n->replication))
            return false;
    }
    for (unsigned i = 0; i < ROUTERS; i++)
        crdt_state_digest(node_state_crdt(s->routers[i].world.node->state), floor, &digests[i]);
    return digests[0].registry == digests[1].registry && digests[0].index == digests[1].index &&
           digests[0].reports == digests[1].reports;
}

static void check_agreement(struct session *s)
{
    if (s->router_count < ROUTERS || s->spoiled)
        return;
    s->held = false;
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        if (s->calls[i].used && s->calls[i].deaf)
            call_end(s, &s->calls[i], ERR_TIMEOUT);
    }
    unsigned i = 0;
    while (i++ < TALK_TICKS && !agree(s))
        wait(s, PROXY_TICK_MS);
    CHECK(agree(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct session session;
    struct session *s = &session;
    memset(s, 0, sizeof *s);
    s->at = data;
    s->end = data + size;
    begin(s);
    for (unsigned i = 0; i < STEPS_MAX && s->at < s->end; i++)
        step(s);
    fall_silent(s);
    for (unsigned i = 0; i < s->router_count; i++)
        check_silence(&s->routers[i]);
    check_agreement(s);
    cluster_close(s);
    for (unsigned k = 0; k < s->router_count; k++) {
        struct router *r = &s->routers[k];
        proxy_world_close(&r->world);
        for (unsigned i = 0; i < r->world.wire_count; i++)
            buf_free(&r->peers[i].pending);
    }
    session_memory_check();
    return 0;
}

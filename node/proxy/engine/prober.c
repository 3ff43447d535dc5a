#include "node/proxy/engine/prober_internal.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "node/proxy/engine/feeds.h"

enum {
    SERVER_INFO_INTERVAL_MS = 60000,
    EVENTS_INTERVAL_MS = 300000,
    SGLANG_HEALTH_FACTOR = 5,
    PING_INTERVAL_MS = 1000,
    AWAITED_MIN_MS = 250, /* shortest time between two checks of a down replica; a random time of at
                           * most this length is added */
    HELD_UP_MS = 500,     /* if a probe takes longer, due probes run on the second lane */
    ASKED_MIN_MS = 250,   /* shortest time between two probes of a kind: clients can cause probes by
                           * invented names */
    RANKS_MIN_MS =
        1000, /* shortest time between two probes of the ranks: clients can cause probes by refused
               * pins */
    HUNG_UP_MIN_MS = 1000, /* shortest time between two model probes caused by closed connections */
};

/* Returns the probes' API key. `*version`: the key's version; 0: there is no key. */
static struct slice replica_key(const struct proxy *proxy, unsigned *version)
{
    *version = 0;
    return proxy->config.replica_key != NULL
               ? proxy->config.replica_key(proxy->config.replica_key_context, version)
               : slice_of("", 0);
}

/* Returns NULL if the replica is not probed. */
static struct prober_probe *probe_of(const struct proxy *proxy, unsigned replica)
{
    struct prober *prober = proxy->engines.prober;
    return prober != NULL && prober->probes[replica].active ? &prober->probes[replica] : NULL;
}

static bool is_sglang(const struct prober_probe *p)
{
    return node_router_replica_engine(p->prober->proxy->config.router, p->replica) ==
           NODE_ENGINE_SGLANG;
}

static uint64_t health_interval(const struct prober_probe *p)
{
    const struct proxy *proxy = p->prober->proxy;
    const struct node_router *router = proxy->config.router;
    uint64_t usual = proxy->config.options->health_interval_ms;
    if (node_router_replica_awaited(router, p->replica, proxy->now_ms)) {
        uint64_t awaited =
            AWAITED_MIN_MS + hash_mix(proxy->now_ms ^ (uint64_t)p->replica << 32) % AWAITED_MIN_MS;
        return awaited < usual ? awaited : usual;
    }
    bool costs =
        is_sglang(p) && p->was_up && !node_router_process(router, p->replica)->signs.leaving;
    return costs ? usual * SGLANG_HEALTH_FACTOR : usual;
}

/* The interval of probes that are not sent, because this type of engine gives no useful answer. */
static const uint64_t never_ms = UINT64_MAX / 2;

static uint64_t interval(const struct prober_probe *p, enum node_probe kind)
{
    const struct node_options *o = p->prober->proxy->config.options;
    enum node_engine engine =
        node_router_replica_engine(p->prober->proxy->config.router, p->replica);
    bool sglang = engine == NODE_ENGINE_SGLANG, vllm = engine == NODE_ENGINE_VLLM;
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return health_interval(p);
    case NODE_PROBE_PING:
        if (!sglang || p->no_ping ||
            !slice_equal(prober_path(p, NODE_PROBE_HEALTH), SLICE("/health")))
            return never_ms;
        return o->health_interval_ms < PING_INTERVAL_MS ? o->health_interval_ms : PING_INTERVAL_MS;
    case NODE_PROBE_METRICS:
        return o->scrape_interval_ms;
    case NODE_PROBE_MODELS:
        return PROBER_MODELS_INTERVAL_MS;
    case NODE_PROBE_EVENTS:
        return vllm && feeds_ask(p->prober->proxy, p->replica) ? EVENTS_INTERVAL_MS : never_ms;
    default:
        return sglang ? SERVER_INFO_INTERVAL_MS : never_ms;
    }
}

/* Begins a probe. Engines leave /health open, and the probe goes to any server at the address, so
 * the key is sent only after a refusal. All other probes are sent only to healthy engines. */
static void begin(struct prober_lane *lane, enum node_probe kind, uint64_t now)
{
    struct prober_probe *p = lane->probe;
    struct proxy *proxy = p->prober->proxy;
    lane->kind = kind;
    lane->begun_ms = now;
    p->due_ms[kind] = now + interval(p, kind);
    p->begun_ms[kind] = now;
    p->wanted = p->wanted && kind != NODE_PROBE_METRICS;
    unsigned pace = kind == NODE_PROBE_HEALTH && is_sglang(p) ? FETCH_SLOW : 0;
    if (node_router_replica_awaited(proxy->config.router, p->replica, now))
        pace |= FETCH_QUICK;
    struct buf lines;
    buf_init(&lines, 0);
    lane->sent_key = p->prober->key_version;
    lane->with_key =
        proxy->config.replica_key != NULL && (kind != NODE_PROBE_HEALTH || p->health_wants_key);
    if (lane->with_key) {
        unsigned version;
        struct slice key = replica_key(proxy, &version);
        if (buf_printf(&lines, "Authorization: Bearer %.*s\r\n", SLICE_ARG(key)) != 0) {
            buf_free_wiped(&lines);
            return; /* no memory: the probe is sent at the next due time */
        }
    }
    fetch_get(&lane->fetch, prober_path(p, kind), buf_slice(&lines), pace);
    buf_free_wiped(&lines);
}

/* Returns true if any live server answers the probe in milliseconds. */
static bool is_quick(const struct prober_probe *p, enum node_probe kind)
{
    return kind != NODE_PROBE_HEALTH || !is_sglang(p);
}

/* Notes a timeout. While no byte comes from the replica, later timeouts belong to the same
 * silence. */
static void note_mute(const struct prober_lane *lane, int err)
{
    struct prober_probe *p = lane->probe;
    bool heard = p->prober->proxy->engines.pools[p->replica].heard_ms >= p->mute_ms;
    if (err == ERR_TIMEOUT && heard && is_quick(p, lane->kind))
        p->mute_ms = lane->begun_ms;
}

static void due_by(struct prober_probe *p, enum node_probe kind, uint64_t at_ms)
{
    if (p->due_ms[kind] > at_ms)
        p->due_ms[kind] = at_ms;
}

/* Makes the probe due now, or as soon as ASKED_MIN_MS allows. */
static void due_soon(struct prober_probe *p, enum node_probe kind)
{
    uint64_t now = p->prober->proxy->now_ms, free_ms = p->begun_ms[kind] + ASKED_MIN_MS;
    due_by(p, kind, free_ms > now ? free_ms : now);
}

static bool is_under_way(const struct prober_probe *p, enum node_probe kind)
{
    for (unsigned i = 0; i < PROBER_LANES; i++) {
        if (p->lanes[i].fetch.busy && p->lanes[i].kind == kind)
            return true;
    }
    return false;
}

/* Returns true if the replica will list models soon, or if a running check will show if it is up
 * again. */
static bool lists_soon(const struct prober_probe *p)
{
    if (!p->active || !p->was_up)
        return p->active && p->sought;
    return is_under_way(p, NODE_PROBE_MODELS) ||
           p->due_ms[NODE_PROBE_MODELS] <= p->prober->proxy->now_ms + ASKED_MIN_MS;
}

/* Wakes the requests waiting for lists after all lists have arrived. */
static void note_lists(struct prober *prober)
{
    struct proxy *proxy = prober->proxy;
    if (deadline_first(&proxy->limit[PROXY_LISTS]) == NULL)
        return;
    for (unsigned i = 0; i < proxy->engines.pool_count; i++) {
        if (lists_soon(&prober->probes[i]))
            return;
    }
    proxy->exchanges.lists_due = true;
}

static void on_done(void *context, int err, bool refused, unsigned status, struct slice body)
{
    struct prober_lane *lane = context;
    struct prober_probe *p = lane->probe;
    uint64_t now = p->prober->proxy->now_ms;
    bool was_up = p->was_up, lists = lane->kind == NODE_PROBE_MODELS;
    note_mute(lane, err);
    prober_answered(lane, err, refused, status, body);
    if (lane->kind == NODE_PROBE_HEALTH && p->sought) {
        p->sought = false;
        lists = true;
    }
    if (p->was_up && !was_up) {
        /* The engine may have restarted with other options, or another engine may answer. */
        due_by(p, NODE_PROBE_SERVER_INFO, now);
        prober_events_soon(p);
        p->no_ping = false;
        begin(lane, NODE_PROBE_MODELS, now);
    }
    if (lists)
        note_lists(p->prober);
}

/* Makes refused probes due at once. */
static void key_changed(struct prober_probe *p)
{
    unsigned refused =
        node_router_replica(p->prober->proxy->config.router, p->replica)->server.probes_refused;
    for (enum node_probe kind = NODE_PROBE_HEALTH; kind < NODE_PROBES; kind++) {
        if ((refused >> kind & 1) != 0)
            p->due_ms[kind] = 0;
    }
}

/* Returns the kind of probe that has been due longest, so that frequent probes do not starve
 * others. NODE_PROBES: none is due. */
static enum node_probe longest_due(const struct prober_probe *p, uint64_t now)
{
    enum node_probe longest = NODE_PROBES;
    for (enum node_probe kind = NODE_PROBE_HEALTH; kind < NODE_PROBES; kind++) {
        if (p->due_ms[kind] > now || is_under_way(p, kind) || interval(p, kind) == never_ms ||
            (kind != NODE_PROBE_HEALTH && !p->was_up))
            continue;
        if (kind == NODE_PROBE_METRICS && !p->wanted &&
            !node_scraped_due(node_router_replica(p->prober->proxy->config.router, p->replica),
                              interval(p, kind), now))
            continue; /* another router reads the metrics */
        if (longest == NODE_PROBES || p->due_ms[kind] < p->due_ms[longest])
            longest = kind;
    }
    return longest;
}

/* Returns a free lane: the first, or the second if the first waits for HELD_UP_MS. NULL: none. */
static struct prober_lane *free_lane(struct prober_probe *p, uint64_t now)
{
    if (!p->lanes[0].fetch.busy)
        return &p->lanes[0];
    bool held_up = now >= p->lanes[0].begun_ms + HELD_UP_MS;
    return held_up && !p->lanes[1].fetch.busy ? &p->lanes[1] : NULL;
}

static void heed_warning(struct prober_probe *p, uint64_t now)
{
    const struct node_router *router = p->prober->proxy->config.router;
    bool warned = node_breaker_warned(node_router_process(router, p->replica), now);
    if (warned && !p->warned)
        prober_ask_health(p->prober->proxy, p->replica);
    p->warned = warned;
}

void prober_tick(struct proxy *proxy)
{
    struct prober *prober = proxy->engines.prober;
    if (prober == NULL)
        return;
    uint64_t now = proxy->now_ms;
    unsigned version;
    (void)replica_key(proxy, &version);
    bool new_key = version != prober->key_version;
    prober->key_version = version;
    for (unsigned i = 0; i < proxy->engines.pool_count; i++) {
        struct prober_probe *p = &prober->probes[i];
        if (!p->active)
            continue;
        if (new_key)
            key_changed(p);
        pool_resolve(&proxy->engines.pools[i], PROBER_RESOLVE_INTERVAL_MS);
        prober_log_change(p, "answers failed", 0);
        heed_warning(p, now);
        const struct pool *pool = &proxy->engines.pools[i];
        bool first_lookup = pool->address_count == 0 && pool->resolving;
        struct prober_lane *lane = free_lane(p, now);
        if (lane == NULL || first_lookup)
            continue;
        enum node_probe kind = longest_due(p, now);
        if (kind != NODE_PROBES)
            begin(lane, kind, now);
    }
}

void prober_ask(struct proxy *proxy, unsigned replica, bool health)
{
    struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL || !p->was_up)
        return;
    bool slow = is_sglang(p);
    p->due_ms[p->metrics_missing && !slow ? NODE_PROBE_HEALTH : NODE_PROBE_METRICS] = 0;
    p->wanted = !p->metrics_missing;
    if (slow && health)
        p->due_ms[NODE_PROBE_HEALTH] = 0;
}

void prober_ask_ranks(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    uint64_t now = proxy->now_ms;
    if (p == NULL || p->ranks_ms > now)
        return;
    uint64_t free_ms = p->ranks_ms + RANKS_MIN_MS;
    p->ranks_ms = p->ranks_ms == 0 || free_ms < now ? now : free_ms;
    due_by(p, NODE_PROBE_METRICS, p->ranks_ms);
    due_by(p, NODE_PROBE_SERVER_INFO, p->ranks_ms);
}

/* Begins a model probe at once, before the next tick, on any free lane. */
static void begin_models(struct prober_probe *p)
{
    for (unsigned i = 0; i < PROBER_LANES && !is_under_way(p, NODE_PROBE_MODELS); i++) {
        if (!p->lanes[i].fetch.busy)
            begin(&p->lanes[i], NODE_PROBE_MODELS, p->prober->proxy->now_ms);
    }
}

void prober_ask_models(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL || !p->was_up)
        return;
    due_soon(p, NODE_PROBE_MODELS);
    if (p->due_ms[NODE_PROBE_MODELS] <= proxy->now_ms)
        begin_models(p);
}

void prober_ask_context(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    prober_ask_models(proxy, replica);
    if (p != NULL && is_sglang(p))
        due_soon(p, NODE_PROBE_SERVER_INFO);
}

/* Asks for a replica's health after refused connections: another engine may be there now. */
static void seek(struct prober_probe *p)
{
    const struct proxy *proxy = p->prober->proxy;
    if (proxy->engines.pools[p->replica].refused_ms == 0 ||
        !node_router_replica_awaited(proxy->config.router, p->replica, proxy->now_ms))
        return;
    if (!p->sought && !is_under_way(p, NODE_PROBE_HEALTH))
        due_soon(p, NODE_PROBE_HEALTH);
    p->sought = true;
}

bool prober_look(struct proxy *proxy)
{
    struct prober *prober = proxy->engines.prober;
    unsigned count = prober != NULL ? proxy->engines.pool_count : 0;
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        struct prober_probe *p = &prober->probes[i];
        unsigned refused = node_router_replica(proxy->config.router, i)->server.probes_refused;
        if (!p->active || !p->was_up || (refused >> NODE_PROBE_MODELS & 1) != 0)
            continue;
        if (!is_under_way(p, NODE_PROBE_MODELS))
            prober_ask_models(proxy, i);
        any |= lists_soon(p);
    }
    for (unsigned i = 0; i < count && any; i++) { /* if none is up, requests do not wait: they try
                                                   * down replicas */
        if (prober->probes[i].active && !prober->probes[i].was_up)
            seek(&prober->probes[i]);
    }
    return any;
}

void prober_process_gone(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL)
        return;
    node_router_models_stale(proxy->config.router, replica, true);
    prober_ask_health(proxy, replica);
    due_by(p, NODE_PROBE_MODELS, proxy->now_ms);
}

void prober_hung_up(struct proxy *proxy, unsigned replica)
{
    const struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL || !p->was_up || proxy->now_ms < p->begun_ms[NODE_PROBE_MODELS] + HUNG_UP_MIN_MS)
        return;
    prober_ask_health(proxy, replica);
    prober_ask_models(proxy, replica);
}

void prober_ask_health(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    if (p != NULL)
        p->due_ms[is_sglang(p) ? NODE_PROBE_PING : NODE_PROBE_HEALTH] = 0;
}

void prober_waits(const struct proxy *proxy, unsigned replica, uint64_t *any_ms,
                  uint64_t *health_ms)
{
    *any_ms = *health_ms = 0;
    const struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL)
        return;
    if (proxy->engines.pools[replica].heard_ms < p->mute_ms)
        *any_ms = p->mute_ms;
    for (unsigned i = 0; i < PROBER_LANES; i++) {
        const struct prober_lane *lane = &p->lanes[i];
        if (!lane->fetch.busy)
            continue;
        if (lane->kind == NODE_PROBE_HEALTH)
            *health_ms = lane->begun_ms;
        if (is_quick(p, lane->kind) && (*any_ms == 0 || lane->begun_ms < *any_ms))
            *any_ms = lane->begun_ms;
    }
}

void prober_begin(struct proxy *proxy, unsigned replica)
{
    struct prober *prober = proxy->engines.prober;
    if (prober == NULL)
        return; /* prober_start() will begin the probes of all replicas */
    struct prober_probe *p = &prober->probes[replica];
    if (p->active)
        return;
    memset(p, 0, sizeof *p);
    p->prober = prober;
    p->replica = replica;
    p->active = true;
    buf_init(&p->models, FETCH_BODY_MAX);
    for (unsigned i = 0; i < PROBER_LANES; i++) {
        p->lanes[i].probe = p;
        fetch_init(&p->lanes[i].fetch, &proxy->engines.pools[replica], on_done, &p->lanes[i]);
    }
}

void prober_end(struct proxy *proxy, unsigned replica)
{
    struct prober_probe *p = probe_of(proxy, replica);
    if (p == NULL)
        return;
    for (unsigned i = 0; i < PROBER_LANES; i++)
        fetch_cancel(&p->lanes[i].fetch);
    buf_free(&p->models);
    p->prober->models_version++;
    p->active = false;
}

int prober_start(struct proxy *proxy)
{
    struct prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL)
        return ERR_NOMEM;
    prober->proxy = proxy;
    proxy->engines.prober = prober;
    for (unsigned i = 0; i < proxy->engines.pool_count; i++) {
        bool good =
            proxy->engines.pools[i].proxy != NULL && proxy->engines.pools[i].address.port != 0;
        /* A replica removed before probing began still has a pool. */
        if (good && node_router_replica_present(proxy->config.router, i))
            prober_begin(proxy, i);
    }
    prober_tick(proxy);
    return 0;
}

void prober_stop(struct proxy *proxy)
{
    if (proxy->engines.prober == NULL)
        return;
    for (unsigned i = 0; i < proxy->engines.pool_count; i++)
        prober_end(proxy, i);
    free(proxy->engines.prober);
    proxy->engines.prober = NULL;
}

bool prober_models_asked(const struct proxy *proxy)
{
    for (unsigned i = 0; i < proxy->engines.pool_count; i++) {
        const struct prober_probe *p = probe_of(proxy, i);
        if (p != NULL && p->models_asked &&
            node_router_replica_health(proxy->config.router, i) == NODE_HEALTH_UP)
            return true;
    }
    return false;
}

struct slice prober_models(const struct proxy *proxy, unsigned replica)
{
    const struct prober_probe *p = probe_of(proxy, replica);
    return p != NULL ? buf_slice(&p->models) : slice_of("", 0);
}

uint64_t prober_models_version(const struct proxy *proxy)
{
    return proxy->engines.prober->models_version;
}

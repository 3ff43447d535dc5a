#include "node/proxy/prober.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/proxy/exchange_internal.h"
#include "node/proxy/fetch.h"
#include "node/proxy/model_list.h"
#include "node/replica/engine_json.h"
#include "node/settings/statuses.h"

enum {
    MODELS_INTERVAL_MS = 10000,
    SERVER_INFO_INTERVAL_MS = 60000,
    RESOLVE_INTERVAL_MS = 30000,
    SGLANG_HEALTH_FACTOR = 5,
    PING_INTERVAL_MS = 1000,
    AWAITED_MIN_MS = 250, /* between two checks of one that is down, and as much more at random */
    HELD_UP_MS = 500,     /* a probe that takes longer does not hold up the others */
    LANES = 2,
};

/* A probe under way, and the connection that it uses. The second one is for what is due while the
 * first one waits. */
struct lane {
    struct fetch fetch;
    struct probe *probe;
    enum node_probe kind;
    uint64_t begun_ms;
    unsigned sent_key; /* the version of the API key that was there when it began */
    bool with_key;     /* it carries it */
};

struct probe {
    struct lane lanes[LANES];
    struct prober *prober;
    unsigned replica;
    uint64_t due_ms[NODE_PROBES];
    bool active; /* the replica is in use */
    bool was_up;
    bool models_asked;      /* an answer to /v1/models came, or none in time */
    bool told_down;         /* that it is down, in the log */
    bool told_router;       /* that it is no engine */
    bool told_refused;      /* that it refuses probes, in the log, */
    unsigned told_key;      /* with this version of the API key */
    bool told_leaving;      /* that its health check says no */
    bool no_ping;           /* it has no /ping, or refuses it */
    bool health_wants_key;  /* it refused /health without one */
    bool metrics_missing;   /* told once */
    bool metrics_too_large; /* told once */
    bool models_too_large;  /* told once */
    struct buf models;      /* the last /v1/models that was understood */
};

struct prober {
    struct proxy *proxy;
    unsigned key_version;                   /* of the API key that probes carry */
    uint64_t models_version;                /* of all lists of models */
    struct node_statuses good;              /* of health checks */
    struct model_list list;                 /* scratch */
    struct probe probes[NODE_REPLICAS_MAX]; /* touched as they come */
};

/* Its version, and the key itself if it is wanted; 0: there is none. */
static unsigned replica_key(const struct proxy *proxy, struct slice *key)
{
    unsigned version = 0;
    if (proxy->config.replica_key == NULL)
        return 0;
    struct slice present = proxy->config.replica_key(proxy->config.replica_key_context, &version);
    if (key != NULL)
        *key = present;
    return version;
}

/* --- what came back ------------------------------------------------------------------------- */

/* Tells the log what changed since it was told last. Checks are not the only reason: answers that
 * break off take a replica out too, which is found out here by the tick. */
static void log_change(struct probe *p, const char *reason, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    enum node_health health = node_router_replica_health(proxy->config.router, p->replica);
    bool up = health == NODE_HEALTH_UP || health == NODE_HEALTH_DRAINING;
    struct slice name = node_router_replica_name(proxy->config.router, p->replica);
    if (up && !p->was_up) {
        p->was_up = true;
        p->told_down = p->told_router = p->no_ping = false;
        p->due_ms[NODE_PROBE_MODELS] = 0; /* first: readiness waits for it */
        p->due_ms[NODE_PROBE_METRICS] = 1;
        p->due_ms[NODE_PROBE_SERVER_INFO] = 1;
        p->due_ms[NODE_PROBE_PING] = 2;
        log_event(proxy->config.log, LOG_INFO, "replica_up", LOG_STR("replica", name));
    } else if (health == NODE_HEALTH_DOWN && !p->told_down) {
        p->was_up = false;
        p->told_down = true;
        p->due_ms[NODE_PROBE_HEALTH] = 0;
        log_event(proxy->config.log, LOG_WARN, "replica_down", LOG_STR("replica", name),
                  LOG_CSTR("error", reason), LOG_UINT("status", status));
        upstream_flush_pool(&proxy->pools[p->replica]);
    }
}

/* A router answered: requests would go in a circle. */
static void found_router(struct probe *p, const struct lane *lane)
{
    struct proxy *proxy = p->prober->proxy;
    char who[PROXY_IDENTITY_BYTES + 32];
    fetch_router_text(&lane->fetch, who, sizeof who);
    node_router_found_router(proxy->config.router, p->replica, slice_of_cstr(who), proxy->now_ms);
    upstream_flush_pool(&proxy->pools[p->replica]);
    p->was_up = p->health_wants_key = false;
    p->told_refused = false;
    if (p->told_router)
        return;
    p->told_router = true;
    log_event(
        proxy->config.log, LOG_ERROR, "replica_is_router",
        LOG_STR("replica", node_router_replica_name(proxy->config.router, p->replica)),
        LOG_CSTR("router", who), LOG_CSTR("effect", "it gets no requests"),
        LOG_CSTR("want", "engines only: take it out of the replicas (replica, gvctl remove)"));
}

/* A definite no takes it out of the choice at once: it drains, or its engine is dead. What runs
 * there goes on. */
static void log_leaving(struct probe *p, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    struct slice name = node_router_replica_name(proxy->config.router, p->replica);
    bool leaving = node_router_replica_leaving(proxy->config.router, p->replica);
    if (leaving == p->told_leaving)
        return;
    p->told_leaving = leaving;
    if (leaving) {
        log_event(proxy->config.log, LOG_WARN, "replica_leaving", LOG_STR("replica", name),
                  LOG_UINT("status", status));
        upstream_flush_pool(&proxy->pools[p->replica]);
    } else {
        log_event(proxy->config.log, LOG_INFO, "replica_stays", LOG_STR("replica", name));
    }
}

static void health_done(struct probe *p, const struct lane *lane, int err, bool refused,
                        unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    struct node_router *router = proxy->config.router;
    struct pool *pool = &proxy->pools[p->replica];
    if (err != 0)
        p->health_wants_key = false; /* another may be there when it is back */
    if (err == ERR_TIMEOUT && pool->heard_ms > lane->begun_ms) {
        proxy->stats.probes_vetoed++; /* it is slow, not dead */
        return;
    }
    bool ok = err == 0 && node_statuses_has(&p->prober->good, status);
    node_router_probed(router, p->replica, ok, refused, proxy->now_ms);
    if (err == 0 && !ok && p->was_up)
        node_router_health_no(router, p->replica);
    log_leaving(p, status);
    log_change(p, err != 0 ? err_text(err) : "unhealthy", status);
    if (refused)
        upstream_flush_pool(pool);
    if (err == ERR_UNREACHABLE)
        pool_resolve(pool, RESOLVE_INTERVAL_MS / 6);
}

/* SGLang's other word for its health, which costs it nothing: 503 while it drains. */
static void ping_done(struct probe *p, int err, unsigned status)
{
    struct node_router *router = p->prober->proxy->config.router;
    if (err != 0)
        return; /* health says what there is to say */
    p->no_ping = status != 200 && status != 503;
    if (status == 503 && !node_router_replica_leaving(router, p->replica)) {
        node_router_health_no(router, p->replica);
        p->due_ms[NODE_PROBE_HEALTH] = 0;
        log_leaving(p, status);
    }
}

/* Counts, and tells the log once. */
static void too_large(struct probe *p, bool *told, const char *path)
{
    struct proxy *proxy = p->prober->proxy;
    proxy->stats.probes_too_large++;
    if (!*told)
        log_event(proxy->config.log, LOG_WARN, "replica_probe_too_large",
                  LOG_STR("replica", node_router_replica_name(proxy->config.router, p->replica)),
                  LOG_CSTR("path", path), LOG_UINT("bytes_max", FETCH_BODY_MAX),
                  LOG_UINT("models_max", MODEL_LIST_MAX));
    *told = true;
}

static struct slice path_of(const struct probe *p, enum node_probe kind)
{
    const struct proxy *proxy = p->prober->proxy;
    struct slice own = node_router_replica_health_path(proxy->config.router, p->replica);
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return own.len > 0 ? own : slice_of_cstr(proxy->config.options->health_path);
    case NODE_PROBE_METRICS:
        return SLICE("/metrics");
    case NODE_PROBE_MODELS:
        return SLICE("/v1/models");
    case NODE_PROBE_PING:
        return SLICE("/ping");
    default:
        return SLICE("/server_info");
    }
}

static int models_replace(struct probe *p, struct slice body)
{
    if (slice_equal(buf_slice(&p->models), body))
        return 0;
    p->prober->models_version++;
    buf_clear(&p->models);
    return buf_append_slice(&p->models, body);
}

/* Whether it lets the router ask. The log has one line for each change, and for each new key that
 * is refused as well. An answer that is no refusal tells nothing of the paths that were refused
 * before: they are asked again. */
static void note_access(struct probe *p, const struct lane *lane, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    if (lane->kind == NODE_PROBE_PING)
        return; /* it can do without */
    node_router_probe_answered(proxy->config.router, p->replica, lane->kind, status);
    if (lane->kind == NODE_PROBE_MODELS &&
        !node_router_models_listed(proxy->config.router, p->replica))
        DISCARD(models_replace(p, slice_of("", 0)));
    bool refused = node_router_probes_refused(proxy->config.router, p->replica) != 0;
    bool news = refused ? status == 401 || status == 403 : p->told_refused;
    if (!news || (refused && p->told_refused && lane->sent_key == p->told_key))
        return;
    p->told_refused = refused;
    p->told_key = lane->sent_key;
    struct slice name = node_router_replica_name(proxy->config.router, p->replica);
    if (!refused) {
        log_event(proxy->config.log, LOG_INFO, "replica_takes_probes", LOG_STR("replica", name));
        return;
    }
    bool has_key = proxy->config.replica_key != NULL;
    log_event(
        proxy->config.log, LOG_WARN, "replica_refuses_probes", LOG_STR("replica", name),
        LOG_STR("path", path_of(p, lane->kind)), LOG_UINT("status", status),
        LOG_CSTR(
            "effect",
            "what it refuses stays unknown; its models are then learned from clients' requests"),
        LOG_CSTR("want", has_key ? "the engine's API key in replica-api-key-file: it does not "
                                   "take the one that is there"
                                 : "the engine's API key: set replica-api-key-file"));
}

void prober_engine_found(struct proxy *proxy, unsigned replica, enum node_engine engine)
{
    if (engine == NODE_ENGINE_AUTO ||
        node_router_replica_engine(proxy->config.router, replica) != NODE_ENGINE_AUTO)
        return;
    node_router_replica_engine_set(proxy->config.router, replica, engine);
    log_event(proxy->config.log, LOG_INFO, "replica_engine",
              LOG_STR("replica", node_router_replica_name(proxy->config.router, replica)),
              LOG_CSTR("engine", engine == NODE_ENGINE_VLLM ? "vllm" : "sglang"));
}

static void metrics_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct proxy *proxy = p->prober->proxy;
    if (err == ERR_LIMIT)
        too_large(p, &p->metrics_too_large, "/metrics");
    if (err != 0)
        return; /* health says what there is to say */
    p->metrics_too_large = false;
    struct node_scrape scrape;
    err = status == 200 ? node_scrape_parse(body, &scrape) : ERR_NOT_FOUND;
    struct slice name = node_router_replica_name(proxy->config.router, p->replica);
    if (err != 0) {
        bool told = p->metrics_missing || status == 401 || status == 403; /* by note_access */
        if (!told)
            log_event(proxy->config.log, LOG_WARN, "replica_metrics_unknown",
                      LOG_STR("replica", name), LOG_UINT("status", status),
                      LOG_CSTR("error", err_text(err)));
        p->metrics_missing = true;
        p->due_ms[NODE_PROBE_METRICS] = proxy->now_ms + MODELS_INTERVAL_MS;
        return;
    }
    p->metrics_missing = false;
    if (scrape.vllm || scrape.sglang)
        prober_engine_found(proxy, p->replica, scrape.vllm ? NODE_ENGINE_VLLM : NODE_ENGINE_SGLANG);
    if (node_router_scraped(proxy->config.router, p->replica, &scrape, proxy->now_ms))
        log_event(proxy->config.log, LOG_WARN, "replica_restarted", LOG_STR("replica", name),
                  LOG_CSTR("effect", "its prefixes are forgotten"));
}

static void models_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct proxy *proxy = p->prober->proxy;
    p->models_asked = true;
    if (err == ERR_LIMIT)
        too_large(p, &p->models_too_large, "/v1/models");
    if (err != 0 || status != 200)
        return;
    struct model_list *list = &p->prober->list;
    if (model_list_read(list, body) != 0) {
        log_event(proxy->config.log, LOG_WARN, "replica_models_unknown",
                  LOG_STR("replica", node_router_replica_name(proxy->config.router, p->replica)));
        return;
    }
    err = node_router_models(proxy->config.router, p->replica, list->ids, list->count);
    if (err == 0) {
        err = models_replace(p, body);
        prober_engine_found(proxy, p->replica, list->engine);
    }
    if (err != 0 || list->cut)
        too_large(p, &p->models_too_large, "/v1/models");
    else
        p->models_too_large = false;
}

static void server_info_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct proxy *proxy = p->prober->proxy;
    struct node_scrape scrape;
    if (err != 0 || status != 200 || node_server_info_parse(body, &scrape) != 0)
        return;
    (void)node_router_scraped(proxy->config.router, p->replica, &scrape, proxy->now_ms);
}

/* It refused /health, which was asked without the key: the key is the answer, at once. */
static bool wants_key(struct probe *p, const struct lane *lane, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    if (lane->kind != NODE_PROBE_HEALTH || lane->with_key || proxy->config.replica_key == NULL ||
        (status != 401 && status != 403))
        return false;
    p->health_wants_key = true;
    p->due_ms[NODE_PROBE_HEALTH] = 0;
    return true;
}

static void begin(struct lane *lane, enum node_probe kind, uint64_t now);

static void on_done(void *context, int err, bool refused, unsigned status, struct slice body)
{
    struct lane *lane = context;
    struct probe *p = lane->probe;
    if (err == ERR_FULL ||
        err == ERR_NOMEM) /* no file, no memory here: asked again when it is due */
        return;
    if (err == 0 && lane->fetch.router[0] != '\0') {
        found_router(p, lane);
        return;
    }
    if (err == 0)
        p->prober->proxy->pools[p->replica].probed_ms = p->prober->proxy->now_ms;
    if (err == 0 && wants_key(p, lane, status))
        return;
    if (err == 0)
        note_access(p, lane, status);
    bool was_up = p->was_up;
    switch (lane->kind) {
    case NODE_PROBE_HEALTH:
        health_done(p, lane, err, refused, status);
        if (p->was_up && !was_up)
            begin(lane, NODE_PROBE_MODELS, p->prober->proxy->now_ms);
        break;
    case NODE_PROBE_METRICS:
        metrics_done(p, err, status, body);
        break;
    case NODE_PROBE_MODELS:
        models_done(p, err, status, body);
        break;
    case NODE_PROBE_SERVER_INFO:
        server_info_done(p, err, status, body);
        break;
    case NODE_PROBE_PING:
        ping_done(p, err, status);
        break;
    case NODE_PROBES:
        break;
    }
}

/* --- what is due ---------------------------------------------------------------------------- */

static bool is_sglang(const struct probe *p)
{
    return node_router_replica_engine(p->prober->proxy->config.router, p->replica) ==
           NODE_ENGINE_SGLANG;
}

static uint64_t health_interval(const struct probe *p)
{
    const struct proxy *proxy = p->prober->proxy;
    const struct node_router *router = proxy->config.router;
    uint64_t usual = proxy->config.options->health_interval_ms;
    if (node_router_replica_awaited(router, p->replica, proxy->now_ms)) {
        uint64_t awaited =
            AWAITED_MIN_MS + hash_mix(proxy->now_ms ^ (uint64_t)p->replica << 32) % AWAITED_MIN_MS;
        return awaited < usual ? awaited : usual;
    }
    bool costs = is_sglang(p) && p->was_up && !node_router_replica_leaving(router, p->replica);
    return costs ? usual * SGLANG_HEALTH_FACTOR : usual;
}

static uint64_t interval(const struct probe *p, enum node_probe kind)
{
    const struct node_options *o = p->prober->proxy->config.options;
    bool sglang = is_sglang(p);
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return health_interval(p);
    case NODE_PROBE_PING:
        if (!sglang || p->no_ping || !slice_equal(path_of(p, NODE_PROBE_HEALTH), SLICE("/health")))
            return UINT64_MAX / 2;
        return o->health_interval_ms < PING_INTERVAL_MS ? o->health_interval_ms : PING_INTERVAL_MS;
    case NODE_PROBE_METRICS:
        return o->scrape_interval_ms;
    case NODE_PROBE_MODELS:
        return MODELS_INTERVAL_MS;
    default:
        return sglang ? SERVER_INFO_INTERVAL_MS : UINT64_MAX / 2;
    }
}

/* Engines leave /health open, and it is asked of whatever is at the address: the key goes with it
 * only if it was refused. All else is asked only of what is healthy and no router. */
static void begin(struct lane *lane, enum node_probe kind, uint64_t now)
{
    struct probe *p = lane->probe;
    struct proxy *proxy = p->prober->proxy;
    lane->kind = kind;
    lane->begun_ms = now;
    p->due_ms[kind] = now + interval(p, kind);
    unsigned pace = kind == NODE_PROBE_HEALTH && is_sglang(p) ? FETCH_SLOW : 0;
    if (node_router_replica_awaited(proxy->config.router, p->replica, now))
        pace |= FETCH_QUICK;
    struct buf lines;
    buf_init(&lines, 0);
    lane->sent_key = p->prober->key_version;
    lane->with_key =
        proxy->config.replica_key != NULL && (kind != NODE_PROBE_HEALTH || p->health_wants_key);
    if (lane->with_key) {
        struct slice key;
        (void)replica_key(proxy, &key);
        if (buf_printf(&lines, "Authorization: Bearer %.*s\r\n", SLICE_ARG(key)) != 0) {
            buf_free_wiped(&lines);
            return; /* no memory: when it is due again */
        }
    }
    fetch_get(&lane->fetch, path_of(p, kind), buf_slice(&lines), pace);
    buf_free_wiped(&lines);
}

/* Those that refused are asked again at once. */
static void key_changed(struct probe *p)
{
    unsigned refused = node_router_probes_refused(p->prober->proxy->config.router, p->replica);
    for (enum node_probe kind = NODE_PROBE_HEALTH; kind < NODE_PROBES; kind++) {
        if ((refused >> kind & 1) != 0)
            p->due_ms[kind] = 0;
    }
}

/* Frequent ones must not keep the others from ever being asked. NODE_PROBES: nothing is due. */
static bool is_under_way(const struct probe *p, enum node_probe kind)
{
    for (unsigned i = 0; i < LANES; i++) {
        if (p->lanes[i].fetch.busy && p->lanes[i].kind == kind)
            return true;
    }
    return false;
}

static enum node_probe longest_due(const struct probe *p, uint64_t now)
{
    enum node_probe longest = NODE_PROBES;
    for (enum node_probe kind = NODE_PROBE_HEALTH; kind < NODE_PROBES; kind++) {
        bool rare = kind == NODE_PROBE_SERVER_INFO || kind == NODE_PROBE_PING;
        if ((rare && interval(p, kind) > SERVER_INFO_INTERVAL_MS) || is_under_way(p, kind) ||
            p->due_ms[kind] > now || (kind != NODE_PROBE_HEALTH && !p->was_up))
            continue;
        if (kind == NODE_PROBE_METRICS && !node_router_scrapes(p->prober->proxy->config.router,
                                                               p->replica, interval(p, kind), now))
            continue; /* another router does */
        if (longest == NODE_PROBES || p->due_ms[kind] < p->due_ms[longest])
            longest = kind;
    }
    return longest;
}

/* The first one, or the second where that one is held up. */
static struct lane *free_lane(struct probe *p, uint64_t now)
{
    if (!p->lanes[0].fetch.busy)
        return &p->lanes[0];
    bool held_up = now >= p->lanes[0].begun_ms + HELD_UP_MS;
    return held_up && !p->lanes[1].fetch.busy ? &p->lanes[1] : NULL;
}

void prober_tick(struct proxy *proxy)
{
    struct prober *prober = proxy->prober;
    if (prober == NULL)
        return;
    uint64_t now = proxy->now_ms;
    unsigned version = replica_key(proxy, NULL);
    bool new_key = version != prober->key_version;
    prober->key_version = version;
    for (unsigned i = 0; i < proxy->pool_count; i++) {
        struct probe *p = &prober->probes[i];
        if (!p->active)
            continue;
        if (new_key)
            key_changed(p);
        pool_resolve(&proxy->pools[i], RESOLVE_INTERVAL_MS);
        log_change(p, "answers failed", 0);
        const struct pool *pool = &proxy->pools[i];
        bool first_lookup = pool->address_count == 0 && pool->resolving;
        struct lane *lane = free_lane(p, now);
        if (lane == NULL || first_lookup)
            continue;
        enum node_probe kind = longest_due(p, now);
        if (kind != NODE_PROBES)
            begin(lane, kind, now);
    }
}

void prober_ask(struct proxy *proxy, unsigned replica)
{
    struct probe *p = proxy->prober != NULL ? &proxy->prober->probes[replica] : NULL;
    if (p == NULL || !p->active || !p->was_up)
        return;
    bool slow = is_sglang(p);
    p->due_ms[p->metrics_missing && !slow ? NODE_PROBE_HEALTH : NODE_PROBE_METRICS] = 0;
    if (slow)
        p->due_ms[NODE_PROBE_HEALTH] = 0;
}

void prober_waits(const struct proxy *proxy, unsigned replica, uint64_t *any_ms,
                  uint64_t *health_ms)
{
    *any_ms = *health_ms = 0;
    const struct probe *p = proxy->prober != NULL ? &proxy->prober->probes[replica] : NULL;
    for (unsigned i = 0; p != NULL && p->active && i < LANES; i++) {
        const struct lane *lane = &p->lanes[i];
        if (!lane->fetch.busy)
            continue;
        bool slow = lane->kind == NODE_PROBE_HEALTH && is_sglang(p);
        if (lane->kind == NODE_PROBE_HEALTH)
            *health_ms = lane->begun_ms;
        if (!slow && (*any_ms == 0 || lane->begun_ms < *any_ms))
            *any_ms = lane->begun_ms;
    }
}

void prober_begin(struct proxy *proxy, unsigned replica)
{
    struct prober *prober = proxy->prober;
    if (prober == NULL)
        return; /* prober_start() begins with all */
    struct probe *p = &prober->probes[replica];
    if (p->active)
        return;
    memset(p, 0, sizeof *p);
    p->prober = prober;
    p->replica = replica;
    p->active = true;
    buf_init(&p->models, FETCH_BODY_MAX);
    for (unsigned i = 0; i < LANES; i++) {
        p->lanes[i].probe = p;
        fetch_init(&p->lanes[i].fetch, &proxy->pools[replica], on_done, &p->lanes[i]);
    }
}

void prober_end(struct proxy *proxy, unsigned replica)
{
    struct prober *prober = proxy->prober;
    if (prober == NULL || !prober->probes[replica].active)
        return;
    struct probe *p = &prober->probes[replica];
    for (unsigned i = 0; i < LANES; i++)
        fetch_cancel(&p->lanes[i].fetch);
    buf_free(&p->models);
    prober->models_version++;
    p->active = false;
}

int prober_start(struct proxy *proxy)
{
    struct prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL)
        return ERR_NOMEM;
    prober->proxy = proxy;
    proxy->prober = prober;
    const char *wrong =
        node_statuses_parse(slice_of_cstr(proxy->config.options->health_statuses), &prober->good);
    CHECK(wrong == NULL); /* the settings were checked */
    for (unsigned i = 0; i < proxy->pool_count; i++) {
        bool good = proxy->pools[i].proxy != NULL && proxy->pools[i].address.port != 0;
        /* What went before the probes began has a pool still, for as long as its slot is held. */
        if (good && node_router_replica_present(proxy->config.router, i))
            prober_begin(proxy, i);
    }
    prober_tick(proxy);
    return 0;
}

void prober_stop(struct proxy *proxy)
{
    if (proxy->prober == NULL)
        return;
    for (unsigned i = 0; i < proxy->pool_count; i++)
        prober_end(proxy, i);
    free(proxy->prober);
    proxy->prober = NULL;
}

bool prober_models_asked(const struct proxy *proxy)
{
    for (unsigned i = 0; i < proxy->pool_count; i++) {
        const struct probe *p = &proxy->prober->probes[i];
        if (p->active && p->models_asked &&
            node_router_replica_health(proxy->config.router, i) == NODE_HEALTH_UP)
            return true;
    }
    return false;
}

struct slice prober_models(const struct proxy *proxy, unsigned replica)
{
    const struct probe *p = &proxy->prober->probes[replica];
    return p->active ? buf_slice(&p->models) : slice_of("", 0);
}

uint64_t prober_models_version(const struct proxy *proxy)
{
    return proxy->prober->models_version;
}

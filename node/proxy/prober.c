#include "node/proxy/prober.h"

#include <stdlib.h>

#include "base/err.h"
#include "node/proxy/exchange_internal.h"
#include "node/proxy/fetch.h"
#include "node/proxy/model_list.h"
#include "node/replica/engine_json.h"

enum {
    MODELS_INTERVAL_MS = 10000,
    SERVER_INFO_INTERVAL_MS = 60000,
    RESOLVE_INTERVAL_MS = 30000,
    SGLANG_HEALTH_FACTOR = 5,
    SILENT_MS = 5000, /* an answer that stands still this long on a dead replica is dead too */
};

struct probe {
    struct fetch fetch;
    struct prober *prober;
    unsigned replica;
    enum node_probe kind; /* of the one under way */
    uint64_t due_ms[NODE_PROBES];
    bool active; /* the replica is in use */
    bool was_up;
    bool models_asked;      /* an answer to /v1/models came, or none in time */
    bool told_down;         /* that it is down, in the log */
    bool told_router;       /* that it is no engine */
    bool told_refused;      /* that it refuses probes, in the log, */
    unsigned told_key;      /* with this version of the API key, */
    unsigned sent_key;      /* and the one that was there when the probe under way began */
    bool with_key;          /* the probe under way carries it */
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
        p->told_down = p->told_router = false;
        p->due_ms[NODE_PROBE_MODELS] = 0; /* first: readiness waits for it */
        p->due_ms[NODE_PROBE_METRICS] = 1;
        p->due_ms[NODE_PROBE_SERVER_INFO] = 1;
        log_event(proxy->config.log, LOG_INFO, "replica_up", LOG_STR("replica", name));
    } else if (health == NODE_HEALTH_DOWN && !p->told_down) {
        p->was_up = false;
        p->told_down = true;
        log_event(proxy->config.log, LOG_WARN, "replica_down", LOG_STR("replica", name),
                  LOG_CSTR("error", reason), LOG_UINT("status", status));
        upstream_flush_pool(&proxy->pools[p->replica]);
    }
}

/* A router answered: requests would go in a circle. */
static void found_router(struct probe *p)
{
    struct proxy *proxy = p->prober->proxy;
    char who[PROXY_IDENTITY_BYTES + 32];
    fetch_router_text(&p->fetch, who, sizeof who);
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

static void health_done(struct probe *p, int err, bool refused, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    struct pool *pool = &proxy->pools[p->replica];
    if (err != 0)
        p->health_wants_key = false; /* another may be there when it is back */
    node_router_probed(proxy->config.router, p->replica, err == 0 && status / 100 == 2, refused,
                       proxy->now_ms);
    log_change(p, err != 0 ? err_text(err) : "unhealthy", status);
    if (refused) {
        upstream_flush_pool(pool);
        exchange_fail_silent(pool, SILENT_MS);
    }
    if (err == ERR_UNREACHABLE)
        pool_resolve(pool, RESOLVE_INTERVAL_MS / 6);
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

static const char *path_of(enum node_probe kind)
{
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return "/health";
    case NODE_PROBE_METRICS:
        return "/metrics";
    case NODE_PROBE_MODELS:
        return "/v1/models";
    default:
        return "/server_info";
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
static void note_access(struct probe *p, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    node_router_probe_answered(proxy->config.router, p->replica, p->kind, status);
    if (p->kind == NODE_PROBE_MODELS &&
        !node_router_models_listed(proxy->config.router, p->replica))
        DISCARD(models_replace(p, slice_of("", 0)));
    bool refused = node_router_probes_refused(proxy->config.router, p->replica) != 0;
    bool news = refused ? status == 401 || status == 403 : p->told_refused;
    if (!news || (refused && p->told_refused && p->sent_key == p->told_key))
        return;
    p->told_refused = refused;
    p->told_key = p->sent_key;
    struct slice name = node_router_replica_name(proxy->config.router, p->replica);
    if (!refused) {
        log_event(proxy->config.log, LOG_INFO, "replica_takes_probes", LOG_STR("replica", name));
        return;
    }
    bool has_key = proxy->config.replica_key != NULL;
    log_event(
        proxy->config.log, LOG_WARN, "replica_refuses_probes", LOG_STR("replica", name),
        LOG_CSTR("path", path_of(p->kind)), LOG_UINT("status", status),
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
static bool wants_key(struct probe *p, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    if (p->kind != NODE_PROBE_HEALTH || p->with_key || proxy->config.replica_key == NULL ||
        (status != 401 && status != 403))
        return false;
    p->health_wants_key = true;
    p->due_ms[NODE_PROBE_HEALTH] = 0;
    return true;
}

static void begin(struct probe *p, enum node_probe kind, uint64_t now);

static void on_done(void *context, int err, bool refused, unsigned status, struct slice body)
{
    struct probe *p = context;
    if (err == ERR_FULL ||
        err == ERR_NOMEM) /* no file, no memory here: asked again when it is due */
        return;
    if (err == 0 && p->fetch.router[0] != '\0') {
        found_router(p);
        return;
    }
    if (err == 0 && wants_key(p, status))
        return;
    if (err == 0)
        note_access(p, status);
    bool was_up = p->was_up;
    switch (p->kind) {
    case NODE_PROBE_HEALTH:
        health_done(p, err, refused, status);
        if (p->was_up && !was_up)
            begin(p, NODE_PROBE_MODELS, p->prober->proxy->now_ms);
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
    case NODE_PROBES:
        break;
    }
}

/* --- what is due ---------------------------------------------------------------------------- */

static uint64_t interval(const struct probe *p, enum node_probe kind)
{
    const struct node_options *o = p->prober->proxy->config.options;
    bool sglang = node_router_replica_engine(p->prober->proxy->config.router, p->replica) ==
                  NODE_ENGINE_SGLANG;
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return sglang && p->was_up ? o->health_interval_ms * SGLANG_HEALTH_FACTOR
                                   : o->health_interval_ms;
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
static void begin(struct probe *p, enum node_probe kind, uint64_t now)
{
    struct proxy *proxy = p->prober->proxy;
    p->kind = kind;
    p->due_ms[kind] = now + interval(p, kind);
    bool sglang =
        node_router_replica_engine(proxy->config.router, p->replica) == NODE_ENGINE_SGLANG;
    struct buf lines;
    buf_init(&lines, 0);
    p->sent_key = p->prober->key_version;
    p->with_key =
        proxy->config.replica_key != NULL && (kind != NODE_PROBE_HEALTH || p->health_wants_key);
    if (p->with_key) {
        struct slice key;
        (void)replica_key(proxy, &key);
        if (buf_printf(&lines, "Authorization: Bearer %.*s\r\n", SLICE_ARG(key)) != 0) {
            buf_free_wiped(&lines);
            return; /* no memory: when it is due again */
        }
    }
    fetch_get(&p->fetch, path_of(kind), buf_slice(&lines), kind == NODE_PROBE_HEALTH && sglang);
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
static enum node_probe longest_due(const struct probe *p, uint64_t now)
{
    enum node_probe longest = NODE_PROBES;
    for (enum node_probe kind = NODE_PROBE_HEALTH; kind < NODE_PROBES; kind++) {
        bool never = kind == NODE_PROBE_SERVER_INFO && interval(p, kind) > SERVER_INFO_INTERVAL_MS;
        if (never || p->due_ms[kind] > now || (kind != NODE_PROBE_HEALTH && !p->was_up))
            continue;
        if (kind == NODE_PROBE_METRICS && !node_router_scrapes(p->prober->proxy->config.router,
                                                               p->replica, interval(p, kind), now))
            continue; /* another router does */
        if (longest == NODE_PROBES || p->due_ms[kind] < p->due_ms[longest])
            longest = kind;
    }
    return longest;
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
        if (p->fetch.busy || first_lookup)
            continue;
        enum node_probe kind = longest_due(p, now);
        if (kind != NODE_PROBES)
            begin(p, kind, now);
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
    fetch_init(&p->fetch, &proxy->pools[replica], on_done, p);
}

void prober_end(struct proxy *proxy, unsigned replica)
{
    struct prober *prober = proxy->prober;
    if (prober == NULL || !prober->probes[replica].active)
        return;
    struct probe *p = &prober->probes[replica];
    fetch_cancel(&p->fetch);
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

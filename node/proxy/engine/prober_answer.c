/* Learns about a replica from the answers to probes. */
#include "node/proxy/engine/prober_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/feeds.h"
#include "node/proxy/engine/upstream.h"
#include "node/replica/engine_json.h"
#include "node/replica/model.h"
#include "node/settings/statuses.h"

/* The arguments of fetch_done (fetch.h), and the probe's lane. */
struct answer {
    const struct prober_lane *lane;
    int err;
    bool refused;
    unsigned status;
    struct slice body;
};

static struct slice name_of(const struct prober_probe *p)
{
    return node_router_replica_name(p->prober->proxy->config.router, p->replica);
}

void prober_events_soon(struct prober_probe *p)
{
    uint64_t begun_ms = p->begun_ms[NODE_PROBE_EVENTS], *due_ms = &p->due_ms[NODE_PROBE_EVENTS];
    uint64_t soon_ms =
        begun_ms > 0 ? begun_ms + PROBER_EVENTS_MIN_MS : 3; /* the other probes are due at 0 to 2 */
    if (begun_ms == 0 || *due_ms > soon_ms)
        *due_ms = soon_ms;
}

void prober_log_change(struct prober_probe *p, const char *reason, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    enum node_health health = node_router_replica_health(proxy->config.router, p->replica);
    bool up = health == NODE_HEALTH_UP || health == NODE_HEALTH_DRAINING;
    struct slice name = name_of(p);
    if (up && !p->was_up) {
        p->was_up = true;
        p->told_down = p->told_router = p->no_ping = false;
        p->due_ms[NODE_PROBE_MODELS] = 0; /* first, because readiness waits for the models */
        p->due_ms[NODE_PROBE_METRICS] = 1;
        p->due_ms[NODE_PROBE_SERVER_INFO] = 1;
        p->due_ms[NODE_PROBE_PING] = 2;
        prober_events_soon(p);
        log_event(proxy->config.log, LOG_INFO, "replica_up", LOG_STR("replica", name));
    } else if (health == NODE_HEALTH_DOWN && !p->told_down) {
        p->was_up = false;
        p->told_down = true;
        node_router_models_stale(proxy->config.router, p->replica, true);
        p->due_ms[NODE_PROBE_HEALTH] = 0;
        log_event(proxy->config.log, LOG_WARN, "replica_down", LOG_STR("replica", name),
                  LOG_CSTR("error", reason), LOG_UINT("status", status));
        upstream_flush_pool(&proxy->engines.pools[p->replica]);
    }
}

/* Marks a replica as a router, to which requests would go in a circle. */
static void found_router(struct prober_probe *p, const struct prober_lane *lane)
{
    struct proxy *proxy = p->prober->proxy;
    char who[PROXY_IDENTITY_BYTES + 32];
    fetch_router_text(&lane->fetch, who, sizeof who);
    node_router_found_router(proxy->config.router, p->replica, slice_of_cstr(who), proxy->now_ms);
    upstream_flush_pool(&proxy->engines.pools[p->replica]);
    p->was_up = p->health_wants_key = false;
    p->told_refused = false;
    if (p->told_router)
        return;
    p->told_router = true;
    log_event(proxy->config.log, LOG_ERROR, "replica_is_router", LOG_STR("replica", name_of(p)),
              LOG_CSTR("router", who), LOG_CSTR("effect", "it gets no requests"),
              LOG_CSTR("want", "remove it from the replicas (setting replica, or gvctl remove): "
                               "only engines may be replicas"));
}

/* Logs a change of the health check's answer. After an unhealthy answer the replica gets no new
 * requests: it drains, or the engine is dead. Requests under way there continue. */
static void log_leaving(struct prober_probe *p, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    struct slice name = name_of(p);
    bool leaving = node_router_process(proxy->config.router, p->replica)->signs.leaving;
    if (leaving == p->told_leaving)
        return;
    p->told_leaving = leaving;
    if (leaving) {
        log_event(proxy->config.log, LOG_WARN, "replica_leaving", LOG_STR("replica", name),
                  LOG_UINT("status", status));
        upstream_flush_pool(&proxy->engines.pools[p->replica]);
    } else {
        log_event(proxy->config.log, LOG_INFO, "replica_stays", LOG_STR("replica", name));
    }
}

/* Returns the reason, in words, why a health check got no answer. */
static const char *silence_text(const struct pool *pool, int err, bool refused)
{
    if (refused)
        return "connection refused";
    if (err == ERR_UNREACHABLE && pool->address_count == 0)
        return pool->unresolved == ERR_NOT_FOUND ? "its name has no address"
               : pool->unresolved == ERR_TIMEOUT ? "no DNS server answers for its name"
                                                 : "the DNS lookup of its name fails";
    return err == ERR_TIMEOUT ? "no answer in time" : fetch_error_text(err);
}

/* Returns true if `health-statuses` has the status. */
static bool is_good(const struct proxy *proxy, unsigned status)
{
    struct node_statuses good;
    struct slice setting = slice_of_cstr(proxy->config.options->health_statuses);
    CHECK(node_statuses_parse(setting, &good) == NULL); /* checked before */
    return node_statuses_has(&good, status);
}

static void health_done(struct prober_probe *p, const struct answer *a)
{
    struct proxy *proxy = p->prober->proxy;
    struct node_router *router = proxy->config.router;
    struct pool *pool = &proxy->engines.pools[p->replica];
    if (a->err != 0)
        p->health_wants_key = false; /* another engine may answer next */
    if (a->err == ERR_TIMEOUT && pool->heard_ms > a->lane->begun_ms) {
        proxy->stats.probes_vetoed++; /* slow, not dead */
        return;
    }
    bool ok = a->err == 0 && is_good(proxy, a->status);
    const struct node_check check = {
        .ok = ok,
        .refused = a->refused,
        .tls_fails = fetch_error_is_tls(a->err),
        .unresolved =
            a->err == ERR_UNREACHABLE && pool->address_count == 0 ? pool->unresolved : ERR_OK,
        .status = a->err == 0 ? (uint16_t)a->status : 0,
    };
    node_router_probed(router, p->replica, check, proxy->now_ms);
    if (a->err == 0 && !ok && p->was_up)
        node_router_health_no(router, p->replica);
    log_leaving(p, a->status);
    prober_log_change(p, a->err != 0 ? silence_text(pool, a->err, a->refused) : "unhealthy",
                      a->status);
    if (a->refused) {
        pool->refused_ms = proxy->now_ms;
        upstream_flush_pool(pool);
    }
    if (a->err == ERR_UNREACHABLE || fetch_error_is_tls(a->err))
        pool_resolve(pool, PROBER_RESOLVE_INTERVAL_MS / 6);
}

/* Reads the answer of SGLang's /ping, which costs no token and is 503 during a drain. */
static void ping_done(struct prober_probe *p, const struct answer *a)
{
    struct node_router *router = p->prober->proxy->config.router;
    if (a->err != 0)
        return; /* the health check reports the error */
    p->no_ping = a->status != 200 && a->status != 503;
    if (a->status == 503 && !node_router_process(router, p->replica)->signs.leaving) {
        node_router_health_no(router, p->replica);
        p->due_ms[NODE_PROBE_HEALTH] = 0;
        log_leaving(p, a->status);
    }
}

struct slice prober_path(const struct prober_probe *p, enum node_probe kind)
{
    const struct proxy *proxy = p->prober->proxy;
    struct slice own = node_router_replica(proxy->config.router, p->replica)->said.health;
    switch (kind) {
    case NODE_PROBE_HEALTH:
        return own.len > 0 ? own : slice_of_cstr(proxy->config.options->health_path);
    case NODE_PROBE_METRICS:
        return SLICE("/metrics");
    case NODE_PROBE_MODELS:
        return SLICE("/v1/models");
    case NODE_PROBE_PING:
        return SLICE("/ping");
    case NODE_PROBE_EVENTS:
        return SLICE("/kv_event_sources");
    default:
        return p->older_server_info ? SLICE("/get_server_info") : SLICE("/server_info");
    }
}

/* Counts an answer that is too large, and logs the first of this kind. */
static void too_large(struct prober_probe *p, enum node_probe kind)
{
    struct proxy *proxy = p->prober->proxy;
    proxy->stats.probes_too_large++;
    if (!p->too_large[kind])
        log_event(proxy->config.log, LOG_WARN, "replica_probe_too_large",
                  LOG_STR("replica", name_of(p)), LOG_STR("path", prober_path(p, kind)),
                  LOG_UINT("bytes_max", FETCH_BODY_MAX), LOG_UINT("models_max", MODEL_LIST_MAX));
    p->too_large[kind] = true;
}

static int models_replace(struct prober_probe *p, struct slice body)
{
    if (slice_equal(buf_slice(&p->models), body))
        return 0;
    p->prober->models_version++;
    buf_clear(&p->models);
    return buf_append_slice(&p->models, body);
}

/* Notes if the replica refuses probes. Logs each change, and each refused new key. A good answer on
 * a path says nothing about refused paths: they are probed again. */
static void note_access(struct prober_probe *p, const struct prober_lane *lane, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    if (lane->kind == NODE_PROBE_PING || lane->kind == NODE_PROBE_EVENTS)
        return; /* engines need not have this path */
    node_router_probe_answered(proxy->config.router, p->replica, lane->kind, status);
    if (lane->kind == NODE_PROBE_MODELS &&
        !node_models_listed(node_router_model_table(proxy->config.router), p->replica))
        DISCARD(models_replace(p, slice_of("", 0)));
    bool refused =
        node_router_replica(proxy->config.router, p->replica)->server.probes_refused != 0;
    bool news = refused ? status == 401 || status == 403 : p->told_refused;
    if (!news || (refused && p->told_refused && lane->sent_key == p->told_key))
        return;
    p->told_refused = refused;
    p->told_key = lane->sent_key;
    struct slice name = name_of(p);
    if (!refused) {
        log_event(proxy->config.log, LOG_INFO, "replica_takes_probes", LOG_STR("replica", name));
        return;
    }
    bool has_key = proxy->config.replica_key != NULL;
    log_event(
        proxy->config.log, LOG_WARN, "replica_refuses_probes", LOG_STR("replica", name),
        LOG_STR("path", prober_path(p, lane->kind)), LOG_UINT("status", status),
        LOG_CSTR("effect", "the router cannot read what the engine refuses; it learns the engine's "
                           "models from clients' requests"),
        LOG_CSTR("want", has_key ? "write the engine's API key to replica-api-key-file: the engine "
                                   "refuses the key there"
                                 : "set replica-api-key-file to a file with the engine's API key"));
}

void prober_engine_found(struct proxy *proxy, unsigned replica, enum node_engine engine)
{
    if (!node_router_engine_found(proxy->config.router, replica, engine))
        return;
    log_event(proxy->config.log, LOG_INFO, "replica_engine",
              LOG_STR("replica", node_router_replica_name(proxy->config.router, replica)),
              LOG_CSTR("engine", engine == NODE_ENGINE_VLLM ? "vllm" : "sglang"));
}

/* Logs if a label names more ranks than the engine has. The engine refuses requests for missing
 * ranks, and each then goes elsewhere. */
static void ranks_compare(struct prober_probe *p, unsigned told)
{
    struct proxy *proxy = p->prober->proxy;
    unsigned said = node_router_replica(proxy->config.router, p->replica)->said.ranks;
    bool differ = told > 1 && said > told;
    if (differ && !p->ranks_differ)
        log_event(proxy->config.log, LOG_WARN, "replica_ranks_differ",
                  LOG_STR("replica", name_of(p)), LOG_UINT("label", said),
                  LOG_UINT("metrics", told));
    p->ranks_differ = differ;
}

static void metrics_done(struct prober_probe *p, const struct answer *a)
{
    struct proxy *proxy = p->prober->proxy;
    unsigned status = a->status;
    if (a->err == ERR_LIMIT)
        too_large(p, NODE_PROBE_METRICS);
    if (a->err != 0)
        return; /* the health check reports the error */
    p->too_large[NODE_PROBE_METRICS] = false;
    struct node_scrape scrape;
    struct node_scrape *ranks = p->prober->ranks;
    int err = status == 200 ? node_scrape_parse(a->body, &scrape, ranks) : ERR_NOT_FOUND;
    struct slice name = name_of(p);
    if (err != 0) {
        bool told = p->metrics_missing || status == 401 || status == 403; /* logged by
                                                                             note_access() */
        if (!told)
            log_event(proxy->config.log, LOG_WARN, "replica_metrics_unknown",
                      LOG_STR("replica", name), LOG_UINT("status", status),
                      LOG_CSTR("error", err_text(err)));
        p->metrics_missing = true;
        p->due_ms[NODE_PROBE_METRICS] = proxy->now_ms + PROBER_MODELS_INTERVAL_MS;
        return;
    }
    p->metrics_missing = false;
    if (scrape.vllm || scrape.sglang)
        prober_engine_found(proxy, p->replica, scrape.vllm ? NODE_ENGINE_VLLM : NODE_ENGINE_SGLANG);
    if (node_router_scraped(proxy->config.router, p->replica, &scrape, proxy->now_ms)) {
        log_event(proxy->config.log, LOG_WARN, "replica_restarted", LOG_STR("replica", name),
                  LOG_CSTR("effect", "the router forgets the replica's prefixes"));
        node_router_models_stale(proxy->config.router, p->replica, true);
        p->due_ms[NODE_PROBE_MODELS] = 0;
        p->due_ms[NODE_PROBE_SERVER_INFO] = 1;
        prober_events_soon(p);
    }
    ranks_compare(p, scrape.ranks);
    node_router_ranks_scraped(proxy->config.router, p->replica, ranks,
                              scrape.ranks > 1 ? scrape.ranks : 0, proxy->now_ms);
}

/* Returns true if the status does not show if there is a list: a refusal, a 429, a failure. */
static bool is_no_word(unsigned status)
{
    return status == 401 || status == 403 || status == 408 || status == 429 || status >= 500;
}

/* Notes that the replica has no model list, and so may be no engine. */
static void no_list(struct prober_probe *p, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    bool news = node_router_models_none(proxy->config.router, p->replica, status);
    DISCARD(models_replace(p, slice_of("", 0)));
    if (news)
        log_event(proxy->config.log, LOG_WARN, "replica_models_unknown",
                  LOG_STR("replica", name_of(p)), LOG_STR("path", SLICE("/v1/models")),
                  LOG_UINT("status", status),
                  LOG_CSTR("effect", "the replica may get requests for models that no other "
                                     "replica lists, and sometimes for others"),
                  LOG_CSTR("want", "correct the replica's host, port and path, or name the model "
                                   "that it serves with the label model"));
}

static void models_done(struct prober_probe *p, const struct answer *a)
{
    struct proxy *proxy = p->prober->proxy;
    struct node_models *models = node_router_model_table(proxy->config.router);
    struct model_list *list = &p->prober->list;
    p->models_asked = true;
    if (a->err == ERR_LIMIT)
        too_large(p, NODE_PROBE_MODELS);
    bool listed = a->err == 0 && a->status == 200 && model_list_read(list, a->body) == 0;
    if (a->err == 0 && !listed && !is_no_word(a->status))
        no_list(p, a->status);
    node_router_models_stale(proxy->config.router, p->replica, false);
    if (!listed)
        return;
    node_router_models_asked(proxy->config.router, p->replica, a->lane->begun_ms);
    int err = node_router_models(proxy->config.router, p->replica, list->ids, list->count);
    if (node_router_context_listed(proxy->config.router, p->replica, model_list_context(list)))
        p->due_ms[NODE_PROBE_SERVER_INFO] = 1;
    for (unsigned i = 0; i < list->count; i++) {
        if (list->parents[i].len > 0)
            node_models_adapter(models, list->ids[i], list->parents[i]);
    }
    if (err != 0 || list->cut) /* the replica may serve models that were not read */
        node_models_unlist(models, p->replica);
    if (err == 0) {
        err = models_replace(p, a->body);
        prober_engine_found(proxy, p->replica, list->engine);
    }
    if (err != 0 || list->cut)
        too_large(p, NODE_PROBE_MODELS);
    else
        p->too_large[NODE_PROBE_MODELS] = false;
}

/* Reads the sources of KV events from an answer, of vLLM or SGLang. If there are none, nothing
 * changes. */
static void sources_read(struct prober_probe *p, struct slice body)
{
    struct kv_source sources[NODE_RANKS_MAX];
    unsigned count;
    if (kv_sources_read(body, sources, NODE_RANKS_MAX, &count) == ERR_OK)
        feeds_told(p->prober->proxy, p->replica, sources, count);
}

/* Reads the sources of KV events. If there is no answer, or a failure, the previous sources
 * stay. */
static void events_done(struct prober_probe *p, const struct answer *a)
{
    if (a->err == 0 && a->status == 200)
        sources_read(p, a->body);
    else if (a->err == 0 && a->status < 500)
        feeds_told(p->prober->proxy, p->replica, NULL, 0);
    else
        p->due_ms[NODE_PROBE_EVENTS] = p->prober->proxy->now_ms + PROBER_EVENTS_MIN_MS * 6;
}

static void server_info_done(struct prober_probe *p, const struct answer *a)
{
    struct proxy *proxy = p->prober->proxy;
    struct node_scrape scrape;
    uint32_t context_tokens = 0;
    if (a->err == 0 && a->status == 404)
        p->older_server_info = !p->older_server_info;
    if (a->err == 0 && a->status == 200)
        sources_read(p, a->body);
    if (a->err != 0 || a->status != 200 ||
        node_server_info_parse(a->body, &scrape, &context_tokens) != 0)
        return;
    node_router_context_told(proxy->config.router, p->replica, context_tokens);
    (void)node_router_scraped(proxy->config.router, p->replica, &scrape, proxy->now_ms);
    if (scrape.ranks < 2 && !p->metrics_missing)
        return; /* the number of ranks comes from the metrics */
    for (unsigned i = 0; i < scrape.ranks; i++)
        p->prober->ranks[i] = scrape; /* all ranks have caches of the same size */
    node_router_ranks_scraped(proxy->config.router, p->replica, p->prober->ranks, scrape.ranks,
                              proxy->now_ms);
}

/* Returns true if /health was refused without the key. Then the probe is repeated at once with the
 * key. */
static bool wants_key(struct prober_probe *p, const struct prober_lane *lane, unsigned status)
{
    struct proxy *proxy = p->prober->proxy;
    if (lane->kind != NODE_PROBE_HEALTH || lane->with_key || proxy->config.replica_key == NULL ||
        (status != 401 && status != 403))
        return false;
    p->health_wants_key = true;
    p->due_ms[NODE_PROBE_HEALTH] = 0;
    return true;
}

void prober_answered(struct prober_lane *lane, int err, bool refused, unsigned status,
                     struct slice body)
{
    static void (*const done[NODE_PROBES])(struct prober_probe * p, const struct answer *a) = {
        [NODE_PROBE_HEALTH] = health_done,           [NODE_PROBE_METRICS] = metrics_done,
        [NODE_PROBE_MODELS] = models_done,           [NODE_PROBE_PING] = ping_done,
        [NODE_PROBE_SERVER_INFO] = server_info_done, [NODE_PROBE_EVENTS] = events_done,
    };
    struct prober_probe *p = lane->probe;
    if (err == ERR_FULL || err == ERR_NOMEM)
        return; /* this router lacks a file or memory: the probe is sent at the next due time */
    if (err == 0 && lane->fetch.router[0] != '\0') {
        found_router(p, lane);
        return;
    }
    if (err == 0)
        p->prober->proxy->engines.pools[p->replica].probed_ms = p->prober->proxy->now_ms;
    if (err == 0 && wants_key(p, lane, status))
        return;
    if (err == 0)
        note_access(p, lane, status);
    const struct answer a = {lane, err, refused, status, body};
    done[lane->kind](p, &a);
}

#include "node/io/prober.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/json_write.h"
#include "node/core/engine_json.h"
#include "node/io/fetch.h"
#include "node/io/upstream.h"

enum {
    MODELS_INTERVAL_MS = 10000,
    SERVER_INFO_INTERVAL_MS = 60000,
    RESOLVE_INTERVAL_MS = 30000,
    SGLANG_HEALTH_FACTOR = 5,
    SILENT_MS = 5000, /* an answer that stands still this long on a dead replica is dead too */
    MODELS_MAX = 256, /* models that one replica may tell */
};

enum probe_kind { PROBE_HEALTH, PROBE_METRICS, PROBE_MODELS, PROBE_SERVER_INFO, PROBE_KINDS };

struct probe {
    struct fetch fetch;
    struct prober *prober;
    unsigned replica;
    enum probe_kind kind; /* of the one under way */
    uint64_t due_ms[PROBE_KINDS];
    bool active; /* the replica is in use */
    bool was_up;
    bool told_down;         /* that it is down, in the log */
    bool told_router;       /* that it is no engine */
    bool metrics_missing;   /* told once */
    bool metrics_too_large; /* told once */
    bool models_too_large;  /* told once */
    struct buf models;      /* the last /v1/models that was understood */
};

struct prober {
    struct shell *shell;
    struct probe probes[NODE_REPLICAS_MAX]; /* touched as they come */
};

/* --- what came back ------------------------------------------------------------------------- */

/* Tells the log what changed since it was told last. Checks are not the only reason: answers that
 * break off take a replica out too, which is found out here by the tick. */
static void log_change(struct probe *p, const char *reason, unsigned status)
{
    struct shell *shell = p->prober->shell;
    enum node_health health = node_router_replica_health(shell->router, p->replica);
    bool up = health == NODE_HEALTH_UP || health == NODE_HEALTH_DRAINING;
    struct slice name = node_router_replica_name(shell->router, p->replica);
    if (up && !p->was_up) {
        p->was_up = true;
        p->told_down = p->told_router = false;
        p->due_ms[PROBE_MODELS] = 0;
        p->due_ms[PROBE_METRICS] = 0;
        p->due_ms[PROBE_SERVER_INFO] = 0;
        log_event(shell->log, LOG_INFO, "replica_up", LOG_STR("replica", name));
    } else if (health == NODE_HEALTH_DOWN && !p->told_down) {
        p->was_up = false;
        p->told_down = true;
        log_event(shell->log, LOG_WARN, "replica_down", LOG_STR("replica", name),
                  LOG_CSTR("error", reason), LOG_UINT("status", status));
        upstream_pool_flush(&shell->pools[p->replica]);
    }
}

/* A router answered: requests would go in a circle. */
static void found_router(struct probe *p)
{
    struct shell *shell = p->prober->shell;
    char who[SHELL_ROUTER_BYTES + 32];
    fetch_router_text(&p->fetch, who, sizeof who);
    node_router_found_router(shell->router, p->replica, slice_of_cstr(who), shell_now_ms(shell));
    upstream_pool_flush(&shell->pools[p->replica]);
    p->was_up = false;
    if (p->told_router)
        return;
    p->told_router = true;
    log_event(
        shell->log, LOG_ERROR, "replica_is_router",
        LOG_STR("replica", node_router_replica_name(shell->router, p->replica)),
        LOG_CSTR("router", who), LOG_CSTR("effect", "it gets no requests"),
        LOG_CSTR("want", "engines only: take it out of the replicas (replica, gvctl remove)"));
}

static void health_done(struct probe *p, int err, bool refused, unsigned status)
{
    struct shell *shell = p->prober->shell;
    struct upstream_pool *pool = &shell->pools[p->replica];
    if (err == 0 && p->fetch.router[0] != '\0') {
        found_router(p);
        return;
    }
    node_router_probed(shell->router, p->replica, err == 0 && status / 100 == 2, refused,
                       shell_now_ms(shell));
    log_change(p, err != 0 ? err_text(err) : "unhealthy", status);
    if (refused) {
        upstream_pool_flush(pool);
        upstream_pool_fail_silent(pool, SILENT_MS);
    }
    if (err == ERR_UNREACHABLE)
        upstream_pool_resolve(pool, RESOLVE_INTERVAL_MS / 6);
}

/* Counts, and tells the log once. */
static void too_large(struct probe *p, bool *told, const char *path)
{
    struct shell *shell = p->prober->shell;
    shell->stats.probes_too_large++;
    if (!*told)
        log_event(shell->log, LOG_WARN, "replica_probe_too_large",
                  LOG_STR("replica", node_router_replica_name(shell->router, p->replica)),
                  LOG_CSTR("path", path), LOG_UINT("bytes_max", FETCH_BODY_MAX),
                  LOG_UINT("models_max", MODELS_MAX));
    *told = true;
}

static void metrics_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct shell *shell = p->prober->shell;
    if (err == ERR_LIMIT)
        too_large(p, &p->metrics_too_large, "/metrics");
    if (err != 0)
        return; /* health says what there is to say */
    p->metrics_too_large = false;
    struct node_scrape scrape;
    err = status == 200 ? node_scrape_parse(body, &scrape) : ERR_NOT_FOUND;
    struct slice name = node_router_replica_name(shell->router, p->replica);
    if (err != 0) {
        if (!p->metrics_missing)
            log_event(shell->log, LOG_WARN, "replica_metrics_unknown", LOG_STR("replica", name),
                      LOG_UINT("status", status), LOG_CSTR("error", err_text(err)));
        p->metrics_missing = true;
        p->due_ms[PROBE_METRICS] = shell_now_ms(shell) + MODELS_INTERVAL_MS;
        return;
    }
    p->metrics_missing = false;
    if (node_router_replica_engine(shell->router, p->replica) == NODE_ENGINE_AUTO &&
        (scrape.vllm || scrape.sglang)) {
        node_router_replica_engine_set(shell->router, p->replica,
                                       scrape.vllm ? NODE_ENGINE_VLLM : NODE_ENGINE_SGLANG);
        log_event(shell->log, LOG_INFO, "replica_engine", LOG_STR("replica", name),
                  LOG_CSTR("engine", scrape.vllm ? "vllm" : "sglang"));
    }
    if (node_router_scraped(shell->router, p->replica, &scrape, shell_now_ms(shell)))
        log_event(shell->log, LOG_WARN, "replica_restarted", LOG_STR("replica", name),
                  LOG_CSTR("effect", "its prefixes are forgotten"));
}

struct model_list {
    unsigned count;
    bool cut;                     /* there were more */
    struct slice ids[MODELS_MAX]; /* in `text` */
    char text[MODELS_MAX][NODE_MODEL_ID_MAX];
};

static int collect_model(void *context, struct slice id, struct slice object)
{
    (void)object;
    struct model_list *list = context;
    if (list->count == MODELS_MAX) {
        list->cut = true;
        return 0;
    }
    char *text = list->text[list->count];
    memcpy(text, id.at, id.len);
    list->ids[list->count++] = slice_of(text, id.len);
    return 0;
}

static void models_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct shell *shell = p->prober->shell;
    if (err == ERR_LIMIT)
        too_large(p, &p->models_too_large, "/v1/models");
    if (err != 0 || status != 200)
        return;
    static struct model_list list; /* one loop, one callback at a time */
    list.count = 0;
    list.cut = false;
    if (node_models_parse(body, collect_model, &list) != 0) {
        log_event(shell->log, LOG_WARN, "replica_models_unknown",
                  LOG_STR("replica", node_router_replica_name(shell->router, p->replica)));
        return;
    }
    err = node_router_models(shell->router, p->replica, list.ids, list.count);
    if (err == 0) {
        buf_clear(&p->models);
        err = buf_append_slice(&p->models, body);
    }
    if (err != 0 || list.cut)
        too_large(p, &p->models_too_large, "/v1/models");
    else
        p->models_too_large = false;
}

static void server_info_done(struct probe *p, int err, unsigned status, struct slice body)
{
    struct shell *shell = p->prober->shell;
    struct node_scrape scrape;
    if (err != 0 || status != 200 || node_server_info_parse(body, &scrape) != 0)
        return;
    (void)node_router_scraped(shell->router, p->replica, &scrape, shell_now_ms(shell));
}

static void on_done(void *context, int err, bool refused, unsigned status, struct slice body)
{
    struct probe *p = context;
    switch (p->kind) {
    case PROBE_HEALTH:
        health_done(p, err, refused, status);
        break;
    case PROBE_METRICS:
        metrics_done(p, err, status, body);
        break;
    case PROBE_MODELS:
        models_done(p, err, status, body);
        break;
    case PROBE_SERVER_INFO:
        server_info_done(p, err, status, body);
        break;
    case PROBE_KINDS:
        break;
    }
}

/* --- what is due ---------------------------------------------------------------------------- */

static uint64_t interval(const struct probe *p, enum probe_kind kind)
{
    const struct node_options *o = p->prober->shell->options;
    bool sglang =
        node_router_replica_engine(p->prober->shell->router, p->replica) == NODE_ENGINE_SGLANG;
    switch (kind) {
    case PROBE_HEALTH:
        return sglang && p->was_up ? o->health_interval_ms * SGLANG_HEALTH_FACTOR
                                   : o->health_interval_ms;
    case PROBE_METRICS:
        return o->scrape_interval_ms;
    case PROBE_MODELS:
        return MODELS_INTERVAL_MS;
    default:
        return sglang ? SERVER_INFO_INTERVAL_MS : UINT64_MAX / 2;
    }
}

static const char *path_of(enum probe_kind kind)
{
    switch (kind) {
    case PROBE_HEALTH:
        return "/health";
    case PROBE_METRICS:
        return "/metrics";
    case PROBE_MODELS:
        return "/v1/models";
    default:
        return "/server_info";
    }
}

static void begin(struct probe *p, enum probe_kind kind, uint64_t now)
{
    struct shell *shell = p->prober->shell;
    p->kind = kind;
    p->due_ms[kind] = now + interval(p, kind);
    bool sglang = node_router_replica_engine(shell->router, p->replica) == NODE_ENGINE_SGLANG;
    fetch_get(&p->fetch, path_of(kind), kind == PROBE_HEALTH && sglang);
}

void prober_tick(struct shell *shell)
{
    struct prober *prober = shell->prober;
    if (prober == NULL)
        return;
    uint64_t now = shell_now_ms(shell);
    for (unsigned i = 0; i < shell->pool_count; i++) {
        struct probe *p = &prober->probes[i];
        if (!p->active)
            continue;
        upstream_pool_resolve(&shell->pools[i], RESOLVE_INTERVAL_MS);
        log_change(p, "answers failed", 0);
        const struct upstream_pool *pool = &shell->pools[i];
        bool first_lookup = pool->address_count == 0 && pool->resolving;
        if (p->fetch.busy || first_lookup)
            continue;
        for (enum probe_kind kind = PROBE_HEALTH; kind < PROBE_KINDS; kind++) {
            if (kind == PROBE_SERVER_INFO && interval(p, kind) > SERVER_INFO_INTERVAL_MS)
                continue;
            if (p->due_ms[kind] <= now && (kind == PROBE_HEALTH || p->was_up)) {
                begin(p, kind, now);
                break;
            }
        }
    }
}

void prober_begin(struct shell *shell, unsigned replica)
{
    struct prober *prober = shell->prober;
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
    fetch_init(&p->fetch, &shell->pools[replica], on_done, p);
}

void prober_end(struct shell *shell, unsigned replica)
{
    struct prober *prober = shell->prober;
    if (prober == NULL || !prober->probes[replica].active)
        return;
    struct probe *p = &prober->probes[replica];
    fetch_cancel(&p->fetch);
    buf_free(&p->models);
    p->active = false;
}

int prober_start(struct shell *shell)
{
    struct prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL)
        return ERR_NOMEM;
    prober->shell = shell;
    shell->prober = prober;
    for (unsigned i = 0; i < shell->pool_count; i++) {
        if (shell->pools[i].shell != NULL)
            prober_begin(shell, i);
    }
    prober_tick(shell);
    return 0;
}

void prober_stop(struct shell *shell)
{
    if (shell->prober == NULL)
        return;
    for (unsigned i = 0; i < shell->pool_count; i++)
        prober_end(shell, i);
    free(shell->prober);
    shell->prober = NULL;
}

/* --- models --------------------------------------------------------------------------------- */

struct merge {
    struct buf *out;
    struct slice wanted; /* only this one; empty: all */
    struct model_list list;
};

static int merge_model(void *context, struct slice id, struct slice object)
{
    struct merge *m = context;
    if (m->wanted.len > 0 && !slice_equal(id, m->wanted))
        return 0;
    for (unsigned i = 0; i < m->list.count; i++) {
        if (slice_equal(m->list.ids[i], id))
            return 0;
    }
    if (m->list.count == MODELS_MAX)
        return 0;
    int err = m->list.count > 0 ? buf_append_char(m->out, ',') : 0;
    if (err == 0)
        err = buf_append_slice(m->out, object);
    (void)collect_model(&m->list, id, object);
    return err;
}

static int merge_all(const struct shell *shell, struct merge *m)
{
    for (unsigned i = 0; i < shell->pool_count; i++) {
        const struct probe *p = &shell->prober->probes[i];
        if (!p->active || p->models.len == 0)
            continue;
        int err = node_models_parse(buf_slice(&p->models), merge_model, m);
        if (err != 0)
            return err;
    }
    return 0;
}

int prober_models_json(const struct shell *shell, struct buf *out)
{
    static struct merge m; /* 70 KB; one loop */
    m.out = out;
    m.wanted = slice_of("", 0);
    m.list.count = 0;
    int err = buf_append_cstr(out, "{\"object\":\"list\",\"data\":[");
    if (err == 0)
        err = merge_all(shell, &m);
    if (err == 0)
        err = buf_append_cstr(out, "]}");
    return err;
}

int prober_model_json(const struct shell *shell, struct slice id, struct buf *out)
{
    static struct merge m;
    m.out = out;
    m.wanted = id;
    m.list.count = 0;
    int err = merge_all(shell, &m);
    if (err != 0)
        return err;
    return m.list.count > 0 ? 0 : ERR_NOT_FOUND;
}
